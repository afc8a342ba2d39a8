//! Compares a unit with its declaration and plans the change.

use super::{Refresh, Startup, State, Svc};
use crate::change::{Change, CheckResult, Difference};
use crate::check_request::CheckRequest;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::systemd::{Activity, Unit};
use crate::secrets::escape::short;
use tokio::time::Instant;

/// The file states in which nothing starts the unit at boot for its own sake.
const NOT_AT_BOOT: [&str; 6] =
    ["disabled", "static", "indirect", "linked", "linked-runtime", "transient"];

/// The steps that an apply must do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// systemd must read its unit files again.
    pub(super) load: bool,
    /// The present state of the unit file in systemd's words; none if the startup is as declared.
    pub(super) startup: Option<String>,
    /// The present activity of the unit; none if the state is as declared.
    pub(super) state: Option<&'static str>,
    /// The action for an owed refresh, if one is needed.
    pub(super) refresh: Option<RefreshAction>,
    /// Another client has a job queued for the unit, so its present activity says little.
    pub(super) is_busy: bool,
}

/// The action for an owed refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefreshAction {
    Reload,
    Restart,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self { is_busy: self.is_busy, ..Self::default() }
    }
}

/// The properties of a unit, from systemd.
#[derive(Debug)]
struct Facts {
    unit: Option<Unit>,
    /// The state of the unit file; not queried where it does not matter.
    file: Option<String>,
}

pub(super) async fn check(svc: &Svc, host: &Host, ask: CheckRequest) -> CheckResult {
    let looked = ask.cancel.run_until_cancelled(look(svc, host, ask.refresh)).await;
    match looked {
        None => CheckResult::Unknown(Failure::new("the run was cancelled while querying systemd")),
        Some(Err(failure)) => CheckResult::Unknown(failure),
        Some(Ok(plan)) if plan.is_empty() => match flapping(svc, host, &ask).await {
            Ok(()) => CheckResult::Same,
            Err(failure) => CheckResult::Unknown(failure),
        },
        Some(Ok(plan)) => CheckResult::Differs(Change {
            differences: differences(svc, &plan),
            destructive: false,
            premise_digest: 0,
            creates: svc.creates(&plan),
            replaces: false,
            premise: Box::new(plan),
        }),
    }
}

/// Fails if systemd restarts a service again and again that is declared as running.
async fn flapping(svc: &Svc, host: &Host, ask: &CheckRequest) -> Result<(), Failure> {
    if svc.state != Some(State::Running) || !svc.unit.ends_with(".service") {
        return Ok(());
    }
    let count = host.systemd().restarts(svc.bus, &svc.unit);
    match ask.cancel.run_until_cancelled(count).await {
        Some(Ok(Some(count))) => svc.restarts.judge(&svc.unit, count, Instant::now()),
        // A unit that is not loaded has not been restarted.
        Some(Ok(None)) | None => Ok(()),
        Some(Err(failure)) => Err(failure),
    }
}

fn differences(svc: &Svc, plan: &Plan) -> Vec<Difference> {
    let one = |aspect, from: &str, to: &str| {
        Some(Difference { aspect, from: from.to_owned(), to: to.to_owned(), diff: None })
    };
    let startup = plan.startup.as_ref().and_then(|from| match svc.startup? {
        Startup::Enabled => one("startup", from, "enabled"),
        Startup::Disabled => one("startup", from, "disabled"),
        Startup::Masked => one("startup", from, "masked"),
    });
    let state = plan.state.and_then(|from| match svc.state? {
        State::Running => one("state", from, "running"),
        State::Stopped => one("state", from, "stopped"),
    });
    let refresh = plan.refresh.and_then(|told| match told {
        RefreshAction::Reload => one("refresh", "", "reload"),
        RefreshAction::Restart => one("refresh", "", "restart"),
    });
    let load = plan.load.then(|| one("units", "changed on disk", "loaded by systemd")).flatten();
    [load, startup, state, refresh].into_iter().flatten().collect()
}

/// Queries systemd and returns the steps that an apply must do.
pub(super) async fn look(svc: &Svc, host: &Host, refresh: bool) -> Result<Plan, Failure> {
    let refresh = refresh && svc.state != Some(State::Stopped) && svc.refresh != Refresh::Nothing;
    if !svc.is_watched() && !refresh {
        return Ok(Plan::default());
    }
    let facts = facts(svc, host).await?;
    let is_busy = facts.unit.as_ref().is_some_and(|unit| unit.job.is_some());
    let mut plan = Plan { startup: startup(svc, &facts)?, is_busy, ..Plan::default() };
    plan.state = state(svc, &facts, plan.startup.is_some())?;
    if let Some(unit) = facts.unit.as_ref().filter(|unit| runs(unit.activity))
        && refresh
        && plan.state.is_none()
    {
        let can_reload = svc.refresh == Refresh::Reload
            && host.systemd().can_reload(svc.bus, &unit.path).await?;
        plan.refresh =
            Some(if can_reload { RefreshAction::Reload } else { RefreshAction::Restart });
    }
    let acts = !plan.is_empty();
    plan.load = facts.is_stale()
        && match svc.daemon_reload {
            Some(wanted) => wanted,
            None => acts,
        };
    Ok(plan)
}

async fn facts(svc: &Svc, host: &Host) -> Result<Facts, Failure> {
    let systemd = host.systemd();
    let unit = systemd.unit(svc.bus, &svc.unit).await?;
    let is_loaded = unit.as_ref().is_some_and(|unit| unit.load == "loaded");
    let file = if svc.startup.is_some() || !is_loaded {
        systemd.file_state(svc.bus, &svc.unit).await?
    } else {
        None
    };
    // For a link to a unit, the state of the unit itself counts.
    let file = match file.as_deref() {
        Some("alias" | "linked" | "linked-runtime") if svc.startup.is_some() => {
            let name = systemd.file_name(svc.bus, &svc.unit).await?;
            if name == svc.unit { file } else { systemd.file_state(svc.bus, &name).await? }
        }
        _ => file,
    };
    let unmasks = svc.startup.is_some_and(|startup| startup != Startup::Masked);
    if unmasks
        && file.as_deref().is_some_and(|file| file.starts_with("masked"))
        && systemd.is_empty_file(svc.bus, &svc.unit).await?
    {
        // Unmasking would mean removing that file.
        let hint = "an empty file masks the unit: write or remove the file";
        let what = format!("the file of {} is empty", short(&svc.unit, 60));
        return Err(Failure::new(what).hint(hint));
    }
    Ok(Facts { unit, file })
}

impl Facts {
    fn load(&self) -> &str {
        self.unit.as_ref().map_or("", |unit| &unit.load)
    }

    fn activity(&self) -> Activity {
        self.unit.as_ref().map_or(Activity::Inactive, |unit| unit.activity)
    }

    /// Returns true if the unit files on disk differ from those that systemd has read.
    fn is_stale(&self) -> bool {
        let was_missing = self.load() == "not-found" && self.file.is_some();
        was_missing || self.unit.as_ref().is_some_and(|unit| unit.stale)
    }

    fn is_missing(&self) -> bool {
        self.file.is_none() && ["", "not-found"].contains(&self.load())
    }

    fn is_masked(&self) -> bool {
        match self.file.as_deref() {
            Some(file) => file.starts_with("masked"),
            None => self.load() == "masked",
        }
    }
}

pub(super) fn runs(activity: Activity) -> bool {
    match activity {
        Activity::Active | Activity::Reloading | Activity::Activating | Activity::Other => true,
        Activity::Inactive | Activity::Failed | Activity::Deactivating => false,
    }
}

fn word(activity: Activity) -> &'static str {
    match activity {
        Activity::Active | Activity::Other => "running",
        Activity::Reloading => "reloading",
        Activity::Activating => "starting",
        Activity::Inactive => "stopped",
        Activity::Failed => "failed",
        Activity::Deactivating => "stopping",
    }
}

fn missing(svc: &Svc) -> Failure {
    let hint =
        "check the name, or order this resource after the package or file that provides the unit";
    Failure::new(format!("{} does not exist", short(&svc.unit, 60))).hint(hint)
}

fn state(svc: &Svc, facts: &Facts, unmasks: bool) -> Result<Option<&'static str>, Failure> {
    let Some(state) = svc.state else { return Ok(None) };
    let activity = facts.activity();
    match state {
        State::Running if runs(activity) => Ok(None),
        // A unit that is stopping needs no other stop, and a missing unit does not run.
        State::Stopped if !runs(activity) => Ok(None),
        State::Stopped => Ok(Some(word(activity))),
        State::Running if facts.is_missing() => Err(missing(svc)),
        State::Running if facts.is_masked() && !unmasks => {
            Err(Failure::new(format!("{} is masked: it cannot be started", short(&svc.unit, 60)))
                .hint("declare `startup: enabled` (or disabled), which unmasks it"))
        }
        State::Running => Ok(Some(word(activity))),
    }
}

/// Returns the present state of the unit file if the startup is not as declared.
fn startup(svc: &Svc, facts: &Facts) -> Result<Option<String>, Failure> {
    let Some(startup) = svc.startup else { return Ok(None) };
    let Some(file) = facts.file.as_deref() else {
        return match startup {
            // A missing unit is not started at boot; a mask also covers a file that appears later.
            Startup::Disabled => Ok(None),
            Startup::Masked => Ok(Some("missing".to_owned())),
            Startup::Enabled => Err(missing(svc)),
        };
    };
    let same = match startup {
        Startup::Enabled => file == "enabled",
        Startup::Disabled => NOT_AT_BOOT.contains(&file),
        Startup::Masked => file == "masked",
    };
    let can = match file {
        "generated" | "transient" | "bad" => startup == Startup::Masked,
        // A static unit has nothing to link: it is not made for a start at boot.
        "static" => startup != Startup::Enabled,
        _ => true,
    };
    match (same, can) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(file.to_owned())),
        (false, false) => Err(fixed(svc, file)),
    }
}

/// Describes a unit whose file cannot have the declared startup.
pub(super) fn fixed(svc: &Svc, file: &str) -> Failure {
    let hint = match file {
        "static" | "indirect" => "the unit has no [Install] section: omit `startup`",
        "bad" => "see `systemd-analyze verify` for the problem",
        _ => "omit `startup`, or declare the source of the unit",
    };
    let unit = short(&svc.unit, 50);
    Failure::new(format!("{unit} is {file}: it cannot be enabled or disabled")).hint(hint)
}
