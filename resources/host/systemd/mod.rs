//! systemd, through D-Bus: what units are, what becomes of jobs, and what is told of either. Never polled.
//!
//! There is one connection for each bus, made when it is first needed and shared by all; when it is lost, the next who needs it
//! makes another. It lives on the runtime that also looks after children, so that it does not matter on which one the caller
//! runs. What is told by anybody but the owner of systemd's name is not believed: every user may send signals.

mod connection;
mod connector;
mod fault;
mod jobs;
mod own_change_filter;
mod signals;
mod unit;
mod unit_files;

pub use connection::Subscription;
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

/// Which systemd: the one of the machine, or the one of the user that the daemon runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bus {
    /// The system bus.
    System,
    /// The bus of the user's session.
    Session,
}

/// systemd, as kinds and watches see it.
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
    /// The one behind these D-Bus addresses, where they are given.
    pub(super) fn at(system: Option<String>, session: Option<String>) -> Self {
        let (system, session) =
            (Door::new(system), Door::new(Some(session.unwrap_or_else(own_session))));
        Self { system, session, reloads: [Reloads::default(), Reloads::default()] }
    }

    /// Calls `sink` for all that systemd tells on a bus, until the subscription is dropped or the connection is lost, which is
    /// told last.
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
    /// The systemd of this host.
    #[must_use]
    pub fn systemd(&self) -> &Systemd {
        &self.systemd
    }

    /// A host whose buses are at these D-Bus addresses: for tests.
    #[must_use]
    pub fn with_buses(system: &str, session: &str) -> Self {
        let systemd = Systemd::at(Some(system.to_owned()), Some(session.to_owned()));
        Self { systemd: Arc::new(systemd), ..Self::default() }
    }
}

/// The user's bus, where a login would have put it; `DBUS_SESSION_BUS_ADDRESS` may name that of a desktop without systemd.
fn own_session() -> String {
    let folder = std::env::var("XDG_RUNTIME_DIR").ok().filter(|folder| folder.starts_with('/'));
    let folder =
        folder.unwrap_or_else(|| format!("/run/user/{}", rustix::process::geteuid().as_raw()));
    format!("unix:path={}", escaped(&format!("{folder}/bus")))
}

/// A value within a D-Bus address.
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
