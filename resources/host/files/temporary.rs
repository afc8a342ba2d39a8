//! Names that exist only until the rename: hidden from run-parts, cron, sudo and logrotate, and telling whose they are.

use crate::host::kernel::{self, Process};
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

/// The process that makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker(Process);

impl Default for Names {
    fn default() -> Self {
        Self { maker: Maker(kernel::process()) }
    }
}

impl Names {
    pub(super) fn next(&self) -> OsString {
        let Maker(Process { number: process, began }) = self.maker;
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
        Some(Self(Process { number: process.parse().ok()?, began: began.parse().ok()? }))
    }

    /// Whether that very process still runs.
    pub(super) fn lives(self) -> bool {
        kernel::lives(self.0)
    }
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
        assert_eq!(maker.0.number, std::process::id());
        assert!(maker.lives());
        let other = super::Process { began: maker.0.began + 1, ..maker.0 };
        assert!(!Maker(other).lives());
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
