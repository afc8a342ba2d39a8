//! Somebody else on the machine, who changes what he likes.

use crate::shape::{CONTENTS, DIRECTORIES, MODES, Shape, Thing};
use crate::stage::Stage;
use crate::world::{Node, Who};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One act, on something that is there, or might be.
pub(crate) fn meddle(stage: &mut Stage) {
    stage.world.now = stage.now();
    let paths: Vec<PathBuf> = stage.world.paths().into_iter().skip(1).collect();
    let chance = &mut stage.chance;
    let made_up = || Path::new("/a").join("x");
    let mut path = if paths.is_empty() { made_up() } else { chance.pick(&paths).clone() };
    if chance.percent(30) {
        path = Path::new(*chance.pick(&DIRECTORIES)).join(*chance.pick(&["x", "y", "z", "new"]));
    }
    let node = match chance.below(10) {
        0..6 => Some(Node::File {
            content: (*chance.pick(&CONTENTS)).to_owned() + *chance.pick(&["", "", "more\n"]),
            mode: *chance.pick(&MODES),
        }),
        6 => Some(Node::Directory { entries: BTreeMap::new(), mode: *chance.pick(&MODES) }),
        _ => None,
    };
    let act = chance.below(10);
    let other = if paths.is_empty() { made_up() } else { chance.pick(&paths).clone() };
    let done = match (act, node) {
        (0..3, _) => stage.world.remove(&path, Who::Foreign),
        (3, _) => stage.world.rename(&other, &path, Who::Foreign),
        (4, Some(node)) => {
            stage.world.remove(&path, Who::Foreign);
            stage.world.write(&path, node, Who::Foreign)
        }
        (_, Some(node)) => stage.world.write(&path, node, Who::Foreign),
        (_, None) => stage.world.remove(&path, Who::Foreign),
    };
    stage.say(format_args!("meddles {done} {act} {}", path.display()));
}

/// Once all is as declared: one thing that is declared, or that a command waits for, is moved.
pub(crate) fn probe(stage: &mut Stage, shape: &Shape) {
    stage.world.now = stage.now();
    let mut paths = Vec::new();
    for declared in shape.resources.values().filter(|declared| !declared.is_noop()) {
        match &declared.thing {
            Thing::File { path, .. } | Thing::Absent { path } => paths.push(path),
            Thing::Exec { watched, .. } => paths.extend(watched),
            _ => {}
        }
    }
    let is_directory = |path: &&&PathBuf| {
        shape.resources.values().any(|declared| match &declared.thing {
            Thing::Directory { path: other, .. } => other == **path,
            _ => false,
        })
    };
    paths.retain(|path| !is_directory(&path));
    if paths.is_empty() {
        return;
    }
    let path = (*stage.chance.pick(&paths)).clone();
    let content = "moved\n".to_owned();
    let done = if stage.chance.percent(40) {
        stage.world.remove(&path, Who::Foreign)
    } else {
        stage.world.write(&path, Node::File { content, mode: 0o640 }, Who::Foreign)
    };
    stage.say(format_args!("probes {} {done}", path.display()));
    if done {
        let now = stage.now();
        stage.probed.insert(path, now);
        stage.saw("moved when all was calm");
    }
}

/// The directories that no graph declares are put back by whoever took them away, with those above them.
pub(crate) fn put_back(stage: &mut Stage, is_declared: impl Fn(&Path) -> bool) {
    stage.world.now = stage.now();
    for path in ["/a/c", "/b/d/e", "/made"].map(Path::new) {
        let undeclared = path.ancestors().find(|path| !is_declared(path));
        let missing: Vec<&Path> = undeclared.into_iter().flat_map(Path::ancestors).collect();
        for path in missing.into_iter().rev().skip(1) {
            if !matches!(stage.world.at(path), Some(Node::Directory { .. })) {
                stage.world.remove(path, Who::Foreign);
                let node = Node::Directory { entries: BTreeMap::new(), mode: 0o755 };
                let done = stage.world.write(path, node, Who::Foreign);
                stage.say(format_args!("puts back {} {done}", path.display()));
            }
        }
    }
}
