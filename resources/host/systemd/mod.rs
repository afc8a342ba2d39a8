//! systemd through D-Bus: the properties of units, the results of jobs, and signals about both. Nothing may
//! poll.
//!
//! Each bus has one shared connection, made on demand; after a loss, the next caller makes another. The
//! connection lives on the runtime that supervises children, so the caller's runtime does not matter. Signals
//! from any sender except the owner of systemd's name must be ignored, because every user may send signals.
//!
//! Reading order: `connector.rs` and `connection.rs`, `signals.rs`, `unit.rs` (properties), `facts.rs` (properties that
//! others receive), `drop_ins.rs`, `unit_files.rs`, `jobs.rs`, `own_change_filter.rs`, `fault.rs`.

mod connection;
mod connector;
mod drop_ins;
mod facts;
mod fault;
mod jobs;
mod own_change_filter;
mod signals;
mod unit;
mod unit_files;

pub use connection::Subscription;
pub use facts::UnitFacts;
pub use jobs::{End, Verb};
pub use own_change_filter::{OwnChange, Seen};
pub use signals::{Activity, Happening, Sink};
pub use unit::Unit;
pub use unit_files::{Applied, Install};

use crate::failure::Failure;
use connection::BusConnection;
use connector::Door;
use std::sync::Arc;
use unit_files::Reloads;

/// One of the systemd instances: that of the machine, or that of the daemon's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bus {
    /// The system bus.
    System,
    /// The bus of the user's session.
    Session,
}

/// systemd as seen by kinds and watches.
#[derive(Debug)]
pub struct Systemd {
    system: Door,
    session: Door,
    reloads: [Reloads; 2],
}

impl Default for Systemd {
    fn default() -> Self {
        Self::at(None, None)
    }
}

impl Systemd {
    /// Makes a systemd with these D-Bus addresses, where given.
    pub(super) fn at(system: Option<String>, session: Option<String>) -> Self {
        let (system, session) =
            (Door::new(system), Door::new(Some(session.unwrap_or_else(own_session))));
        Self { system, session, reloads: [Reloads::default(), Reloads::default()] }
    }

    /// Calls `sink` for all events of a bus until the subscription is dropped or the connection is lost. The loss
    /// is the last event.
    pub async fn subscribe(&self, bus: Bus, sink: Sink) -> Result<Subscription, Failure> {
        Ok(self.link(bus).await?.subscribe(sink))
    }

    async fn link(&self, bus: Bus) -> Result<Arc<BusConnection>, Failure> {
        match bus {
            Bus::System => self.system.link(bus).await,
            Bus::Session => self.session.link(bus).await,
        }
    }

    fn reloads(&self, bus: Bus) -> &Reloads {
        let [system, session] = &self.reloads;
        match bus {
            Bus::System => system,
            Bus::Session => session,
        }
    }
}

impl super::Host {
    /// Returns the systemd of this host.
    #[must_use]
    pub fn systemd(&self) -> &Systemd {
        &self.systemd
    }

    /// Makes a host with buses at these D-Bus addresses, for tests.
    #[must_use]
    pub fn with_buses(system: &str, session: &str) -> Self {
        let systemd = Systemd::at(Some(system.to_owned()), Some(session.to_owned()));
        Self { systemd: Arc::new(systemd), ..Self::default() }
    }
}

/// Returns the address of the user's bus as set by a login. `DBUS_SESSION_BUS_ADDRESS` may name the bus of a
/// desktop without systemd.
fn own_session() -> String {
    let folder = std::env::var("XDG_RUNTIME_DIR").ok().filter(|folder| folder.starts_with('/'));
    let folder =
        folder.unwrap_or_else(|| format!("/run/user/{}", rustix::process::geteuid().as_raw()));
    format!("unix:path={}", escaped(&format!("{folder}/bus")))
}

/// Escapes a value for a D-Bus address.
fn escaped(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/.\\*".contains(&byte);
    let byte = |byte| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
    };
    value.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_value_cannot_add_to_an_address() {
        assert_eq!(escaped("/run/user/0/bus"), "/run/user/0/bus");
        assert_eq!(escaped("/a b,guid=1;x"), "/a%20b%2cguid%3d1%3bx");
    }
}
