//! The profile of a run: the kinds of faults and their frequency.

use crate::input::chance::Chance;

/// The probabilities and limits of one run; 0 means never.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The duration of the rough phase, in milliseconds; no faults happen after it.
    pub(crate) rough_for: u64,
    /// The adversary acts once in this number of system calls.
    pub(crate) meddling: u64,
    /// One in this number of system calls fails.
    pub(crate) errors: u64,
    /// One in this number of commands fails.
    pub(crate) failures: u64,
    /// One in this number of commits is rejected.
    pub(crate) refusals: u64,
    /// One in this number of jobs hangs for long.
    pub(crate) hangs: u64,
    /// The share of file events that are lost silently, in percent.
    pub(crate) lost: u64,
    /// The longest delay of a file event, in milliseconds.
    pub(crate) late: u64,
    /// The length of the kernel's event queue.
    pub(crate) queue: usize,
    /// The number of directories that can be watched.
    pub(crate) watches: usize,
    /// The longest duration of a job (waiting included) and of a commit, in milliseconds.
    pub(crate) job: u64,
    pub(crate) commit: u64,
    /// The longest pause between two acts of the adversary and of the operator, in milliseconds; 0: no acts.
    pub(crate) foreign: u64,
    pub(crate) operator: u64,
    /// The number of kills of the daemon.
    pub(crate) kills: u64,
    /// True if the daemon sweeps. Runs without sweeps lose no events, so that events alone must suffice.
    pub(crate) sweeps: bool,
    /// The limit of repeated repairs in a minute.
    pub(crate) repair_limit: u32,
    /// The number of worker threads, and of spare ones.
    pub(crate) threads: u32,
    pub(crate) spare: u32,
}

/// The default limit of repeated repairs in a minute.
const REPAIR_LIMIT: u32 = 60;

impl Profile {
    /// Sets a low limit of repeated repairs in some runs.
    pub(crate) fn with_repair_limit(self, chance: &mut Chance) -> Self {
        Self { repair_limit: *chance.pick(&[REPAIR_LIMIT, REPAIR_LIMIT, REPAIR_LIMIT, 2]), ..self }
    }

    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let lost = *chance.pick(&[0, 0, 0, 10, 90]);
        Self {
            rough_for: *chance.pick(&[2_000, 10_000, 40_000, 120_000]),
            meddling: *chance.pick(&[0, 0, 5, 20, 100]),
            errors: *chance.pick(&[0, 0, 0, 10, 50]),
            failures: *chance.pick(&[0, 0, 2, 5]),
            refusals: *chance.pick(&[0, 0, 0, 3, 10]),
            hangs: *chance.pick(&[0, 0, 0, 10, 40]),
            lost,
            sweeps: lost > 0 || chance.percent(30),
            late: *chance.pick(&[0, 1, 20, 150, 3_000]),
            queue: *chance.pick(&[1, 4, 1 << 14, 1 << 14, 1 << 14]),
            watches: *chance.pick(&[1, 3, 1 << 14, 1 << 14, 1 << 14, 1 << 14]),
            job: *chance.pick(&[0, 1, 5, 100, 2_000]),
            commit: *chance.pick(&[0, 1, 10, 300]),
            foreign: *chance.pick(&[0, 50, 1_000, 5_000, 20_000]),
            operator: *chance.pick(&[0, 0, 1_000, 10_000]),
            kills: *chance.pick(&[0, 0, 0, 1, 2, 4]),
            repair_limit: REPAIR_LIMIT,
            threads: *chance.pick(&[1, 2, 64]),
            spare: *chance.pick(&[0, 1, 64]),
        }
    }
}
