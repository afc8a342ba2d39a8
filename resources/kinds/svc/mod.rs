//! `svc`: a systemd unit: its state, its startup at boot, and reloads after changes of its files.
//!
//! The kind must not examine undeclared aspects. A unit counts as running from the moment of its start; a
//! missing, ended or failed unit counts as stopped. A service that systemd restarts again and again is
//! flapping, which is a failure. A refresh reloads or restarts a running unit, unless the same run has
//! started the unit.
//!
//! Reading order: `declare.rs` (the fields), `name.rs` (unit names), `check.rs`, `flapping.rs`, `apply.rs`,
//! `restore.rs` (history and undo), `sent.rs`.

mod apply;
mod check;
mod declare;
mod flapping;
mod name;
mod restore;
mod sent;

pub(crate) use declare::build_of_unit;
pub(crate) use restore::restore as restore_unit;
pub(crate) use sent::SENDS;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldSpec, FieldType};
use crate::fields::field_values::{Invalid, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::systemd::Bus;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{ExecutorKind, Resource, RunPolicy, Traits};
use crate::values::sent_values::Sent;
use crate::watch_source::WatchSource;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "svc",
    collectible: false,
    doc: "Manages the state and the boot behaviour of a systemd unit. The name is the name of the unit.",
    fields: &[
        FieldSpec::new(
            "state",
            FieldType::Choice(&["running", "stopped"]),
            "running (a service restarted by systemd 3 times within 2 minutes fails) or stopped; default: not managed.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "startup",
            FieldType::Choice(&["enabled", "disabled", "masked"]),
            "Boot behaviour: enabled, disabled or masked; default: not managed.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "session",
            FieldType::Bool,
            "Manage a unit of the daemon's user instead of a system unit; default: false.",
        ).known_at_load(),
        FieldSpec::new(
            "refresh",
            FieldType::Choice(&["reload", "restart", "none"]),
            "Reaction of a running unit to a notification: reload (restart if not supported), restart or none; default: reload.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "daemon_reload",
            FieldType::Bool,
            "Reload of changed unit files: true at once, false never; default: before an action on the unit.",
        ).receives(Receives::Shown),
    ],
    sends: SENDS,
    example: "svc:\n  - name: nginx\n    state: running\n    startup: enabled\n",
    restore: Some(restore::restore),
    build: declare::build,
};

/// The default deadline, longer than systemd's own start timeout (90 s by default), so that systemd reports
/// the reason first.
const PATIENCE: Duration = Duration::from_mins(2);

/// The folders of unit files, for which systemd sends no signals: systemd reads them on request.
const FOLDERS: [&str; 3] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"];

/// A unit as declared.
#[derive(Debug)]
struct Svc {
    unit: String,
    bus: Bus,
    state: Option<State>,
    startup: Option<Startup>,
    refresh: Refresh,
    daemon_reload: Option<bool>,
    /// The name of the resource is not the name of the unit, so the history records the unit.
    records_unit: bool,
    warnings: Vec<Invalid>,
    restarts: flapping::Restarts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Startup {
    Enabled,
    Disabled,
    Masked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refresh {
    Reload,
    Restart,
    Nothing,
}

/// Returns the full name of a unit; a name without a type is a service.
///
/// # Errors
///
/// Fails if the text is no name of a unit.
pub(crate) fn unit_name(name: &str) -> Result<String, Failure> {
    name::whole(name)
        .map_err(|invalid| Failure { hint: invalid.hint, ..Failure::new(invalid.what) })
}

impl Svc {
    /// Returns true if none of the declared effects (a running unit, a start at boot) exists yet.
    fn creates(&self, plan: &check::Plan) -> bool {
        let state = self.state != Some(State::Running) || plan.state.is_some();
        let startup = self.startup != Some(Startup::Enabled) || plan.startup.is_some();
        self.brings().is_some() && state && startup
    }

    /// Returns the two effects of the resource, a running unit and a start at boot; none if it declares neither.
    fn brings(&self) -> Option<(bool, bool)> {
        let brings = (self.state == Some(State::Running), self.startup == Some(Startup::Enabled));
        (brings.0 || brings.1).then_some(brings)
    }

    /// Returns true if an aspect of the resource can drift.
    fn is_watched(&self) -> bool {
        self.state.is_some() || self.startup.is_some() || self.daemon_reload == Some(true)
    }
}

impl Svc {
    /// Reverts the effects of the resource: the unit is stopped and not started at boot any more.
    fn removal(&self) -> Option<Removal> {
        let (runs, starts) = self.brings()?;
        let word = |word: &str| Value::Text(word.to_owned());
        let ends = [("state", runs, "stopped"), ("startup", starts, "disabled")];
        let ends = ends.into_iter().filter(|(_, is, _)| *is);
        let removal = ends.fold(Removal::new(), |all, (name, _, how)| all.with(name, word(how)));
        let session = self.bus == Bus::Session;
        Some(if session { removal.with("session", Value::Bool(true)) } else { removal })
    }

    fn required(&self) -> Vec<Need> {
        let session = self.bus == Bus::Session;
        let unit = |name| Need::exact(HostObject::Unit { session, name }, "defines the unit");
        let template = name::template(&self.unit);
        std::iter::once(self.unit.clone()).chain(template).map(unit).collect()
    }

    fn watched(&self) -> Vec<WatchSource> {
        if !self.is_watched() {
            return Vec::new();
        }
        let mut sources =
            vec![WatchSource::Unit { bus: self.bus, unit: self.unit.as_str().into() }];
        if self.bus == Bus::System {
            let below = |folder| WatchSource::Path { path: PathBuf::from(folder), below: true };
            sources.extend(FOLDERS.map(below));
        }
        sources
    }
}

impl Resource for Svc {
    fn footprint(&self) -> Footprint {
        let (session, name) = (self.bus == Bus::Session, self.unit.clone());
        Footprint {
            claims: vec![Claim::exclusive(HostObject::Unit { session, name })],
            requires: self.required(),
            watch: self.watched(),
            removal: self.removal(),
            warnings: self.warnings.clone(),
            ..Footprint::default()
        }
    }

    fn sends_key(&self, key: &str) -> bool {
        sent::can_send(&self.unit, key)
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        Some(Box::pin(sent::read_values(self, host, cancel)))
    }

    fn traits(&self) -> Traits {
        Traits {
            executor: ExecutorKind::Command,
            repeat: RunPolicy::State,
            timeout: Some(PATIENCE),
            ..Traits::default()
        }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(check::check(self, host, ask))
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(apply::apply(self, host, permit, change))
    }
}
