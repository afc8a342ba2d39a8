//! The right to change the host: minted by the driver for one run, after its intent is recorded; or for a step that a plan does in an
//! overlay, where nothing of the host is changed.

use crate::prior_state::PriorStateRecorder;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// The key that mints permits. There is one in a process, handed out once, in `main`, to the driver.
#[derive(Debug)]
pub struct MintKey(());

static TAKEN: AtomicBool = AtomicBool::new(false);

impl MintKey {
    /// The key, for the first who asks; nobody else ever gets one.
    #[must_use]
    pub fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::SeqCst)).then_some(Self(()))
    }

    /// A permit for one run; it holds until `cancel` is cancelled.
    #[must_use]
    #[expect(clippy::unused_self, reason = "having the key is the point")]
    pub fn mint(&self, cancel: CancellationToken) -> Permit {
        Permit { cancel, keeper: None, members: Vec::new() }
    }
}

/// The right of one run to change the host. Every host function that mutates takes one and looks whether it still holds.
///
/// It cannot be made outside this module:
/// ```compile_fail
/// let permit = steadfast_resources::Permit { cancel: Default::default(), keeper: None };
/// ```
/// nor copied:
/// ```compile_fail
/// fn twice(permit: steadfast_resources::Permit) -> steadfast_resources::Permit { permit.clone() }
/// ```
/// nor can the key that mints it be made:
/// ```compile_fail
/// let key = steadfast_resources::MintKey(());
/// ```
#[derive(Debug)]
pub struct Permit {
    cancel: CancellationToken,
    keeper: Option<Arc<dyn PriorStateRecorder>>,
    /// Of a run of several resources: who keeps for each.
    members: Vec<Option<Arc<dyn PriorStateRecorder>>>,
}

/// A permit was revoked: deadline, stop or lost lease. Nothing further may be changed in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run was cancelled before this step")
    }
}

impl std::error::Error for Revoked {}

impl Permit {
    /// Whether it still holds: called by each host function before it changes anything.
    pub fn check(&self) -> Result<(), Revoked> {
        if self.cancel.is_cancelled() { Err(Revoked) } else { Ok(()) }
    }

    /// The same, for a run whose changes are kept by this one.
    #[must_use]
    pub fn kept_by(self, keeper: Option<Arc<dyn PriorStateRecorder>>) -> Self {
        Self { keeper, ..self }
    }

    /// The same for a run of several resources, in their order.
    #[must_use]
    pub fn kept_by_each(self, members: Vec<Option<Arc<dyn PriorStateRecorder>>>) -> Self {
        Self { members, ..self }
    }

    /// Who keeps for one of several resources, by its position; of one resource: who keeps for that.
    pub(crate) fn keeper_of(&self, at: usize) -> Option<Arc<dyn PriorStateRecorder>> {
        self.members.get(at).unwrap_or(&self.keeper).clone()
    }

    /// Who keeps what this run takes away.
    pub(crate) fn keeper(&self) -> Option<&dyn PriorStateRecorder> {
        self.keeper.as_deref()
    }

    /// Waits until it is revoked; for runs that wait for something else meanwhile (a child process).
    pub async fn revoked(&self) {
        self.cancel.cancelled().await;
    }
}
