//! The removal of a directory under a condition, for the undo of its creation.

use crate::change::CheckResult;
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::host::Host;
use crate::parts::Sequence;
use crate::parts::whole_file::absent_tree;
use crate::resource::{Resource, Traits};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The condition of a removal.
pub(crate) trait RemovalGuard: Debug + Send + Sync {
    /// Examines the directory, which exists.
    ///
    /// # Errors
    ///
    /// The failure is the reason that the directory must stay.
    fn guard<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<(), Failure>>;
}

/// Builds the resource that removes a directory with everything in it, if the condition holds.
///
/// # Errors
///
/// Fails if the path cannot be removed, for example because it is protected.
pub(crate) fn guarded_removal(
    guard: impl RemovalGuard + 'static,
    path: &Path,
) -> Result<Arc<dyn Resource>, Failure> {
    let refused = |_problems| Failure::new(format!("{} cannot be removed", path.display()));
    let absent = absent_tree(path).map_err(refused)?;
    let guard: Arc<dyn Resource> = Arc::new(Guarded { path: path.to_owned(), guard });
    Ok(Arc::new(Sequence::new(vec![guard, absent])))
}

/// The first element of the removal: it changes nothing, and fails if the condition does not hold.
#[derive(Debug)]
struct Guarded<G> {
    path: PathBuf,
    guard: G,
}

impl<G: RemovalGuard> Resource for Guarded<G> {
    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            if host.look(&self.path).await.is_err() {
                return CheckResult::Same;
            }
            match self.guard.guard(host, &ask.cancel).await {
                Ok(()) => CheckResult::Same,
                Err(failure) => CheckResult::Unknown(failure),
            }
        })
    }
}
