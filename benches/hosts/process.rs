//! Processes: started, timed and counted.

use super::Failure;
use super::tree::Tree;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The program, as cargo built it for this bench.
pub(crate) const STEADFAST: &str = env!("CARGO_BIN_EXE_steadfast");

/// Creates a command that runs a bare program on this tree.
pub(crate) fn bare(program: &str, tree: &Tree, commits: usize) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bare", program]).arg(&tree.graph).arg(commits.to_string());
    Ok(command)
}

/// Creates a command that runs `steadfast apply` on this tree.
pub(crate) fn apply(tree: &Tree) -> Command {
    let mut command = Command::new(STEADFAST);
    command.arg("apply").arg(&tree.graph).arg("--state-dir").arg(&tree.state);
    command
}

/// Returns the run time of a command. Pending writes of the system are synced first.
pub(crate) fn timed(mut command: Command) -> Result<Duration, Failure> {
    rustix::fs::sync();
    let began = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Counts the syncs of a command with `strace`; none without strace.
pub(crate) fn syncs(command: &Command, into: &Path) -> Result<Option<usize>, Failure> {
    let mut traced = Command::new("strace");
    traced.args(["-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,syncfs,sync", "-o"]).arg(into);
    traced.arg(command.get_program()).args(command.get_args());
    match traced.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("{traced:?}: {status}").into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let text = fs::read_to_string(into)?;
    // An interrupted call takes two lines, the second with "resumed".
    let calls = text.lines().filter(|line| line.contains("sync") && !line.contains("resumed>"));
    Ok(Some(calls.count()))
}

/// A long-running process and its output lines.
pub(crate) struct Held {
    child: Child,
    lines: Receiver<String>,
}

impl Held {
    /// Starts a bare program, which prints to standard output.
    pub(crate) fn bare(program: &str, tree: &Tree) -> Result<Self, Failure> {
        let mut child =
            bare(program, tree, 0)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = lines(child.stdout.take());
        Ok(Self { child, lines })
    }

    /// Starts a program without output.
    pub(crate) fn of(command: &mut Command) -> Result<Self, Failure> {
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { child, lines: lines(None::<std::io::Empty>) })
    }

    /// Starts the daemon on this tree, without sweeps; its log goes to standard error.
    pub(crate) fn daemon(tree: &Tree) -> Result<Self, Failure> {
        Self::daemon_with(tree, &[])
    }

    /// Starts the daemon on this tree, without sweeps and with further flags.
    pub(crate) fn daemon_with(tree: &Tree, flags: &[&str]) -> Result<Self, Failure> {
        Self::daemon_by(Command::new(STEADFAST), tree, flags)
    }

    /// Starts the daemon on this tree through a given command, without sweeps and with further flags.
    pub(crate) fn daemon_by(
        mut command: Command,
        tree: &Tree,
        flags: &[&str],
    ) -> Result<Self, Failure> {
        command.arg("run").arg(&tree.graph).arg("--state-dir").arg(&tree.state);
        command.args(["--sweep", "0", "--log", "json"]).args(flags);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = lines(child.stderr.take());
        Ok(Self { child, lines })
    }

    /// Waits for an output line that contains this word.
    pub(crate) fn says(&mut self, word: &str) -> Result<(), Failure> {
        loop {
            let line = self.lines.recv_timeout(Duration::from_mins(2));
            if line.map_err(|error| format!("it did not say {word}: {error}"))?.contains(word) {
                return Ok(());
            }
        }
    }

    /// Waits until the daemon reports convergence.
    pub(crate) fn converged(&mut self) -> Result<(), Failure> {
        self.says("\"event\":\"converged\"")
    }

    /// Sends TERM and returns the time to the end of the process.
    pub(crate) fn ends(&mut self) -> Result<Duration, Failure> {
        let process = rustix::process::Pid::from_child(&self.child);
        let began = Instant::now();
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(began.elapsed())
    }

    /// Returns the resident memory, in bytes.
    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kilobytes.ok_or("no VmRSS")?.trim().parse::<f64>()? * 1024.0)
    }

    /// Returns the processor time of all threads so far, ended ones included, with nanoseconds (/proc/PID/stat has
    /// hundredths of a second).
    pub(crate) fn ran(&self) -> Result<Duration, Failure> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed()))?;
        Ok(clock.now()?.into())
    }
}

/// Reads lines on a thread, so that a caller can wait for them with a limit.
fn lines(from: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = from.into_iter().flat_map(|from| BufReader::new(from).lines());
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Drop for Held {
    /// Kills the process, so that nothing remains after a failure.
    fn drop(&mut self) {
        // Both calls fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
