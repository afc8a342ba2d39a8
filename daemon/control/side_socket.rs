//! Another socket beside the control socket, with the same owner, group and protection.

use super::address::{Address, BindError, Place};
use tokio::net::UnixStream;

/// A bound socket. The path is removed when the value is dropped.
#[derive(Debug)]
pub struct SideSocket {
    address: Address,
    place: Place,
    group: Option<u32>,
}

impl SideSocket {
    /// Binds the socket. The socket of a dead daemon is replaced.
    ///
    /// # Errors
    /// [`BindError`], as for the control socket.
    pub async fn bind(address: Address, group: Option<u32>) -> Result<Self, BindError> {
        let place = address.listen(group).await?;
        Ok(Self { address, place, group })
    }

    /// Accepts a connection.
    ///
    /// # Errors
    /// The error of the system, usually a lack of file descriptors.
    pub async fn accept(&self) -> std::io::Result<UnixStream> {
        self.place.listener.accept().await.map(|(stream, _)| stream)
    }

    /// Creates the socket again if it was removed. Returns true if it was.
    ///
    /// # Errors
    /// [`BindError`] if the socket was removed and cannot be created.
    pub async fn renew(&mut self) -> Result<bool, BindError> {
        let was_lost = self.address.has_lost(&self.place);
        if was_lost {
            self.address.listen_again(&mut self.place, self.group).await?;
        }
        Ok(was_lost)
    }
}

impl Drop for SideSocket {
    fn drop(&mut self) {
        self.address.leave(&self.place);
    }
}
