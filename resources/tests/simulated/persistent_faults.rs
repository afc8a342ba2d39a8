//! F-3, F-17: lasting causes (a full, read-only or broken disk), and two faults in one run; the outcome of
//! the run is true.

use crate::cases::{CASES, visible};
use rustix::io::Errno;
use steadfast_resources::Outcome;
use steadfast_resources::host::simulated::{Call, Fault, Rule};

/// A lasting cause, with its effect on a call.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Full,
    QuotaUsed,
    ReadOnly,
    NoDescriptors,
    NoMemory,
    Broken,
    /// Written data never reach the disk.
    NotSynced,
    /// Every read and write handles one byte.
    Drips,
}

const CAUSES: [Cause; 8] = [
    Cause::Full,
    Cause::QuotaUsed,
    Cause::ReadOnly,
    Cause::NoDescriptors,
    Cause::NoMemory,
    Cause::Broken,
    Cause::NotSynced,
    Cause::Drips,
];

impl Cause {
    /// Returns a rule by which the cause begins at a call and lasts.
    fn from(self, call: u64) -> Rule {
        Box::new(move |now| (now.number >= call).then(|| self.of(now)).flatten())
    }

    fn of(self, call: &Call) -> Option<Fault> {
        let needs_room =
            ["creat", "mkdir", "link", "symlink", "write", "setxattr"].contains(&call.name);
        let errno = match self {
            Self::Full if needs_room => Errno::NOSPC,
            Self::QuotaUsed if needs_room => Errno::DQUOT,
            Self::ReadOnly if call.changes => Errno::ROFS,
            Self::NoDescriptors if ["open", "creat"].contains(&call.name) => Errno::MFILE,
            Self::NoMemory => Errno::NOMEM,
            Self::Broken => Errno::IO,
            Self::NotSynced if call.name == "fsync" => Errno::IO,
            Self::Drips => return Some(Fault::Short),
            _ => return None,
        };
        Some(Fault::Fails(errno))
    }
}

/// F-3: the cause begins at any call and lasts; after its end, the resource converges.
#[test]
fn a_cause_that_lasts() {
    for case in &CASES {
        for from in case.points() {
            for cause in CAUSES {
                let machine = case.machine();
                let before = visible(&machine);
                machine.set_faults([]);
                machine.set_rule(Some(cause.from(from)));
                let done = case.hold(&machine);
                machine.set_rule(None);
                let how = format!("{cause:?} from call {from}");
                case.is_true(&done, (&before, &machine), &how);
                let goes_on = matches!(cause, Cause::Drips);
                assert!(!goes_on || matches!(done, Outcome::Changed(_)), "{how}: {done:?}");
                case.is_whole(&machine, &how);
                case.heals(&machine, &how);
            }
        }
    }
}

/// F-3: a call fails, and then a later one, which may belong to the recovery from the first failure.
#[test]
fn two_calls_fail() {
    for case in &CASES {
        for first in case.points() {
            for second in (first + 1..=first + 4).chain([first + 6, first + 9]) {
                for errno in [Errno::IO, Errno::NOSPC] {
                    let machine = case.machine();
                    let before = visible(&machine);
                    let faults = [first, second].map(|call| (call, Fault::Fails(errno)));
                    machine.set_faults(faults);
                    let done = case.hold(&machine);
                    let how = format!("calls {first} and {second} with {errno:?}");
                    case.is_true(&done, (&before, &machine), &how);
                    case.is_whole(&machine, &how);
                    case.heals(&machine, &how);
                }
            }
        }
    }
}
