//! The queue between the log and the thread that writes it: a reader that stalls delays nobody who logs.
//!
//! The queue is bounded. A daemon drops lines while the queue is full, and the thread logs their number at their place as soon as the
//! reader goes on. A one-shot command waits for room on standard error, as every program does on a pipe.

use super::log_journal::JournalSocket;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// One entry of the log, as its sink takes it.
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

/// Bounds of the queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Bounds {
    lines: usize,
    bytes: usize,
    /// The time that a full queue lets a line wait for room; none waits without limit.
    patience: Option<Duration>,
    /// The time that the end of the process gives to a reader that takes nothing, and to all lines together.
    at_end: (Option<Duration>, Option<Duration>),
}

const LINES: usize = 16 * 1024;
const BYTES: usize = 4 << 20;

/// The journal takes entries at once, or it hangs.
const JOURNAL_PATIENCE: Duration = Duration::from_secs(5);

impl Bounds {
    /// A daemon waits for no reader: neither for room, nor for long at its end.
    pub(in crate::cli) fn of_daemon() -> Self {
        let at_end = (Some(Duration::from_millis(400)), Some(Duration::from_millis(700)));
        Self { lines: lines(), bytes: BYTES, patience: Some(Duration::ZERO), at_end }
    }

    /// A one-shot command waits for the reader of its standard error, but not for a journal that hangs.
    pub(in crate::cli) fn of_command(into_journal: bool) -> Self {
        let patience = into_journal.then_some(JOURNAL_PATIENCE);
        Self { lines: lines(), bytes: BYTES, patience, at_end: (patience, None) }
    }
}

/// The number of lines that may wait. Tests set a smaller one.
fn lines() -> usize {
    #[cfg(debug_assertions)]
    if let Some(lines) = std::env::var("STEADFAST_TEST_LOG_LINES").ok().and_then(|n| n.parse().ok())
    {
        return lines;
    }
    LINES
}

/// Writes one line, for as long as that takes.
type Write = Box<dyn Fn(&LogLine) + Send + Sync>;

/// Logs that so many lines were dropped. It runs on the writing thread, so that its line goes straight to the sink.
type TellDropped = fn(u64);

/// Lines on their way to their sink.
pub(in crate::cli) struct LogQueue {
    bounds: Bounds,
    write: Write,
    tell_dropped: TellDropped,
    state: Mutex<State>,
    /// There is a line to write.
    more: Condvar,
    /// A line was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    lines: usize,
    bytes: usize,
    /// Lines that were dropped and are not logged as dropped yet.
    dropped: u64,
    /// The last wait for room was in vain, and no line was written since.
    stalled: bool,
    /// The thread runs.
    has_thread: bool,
    /// The thread writes an entry.
    is_writing: bool,
    /// The number of entries written so far.
    count: u64,
}

enum Entry {
    Line(LogLine),
    /// So many lines were dropped here.
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
    /// This thread writes the log: its own lines go straight to the sink.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

impl LogQueue {
    pub(in crate::cli) fn new(
        bounds: Bounds,
        write: Write,
        tell_dropped: TellDropped,
    ) -> Arc<Self> {
        let (state, more, written) = (Mutex::default(), Condvar::new(), Condvar::new());
        Arc::new(Self { bounds, write, tell_dropped, state, more, written })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a line to the thread. Where the queue is full for longer than its patience, the line is dropped and counted.
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

    /// Starts the thread. The next line tries again if the system has no thread now.
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

    /// Waits for the next entry; the one before is written.
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
            Entry::Dropped(number) => (self.tell_dropped)(*number),
        }
    }

    /// The number of lines that were dropped, until it is logged.
    pub(in crate::cli) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits until all lines are written, as long as the bounds allow.
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

    /// No thread can be started at the end of the process: this one writes.
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

/// Makes the queue of this process. A second call in one process (tests) finds it made.
pub(in crate::cli) fn set_up(bounds: Bounds, tell_dropped: TellDropped) {
    QUEUE.get_or_init(|| {
        let journal = JournalSocket::default();
        let write = move |line: &LogLine| match line {
            LogLine::Stderr(bytes) => write_stderr(bytes),
            LogLine::Journal(entry) => journal.send(entry),
        };
        LogQueue::new(bounds, Box::new(write), tell_dropped)
    });
}

/// Logs a line: through the queue, or directly where the process has none.
pub(in crate::cli) fn log_line(line: LogLine) {
    match (QUEUE.get(), line) {
        (Some(queue), line) => queue.push(line),
        (None, LogLine::Stderr(bytes)) => write_stderr(&bytes),
        (None, LogLine::Journal(entry)) => JournalSocket::default().send(&entry),
    }
}

/// The trouble of the log at this moment, in words.
pub(in crate::cli) fn trouble() -> Option<String> {
    let dropped = QUEUE.get()?.dropped();
    (dropped > 0).then(|| format!("standard error is not read; lines dropped so far: {dropped}"))
}

/// Waits for the last lines when the process ends, also by a panic.
pub(in crate::cli) struct FinishLog;

impl Drop for FinishLog {
    fn drop(&mut self) {
        if let Some(queue) = QUEUE.get() {
            queue.finish();
        }
    }
}

/// Writes a line to standard error, which may be closed, or not let anybody wait for it: a program goes on without its log.
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

    /// A queue with room for `lines` lines. Its sink takes a line for each permission.
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

    /// F1: a sink that takes nothing delays neither a line nor the end; all that is dropped is counted.
    #[test]
    fn a_full_queue_drops_lines_and_counts_them() {
        let (queue, allow, written) = queue(3, Some(Duration::ZERO));
        for number in 0..10 {
            queue.push(line(&number.to_string()));
        }
        // The thread may have taken the first one before the queue was full.
        let dropped = queue.dropped();
        assert!((6..=7).contains(&dropped), "{dropped}");
        queue.finish();
        drop(allow);
        queue.finish();
        assert_eq!(queue.dropped(), 0, "it is told");
        let lines: Vec<String> = written.try_iter().collect();
        let all: Vec<String> = (0..10 - dropped).map(|number| number.to_string()).collect();
        assert_eq!(lines, all);
    }

    /// The line about dropped lines stands at their place.
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

    /// A one-shot command loses no line where its reader is slow.
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
        queue.finish();
        let lines: Vec<String> = written.try_iter().collect();
        assert_eq!(lines, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
