//! The tests of the history: the kind `file` changes real files, and an oracle checks each state after an undo.
//! Nothing here starts a daemon. Reading order: this file, then `undo`, `edits`, `retention`, `values` and `migration`.

mod edits;
mod entries;
mod migration;
mod retention;
mod undo;
mod values;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast::driver::undo;
use steadfast::history::{Alias, Clock, Entry, History, Limits, Names, Reader, Undo};
use steadfast_resources::{
    CheckRequest, CheckResult, FieldType, Fields, Host, KindSet, MintKey, NotRecorded, Outcome,
    Place, PriorState, Value,
};
use tokio_util::sync::CancellationToken;

const DAY: u64 = 86_400;

fn key() -> &'static MintKey {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    KEY.get_or_init(|| MintKey::take().expect("nobody else takes it"))
}

/// The environment: a state directory, files beside it, and a clock that the test sets.
struct Stage {
    folder: tempfile::TempDir,
    history: Arc<History>,
    limits: Limits,
    clock: Arc<AtomicU64>,
    host: Host,
}

impl Stage {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("state")).expect("made");
        let clock = Arc::new(AtomicU64::new(1000 * DAY));
        let history = open(folder.path(), limits, &clock);
        Self { folder, history, limits, clock, host: Host::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Creates a history with two changes of one file, and alters its database with this SQL.
    fn made_by_another(sql: &str) -> Self {
        let place = Self::new(Limits::default());
        place.apply("f", &[("content", "one")]);
        place.apply("f", &[("content", "two")]);
        place.history.close();
        let database = place.state().join("history/history.db");
        let connection = rusqlite::Connection::open(database).expect("a database");
        connection.execute_batch(sql).expect("done");
        connection.close().expect("closed");
        place
    }

    /// Opens the history again, as after the end of a process.
    fn open_again(&mut self) {
        self.history = open(self.folder.path(), self.limits, &self.clock);
    }

    /// Applies a file resource with these fields.
    fn apply(&self, name: &str, given: &[(&str, &str)]) -> Outcome {
        let path = self.path(name);
        let path = path.to_str().expect("text");
        self.apply_as(("file", path), &resource(name), given)
    }

    /// Applies a resource of a kind, with the name of its declaration and the name under which it is recorded.
    fn apply_as(
        &self,
        (kind, declared): (&str, &str),
        recorded: &str,
        given: &[(&str, &str)],
    ) -> Outcome {
        let spec = KindSet::of_this_build().find(kind).expect("a kind");
        let mut fields = Fields::default();
        for (key, text) in given {
            let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
            fields.insert(
                field.name,
                match field.takes {
                    FieldType::Bool => Value::Bool(*text == "true"),
                    _ => Value::Text((*text).to_owned()),
                },
            );
        }
        let place = Place { base: PathBuf::from("/") };
        let file = (spec.build)(declared, fields, &place).expect("valid");
        let ask = CheckRequest::default();
        match file.check(&self.host, ask).now_or_never().expect("at once") {
            CheckResult::Same => Outcome::Unchanged,
            CheckResult::Unknown(failure) => panic!("{failure}"),
            CheckResult::Differs(change) => {
                let keeper = self.history.keeper(recorded, "event");
                let permit = key().mint(CancellationToken::new(), keeper.into());
                file.apply(&self.host, &permit, change).now_or_never().expect("at once")
            }
        }
    }

    fn reader(&self) -> Reader {
        self.history.read().expect("readable").expect("something is kept")
    }

    fn entries(&self, name: &str) -> Vec<Entry> {
        let all = self.reader().entries(Some(&resource(name)), 1000).expect("readable");
        all.into_iter().map(|one| one.entry().expect("readable")).collect()
    }

    fn undo(&self, name: &str, to: Option<u64>) -> Result<Vec<String>, String> {
        self.undo_what(&Undo { resource: resource(name), to, partial: false })
    }

    fn undo_what(&self, what: &Undo) -> Result<Vec<String>, String> {
        let done = undo(
            key(),
            &self.host,
            &self.history,
            (what, CancellationToken::new()),
            &KindSet::of_this_build(),
        );
        done.map_err(|refused| refused.failure.what)
    }
}

fn open(folder: &Path, limits: Limits, clock: &Arc<AtomicU64>) -> Arc<History> {
    open_after_jump(folder, limits, clock, 0)
}

/// Opens a history whose system clock is this number of days ahead of the time since the boot.
fn open_after_jump(
    folder: &Path,
    limits: Limits,
    clock: &Arc<AtomicU64>,
    days: u64,
) -> Arc<History> {
    let ahead = |days: u64| -> Clock {
        let clock = Arc::clone(clock);
        Arc::new(move || Duration::from_secs(clock.load(Ordering::SeqCst) + days * DAY))
    };
    History::with_clocks(folder.join("state"), limits, (ahead(days), ahead(0)))
}

fn resource(name: &str) -> String {
    format!("file[{name}]")
}

/// The oracle's view of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    Nothing,
    File(Vec<u8>, u32, (u32, u32)),
    Link(PathBuf),
    Directory(u32),
}

fn sight(path: &Path) -> Sight {
    let Ok(meta) = path.symlink_metadata() else { return Sight::Nothing };
    let mode = meta.permissions().mode() & 0o7777;
    if meta.is_symlink() {
        Sight::Link(std::fs::read_link(path).expect("a link"))
    } else if meta.is_dir() {
        Sight::Directory(mode)
    } else {
        Sight::File(std::fs::read(path).expect("readable"), mode, (meta.uid(), meta.gid()))
    }
}

fn is_changed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Changed(_))
}

/// A declared change, or one by somebody else.
#[derive(Clone, Debug)]
enum Step {
    Content(String, &'static str),
    Mode(&'static str),
    Link(&'static str),
    Directory,
    Absent,
    Foreign(String),
}

fn step() -> impl Strategy<Value = Step> {
    // Modes that deny access to others are sensitive, and their content is not stored.
    let mode = prop::sample::select(vec!["0644", "0755", "0604", "0664", "0444"]);
    let content = prop_oneof!["[a-c]{0,4}", "[a-z\n]{200,3000}"];
    prop_oneof![
        4 => (content.clone(), mode.clone()).prop_map(|(text, mode)| Step::Content(text, mode)),
        2 => mode.prop_map(Step::Mode),
        1 => prop::sample::select(vec!["a", "b/c"]).prop_map(Step::Link),
        1 => Just(Step::Directory),
        1 => Just(Step::Absent),
        1 => content.prop_map(Step::Foreign),
    ]
}
