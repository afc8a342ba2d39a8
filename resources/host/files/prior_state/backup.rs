//! Backup copies of replaced or removed files, in a directory of the daemon, under names that contain the
//! path and the time.

use crate::failure::Failure;
use crate::host::files::Files;
use crate::host::files::content::new_content::{Content, Origin};
use crate::host::files::content::write::Draft;
use crate::host::files::fault::{Fault, Why, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{Entries, statat, unlinkat, wall};
use crate::permit::Permit;
use crate::prior_state::PriorStateRecorder;
use rustix::fs::{AtFlags, FileType};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The number of copies of one file.
const KEPT: usize = 10;

/// The size limit in bytes without a history; with a history, its `max_file` is the limit.
const LARGEST: u64 = 10 << 20;

/// The number of files in the directory from which no more copies of files of other users are made.
const MOST: usize = 10_000;

/// The bytes in the directory from which no more copies of files of other users are made.
const ROOM: u64 = 1 << 30;

/// The number of attempts with new names when a name is taken.
const ATTEMPTS: usize = 10;

/// The length limit in bytes of the path's part of a name.
const LONGEST: usize = 200;

impl Files {
    /// Copies an examined regular file into a directory, and removes the oldest copies of the same file.
    ///
    /// The copy belongs to the user of the daemon and has mode 0600, so no other user gains access to the
    /// content.
    ///
    /// # Errors
    ///
    /// Fails if the file exceeds the history's limit: a user could otherwise fill the disk with copies.
    pub fn keep(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        found: &EntryStat,
        directory: &Path,
    ) -> Result<(), Fault> {
        let largest = permit.keeper().map_or(LARGEST, PriorStateRecorder::largest);
        if found.size > largest {
            return Err(too_large(spot.path, found.size, largest));
        }
        let stem = stem(spot.path);
        let mut content = Content::default();
        content.push(Origin::at(spot, found));
        for _ in 0..ATTEMPTS {
            let inside = directory.join("x");
            let Some(inside) = self.open_entry(&inside)? else {
                return Err(no_directory(directory));
            };
            self.guard_keeping(&inside, directory)?;
            self.guard_room(&inside, (spot, found), directory)?;
            let newest = copies(&inside, &stem)?.pop();
            if self.is_kept(directory, newest.as_ref(), &content)? {
                return Ok(());
            }
            let path = directory.join(later(&stem, newest.as_ref(), &stamp(wall())));
            let Some(copy) = self.open_entry(&path)? else { return Err(no_directory(directory)) };
            match self.put(permit, &copy, &Draft::private(&content)) {
                Ok(_) => return drop_oldest(permit, &copy, &stem),
                // Either the file has changed meanwhile, or the name has been taken.
                Err(fault) if matches!(fault.why, Why::Moved) && copy.look()?.is_some() => {}
                Err(fault) => return Err(in_backup(fault, directory)),
            }
        }
        Err(Fault::moved())
    }

    /// Returns true if the newest copy has the same content: repeated attempts must not push out earlier
    /// contents.
    fn is_kept(
        &self,
        directory: &Path,
        newest: Option<&OsString>,
        content: &Content<'_>,
    ) -> Result<bool, Fault> {
        let Some(newest) = newest else { return Ok(false) };
        let path = directory.join(newest);
        let Some(copy) = self.open_entry(&path)? else { return Ok(false) };
        let is_alike = |seen: &EntryStat| {
            seen.kind == FileType::RegularFile
                && seen.size == content.size()
                && seen.uid == self.uid
        };
        match copy.look()?.filter(is_alike) {
            Some(seen) => copy.holds(&seen, content, &CancellationToken::new()),
            None => Ok(false),
        }
    }

    /// Rejects another copy of a file of another user in a full directory: the copies are root's, and a user could fill
    /// the disk by new names that a purge removes.
    fn guard_room(
        &self,
        inside: &Entry<'_>,
        (spot, found): (&Entry<'_>, &EntryStat),
        directory: &Path,
    ) -> Result<(), Fault> {
        if !self.is_strangers(found) {
            return Ok(());
        }
        let (files, bytes) = taken(inside)?;
        if files < MOST && bytes.saturating_add(found.size) <= ROOM {
            return Ok(());
        }
        let why = format!("the backup directory has {files} files with {} MiB", bytes >> 20);
        let hint = format!(
            "delete copies in {}: files of users are copied up to {MOST} files and {} MiB",
            directory.display(),
            ROOM >> 20
        );
        Err(Fault::refused(said("replace or remove", spot.path, &why).hint(hint)))
    }

    fn guard_keeping(&self, copy: &Entry<'_>, directory: &Path) -> Result<(), Fault> {
        let above = copy.directory_seen()?;
        if above.uid == self.uid && above.mode & 0o022 == 0 {
            return Ok(());
        }
        let why = "the directory is writable or owned by other users";
        Err(Fault::refused(
            said("keep a copy in", directory, why)
                .hint("use a directory for steadfast only, with mode 0700"),
        ))
    }
}

fn no_directory(directory: &Path) -> Fault {
    Fault::refused(
        said("keep a copy in", directory, "the directory does not exist")
            .hint("declare the directory too: the graph then orders it first"),
    )
}

fn too_large(path: &Path, size: u64, largest: u64) -> Fault {
    let why = format!("the file has {size} bytes, more than a backup keeps");
    Fault::refused(said("replace or remove", path, &why).hint(format!(
        "raise max_file of the history (now {largest} bytes), move the file away, or leave out backup"
    )))
}

fn in_backup(fault: Fault, directory: &Path) -> Fault {
    match fault.why {
        Why::Os { .. } => {
            let told = fault.named(directory);
            match told.why {
                Why::Refused(failure) => {
                    let what =
                        format!("nothing was replaced: no backup can be stored\n{}", failure.what);
                    Fault { why: Why::Refused(Failure { what, ..failure }), touched: false }
                }
                why => Fault { why, touched: false },
            }
        }
        _ => fault,
    }
}

fn drop_oldest(permit: &Permit, copy: &Entry<'_>, stem: &OsString) -> Result<(), Fault> {
    let copies = copies(copy, stem)?;
    let surplus = copies.len().saturating_sub(KEPT);
    for name in copies.iter().take(surplus) {
        permit.check()?;
        let is_file = statat(&copy.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if is_file {
            let _gone = unlinkat(&copy.directory, name, AtFlags::empty());
        }
    }
    Ok(())
}

/// Returns the number of entries of a directory and the bytes that they take.
fn taken(inside: &Entry<'_>) -> Result<(usize, u64), Fault> {
    let listed = crate::host::files::content::read::open_listed(&inside.directory, Path::new("."))?;
    let (mut files, mut bytes) = (0, 0_u64);
    for entry in Entries::read_from(&listed).map_err(Fault::os("list"))?.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if let Ok(seen) = statat(&listed, name, AtFlags::SYMLINK_NOFOLLOW) {
            files += 1;
            bytes = bytes.saturating_add(u64::try_from(seen.st_blocks).unwrap_or(0) * 512);
        }
    }
    Ok((files, bytes))
}

/// Returns the existing copies, oldest first: their names sort by time.
fn copies(inside: &Entry<'_>, stem: &OsString) -> Result<Vec<OsString>, Fault> {
    let mut prefix = stem.as_bytes().to_vec();
    prefix.push(b'~');
    let listed = crate::host::files::content::read::open_listed(&inside.directory, Path::new("."))?;
    let mut copies: Vec<OsString> = Vec::new();
    for entry in Entries::read_from(&listed).map_err(Fault::os("list"))?.flatten() {
        let name = entry.file_name().to_bytes();
        if name.strip_prefix(prefix.as_slice()).is_some_and(is_stamp) {
            copies.push(OsString::from_vec(name.to_vec()));
        }
    }
    copies.sort_unstable();
    Ok(copies)
}

/// Returns a name that sorts after the newest copy, even within one second or after the clock was turned
/// back.
fn later(stem: &OsString, newest: Option<&OsString>, now: &str) -> OsString {
    let last = newest.and_then(|name| {
        let stamp = name.as_bytes().get(stem.len() + 1..)?;
        let (stamp, again) = std::str::from_utf8(stamp).ok()?.split_at_checked(16)?;
        Some((stamp, again.strip_prefix('-').map_or(Ok(0), str::parse::<u32>).ok()?))
    });
    let mut name = stem.clone();
    name.push(match last {
        Some((stamp, again)) if stamp >= now => format!("~{stamp}-{:06}", again + 1),
        Some(_) | None => format!("~{now}"),
    });
    name
}

/// Returns true for a time stamp like `20261121T062241Z`, optionally followed by a counter like `-000001`.
fn is_stamp(text: &[u8]) -> bool {
    let (stamp, again) = text.split_at_checked(16).unwrap_or((text, b"x"));
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    stamp.len() == 16
        && digits(&stamp[..8])
        && stamp[8] == b'T'
        && digits(&stamp[9..15])
        && stamp[15] == b'Z'
        && (again.is_empty() || (again.len() == 7 && again[0] == b'-' && digits(&again[1..])))
}

/// Encodes a path as one name: `/etc/ssh/sshd_config` becomes `etc%ssh%sshd_config`.
fn stem(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
    let mut stem: Vec<u8> = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'/' => stem.push(b'%'),
            b'%' => stem.extend(b"%25"),
            b'~' => stem.extend(b"%7e"),
            byte => stem.push(*byte),
        }
    }
    if stem.starts_with(b".") {
        stem.splice(..1, *b"%2e");
    }
    if stem.len() > LONGEST {
        // The end of a path is more specific than its beginning; the hash separates paths with equal ends.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let tail = stem.split_off(stem.len() - (LONGEST - 17));
        stem = format!("{hash:016x}%").into_bytes();
        stem.extend(tail);
    }
    OsString::from_vec(stem)
}

/// Formats a time since 1970 in UTC, so that names sort by time.
fn stamp(now: Duration) -> String {
    let seconds = now.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Converts days since 1970 to a date. Internally, years begin in March, so that the leap day is the last
/// one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::{date, is_stamp, later, stamp, stem};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_778), (2026, 11, 21));
        let stamp = stamp(Duration::from_secs(1_700_000_000));
        assert_eq!(stamp, "20231114T221320Z");
        assert!(is_stamp(stamp.as_bytes()) && is_stamp(b"20231114T221320Z-000012"));
        assert!(!is_stamp(b"20231114T221320Z-12") && !is_stamp(b"x") && !is_stamp(b""));
    }

    #[test]
    fn names_are_in_the_order_in_which_they_are_given() {
        let stem = "etc%motd".into();
        let mut newest = None;
        for now in ["20231114T221320Z", "20231114T221320Z", "20231114T221319Z", "20231114T221321Z"]
        {
            let name = later(&stem, newest.as_ref(), now);
            assert!(newest < Some(name.clone()), "{newest:?} {name:?}");
            assert!(is_stamp(&name.as_encoded_bytes()[stem.len() + 1..]));
            newest = Some(name);
        }
        assert_eq!(newest.unwrap(), "etc%motd~20231114T221321Z");
    }

    #[test]
    fn a_name_tells_the_path() {
        let name = |path: &str| stem(Path::new(path)).into_string().unwrap();
        assert_eq!(name("/etc/ssh/sshd_config"), "etc%ssh%sshd_config");
        assert_eq!(name("/etc/a%b~"), "etc%a%25b%7e");
        assert_eq!(name("/.hidden"), "%2ehidden");
        let (one, other) = (format!("/a/{}", "x".repeat(400)), format!("/b/{}", "x".repeat(400)));
        assert_ne!(name(&one), name(&other));
        assert_eq!(name(&one).len(), 200);
    }
}
