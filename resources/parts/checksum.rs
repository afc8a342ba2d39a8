//! SHA-256 sums of files, and the sum of a file that has not changed since it was read.

use crate::failure::Failure;
use crate::host::files::{Content, EntryStat, Fault, Files, LARGEST_OF_OTHERS, Origin};
use crate::host::wall;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The last computed sum of one file. A file in the same state is not read again.
#[derive(Debug, Default)]
pub(crate) struct KnownSum(Mutex<Option<(EntryStat, String)>>);

impl KnownSum {
    /// Returns the sum of the file at a path, as lowercase hexadecimal digits; none if there is no file. A link is
    /// followed.
    ///
    /// # Errors
    ///
    /// Fails if the object is no regular file or cannot be read, if it is large and another user can change it, or if
    /// `cancel` is cancelled.
    pub(crate) fn find_sum(
        &self,
        files: &Files,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Failure> {
        let find = || -> Result<Option<String>, Fault> {
            let Some(origin) = files.origin(path)? else { return Ok(None) };
            let seen = *origin.seen();
            if let Some((before, sum)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
                && *before == seen
            {
                return Ok(Some(sum.clone()));
            }
            Files::guard_size(path, &seen)?;
            let sum = sum_of(origin, cancel)?;
            // A young state can still change without a new time of change.
            let age = wall().as_secs().cast_signed().saturating_sub(seen.changed.0);
            let known = (age > 1).then(|| (seen, sum.clone()));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
            Ok(Some(sum))
        };
        find().map_err(|fault| files.failure(fault, path))
    }
}

/// Returns the sum of a file that was just written, as lowercase hexadecimal digits; none if there is no file.
///
/// # Errors
///
/// Fails if the object is no regular file or cannot be read.
pub(crate) fn checksum_of(files: &Files, path: &Path) -> Result<Option<String>, Failure> {
    let never = CancellationToken::new();
    let sum = || files.origin(path)?.map(|origin| sum_of(origin, &never)).transpose();
    sum().map_err(|fault| files.failure(fault, path))
}

/// Returns the sum of a file that others may have written; none if there is no file.
///
/// # Errors
///
/// Fails if the object is no regular file, is larger than 1 GiB, or cannot be read.
pub(crate) fn bounded_checksum_of(files: &Files, path: &Path) -> Result<Option<String>, Failure> {
    let origin = files.origin(path).map_err(|fault| files.failure(fault, path))?;
    let Some(origin) = origin else { return Ok(None) };
    let size = origin.seen().size;
    if size > LARGEST_OF_OTHERS {
        let what = format!("expected a file of at most 1 GiB, found {size} bytes");
        return Err(Failure::new(what));
    }
    sum_of(origin, &CancellationToken::new()).map(Some).map_err(|fault| files.failure(fault, path))
}

fn sum_of(origin: Origin, cancel: &CancellationToken) -> Result<String, Fault> {
    let mut content = Content::default();
    content.push(origin);
    content.sha256(cancel)
}

#[cfg(all(test, feature = "simulated-host"))]
mod tests {
    use super::KnownSum;
    use crate::host::Host;
    use crate::host::simulated::Machine;
    use std::path::Path;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    #[test]
    fn an_unchanged_file_is_read_once() {
        let machine = Machine::default();
        machine.make_directories("/srv").unwrap();
        machine.write("/srv/a", "one").unwrap();
        machine.set_wall(machine.wall() + Duration::from_secs(10));
        let (known, host) = (KnownSum::default(), Host::default());
        let never = CancellationToken::new();
        let find = || {
            let _entered = machine.enter();
            let before = machine.calls();
            let sum = known.find_sum(host.files(), Path::new("/srv/a"), &never).unwrap().unwrap();
            (sum, machine.calls() - before)
        };
        machine.set_faults([]);
        let (first, many) = find();
        let (second, few) = find();
        assert_eq!(first, second);
        assert!(few < many, "expected fewer calls than {many}, found {few}");
        machine.foreign(|_| machine.write("/srv/a", "two").unwrap());
        assert_ne!(find().0, first);
    }
}
