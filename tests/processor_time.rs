//! The processor time of this process and of the programs that it has run: a busy machine does not change it much.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::time::Duration;

/// Measures the processor time since a moment.
pub(crate) struct ProcessorTime {
    start: Duration,
}

impl ProcessorTime {
    /// Starts a measurement.
    pub(crate) fn start() -> Self {
        Self { start: used() }
    }

    /// Returns the time since the start.
    pub(crate) fn used(&self) -> Duration {
        used().saturating_sub(self.start)
    }
}

fn used() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            let usage = getrusage(who).expect("the kernel counts");
            duration(usage.user_time()) + duration(usage.system_time())
        })
        .sum()
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
