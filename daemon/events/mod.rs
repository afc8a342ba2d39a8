//! Events: each is recorded once, in order, numbered and durable; they can be followed live, read later, and exported.
//!
//! A publisher hands in an event and continues ([`Publisher`]). One thread records the waiting events and then sends
//! them to the subscribers ([`LogWriter`], [`Stream`]). A slow subscriber loses the oldest events and receives their
//! number; it must never delay anybody else. An event is data (`api::EventKind`); `render` alone turns the data into
//! words. Reading order: `event`, `render`, `audit` and `session` (events that several commands publish),
//! `event_queue`, `hidden_values`, `repeat_filter`, `log`, `export`.

mod audit;
mod event;
mod event_queue;
pub mod export;
mod hidden_values;
mod log;
pub mod render;
mod repeat_filter;
mod session;

pub use audit::{done, integrity, maintenance_event};
pub use event::{NewEvent, PublishedEvent, is_detail};
pub use event_queue::DebugRecording;
pub use event_queue::{Next, Publisher, Standing, Stream, Subscriber, stream};
pub use export::dead_letter_file::{DeadLetter, DeadLetterFile, Failing};
pub use hidden_values::{without_messages, without_values};
pub use log::writer::LogWriter;
pub use log::{
    DATABASE, Log, Mark, Place, Reader, Retention, Unreadable, Unwritable, Wanted, path,
};
pub use session::session_start;
