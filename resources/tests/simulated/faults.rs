//! F-1, F-2, F-3 for the kind `file`: each call fails in turn, the process dies at each call, and power is
//! lost at each call.

use super::cases::{CASES, visible};
use crate::support;
use rustix::io::Errno;
use steadfast_resources::host::simulated::{Fault, Power};
use steadfast_resources::{CheckResult, Host, Outcome};

/// A generator of random numbers that are equal in each test run (splitmix64).
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

const ERRORS: [Errno; 10] = [
    Errno::NOSPC,
    Errno::IO,
    Errno::DQUOT,
    Errno::MFILE,
    Errno::NOMEM,
    Errno::INTR,
    Errno::ROFS,
    Errno::XDEV,
    Errno::LOOP,
    Errno::TXTBSY,
];

/// F-3: whichever call fails, and however: the content is old or new, the failure has a reason, nothing
/// panics, and the next run converges.
#[test]
fn every_call_fails_in_turn() {
    for case in &CASES {
        for call in case.points() {
            let how = ERRORS.map(Fault::Fails).into_iter().chain([Fault::Short]);
            for fault in how {
                let machine = case.machine();
                let before = visible(&machine);
                machine.set_faults([(call, fault)]);
                let how = format!("call {call} with {fault:?}");
                let done = case.hold(&machine);
                // EXDEV stands for a mount point, which the walk skips.
                let is_mount = fault == Fault::Fails(Errno::XDEV);
                if !(is_mount && matches!(done, Outcome::Changed(_))) {
                    case.is_true(&done, (&before, &machine), &how);
                }
                case.is_whole(&machine, &how);
                case.heals(&machine, &how);
            }
        }
    }
}

/// F-1: the process dies at each call.
#[test]
fn a_death_at_every_call_leaves_nothing_torn() {
    for case in &CASES {
        for call in case.moments() {
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

/// F-2: power is lost at each call and after the last; any part of the unsynced changes survives.
#[test]
fn a_loss_of_power_at_every_call_leaves_nothing_torn() {
    let mut random = Random(1);
    for case in &CASES {
        for call in case.moments() {
            for _ in 0..24 {
                let machine = case.machine();
                machine.set_faults([(call, Fault::Dies)]);
                let done = case.hold(&machine);
                machine.lose_power(&mut Power(&mut |bound| random.below(bound)));
                let how = format!("power lost at call {call}");
                case.is_whole(&machine, &how);
                // Attributes alone are not synced: after their loss, the next check finds the difference.
                if matches!(done, Outcome::Changed(_)) && !case.is_of_attributes() {
                    let _entered = machine.enter();
                    let check = support::check(&Host::default(), &case.resource());
                    assert!(
                        matches!(check, CheckResult::Same),
                        "{}: it was said to be done, and is not: {check:?}",
                        case.name
                    );
                }
                case.heals(&machine, &how);
            }
        }
    }
}
