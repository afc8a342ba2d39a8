//! The trait that every kind implements.

use crate::change::{Change, CheckResult, Outcome};
use crate::copy_digest::CopyDigestSlot;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::Invalid;
use crate::permit::Permit;
use crate::sent_slot::SentSlot;
use crate::values::{Sent, ValueRetention};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
pub use steadfast_traits::{ExecutorKind, OnInterrupt, RunPolicy, Traits};
use tokio_util::sync::CancellationToken;

/// A directory that a resource declares with a mode that does not let others enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDirectory {
    /// The path.
    pub path: PathBuf,
    /// The declared owner, by name or number.
    pub owner: Option<String>,
}

/// A boxed future that a resource returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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

/// The state of a path after an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathAfter {
    /// The path does not exist.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// An object that no path leads through, or an unknown state.
    #[default]
    Other,
}

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
