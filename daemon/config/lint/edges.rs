//! Advice about edges: notifications without an effect, and files whose changes do not reach their service.

use super::{File, Findings};
use crate::config::problem::quoted;
use std::collections::HashMap;
use steadfast_resources::ResourceId;

/// The kinds that act on a refresh, each with the action.
const REFRESHES: [(&str, &str); 11] = [
    ("exec", "runs the command"),
    ("svc", "reloads the unit, or restarts it: see `refresh`"),
    ("timer", "restarts the interval"),
    ("test", "runs once more"),
    ("print", "prints the message again"),
    ("msg", "logs the message again"),
    ("unit", "makes systemd read its files again"),
    ("password", "makes a new password"),
    ("firewall", "loads the tables again, with empty counters and dynamic sets"),
    ("mount", "remounts the file system with the declared options"),
    ("probe", "asks the question again"),
];

/// Returns the action of a kind on a refresh; none if a refresh has no effect.
#[must_use]
pub fn refresh_action(kind: &str) -> Option<&'static str> {
    REFRESHES.iter().find(|(name, _)| *name == kind).map(|(_, action)| *action)
}

/// The kinds whose objects a service reads.
const READ_BY_SERVICES: [&str; 9] =
    ["file", "line", "block", "replace", "ini", "json", "yaml", "toml", "hosts"];

/// The targets that resources notify by their own declarations, by the name of the resource.
pub(super) struct Notifications(HashMap<String, Vec<String>>);

impl Notifications {
    /// Collects the notifications of all files.
    pub(super) fn of(files: &[File]) -> Self {
        let mut all: HashMap<String, Vec<String>> = HashMap::new();
        for file in files {
            for (kind, item, name) in file.resources() {
                let (Some(name), Some((_, targets))) = (name, file.tree.entry(item, "notify"))
                else {
                    continue;
                };
                let texts = file.texts_of(targets).into_iter().map(|(_, text)| text.to_owned());
                all.entry(format!("{kind}[{name}]")).or_default().extend(texts);
            }
        }
        Self(all)
    }

    /// Returns true if a resource notifies another.
    fn has(&self, from: &str, to: &str) -> bool {
        let targets = self.0.get(from).map(Vec::as_slice).unwrap_or_default();
        targets.iter().any(|text| text == to || text.ends_with("[*]"))
    }
}

/// Adds the advice about the edges of a file.
pub(super) fn advise(file: &File, notifications: &Notifications, findings: &mut Findings) {
    for (kind, item, name) in file.resources() {
        if let Some((key, targets)) = file.tree.entry(item, "notify") {
            let ignores_refresh =
                |target: &str| kind_of(target).is_some_and(|kind| refresh_action(kind).is_none());
            for (node, target) in
                file.texts_of(targets).into_iter().filter(|it| ignores_refresh(it.1))
            {
                let what = format!("{} does nothing on a refresh", quoted(target));
                let node = if file.tree.span(node).start == 0 { key } else { node };
                let hint = "write `before` for the order alone";
                findings.add("useless-notify", (file, node, item), what, hint);
            }
        }
        if let Some((key, _)) =
            file.tree.entry(item, "subscribe").filter(|_| refresh_action(kind).is_none())
        {
            let what = format!("{kind}[{}] does nothing on a refresh", quoted(name.unwrap_or("…")));
            let hint = "write `after` for the order alone";
            findings.add("useless-notify", (file, key, item), what, hint);
        }
        if let ("svc", Some(name)) = (kind, name) {
            advise_service(file, (item, name), notifications, findings);
        }
    }
}

/// Looks for files in `after` of a service that do not notify the service.
fn advise_service(
    file: &File,
    (item, name): (usize, &str),
    notifications: &Notifications,
    findings: &mut Findings,
) {
    let Some((_, targets)) = file.tree.entry(item, "after") else { return };
    let own = format!("svc[{name}]");
    let subscribed = file.tree.entry(item, "subscribe").map(|(_, node)| file.texts_of(node));
    let subscribed = subscribed.unwrap_or_default();
    for (node, target) in file.texts_of(targets) {
        let is_read = kind_of(target).is_some_and(|kind| READ_BY_SERVICES.contains(&kind));
        let is_subscribed = subscribed.iter().any(|(_, text)| *text == target);
        if !is_read || is_subscribed || target.ends_with("/]") || notifications.has(target, &own) {
            continue;
        }
        let what = format!("a change of {} does not reach {}", quoted(target), quoted(&own));
        let hint = "write `subscribe` in place of `after`, or silence this";
        findings.add("after-without-notify", (file, node, item), what, hint);
    }
}

/// Returns the kind of a target such as `kind[name]` or `instance/kind[name]`.
fn kind_of(target: &str) -> Option<&str> {
    let kind = ResourceId::parse(target)?.kind;
    Some(kind.rsplit_once('/').map_or(kind, |(_, kind)| kind))
}
