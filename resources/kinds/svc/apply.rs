//! Applies a unit in this order: reload of the unit files, startup, state, refresh.

use super::check::{Plan, RefreshAction, fixed, look, runs};
use super::restore::recorded;
use super::{Startup, State, Svc};
use crate::change::{Change, Outcome};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::systemd::{Applied, End, Install, OwnChange, Verb};
use crate::permit::Permit;
use crate::secrets::escape::short;

/// systemd's result for a unit that was started too often.
const START_LIMIT: &str = "start-limit-hit";

/// The reason for an early end of a run.
enum Stop {
    Revoked,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One run of an apply.
struct Run<'r> {
    svc: &'r Svc,
    host: &'r Host,
    permit: &'r Permit,
    done: Vec<String>,
    /// Something may have been changed, even if the list of finished steps does not show it.
    touched: bool,
}

pub(super) async fn apply(svc: &Svc, host: &Host, permit: &Permit, change: Change) -> Outcome {
    let Ok(seen) = change.premise.downcast::<Plan>() else {
        let failure = Failure::new("the check of this run left nothing to apply");
        return Outcome::Failed { failure, touched: false };
    };
    let (before, after) = recorded(svc, &seen);
    let kept = host.keep_values(permit, vec![(0, before.clone())]).await.unwrap_or_default();
    let mut run = Run { svc, host, permit, done: Vec::new(), touched: false };
    let ended = tokio::select! {
        ended = run.all(&seen) => ended,
        // A revoked permit ends every wait; a queued job of systemd goes on.
        () = permit.revoked() => Err(Stop::Revoked),
    };
    let after = match &ended {
        Ok(()) if !run.done.is_empty() => Some(after),
        // The unit may be half changed: the record stays, and its later values are unknown.
        Err(_) if run.touched => None,
        Ok(()) | Err(_) => Some(before),
    };
    if let (Some(number), Some(after)) = (kept.get(&0), after) {
        let _reported = host.settle_values(permit, vec![(0, *number, after)]).await;
    }
    match ended {
        Ok(()) if run.done.is_empty() => Outcome::Unchanged,
        Ok(()) => Outcome::Changed(run.done),
        Err(Stop::Failed(failure)) => Outcome::Failed { failure, touched: run.touched },
        Err(Stop::Revoked) => Outcome::Interrupted,
    }
}

impl Run<'_> {
    async fn all(&mut self, seen: &Plan) -> Result<(), Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        let acts = seen.state.is_some() || seen.refresh.is_some();
        // A job of another client is waited for: interrupting it would cancel the job, or credit its start to this
        // run.
        let plan = loop {
            if acts {
                systemd.settled(svc.bus, &svc.unit).await?;
            }
            let plan = look(svc, self.host, seen.refresh.is_some()).await?;
            if !(acts && plan.is_busy) {
                break plan;
            }
        };
        if plan.load && seen.load {
            self.load().await?;
        }
        if let Some(file) = plan.startup.as_deref().filter(|_| seen.startup.is_some()) {
            self.install(file).await?;
        }
        let told = plan.refresh.filter(|_| seen.refresh.is_some());
        let is_moved = plan.state.is_some() && seen.state.is_some();
        if !is_moved && told.is_none() {
            return Ok(());
        }
        let mut filter = systemd.filter_own_changes(svc.bus, &svc.unit).await?;
        match told {
            // A unit that is starting reads its files anyway, so no refresh is needed.
            Some(told) if !is_moved => self.refresh(told, &mut filter).await,
            _ => self.set_state(&mut filter).await,
        }
    }

    async fn load(&mut self) -> Result<(), Stop> {
        self.touched = true;
        let (svc, permit) = (self.svc, self.permit);
        permitted(self.host.systemd().reload(svc.bus, permit).await?)?;
        self.done.push("daemon-reload".to_owned());
        Ok(())
    }

    async fn install(&mut self, file: &str) -> Result<(), Stop> {
        let Some(startup) = self.svc.startup else { return Ok(()) };
        let is_masked = file.starts_with("masked");
        let (steps, word): (&[Install], _) = match startup {
            Startup::Masked => (&[Install::Mask], "masked"),
            Startup::Enabled if is_masked => (&[Install::Unmask, Install::Enable], "enabled"),
            Startup::Enabled => (&[Install::Enable], "enabled"),
            Startup::Disabled if is_masked => (&[Install::Unmask], "unmasked"),
            Startup::Disabled => (&[Install::Disable], "disabled"),
        };
        let (bus, systemd) = (self.svc.bus, self.host.systemd());
        for step in steps {
            self.touched = true;
            let name = self.name_for(*step).await?;
            permitted(systemd.install(bus, *step, &name, self.permit).await?)?;
        }
        permitted(systemd.reload(bus, self.permit).await?)?;
        self.done.push(word.to_owned());
        if startup == Startup::Disabled && is_masked {
            self.disable_what_was_masked().await?;
        }
        self.verify_startup().await
    }

    /// Returns the name for a step: a mask needs the link's own name, an enable needs the unit's name.
    async fn name_for(&self, step: Install) -> Result<String, Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        match step {
            Install::Mask | Install::Unmask => Ok(svc.unit.clone()),
            Install::Enable | Install::Disable => {
                let is_link = systemd.file_state(svc.bus, &svc.unit).await?;
                if is_link.as_deref() != Some("alias") {
                    return Ok(svc.unit.clone());
                }
                Ok(systemd.file_name(svc.bus, &svc.unit).await?)
            }
        }
    }

    /// Disables a unit after unmasking: below a mask, a unit may still be enabled.
    async fn disable_what_was_masked(&mut self) -> Result<(), Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        let state = systemd.file_state(svc.bus, &svc.unit).await?;
        if state.is_some_and(|state| state.starts_with("enabled")) {
            let name = self.name_for(Install::Disable).await?;
            permitted(systemd.install(svc.bus, Install::Disable, &name, self.permit).await?)?;
            permitted(systemd.reload(svc.bus, self.permit).await?)?;
        }
        Ok(())
    }

    /// Verifies the startup after a change: systemd reports success for many requests that it cannot fulfil.
    async fn verify_startup(&self) -> Result<(), Stop> {
        let plan = look(self.svc, self.host, false).await?;
        match plan.startup {
            Some(file) => Err(Stop::Failed(fixed(self.svc, &file))),
            None => Ok(()),
        }
    }

    async fn set_state(&mut self, filter: &mut OwnChange) -> Result<(), Stop> {
        let (verb, word) = match self.svc.state {
            Some(State::Running) => (Verb::Start, "started"),
            Some(State::Stopped) => (Verb::Stop, "stopped"),
            None => return Ok(()),
        };
        self.job(verb, filter).await?;
        self.verify_state(verb, filter).await?;
        self.done.push(word.to_owned());
        Ok(())
    }

    async fn refresh(&mut self, told: RefreshAction, filter: &mut OwnChange) -> Result<(), Stop> {
        let (verb, word) = match told {
            RefreshAction::Reload => (Verb::Reload, "reloaded"),
            RefreshAction::Restart => (Verb::Restart, "restarted"),
        };
        self.job(verb, filter).await?;
        let (unit, seen) = self.host.systemd().look(self.svc.bus, &self.svc.unit).await?;
        if unit.is_some_and(|unit| runs(unit.activity)) {
            filter.knows(seen);
        }
        self.done.push(word.to_owned());
        Ok(())
    }

    /// Runs a job. systemd refuses to start a socket whose service runs already: the service then pauses for the start.
    async fn job(&mut self, verb: Verb, filter: &mut OwnChange) -> Result<(), Stop> {
        let failed = match self.try_job(verb, filter).await {
            Err(Stop::Failed(failed)) => failed,
            done => return done,
        };
        let Some(service) = self.service_of_socket(verb).await? else {
            return Err(Stop::Failed(failed));
        };
        self.job_of(Verb::Stop, &service).await?;
        let started = self.try_job(verb, filter).await;
        self.job_of(Verb::Start, &service).await?;
        started
    }

    /// Returns the running service that keeps a socket from its start.
    async fn service_of_socket(&self, verb: Verb) -> Result<Option<String>, Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        if !svc.unit.ends_with(".socket") || !matches!(verb, Verb::Start | Verb::Restart) {
            return Ok(None);
        }
        let mut units = systemd.triggered(svc.bus, &svc.unit).await?;
        if units.is_empty() {
            units.extend(svc.unit.strip_suffix(".socket").map(|stem| format!("{stem}.service")));
        }
        for unit in units {
            let (found, _) = systemd.look(svc.bus, &unit).await?;
            if unit.ends_with(".service") && found.is_some_and(|found| runs(found.activity)) {
                return Ok(Some(unit));
            }
        }
        Ok(None)
    }

    /// Runs a job of another unit.
    async fn job_of(&self, verb: Verb, unit: &str) -> Result<(), Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        match systemd.job(svc.bus, verb, unit, self.permit).await? {
            End::Done => Ok(()),
            End::Revoked { .. } => Err(Stop::Revoked),
            End::Not(end) => {
                let what = format!(
                    "{} cannot start beside {}, whose job ended with `{end}`",
                    short(&svc.unit, 30),
                    short(unit, 30)
                );
                Err(Stop::Failed(Failure::new(what).hint(format!("see `systemctl status {unit}`"))))
            }
        }
    }

    async fn try_job(&mut self, verb: Verb, filter: &mut OwnChange) -> Result<(), Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        let before = systemd.invocation(svc.bus, &svc.unit).await?;
        self.touched = true;
        match systemd.job(svc.bus, verb, &svc.unit, self.permit).await? {
            End::Done => Ok(()),
            End::Revoked { .. } => Err(Stop::Revoked),
            End::Not(end) => {
                let (unit, seen) = systemd.look(svc.bus, &svc.unit).await?;
                let is_running = unit.is_some_and(|unit| runs(unit.activity));
                // If another client has interfered, the following signals are no echo of this run.
                let is_news = verb == Verb::Stop || is_running == (verb == Verb::Start);
                if end != "canceled" && !is_news {
                    filter.knows(seen);
                }
                let (mut why, _) = systemd.result(svc.bus, &svc.unit).await?;
                let after = systemd.invocation(svc.bus, &svc.unit).await?;
                if verb == Verb::Start && end == "failed" && before.is_some() && before == after {
                    // systemd has not even begun the start; the last result is that of an earlier start.
                    START_LIMIT.clone_into(&mut why);
                }
                Err(Stop::Failed(not_done(svc, verb, &end, &why)))
            }
        }
    }

    /// Verifies the state after a job: a start job may succeed although the unit does not run.
    async fn verify_state(&self, verb: Verb, filter: &mut OwnChange) -> Result<(), Stop> {
        let (svc, systemd) = (self.svc, self.host.systemd());
        let (unit, seen) = systemd.look(svc.bus, &svc.unit).await?;
        let is_running = unit.is_some_and(|unit| runs(unit.activity));
        if is_running == (verb == Verb::Start) {
            filter.knows(seen);
            return Ok(());
        }
        if verb != Verb::Start {
            return Ok(());
        }
        let (why, conditions) = systemd.result(svc.bus, &svc.unit).await?;
        // Another client may have stopped the unit; the following signals are then no echo of this run.
        if !filter.is_disturbed(seen).await {
            filter.knows(seen);
        }
        let unit = short(&svc.unit, 50);
        Err(Stop::Failed(match why.as_str() {
            _ if !conditions => {
                Failure::new(format!("{unit} was not started: its conditions are not met"))
                    .hint(format!("see `systemctl status {unit}`"))
            }
            "success" | "" => Failure::new(format!("{unit} was started, but exited successfully"))
                .hint("the service must stay active: a oneshot service needs RemainAfterExit=yes, or use `exec`"),
            why => not_done(svc, Verb::Start, "failed", why),
        }))
    }
}

fn permitted(applied: Applied) -> Result<(), Stop> {
    match applied {
        Applied::Yes => Ok(()),
        Applied::Revoked => Err(Stop::Revoked),
    }
}

/// Describes a job that did not succeed.
fn not_done(svc: &Svc, verb: Verb, end: &str, why: &str) -> Failure {
    let unit = short(&svc.unit, 50);
    let verb = match verb {
        Verb::Start => "start",
        Verb::Stop => "stop",
        Verb::Reload => "reload",
        Verb::Restart => "restart",
    };
    let user = if svc.bus == crate::host::systemd::Bus::Session { "--user " } else { "" };
    let journal = format!("see `journalctl {user}-u {unit}` for the reason");
    match (end, why) {
        (_, START_LIMIT) => Failure::new(format!(
            "{unit} was started too often: systemd rejects further starts for now"
        ))
        // The starts may be refreshes of this program, and the limit of systemd ends by itself.
        .passing()
        .hint(format!("{journal}; then `systemctl {user}reset-failed {unit}`")),
        ("failed", why) if !why.is_empty() && why != "success" => {
            Failure::new(format!("{unit} did not {verb}: {why}")).hint(journal)
        }
        ("dependency", _) => {
            Failure::new(format!("{unit} did not {verb}: a required unit did not"))
                .hint(format!("see `systemctl {user}status {unit}` and `systemctl {user}--failed`"))
        }
        ("canceled", _) => {
            Failure::new(format!("{unit} did not {verb}: the job was cancelled by another process"))
                .hint("another program manages the unit, or the machine is shutting down")
        }
        (end, _) => {
            Failure::new(format!("{unit} did not {verb}: its job ended with `{end}`")).hint(journal)
        }
    }
}
