//! The terminal in full-screen mode, restored at the end, even after a panic.

use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use tokio::sync::mpsc;

/// The number of keys that may wait.
const AHEAD: usize = 64;

/// A terminal in full-screen mode.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    events: mpsc::Receiver<Event>,
}

impl Screen {
    /// Enters full-screen mode. A panic restores the terminal before its message.
    pub(super) fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (to, events) = mpsc::channel(AHEAD);
        // Reading blocks; the thread ends with the process.
        let reader = std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while let Ok(event) = event::read() {
                if to.blocking_send(event).is_err() {
                    return;
                }
            }
        });
        if let Err(why) = reader {
            ratatui::restore();
            return Err(why);
        }
        Ok(Self { terminal, events })
    }

    pub(super) fn draw(&mut self, work: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(work).map(|_drawn| ())
    }

    /// Waits for the next key or change of size; `None` if the terminal is gone.
    pub(super) async fn event(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
