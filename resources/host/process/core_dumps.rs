//! Prevents core dumps of this process, which holds secrets (S-6), but not of the commands.

use crate::failure::Failure;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::sync::OnceLock;

/// The core size limit in bytes. A file of one byte is no core, and one is the only value at which the kernel
/// passes nothing to a handler either; at 0, a handler (`|/usr/lib/systemd/systemd-coredump`) still gets the
/// core.
const NONE: u64 = 1;

/// The limit at the start of the process.
static FOUND: OnceLock<Rlimit> = OnceLock::new();

/// Prevents core dumps of this process from now on. `PR_SET_DUMPABLE` is no alternative: it would hide this
/// process's descriptors in /proc, through which the validator of a staged file reads that file, from all
/// users but root.
pub fn leave_no_core() -> Result<(), Failure> {
    let found = *FOUND.get_or_init(|| getrlimit(Resource::Core));
    let maximum = found.maximum.map(|most| most.max(NONE));
    let wanted = Rlimit { current: Some(NONE), maximum };
    let set = setrlimit(Resource::Core, wanted);
    // A limit of 0 that only root may raise is enough where no handler gets the cores.
    if set.is_err() && found.maximum == Some(0) && !has_handler() {
        return Ok(());
    }
    set.map_err(|why| {
        Failure::new(format!("core dumps of this program cannot be disabled: {why}"))
            .hint("start the program with LimitCORE=1 or more: with 0 a core dump handler still receives the core")
    })
}

/// Returns true if the kernel passes core dumps to a program.
fn has_handler() -> bool {
    std::fs::read("/proc/sys/kernel/core_pattern").is_ok_and(|pattern| pattern.starts_with(b"|"))
}

/// Restores the original core limit for a child.
pub(in crate::host) fn give_back(child: Pid) {
    if let Some(found) = FOUND.get() {
        // The call fails if the child has ended or has changed its user; the child then stays without cores.
        let _kept = prlimit(Some(child), Resource::Core, *found);
    }
}
