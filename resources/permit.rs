//! The permit: the right of one run to change the host. The driver mints a permit after recording the run's
//! intent. A plan also mints permits for steps in an overlay, which changes nothing of the host.

use crate::prior_state::PriorStateRecorder;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// The key that mints permits. A process has one key, which `main` hands to the driver once.
#[derive(Debug)]
pub struct MintKey(());

static TAKEN: AtomicBool = AtomicBool::new(false);

impl MintKey {
    /// Returns the key to the first caller, and nothing to every later one.
    #[must_use]
    pub fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::SeqCst)).then_some(Self(()))
    }

    /// Mints a permit for one run, valid until `cancel` is cancelled. `recorders` store the prior states.
    #[must_use]
    #[expect(clippy::unused_self, reason = "having the key is the point")]
    pub fn mint(&self, cancel: CancellationToken, recorders: Recorders) -> Permit {
        let (keeper, members) = match recorders {
            Recorders::None => (None, Vec::new()),
            Recorders::One(keeper) => (Some(keeper), Vec::new()),
            Recorders::Each(members) => (None, members),
        };
        Permit { cancel, keeper, members }
    }
}

/// The recorders of the prior states of a run.
#[derive(Debug)]
pub enum Recorders {
    /// Nothing is recorded: the run changes no managed object, or changes it in an overlay.
    None,
    /// One recorder for the whole run.
    One(Arc<dyn PriorStateRecorder>),
    /// One recorder for each resource of a run of several, in their order; none for a resource without records.
    Each(Vec<Option<Arc<dyn PriorStateRecorder>>>),
}

impl From<Option<Arc<dyn PriorStateRecorder>>> for Recorders {
    fn from(recorder: Option<Arc<dyn PriorStateRecorder>>) -> Self {
        recorder.map_or(Self::None, Self::One)
    }
}

/// The right of one run to change the host. Every mutating function of the host takes a permit and checks its
/// validity.
///
/// A permit cannot be made outside this module:
/// ```compile_fail
/// let permit = steadfast_resources::Permit { cancel: Default::default(), keeper: None };
/// ```
/// A permit cannot be copied:
/// ```compile_fail
/// fn twice(permit: steadfast_resources::Permit) -> steadfast_resources::Permit { permit.clone() }
/// ```
/// The key that mints permits cannot be made either:
/// ```compile_fail
/// let key = steadfast_resources::MintKey(());
/// ```
#[derive(Debug)]
pub struct Permit {
    cancel: CancellationToken,
    keeper: Option<Arc<dyn PriorStateRecorder>>,
    /// For a run of several resources: the recorder of prior states of each.
    members: Vec<Option<Arc<dyn PriorStateRecorder>>>,
}

/// The error of a revoked permit: deadline, stop or lost lease. The run must not change anything further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run was cancelled before this step")
    }
}

impl std::error::Error for Revoked {}

impl Permit {
    /// Returns an error if the permit was revoked. Each host function calls this before it changes anything.
    ///
    /// # Errors
    ///
    /// The permit was revoked: nothing further may be changed.
    pub fn check(&self) -> Result<(), Revoked> {
        if self.cancel.is_cancelled() { Err(Revoked) } else { Ok(()) }
    }

    /// Returns the recorder of one of several resources, by its position; for a run of one resource, the run's
    /// recorder.
    pub(crate) fn keeper_of(&self, at: usize) -> Option<Arc<dyn PriorStateRecorder>> {
        self.members.get(at).unwrap_or(&self.keeper).clone()
    }

    /// Returns the recorder of this run's prior states.
    pub(crate) fn keeper(&self) -> Option<&dyn PriorStateRecorder> {
        self.keeper.as_deref()
    }

    /// Makes a copy for another thread that works for this run. The copy is revoked together with this permit.
    pub(crate) fn for_thread(&self) -> Self {
        let Self { cancel, keeper, members } = self;
        Self { cancel: cancel.clone(), keeper: keeper.clone(), members: members.clone() }
    }

    /// Makes a copy for a step that belongs to one of several resources, by its position: the copy has the recorder of
    /// that resource.
    pub(crate) fn for_member(&self, at: usize) -> Self {
        Self { cancel: self.cancel.clone(), keeper: self.keeper_of(at), members: Vec::new() }
    }

    /// Waits for the revocation of the permit, for runs that wait for something else meanwhile (a child process).
    pub async fn revoked(&self) {
        self.cancel.cancelled().await;
    }
}
