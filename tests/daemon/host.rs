//! The environment of one test: a folder with a graph and a state directory, and commands of the real program.
//!
//! `$DIR` in a graph, an argument or an expectation is the folder. `$DIR/sleep` is a link to the program `sleep`:
//! each process that a test starts through it has the folder in its arguments, so that the test can prove that none
//! is left.

use crate::daemon::Daemon;
use crate::output::Output;
use crate::process;
use std::io::{Read, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit of every wait, for a machine that is busy with other work.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The user id of nobody, for tests that run as root.
const NOBODY: u32 = 65534;

pub(crate) struct Host {
    folder: tempfile::TempDir,
    program: PathBuf,
    nobody: bool,
}

impl Host {
    /// Creates a host with this graph.
    pub(crate) fn with(graph: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("steadfast-test-").tempdir();
        let host = Self {
            folder: folder.expect("a folder"),
            program: PathBuf::from(env!("CARGO_BIN_EXE_steadfast")),
            nobody: false,
        };
        symlink("/bin/sleep", host.path("sleep")).expect("a link to sleep");
        host.graph(graph);
        host
    }

    /// Creates a host whose program runs as nobody, in a folder owned by nobody.
    pub(crate) fn of_nobody(graph: &str) -> Self {
        let mut host = Self::with(graph);
        if !is_root() {
            return host;
        }
        // Nobody may not be able to reach the build folder.
        let ours = host.path("steadfast");
        if std::fs::hard_link(&host.program, &ours).is_err() {
            std::fs::copy(&host.program, &ours).expect("a copy of the program");
        }
        host.program = ours;
        host.nobody = true;
        for path in [host.folder.path(), &host.path("graph.yaml")] {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("given to nobody");
        }
        host.chmod("", 0o755);
        host
    }

    /// Writes the graph.
    pub(crate) fn graph(&self, text: &str) -> &Self {
        self.write("graph.yaml", self.full(text))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.path().to_owned() } else { self.folder.path().join(name) }
    }

    /// Replaces `$DIR` by the folder.
    pub(crate) fn full(&self, text: &str) -> String {
        text.replace("$DIR", &self.folder.path().display().to_string())
    }

    /// Replaces the folder by `$DIR`.
    pub(crate) fn short(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "$DIR")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), content).expect("written");
        self
    }

    pub(crate) fn append(&self, name: &str, content: &str) -> &Self {
        let mut file =
            std::fs::OpenOptions::new().append(true).open(self.path(name)).expect("opened");
        file.write_all(content.as_bytes()).expect("appended");
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(crate) fn remove(&self, name: &str) -> &Self {
        std::fs::remove_file(self.path(name)).expect("removed");
        self
    }

    pub(crate) fn make_directory(&self, name: &str) -> &Self {
        std::fs::create_dir(self.path(name)).expect("made");
        self
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> &Self {
        std::fs::rename(self.path(from), self.path(to)).expect("renamed");
        self
    }

    /// Exchanges two files in one step, so that no repair happens in between.
    pub(crate) fn exchange(&self, one: &str, other: &str) -> &Self {
        let (one, other) = (self.path(one), self.path(other));
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags)
            .expect("exchanged");
        self
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) -> &Self {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).expect("mode");
        self
    }

    /// Gives a file to nobody, if the program runs as nobody.
    pub(crate) fn give_away(&self, name: &str) -> &Self {
        if self.nobody {
            chown(self.path(name), Some(NOBODY), Some(NOBODY)).expect("given to nobody");
        }
        self
    }

    pub(crate) fn metadata(&self, name: &str) -> std::fs::Metadata {
        self.path(name).symlink_metadata().expect("there")
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        self.metadata(name).permissions().mode() & 0o7777
    }

    /// Creates the command with the graph and, where it takes one, the state directory of this host.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(&[]);
        let (first, rest) = words.split_first().expect("a command");
        command.arg(first);
        if !["check", "drift", "graph"].contains(first) {
            command.arg("--state-dir").arg(self.path("state"));
        }
        command.args(rest.iter().map(|word| self.full(word)));
        command.arg(self.path("graph.yaml"));
        command
    }

    /// Creates a command of the program with exactly these arguments.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = if self.nobody {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command.args(words.iter().map(|word| self.full(word)));
        command.env_remove("STEADFAST_LOG").env_remove("NOTIFY_SOCKET").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn apply(&self) -> Output {
        self.ask(&["apply"])
    }

    pub(crate) fn plan(&self) -> Output {
        self.ask(&["plan"])
    }

    pub(crate) fn check(&self) -> Output {
        self.ask(&["check"])
    }

    /// Runs a command on the graph of this host to its end.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.finish(self.command(words))
    }

    /// Runs a command on the state of this host, or of its daemon, to its end.
    pub(crate) fn ask_daemon(&self, words: &[&str]) -> Output {
        let mut command = self.bare(words);
        command.arg("--state-dir").arg(self.path("state"));
        self.finish(command)
    }

    /// Runs a command to its end.
    pub(crate) fn finish(&self, mut command: Command) -> Output {
        let mut child = command.spawn().expect("started");
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let code = ends(&mut child, LIMIT);
        let text = |reader: std::thread::JoinHandle<String>| {
            self.short(&reader.join().expect("the reader ends"))
        };
        Output { code, stdout: text(stdout), stderr: text(stderr) }
    }

    /// Starts the daemon on the graph of this host.
    pub(crate) fn run(&self, flags: &[&str]) -> Daemon {
        let words: Vec<&str> = ["run", "--log", "json"].iter().chain(flags).copied().collect();
        Daemon::start(self.command(&words), self.folder.path())
    }

    /// Starts the daemon as [`Host::run`] does, with every start of a run logged.
    pub(crate) fn run_telling_starts(&self, flags: &[&str]) -> Daemon {
        let words: Vec<&str> = ["run", "--log", "json"].iter().chain(flags).copied().collect();
        let mut command = self.command(&words);
        command.env("STEADFAST_LOG", "debug");
        Daemon::start(command, self.folder.path())
    }

    /// Returns the processes of this host, apart from the program itself.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        process::with(self.folder.path())
    }

    /// Waits until the condition is true.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so() {
            let late = Instant::now() >= end;
            assert!(!late, "after a minute it is still not so: {what}; {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a file of this host has this number of lines.
    #[track_caller]
    pub(crate) fn wait_for_lines(&self, name: &str, count: usize) {
        self.wait_until(&format!("{count} lines in {name}"), || self.lines(name).len() >= count);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        process::kill_with(self.folder.path());
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits for the end of a child; returns its exit code, or 128 plus the number of a signal.
#[track_caller]
pub(crate) fn ends(child: &mut Child, within: Duration) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let end = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        }
        if Instant::now() > end {
            drop(child.kill());
            panic!("the program did not end within {within:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn drain(source: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            source.read_to_end(&mut bytes).expect("readable");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns true if the arguments of a process contain the folder.
pub(crate) fn mentions(arguments: &[u8], folder: &Path) -> bool {
    let folder = folder.as_os_str().as_encoded_bytes();
    arguments.windows(folder.len()).any(|window| window == folder)
}
