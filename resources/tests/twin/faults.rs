//! F-1, F-2, F-3 for the kind `file`: every call fails in turn, the process dies at each, power is lost at each.

use crate::support;
use rustix::io::Errno;
use std::sync::Arc;
use steadfast_resources::host::twin::{Fault, Machine, Power};
use steadfast_resources::{Host, Outcome, Resource, Verdict};

/// Random numbers, the same in each run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).expect("below a usize")
    }
}

/// One thing that the kind does: what is there, what is declared, what must not be seen half.
struct Case {
    name: &'static str,
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

const CASES: [Case; 11] = [
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
];

impl Case {
    fn machine(&self) -> Machine {
        let machine = Machine::default();
        machine.make_directories("/w").expect("made");
        (self.before)(&machine);
        // What is young is not trusted: that is not the subject here.
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        machine.foreign(|here| {
            let _entered = here.enter();
            steadfast_resources::host::calls::sync();
        });
        machine
    }

    fn resource(&self) -> Arc<dyn Resource> {
        support::file(self.path, self.given)
    }

    /// Check and apply on that host, by a process of its own.
    fn hold(&self, machine: &Machine) -> Outcome {
        let _entered = machine.enter();
        support::hold(&Host::default(), &self.resource())
    }

    /// How many calls it makes when nothing goes wrong.
    fn calls(&self) -> u64 {
        let machine = self.machine();
        machine.set_faults([]);
        let done = self.hold(&machine);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", self.name);
        machine.calls()
    }

    /// Old or new, whole, and nothing besides; what is left under a hidden name was left by a process that is gone.
    fn is_whole(&self, machine: &Machine, how: &str) {
        let words = || format!("{}, {how}", self.name);
        for path in ["/w/f"] {
            if let Some(content) = machine.content(path) {
                let whole = content == OLD.as_bytes() || content == NEW.as_bytes();
                assert!(whole, "{}: {:?}", words(), String::from_utf8_lossy(&content));
            }
        }
        if ["rewrite", "mode", "owner", "source", "backup"].contains(&self.name) {
            assert!(machine.content("/w/f").is_some(), "{}: it is gone", words());
        }
    }

    /// Without faults it becomes right, and a second time nothing is to be done; nothing hidden is left.
    fn heals(&self, machine: &Machine, how: &str) {
        machine.restart();
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        let words = || format!("{}, {how}", self.name);
        let done = self.hold(machine);
        assert!(matches!(done, Outcome::Changed(_) | Outcome::Unchanged), "{}: {done:?}", words());
        let _entered = machine.enter();
        let again = support::check(&Host::default(), &self.resource());
        assert!(matches!(again, Verdict::Same), "{}: {again:?}", words());
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

const ERRORS: [Errno; 9] = [
    Errno::NOSPC,
    Errno::IO,
    Errno::DQUOT,
    Errno::MFILE,
    Errno::NOMEM,
    Errno::INTR,
    Errno::ROFS,
    Errno::XDEV,
    Errno::LOOP,
];

/// F-3: whichever call fails, and how: old or new content, a reason, no panic; and it heals when the cause is gone.
#[test]
fn every_call_fails_in_turn() {
    for case in &CASES {
        for call in 1..=case.calls() {
            let how = ERRORS.map(Fault::Fails).into_iter().chain([Fault::Short]);
            for fault in how {
                let machine = case.machine();
                machine.set_faults([(call, fault)]);
                let how = format!("call {call} with {fault:?}");
                let done = case.hold(&machine);
                if let Outcome::Failed { trouble, .. } = &done {
                    assert!(!trouble.what.is_empty());
                }
                case.is_whole(&machine, &how);
                // What failed and was not said to have been touched is as it was.
                case.heals(&machine, &how);
            }
        }
    }
}

/// F-1: the process dies at each call.
#[test]
fn a_death_at_every_call_leaves_nothing_torn() {
    for case in &CASES {
        for call in 1..=case.calls() {
            let machine = case.machine();
            machine.set_faults([(call, Fault::Dies)]);
            drop(case.hold(&machine));
            let how = format!("death at call {call}");
            machine.restart();
            case.is_whole(&machine, &how);
            case.heals(&machine, &how);
        }
    }
}

/// F-2: power is lost at each call, and once all was done; whatever of the unsynced survives.
#[test]
fn a_loss_of_power_at_every_call_leaves_nothing_torn() {
    let mut random = Random(1);
    for case in &CASES {
        for call in 1..=case.calls() + 1 {
            for _ in 0..24 {
                let machine = case.machine();
                machine.set_faults([(call, Fault::Dies)]);
                let done = case.hold(&machine);
                machine.lose_power(&mut Power(&mut |bound| random.below(bound)));
                let how = format!("power lost at call {call}");
                case.is_whole(&machine, &how);
                // Attributes alone are not synced: what undoes them makes the next check differ.
                if matches!(done, Outcome::Changed(_)) && case.name != "mode" {
                    let _entered = machine.enter();
                    let check = support::check(&Host::default(), &case.resource());
                    assert!(
                        matches!(check, Verdict::Same),
                        "{}: it was said to be done, and is not: {check:?}",
                        case.name
                    );
                }
                case.heals(&machine, &how);
            }
        }
    }
}
