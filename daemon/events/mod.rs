//! What has happened: each event once, in order, numbered and durable; followed live, read later, and passed on by recorders.
//!
//! Who tells an event hands it over and goes on ([`Teller`]). One thread records what waits and then tells it to whoever follows
//! ([`Scribe`], [`Stream`]). Whoever follows too slowly loses the oldest events and is told how many; nobody else notices.
//! In reading order: `event`, `deeds`, `aside`, `stream`, `alike`, `log`, `scribe`, `recorder`.

mod audit;
mod bus;
mod event;
pub mod export;
mod log;
mod repeat_filter;

pub use audit::{done, mended};
pub use bus::{Follower, Next, Standing, Stream, Teller, stream};
pub use event::{Event, Happening, Level, what};
pub use export::dead_letter_file::{Aside, Failing, PutAside};
pub use log::writer::Scribe;
pub use log::{
    DATABASE, Log, Mark, Place, Reader, Retention, Unreadable, Unwritable, Wanted, path,
};
