//! The test cases for fault injection: the tasks of the kind `file`, and the conditions that hold after any
//! fault.

use crate::support;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use steadfast_resources::host::simulated::{Call, Machine, What};
use steadfast_resources::{CheckResult, Host, Outcome, Resource};

/// One task of the kind `file`: the host state, the declaration, and the contents that must never be visible
/// in part.
pub(super) struct Case {
    pub(super) name: &'static str,
    given: &'static [(&'static str, &'static str)],
    path: &'static str,
    before: fn(&Machine),
}

const OLD: &str = "the old content, which is rather longer than the new one";
const NEW: &str = "the new content";

fn nothing(_: &Machine) {}

fn old_file(machine: &Machine) {
    machine.write("/w/f", OLD).expect("written");
}

fn a_tree(machine: &Machine) {
    machine.make_directories("/w/t/sub").expect("made");
    for path in ["/w/t/stray", "/w/t/sub/stray", "/w/t/kept"] {
        machine.write(path, OLD).expect("written");
    }
}

fn a_source(machine: &Machine) {
    old_file(machine);
    machine.write("/src", NEW).expect("written");
}

fn a_place_for_copies(machine: &Machine) {
    old_file(machine);
    machine.make_directories("/w/backup").expect("made");
    machine.chmod("/w/backup", 0o700).expect("changed");
}

fn a_file_of_theirs(machine: &Machine) {
    old_file(machine);
    for path in ["/w", "/w/f"] {
        machine.chown(path, 65534, 65534).expect("given");
    }
}

fn a_directory_of_theirs(machine: &Machine) {
    machine.make_directories("/w/d").expect("made");
    machine.write("/w/d/f", OLD).expect("written");
    for path in ["/w", "/w/d"] {
        machine.chown(path, 65534, 65534).expect("given");
    }
}

fn a_tree_and_its_source(machine: &Machine) {
    a_tree(machine);
    machine.make_directories("/src/sub/deep").expect("made");
    for path in ["/src/kept", "/src/sub/x", "/src/sub/deep/x"] {
        machine.write(path, NEW).expect("written");
    }
    machine.symlink("kept", "/src/sub/link").expect("made");
}

pub(super) const CASES: [Case; 16] = [
    Case { name: "create", given: &[("content", NEW)], path: "/w/f", before: nothing },
    Case { name: "rewrite", given: &[("content", NEW)], path: "/w/f", before: old_file },
    Case { name: "mode", given: &[("mode", "0640")], path: "/w/f", before: old_file },
    Case {
        name: "owner",
        given: &[("content", NEW), ("owner", "65534"), ("group", "65534"), ("mode", "0600")],
        path: "/w/f",
        before: old_file,
    },
    Case { name: "remove", given: &[("state", "absent")], path: "/w/f", before: old_file },
    Case { name: "source", given: &[("source", "/src")], path: "/w/f", before: a_source },
    Case { name: "link", given: &[("symlink", "/w/x")], path: "/w/l", before: nothing },
    Case {
        name: "link over a file",
        given: &[("symlink", "/w/x"), ("force", "true")],
        path: "/w/f",
        before: old_file,
    },
    Case { name: "directory", given: &[("mode", "0750")], path: "/w/d/", before: nothing },
    Case {
        name: "remove a tree",
        given: &[("state", "absent"), ("force", "true")],
        path: "/w/t/",
        before: a_tree,
    },
    Case {
        name: "backup",
        given: &[("content", NEW), ("backup", "/w/backup")],
        path: "/w/f",
        before: a_place_for_copies,
    },
    Case {
        name: "a user's own",
        given: &[("content", NEW), ("owner", "65534"), ("group", "65534"), ("mode", "0600")],
        path: "/w/f",
        before: a_file_of_theirs,
    },
    Case {
        name: "copy a tree",
        given: &[("source", "/src"), ("recurse", "true"), ("force", "true")],
        path: "/w/t/",
        before: a_tree_and_its_source,
    },
    Case {
        name: "copy and clear a tree",
        given: &[("source", "/src"), ("recurse", "true"), ("force", "true"), ("purge", "true")],
        path: "/w/t/",
        before: a_tree_and_its_source,
    },
    Case {
        name: "attributes of a tree",
        given: &[("recurse", "true"), ("mode", "u=rwX,go="), ("owner", "12")],
        path: "/w/t/",
        before: a_tree,
    },
    Case {
        name: "a user's directory",
        given: &[("mode", "0775"), ("owner", "12"), ("group", "12")],
        path: "/w/d/",
        before: a_directory_of_theirs,
    },
];

impl Case {
    pub(super) fn machine(&self) -> Machine {
        let machine = Machine::default();
        machine.make_directories("/w").expect("made");
        (self.before)(&machine);
        // Young states are not trusted, which is not the subject here.
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        machine.foreign(|here| {
            let _entered = here.enter();
            steadfast_resources::host::calls::sync();
        });
        machine
    }

    pub(super) fn resource(&self) -> Arc<dyn Resource> {
        support::file(self.path, self.given)
    }

    /// Checks and applies the case on a host, as a new process.
    pub(super) fn hold(&self, machine: &Machine) -> Outcome {
        let _entered = machine.enter();
        support::hold(&Host::default(), &self.resource())
    }

    /// Returns the calls of a run without faults.
    fn calls(&self) -> Vec<Call> {
        let machine = self.machine();
        let calls = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&calls);
        machine.set_faults([]);
        machine.set_hook(Some(Box::new(move |_, call| seen.borrow_mut().push(call.clone()))));
        let done = self.hold(&machine);
        machine.set_hook(None);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", self.name);
        calls.take()
    }

    /// Returns the numbers of the calls at which a fault is worth testing.
    pub(super) fn points(&self) -> Vec<u64> {
        points(&self.calls())
    }

    /// Returns the numbers of the calls at which a death is worth testing: those after a change of memory or
    /// disk, and the end.
    pub(super) fn moments(&self) -> Vec<u64> {
        let calls = self.calls();
        let moments = calls.iter().filter(|call| call.changes || call.name == "fsync");
        moments.map(|call| call.number).chain([calls.len() as u64 + 1]).collect()
    }

    /// Asserts that the file is old or new, and whole; temporary names may only remain from a dead process.
    pub(super) fn is_whole(&self, machine: &Machine, how: &str) {
        let words = || format!("{}, {how}", self.name);
        let contents = machine.look(|tree| {
            let files = tree.all().into_iter().filter_map(|(path, node)| match &node.what {
                What::File(content) => Some((path, content.clone())),
                _ => None,
            });
            files.filter(|(path, _)| !path.contains("/.steadfast-")).collect::<Vec<_>>()
        });
        for (path, content) in contents {
            let whole = content == OLD.as_bytes() || content == NEW.as_bytes();
            assert!(whole, "{}: {path}: {:?}", words(), String::from_utf8_lossy(&content));
        }
        if ["rewrite", "mode", "owner", "source", "backup"].contains(&self.name) {
            assert!(machine.content("/w/f").is_some(), "{}: it is gone", words());
        }
    }

    /// Asserts that the outcome is true: nothing was changed if it says so, and the file is as declared if it
    /// says so.
    pub(super) fn is_true(
        &self,
        done: &Outcome,
        (before, machine): (&[String], &Machine),
        how: &str,
    ) {
        let words = format!("{}, {how}: {done:?}", self.name);
        match done {
            Outcome::Unchanged => panic!("{words}: it was not as declared"),
            Outcome::Changed(_) => {
                let _entered = machine.enter();
                let check = machine.foreign(|_| support::check(&Host::default(), &self.resource()));
                assert!(matches!(check, CheckResult::Same), "{words}: but {check:?}");
            }
            Outcome::Failed { failure, touched } => {
                let first = failure.what.lines().next().unwrap_or_default();
                assert!(!first.is_empty() && first.chars().count() <= 100, "{words}");
                if !touched {
                    assert_eq!(visible(machine), before, "{words}");
                }
            }
            Outcome::Interrupted => panic!("{words}: nobody has interrupted it"),
        }
    }

    /// Returns true if the case only changes attributes, which are not synced.
    pub(super) fn is_of_attributes(&self) -> bool {
        ["mode", "attributes of a tree", "a user's directory"].contains(&self.name)
    }

    /// Asserts that a run without faults converges, a second run finds no difference, and no temporary name
    /// remains.
    pub(super) fn heals(&self, machine: &Machine, how: &str) {
        machine.restart();
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        let words = || format!("{}, {how}", self.name);
        let done = self.hold(machine);
        assert!(matches!(done, Outcome::Changed(_) | Outcome::Unchanged), "{}: {done:?}", words());
        let _entered = machine.enter();
        let again = support::check(&Host::default(), &self.resource());
        assert!(matches!(again, CheckResult::Same), "{}: {again:?}", words());
        if matches!(done, Outcome::Changed(_)) {
            let names = machine.names("/w").unwrap_or_default();
            let hidden: Vec<_> = names
                .keys()
                .filter(|name| name.starts_with(b".steadfast-"))
                .map(|name| String::from_utf8_lossy(name))
                .collect();
            assert!(hidden.is_empty(), "{}: {hidden:?}", words());
        }
    }
}

/// Returns the numbers of the calls, without the middle of long sequences of `stat` (on all protected paths).
pub(super) fn points(calls: &[Call]) -> Vec<u64> {
    let is_inside = |at: usize| {
        let row = calls.get(at.saturating_sub(3)..at + 3).unwrap_or_default();
        row.len() == 6 && row.iter().all(|call| call.name == "stat")
    };
    let points = calls.iter().enumerate().filter(|(at, _)| !is_inside(*at));
    points.map(|(_, call)| call.number).collect()
}

/// Returns everything visible except backup copies.
pub(super) fn visible(machine: &Machine) -> Vec<String> {
    machine.look(|tree| {
        let all = tree.all().into_iter().filter(|(path, _)| !path.starts_with("/w/backup"));
        all.map(|(path, node)| {
            let what = match &node.what {
                What::File(content) => String::from_utf8_lossy(content).into_owned(),
                What::Link(target) => format!("to {}", String::from_utf8_lossy(target)),
                What::Directory(_) => "directory".to_owned(),
                What::Fifo => "fifo".to_owned(),
            };
            format!("{path} {what} {:o} {} {}", node.mode, node.uid, node.gid)
        })
        .collect()
    })
}
