//! The clock of retention by age. It follows the system clock, but never runs faster than [`CATCHES_UP`] times the time
//! that really passed, so that a jump of the system clock deletes nothing at once.
//!
//! The clock is stored beside its database with the time since the boot. The time while the machine is off does not
//! count; the clock catches up with it later.

use super::database::with_suffix;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest speed of the clock, in multiples of the time that really passed.
const CATCHES_UP: u32 = 4;

/// The advance after which the clock is stored again.
const STORE_EVERY: Duration = Duration::from_hours(1);

/// The lead of the system clock from which a jump is logged.
const JUMP: Duration = Duration::from_hours(24);

/// The clock of one database.
#[derive(Debug)]
pub(crate) struct RetentionClock {
    path: PathBuf,
    /// The ID of this boot.
    boot: String,
    last: Option<Reading>,
    /// The time of retention that is stored.
    stored: Duration,
    /// True if the present jump was logged.
    told: bool,
}

/// The time of retention at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    /// The time of retention since 1970.
    time: Duration,
    /// The ID of the boot.
    boot: String,
    /// The time since that boot.
    since_boot: Duration,
}

impl RetentionClock {
    /// Reads the clock that is stored beside a database; a new clock starts with the system clock.
    pub(crate) fn beside(database: &Path) -> Self {
        let path = with_suffix(database, "-clock");
        let last = std::fs::read_to_string(&path).ok().as_deref().and_then(Reading::parse);
        let stored = last.as_ref().map_or(Duration::ZERO, |last| last.time);
        Self { path, boot: boot_id(), last, stored, told: false }
    }

    /// Returns the time of retention, and stores it now and then. `wall` is the system clock since 1970, `since_boot`
    /// the time since the boot with all suspends.
    pub(crate) fn read(&mut self, wall: Duration, since_boot: Duration) -> Duration {
        let first = || Reading { time: wall, boot: self.boot.clone(), since_boot };
        let last = self.last.take().unwrap_or_else(first);
        let before = if last.boot == self.boot { last.since_boot } else { Duration::ZERO };
        let passed = since_boot.saturating_sub(before);
        let lead = wall.saturating_sub(last.time.saturating_add(passed));
        if lead <= JUMP {
            self.told = false;
        } else if !std::mem::replace(&mut self.told, true) {
            let path = self.path.display();
            tracing::warn!(
                event = "clock_jump",
                "the system clock is {} days ahead; records expire later, until {path} has caught up",
                lead.as_secs() / 86_400
            );
        }
        let most = last.time.saturating_add(passed.saturating_mul(CATCHES_UP));
        // A clock that goes back and forth again must not look like a jump, so the reading never goes back.
        let time = last.time.max(wall.min(most));
        self.last = Some(Reading { time, boot: self.boot.clone(), since_boot });
        if time.saturating_sub(self.stored) >= STORE_EVERY {
            self.store();
        }
        time.min(wall)
    }

    fn store(&mut self) {
        let Some(last) = &self.last else { return };
        let written = super::state_dir::private(&self.path).and_then(|mut file| {
            file.set_len(0)?;
            std::io::Write::write_all(&mut file, last.text().as_bytes())
        });
        match written {
            Ok(()) => self.stored = last.time,
            Err(error) => tracing::debug!(%error, "the clock of retention is stored later"),
        }
    }
}

impl Reading {
    fn text(&self) -> String {
        format!("{} {} {}\n", self.time.as_millis(), self.boot, self.since_boot.as_millis())
    }

    /// Returns the reading of a whole line; none for a write that was interrupted.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split_whitespace();
        let time = Duration::from_millis(words.next()?.parse().ok()?);
        let boot = words.next()?.to_owned();
        let since_boot = Duration::from_millis(words.next()?.parse().ok()?);
        Some(Self { time, boot, since_boot })
    }
}

/// Returns the time since the boot of the machine, including suspends.
pub(crate) fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// Returns the ID of this boot (random(4)); a fixed text if it cannot be read.
pub(crate) fn boot_id() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let id = read.unwrap_or_default().trim().to_owned();
    if id.is_empty() { "unknown".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::RetentionClock;
    use std::time::Duration;

    const DAY: Duration = Duration::from_hours(24);

    fn days(count: u32) -> Duration {
        DAY * count
    }

    /// R3: a jump of the system clock ages nothing at once, neither in a session nor at a start; the clock catches up
    /// with the time that really passes, and follows the system clock back.
    #[test]
    fn a_jump_ages_nothing_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("x.db");
        let mut clock = RetentionClock::beside(&database);
        assert_eq!(clock.read(days(1000), days(1)), days(1000));
        assert_eq!(clock.read(days(1200), days(1)), days(1000), "no time has passed");
        assert_eq!(clock.read(days(1201), days(2)), days(1004), "it catches up");
        let mut clock = RetentionClock::beside(&database);
        assert_eq!(clock.read(days(1201), days(2)), days(1004), "a start is no other moment");
        assert_eq!(clock.read(days(1002), days(3)), days(1002), "the clock is right again");
        assert_eq!(clock.read(days(1010), days(11)), days(1010));
    }

    /// R3: a machine without a battery for its clock starts in 1970 and jumps forward: nothing expires late.
    #[test]
    fn a_clock_that_starts_in_1970_is_no_jump() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut clock = RetentionClock::beside(&folder.path().join("x.db"));
        assert_eq!(clock.read(days(20_000), days(1)), days(20_000));
        assert_eq!(clock.read(days(1), days(2)), days(1));
        assert_eq!(clock.read(days(20_002), days(3)), days(20_002));
    }
}
