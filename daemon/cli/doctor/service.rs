//! The check of systemd: reachable, and with an installed, enabled and supervised unit.

use super::{Finding, PATIENCE};
use std::path::Path;
use steadfast_resources::Host;
use steadfast_resources::host::systemd::{Activity, Bus};

const UNIT: &str = "steadfast.service";
/// The oldest supported version of systemd.
const OLDEST: u32 = 252;

pub(super) async fn look() -> Vec<Finding> {
    if !Path::new("/run/systemd/system").exists() {
        let advice = "`svc` cannot be used; start the daemon otherwise: `steadfast run GRAPH`";
        return vec![Finding::warning("systemd", "this host does not run systemd", advice)];
    }
    match tokio::time::timeout(PATIENCE, ask()).await {
        Ok(findings) => findings,
        Err(_elapsed) => {
            let says = format!("no response within {} s", PATIENCE.as_secs());
            vec![Finding::problem("bus", says, "see `systemctl status dbus`")]
        }
    }
}

async fn ask() -> Vec<Finding> {
    let host = Host::default();
    let systemd = host.systemd();
    let version = match systemd.version(Bus::System).await {
        Ok(version) => version,
        Err(failure) => {
            let advice =
                failure.hint.clone().unwrap_or_else(|| "see `systemctl status dbus`".into());
            return vec![Finding::problem("bus", failure.to_string(), advice)];
        }
    };
    let number: String = version.chars().take_while(char::is_ascii_digit).collect();
    let is_old = number.parse::<u32>().is_ok_and(|number| number < OLDEST);
    let mut findings = vec![if is_old {
        let says = format!("{version}; steadfast needs {OLDEST} or later");
        Finding::warning("version", says, "upgrade systemd: `apt-get install systemd`")
    } else {
        Finding::ok("version", version)
    }];
    let unit = match systemd.file_state(Bus::System, UNIT).await {
        Ok(None) => Finding::warning(
            "unit",
            format!("{UNIT} is not installed: the daemon does not start with the host"),
            "install the package: `apt-get install steadfast`; the README shows it without a package",
        ),
        Ok(Some(state)) if state == "enabled" || state == "enabled-runtime" => {
            Finding::ok("unit", format!("{UNIT} is {state}"))
        }
        Ok(Some(state)) => {
            let says = format!("{UNIT} is {state}: the daemon does not start with the host");
            Finding::warning("unit", says, format!("`systemctl enable {UNIT}`"))
        }
        Err(failure) => Finding::warning("unit", failure.to_string(), "`systemctl status`"),
    };
    findings.push(unit);
    findings.extend(running(systemd).await);
    findings
}

/// Returns a finding for a unit that does not run, with systemd's word for its end.
fn state(activity: Activity, result: Option<(String, bool)>) -> Option<Finding> {
    const NAME: &str = "unit state";
    let word = result.map(|(word, _)| word).filter(|word| !word.is_empty());
    let word = word.map(|word| format!(" ({word})")).unwrap_or_default();
    match activity {
        Activity::Failed => {
            let advice = "see `journalctl -u steadfast -n 50` for the reason, then `systemctl start steadfast`";
            Some(Finding::problem(NAME, format!("{UNIT} has failed{word}"), advice))
        }
        Activity::Inactive => {
            let says = format!("{UNIT} is not running{word}");
            Some(Finding::warning(NAME, says, "systemctl start steadfast"))
        }
        Activity::Active | Activity::Reloading => Some(Finding::ok(NAME, format!("{UNIT} runs"))),
        Activity::Activating | Activity::Deactivating | Activity::Other => None,
    }
}

/// Returns findings that only a loaded unit has.
async fn running(systemd: &steadfast_resources::host::Systemd) -> Vec<Finding> {
    let Ok(Some(unit)) = systemd.unit(Bus::System, UNIT).await else { return Vec::new() };
    let mut findings = Vec::new();
    if unit.stale {
        let says = format!("the files of {UNIT} are newer than the definition loaded by systemd");
        findings.push(Finding::warning("unit files", says, "`systemctl daemon-reload`"));
    }
    findings.extend(state(unit.activity, systemd.result(Bus::System, UNIT).await.ok()));
    findings.push(match systemd.watchdog(Bus::System, &unit.path).await {
        Ok(Some(every)) => Finding::ok("watchdog", format!("{} s", every.as_secs_f64())),
        Ok(None) => Finding::warning(
            "watchdog",
            "a hanging daemon is not restarted",
            "`systemctl edit steadfast`: WatchdogSec=30s below [Service]",
        ),
        Err(failure) => Finding::warning("watchdog", failure.to_string(), "`systemctl status`"),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::state;
    use steadfast_resources::host::systemd::Activity;

    /// B3: a failed unit is a problem with its reason and the commands that help; a running one is not.
    #[test]
    fn a_failed_unit_is_a_problem() {
        let failed = state(Activity::Failed, Some(("exit-code".to_owned(), true)));
        let failed = failed.expect("a finding");
        assert_eq!(failed.found, "steadfast.service has failed (exit-code)");
        let advice = failed.advice.unwrap_or_default();
        assert!(advice.contains("journalctl -u steadfast") && advice.contains("systemctl start"));
        let stopped = state(Activity::Inactive, None).expect("a finding");
        assert_eq!(stopped.advice.as_deref(), Some("systemctl start steadfast"));
        assert_eq!(state(Activity::Active, None).and_then(|well| well.advice), None);
    }
}
