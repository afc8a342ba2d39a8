//! A pseudo terminal for a program, with its input and its screen.

use crate::host::LIMIT;
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Terminal {
    master: File,
    child: Child,
    screen: Arc<Mutex<Seen>>,
}

/// The output of the program.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts a program in a terminal of this size, as the leader of its own session.
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
        // The command holds the other end open, and the reader would never see the end.
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

    /// Returns the visible text.
    pub(crate) fn screen(&self) -> String {
        self.lock().parser.screen().contents()
    }

    /// Returns all output so far, with its control sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Returns true while the alternate screen of full-screen programs is shown.
    pub(crate) fn is_alternate(&self) -> bool {
        self.lock().parser.screen().alternate_screen()
    }

    pub(crate) fn hides_cursor(&self) -> bool {
        self.lock().parser.screen().hide_cursor()
    }

    /// Returns true if input is echoed and read by lines, as a shell expects.
    pub(crate) fn is_cooked(&self) -> bool {
        use rustix::termios::{LocalModes, tcgetattr};
        let modes = tcgetattr(&self.master).expect("a terminal").local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Presses a key repeatedly until these words are visible: the reply to an earlier key can replace them at any
    /// time.
    #[track_caller]
    pub(crate) fn press_until(&self, key: &str, words: &str) -> &Self {
        let end = Instant::now() + LIMIT;
        loop {
            self.type_in(key);
            let again = Instant::now() + Duration::from_millis(500);
            while Instant::now() < again {
                if self.screen().contains(words) {
                    return self;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let screen = self.screen();
            assert!(Instant::now() < end, "`{words}` should be seen on:\n{screen}");
        }
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

    pub(crate) fn resize(&self, rows: u16, columns: u16) -> &Self {
        self.lock().parser.screen_mut().set_size(rows, columns);
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.master.as_fd(), size).expect("resized");
        self
    }

    /// Returns the process of the program, without the one that created its session.
    pub(crate) fn program(&self) -> i32 {
        let parent = self.child.id().to_string();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let end = Instant::now() + LIMIT;
        loop {
            let text = std::fs::read_to_string(&children).unwrap_or_default();
            if let Some(pid) = text.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
                return pid;
            }
            // Without a child, the process itself has become the program.
            let comm = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
            if !comm.is_empty() && comm.trim() != "setsid" {
                return i32::try_from(self.child.id()).expect("a process number");
            }
            assert!(Instant::now() < end, "the program is not started");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the program; returns its exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        crate::host::ends(&mut self.child, LIMIT)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
