//! What has happened: each event once, in order, numbered and durable; followed live, read later, and passed on by recorders.
//!
//! Who tells an event hands it over and goes on ([`Teller`]). One thread records what waits and then tells it to whoever follows
//! ([`Scribe`], [`Stream`]). Whoever follows too slowly loses the oldest events and is told how many; nobody else notices.
//! In reading order: `event`, `deeds`, `aside`, `stream`, `alike`, `log`, `scribe`, `recorder`.

mod alike;
mod aside;
mod deeds;
mod event;
mod log;
pub mod recorder;
mod scribe;
mod stream;

pub use aside::{Aside, Failing, PutAside};
pub use deeds::{done, mended};
pub use event::{Event, Happening, Level, what};
pub use log::{
    DATABASE, Log, Mark, Place, Reader, Retention, Unreadable, Unwritable, Wanted, path,
};
pub use scribe::Scribe;
pub use stream::{Follower, Next, Standing, Stream, Teller, stream};
