//! A disposable host: runs commands, writes and reads files, and waits for states.

use crate::machine::Machine;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest wait for a state; only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A booted Debian with `/usr/bin/steadfast` and its unit, not started.
#[derive(Debug)]
pub(crate) struct Host {
    machine: Machine,
}

/// The result of a command on the host.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    /// The standard output.
    pub(crate) stdout: String,
    /// The standard error.
    pub(crate) stderr: String,
}

/// Returns the tested program: the built one, or that of `STEADFAST_TEST_PROGRAM`, such as a release build whose times
/// are to be measured.
fn program() -> PathBuf {
    let other = std::env::var_os("STEADFAST_TEST_PROGRAM").map(PathBuf::from);
    other.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_steadfast")))
}

impl Host {
    /// Boots a host; returns once everything that starts at boot has started.
    pub(crate) fn boot() -> Self {
        Self::boot_with(&[])
    }

    /// Boots a host that sees these files and folders read-only at the given paths.
    pub(crate) fn boot_with(files: &[(PathBuf, &str)]) -> Self {
        let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/steadfast.service");
        let mut all = vec![
            (program(), "/usr/bin/steadfast"),
            (PathBuf::from(unit), "/usr/lib/systemd/system/steadfast.service"),
        ];
        all.extend_from_slice(files);
        let host = Self { machine: Machine::start(&all) };
        host.until("systemd to have started all", || {
            let state = host.run(&["systemctl", "is-system-running"]).stdout;
            ["running", "degraded"].contains(&state.trim())
        });
        host
    }

    /// Returns the process id of the host's first process, as seen from outside.
    pub(crate) fn leader(&self) -> i32 {
        self.machine.leader().as_raw()
    }

    /// Runs a command as root and waits for its end.
    pub(crate) fn run(&self, command: &[&str]) -> Answer {
        self.feed(command, "")
    }

    /// Runs a shell script, which must succeed, and returns its output.
    pub(crate) fn shell(&self, script: &str) -> String {
        let answer = self.run(&["sh", "-euc", script]);
        assert_eq!(answer.code, Some(0), "{script}\n{}{}", answer.stdout, answer.stderr);
        answer.stdout
    }

    /// Writes a file in place, as an administrator would.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let script = "mkdir -p \"$(dirname \"$1\")\" && cat >\"$1\"";
        let answer = self.feed(&["sh", "-euc", script, "sh", path], content);
        assert_eq!(answer.code, Some(0), "writing {path}: {}", answer.stderr);
    }

    /// Returns the content of a file; none if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let answer = self.run(&["cat", path]);
        (answer.code == Some(0)).then_some(answer.stdout)
    }

    /// Returns the command lines of all processes on the host.
    pub(crate) fn processes(&self) -> Vec<String> {
        let script =
            "for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$each; echo; done 2>/dev/null";
        self.run(&["sh", "-c", script]).stdout.lines().map(str::to_owned).collect()
    }

    /// Waits for a state. A failure names the state and prints the journal.
    pub(crate) fn until(&self, what: &str, reached: impl FnMut() -> bool) {
        assert!(within(PATIENCE, reached), "waited {PATIENCE:?} for {what}\n{}", self.report());
    }

    /// Returns the journal, the service status and the console for a failure message.
    pub(crate) fn report(&self) -> String {
        let journal = self.run(&["journalctl", "--no-pager", "-n", "60", "-o", "short-precise"]);
        let status = self.run(&["systemctl", "status", "--no-pager", "steadfast.service"]);
        if journal.stdout.is_empty() {
            return self.machine.console();
        }
        format!("{}\n{}", status.stdout, journal.stdout)
    }

    fn feed(&self, command: &[&str], input: &str) -> Answer {
        let mut child = Command::new("nsenter")
            .args(["--target", &self.machine.leader().to_string(), "--root", "--wd"])
            .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--"])
            .args(command)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nsenter can be started");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read its input is no failure of the test.
        let _unread = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("nsenter can be waited for");
        // Exit code 127: a missing program must not pass as an empty answer.
        assert_ne!(output.status.code(), Some(127), "a test host has no {command:?}");
        Answer {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns true if the condition becomes true within this time.
pub(crate) fn within(patience: Duration, mut reached: impl FnMut() -> bool) -> bool {
    let limit = Instant::now() + patience;
    loop {
        if reached() {
            return true;
        }
        if Instant::now() >= limit {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
}
