//! F-2 with the real database: the power fails at each call of the real program, and unsynced data is lost or torn.
//!
//! The durable data follow from the program's own calls: the content of a file at its last sync, and the names of its
//! directory at the directory's last sync. Files outside the state keep their present content: the hardest case for a
//! state that must have recorded them before.

use super::syscall_tracer::{Act, Call, run};
use crate::host::Host;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use steadfast::store::{SqliteStore, Store as _, StoredState};

const GRAPH: &str = r#"
graph: power
resources:
  file:
  - {name: conf, path: $DIR/conf, content: "declared\n"}
  exec:
  - {name: reload, shell: /bin/sh, cmd: "echo reloaded >> $DIR/reloads", refresh_only: true, subscribe: "file[conf]"}
  - {name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran", after: "exec[reload]"}
"#;

/// The data lost by a power failure.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// All unsynced content; names stay.
    Content,
    /// All unsynced content and all unsynced names.
    Names,
    /// Every other sector of unsynced content.
    Torn,
}

/// The size of a sector, which is written whole or not at all, in bytes.
const SECTOR: usize = 512;

/// The test's own number of a file, since a file system reuses inode numbers.
type Id = usize;

/// A directory with its durable content.
struct Disk {
    directory: PathBuf,
    ids: HashMap<u64, Id>,
    next: Id,
    /// The content at the last sync of each file.
    contents: HashMap<Id, Vec<u8>>,
    /// The names at the last sync of the directory.
    names: BTreeMap<String, Id>,
    syncs: usize,
}

impl Disk {
    fn new(directory: PathBuf) -> Self {
        let (ids, contents, names) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { directory, ids, next: 0, contents, names, syncs: 0 }
    }

    /// Returns the present names.
    fn now(&mut self) -> BTreeMap<String, Id> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        let mut ids = HashMap::new();
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                let id = self.ids.get(&metadata.ino()).copied().unwrap_or(self.next);
                self.next += usize::from(id == self.next);
                ids.insert(metadata.ino(), id);
                found.insert(entry.file_name().to_string_lossy().into_owned(), id);
            }
        }
        self.ids = ids;
        found
    }

    /// Notes a call: data that it syncs are durable from now on.
    fn made(&mut self, call: &Call) {
        if !["fsync", "fdatasync", "syncfs"].contains(&call.name) {
            return;
        }
        let now = self.now();
        if call.file == self.directory {
            self.names = now;
            self.syncs += 1;
            return;
        }
        let name = call.file.strip_prefix(&self.directory).ok().and_then(Path::to_str);
        if let Some((name, id)) = name.and_then(|name| Some((name, *now.get(name)?))) {
            let content = std::fs::read(self.directory.join(name)).unwrap_or_default();
            self.contents.insert(id, content);
            self.syncs += 1;
        }
    }

    /// Writes the directory as it would be after this loss.
    fn after(&mut self, loss: Loss, place: &Path) {
        let now = self.now();
        let names = if matches!(loss, Loss::Names) { self.names.clone() } else { now };
        std::fs::create_dir(place).expect("made");
        for (name, id) in names {
            // The index of the database's log is never synced and never needed.
            if name.ends_with("-shm") {
                continue;
            }
            let synced = self.contents.get(&id).cloned().unwrap_or_default();
            let content = match loss {
                Loss::Content | Loss::Names => synced,
                Loss::Torn => {
                    let here = std::fs::read(self.directory.join(&name)).unwrap_or_default();
                    torn(here, &synced)
                }
            };
            std::fs::write(place.join(name), content).expect("written");
        }
        std::fs::write(place.join("lock"), "").expect("written");
    }
}

/// Returns the content with every other sector from the last sync.
fn torn(mut now: Vec<u8>, synced: &[u8]) -> Vec<u8> {
    for (number, sector) in now.chunks_mut(SECTOR).enumerate().filter(|(number, _)| number % 2 == 1)
    {
        let old = synced.get(number * SECTOR..).unwrap_or_default();
        for (at, byte) in sector.iter_mut().enumerate() {
            *byte = old.get(at).copied().unwrap_or_default();
        }
    }
    now
}

/// Asserts that nothing visible is lost: each started command has a begin, and each change its owed refresh.
#[track_caller]
fn is_right(host: &Host, kept: &StoredState, at: &str) {
    let of = |name: &str| kept.resources.get(name);
    let known =
        |name: &str| of(name).is_some_and(|it| it.done.is_some() || it.interrupted.is_some());
    if host.exists("ran") {
        assert!(known("exec[once]"), "{at}: it ran, and nobody knows: {kept:?}");
    }
    if host.exists("conf") && !host.exists("reloads") {
        let owed = of("exec[reload]").is_some_and(|it| it.owed.is_some());
        assert!(owed, "{at}: a refresh is lost: {kept:?}");
    }
}

/// F-2, B-10, B-11: after a power failure at any call the database opens without damage and contains what was
/// durable.
#[test]
fn the_power_goes_at_each_call() {
    let host = Host::with(GRAPH);
    let mut disk = Disk::new(host.path("state"));
    let images = tempfile::tempdir().expect("a directory");
    let (mut points, mut told) = (0, 0);
    let traced = run(&host.command(&["apply"]), &host.path(""), |call| {
        points += 1;
        for loss in [Loss::Content, Loss::Names, Loss::Torn] {
            let at = format!("{loss:?} before call {points} ({} of {:?})", call.name, call.file);
            let image = images.path().join("image");
            disk.after(loss, &image);
            let kept = SqliteStore::open(&image).and_then(|mut store| store.recall());
            let kept = kept.unwrap_or_else(|error| panic!("{at}: {error}"));
            is_right(&host, &kept, &at);
            told += usize::from(!kept.resources.is_empty());
            std::fs::remove_dir_all(&image).expect("removed");
        }
        disk.made(call);
        Act::Pass
    });
    assert_eq!(traced.code, Some(0), "{}", traced.said);
    assert!(points > 40 && disk.syncs > 10 && told > 30, "{points} {} {told}", disk.syncs);
    let image = images.path().join("image");
    disk.after(Loss::Content, &image);
    let kept = SqliteStore::open(&image).and_then(|mut store| store.recall()).expect("opened");
    assert!(kept.resources["exec[once]"].done.is_some(), "{kept:?}");
    assert!(kept.resources["exec[reload]"].owed.is_none(), "{kept:?}");
}
