//! The adversary: a second actor on the simulated host that changes files at random.

use crate::environment::Stage;
use crate::host::world::Who;
use crate::input::shape::{CONTENTS, DIRECTORIES, MODES, Shape, Thing};
use std::path::{Path, PathBuf};
use steadfast_resources::host::simulated::{Machine, What};

/// Makes one random change, to a path that exists or could exist.
pub(crate) fn meddle(stage: &mut Stage, machine: &Machine) {
    stage.take_in(machine, Who::Us);
    let paths: Vec<PathBuf> =
        machine.look(|tree| tree.all().into_iter().skip(1).map(|(path, _)| path.into()).collect());
    let chance = &mut stage.chance;
    let mut path =
        if paths.is_empty() { PathBuf::from("/a/x") } else { chance.pick(&paths).clone() };
    if chance.percent(30) {
        path = Path::new(*chance.pick(&DIRECTORIES)).join(*chance.pick(&["x", "y", "z", "new"]));
    }
    let other = if paths.is_empty() { path.clone() } else { chance.pick(&paths).clone() };
    let content = (*chance.pick(&CONTENTS)).to_owned() + *chance.pick(&["", "", "more\n"]);
    let mode = *chance.pick(&MODES);
    let act = chance.below(14);
    let done = match act {
        0..4 => machine.write(&path, &content),
        4..6 => machine.replace(&path, &content),
        6 => machine.chmod(&path, mode),
        7 => machine.rename_over(&other, &path),
        8 => machine.remove(&path).and_then(|()| machine.make_directories(&path)),
        9 => machine.remove(&path).and_then(|()| machine.symlink("/b/d", &path)),
        10 => machine.remove(&path).and_then(|()| machine.write(&path, &content)),
        11 => machine.hard_link(&other, &path),
        _ => machine.remove(&path),
    };
    stage.say(format_args!("meddles {act} {}: {}", shown(&path), done.is_ok()));
    stage.take_in(machine, Who::Foreign);
}

/// Formats a path for the trace. Cuts off the random part of temporary names, which differs between replays.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    text.split("/.steadfast-").next().unwrap_or_default().to_owned()
}

/// Changes one declared object, or one object that a command watches, once all is as declared.
pub(crate) fn probe(stage: &mut Stage, machine: &Machine, shape: &Shape) {
    let mut paths = Vec::new();
    for declared in shape.resources.values().filter(|declared| !declared.is_noop()) {
        match &declared.thing {
            Thing::File { path, .. } | Thing::Absent { path } | Thing::Link { path, .. } => {
                paths.push(path);
            }
            Thing::Exec { watched, .. } => paths.extend(watched),
            _ => {}
        }
    }
    let is_directory = |path: &Path| {
        machine.look(|tree| tree.at(path).is_some_and(|n| matches!(n.what, What::Directory(_))))
    };
    paths.retain(|path| !is_directory(path));
    if paths.is_empty() {
        return;
    }
    let path = (*stage.chance.pick(&paths)).clone();
    let done = match stage.chance.below(5) {
        0..2 => machine.remove(&path),
        2 => machine.replace(&path, "moved\n"),
        _ => machine.remove(&path).and_then(|()| machine.write(&path, "moved\n")),
    };
    stage.say(format_args!("probes {}: {}", path.display(), done.is_ok()));
    stage.take_in(machine, Who::Foreign);
    let now = stage.now();
    if done.is_ok() && stage.world.foreign.get(&path) == Some(&now) {
        stage.probed.insert(path, now);
        stage.saw("moved when all was calm");
    }
}

/// Recreates the directories that no graph declares, with their parents, after the adversary removed them.
pub(crate) fn put_back(stage: &mut Stage, machine: &Machine, is_declared: impl Fn(&Path) -> bool) {
    stage.take_in(machine, Who::Us);
    for path in ["/a/c", "/b/d/e", "/made"].map(Path::new) {
        let undeclared = path.ancestors().find(|path| !is_declared(path));
        let missing: Vec<&Path> = undeclared.into_iter().flat_map(Path::ancestors).collect();
        for path in missing.into_iter().rev().skip(1) {
            let is_directory = machine.look(|tree| {
                tree.at(path).is_some_and(|node| matches!(node.what, What::Directory(_)))
            });
            if !is_directory {
                let done = machine.remove(path).and_then(|()| machine.make_directories(path));
                stage.say(format_args!("puts back {}: {}", path.display(), done.is_ok()));
            }
        }
    }
    stage.take_in(machine, Who::Foreign);
}
