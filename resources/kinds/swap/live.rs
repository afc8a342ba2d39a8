//! Swap space in use, read from the kernel's table and changed by swapon(8) and swapoff(8).

use super::SwapFile;
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::{Invalid, Value};
use crate::footprint::Footprint;
use crate::host::files::{EntryStat, Fault, Files, said};
use crate::host::{Command, Host};
use crate::kind::Restoring;
use crate::parts::commands::{command, read_on_thread, run_change};
use crate::parts::fstab::{decode, device_path};
use crate::parts::shell_words::shell_word;
use crate::parts::staging::guard_way;
use crate::parts::{Managed, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{After, FieldValues, FormerValue};
use crate::resource::Traits;
use crate::values::sent_values::{Sent, SentValue};
use crate::watch_source::WatchSource;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The kernel's table of swap space.
const TABLE: &str = "/proc/swaps";

/// The deadline of a command: writing swapped pages back takes long.
const PATIENCE: Duration = Duration::from_mins(30);

const STATE: &str = "state";
const PRIORITY: &str = "priority";
const ON: &str = "on";

/// The aspect of the swap file: its size in bytes; none if it is absent.
const FILE: &str = "file";

/// Swap space as declared.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) device: String,
    pub(super) is_on: bool,
    pub(super) priority: Option<i64>,
    /// The options of swapon(8) without the priority.
    pub(super) options: Vec<String>,
    /// The file to make if it is absent.
    pub(super) file: Option<SwapFile>,
    /// The file at the path is removed, if it is a swap file.
    pub(super) removes_file: bool,
}

/// The state of swap space: in use with a priority, or not in use.
type Used = Option<i64>;

impl Live {
    /// Returns the path of a swap file; none for a device.
    fn file_path(&self) -> Option<PathBuf> {
        let is_file = self.device.starts_with('/') && !self.device.starts_with("/dev/");
        is_file.then(|| PathBuf::from(&self.device))
    }

    fn read_used(&self, files: &Files) -> Result<Used, Failure> {
        let path = Path::new(TABLE);
        let bytes = match files.kernel_file(path) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(fault) => return Err(files.failure(fault, path)),
        };
        let own = device_path(files, &self.device);
        let is_own =
            |name: &str| name == self.device || (own.is_some() && device_path(files, name) == own);
        let text = String::from_utf8_lossy(&bytes);
        Ok(parse_table(&text).into_iter().find(|(name, _)| is_own(name)).map(|(_, number)| number))
    }

    /// Makes the swap file under another name, and renames it: a file that is cut off is never used.
    async fn make_file(
        &self,
        host: &Host,
        permit: &Permit,
        file: &SwapFile,
    ) -> Result<bool, WriteFailure> {
        let path = file.path.clone();
        let is_there = read_on_thread(host, move |host| check_file(host.files(), &path));
        if is_there.await.map_err(WriteFailure::untouched)? {
            return Ok(false);
        }
        let path = file.path.to_string_lossy();
        let new = format!("{path}.steadfast-new");
        let private = |argv: &[&str]| Command { umask: Some(0o077), ..patient(argv) };
        let steps = [
            private(&["rm", "-f", &new]),
            private(&["fallocate", "-l", &file.bytes.to_string(), &new]),
            private(&["mkswap", &new]),
            private(&["mv", "-n", "-T", &new, &path]),
        ];
        for (done, step) in steps.iter().enumerate() {
            run_change(host, permit, step).await.map_err(|it| it.after(done > 0))?;
        }
        Ok(true)
    }

    async fn turn_on(&self, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
        let made = match &self.file {
            Some(file) => self.make_file(host, permit, file).await?,
            None => false,
        };
        if let Some(path) = self.file_path() {
            let checked = read_on_thread(host, move |host| check_file(host.files(), &path)).await;
            checked.map_err(|failure| WriteFailure::untouched(failure).after(made))?;
        }
        let priority = self.priority.map(|number| number.to_string());
        let options = self.options.join(",");
        let mut argv = vec!["swapon"];
        if let Some(priority) = &priority {
            argv.extend(["-p", priority]);
        }
        if !options.is_empty() {
            argv.extend(["-o", &options]);
        }
        argv.push(&self.device);
        run_change(host, permit, &patient(&argv)).await.map(drop).map_err(|it| it.after(made))
    }

    async fn turn_off(&self, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
        run_change(host, permit, &patient(&["swapoff", &self.device])).await.map(drop)
    }
}

fn patient(argv: &[&str]) -> Command {
    Command { timeout: Some(PATIENCE), ..command(argv) }
}

/// Returns true if the file is there, and false if it is absent.
///
/// # Errors
///
/// Fails if another user could exchange the file, or could read the memory that it will hold.
fn check_file(files: &Files, path: &Path) -> Result<bool, Failure> {
    let look = || -> Result<Option<(EntryStat, bool)>, Fault> {
        let Some(spot) = files.open_entry(path)? else { return Ok(None) };
        Ok(spot.look()?.map(|seen| (seen, files.is_marked_open(&spot, &seen))))
    };
    let Some((seen, is_open)) = look().map_err(|fault| files.failure(fault, path))? else {
        return guard_way("create", path).map(|()| false);
    };
    let refused = |why: &str, hint: &str| Err(said("use swap in", path, why).hint(hint));
    if seen.kind != FileType::RegularFile {
        return refused("not a regular file", "remove the object at the path");
    }
    if files.is_root() && (seen.uid != 0 || seen.mode & 0o077 != 0) {
        let why = "another user can read or write the file";
        return refused(why, "make root the owner, with mode 0600, or remove the file");
    }
    if is_open {
        let why = "another user could write the file before, and may have it open";
        return refused(why, "remove the file, and declare its `size`");
    }
    guard_way("use swap in", path).map(|()| true)
}

/// The sizes of a page of memory. The first page of swap space ends with its signature.
const PAGES: [usize; 3] = [4096, 16 * 1024, 64 * 1024];

const SIGNATURES: [&[u8]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];

/// Fails if the object at a path is no swap file: the removal of another file would destroy its content.
fn check_signature(files: &Files, path: &Path) -> Result<(), Failure> {
    let largest = PAGES.into_iter().max().unwrap_or_default();
    let read = || {
        let Some(entry) = files.open_entry(path)? else { return Ok(None) };
        let Some(seen) = entry.look()? else { return Ok(None) };
        if seen.kind != FileType::RegularFile {
            return Ok(Some(Vec::new()));
        }
        entry.first_bytes(&seen, largest).map(Some)
    };
    let Some(bytes) = read().map_err(|fault| files.failure(fault, path))? else { return Ok(()) };
    let is_end = |page: &usize| {
        bytes.get(..*page).is_some_and(|page| SIGNATURES.iter().any(|it| page.ends_with(it)))
    };
    if PAGES.iter().any(is_end) {
        return Ok(());
    }
    let hint = "correct the name, or remove the file by hand: it has no signature of mkswap(8)";
    Err(said("remove", path, "not a swap file").hint(hint))
}

/// Parses the table: file name, type, size, used, priority, after a line of titles.
fn parse_table(text: &str) -> Vec<(String, i64)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = decode(words.next()?);
        Some((name, words.nth(3)?.parse().ok()?))
    };
    text.lines().skip(1).filter_map(row).collect()
}

impl ValueSet for Live {
    fn wanted(&self) -> FieldValues {
        let mut values = vec![(STATE, self.is_on.then(|| ON.to_owned()))];
        if let Some(priority) = self.priority.filter(|_| self.is_on) {
            values.push((PRIORITY, Some(priority.to_string())));
        }
        if let Some(file) = self.file.as_ref().filter(|_| self.is_on) {
            values.push((FILE, Some(file.bytes.to_string())));
        }
        if !self.is_on {
            values.push((PRIORITY, None));
        }
        values
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        let own = self.clone();
        Box::pin(read_on_thread(host, move |host| {
            let used = own.read_used(host.files())?;
            // The failure comes before the row of fstab is written.
            if let Some(path) = own.file_path().filter(|_| own.is_on && used.is_none()) {
                check_file(host.files(), &path)?;
            }
            if let Some(path) = own.file_path().filter(|_| own.removes_file && used.is_none()) {
                check_signature(host.files(), &path)?;
            }
            let on = used.map(|_| ON.to_owned());
            let mut values = vec![(STATE, on), (PRIORITY, used.map(|number| number.to_string()))];
            if let Some(file) = &own.file {
                let files = host.files();
                let look = || files.open_entry(&file.path)?.map(|spot| spot.look()).transpose();
                let seen = look().map_err(|fault| files.failure(fault, &file.path))?.flatten();
                values.push((FILE, seen.map(|seen| seen.size.to_string())));
            }
            Ok(values)
        }))
    }

    /// A file of another size is never touched.
    fn is_same(&self, aspect: &str, found: &str, wanted: &str) -> bool {
        aspect == FILE || found == wanted
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            if !self.is_on {
                return self.turn_off(host, permit).await;
            }
            // The kernel sets the priority of swap space that is turned on, and never later.
            let is_on = !differing.contains(&STATE);
            if is_on {
                self.turn_off(host, permit).await?;
            }
            self.turn_on(host, permit).await.map_err(|it| it.after(is_on))
        })
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            watch: vec![WatchSource::Path { path: TABLE.into(), below: false }],
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn existence(&self) -> Option<&'static str> {
        Some(STATE)
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let number = |aspect: &str| {
            let pair = found.iter().find(|(name, _)| *name == aspect);
            pair.and_then(|(_, value)| value.as_deref()?.parse().ok())
        };
        let all = [("priority", number(PRIORITY)), ("size", number(FILE))];
        let known = all.into_iter().filter_map(|(key, number)| Some((key, number?)));
        known.map(|(key, number)| (key, SentValue::Shown(Value::Int(number)))).collect()
    }
}

/// Builds the swap space that restores its state from before a change.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let before = |field: &str| {
        values.iter().find(|value| value.field == field).and_then(|value| value.before.clone())
    };
    let was_turned = values.iter().any(|value| value.field == STATE);
    let is_on = !was_turned || before(STATE).is_some();
    let is_made = |value: &FormerValue| {
        value.field == FILE && value.before.is_none() && matches!(value.after, After::Value(_))
    };
    if values.iter().any(is_made) {
        let word = shell_word(name);
        let by_hand = format!("swapoff {word} && rm {word}");
        let (device, options) = (name.to_owned(), Vec::new());
        let live =
            Live { device, is_on: false, priority: None, options, file: None, removes_file: true };
        let resource = super::resource(super::State::Absent, false, live);
        let invalid = |problems: Vec<Invalid>| {
            let first = problems.into_iter().next().map(|problem| problem.what);
            Failure::new(first.unwrap_or_default())
        };
        return Ok(Restoring { resource: resource.map_err(invalid)?, by_hand });
    }
    // The kernel gives negative priorities itself.
    let priority = before(PRIORITY).and_then(|text| text.parse().ok()).filter(|it: &i64| *it >= 0);
    let word = shell_word(name);
    let by_hand = match (is_on, priority) {
        (false, _) => format!("swapoff {word}"),
        (true, None) => format!("swapon {word}"),
        (true, Some(priority)) => format!("swapon -p {priority} {word}"),
    };
    let device = name.to_owned();
    let (options, file) = (Vec::new(), None);
    let live = Live { device, is_on, priority, options, file, removes_file: false };
    Ok(Restoring { resource: Arc::new(Managed::new(live)), by_hand })
}

#[cfg(test)]
mod tests {
    use super::{parse_table, restore};
    use crate::prior_state::{After, FormerValue};

    #[test]
    fn the_table_is_read() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/dm-0                               partition\t999420\t\t0\t\t-2\n\
            /swap\\040file file 1 0 5\nbroken\n";
        let rows = [("/dev/dm-0".to_owned(), -2), ("/swap file".to_owned(), 5)];
        assert_eq!(parse_table(text), rows);
        assert!(parse_table("").is_empty());
    }

    #[test]
    fn former_states_are_restored() {
        let value = |field: &str, before: Option<&str>| FormerValue {
            field: field.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: After::Unknown,
        };
        let by_hand = |values: &[FormerValue]| restore("/swap", values).unwrap().by_hand;
        assert_eq!(by_hand(&[value("state", None), value("priority", None)]), "swapoff /swap");
        assert_eq!(
            by_hand(&[value("state", Some("on")), value("priority", Some("-2"))]),
            "swapon /swap"
        );
        assert_eq!(by_hand(&[value("priority", Some("3"))]), "swapon -p 3 /swap");
        let spaced = restore("/swap file", &[value("state", None)]).unwrap().by_hand;
        assert_eq!(spaced, "swapoff '/swap file'");
    }
}
