//! The trait that every kind implements.

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_values::Invalid;
use crate::footprint::{ClosedDirectory, Footprint};
use crate::host::Host;
use crate::permit::Permit;
use crate::values::sent_values::{Sent, ValueRetention};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use steadfast_traits::{ExecutorKind, OnInterrupt, RunPolicy, Traits};
use tokio_util::sync::CancellationToken;

/// A declared resource, with access to the host and without knowledge of the graph.
/// [`crate::KindSpec::build`] has validated its fields, so every existing resource is valid.
pub trait Resource: Debug + Send + Sync {
    /// Returns everything that the resource declares about itself. The value is computed on demand.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    /// Returns a warning if giving this field a secret is most likely a mistake.
    fn doubts_of_secret(&self, field: &str) -> Option<Invalid> {
        let _ = field;
        None
    }

    /// Returns the reason if the last check has spared the object that this resource was to remove.
    fn left_alone_reason(&self) -> Option<String> {
        None
    }

    /// Returns a copy of the resource that knows the paths, sorted, that other resources claim below its
    /// [`Footprint::purge_root`] or [`Footprint::spares_below`]. The loader calls this once, when the graph is
    /// complete; the paths belong to the resource's definition.
    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        drop(claimed);
        None
    }

    /// Returns a copy of the resource that changes something only in this directory above its path. The loader calls
    /// this once, with the innermost declared directory ([`Footprint::closed_directory`]); the directory belongs to the
    /// resource's definition.
    fn with_closed_directory(&self, directory: ClosedDirectory) -> Option<Arc<dyn Resource>> {
        drop(directory);
        None
    }

    /// Returns a copy of the resource that knows the declared owner of the file that it edits
    /// ([`Footprint::file_owner`]). The loader calls this once; the owner belongs to the resource's definition.
    fn with_file_owner(&self, _owner: &str) -> Option<Arc<dyn Resource>> {
        None
    }

    /// Returns the values that the last successful run sends to other resources; empty if the run gave no new
    /// ones.
    fn sends(&self) -> Sent {
        Sent::new()
    }

    /// Returns true if the resource can send the value of this key, one of the keys of its kind.
    fn sends_key(&self, key: &str) -> bool {
        !key.is_empty()
    }

    /// Reads the values for other resources from the host. The driver calls this after a check that found nothing to
    /// do and after an apply, if another resource receives a value of this one. None for a resource whose values need
    /// no further reading.
    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        let _ = (host, cancel);
        None
    }

    /// Returns a copy of the resource that knows which of its sent values are stored under its present
    /// definition, for kinds whose state these values are.
    fn with_sent(&self, kept: ValueRetention) -> Option<Arc<dyn Resource>> {
        match kept {
            ValueRetention::Known | ValueRetention::Sealed => None,
        }
    }

    /// Returns true if an apply may change this unclaimed path. By default, a resource with
    /// [`ExecutorKind::Command`] that is not confined may change anything.
    fn may_change(&self, _path: &Path) -> bool {
        let traits = self.traits();
        traits.executor == ExecutorKind::Command && !traits.confined
    }

    /// Returns true if the sent values are answers: expressions of the graph use them too.
    fn sends_answers(&self) -> bool {
        false
    }

    /// Returns the traits that the engine needs.
    fn traits(&self) -> Traits {
        Traits::default()
    }

    /// Compares the host with the declaration and changes nothing.
    ///
    /// With [`ExecutorKind::Thread`] the future may block and runs on its own thread; with
    /// [`ExecutorKind::Command`] the future never blocks. A check returns as soon as possible after `ask.cancel`
    /// is cancelled.
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult>;

    /// Carries out a change. An apply verifies the premise of the change again, and stops at the first step that
    /// the permit rejects. By default an apply fails: a resource whose check finds no differences has none.
    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async {
            let failure = Failure::new("this resource changes nothing, and was to be applied");
            Outcome::Failed { failure, touched: false }
        })
    }
}
