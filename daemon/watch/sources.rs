//! The interfaces of the event sources besides the kernel: watch commands and systemd. The driver implements them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use steadfast_resources::host::Command;
use steadfast_resources::host::systemd::{Bus, Sink};
use thiserror::Error;

/// Event sources besides the kernel.
#[derive(Clone, Default)]
pub struct ExternalSources {
    /// The source that runs watch commands.
    pub lines: Option<Arc<dyn LineSource>>,
    /// The source of systemd events.
    pub units: Option<Arc<dyn UnitSource>>,
}

impl fmt::Debug for ExternalSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lines, units) = (self.lines.is_some(), self.units.is_some());
        f.debug_struct("Sources").field("lines", &lines).field("units", &units).finish()
    }
}

/// A boxed future of an event source.
pub type SourceFuture<'p, T> = Pin<Box<dyn Future<Output = T> + Send + 'p>>;

/// The reason for which a source gives no events.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// A source that runs watch commands.
pub trait LineSource: Send + Sync {
    /// Starts a command; it runs until the stream is dropped.
    fn open<'s>(
        &'s self,
        command: &'s Command,
    ) -> SourceFuture<'s, Result<Box<dyn LineStream>, SourceError>>;
}

/// A running watch command.
pub trait LineStream: Send {
    /// Waits for a line; returns false when there are no more.
    fn next(&mut self) -> SourceFuture<'_, bool>;

    /// Returns a description of the command's end.
    fn ended(self: Box<Self>) -> SourceFuture<'static, String>;
}

/// A source of systemd events.
pub trait UnitSource: Send + Sync {
    /// Subscribes to the events of a bus; `sink` receives them until the stream is dropped.
    fn subscribe(
        &self,
        bus: Bus,
        sink: Sink,
    ) -> SourceFuture<'_, Result<Box<dyn UnitStream>, SourceError>>;

    /// Returns the object path of a unit, given any of its names; `None` if the unit is not loaded. Must not load the
    /// unit.
    fn find<'s>(
        &'s self,
        bus: Bus,
        unit: &'s str,
    ) -> SourceFuture<'s, Result<Option<String>, SourceError>>;

    /// Returns all names of the unit with this object path.
    fn names<'s>(
        &'s self,
        bus: Bus,
        path: &'s str,
    ) -> SourceFuture<'s, Result<Vec<String>, SourceError>>;
}

/// A subscription to one bus.
pub trait UnitStream: Send {
    /// Completes when no more events will come.
    fn lost(&mut self) -> SourceFuture<'_, ()>;
}
