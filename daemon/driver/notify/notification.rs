//! Notifications: the driver's reports of its work, for the log of a daemon, the progress of `apply` and the list of
//! `plan`.

use crate::api::GraphDiff;
use crate::driver::runs::failures::AttemptedChange;
use crate::store::AuditEntry;
use std::time::Duration;
use steadfast_engine::{Class, Counts, HeldReason};
use steadfast_resources::{Difference, Failure, Sent};

/// A receiver of the notifications of a driver.
pub trait Observer: Send {
    /// Receives one notification. Called from the driver's loop: an implementation must not block.
    fn hear(&mut self, news: &Notification<'_>);

    /// Returns true if [`Notification::Progress`] is wanted now.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Returns true if a session that changes nothing must predict an apply, with the effects of steps on each other.
    fn wants_foresight(&self) -> bool {
        false
    }
}

/// The progress of a one-shot command.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Counts over all vertices.
    pub counts: Counts,
    /// Identities of some running resources.
    pub running: Vec<&'a str>,
    /// Some waiting resources, each with one resource that it waits for.
    pub waiting: Vec<(&'a str, &'a str)>,
}

/// The culprit of a contention (E-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictCause<'a> {
    /// Somebody outside of the graph.
    Another,
    /// The resource itself.
    Itself,
    /// Another resource of the graph.
    Ours(&'a str),
    /// No culprit was observed.
    Unknown,
}

/// A reference to a run, as log lines show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRef {
    /// The number of the run in this session.
    pub number: u64,
    /// The cause of the run, in one word.
    pub cause: &'static str,
}

/// A notification of the driver. Names are identities, `kind[name]`.
#[derive(Debug)]
pub enum Notification<'a> {
    /// A new graph runs.
    Loaded {
        /// The name of the graph.
        graph: &'a str,
        /// The difference between the graph and its predecessor.
        change: &'a GraphDiff,
    },
    /// A new graph was accepted, and waits for runs to end.
    Loading {
        /// Identities of the resources whose runs must end.
        waits: Vec<&'a str>,
        /// The difference between the new graph and the running one.
        change: &'a GraphDiff,
    },
    /// A new graph was rejected, with the reason.
    Rejected(&'a str),
    /// A run has started. Plain checks are not reported.
    Started(&'a str),
    /// A check found the resource as declared.
    Unchanged(&'a str),
    /// A run of a probe has ended with an answer.
    Answered {
        /// The resource.
        identity: &'a str,
        /// The sent values.
        values: &'a Sent,
    },
    /// A run has changed the resource.
    Changed {
        /// The resource.
        identity: &'a str,
        /// The differences that the check had found.
        differences: &'a [Difference],
        /// The changes that the apply has made.
        notes: &'a [String],
        /// The time from the start of the run to its end.
        took: Duration,
        /// The cause of the change.
        class: Class,
        /// The run.
        run: RunRef,
        /// True if the resource is contended.
        is_contended: bool,
    },
    /// A run has failed; a retry may follow.
    RunFailed {
        /// The resource.
        identity: &'a str,
        /// The failure.
        failure: &'a Failure,
        /// The run.
        run: RunRef,
    },
    /// A run was interrupted.
    Interrupted {
        /// The resource.
        identity: &'a str,
        /// The run.
        run: RunRef,
    },
    /// A stop or a crash of an earlier process interrupted a run.
    InterruptedBefore {
        /// The resource.
        identity: &'a str,
    },
    /// A run has failed; the parents of the resource are checked before the failure counts.
    Asking {
        /// The resource.
        identity: &'a str,
        /// The resources that are checked: direct or indirect dependencies of the failed one.
        above: &'a [&'a str],
    },
    /// The failure does not count: a dependency of the resource differs, and runs first.
    Excused(&'a str),
    /// A retry is scheduled.
    Retrying {
        /// The resource.
        identity: &'a str,
        /// The last failure.
        failure: Option<&'a Failure>,
        /// The change that the failed apply was to make; none for a failed check.
        change: Option<&'a AttemptedChange>,
        /// The time until the retry.
        after: Duration,
        /// The failed run.
        run: Option<RunRef>,
        /// True if the resource is contended.
        is_contended: bool,
    },
    /// A resource has failed, and no retries are left.
    Failed {
        /// The resource.
        identity: &'a str,
        /// The last failure.
        failure: Option<&'a Failure>,
        /// The change that the failed apply was to make; none for a failed check.
        change: Option<&'a AttemptedChange>,
        /// Resources that wait for the failed one: some identities, and their total number.
        waiting: (Vec<&'a str>, usize),
        /// The last run.
        run: Option<RunRef>,
    },
    /// A failed resource is as declared again.
    Recovered {
        /// The resource.
        identity: &'a str,
        /// True if the resource is contended.
        is_contended: bool,
    },
    /// A resource was paused on its own.
    ResourcePaused {
        /// The resource.
        identity: &'a str,
        /// The reason.
        reason: &'a str,
        /// The time until the pause ends without a resume.
        limit: Duration,
    },
    /// A resource, or an old name of one, has left the graph.
    Undeclared {
        /// The resource.
        identity: &'a str,
        /// The consequence: removed, forgotten, or stored until a later reload.
        message: &'a str,
        /// Its object was removed from the host.
        removed: bool,
    },
    /// A state command of the operator was carried out, and its records are durable.
    Done(&'a AuditEntry),
    /// A resource was split from its group: the other members need not wait for it.
    GroupSplit {
        /// The resource.
        identity: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// A split resource was healthy for long enough, and is a member of its group again.
    GroupJoined(&'a str),
    /// The pause of a single resource is over.
    ResourceResumed(&'a str),
    /// A resource is not as declared, and waits for a permission.
    Held {
        /// The resource.
        identity: &'a str,
        /// The reason of the hold.
        holding: HeldReason,
        /// For *unknown until*: the other resource. For a window: its opening times.
        until: Option<&'a str>,
        /// The differences that an apply would remove.
        differences: &'a [Difference],
        /// True if an apply would destroy something that exists.
        destructive: bool,
        /// True if the run would create the object.
        creates: bool,
        /// The premise digest of the change; see [`steadfast_resources::Change::premise_digest`].
        premise_digest: u64,
        /// True in a plan if earlier steps also cause these differences. The premise digest covers the present host
        /// only.
        follows: bool,
        /// The failure that left the check without a result.
        failure: Option<&'a Failure>,
        /// The run that was stopped before its apply.
        run: Option<RunRef>,
    },
    /// A resource is contended: the time between its repairs grows from now on (E-20).
    Contended {
        /// The resource.
        identity: &'a str,
        /// The culprit.
        by: ConflictCause<'a>,
        /// The number of repairs so far.
        repairs: u32,
    },
    /// A resource is still contended.
    StillContended {
        /// The resource.
        identity: &'a str,
        /// The number of repairs so far.
        repairs: u32,
        /// The time since the contention began.
        lasts: Duration,
        /// The time until the next repair, at the earliest.
        next: Option<Duration>,
    },
    /// A resource is no longer contended.
    ContentionEnded(&'a str),
    /// Repeated repairs are suspended: too many repairs were undone within one minute.
    RepairsSuspended {
        /// The number of repeated repairs.
        repairs: u32,
        /// The time for which no resource is repaired more than three times within a minute.
        pause: Duration,
    },
    /// The suspension is over: all repairs continue.
    RepairsResumed,
    /// The run of a resource does not return.
    Stuck(&'a str),
    /// A resource has no working watch; only sweeps check it.
    Unwatched {
        /// The resource.
        identity: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// The host is no longer converged; the first drift was found on this resource.
    Diverged {
        /// The resource.
        identity: &'a str,
        /// True if the resource is contended. The contention was reported before, and each repair causes this
        /// notification.
        is_contended: bool,
    },
    /// All resources are as declared.
    Converged {
        /// Counts over all vertices.
        counts: Counts,
        /// True if only a contended resource had drifted.
        is_contended: bool,
    },
    /// A pause waits for the runs of these resources.
    Pausing(Vec<&'a str>),
    /// The daemon is paused, and no run is in progress.
    Paused {
        /// The reason for the pause.
        reason: &'a str,
        /// The time until the pause ends by itself.
        ends_in: Duration,
    },
    /// The pause of the daemon is over.
    Resumed,
    /// The pause of the daemon ends after this time without a resume.
    PauseEnds(Duration),
    /// The daemon is read-only, with the reason: the state cannot be used (B-22).
    ReadOnly(&'a str),
    /// The state cannot be written at the moment, with the reason; nothing is changed until it can.
    StateWriteFailed(&'a str),
    /// The progress of a one-shot command, sent periodically to observers that want it.
    Progress(Progress<'a>),
    /// The daemon is stopping; these resources still run.
    Stopping(Vec<&'a str>),
    /// The daemon has stopped; the runs of these resources were interrupted.
    Stopped(Vec<&'a str>),
}
