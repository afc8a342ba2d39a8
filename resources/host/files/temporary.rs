//! Names that exist only until the rename: hidden from run-parts, cron, sudo and logrotate, and telling whose they are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = ".steadfast-";
const SUFFIX: &str = ".dpkg-tmp";

/// Makes names that nobody else makes while this process lives.
#[derive(Debug)]
pub(super) struct Names {
    maker: Maker,
}

/// A process: its number, and when it began, since numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    process: u32,
    began: u64,
}

impl Default for Names {
    fn default() -> Self {
        let process = std::process::id();
        Self { maker: Maker { process, began: began(process).unwrap_or_default() } }
    }
}

impl Names {
    pub(super) fn next(&self) -> OsString {
        let Maker { process, began } = self.maker;
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        format!("{PREFIX}{process}-{began}-{number}{SUFFIX}").into()
    }
}

/// Whether a name is one of those that a process of ours makes: it is never held, copied or purged.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    Maker::of(name).is_some()
}

/// Of the process, not of the host: two hosts in one process must not meet.
static LAST: AtomicU64 = AtomicU64::new(0);

impl Maker {
    /// Who made this name, if it is one of ours.
    pub(super) fn of(name: &OsStr) -> Option<Self> {
        let name = std::str::from_utf8(name.as_bytes()).ok()?;
        let mut parts = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
        let (process, began, number) = (parts.next()?, parts.next()?, parts.next()?);
        let all_digits = [process, began, number]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        if !all_digits || parts.next().is_some() {
            return None;
        }
        Some(Self { process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// Whether that very process still runs.
    pub(super) fn lives(self) -> bool {
        began(self.process) == Some(self.began)
    }
}

/// When a process began, in ticks since boot; `None` where there is no such process.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Maker, Names};
    use std::ffi::OsStr;

    #[test]
    fn a_name_tells_its_maker() {
        let names = Names::default();
        let (first, second) = (names.next(), names.next());
        assert_ne!(first, second);
        let maker = Maker::of(&first).unwrap();
        assert_eq!(maker.process, std::process::id());
        assert!(maker.lives());
        assert!(!Maker { began: maker.began + 1, ..maker }.lives());
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in [
            ".steadfast-1-2-3.dpkg-tmp~",
            "steadfast-1-2-3.dpkg-tmp",
            ".steadfast-1-2.dpkg-tmp",
            ".steadfast-1-2-3-4.dpkg-tmp",
            ".steadfast-+1-2-3.dpkg-tmp",
            ".steadfast-x-2-3.dpkg-tmp",
            ".steadfast-.dpkg-tmp",
        ] {
            assert_eq!(Maker::of(OsStr::new(name)), None, "{name}");
        }
    }
}
