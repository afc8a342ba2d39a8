//! S-1, S-2, S-4: another user acts between any two calls of this program. Each act is tried before each call
//! of each task, and each pair of acts before near calls, so that the races that `file/races.rs` meets by
//! chance are met for certain.

use crate::cases::points;
use crate::support;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::simulated::{Machine, Node, What};
use steadfast_resources::{CheckResult, Host, Outcome, Resource};

const NOBODY: u32 = 65534;

/// The content of root's file, which nobody but root may ever get.
const CANARY: &str = "the canary of root";

/// The written content, which nobody may ever get except by the declared mode.
const OURS: &str = "ours, and only ours";

/// An act of the user who owns `/home` and everything below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Replaces the directory of the file by a link to root's directory; a repetition restores it.
    SwapParent,
    /// Replaces the parent of that directory by a link to root's directory; a repetition restores it.
    SwapGrandparent,
    /// Replaces the file by a link to root's file.
    Link,
    /// Makes the file another name of root's file (possible where `fs.protected_hardlinks` is 0).
    HardLink,
    /// Replaces the file by a directory that is not empty.
    Directory,
    Remove,
    Rewrite,
    /// Lets everybody write the directory.
    Open,
    /// Replaces each object with a temporary name by a link to root's file.
    HiddenLink,
    /// Makes each temporary name another name of root's file.
    HiddenHardLink,
    /// Replaces each object with a temporary name by a link to root's directory.
    HiddenDirectory,
    /// Removes each object with a temporary name.
    HiddenGone,
}

const ACTS: [Act; 12] = [
    Act::SwapParent,
    Act::SwapGrandparent,
    Act::Link,
    Act::HardLink,
    Act::Directory,
    Act::Remove,
    Act::Rewrite,
    Act::Open,
    Act::HiddenLink,
    Act::HiddenHardLink,
    Act::HiddenDirectory,
    Act::HiddenGone,
];

/// The number of a call, and true if a temporary name exists at the time of the call.
type Point = (u64, bool);

impl Act {
    fn is_of_hidden(self) -> bool {
        matches!(
            self,
            Self::HiddenLink | Self::HiddenHardLink | Self::HiddenDirectory | Self::HiddenGone
        )
    }

    /// Performs the act, as far as possible.
    fn go(self, machine: &Machine) {
        let file = "/home/g/p/f";
        match self {
            Self::SwapParent => swap(machine, "/home/g/p", "/canary/g/p"),
            Self::SwapGrandparent => swap(machine, "/home/g", "/canary/g"),
            Self::Link => put_link(machine, file, "/canary/g/p/f"),
            Self::HardLink => put_hard_link(machine, file),
            Self::Directory => {
                tried(machine.remove(file));
                tried(machine.make_directories("/home/g/p/f/deep"));
                for path in [file, "/home/g/p/f/deep"] {
                    tried(machine.chown(path, NOBODY, NOBODY));
                }
            }
            Self::Remove => tried(machine.remove(file)),
            Self::Rewrite => {
                tried(machine.remove(file));
                tried(machine.write(file, "theirs"));
                tried(machine.chown(file, NOBODY, NOBODY));
            }
            Self::Open => tried(machine.chmod("/home/g/p", 0o777)),
            Self::HiddenLink => {
                hidden(machine, |path| put_link(machine, path, "/canary/g/p/f"));
            }
            Self::HiddenHardLink => hidden(machine, |path| put_hard_link(machine, path)),
            Self::HiddenDirectory => {
                hidden(machine, |path| put_link(machine, path, "/canary/g/p"));
            }
            Self::HiddenGone => hidden(machine, |path| tried(machine.remove(path))),
        }
    }
}

/// Ignores the result of an impossible act.
fn tried(_done: Result<(), Errno>) {}

/// Returns true if all parents of a path are real directories: acts stay below `/home` and follow no links.
fn is_theirs(machine: &Machine, path: &str) -> bool {
    let above: Vec<&str> =
        path.match_indices('/').skip(1).map(|(at, _)| path.get(..at).unwrap_or(path)).collect();
    machine.look(|tree| {
        above
            .iter()
            .all(|above| tree.at(above).is_some_and(|node| matches!(node.what, What::Directory(_))))
    })
}

fn swap(machine: &Machine, path: &str, canary: &str) {
    if !is_theirs(machine, path) {
        return;
    }
    let aside = "/home/aside";
    let is_swapped =
        machine.look(|tree| tree.at(path).is_some_and(|node| matches!(node.what, What::Link(_))));
    if is_swapped {
        tried(machine.remove(path));
        tried(machine.rename_over(aside, path));
    } else {
        tried(machine.rename_over(path, aside));
        tried(machine.symlink(canary, path));
        tried(machine.chown(path, NOBODY, NOBODY));
    }
}

fn put_link(machine: &Machine, path: &str, target: &str) {
    if is_theirs(machine, path) {
        tried(machine.remove(path));
        tried(machine.symlink(target, path));
        tried(machine.chown(path, NOBODY, NOBODY));
    }
}

fn put_hard_link(machine: &Machine, path: &str) {
    if is_theirs(machine, path) {
        tried(machine.remove(path));
        tried(machine.hard_link("/canary/g/p/f", path));
    }
}

fn hidden(machine: &Machine, mut act: impl FnMut(&str)) {
    let all = machine.look(|tree| {
        tree.all()
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.starts_with("/home/"))
            .collect::<Vec<_>>()
    });
    for path in all {
        if path.rsplit('/').next().is_some_and(|name| name.starts_with(".steadfast-")) {
            act(&path);
        }
    }
}

/// A task of the kind `file` during which the user acts.
struct Work {
    name: &'static str,
    path: &'static str,
    given: &'static [(&'static str, &'static str)],
    /// The widest mode that a file with the written content may have.
    mode: u32,
}

const fn work(
    name: &'static str,
    path: &'static str,
    given: &'static [(&'static str, &'static str)],
    mode: u32,
) -> Work {
    Work { name, path, given, mode }
}

const FILE: &str = "/home/g/p/f";
const WORKS: [Work; 18] = [
    work("content", FILE, &[("content", OURS), ("force", "true"), ("mode", "0640")], 0o640),
    work("mode", FILE, &[("mode", "0666")], 0o666),
    work(
        "given away",
        FILE,
        &[("content", OURS), ("mode", "0604"), ("owner", "12"), ("group", "34")],
        0o604,
    ),
    work("theirs", FILE, &[("content", OURS), ("mode", "0600"), ("owner", "65534")], 0o600),
    work("owner", FILE, &[("owner", "12"), ("state", "undefined")], 0),
    work("absent", FILE, &[("state", "absent"), ("force", "true")], 0),
    work("directory", "/home/g/p/f/", &[("mode", "0777"), ("owner", "12"), ("force", "true")], 0),
    work("link", FILE, &[("symlink", "/nowhere"), ("force", "true"), ("owner", "12")], 0),
    work("their link", FILE, &[("symlink", "/nowhere"), ("force", "true"), ("owner", "65534")], 0),
    work("undefined", FILE, &[("state", "undefined"), ("mode", "0777")], 0),
    work(
        "tree",
        "/home/g/",
        &[("source", "/source"), ("recurse", "true"), ("force", "true"), ("mode", "u=rwX,go=rX")],
        0o755,
    ),
    work("attributes", "/home/g/", &[("recurse", "true"), ("mode", "a=rwX"), ("owner", "12")], 0),
    work("purge", "/home/g/", &[("recurse", "true"), ("purge", "true"), ("backup", "/kept")], 0),
    work("purge one", "/home/g/p/", &[("purge", "true"), ("force", "true")], 0),
    work("removed tree", "/home/g/p/", &[("state", "absent"), ("force", "true")], 0),
    work(
        "backup",
        FILE,
        &[("content", OURS), ("backup", "/kept"), ("force", "true"), ("mode", "0600")],
        0o600,
    ),
    // For a source of the user, only the same owner is trusted (S-11).
    work(
        "copy",
        "/one",
        &[("source", FILE), ("owner", "65534"), ("force", "true"), ("mode", "0644")],
        0o755,
    ),
    work(
        "copy of a tree",
        "/all/",
        &[("source", "/home/g"), ("owner", "65534"), ("recurse", "true"), ("force", "true")],
        0o755,
    ),
];

impl Work {
    fn machine() -> Machine {
        let machine = Machine::default();
        for path in ["/home/g/p", "/canary/g/p", "/source/p/deep", "/kept"] {
            machine.make_directories(path).expect("made");
        }
        for (path, content) in [
            (FILE, "theirs"),
            ("/canary/g/p/f", CANARY),
            ("/source/p/f", OURS),
            ("/source/p/deep/x", OURS),
        ] {
            machine.write(path, content).expect("written");
        }
        for path in ["/home", "/home/g", "/home/g/p", FILE] {
            machine.chown(path, NOBODY, NOBODY).expect("given");
        }
        machine.chmod("/canary/g/p/f", 0o600).expect("changed");
        machine.chmod("/kept", 0o700).expect("changed");
        machine.set_wall(machine.wall() + Duration::from_secs(10));
        machine
    }

    fn resource(&self) -> Arc<dyn Resource> {
        support::file(self.path, self.given)
    }

    fn hold(&self, machine: &Machine) -> Outcome {
        let _entered = machine.enter();
        support::hold(&Host::default(), &self.resource())
    }

    /// Returns the calls before which an act is worth testing, without the middle of long sequences of `stat` (on
    /// all protected paths).
    fn points(&self) -> Vec<Point> {
        let machine = Self::machine();
        let calls = Rc::new(RefCell::new((Vec::new(), BTreeSet::new())));
        let seen = Rc::clone(&calls);
        machine.set_faults([]);
        machine.set_hook(Some(Box::new(move |machine, call| {
            let (calls, hiding) = &mut *seen.borrow_mut();
            calls.push(call.clone());
            hidden(machine, |_| hiding.extend([call.number]));
        })));
        let done = self.hold(&machine);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", self.name);
        let (calls, hiding) = &*calls.borrow();
        points(calls).into_iter().map(|call| (call, hiding.contains(&call))).collect()
    }

    /// Runs the task while the user acts before these calls.
    fn with(&self, acts: &[(u64, Act)]) -> Machine {
        let machine = Self::machine();
        let before = machine.look(|tree| portrait(tree.all()));
        let words = format!("{} with {acts:?}", self.name);
        let (acts, mode, told) = (acts.to_vec(), self.mode, words.clone());
        let mut was_changed = true;
        machine.set_faults([]);
        machine.set_hook(Some(Box::new(move |machine, call| {
            if std::mem::replace(&mut was_changed, call.changes) {
                machine.look(|tree| never_wider(&tree.all(), mode, &told));
            }
            for (_, act) in acts.iter().filter(|(number, _)| *number == call.number) {
                machine.foreign(|machine| act.go(machine));
            }
        })));
        drop(self.hold(&machine));
        machine.set_hook(None);
        machine.look(|tree| {
            never_wider(&tree.all(), self.mode, &words);
            assert_eq!(portrait(tree.all()), before, "{words}: what is root's is not as it was");
            for (path, node) in tree.all() {
                let What::File(content) = &node.what else { continue };
                // The content may be visible by another name of root's file, and in copies that only root can read.
                let is_fine =
                    ["/canary/", "/home/", "/kept/"].iter().any(|top| path.starts_with(top));
                let holds = content.as_slice() == CANARY.as_bytes();
                assert!(is_fine || !holds, "{words}: root's content is in {path}");
            }
        });
        machine
    }

    /// Restores the initial ownership, and asserts that the task then converges and stays converged.
    fn calms(&self, machine: &Machine, act: Act, call: u64) {
        let words = format!("{} with {act:?} before call {call}", self.name);
        let is_link = |path: &str| {
            machine.look(|tree| tree.at(path).is_some_and(|n| matches!(n.what, What::Link(_))))
        };
        for path in ["/home/g", "/home/g/p", "/home/aside"] {
            if is_link(path) {
                machine.remove(path).expect("removed");
            }
        }
        for path in ["/home/g/p/f", "/home/g/p", "/home/aside"] {
            machine.remove(path).expect("removed");
        }
        for path in ["/home/g", "/home/g/p"] {
            machine.make_directories(path).expect("made");
            machine.chown(path, NOBODY, NOBODY).expect("given");
        }
        machine.write(FILE, "theirs").expect("written");
        machine.chown(FILE, NOBODY, NOBODY).expect("given");
        machine.set_wall(machine.wall() + Duration::from_secs(10));
        let done = self.hold(machine);
        assert!(
            matches!(done, Outcome::Changed(_) | Outcome::Unchanged),
            "{words}: all is calm, and {done:?}"
        );
        let _entered = machine.enter();
        let again = support::check(&Host::default(), &self.resource());
        assert!(matches!(again, CheckResult::Same), "{words}: all is calm, and {again:?}");
    }
}

/// Returns everything about root's objects that an attack could change. A user may give them another name,
/// which changes their change time.
fn portrait(all: Vec<(String, &Node)>) -> Vec<String> {
    let canary = all.into_iter().filter(|(path, _)| path.starts_with("/canary"));
    canary
        .map(|(path, node)| {
            let Node { what, mode, uid, gid, attributes, stamps, .. } = node;
            format!("{path} {what:?} {mode:o} {uid} {gid} {attributes:?} {}", stamps.0)
        })
        .collect()
}

/// S-4: the written content is never visible with a wider mode than the final one.
fn never_wider(all: &[(String, &Node)], mode: u32, words: &str) {
    for (path, node) in all {
        let is_ours = matches!(&node.what, What::File(content) if content == OURS.as_bytes());
        if is_ours && path.starts_with("/home/") {
            assert_eq!(node.mode & !mode, 0, "{words}: {path} has the mode {:o}", node.mode);
        }
    }
}

/// S-1, S-2, S-4: one act before each call; without further acts, the task converges.
#[test]
fn an_act_before_each_call_leads_us_nowhere() {
    for work in &WORKS {
        for (call, is_hidden) in work.points() {
            for act in ACTS.into_iter().filter(|act| is_hidden || !act.is_of_hidden()) {
                let machine = work.with(&[(call, act)]);
                work.calms(&machine, act, call);
            }
        }
    }
}

/// S-1: two acts near each other, such as a directory that is exchanged and restored between two calls.
#[test]
fn two_acts_near_each_other_lead_us_nowhere() {
    let firsts = [
        Act::SwapParent,
        Act::SwapGrandparent,
        Act::Link,
        Act::Rewrite,
        Act::HiddenLink,
        Act::HiddenDirectory,
    ];
    for work in &WORKS {
        let points = work.points();
        for pair in points.windows(2).chain(points.windows(3)) {
            let (Some((call, is_hidden)), Some((next, _))) = (pair.first(), pair.last()) else {
                continue;
            };
            for first in firsts.into_iter().filter(|act| *is_hidden || !act.is_of_hidden()) {
                for second in [Act::SwapParent, Act::SwapGrandparent, Act::Link] {
                    drop(work.with(&[(*call, first), (*next, second)]));
                }
            }
        }
    }
}
