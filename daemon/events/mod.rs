//! Events: each is recorded once, in order, numbered and durable; they can be followed live, read later, and exported.
//!
//! A publisher hands in an event and continues ([`Publisher`]). One thread records the waiting events and then sends
//! them to the subscribers ([`LogWriter`], [`Stream`]). A slow subscriber loses the oldest events and receives their
//! number; it must never delay anybody else. Reading order: `event`, `audit`, `bus`, `repeat_filter`, `log`, `export`.

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
