//! Reads the fields of a svc and reports every problem at once.

use super::{Refresh, Startup, State, Svc, name};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::systemd::Bus;
use crate::resource::Resource;
use crate::secrets::escape::short;
use std::sync::Arc;

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    Ok(Arc::new(read_fields(name, fields)?))
}

/// Builds the part of a resource of another name that manages a unit.
///
/// # Errors
///
/// Returns every problem of the fields.
pub(crate) fn build_of_unit(unit: &str, fields: Fields) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    Ok(Arc::new(Svc { records_unit: true, ..read_fields(unit, fields)? }))
}

fn read_fields(name: &str, mut fields: Fields) -> Result<Svc, Vec<Invalid>> {
    let mut problems = Vec::new();
    let unit = name::whole(name).unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    let states = [("running", State::Running), ("stopped", State::Stopped)];
    let startups = [
        ("enabled", Startup::Enabled),
        ("disabled", Startup::Disabled),
        ("masked", Startup::Masked),
    ];
    let refreshes =
        [("reload", Refresh::Reload), ("restart", Refresh::Restart), ("none", Refresh::Nothing)];
    let session = fields.bool("session").unwrap_or_default();
    let state = one_of("state", &mut fields, &states, &mut problems);
    let refresh = one_of("refresh", &mut fields, &refreshes, &mut problems);
    let mut svc = Svc {
        bus: if session { Bus::Session } else { Bus::System },
        state,
        startup: one_of("startup", &mut fields, &startups, &mut problems),
        refresh: refresh.unwrap_or(Refresh::Reload),
        daemon_reload: fields.bool("daemon_reload"),
        records_unit: false,
        warnings: Vec::new(),
        restarts: super::flapping::Restarts::default(),
        unit,
    };
    contradictions(&svc, &mut problems);
    if svc.state == Some(State::Stopped) && refresh.is_some_and(|it| it != Refresh::Nothing) {
        let what = "`refresh` has no effect with `state: stopped`";
        svc.warnings.push(Invalid::field("refresh", what).hint("omit `refresh`"));
    }
    if problems.is_empty() { Ok(svc) } else { Err(problems) }
}

fn one_of<T: Copy>(
    field: &'static str,
    fields: &mut Fields,
    choices: &[(&str, T)],
    problems: &mut Vec<Invalid>,
) -> Option<T> {
    // Graphs of mgmt write '' for an absent value.
    let text = fields.text(field).filter(|text| !text.is_empty())?;
    let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
    if found.is_none() {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let words = words.join(", ");
        let words =
            words.rsplit_once(", ").map_or_else(|| words.clone(), |(a, b)| format!("{a} or {b}"));
        let what = format!("expected {words}, found `{}`", short(&text, 30));
        problems.push(Invalid::field(field, what).hint(advice(field, &text)));
    }
    found
}

fn advice(field: &str, text: &str) -> &'static str {
    match (field, text) {
        ("state", "started" | "active" | "start" | "true" | "yes" | "on" | "present") => {
            "write: state: running"
        }
        ("state", "stop" | "inactive" | "false" | "no" | "off" | "absent") => {
            "write: state: stopped"
        }
        ("state", "restarted" | "reloaded") => {
            "a unit is restarted when notified: see `notify` and `refresh`"
        }
        ("state", "enabled" | "disabled" | "masked") => "this value belongs to `startup`",
        ("startup", "running" | "stopped") => "this value belongs to `state`",
        ("startup", "true" | "yes" | "on") => "say `enabled`",
        ("startup", "false" | "no" | "off") => "say `disabled`",
        _ => "omit the field to leave this unmanaged",
    }
}

fn contradictions(svc: &Svc, problems: &mut Vec<Invalid>) {
    if svc.state == Some(State::Running) && svc.startup == Some(Startup::Masked) {
        let what = "a masked unit cannot be started: `state: running` contradicts it";
        problems.push(Invalid::field("startup", what).hint("omit one of the two fields"));
    }
    if svc.state.is_some() && name::is_template(&svc.unit) {
        let what = "a template unit cannot be started; set `state` on an instance";
        problems
            .push(Invalid::field("state", what).hint("use an instance, for example getty@tty1"));
    }
}
