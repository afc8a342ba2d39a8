//! The harness: a host with files, commands, notifications and a service-like process, and the assertions about it.

use crate::daemon::Daemon;
use crate::damage::Damage;
use crate::host::{Host, LIMIT};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steadfast::store::SqliteStore;

/// The graph. `VERSION` is a word of the configuration, whose file is large enough to be torn.
const GRAPH: &str = r#"
graph: killed
resources:
  file:
  - {name: dir, path: $DIR/t/}
  - {name: conf, path: $DIR/t/conf, content: "CONTENT", after: "file[dir]"}
  - {name: edited, path: $DIR/edited, content: "new\n"}
  - {name: mode, path: $DIR/mode, mode: 0600}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: tree, path: $DIR/tree, state: absent, force: true}
  - {name: link, path: $DIR/link, symlink: edited}
  - {name: secret, path: $DIR/secret, mode: 0600, template: {text: "pw={{ p }}\n"}, values: {p: "password[p].password"}}
  password: [{name: p, length: 24, saved: true}]
  exec:
  - {name: reload, shell: /bin/sh, cmd: "echo began >> $DIR/began; while test -e $DIR/hold; do $DIR/sleep 0.01; done; head -n 1 $DIR/t/conf >> $DIR/reloads", refresh_only: true, subscribe: "file[conf]"}
  - {name: told, shell: /bin/sh, cmd: "tail -n 1 $DIR/reloads >> $DIR/told", refresh_only: true, subscribe: "exec[reload]"}
  - {name: start, shell: /bin/sh, cmd: "cp $DIR/t/conf $DIR/running.$$ && mv $DIR/running.$$ $DIR/running", creates: $DIR/running, after: "file[conf]"}
  - {name: restart, shell: /bin/sh, cmd: "cp $DIR/t/conf $DIR/running.$$ && mv $DIR/running.$$ $DIR/running", refresh_only: true, subscribe: "file[conf]", after: "exec[start]"}
  - {name: once, shell: /bin/sh, cmd: "echo x >> $DIR/once"}
  - {name: skipped, shell: /bin/sh, cmd: "echo x >> $DIR/skipped", on_interrupt: skip}
"#;

/// The resources that the removal scenario removes: a file, a dependent of the file, and a directory with foreign
/// files.
const LEAVING: &str = r#"  file:
  - {name: leaves, path: $DIR/leaves, content: "LEAVES", meta: {on_remove: delete}}
  - {name: follows, path: $DIR/follows, content: "follows\n", after: "file[leaves]", meta: {on_remove: delete}}
  - {name: bush, path: $DIR/bush/, force: true, meta: {on_remove: delete}}
"#;

/// The paths that the removal deletes.
const LEFT: [&str; 3] = ["leaves", "follows", "bush"];

/// The files in the removed directory.
const IN_BUSH: [&str; 4] = ["bush/a", "bush/deep", "bush/deep/b", "bush/deep/c"];

/// The content after drift; not a version of the graph.
pub(crate) const MINE: &str = "mine";

const LINES: usize = 4000;

fn large(word: &str) -> String {
    format!("{word}\n").repeat(LINES)
}

/// Returns the content of the configuration file for a version.
pub(crate) fn configuration(version: &str) -> String {
    if version == MINE { "mine\n".to_owned() } else { large(version) }
}

/// A host and the history of its test.
pub(crate) struct Ground {
    pub(crate) host: Host,
    /// The declared version.
    version: &'static str,
    /// The versions that the configuration file may have now.
    possible: BTreeSet<&'static str>,
    /// The number of kills of the daemon.
    kills: usize,
    /// The generated password, once it was seen.
    secret: Option<String>,
    /// Two flags: the removed resources were once declared; they are declared now.
    leaving: (bool, bool),
    /// True if the operator has undone a change.
    pub(crate) undoes: bool,
    /// The damaged database, if the state is damaged.
    damage: Option<Damage>,
}

impl Ground {
    /// Creates a host before the first run.
    pub(crate) fn empty() -> Self {
        let host = Host::with("");
        host.write("edited", "old\n").write("gone", "x").write("mode", "x").chmod("mode", 0o644);
        host.make_directory("tree").make_directory("tree/deep").write("tree/deep/file", "x");
        let mut ground = Self {
            host,
            version: "",
            possible: BTreeSet::new(),
            kills: 0,
            secret: None,
            leaving: (false, false),
            undoes: false,
            damage: None,
        };
        ground.declare("one");
        ground
    }

    /// Writes the graph with this version.
    pub(crate) fn declare(&mut self, version: &'static str) {
        let graph = GRAPH.replace("CONTENT", &configuration(version).replace('\n', "\\n"));
        let leaving = LEAVING.replace("LEAVES", &large("leaves").replace('\n', "\\n"));
        let graph = if self.leaving.1 { graph.replacen("  file:\n", &leaving, 1) } else { graph };
        // One rename, as an operator's tool does: a half-written graph is no subject of these tests.
        self.host.write("graph.next", self.host.full(&graph)).rename("graph.next", "graph.yaml");
        self.version = version;
        self.possible.insert(version);
    }

    /// Creates a converged host with the resources of the removal scenario.
    #[track_caller]
    pub(crate) fn with_what_leaves() -> Self {
        let mut ground = Self::empty();
        ground.leaving = (true, true);
        ground.declare("one");
        ground.is_held_once();
        ground.host.make_directory("bush/deep");
        for name in ["bush/a", "bush/deep/b", "bush/deep/c"] {
            ground.host.write(name, name);
        }
        ground
    }

    /// Creates a converged host with a damaged state.
    #[track_caller]
    pub(crate) fn with_damage() -> Self {
        let mut ground = Self::empty();
        ground.is_held_once();
        ground.secret = Some(ground.host.read("secret"));
        ground.damage = Some(Damage::do_to(&ground.host));
        ground
    }

    /// Runs a daemon until the host is converged, and stops it.
    #[track_caller]
    fn is_held_once(&self) {
        let mut daemon = self.host.run(&["--sweep", "0"]);
        daemon.wait_for("converged");
        daemon.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(daemon.ends(), 0);
    }

    /// Removes the resources of the removal scenario from the graph.
    pub(crate) fn leave(&mut self) {
        self.leaving.1 = false;
        self.declare(self.version);
    }

    /// Returns true unless a removed resource still has its object.
    fn has_left(&self) -> bool {
        self.leaving.1 || !LEFT.iter().any(|name| self.host.exists(name))
    }

    /// Asserts the order of removals: a dependent goes first. A file is whole or gone; a directory may be partial if
    /// its begin is recorded.
    #[track_caller]
    fn leaves_in_order(&self, at: &str) {
        let there = |name: &str| self.host.exists(name);
        let content = self.host.read("leaves");
        assert!(!there("leaves") || content == large("leaves"), "{at}: torn: {}", content.len());
        assert!(there("leaves") || !there("follows"), "{at}: what came after it is still there");
        let kept = SqliteStore::peek(&self.host.path("state")).expect("told back");
        for name in LEFT {
            let identity = format!("file[{name}]");
            assert!(!there(name) || kept.resources.contains_key(&identity), "{at}: {name} is lost");
        }
        let missing = IN_BUSH.iter().filter(|name| !there(name)).count();
        let half = there("bush") && missing > 0;
        let begun = kept.resources.get("file[bush]").is_some_and(|kept| kept.interrupted.is_some());
        assert!(!half || begun, "{at}: half removed, and nothing tells of it: {missing} missing");
    }

    /// Asserts that a start completes only begun removals; the rest follows on the operator's request.
    #[track_caller]
    fn leaves_when_asked(&self, daemon: &Daemon, began: &BTreeSet<&str>, at: &str) {
        for name in LEFT.into_iter().filter(|name| began.contains(name)) {
            self.host.wait_until("what was begun is done", || !self.host.exists(name));
        }
        let there: Vec<&str> = LEFT.into_iter().filter(|name| self.host.exists(name)).collect();
        daemon.skip_to_now();
        daemon.signal(nix::sys::signal::Signal::SIGHUP).wait_for("loaded");
        for name in there {
            assert!(!began.contains(name), "{at}");
        }
    }

    /// Returns the resources with a begun removal at the time of the kill.
    fn began_to_leave(&self) -> BTreeSet<&'static str> {
        if !self.leaving.0 {
            return BTreeSet::new();
        }
        let kept = SqliteStore::peek(&self.host.path("state")).expect("told back");
        let began = |name: &&str| {
            let kept = kept.resources.get(&format!("file[{name}]"));
            kept.is_some_and(|kept| kept.interrupted.is_some()) && self.host.exists(name)
        };
        LEFT.into_iter().filter(began).collect()
    }

    /// Resumes a resource that was paused by an undo.
    fn gives_back(&self, daemon: &Daemon) {
        daemon.wait_for("loaded");
        self.host.wait_until("it is given back", || {
            self.host.ask_daemon(&["resume", "file[edited]"]).code == 0
        });
    }

    /// Asserts that each removal can be undone from the history.
    #[track_caller]
    fn history_is_complete(&self, at: &str) {
        let command = |words: &[&str]| self.host.ask_daemon(words);
        for name in ["leaves", "follows"] {
            let told = command(&["history", &format!("file[{name}]")]);
            assert!(told.code == 0 && told.stdout.contains(name), "{at}: {told}");
            command(&["undo", &format!("file[{name}]")]).exits(0);
            let expected = if name == "leaves" { large(name) } else { "follows\n".to_owned() };
            assert!(self.host.read(name) == expected, "{at}: {name} is put back as it was");
        }
    }

    /// Changes declared objects and deletes the witnesses of earlier runs.
    pub(crate) fn drift(&mut self) {
        for name in ["reloads", "told"] {
            if self.host.exists(name) {
                self.host.remove(name);
            }
        }
        self.possible.insert(MINE);
        // A repairing daemon may have replaced each of them meanwhile.
        self.host.write("t/conf", configuration(MINE)).write("edited", "mine\n");
        self.host.chmod("mode", 0o644);
    }

    /// Returns true if all reactions to the configuration have used its last version.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled().is_empty()
    }

    /// Returns the names of the objects that are not yet in their final state.
    fn unsettled(&self) -> Vec<&'static str> {
        let last = |name: &str| self.host.lines(name).pop().unwrap_or_default();
        let configuration = configuration(self.version);
        let right = [
            ("t/conf", self.host.read("t/conf") == configuration),
            ("running", self.host.read("running") == configuration),
            ("edited", self.host.read("edited") == "new\n"),
            ("mode", self.host.exists("mode") && self.host.mode("mode") == 0o600),
            ("reloads", last("reloads") == self.version),
            ("told", last("told") == self.version),
            ("what has left", self.has_left()),
        ];
        right.iter().filter(|(_, is_right)| !is_right).map(|(name, _)| *name).collect()
    }

    /// Asserts directly after the kill that no file is torn and the state is readable.
    #[track_caller]
    pub(crate) fn after_the_kill(&mut self, at: &str) {
        self.kills += 1;
        let host = &self.host;
        for name in ["t/conf", "running"] {
            let found = host.read(name);
            let whole = self.possible.iter().any(|version| configuration(version) == found);
            let none = !host.exists(name);
            assert!(none || whole, "{at}: {name} is torn: {} bytes", found.len());
        }
        let edited = host.read("edited");
        assert!(["old\n", "new\n", "mine\n"].contains(&edited.as_str()), "{at}: {edited:?}");
        let secret = host.read("secret");
        assert!(
            secret.is_empty() && !host.exists("secret") || is_secret(&secret),
            "{at}: {secret:?}"
        );
        if let Some(before) = &self.secret {
            assert_eq!(*before, secret, "{at}: the password was made anew");
        }
        self.secret = Some(secret).filter(|secret| !secret.is_empty());
        self.databases_are_valid(at);
        self.kept_graph_is_whole(at);
        if self.leaving.0 {
            self.leaves_in_order(at);
        }
        if let Some(damage) = &self.damage {
            damage.is_kept(&self.host, at);
        }
    }

    #[track_caller]
    fn kept_graph_is_whole(&self, at: &str) {
        let kept = self.host.read("state/graph.json");
        if self.host.exists("state/graph.json") {
            let kept = serde_json::from_str(&kept);
            let kept: serde_json::Value = kept.unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(kept["texts"].is_array(), "{at}: {kept}");
        }
    }

    /// Verifies copies of the databases, since opening one changes it.
    #[track_caller]
    fn databases_are_valid(&self, at: &str) {
        for database in DATABASES {
            let path = self.host.path("state").join(database);
            if path.exists() {
                is_valid(&path, at);
            }
        }
    }

    /// Starts the daemon again, waits until the host is converged, stops the daemon, and checks everything. `paused`
    /// is the required pause state after the start, if it is known.
    #[track_caller]
    pub(crate) fn recovers(&mut self, paused: Option<bool>, at: &str) {
        let began = self.began_to_leave();
        let mut daemon = self.host.run(&["--sweep", "0"]);
        if self.undoes {
            self.gives_back(&daemon);
        }
        match &self.damage {
            Some(damage) => damage.is_repaired(&self.host, &daemon, at),
            None => rests(&daemon, paused, at),
        }
        if self.leaving.0 && !self.leaving.1 {
            self.leaves_when_asked(&daemon, &began, at);
        }
        // Commands of the old daemon may still be running.
        let end = Instant::now() + LIMIT;
        while !(self.is_settled() && self.host.processes().is_empty()) {
            let open = (self.unsettled(), self.host.processes());
            assert!(Instant::now() < end, "{at}: {open:?} after {:#?}", daemon.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        // A state interrupted at any point needs no repair.
        let mut problems = vec!["state_repaired", "state_unsound"];
        problems.extend(self.damage.is_none().then_some("read_only"));
        let doubt = daemon.log().into_iter().find(|line| problems.contains(&line.event.as_str()));
        assert!(doubt.is_none(), "{at}: {doubt:?}");
        let failed = daemon.count("failed");
        assert_eq!(failed, 0, "{at}: {:#?}", daemon.log());
        daemon.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(daemon.ends(), 0, "{at}");
        self.is_right(at);
    }

    #[track_caller]
    fn is_right(&mut self, at: &str) {
        let host = &self.host;
        assert!(self.is_settled(), "{at}");
        self.possible = BTreeSet::from([self.version]);
        assert!(!host.exists("gone") && !host.exists("tree"), "{at}");
        assert_eq!(std::fs::read_link(host.path("link")).expect("a link"), Path::new("edited"));
        let secret = host.read("secret");
        assert!(is_secret(&secret) && host.mode("secret") == 0o600, "{at}: {secret:?}");
        if let Some(before) = self.secret.replace(secret) {
            assert_eq!(self.secret, Some(before), "{at}: the password was made anew");
        }
        let runs = |name: &str| host.lines(name).len();
        // Without the damage, every kill can cause one repetition.
        let most = if self.damage.is_some() { 1 } else { 1 + self.kills };
        assert!((1..=most).contains(&runs("once")), "{at}: {} runs", runs("once"));
        assert!(runs("skipped") <= 1, "{at}: what is skipped ran again");
        let mut left = Vec::new();
        strays(&host.path(""), &mut left);
        assert!(left.is_empty(), "{at}: {left:?}");
        self.databases_are_valid(at);
        self.kept_graph_is_whole(at);
        let kept = SqliteStore::peek(&host.path("state")).expect("told back");
        for (identity, kept) in &kept.resources {
            // A state is checked at each start; the next run with a change clears the record (B-5).
            let known = kept.interrupted.is_none()
                || !["exec[once]", "exec[skipped]"].contains(&identity.as_str());
            assert!(kept.owed.is_none() && known, "{at}: {identity} {kept:?}");
        }
        let kept: BTreeSet<&str> = kept.resources.keys().map(String::as_str).collect();
        assert!(kept.contains("exec[once]"), "{at}: {kept:?}");
        if self.leaving.0 && !self.leaving.1 {
            self.history_is_complete(at);
        }
    }
}

/// Waits until the host is converged; resumes the daemon if it is paused.
#[track_caller]
fn rests(daemon: &Daemon, paused: Option<bool>, at: &str) {
    let first = |event: &str| event == "paused" || event == "converged";
    let what = "paused or converged";
    let line = daemon.line_or_end(what, |line| first(&line.event));
    let line = line.unwrap_or_else(|| panic!("{at}: the restart ended: {:#?}", daemon.log()));
    let is_paused = line.event == "paused";
    if let Some(paused) = paused {
        assert_eq!(is_paused, paused, "{at}: {:#?}", daemon.log());
    }
    if is_paused {
        daemon.signal(nix::sys::signal::Signal::SIGUSR2).wait_for("converged");
    }
}

#[track_caller]
fn is_valid(path: &Path, at: &str) {
    let copy = tempfile::tempdir().expect("a folder");
    for suffix in ["", "-wal", "-shm"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        let (from, to) = (with(path), with(&copy.path().join("database")));
        if from.exists() {
            std::fs::copy(from, to).expect("copied");
        }
    }
    let database = rusqlite::Connection::open(copy.path().join("database")).expect("opened");
    let answer: String = database
        .query_row("PRAGMA integrity_check", (), |row| row.get(0))
        .unwrap_or_else(|error| panic!("{at}: {}: {error}", path.display()));
    assert_eq!(answer, "ok", "{at}: {}", path.display());
}

fn is_secret(text: &str) -> bool {
    text.len() == "pw=\n".len() + 24 && text.starts_with("pw=") && text.ends_with('\n')
}

/// The databases below the state directory.
const DATABASES: [&str; 3] = ["state.db", "events.db", "history/history.db"];

/// The expected names; of the program's own files only those that a stopped daemon leaves.
const KNOWN: [&str; 38] = [
    "began",
    "conf",
    "edited",
    "graph.json",
    "graph.yaml",
    "link",
    "lock",
    "mode",
    "once",
    "reloads",
    "running",
    "secret",
    "skipped",
    "sleep",
    "state",
    "state.db",
    "commands",
    "events.db",
    "events.db-clock",
    "events.db-reserve",
    "events.db-waiting",
    "history",
    "cut-off",
    "history.db",
    "history.db-clock",
    "history.db-wal",
    "history.db-shm",
    "t",
    "told",
    "values.key",
    "values.key.check",
    "history.numbers",
    ".control.socket.lock",
    ".metrics.sock.lock",
    "hold",
    "graph.next",
    "traced-output",
    "kept.json",
];

/// Lists all other names, except copies that a killed command was making.
fn strays(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let copies = ["running.", "state.db.before-", "state.db.bad-"];
        let is_copy = copies.iter().any(|copy| name.starts_with(copy));
        if !KNOWN.contains(&name.as_str()) && !is_copy {
            found.push(entry.path());
        }
        // The records of commands are named after their process groups.
        if entry.file_type().expect("known").is_dir() && name != "commands" {
            strays(&entry.path(), found);
        }
    }
}
