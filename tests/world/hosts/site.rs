//! A site: daemons that share a world, each in a folder of its own. `$DIR` in a graph is the folder of the host,
//! `$SITE` the folder of the site, `$HOST` the name of the host.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The time limit of every wait, for a machine that is busy with other work.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// Daemons with one world.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    /// The setting `world`, without the name of the host.
    world: String,
    daemons: BTreeMap<String, Child>,
}

impl Site {
    /// Makes a site whose world is a database that all daemons open.
    pub(crate) fn with_file() -> Self {
        let folder = tempfile::Builder::new().prefix("steadfast-site-").tempdir().unwrap();
        let world = format!("file: {}/world.sqlite", folder.path().display());
        Self::new(folder, world)
    }

    fn new(folder: tempfile::TempDir, world: String) -> Self {
        for name in ["bundles", "trusted"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, world, daemons: BTreeMap::new() }
    }

    /// Makes a site whose world has these settings.
    #[cfg(feature = "etcd")]
    pub(crate) fn with_world(world: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("steadfast-site-").tempdir().unwrap();
        Self::new(folder, world.to_owned())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the content of a file; empty if it is absent.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes the graph and the settings of a host.
    pub(crate) fn graph(&self, host: &str, graph: &str) {
        let folder = self.path(host);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("graph.yaml"), self.full(host, graph)).unwrap();
        self.settings(host, "graph.yaml");
    }

    /// Writes the settings of a host whose graph is at `graph`.
    pub(crate) fn settings(&self, host: &str, graph: &str) {
        std::fs::create_dir_all(self.path(host)).unwrap();
        let site = self.folder.path().display();
        let text = format!(
            "graph: {graph}\nstate_dir: state\nwatch: true\nworld:\n  {}\n  host: {host}\n  bundles: {site}/bundles\n  trusted: {site}/trusted\n",
            self.world
        );
        std::fs::write(self.path(host).join("steadfast.yaml"), text.replace("$HOST", host))
            .unwrap();
    }

    fn full(&self, host: &str, text: &str) -> String {
        let site = self.folder.path().display().to_string();
        text.replace("$DIR", &format!("{site}/{host}"))
            .replace("$SITE", &site)
            .replace("$HOST", host)
    }

    /// Starts the daemon of a host.
    pub(crate) fn start(&mut self, host: &str) {
        self.start_with(host, &[]);
    }

    /// Starts the daemon of a host with environment variables.
    pub(crate) fn start_with(&mut self, host: &str, variables: &[(&str, &str)]) {
        let folder = self.path(host);
        let log =
            std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let mut command = self.command(host, &["run"]);
        command.envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.insert(host.to_owned(), command.spawn().unwrap());
    }

    /// Kills the daemon of a host.
    pub(crate) fn kill(&mut self, host: &str) {
        let mut daemon = self.daemons.remove(host).expect("started");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    pub(crate) fn signal(&self, host: &str, signal: &str) {
        let id = self.daemons.get(host).expect("started").id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Makes a command of the program with the settings of a host.
    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_steadfast")]);
        command.args(words.iter().map(|word| self.full(host, word)));
        command.arg("--config").arg(self.path(host).join("steadfast.yaml"));
        command
    }

    /// Runs a command with the settings of a host; returns its exit code and all of its output.
    pub(crate) fn ask(&self, host: &str, words: &[&str]) -> (i32, String) {
        shown(&self.command(host, words).output().unwrap())
    }

    /// Runs a client command against the daemon of a host.
    pub(crate) fn ask_daemon(&self, host: &str, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(words).arg("--state-dir").arg(self.path(host).join("state"));
        shown(&command.output().unwrap())
    }

    /// Ends a worker of a host's daemon by a panic.
    pub(crate) fn break_worker(&self, host: &str, worker: &str) {
        let mut socket =
            UnixStream::connect(self.path(host).join("state/control.socket")).expect("it listens");
        let fault = format!(r#"{{"verb":"fault","worker":"{worker}","how":"panic"}}"#);
        writeln!(socket, r#"{{"protocol":1,"request":{fault}}}"#).expect("sent");
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).expect("an answer");
        assert!(!answer.contains("refused") && !answer.contains("unavailable"), "{answer}");
    }

    /// Waits until a condition is true.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so() {
            assert!(Instant::now() < end, "not so in time: {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a file of a host has this content.
    #[track_caller]
    pub(crate) fn wait_for_file(&self, name: &str, content: &str) {
        self.wait_until(&format!("{name} is {content:?}"), || self.read(name) == content);
    }

    fn logs(&self) -> String {
        let hosts = std::fs::read_dir(self.folder.path()).unwrap().map_while(Result::ok);
        let log = |path: &Path| std::fs::read_to_string(path.join("log")).unwrap_or_default();
        let logs =
            hosts.map(|entry| format!("--- {}\n{}", entry.path().display(), log(&entry.path())));
        logs.collect::<Vec<_>>().join("\n")
    }
}

fn shown(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

impl Drop for Site {
    fn drop(&mut self) {
        for daemon in self.daemons.values_mut() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}
