//! systemd: whether it can be reached, and whether our unit is installed, enabled and watched over.

use super::{Finding, PATIENCE};
use std::path::Path;
use steadfast_resources::Host;
use steadfast_resources::host::systemd::Bus;

const UNIT: &str = "steadfast.service";
/// The unit and `svc` are written for this one and later.
const OLDEST: u32 = 252;

pub(super) async fn look() -> Vec<Finding> {
    if !Path::new("/run/systemd/system").exists() {
        let advice = "`svc` cannot be used; start the daemon by what this host was started with";
        return vec![Finding::warning("systemd", "this host was not started by it", advice)];
    }
    match tokio::time::timeout(PATIENCE, ask()).await {
        Ok(findings) => findings,
        Err(_elapsed) => {
            let says = format!("no answer within {} s", PATIENCE.as_secs());
            vec![Finding::problem("bus", says, "`systemctl status dbus`")]
        }
    }
}

async fn ask() -> Vec<Finding> {
    let host = Host::default();
    let systemd = host.systemd();
    let version = match systemd.version(Bus::System).await {
        Ok(version) => version,
        Err(trouble) => {
            let advice = trouble.hint.clone().unwrap_or_else(|| "`systemctl status dbus`".into());
            return vec![Finding::problem("bus", trouble.to_string(), advice)];
        }
    };
    let number: String = version.chars().take_while(char::is_ascii_digit).collect();
    let is_old = number.parse::<u32>().is_ok_and(|number| number < OLDEST);
    let mut findings = vec![if is_old {
        let says = format!("{version}, written for {OLDEST} and later");
        Finding::warning("version", says, "upgrade systemd")
    } else {
        Finding::ok("version", version)
    }];
    let unit = match systemd.file_state(Bus::System, UNIT).await {
        Ok(None) => Finding::warning(
            "unit",
            format!("{UNIT} is not installed: the daemon does not start with the host"),
            "see `As a service` in the README",
        ),
        Ok(Some(state)) if state == "enabled" || state == "enabled-runtime" => {
            Finding::ok("unit", format!("{UNIT} is {state}"))
        }
        Ok(Some(state)) => {
            let says = format!("{UNIT} is {state}: the daemon does not start with the host");
            Finding::warning("unit", says, format!("systemctl enable {UNIT}"))
        }
        Err(trouble) => Finding::warning("unit", trouble.to_string(), "`systemctl status`"),
    };
    findings.push(unit);
    findings.extend(running(systemd).await);
    findings
}

/// What only a unit that is in memory has.
async fn running(systemd: &steadfast_resources::host::Systemd) -> Vec<Finding> {
    let Ok(Some(unit)) = systemd.unit(Bus::System, UNIT).await else { return Vec::new() };
    let mut findings = Vec::new();
    if unit.stale {
        let says = format!("the files of {UNIT} are newer than what systemd has read");
        findings.push(Finding::warning("unit files", says, "systemctl daemon-reload"));
    }
    findings.push(match systemd.watchdog(Bus::System, &unit.path).await {
        Ok(Some(every)) => Finding::ok("watchdog", format!("{} s", every.as_secs_f64())),
        Ok(None) => Finding::warning(
            "watchdog",
            "a daemon that hangs is not replaced",
            "WatchdogSec=30s in the unit",
        ),
        Err(trouble) => Finding::warning("watchdog", trouble.to_string(), "`systemctl status`"),
    });
    findings
}
