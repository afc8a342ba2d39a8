//! The sinks: every place that can show text is searched for canaries.

use super::table::CANARY;
use crate::host::Host;
use crate::output::Output;
use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use steadfast::history::Reader;
use steadfast_resources::{PriorContent, PriorEntry, PriorShape, PriorState};

/// The forbidden words: canaries, and generated passwords once they are known.
pub(super) struct Silence<'a> {
    host: &'a Host,
    words: Vec<String>,
    /// Public words that the state must contain; otherwise the search itself is wrong.
    kept: Vec<String>,
}

impl<'a> Silence<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        Self { host, words: vec![CANARY.to_owned()], kept: Vec::new() }
    }

    pub(super) fn also(&mut self, word: String) {
        assert!(word.len() > 20, "a word that is found nowhere by chance: {word}");
        self.words.push(word);
    }

    pub(super) fn stands_in_the_state(&mut self, word: &str) {
        self.kept.push(word.to_owned());
    }

    #[track_caller]
    pub(super) fn holds(&self, what: &str, bytes: &[u8]) {
        demand(what, bytes, self.words.iter());
    }

    /// Runs a command on the graph and searches its output.
    pub(super) fn ask(&self, words: &[&str]) -> Output {
        let mut command = self.host.command(words);
        surround(self.host, &mut command);
        self.search(&words.join(" "), command)
    }

    /// Runs a command on the daemon and searches its output.
    pub(super) fn ask_daemon(&self, words: &[&str]) -> Output {
        let mut command = self.host.bare(words);
        command.arg("--state-dir").arg(self.host.path("state"));
        self.search(&words.join(" "), command)
    }

    fn search(&self, what: &str, command: Command) -> Output {
        let output = self.host.finish(command);
        self.holds(what, output.to_string().as_bytes());
        output
    }

    /// Searches the names and contents of all files below the state directory.
    pub(super) fn holds_in_the_state(&self) {
        let mut all = Vec::new();
        self.holds_below(&self.host.path("state"), &mut all);
        for word in &self.kept {
            let is_kept = all.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(is_kept, "{word} is in the state, so it is searched rightly");
        }
        assert!(!all.is_empty(), "the state was looked at");
        self.holds_in_the_history();
    }

    /// Searches the unpacked prior contents of the history.
    fn holds_in_the_history(&self) {
        let reader = Reader::open(&self.host.path("state")).expect("a history that can be read");
        // Without a change there is no history.
        let Some(reader) = reader else { return };
        let entries = reader.entries(None, 1 << 40).expect("entries").into_iter();
        for entry in entries.map(|one| one.entry().expect("readable")) {
            let former = reader.former(&entry).expect("what was there");
            if let PriorState::Thing(PriorEntry { shape, .. }) = former {
                let bytes = match shape {
                    PriorShape::File(_, PriorContent::Bytes(bytes)) => bytes,
                    PriorShape::Link(target) => target,
                    _ => Vec::new(),
                };
                demand(&format!("history: {}", entry.resource), &bytes, self.words.iter());
            }
        }
    }

    fn holds_below(&self, directory: &Path, all: &mut Vec<u8>) {
        for entry in std::fs::read_dir(directory).expect("listed").flatten() {
            let (path, name) = (entry.path(), entry.path().display().to_string());
            self.holds("the name of a file of the state", name.as_bytes());
            if path.is_dir() {
                self.holds_below(&path, all);
            } else if let Ok(bytes) = std::fs::read(&path) {
                self.holds(&name, &bytes);
                all.extend(bytes);
            }
        }
    }
}

#[track_caller]
fn demand<'a>(what: &str, bytes: &[u8], words: impl Iterator<Item = &'a String>) {
    for word in words {
        let at = bytes.windows(word.len()).position(|window| window == word.as_bytes());
        if let Some(at) = at {
            let around = &bytes[at.saturating_sub(600)..bytes.len().min(at + 200)];
            panic!("S-6: {what} tells a secret:\n…{}…", String::from_utf8_lossy(around));
        }
    }
}

/// Sets the highest log level, the credentials directory and the notification socket of systemd.
pub(super) fn surround(host: &Host, command: &mut Command) {
    command.env("STEADFAST_LOG", "trace").env("RUST_BACKTRACE", "full");
    command.env("CREDENTIALS_DIRECTORY", host.path("credentials"));
}

/// A thread that collects the arguments of all processes.
pub(super) struct Onlooker {
    seen: Arc<Mutex<BTreeSet<Vec<u8>>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Onlooker {
    pub(super) fn start() -> Self {
        let (seen, end) =
            (Arc::<Mutex<BTreeSet<Vec<u8>>>>::default(), Arc::<AtomicBool>::default());
        let (into, until) = (Arc::clone(&seen), Arc::clone(&end));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let entries = std::fs::read_dir("/proc").expect("listed").flatten();
                let words = entries.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
                into.lock().unwrap_or_else(PoisonError::into_inner).extend(words);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        Self { seen, end, thread: Some(thread) }
    }

    /// Returns all collected arguments.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take().expect("once").join().expect("it ends");
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().flatten().copied().collect()
    }
}

/// A socket in place of systemd's, which collects the status lines.
pub(super) struct OutputSink(Arc<Mutex<Vec<u8>>>);

impl OutputSink {
    pub(super) fn open(host: &Host, name: &str) -> Self {
        let socket = UnixDatagram::bind(host.path(name)).expect("bound");
        let heard = Arc::<Mutex<Vec<u8>>>::default();
        let into = Arc::clone(&heard);
        // The thread ends with the process of this test.
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            while let Ok(length) = socket.recv(&mut buffer) {
                let mut all = into.lock().unwrap_or_else(PoisonError::into_inner);
                all.extend_from_slice(&buffer[..length]);
            }
        });
        Self(heard)
    }

    pub(super) fn heard(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
