//! The request of a check, and the future that answers it.

use crate::copy_digest::CopyDigestSlot;
#[cfg(doc)]
use crate::resource::Resource;
use crate::values::sent_slot::SentSlot;
use std::pin::Pin;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A boxed future that a resource returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parameters of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckRequest {
    /// A refresh is owed: the kind decides the reaction (an exec runs again, a file checks again).
    pub refresh: bool,
    /// A run is requested although nothing may differ: first run of a definition, an event, `retry`. Kinds without
    /// a state to compare run when this or `refresh` is set; others ignore the flag.
    pub run: bool,
    /// Cancelled together with the run.
    pub cancel: CancellationToken,
    /// The slot for the digest of copied sources, if the driver wants the digest.
    pub copies: Option<Arc<CopyDigestSlot>>,
    /// The slot for values that other resources receive, if they receive any. The driver fills the slot
    /// ([`Resource::read_sent`]).
    pub sent: Option<Arc<SentSlot>>,
}
