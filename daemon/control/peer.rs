//! Permissions of a client, by the user that the kernel reports for its connection (`SO_PEERCRED`).

use super::protocol::Request;
use rustix::process::geteuid;

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user id, as the kernel reports it.
    pub uid: u32,
}

impl Peer {
    /// Returns true for root and for the user of the daemon.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self.uid == 0 || self.uid == geteuid().as_raw()
    }

    /// Returns true if the peer may make a request. Every peer may read; only trusted peers may change.
    #[must_use]
    pub fn may(self, ask: &Request) -> bool {
        !ask.changes() || self.is_trusted()
    }
}
