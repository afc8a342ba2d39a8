//! Who may ask for what: told by the kernel, for each connection (`SO_PEERCRED`).

use super::protocol::Request;
use rustix::process::geteuid;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user, as the kernel says.
    pub uid: u32,
}

impl Peer {
    /// Root, or who the daemon runs as.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self.uid == 0 || self.uid == geteuid().as_raw()
    }

    /// Whoever can connect may read; only root, and who the daemon runs as, may change.
    #[must_use]
    pub fn may(self, ask: &Request) -> bool {
        !ask.changes() || self.is_trusted()
    }
}
