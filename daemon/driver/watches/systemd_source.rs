//! Events of systemd, received through the host.

use crate::watch::{SourceError, SourceFuture, UnitSource, UnitStream};
use steadfast_resources::Host;
use steadfast_resources::host::systemd::{Bus, Sink, Subscription};

/// The host as a source of events of systemd units.
#[derive(Debug)]
pub(in crate::driver) struct HostUnits(pub(in crate::driver) Host);

impl UnitSource for HostUnits {
    fn subscribe(
        &self,
        bus: Bus,
        sink: Sink,
    ) -> SourceFuture<'_, Result<Box<dyn UnitStream>, SourceError>> {
        Box::pin(async move {
            let subscription = self.0.systemd().subscribe(bus, sink).await;
            let subscription = subscription.map_err(|failure| SourceError(failure.what))?;
            Ok(Box::new(Stream(subscription)) as Box<dyn UnitStream>)
        })
    }

    fn find<'s>(
        &'s self,
        bus: Bus,
        unit: &'s str,
    ) -> SourceFuture<'s, Result<Option<String>, SourceError>> {
        Box::pin(async move {
            self.0.systemd().find(bus, unit).await.map_err(|failure| SourceError(failure.what))
        })
    }

    fn names<'s>(
        &'s self,
        bus: Bus,
        path: &'s str,
    ) -> SourceFuture<'s, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            self.0.systemd().names(bus, path).await.map_err(|failure| SourceError(failure.what))
        })
    }
}

struct Stream(Subscription);

impl UnitStream for Stream {
    fn lost(&mut self) -> SourceFuture<'_, ()> {
        Box::pin(self.0.lost())
    }
}
