//! The lease of one host: the lock of the state directory gives the right to act.

use super::{Answer, Lease, LeaseError, Renewal, Token};
use tokio::sync::watch;

/// The lease of a daemon that shares its right with no other host. It is held as soon as the state directory is locked,
/// and is never lost, because the kernel takes the lock from no living process.
#[derive(Debug)]
pub struct LocalLease {
    epoch: watch::Receiver<Option<u64>>,
}

impl LocalLease {
    /// Returns a lease that follows a lock. `epoch` is the epoch of the lock, none until the lock is taken.
    #[must_use]
    pub fn new(epoch: watch::Receiver<Option<u64>>) -> Self {
        Self { epoch }
    }
}

impl Lease for LocalLease {
    /// Waits for the lock.
    fn acquire(&mut self) -> Answer<'_, Result<Token, LeaseError>> {
        Box::pin(async move {
            let taken = self.epoch.wait_for(Option::is_some).await.map(|epoch| *epoch);
            match taken {
                Ok(Some(epoch)) => Ok(Token { epoch, lifetime: None }),
                Ok(None) | Err(_) => {
                    Err(LeaseError("the state directory is not locked any more".to_owned()))
                }
            }
        })
    }

    fn renew(&mut self, token: Token) -> Answer<'_, Renewal> {
        Box::pin(std::future::ready(Renewal::Renewed(token)))
    }

    fn release(&mut self, _token: Token) -> Answer<'_, Result<(), LeaseError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
