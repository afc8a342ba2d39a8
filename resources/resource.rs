//! The trait that every kind implements.

use crate::change::{Change, CheckResult, Outcome};
use crate::copy_digest::CopyDigestSlot;
use crate::dependency::{HostObject, Need};
use crate::host::Host;
use crate::kind::Invalid;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::transaction::Grouping;
use crate::values::{Sent, ValueRetention};
use crate::watch_source::{Claim, WatchSource};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An answer that may take a while.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One resource as declared: it knows the host, and never the graph. Its `validate` is its [`crate::KindSpec::build`]: a
/// resource that exists is valid.
pub trait Resource: Debug + Send + Sync {
    /// Tells that its check and its apply use nothing of the host but its files, through [`Host::files`]: a plan may then do both in
    /// an overlay ([`crate::host::Overlay`]), which writes nothing to the host.
    fn uses_only_files(&self) -> bool {
        false
    }

    /// What is valid and most likely a mistake: told as warnings.
    fn warnings(&self) -> &[Invalid] {
        &[]
    }

    /// What is most likely a mistake where this field of it is given a secret.
    fn doubts_of_secret(&self, field: &str) -> Option<Invalid> {
        let _ = field;
        None
    }

    /// What it alone may write.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Tells whether it makes what it claims exist. A resource that removes its object, or that only holds attributes of what is there,
    /// creates nothing: it does not keep the removal of an earlier owner from being done.
    fn creates(&self) -> bool {
        true
    }

    /// How it is removed, where there is something that could be (B-17).
    fn removal(&self) -> Option<Removal> {
        None
    }

    /// Why what it was to remove is left alone, as its last check has found, where that is so.
    fn left_alone_reason(&self) -> Option<String> {
        None
    }

    /// The directory in which it must know what others claim: it holds, or removes, whatever else is below it.
    fn purge_root(&self) -> Option<&Path> {
        None
    }

    /// What is at the path that it claims, once it is as declared.
    fn path_after_apply(&self) -> PathAfter {
        PathAfter::Other
    }

    /// Of which paths besides those that it claims its check says something else when they, or what is in them, are changed; links
    /// are followed.
    fn reads(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The same resource, told which paths below the directory that it minds other resources claim, sorted. Called once, when
    /// the graph is whole; what it is told belongs to its definition.
    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        drop(claimed);
        None
    }

    /// With whom it can be one transaction; none where it is one of its own. All with one key have one nature.
    fn grouping(&self) -> Option<Grouping> {
        None
    }

    /// What it makes that others may need: automatic edges run from it to those.
    fn provides(&self) -> Vec<HostObject> {
        Vec::new()
    }

    /// What must be there before it can be as declared: automatic edges run to it from those that offer it.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// What it sends to others, as of the run of it that has just ended well; empty where that gave nothing new.
    fn sends(&self) -> Sent {
        Sent::new()
    }

    /// Whether it ever sends the value of this key, of those that its kind names.
    fn sends_key(&self, key: &str) -> bool {
        !key.is_empty()
    }

    /// The same resource, told what is kept of what it has sent under its present definition: for kinds whose state that is.
    fn with_sent(&self, kept: ValueRetention) -> Option<Arc<dyn Resource>> {
        match kept {
            ValueRetention::Known | ValueRetention::Sealed => None,
        }
    }

    /// Tells whether an apply may change something at this path that it does not claim. A resource that occupies the seat of a command and is
    /// not confined may change anything, unless it knows better.
    fn may_change(&self, _path: &Path) -> bool {
        let nature = self.nature();
        nature.seat == ExecutorKind::Command && !nature.confined
    }

    /// What it reads or runs of the host besides what it holds: nobody else may be able to change that (S-11). Absolute.
    fn trusts(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Where its events come from; empty where nothing can move it.
    fn watch(&self) -> Vec<WatchSource> {
        Vec::new()
    }

    /// What the engine must know of it.
    fn nature(&self) -> Traits {
        Traits::default()
    }

    /// Looks, without changing anything, and says what would have to be changed.
    ///
    /// With [`ExecutorKind::Thread`] the future blocks where it likes and is run on a thread of its own; with [`ExecutorKind::Command`] it
    /// never blocks. When `ask.cancel` is cancelled it returns as soon as it can.
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult>;

    /// Makes it so. It verifies the premise of the change again, and stops at the first step that the permit refuses.
    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome>;
}

/// What is at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathAfter {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A link with this target.
    Link(PathBuf),
    /// Anything through which no path leads; or it cannot be told.
    #[default]
    Other,
}

/// What a check is asked.
#[derive(Clone, Debug, Default)]
pub struct CheckRequest {
    /// A refresh is owed: the kind decides what that means (an exec runs again, a file checks again).
    pub refresh: bool,
    /// A run is asked for although nothing may differ: first run of a definition, an event, `redo`. Kinds that have nothing to
    /// compare run when this or `refresh` is set; others ignore it.
    pub run: bool,
    /// Cancelled when the run is.
    pub cancel: CancellationToken,
    /// Where a kind that copies tells what it copies, if anybody asks.
    pub copies: Option<Arc<CopyDigestSlot>>,
}

/// What the engine must know of a kind, or of one resource of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What a run occupies.
    pub seat: ExecutorKind,
    /// Whether there is a state to compare, or a deed to repeat.
    pub repeat: RunPolicy,
    /// What follows when a run was cut off and the check cannot tell how far it came.
    pub on_interrupt: OnInterrupt,
    /// Whether a run in progress may be cancelled.
    pub cancellable: bool,
    /// Its own deadline for one run.
    pub timeout: Option<Duration>,
    /// An apply changes nothing on the host but what the resource claims, although it occupies the seat of a command.
    pub confined: bool,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            seat: ExecutorKind::Thread,
            repeat: RunPolicy::State,
            on_interrupt: OnInterrupt::Again,
            cancellable: true,
            timeout: None,
            confined: false,
        }
    }
}

/// What a run occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorKind {
    /// A thread: system calls that may block.
    Thread,
    /// No thread: child processes, timers.
    Command,
}

/// When a resource runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPolicy {
    /// There is a state to compare; looking again is free of effects.
    State,
    /// A deed: once per definition, and for events, refreshes and `redo`.
    Once,
    /// A deed, also done at each start of the daemon.
    EachStart,
    /// A deed done for events, refreshes and `redo` alone: never because its definition is new or the daemon starts (a timer
    /// does not tick at load). It is settled until then.
    Events,
}

/// What follows after a run that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Run again.
    Again,
    /// Take it as done.
    Skip,
    /// Wait for the operator.
    Wait,
}
