//! A real terminal for a program: a pseudo terminal, what is typed into it, and what is seen on it.

use crate::host::LIMIT;
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Terminal {
    master: File,
    child: Child,
    screen: Arc<Mutex<Seen>>,
}

/// What came out of the program.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts a program in a terminal of so many rows and columns, as the leader of a session of its own.
    pub(crate) fn start(command: &Command, rows: u16, columns: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).expect("a pseudo terminal");
        let slave = File::from(pair.slave);
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg("--wait").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        session.current_dir("/").stdin(slave.try_clone().expect("a copy"));
        session.stdout(slave.try_clone().expect("a copy")).stderr(Stdio::from(slave));
        let child = session.spawn().expect("started");
        // The command holds the other end open, and its reader would never see the end.
        drop(session);
        let master = File::from(pair.master);
        let parser = vt100::Parser::new(rows, columns, 0);
        let screen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let (mut source, to) = (master.try_clone().expect("a copy"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut bytes) {
                let mut seen = to.lock().unwrap_or_else(PoisonError::into_inner);
                seen.parser.process(&bytes[..count]);
                seen.bytes.extend_from_slice(&bytes[..count]);
            }
        });
        Self { master, child, screen }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn type_in(&self, keys: &str) -> &Self {
        (&self.master).write_all(keys.as_bytes()).expect("typed");
        self
    }

    /// What is seen now.
    pub(crate) fn screen(&self) -> String {
        self.lock().parser.screen().contents()
    }

    /// All that was written so far, with its control sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) -> &Self {
        self.wait_until(words, |screen| screen.contains(words))
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> &Self {
        let end = Instant::now() + LIMIT;
        while !is_so(&self.screen()) {
            let screen = self.screen();
            assert!(Instant::now() < end, "`{what}` should be seen on:\n{screen}\n{}", self.raw());
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
