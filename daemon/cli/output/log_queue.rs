//! The queue between the log and the thread that writes it: a stalled reader delays no thread that logs.
//!
//! The size of the queue is limited. A daemon drops lines while the queue is full; the thread logs their number in
//! their place as soon as the reader continues. A one-shot command waits for room on standard error, as programs on a
//! pipe do.

use super::log_journal::JournalSocket;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// One entry of the log, in the form of its sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum LogLine {
    /// A whole line for standard error.
    Stderr(Vec<u8>),
    /// An entry of the journal, in its native protocol.
    Journal(Vec<u8>),
}

impl LogLine {
    fn len(&self) -> usize {
        let (Self::Stderr(bytes) | Self::Journal(bytes)) = self;
        bytes.len()
    }
}

/// The limits of the queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Bounds {
    lines: usize,
    bytes: usize,
    /// The time for which a line waits for room in a full queue; `None` means without limit.
    patience: Option<Duration>,
    /// The time limits at the end of the process: without progress, and in total.
    at_end: (Option<Duration>, Option<Duration>),
}

const LINES: usize = 16 * 1024;
const BYTES: usize = 4 << 20;

/// The time limit of the journal, which takes entries at once unless it hangs.
const JOURNAL_PATIENCE: Duration = Duration::from_secs(5);

impl Bounds {
    /// Returns the limits of a daemon, which waits for no reader, except shortly at its end.
    pub(in crate::cli) fn of_daemon() -> Self {
        let at_end = (Some(Duration::from_millis(400)), Some(Duration::from_millis(700)));
        Self { lines: lines(), bytes: BYTES, patience: Some(Duration::ZERO), at_end }
    }

    /// Returns the limits of a one-shot command, which waits for the reader of standard error, but not for a hanging
    /// journal.
    pub(in crate::cli) fn of_command(into_journal: bool) -> Self {
        let patience = into_journal.then_some(JOURNAL_PATIENCE);
        Self { lines: lines(), bytes: BYTES, patience, at_end: (patience, None) }
    }
}

/// Returns the number of lines that may wait. Tests set a smaller one.
fn lines() -> usize {
    #[cfg(feature = "fault-injection")]
    if let Some(lines) = std::env::var("STEADFAST_TEST_LOG_LINES").ok().and_then(|n| n.parse().ok())
    {
        return lines;
    }
    LINES
}

/// A function that writes one line, which may block.
type Write = Box<dyn Fn(&LogLine) + Send + Sync>;

/// A function that logs the number of dropped lines. It runs on the writing thread, so that its line bypasses the
/// queue.
type TellDropped = fn(u64);

/// The queue of lines.
pub(in crate::cli) struct LogQueue {
    bounds: Bounds,
    write: Write,
    log_dropped: TellDropped,
    state: Mutex<State>,
    /// Notified when there is a line to write.
    more: Condvar,
    /// Notified when a line was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    lines: usize,
    bytes: usize,
    /// The number of dropped lines that are not logged yet.
    dropped: u64,
    /// The number of all dropped lines.
    dropped_in_total: u64,
    /// True if the last wait for room failed, and no line was written since.
    stalled: bool,
    /// True while the thread runs.
    has_thread: bool,
    /// True while the thread writes an entry.
    is_writing: bool,
    /// The number of entries written so far.
    count: u64,
}

enum Entry {
    Line(LogLine),
    /// The number of lines dropped at this place.
    Dropped(u64),
}

impl State {
    fn has_room(&self, bounds: &Bounds) -> bool {
        self.lines == 0 || (self.lines < bounds.lines && self.bytes < bounds.bytes)
    }

    fn put(&mut self, line: LogLine) {
        self.lines += 1;
        self.bytes += line.len();
        self.entries.push_back(Entry::Line(line));
    }

    fn drop_line(&mut self) {
        self.dropped += 1;
        self.dropped_in_total += 1;
        match self.entries.back_mut() {
            Some(Entry::Dropped(number)) => *number += 1,
            _ => self.entries.push_back(Entry::Dropped(1)),
        }
    }

    fn take(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        match &entry {
            Entry::Line(line) => {
                self.lines -= 1;
                self.bytes -= line.len();
            }
            Entry::Dropped(number) => self.dropped -= number,
        }
        Some(entry)
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.is_writing
    }
}

thread_local! {
    /// True on the thread that writes the log: its own lines bypass the queue.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

impl LogQueue {
    pub(in crate::cli) fn new(bounds: Bounds, write: Write, log_dropped: TellDropped) -> Arc<Self> {
        let (state, more, written) = (Mutex::default(), Condvar::new(), Condvar::new());
        Arc::new(Self { bounds, write, log_dropped, state, more, written })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. If the queue stays full for too long, the line is dropped and counted.
    pub(in crate::cli) fn push(self: &Arc<Self>, line: LogLine) {
        if WRITES.get() {
            return (self.write)(&line);
        }
        let mut state = self.lock();
        if !state.has_room(&self.bounds) && !state.stalled {
            state = self.wait_for_room(state);
        }
        if state.has_room(&self.bounds) {
            state.put(line);
        } else {
            state.drop_line();
        }
        let starts = !std::mem::replace(&mut state.has_thread, true);
        drop(state);
        if starts {
            self.start_thread();
        }
        self.more.notify_one();
    }

    fn wait_for_room<'q>(&'q self, state: MutexGuard<'q, State>) -> MutexGuard<'q, State> {
        let is_full = |state: &mut State| !state.has_room(&self.bounds);
        match self.bounds.patience {
            Some(Duration::ZERO) => state,
            Some(patience) => {
                let waited = self.written.wait_timeout_while(state, patience, is_full);
                let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                state.stalled = waited.timed_out();
                state
            }
            None => {
                let waited = self.written.wait_while(state, is_full);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// Starts the thread. After a failure, the next line tries again.
    fn start_thread(self: &Arc<Self>) -> bool {
        let own = Arc::clone(self);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let started = thread.spawn(move || own.write_all()).is_ok();
        self.lock().has_thread = started;
        started
    }

    fn write_all(&self) {
        WRITES.set(true);
        loop {
            let entry = self.next();
            self.write_entry(&entry);
        }
    }

    /// Marks the previous entry as written, and waits for the next one.
    fn next(&self) -> Entry {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_writing) {
            state.count += 1;
            state.stalled = false;
            self.written.notify_all();
        }
        loop {
            if let Some(entry) = state.take() {
                state.is_writing = true;
                return entry;
            }
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write_entry(&self, entry: &Entry) {
        match entry {
            Entry::Line(line) => (self.write)(line),
            Entry::Dropped(number) => (self.log_dropped)(*number),
        }
    }

    /// Returns the number of dropped lines that are not logged yet.
    pub(in crate::cli) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits until all lines are written, within the limits.
    pub(in crate::cli) fn finish(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.is_empty() {
            return;
        }
        if !state.has_thread {
            drop(state);
            if !self.start_thread() {
                return self.write_rest();
            }
            state = self.lock();
        }
        let (stall, total) = self.bounds.at_end;
        let end = total.map(|total| Instant::now() + total);
        let (mut seen, mut since) = (state.count, Instant::now());
        while !state.is_empty() {
            if seen != state.count {
                (seen, since) = (state.count, Instant::now());
            }
            let ends = [end, stall.map(|stall| since + stall)].into_iter().flatten().min();
            let left = ends.map(|end| end.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return,
                Some(left) => {
                    let waited = self.written.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.written.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Writes the remaining lines on this thread, if no other can be started at the end of the process.
    fn write_rest(&self) {
        WRITES.set(true);
        loop {
            let Some(entry) = self.lock().take() else { return };
            self.write_entry(&entry);
        }
    }
}

/// The queue of this process, once its log is set up.
static QUEUE: OnceLock<Arc<LogQueue>> = OnceLock::new();

/// Creates the queue of this process. A second call in one process (tests) has no effect.
pub(in crate::cli) fn set_up(bounds: Bounds, log_dropped: TellDropped) {
    QUEUE.get_or_init(|| {
        let journal = JournalSocket::default();
        let write = move |line: &LogLine| match line {
            LogLine::Stderr(bytes) => write_stderr(bytes),
            LogLine::Journal(entry) => journal.send(entry),
        };
        LogQueue::new(bounds, Box::new(write), log_dropped)
    });
}

/// Logs a line through the queue, or directly if the process has none.
pub(in crate::cli) fn log_line(line: LogLine) {
    match (QUEUE.get(), line) {
        (Some(queue), line) => queue.push(line),
        (None, LogLine::Stderr(bytes)) => write_stderr(&bytes),
        (None, LogLine::Journal(entry)) => JournalSocket::default().send(&entry),
    }
}

/// Describes the present problem of the log, if there is some.
pub(in crate::cli) fn problem() -> Option<String> {
    let dropped = QUEUE.get()?.dropped();
    (dropped > 0).then(|| format!("standard error is not read; lines dropped so far: {dropped}"))
}

/// Returns the number of lines dropped since the start of the process.
pub(in crate::cli) fn dropped_lines() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lock().dropped_in_total)
}

/// A guard that waits for the last lines when the process ends, even by a panic.
pub(in crate::cli) struct FinishLog;

impl Drop for FinishLog {
    fn drop(&mut self) {
        if let Some(queue) = QUEUE.get() {
            queue.finish();
        }
    }
}

/// Writes a line to standard error. Errors are ignored: a program continues without its log.
fn write_stderr(mut bytes: &[u8]) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    let stderr = std::io::stderr();
    while !bytes.is_empty() {
        match rustix::io::write(&stderr, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let waited = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
                if waited.is_err_and(|error| error != Errno::INTR) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{self, Receiver, Sender};

    fn line(text: &str) -> LogLine {
        LogLine::Stderr(text.as_bytes().to_vec())
    }

    /// A limit that only a broken queue reaches.
    const GENEROUS: Duration = Duration::from_mins(1);

    fn wait_until(queue: &LogQueue, holds: impl Fn(&State) -> bool) {
        let end = Instant::now() + GENEROUS;
        while !holds(&queue.lock()) {
            assert!(Instant::now() < end, "the queue does not reach the expected state");
            std::thread::yield_now();
        }
    }

    /// Creates a queue with room for `lines` lines. Its sink takes one line for each message on the sender.
    fn queue(
        lines: usize,
        patience: Option<Duration>,
    ) -> (Arc<LogQueue>, Sender<()>, Receiver<String>) {
        let (allow, allowed) = mpsc::channel::<()>();
        let (to, written) = mpsc::channel();
        let allowed = Mutex::new(allowed);
        let write = move |line: &LogLine| {
            let (LogLine::Stderr(bytes) | LogLine::Journal(bytes)) = line;
            // A closed channel allows all.
            let _closed = allowed.lock().expect("one thread").recv();
            to.send(String::from_utf8(bytes.clone()).expect("text")).unwrap_or_default();
        };
        let at_end = (Some(Duration::from_millis(100)), None);
        let bounds = Bounds { lines, bytes: BYTES, patience, at_end };
        (LogQueue::new(bounds, Box::new(write), |_| ()), allow, written)
    }

    /// F1: a stalled sink delays neither a line nor the end; all dropped lines are counted.
    #[test]
    fn a_full_queue_drops_lines_and_counts_them() {
        let (queue, allow, written) = queue(3, Some(Duration::ZERO));
        queue.push(line("0"));
        wait_until(&queue, |state| state.is_writing);
        for number in 1..10 {
            queue.push(line(&number.to_string()));
        }
        assert_eq!(queue.dropped(), 6, "one line is being written, and three wait");
        queue.finish();
        drop(allow);
        for number in 0..4 {
            let text = written.recv_timeout(GENEROUS).expect("the sink continues");
            assert_eq!(text, number.to_string());
        }
        wait_until(&queue, State::is_empty);
        assert_eq!(queue.dropped(), 0, "the number of dropped lines is logged");
        assert!(written.try_recv().is_err());
    }

    /// The message about dropped lines is in their place.
    #[test]
    fn dropped_lines_are_counted_at_their_place() {
        let mut state = State::default();
        let bounds = Bounds { lines: 2, ..Bounds::of_daemon() };
        for number in ["0", "1"] {
            assert!(state.has_room(&bounds));
            state.put(line(number));
        }
        assert!(!state.has_room(&bounds));
        state.drop_line();
        state.drop_line();
        assert!(matches!(state.take(), Some(Entry::Line(_))));
        state.put(line("4"));
        assert_eq!(state.dropped, 2);
        let order: Vec<String> = std::iter::from_fn(|| state.take())
            .map(|entry| match entry {
                Entry::Line(LogLine::Stderr(bytes)) => String::from_utf8(bytes).expect("text"),
                Entry::Line(LogLine::Journal(_)) => "journal".to_owned(),
                Entry::Dropped(number) => format!("dropped {number}"),
            })
            .collect();
        assert_eq!(order, ["1", "dropped 2", "4"]);
        assert_eq!((state.dropped, state.lines, state.bytes), (0, 0, 0));
    }

    /// A one-shot command loses no lines with a slow reader.
    #[test]
    fn a_command_waits_for_its_reader() {
        let (queue, allow, written) = queue(2, None);
        let own = Arc::clone(&queue);
        let pushing = std::thread::spawn(move || {
            for number in 0..50 {
                own.push(line(&number.to_string()));
            }
        });
        for _ in 0..50 {
            allow.send(()).expect("the thread waits");
        }
        pushing.join().expect("all pushed");
        let line = |_| written.recv_timeout(GENEROUS).expect("the sink takes every line");
        let lines: Vec<String> = (0..50).map(line).collect();
        assert_eq!(lines, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
