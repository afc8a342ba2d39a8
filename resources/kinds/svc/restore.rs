//! The values of a unit for the history, and the unit that an undo restores.

use super::check::{Plan, RefreshAction};
use super::name::whole;
use super::{Refresh, Startup, State, Svc, flapping};
use crate::failure::Failure;
use crate::host::systemd::Bus;
use crate::kind::Restoring;
use crate::parts::shell_words::shell_word;
use crate::prior_state::{FieldValues, FormerValue};
use std::sync::Arc;

/// Returns the values before and after a change, for the aspects that the change concerns.
pub(super) fn recorded(svc: &Svc, plan: &Plan) -> (FieldValues, FieldValues) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut add = |field, from: Option<&str>, to: Option<&str>| {
        before.push((field, from.map(str::to_owned)));
        after.push((field, to.map(str::to_owned)));
    };
    if let Some(from) = plan.state {
        let to = svc.state.map(|state| match state {
            State::Running => "running",
            State::Stopped => "stopped",
        });
        add("state", Some(from), to);
    }
    if let Some(from) = &plan.startup {
        let to = svc.startup.map(|startup| match startup {
            Startup::Enabled => "enabled",
            Startup::Disabled => "disabled",
            Startup::Masked => "masked",
        });
        add("startup", Some(from), to);
    }
    if let Some(action) = plan.refresh {
        let word = match action {
            RefreshAction::Reload => "reloaded",
            RefreshAction::Restart => "restarted",
        };
        add("refresh", None, Some(word));
    }
    if svc.bus == Bus::Session {
        add("session", Some("true"), Some("true"));
    }
    if svc.records_unit {
        add("unit", Some(&svc.unit), Some(&svc.unit));
    }
    (before, after)
}

/// Builds the unit that has its values from before a change.
pub(crate) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let before = |field: &str| {
        let value = values.iter().find(|value| value.field == field)?;
        value.before.as_deref()
    };
    let state = before("state").map(|state| match state {
        "running" | "starting" | "reloading" => State::Running,
        _ => State::Stopped,
    });
    let startup = before("startup").and_then(|startup| match startup {
        startup if startup.starts_with("enabled") => Some(Startup::Enabled),
        startup if startup.starts_with("masked") => Some(Startup::Masked),
        "disabled" => Some(Startup::Disabled),
        _ => None,
    });
    let unit = whole(before("unit").unwrap_or(name))
        .map_err(|invalid| Failure { hint: invalid.hint, ..Failure::new(invalid.what) })?;
    if state.is_none() && startup.is_none() {
        let what = "the change was a reload or a restart, which cannot be undone";
        return Err(
            Failure::new(what).hint("`steadfast undo RES --to N` undoes an earlier change too")
        );
    }
    let bus = if before("session").is_some() { Bus::Session } else { Bus::System };
    let user = if bus == Bus::Session { "--user " } else { "" };
    let startup_verb = startup.map(|startup| match startup {
        Startup::Enabled => "enable",
        Startup::Disabled => "disable",
        Startup::Masked => "mask",
    });
    let state_verb = state.map(|state| if state == State::Running { "start" } else { "stop" });
    let verbs = [startup_verb, state_verb].into_iter().flatten();
    let commands = verbs.map(|verb| format!("systemctl {user}{verb} {}", shell_word(&unit)));
    let by_hand = commands.collect::<Vec<_>>().join(" && ");
    let svc = Svc {
        unit,
        bus,
        state,
        startup,
        refresh: Refresh::Nothing,
        daemon_reload: None,
        records_unit: before("unit").is_some(),
        warnings: Vec::new(),
        restarts: flapping::Restarts::default(),
    };
    Ok(Restoring { resource: Arc::new(svc), by_hand })
}

#[cfg(test)]
mod tests {
    use super::restore;
    use crate::prior_state::{After, FormerValue};

    fn value(field: &str, before: Option<&str>, after: &str) -> FormerValue {
        let before = before.map(str::to_owned);
        FormerValue { field: field.to_owned(), before, after: After::Value(after.to_owned()) }
    }

    #[test]
    fn a_unit_gets_its_former_state_and_startup() {
        let values = [
            value("state", Some("stopped"), "running"),
            value("startup", Some("disabled"), "enabled"),
        ];
        let by_hand = |values: &[FormerValue]| restore("nginx", values).map(|found| found.by_hand);
        let both = "systemctl disable nginx.service && systemctl stop nginx.service";
        assert_eq!(by_hand(&values).unwrap(), both);
        let session =
            [value("state", Some("running"), "stopped"), value("session", Some("true"), "true")];
        assert_eq!(by_hand(&session).unwrap(), "systemctl --user start nginx.service");
        let of_unit = [
            value("state", Some("stopped"), "running"),
            value("unit", Some("web.service"), "web.service"),
        ];
        assert_eq!(restore("limits", &of_unit).unwrap().by_hand, "systemctl stop web.service");
        let reload = [value("refresh", None, "reloaded")];
        assert!(by_hand(&reload).unwrap_err().what.contains("cannot be undone"));
        // A static unit has no startup that could be restored.
        assert!(by_hand(&[value("startup", Some("static"), "enabled")]).is_err());
    }
}
