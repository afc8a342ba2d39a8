//! The account tables of the host, read from their files and never through NSS.
//!
//! All readers share one parsed copy of each table, which lasts as long as the file's device, inode, size and times
//! are the same. A line that is no row of the table is skipped; its number is kept for messages.
//!
//! Reading order: `passwd.rs`, `group.rs`, `shadow.rs`.

pub mod group;
pub mod passwd;
pub mod shadow;

pub use group::{GroupRow, GroupTable};
pub use passwd::{Passwd, PasswdRow};
pub use shadow::{Shadow, ShadowRow};

use super::Host;
use super::files::{Content, EntryStat, Fault, Files, Why, said};
use super::kernel::{is_bound_to_thread, is_in_overlay, is_read_only, wall};
use super::process::spawner;
use super::unfinished::{LONGEST_WAIT, time_until_whole};
use crate::failure::Failure;
use rustix::fs::FileType;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The size limit of a table in bytes.
const LARGEST: usize = 64 << 20;

/// The size limit of a text of the kernel in bytes.
const KERNEL_TEXT: usize = 1 << 20;

/// The age of a file from which its times tell all later changes apart: the clock of file stamps ticks every 4 to
/// 10 ms.
const SETTLED: Duration = Duration::from_millis(20);

/// The interval of looks at a table that another program is writing.
const STEP: Duration = Duration::from_millis(50);

/// The number of attempts on a table that is replaced meanwhile.
const ATTEMPTS: usize = 3;

/// A table in a text file, one row a line.
pub trait Table: Sized {
    /// The path of the file.
    const PATH: &'static str;

    /// Parses the text of the file. Lines that are no rows are counted in the result of [`Table::broken`].
    fn parse(text: &str) -> Self;

    /// Returns true if each host has such a row: root, in the tables that have its number.
    fn has_root(&self) -> bool;

    /// Returns the numbers of the skipped lines, from 1.
    fn broken(&self) -> &[usize];
}

/// Rows in the order of their file, found by name. The first row of each name counts, as for the C library.
#[derive(Debug)]
pub(super) struct NamedRows<Row> {
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
}

impl<Row> Default for NamedRows<Row> {
    fn default() -> Self {
        Self { rows: Vec::new(), by_name: HashMap::new() }
    }
}

impl<Row> NamedRows<Row> {
    /// Adds a row, and returns its position.
    fn push(&mut self, name: String, row: Row) -> usize {
        let position = self.rows.len();
        self.by_name.entry(name).or_insert(position);
        self.rows.push(row);
        position
    }

    fn get(&self, name: &str) -> Option<&Row> {
        self.at(*self.by_name.get(name)?)
    }

    fn at(&self, position: usize) -> Option<&Row> {
        self.rows.get(position)
    }

    fn iter(&self) -> std::slice::Iter<'_, Row> {
        self.rows.iter()
    }
}

/// The tables of one host.
#[derive(Debug, Default)]
pub struct Tables {
    passwd: Cache<Passwd>,
    group: Cache<GroupTable>,
    shadow: Cache<Shadow>,
    /// Held during each change of an account: the tools wait 15 s for each other and no longer.
    pub(super) changes: tokio::sync::Mutex<()>,
}

impl Tables {
    fn time_until_whole(&self) -> Option<Duration> {
        let all = [
            self.passwd.time_until_whole(),
            self.group.time_until_whole(),
            self.shadow.time_until_whole(),
        ];
        all.into_iter().flatten().max()
    }

    /// Returns the path of an empty table.
    fn empty(&self) -> Option<&'static str> {
        let all = [
            (Passwd::PATH, self.passwd.is_empty()),
            (GroupTable::PATH, self.group.is_empty()),
            (Shadow::PATH, self.shadow.is_empty()),
        ];
        all.into_iter().find(|(_, is_empty)| *is_empty).map(|(path, _)| path)
    }
}

/// The last parsed copy of a table.
#[derive(Debug)]
struct Cache<T>(Mutex<Option<Copy<T>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

#[derive(Debug)]
struct Copy<T> {
    stamp: EntryStat,
    /// The file could have changed again within the same tick of the clock, unseen.
    young: bool,
    /// The content ends with a line and has the row of root: nobody seems to be writing it.
    whole: bool,
    is_empty: bool,
    table: Arc<T>,
}

impl<T: Table> Cache<T> {
    fn read(&self, files: &Files) -> Result<Arc<T>, Failure> {
        let path = Path::new(T::PATH);
        for _ in 1..ATTEMPTS {
            match self.read_file(files, path) {
                Err(fault) if matches!(fault.why, Why::Moved) => {}
                read => return read.map_err(|fault| files.failure(fault, path)),
            }
        }
        self.read_file(files, path).map_err(|fault| files.failure(fault, path))
    }

    fn read_file(&self, files: &Files, path: &Path) -> Result<Arc<T>, Fault> {
        let origin = files
            .origin(path)?
            .ok_or_else(|| Fault::refused(said("read", path, "the file does not exist")))?;
        let stamp = *origin.seen();
        if stamp.kind != FileType::RegularFile {
            return Err(Fault::refused(said("read", path, "not a regular file")));
        }
        // The stamps of an overlay are not those of the host.
        let is_shared = !is_in_overlay();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_shared
            && let Some(copy) = last.as_ref()
            && copy.stamp == stamp
            && !copy.young
        {
            return Ok(Arc::clone(&copy.table));
        }
        let now = wall();
        let mut content = Content::default();
        content.push(origin);
        let Some(bytes) = content.bytes(LARGEST)?.map(Zeroizing::new) else {
            return Err(Fault::refused(said("read", path, "the file exceeds 64 MiB")));
        };
        let table = Arc::new(T::parse(&String::from_utf8_lossy(&bytes)));
        let (whole, is_empty) = (bytes.ends_with(b"\n") && table.has_root(), bytes.is_empty());
        if is_shared {
            let young = is_young(&stamp, now);
            let table = Arc::clone(&table);
            *last = Some(Copy { stamp, young, whole, is_empty, table });
        }
        Ok(table)
    }
}

impl<T: Table> Cache<T> {
    /// Returns the time to wait for another program that seems to be writing the file.
    fn time_until_whole(&self) -> Option<Duration> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = last.as_ref().filter(|copy| !copy.whole)?;
        time_until_whole(Path::new(T::PATH), &copy.stamp, false)
    }

    fn is_empty(&self) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|copy| copy.is_empty)
    }
}

/// Returns true if the file changed within the last 20 ms, or in the future.
fn is_young(stamp: &EntryStat, now: Duration) -> bool {
    stamp.changed_at().is_none_or(|changed| changed + SETTLED > now)
}

/// All three account tables in one reading.
#[derive(Clone, Debug)]
pub struct AccountTables {
    /// The users.
    pub passwd: Arc<Passwd>,
    /// The groups.
    pub group: Arc<GroupTable>,
    /// The passwords and expiry dates, if they were asked for.
    pub shadow: Option<Arc<Shadow>>,
}

impl Host {
    /// Reads the users and groups, and with `shadow` also the passwords, without blocking the calling thread.
    ///
    /// # Errors
    ///
    /// Fails if a table is missing or cannot be read; reading the passwords needs root.
    pub async fn account_tables(&self, shadow: bool) -> Result<AccountTables, Failure> {
        if is_bound_to_thread() {
            return self.read_accounts(shadow);
        }
        let started = Instant::now();
        loop {
            let host = self.clone();
            let read = spawner::handle()?.spawn_blocking(move || host.read_accounts(shadow));
            let failed = |why| Err(Failure::new(format!("reading ended: {why}")));
            let read = read.await.unwrap_or_else(failed);
            let left = self.tables.time_until_whole().filter(|_| started.elapsed() < LONGEST_WAIT);
            let Some(left) = left else { return read };
            tokio::time::sleep(left.min(STEP)).await;
        }
    }

    /// Waits for other programs that are writing an account table, before a tool rewrites the table.
    ///
    /// # Errors
    ///
    /// Fails if a table is empty: the tool would replace it by one that has the new row alone.
    pub(crate) async fn wait_for_whole_accounts(&self) -> Result<(), Failure> {
        if is_bound_to_thread() {
            return Ok(());
        }
        // A missing table is a matter of the tool.
        drop(self.account_tables(self.files().is_root()).await);
        let Some(path) = self.tables.empty() else { return Ok(()) };
        let what = format!("{path} is empty: the other accounts would be lost");
        let hint = format!("restore it, for example `cp -a {path}- {path}`");
        Err(Failure::new(what).hint(hint).passing())
    }

    fn read_accounts(&self, shadow: bool) -> Result<AccountTables, Failure> {
        let (tables, files) = (&self.tables, self.files());
        let needs_root = |failure: Failure| {
            if files.is_root() {
                failure
            } else {
                failure.hint("passwords and expiry dates can only be read as root")
            }
        };
        Ok(AccountTables {
            passwd: tables.passwd.read(files)?,
            group: tables.group.read(files)?,
            shadow: if shadow {
                Some(tables.shadow.read(files).map_err(needs_root)?)
            } else {
                None
            },
        })
    }

    /// Reads the users; blocks the calling thread.
    ///
    /// # Errors
    ///
    /// Fails if the table is missing or cannot be read.
    pub(crate) fn read_users(&self) -> Result<Arc<Passwd>, Failure> {
        self.tables.passwd.read(self.files())
    }

    /// Returns true if a directory, or a link to something, is at the path; does not block the calling thread.
    pub(crate) async fn has_directory(&self, path: &Path) -> Result<bool, Failure> {
        if is_bound_to_thread() {
            return self.find_directory(path);
        }
        let (host, path) = (self.clone(), path.to_owned());
        let found = spawner::handle()?.spawn_blocking(move || host.find_directory(&path));
        found.await.unwrap_or_else(|why| Err(Failure::new(format!("looking ended: {why}"))))
    }

    /// Returns the text of a file of the kernel, for example below /proc; does not block the calling thread.
    pub(crate) async fn kernel_text(&self, path: &Path) -> Result<String, Failure> {
        if is_bound_to_thread() {
            return self.read_kernel(path);
        }
        let (host, path) = (self.clone(), path.to_owned());
        let read = spawner::handle()?.spawn_blocking(move || host.read_kernel(&path));
        read.await.unwrap_or_else(|why| Err(Failure::new(format!("reading ended: {why}"))))
    }

    fn read_kernel(&self, path: &Path) -> Result<String, Failure> {
        let files = self.files();
        let read = || -> Result<Option<Vec<u8>>, Fault> {
            let Some(spot) = files.open_entry(path)? else { return Ok(None) };
            let Some(seen) = spot.look()? else { return Ok(None) };
            spot.content(&seen, KERNEL_TEXT)
        };
        match read().map_err(|fault| files.failure(fault, path))? {
            Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            None => Err(said("read", path, "the file does not exist or is too large")),
        }
    }

    fn find_directory(&self, path: &Path) -> Result<bool, Failure> {
        let files = self.files();
        let look = || files.open_entry(path)?.map_or(Ok(None), |spot| spot.look());
        let found = look().map_err(|fault| files.failure(fault, path))?;
        Ok(found.is_some_and(|it| matches!(it.kind, FileType::Directory | FileType::Symlink)))
    }

    /// Returns true if the file system of the account tables is mounted read-only.
    pub(crate) fn has_read_only_accounts() -> bool {
        is_read_only(Path::new("/etc"))
    }

    /// Waits for other changes of accounts by this process, and returns the right to make one.
    pub(crate) async fn change_accounts(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.tables.changes.lock().await
    }
}

impl AccountTables {
    /// Returns a sentence about skipped lines, for messages about missing accounts; none if each line is a row.
    #[must_use]
    pub fn broken_lines(&self) -> Option<String> {
        let all = [
            (Passwd::PATH, self.passwd.broken()),
            (GroupTable::PATH, self.group.broken()),
            (Shadow::PATH, self.shadow.as_ref().map_or(&[][..], |shadow| shadow.broken())),
        ];
        let told = all.iter().filter_map(|(path, lines)| {
            let first = lines.first()?;
            Some(match lines.len() {
                1 => format!("line {first} of {path} is broken"),
                count => format!("line {first} and {} others of {path} are broken", count - 1),
            })
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty())
            .then(|| format!("{}: `pwck` and `grpck` show such lines", told.join(", ")))
    }
}

/// Splits a line into exactly `COUNT` fields; none for any other number.
fn fields<const COUNT: usize>(line: &str) -> Option<[&str; COUNT]> {
    let mut parts = line.split(':');
    let mut all = [""; COUNT];
    for slot in &mut all {
        *slot = parts.next()?;
    }
    parts.next().is_none().then_some(all)
}

/// Returns the lines that should be rows, with their numbers: no empty lines, comments and marks of NIS.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with(['#', '+', '-']))
}
