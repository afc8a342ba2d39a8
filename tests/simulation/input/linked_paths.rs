//! Paths that lead through symbolic links: drawn into a graph and onto a simulated host.

use crate::input::chance::Chance;
use crate::input::shape::{CONTENTS, Content, Declared, Meta, Shape, Thing};
use std::path::{Path, PathBuf};
use steadfast_resources::host::simulated::Machine;

/// The places of symbolic links, and the targets of these links.
const LINKS: [&str; 5] = ["/a/c", "/a/l", "/b/d", "/b/l", "/b/d/e"];
const TARGETS: [&str; 7] = ["/a", "/b", "/a/c", "/b/d/e", "/b/d", "../b", "l"];

/// Adds links to a graph, and resources whose paths lead through these links.
pub(crate) fn led(mut shape: Shape, chance: &mut Chance) -> Shape {
    for number in 0..chance.within(1, 4) {
        let through = *chance.pick(&LINKS);
        let (path, thing) = match chance.below(5) {
            0..2 => {
                let path = PathBuf::from(through);
                (path.clone(), Thing::Link { path, target: chance.pick::<&str>(&TARGETS) })
            }
            2 => {
                let path = PathBuf::from(through);
                (path.clone(), Thing::Directory { path, mode: chance.percent(30).then_some(0o750) })
            }
            other => {
                let path = Path::new(through).join(*chance.pick(&["x", "y", "z", "l"]));
                let content = Content::Text((*chance.pick(&CONTENTS)).to_owned());
                let file = || Thing::File { path: path.clone(), content, mode: None };
                let absent = || Thing::Absent { path: path.clone() };
                (path.clone(), if other == 3 { file() } else { absent() })
            }
        };
        let is_taken = shape.resources.values().any(|other| other.thing.path() == Some(&path));
        let is_loop = matches!(&thing, Thing::Link { target, .. } if path.ends_with(target) || path == Path::new(target));
        let name = format!("k{number}");
        if !is_taken && !is_loop && !shape.former.values().any(|former| *former == name) {
            shape
                .resources
                .entry(name)
                .or_insert_with(|| Declared { thing, meta: Meta::default() });
        }
    }
    shape.join(chance);
    shape
}

/// Puts symbolic links in place of some directories of the simulated host.
pub(crate) fn put_links(machine: &Machine, chance: &mut Chance) {
    for _ in 0..chance.within(1, 3) {
        let (path, target) = (*chance.pick(&LINKS), *chance.pick(&TARGETS));
        // A link whose directory does not exist is left out.
        let _is_there = machine.remove(path).and_then(|()| machine.symlink(target, path)).is_ok();
    }
}
