//! A handle of a running daemon: its log line by line, its signals and its end. The daemon never outlives the test.

use crate::host::{LIMIT, ends};
use crate::process;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One line of the log.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) event: String,
    pub(crate) resource: String,
    pub(crate) message: String,
    /// The time of the line, in seconds since midnight.
    pub(crate) seconds: f64,
    pub(crate) year: String,
}

#[derive(Default)]
struct Log {
    lines: Mutex<(Vec<Line>, bool)>,
    more: Condvar,
}

pub(crate) struct Daemon {
    /// The child process; none if another thread waits for it.
    child: Option<Child>,
    pid: u32,
    log: Arc<Log>,
    /// The number of lines that were already waited for.
    seen: Cell<usize>,
    folder: PathBuf,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, (Vec<Line>, bool)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        command.stdout(std::process::Stdio::null());
        let mut child = command.spawn().expect("started");
        let stderr = child.stderr.take().expect("piped");
        let pid = child.id();
        let mut daemon = Self::heard(pid, stderr, folder);
        daemon.child = Some(child);
        daemon
    }

    /// Creates a handle of a daemon that another thread has started and waits for.
    pub(crate) fn heard(pid: u32, stderr: impl Read + Send + 'static, folder: &Path) -> Self {
        let log = Arc::<Log>::default();
        let (writer, folder) = (Arc::clone(&log), folder.to_owned());
        let prefix = folder.display().to_string();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                writer.lock().0.push(read(&line.replace(&prefix, "$DIR")));
                writer.more.notify_all();
            }
            writer.lock().1 = true;
            writer.more.notify_all();
        });
        Self { child: None, pid, log, seen: Cell::new(0), folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the years of all lines, by the daemon's own clock.
    pub(crate) fn years(&self) -> std::collections::BTreeSet<String> {
        self.log.lock().0.iter().map(|line| line.year.clone()).collect()
    }

    /// Waits for the next line with this event.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) -> Line {
        self.wait_for_line(event, |line| line.event == event)
    }

    /// Waits for the next line with this event of this resource.
    #[track_caller]
    pub(crate) fn wait_for_of(&self, event: &str, resource: &str) -> Line {
        let what = format!("{event} of {resource}");
        self.wait_for_line(&what, |line| line.event == event && line.resource == resource)
    }

    /// Waits for a line with this event of each of these resources, in any order.
    #[track_caller]
    pub(crate) fn wait_for_all(&self, event: &str, resources: &[&str]) {
        let first = self.seen.get();
        let mut last = first;
        for resource in resources {
            self.seen.set(first);
            self.wait_for_of(event, resource);
            last = last.max(self.seen.get());
        }
        self.seen.set(last);
    }

    #[track_caller]
    fn wait_for_line(&self, what: &str, is_it: impl Fn(&Line) -> bool) -> Line {
        let first = self.seen.get();
        self.line_or_end(what, is_it).unwrap_or_else(|| {
            let lines = shown(&self.log());
            panic!("the daemon has ended without `{what}` after line {first} of:\n{lines}")
        })
    }

    /// Waits for the next matching line; returns none if the daemon ends first.
    #[track_caller]
    pub(crate) fn line_or_end(&self, what: &str, is_it: impl Fn(&Line) -> bool) -> Option<Line> {
        let end = Instant::now() + LIMIT;
        let mut lines = self.log.lock();
        loop {
            let first = self.seen.get();
            if let Some(at) = lines.0.iter().skip(first).position(&is_it) {
                self.seen.set(first + at + 1);
                return Some(lines.0[first + at].clone());
            }
            if lines.1 {
                return None;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let lines = shown(&lines.0);
                panic!("a minute has passed without `{what}` after line {first} of:\n{lines}");
            }
            lines =
                self.log.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true once the log has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.log.lock().1
    }

    /// Kills a daemon that another thread waits for, unless it has ended.
    pub(crate) fn kill_unless_ended(&self) {
        if !self.has_ended() {
            let pid = i32::try_from(self.pid).expect("a process number");
            if kill(Pid::from_raw(pid), Signal::SIGKILL).is_err() {}
        }
    }

    /// Returns all lines so far.
    pub(crate) fn log(&self) -> Vec<Line> {
        self.log.lock().0.clone()
    }

    /// Returns the lines that were not waited for yet.
    pub(crate) fn unseen(&self) -> Vec<Line> {
        self.log().split_off(self.seen.get())
    }

    /// Marks all lines so far as waited for.
    pub(crate) fn skip_to_now(&self) {
        self.seen.set(self.log.lock().0.len());
    }

    /// Counts the lines with this event so far.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.log().iter().filter(|line| line.event == event).count()
    }

    /// Asserts that no line with this event follows those waited for.
    #[track_caller]
    pub(crate) fn has_not_said(&self, event: &str) {
        let unseen = self.unseen();
        let said = unseen.iter().any(|line| line.event == event);
        assert!(
            !said,
            "`{event}` should not be said after line {}:\n{}",
            self.seen.get(),
            shown(&self.log())
        );
    }

    pub(crate) fn signal(&self, signal: Signal) -> &Self {
        let pid = i32::try_from(self.pid).expect("a process number");
        kill(Pid::from_raw(pid), signal).expect("it runs");
        self
    }

    /// Waits for the end of the daemon; returns its exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        self.ends_within(LIMIT)
    }

    #[track_caller]
    pub(crate) fn ends_within(&mut self, within: Duration) -> i32 {
        let code = self.ends_after_panics(within);
        let lines = self.log.lock();
        let panicked =
            lines.0.iter().any(|line| line.event == "panic" || line.message.contains("panicked"));
        assert!(!panicked, "{}", shown(&lines.0));
        code
    }

    /// Waits for the end of a daemon with injected panics; returns its exit code.
    #[track_caller]
    pub(crate) fn ends_after_panics(&mut self, within: Duration) -> i32 {
        let code = ends(self.child.as_mut().expect("ours to wait for"), within);
        let end = Instant::now() + LIMIT;
        let mut lines = self.log.lock();
        // A child process left behind would hold the standard error open.
        while !lines.1 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "its log stays open after its end:\n{}", shown(&lines.0));
            lines =
                self.log.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        code
    }

    /// Kills the daemon (`kill -9`); its child processes may continue.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().expect("ours to wait for");
        child.kill().expect("killed");
        child.wait().expect("a child of ours");
    }

    /// Kills the daemon and all its child processes (`kill -9`), as a power failure does.
    pub(crate) fn kill_with_children(self) {
        let folder = self.folder.clone();
        self.kill();
        process::kill_with(&folder);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        } else {
            self.kill_unless_ended();
        }
    }
}

fn shown(lines: &[Line]) -> String {
    let lines = lines.iter().zip(1..).map(|(line, number)| {
        format!(
            "{number:4} {:.3} {} {} {}\n",
            line.seconds, line.event, line.resource, line.message
        )
    });
    lines.collect()
}

fn read(line: &str) -> Line {
    let Ok(json) = serde_json::from_str::<Value>(line) else {
        // Output before the log is set up, or of another program.
        return Line {
            event: "talk".to_owned(),
            resource: String::new(),
            message: line.to_owned(),
            seconds: 0.0,
            year: String::new(),
        };
    };
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let clock = text("timestamp");
    let year = clock.split('-').next().unwrap_or_default().to_owned();
    let clock = clock.split('T').nth(1).unwrap_or_default().trim_end_matches('Z');
    let seconds =
        clock.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap_or(0.0));
    Line {
        event: text("event"),
        resource: text("resource"),
        message: text("message"),
        seconds,
        year,
    }
}
