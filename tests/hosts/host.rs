//! A throw-away host as a test sees it: run something there, write and read its files, wait for a state.

use crate::machine::Machine;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a state is waited for. Generous: it is only ever used up by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A booted Debian with `/usr/bin/steadfast` and its unit, not started.
#[derive(Debug)]
pub(crate) struct Host {
    machine: Machine,
}

/// What a command on the host has answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote to stdout.
    pub(crate) stdout: String,
    /// What it wrote to stderr.
    pub(crate) stderr: String,
}

impl Host {
    /// Boots one. Returns when all that starts at boot has started.
    pub(crate) fn boot() -> Self {
        let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/steadfast.service");
        let host = Self {
            machine: Machine::start(&[
                (PathBuf::from(env!("CARGO_BIN_EXE_steadfast")), "/usr/bin/steadfast"),
                (PathBuf::from(unit), "/usr/lib/systemd/system/steadfast.service"),
            ]),
        };
        host.until("systemd to have started all", || {
            let state = host.run(&["systemctl", "is-system-running"]).stdout;
            ["running", "degraded"].contains(&state.trim())
        });
        host
    }

    /// Its first process, as it is called outside.
    #[cfg(debug_assertions)]
    pub(crate) fn leader(&self) -> i32 {
        self.machine.leader().as_raw()
    }

    /// Runs a command as root and waits for its end.
    pub(crate) fn run(&self, command: &[&str]) -> Answer {
        self.feed(command, "")
    }

    /// Runs a shell script, which must end well, and returns what it wrote.
    pub(crate) fn shell(&self, script: &str) -> String {
        let answer = self.run(&["sh", "-euc", script]);
        assert_eq!(answer.code, Some(0), "{script}\n{}{}", answer.stdout, answer.stderr);
        answer.stdout
    }

    /// Writes a file as an administrator would, in place.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let script = "mkdir -p \"$(dirname \"$1\")\" && cat >\"$1\"";
        let answer = self.feed(&["sh", "-euc", script, "sh", path], content);
        assert_eq!(answer.code, Some(0), "writing {path}: {}", answer.stderr);
    }

    /// The content of a file, as `cat` reads it; none when it cannot.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let answer = self.run(&["cat", path]);
        (answer.code == Some(0)).then_some(answer.stdout)
    }

    /// The command lines of all processes on the host.
    pub(crate) fn processes(&self) -> Vec<String> {
        let script =
            "for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$each; echo; done 2>/dev/null";
        self.run(&["sh", "-c", script]).stdout.lines().map(str::to_owned).collect()
    }

    /// Waits for a state that must come. What is told with the failure: what was waited for, and the journal.
    pub(crate) fn until(&self, what: &str, reached: impl FnMut() -> bool) {
        assert!(within(PATIENCE, reached), "waited {PATIENCE:?} for {what}\n{}", self.tell());
    }

    /// All that explains a failure.
    pub(crate) fn tell(&self) -> String {
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
        // A test that asks a program which is not there would otherwise take silence for an answer.
        assert_ne!(output.status.code(), Some(127), "a test host has no {command:?}");
        Answer {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Whether a state comes within this time.
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
