//! What has happened: each event once, in order, numbered and durable; followed live, read later, and passed on by recorders.
//!
//! Who tells an event hands it over and goes on ([`Publisher`]). One thread records what waits and then tells it to whoever follows
//! ([`LogWriter`], [`Stream`]). Whoever follows too slowly loses the oldest events and is told how many; nobody else notices.
//! In reading order: `event`, `deeds`, `aside`, `stream`, `alike`, `log`, `scribe`, `recorder`.

mod audit;
mod bus;
mod event;
pub mod export;
mod log;
mod repeat_filter;

pub use audit::{done, mended};
pub use bus::{Next, Publisher, Standing, Stream, Subscriber, stream};
pub use event::{Event, Level, NewEvent, what};
pub use export::dead_letter_file::{DeadLetter, DeadLetterFile, Failing};
pub use log::writer::LogWriter;
pub use log::{
    DATABASE, Log, Mark, Place, Reader, Retention, Unreadable, Unwritable, Wanted, path,
};
