//! L1: a diff shows the examined file, whatever object gets its name between the examination and the read.

use crate::support;
use std::cell::RefCell;
use std::rc::Rc;
use steadfast_resources::host::simulated::Machine;
use steadfast_resources::{CheckResult, Host};

const NOBODY: u32 = 65534;

/// The content of a file of root that denies others, in the directory of a user.
const CANARY: &str = "the canary of root";

fn machine() -> Machine {
    let machine = Machine::default();
    machine.make_directories("/home/p").expect("made");
    machine.write("/home/p/f", "theirs, as long as it").expect("written");
    machine.write("/home/p/s", CANARY).expect("written");
    machine.chmod("/home/p/s", 0o600).expect("changed");
    for path in ["/home", "/home/p", "/home/p/f"] {
        machine.chown(path, NOBODY, NOBODY).expect("given");
    }
    machine
}

fn check(machine: &Machine) -> CheckResult {
    let _entered = machine.enter();
    let given = [("content", "declared"), ("owner", "65534"), ("mode", "0644")];
    support::check(&Host::default(), &support::file("/home/p/f", &given))
}

#[test]
fn a_file_that_takes_the_name_is_not_shown() {
    let counted = machine();
    let calls = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&calls);
    counted.set_faults([]);
    counted.set_hook(Some(Box::new(move |_, call| seen.borrow_mut().push(call.number))));
    assert!(matches!(check(&counted), CheckResult::Differs(_)));
    let calls = calls.borrow().clone();
    assert!(calls.len() > 3, "{calls:?}");
    for number in calls {
        let machine = machine();
        machine.set_faults([]);
        machine.set_hook(Some(Box::new(move |machine, call| {
            if call.number == number {
                machine.foreign(|machine| {
                    machine.rename_over("/home/p/s", "/home/p/f").expect("renamed");
                });
            }
        })));
        let shown = format!("{:?}", check(&machine));
        assert!(!shown.contains(CANARY), "before call {number}: {shown}");
    }
}
