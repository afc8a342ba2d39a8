//! The parsed tables are shared, and never older than the files.

use super::{check, good, text, tools};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use steadfast_resources::host::simulated::Machine;
use steadfast_resources::{CheckResult, Host};

/// Counts the reads of files during an action.
fn reads(machine: &Machine, act: impl FnOnce()) -> usize {
    let count = Rc::new(RefCell::new(0));
    let counter = Rc::clone(&count);
    machine.set_faults([]);
    machine.set_hook(Some(Box::new(move |_, call| {
        *counter.borrow_mut() += usize::from(call.name == "read");
    })));
    act();
    machine.set_hook(None);
    count.take()
}

#[test]
fn many_users_read_each_table_once() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    machine.set_wall(machine.wall() + Duration::from_mins(1));
    let host = Host::default();
    let user = good("user", "eve", &[("shell", text("/bin/sh"))]);
    let look = || assert!(matches!(check(&host, &user), CheckResult::Same));
    assert!(reads(&machine, look) > 0);
    let again = reads(&machine, || (0..200).for_each(|_| look()));
    assert_eq!(again, 0, "the parsed copies are shared");
}

#[test]
fn a_young_copy_is_read_again() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let user = good("user", "eve", &[("shell", text("/bin/sh"))]);
    machine.write("/etc/passwd", "eve:x:1000:1000::/home/eve:/bin/sh\n").expect("written");
    let look = || assert!(matches!(check(&host, &user), CheckResult::Same));
    look();
    assert!(reads(&machine, look) > 0, "the file may change again within this tick");
    // The size, the inode and, within one tick, the times stay.
    machine.write("/etc/passwd", "eve:x:1000:1000::/home/eve:/bin/zz\n").expect("written");
    assert!(matches!(check(&host, &user), CheckResult::Differs(_)));
}
