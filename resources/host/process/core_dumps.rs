//! No core dump of this process, which holds secrets (S-6); what it starts may dump as it could before.

use crate::failure::Failure;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::sync::OnceLock;

/// One byte: a file of that size is none, and it is the one value at which the kernel gives nothing to a handler either. At 0 a
/// handler (`|/usr/lib/systemd/systemd-coredump`) is still fed.
const NONE: u64 = 1;

/// What the process was started with.
static FOUND: OnceLock<Rlimit> = OnceLock::new();

/// From now on a crash of this process leaves no core. Not by `PR_SET_DUMPABLE`: whoever checks a candidate for us reads it through our
/// descriptors in /proc, which that would take from all but root.
pub fn leave_no_core() -> Result<(), Failure> {
    let found = *FOUND.get_or_init(|| getrlimit(Resource::Core));
    let maximum = found.maximum.map(|most| most.max(NONE));
    let wanted = Rlimit { current: Some(NONE), maximum };
    setrlimit(Resource::Core, wanted).map_err(|why| {
        Failure::new(format!("core dumps of this program cannot be disabled: {why}"))
            .hint("start the program with LimitCORE=1 or more: with 0 a core dump handler still receives the core")
    })
}

/// A child may leave a core where this process could have left one.
pub(in crate::host) fn give_back(child: Pid) {
    if let Some(found) = FOUND.get() {
        // It fails where the child has ended, or has become another user: it is then as if it had asked for none.
        let _kept = prlimit(Some(child), Resource::Core, *found);
    }
}
