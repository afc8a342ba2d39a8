//! Temporary names, which exist only until the rename. They identify their process, and run-parts, cron, sudo
//! and logrotate skip them.

use crate::host::files::Files;
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::Entry;
use crate::host::kernel::{self, Process};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PREFIX: &str = ".steadfast-";
const SUFFIX: &str = ".dpkg-tmp";

/// The number of attempts with new numbers when a name is taken.
const ATTEMPTS: usize = 8;

/// The generator of unguessable temporary names, with the names in use.
#[derive(Debug)]
pub(in crate::host::files) struct Names {
    maker: Maker,
    used: Arc<Mutex<HashSet<OsString>>>,
}

/// A temporary name, in use until the value is dropped.
#[derive(Debug)]
pub(in crate::host::files) struct TemporaryName {
    name: OsString,
    used: Arc<Mutex<HashSet<OsString>>>,
}

/// The process that made a temporary name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::files) struct Maker(Process);

impl Default for Names {
    fn default() -> Self {
        Self { maker: Maker(kernel::process()), used: Arc::default() }
    }
}

impl Names {
    /// Creates an object under a new name. `doing` names the step for a fault.
    pub(in crate::host::files) fn make<T>(
        &self,
        doing: &'static str,
        mut attempt: impl FnMut(&OsStr) -> Result<T, Errno>,
    ) -> Result<(TemporaryName, T), Fault> {
        let mut attempts = 1;
        loop {
            let name = self.draw().map_err(Fault::os(doing))?;
            match attempt(&name) {
                Ok(made) => return Ok((name, made)),
                Err(Errno::EXIST) if attempts < ATTEMPTS => attempts += 1,
                Err(errno) => return Err(Fault::os(doing)(errno)),
            }
        }
    }

    /// Draws a name with a random number, so nobody can take the name first.
    fn draw(&self) -> Result<TemporaryName, Errno> {
        let Maker(Process { number: process, began }) = self.maker;
        let number = kernel::unguessable()?;
        let name = OsString::from(format!("{PREFIX}{process}-{began}-{number:016x}{SUFFIX}"));
        locked(&self.used).insert(name.clone());
        Ok(TemporaryName { name, used: Arc::clone(&self.used) })
    }
}

impl Deref for TemporaryName {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.name
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        locked(&self.used).remove(&self.name);
    }
}

fn locked(used: &Mutex<HashSet<OsString>>) -> MutexGuard<'_, HashSet<OsString>> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// Returns true if the entry is a temporary file whose process is still at work: this process, or another
    /// living one of the same user. Anybody may give such a name to a file.
    #[must_use]
    pub fn is_in_use(&self, spot: &Entry<'_>) -> bool {
        let Some(maker) = Maker::of(spot.name) else { return false };
        if maker == self.names.maker {
            return locked(&self.names.used).contains(spot.name);
        }
        maker.lives() && matches!(spot.look(), Ok(Some(seen)) if self.owns(&seen))
    }
}

/// Returns true if a name has the form of a temporary name. Anybody can choose such a name, so the form says
/// nothing about the maker.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    Maker::of(name).is_some()
}

impl Maker {
    /// Returns the process that a temporary name identifies; none for any other name.
    pub(in crate::host::files) fn of(name: &OsStr) -> Option<Self> {
        let name = std::str::from_utf8(name.as_bytes()).ok()?;
        let mut parts = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
        let (process, began, number) = (parts.next()?, parts.next()?, parts.next()?);
        let is_made_of =
            |part: &str, of: fn(&u8) -> bool| !part.is_empty() && part.as_bytes().iter().all(of);
        let is_ours = is_made_of(process, u8::is_ascii_digit)
            && is_made_of(began, u8::is_ascii_digit)
            && is_made_of(number, u8::is_ascii_hexdigit);
        if !is_ours || parts.next().is_some() {
            return None;
        }
        Some(Self(Process { number: process.parse().ok()?, began: began.parse().ok()? }))
    }

    /// Returns true if exactly this process is still running.
    pub(in crate::host::files) fn lives(self) -> bool {
        kernel::lives(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Maker, Names, locked};
    use rustix::io::Errno;
    use std::collections::BTreeSet;
    use std::ffi::OsStr;

    #[test]
    fn a_name_tells_its_maker_and_is_in_use_until_it_is_dropped() {
        let names = Names::default();
        let (first, second) = (names.draw().unwrap(), names.draw().unwrap());
        assert_ne!(*first, *second);
        let maker = Maker::of(&first).unwrap();
        assert_eq!(maker.0.number, std::process::id());
        assert!(maker.lives());
        let other = super::Process { began: maker.0.began + 1, ..maker.0 };
        assert!(!Maker(other).lives());
        assert_eq!(locked(&names.used).len(), 2);
        drop(first);
        assert!(locked(&names.used).contains(&*second));
        drop(second);
        assert!(locked(&names.used).is_empty());
    }

    /// M2: a name that another user has taken is no obstacle.
    #[test]
    fn a_taken_name_is_replaced_by_another() {
        let names = Names::default();
        let mut tried = BTreeSet::new();
        let made = names.make("write", |name| {
            tried.insert(name.to_owned());
            if tried.len() < 3 { Err(Errno::EXIST) } else { Ok(()) }
        });
        assert!(made.is_ok());
        assert_eq!(tried.len(), 3);
        let mut count = 0;
        let refused = names.make("write", |_| {
            count += 1;
            Err::<(), _>(Errno::EXIST)
        });
        assert_eq!((refused.unwrap_err().errno(), count), (Some(Errno::EXIST), 8));
        let full = names.make("write", |_| Err::<(), _>(Errno::NOSPC));
        assert_eq!(full.unwrap_err().errno(), Some(Errno::NOSPC));
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
            ".steadfast-1-2-g.dpkg-tmp",
            ".steadfast-.dpkg-tmp",
        ] {
            assert_eq!(Maker::of(OsStr::new(name)), None, "{name}");
        }
        // Temporary names of earlier versions are cleaned up too.
        for name in [".steadfast-1-2-3.dpkg-tmp", ".steadfast-1-2-00ff.dpkg-tmp"] {
            assert!(Maker::of(OsStr::new(name)).is_some(), "{name}");
        }
    }
}
