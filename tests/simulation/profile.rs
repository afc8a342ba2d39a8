//! How rough a run is: what goes wrong in it, and how often.

use crate::chance::Chance;

/// The dice of one run; 0 is never.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Milliseconds from the beginning until nothing goes wrong any more.
    pub(crate) rough_for: u64,
    /// Between so many system calls of ours somebody else comes in once.
    pub(crate) meddling: u64,
    /// One in so many system calls fails.
    pub(crate) errors: u64,
    /// One in so many commands fails.
    pub(crate) failures: u64,
    /// One in so many commits is refused.
    pub(crate) refusals: u64,
    /// One in so many jobs hangs for long.
    pub(crate) hangs: u64,
    /// Of a hundred file events so many are lost without a word.
    pub(crate) lost: u64,
    /// Milliseconds that file events are under way, at most.
    pub(crate) late: u64,
    /// How many file events the kernel keeps.
    pub(crate) queue: usize,
    /// How many directories can be watched.
    pub(crate) watches: usize,
    /// Milliseconds that a job waits for a thread, that it takes, and that a commit takes, at most.
    pub(crate) job: u64,
    pub(crate) commit: u64,
    /// Milliseconds between two acts of somebody else, and of the operator, at most; 0: they do nothing.
    pub(crate) foreign: u64,
    pub(crate) operator: u64,
    /// How often the daemon is killed.
    pub(crate) kills: u64,
    /// Everything is looked at from time to time, whatever events say. Where no event is lost, events alone must do.
    pub(crate) sweeps: bool,
    /// The most repairs of what was repaired already in a minute.
    pub(crate) brake: u32,
    /// How many threads there are, and how many to spare.
    pub(crate) threads: u32,
    pub(crate) spare: u32,
}

/// Where nothing else is drawn.
const BRAKE: u32 = 60;

impl Profile {
    /// With a brake that holds soon, in some runs.
    pub(crate) fn braked(self, chance: &mut Chance) -> Self {
        Self { brake: *chance.pick(&[BRAKE, BRAKE, BRAKE, 2]), ..self }
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
            brake: BRAKE,
            threads: *chance.pick(&[1, 2, 64]),
            spare: *chance.pick(&[0, 1, 64]),
        }
    }
}
