//! The oracle: reads the simulated host without the kinds and lists every deviation from the graph at the end of a
//! run.

use crate::environment::{Stage, here};
use crate::input::shape::{Content, Declared, Shape, Thing};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steadfast::store::StoredState;
use steadfast_resources::host::simulated::{Node, What};

/// The load time of each notifying edge of the current graph, in milliseconds.
pub(crate) type Since = BTreeMap<(String, String), u64>;

/// Lists all deviations of the host and of the stored state from the graph.
pub(crate) fn complaints(
    stage: &Stage,
    shape: &Shape,
    (since, kept): (&Since, &StoredState),
) -> Vec<String> {
    let mut all = Vec::new();
    for (name, declared) in shape.resources.iter().filter(|(_, declared)| !declared.is_noop()) {
        let identity = shape.identity(name);
        let Some(kept) = kept.resources.get(&identity) else { continue };
        // A check finds the state of a file, so the store needs no record of a converged one. An interruption of an
        // older definition is ignored.
        let present = stage.definitions.get(&identity);
        let is_cut_off = kept.interrupted.is_some_and(|of| Some(&of) == present);
        if kept.owed.is_some() || (is_cut_off && declared.thing.is_deed()) {
            all.push(format!("{identity}: in the store stands {kept:?} {declared:?}"));
        }
    }
    for (name, declared) in &shape.resources {
        if declared.is_noop() {
            continue;
        }
        if let Some(what) = is_wrong(stage, shape, name, declared) {
            all.push(format!("{}: {what}", shape.identity(name)));
        }
    }
    for ((from, to), began) in since {
        if let Some(what) = is_owed(stage, shape, (from, to), *began) {
            all.push(what);
        }
    }
    all
}

fn is_wrong(stage: &Stage, shape: &Shape, name: &str, declared: &Declared) -> Option<String> {
    match &declared.thing {
        Thing::File { path, content, mode } => {
            let wanted = match content {
                Content::Text(text) => text,
                Content::Of(value) => match &shape.resources[value].thing {
                    Thing::Value { text } => text,
                    _ => return Some("its value is none".to_owned()),
                },
            };
            match at(path) {
                Some(Node { what: What::File(has), .. }) if has != wanted.as_bytes() => {
                    Some(format!("holds {:?}, not {wanted:?}", String::from_utf8_lossy(&has)))
                }
                Some(Node { what: What::File(_), mode: has, .. })
                    if mode.is_some_and(|mode| mode != has) =>
                {
                    Some(format!("its mode is {has:o}, not {mode:?}"))
                }
                Some(Node { what: What::File(_), .. }) => None,
                other => Some(format!("is no file: {other:?}")),
            }
        }
        Thing::Directory { path, mode } => match at(path) {
            Some(Node { what: What::Directory(_), mode: has, .. })
                if mode.is_none_or(|mode| mode == has) =>
            {
                None
            }
            other => Some(format!("is not such a directory: {other:?}")),
        },
        Thing::Absent { path } => at(path).map(|node| format!("is there: {node:?}")),
        Thing::Link { path, target } => match at(path) {
            Some(Node { what: What::Link(leads), .. }) if leads == target.as_bytes() => None,
            other => Some(format!("is not such a link: {other:?}")),
        },
        Thing::Exec { creates: None, refresh_only: false, watched, .. }
            if let Some(at) = unheard(stage, name, watched) =>
        {
            Some(format!("E-4: what it watches moved at {at}, and it did not run since"))
        }
        Thing::Exec { creates: Some(path), refresh_only: false, .. } => {
            at(path).is_none().then(|| format!("did not make {}", path.display()))
        }
        Thing::Exec { refresh_only: false, .. } => {
            stage.ran.get(&command(name)).is_none_or(Vec::is_empty).then(|| "never ran".to_owned())
        }
        Thing::Msg => {
            let began = stage.heard.started.contains_key(&shape.identity(name));
            (!began).then(|| "was never said".to_owned())
        }
        Thing::Exec { .. } | Thing::Value { .. } | Thing::Test { .. } => None,
    }
}

/// E-4: returns the time of a change to a watched path in the calm phase if the command has not run since.
fn unheard(stage: &Stage, name: &str, watched: &[PathBuf]) -> Option<u64> {
    if stage.profile.lost > 0 {
        // Lost events leave a watch broken until the next sweep.
        return None;
    }
    let at = *watched.iter().filter_map(|path| stage.probed.get(path)).max()?;
    let ran = stage.ran.get(&command(name));
    ran.is_none_or(|ran| ran.iter().all(|began| *began < at)).then_some(at)
}

/// E-9: returns a complaint if a change of `from` was never followed by a run of `to`.
fn is_owed(stage: &Stage, shape: &Shape, (from, to): (&str, &str), since: u64) -> Option<String> {
    let (parent, child) = (shape.resources.get(from)?, shape.resources.get(to)?);
    if child.is_noop() {
        return None;
    }
    let identity = shape.identity(from);
    let changed = match &parent.thing {
        Thing::Exec { .. } => stage.done.get(&command(from)).copied(),
        Thing::Msg | Thing::Test { .. } => stage.heard.began_last(&identity),
        Thing::Value { .. } => None,
        thing => stage.world.ours.get(thing.path()?).copied(),
    }?;
    // A run that began before the edge was loaded owes no refresh over the edge.
    let started = stage.heard.started.get(&identity)?.iter().rfind(|at| **at <= changed)?;
    if *started <= since {
        return None;
    }
    let after =
        |times: Option<&Vec<u64>>| times.is_some_and(|all| all.iter().any(|at| *at >= changed));
    let paid = match &child.thing {
        Thing::Exec { creates: None, .. } => after(stage.ran.get(&command(to))),
        Thing::Msg | Thing::Test { changed: true, .. } => {
            after(stage.heard.started.get(&shape.identity(to)))
        }
        _ => true,
    };
    (!paid).then(|| format!("E-9: {identity} changed at {changed}, {to} did not run since"))
}

fn at(path: &Path) -> Option<Node> {
    here().look(|tree| tree.at(path).cloned())
}

pub(crate) fn command(name: &str) -> String {
    format!("work {name}")
}
