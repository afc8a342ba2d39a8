//! F-2 on the real database: the power goes at each call of the real program, and what was not synced is gone, or torn.
//!
//! What is durable is taken from the calls of the program itself: the content of a file at its last sync, and the names
//! of its directory at the last sync of that. What is outside of the state is taken as it is at that moment: nothing of
//! it is lost, which is the hardest case for a state that must have known of it before.

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

/// What is gone.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// All content that was not synced; names stay.
    Content,
    /// The same, and names that were not synced.
    Names,
    /// Of what was not synced every other sector.
    Torn,
}

/// A sector that is written whole or not at all.
const SECTOR: usize = 512;

/// A file, whatever it is called, by a number of our own: the numbers of a file system are used again.
type Id = usize;

/// What a directory would be after the power went.
struct Disk {
    directory: PathBuf,
    ids: HashMap<u64, Id>,
    next: Id,
    /// The content at the last sync.
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

    /// The names as they are now.
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

    /// A call is made: what it syncs is durable from now on.
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

    /// The directory as it would be found.
    fn after(&mut self, loss: Loss, place: &Path) {
        let now = self.now();
        let names = if matches!(loss, Loss::Names) { self.names.clone() } else { now };
        std::fs::create_dir(place).expect("made");
        for (name, id) in names {
            // The index of the log is never synced, and never needed.
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

/// Every other sector as it was.
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

/// Nothing is lost that somebody could have seen: what ran was begun, what was changed owes.
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

/// F-2, B-10, B-11: after each loss of power the database opens, without a word of damage, and what it says is what was
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
