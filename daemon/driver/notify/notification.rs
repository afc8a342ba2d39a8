//! What the driver says of its work: to the log of a daemon, to the progress of `apply`, to the list of `plan`.

use crate::driver::graph::diff::GraphDiff;
use crate::store::AuditEntry;
use std::time::Duration;
use steadfast_engine::{Class, Counts, HeldReason};
use steadfast_resources::{Difference, Failure};

/// Whoever listens to a driver.
pub trait Observer: Send {
    /// Hears one piece of news. Called from the driver's loop: it must not wait.
    fn hear(&mut self, news: &Notification<'_>);

    /// Whether it wants [`Notification::Progress`] now.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Whether a pass that changes nothing is to say what an apply would do: where the changes of others count.
    fn wants_foresight(&self) -> bool {
        false
    }
}

/// How far a one-shot command has come.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Counts over all vertices.
    pub counts: Counts,
    /// Some of those that run.
    pub running: Vec<&'a str>,
    /// Some of those that wait, and for whom.
    pub waiting: Vec<(&'a str, &'a str)>,
}

/// Who undoes what a resource does (E-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictCause<'a> {
    /// Somebody outside of the graph.
    Another,
    /// It does so itself.
    Itself,
    /// This resource of the graph.
    Ours(&'a str),
    /// Nobody was seen.
    Unknown,
}

/// A run, as lines of the log name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRef {
    /// Its number in this life of the daemon.
    pub number: u64,
    /// Why it was started, in a word.
    pub cause: &'static str,
}

/// One piece of news. Names are identities, `kind[name]`.
#[derive(Debug)]
pub enum Notification<'a> {
    /// A graph runs.
    Loaded {
        /// Its name.
        graph: &'a str,
        /// What it means for the one before.
        change: &'a GraphDiff,
    },
    /// A new graph was taken, and waits for some to come to rest.
    SwapWaits {
        /// For whom.
        waits: Vec<&'a str>,
        /// What it will mean for the one before.
        change: &'a GraphDiff,
    },
    /// A new graph was not taken, and why.
    Refused(&'a str),
    /// A run has started (looks are not told).
    Started(&'a str),
    /// A check found all as declared.
    Same(&'a str),
    /// A run has changed something.
    Changed {
        /// Whose.
        identity: &'a str,
        /// What differed.
        differences: &'a [Difference],
        /// What was done.
        notes: &'a [String],
        /// From its start to its end.
        took: Duration,
        /// What sort of change it was.
        class: Class,
        /// Which run it was.
        run: RunRef,
        /// Others, or it itself, undo it again and again.
        in_fight: bool,
    },
    /// A run could not make it as declared; a retry may follow.
    Trouble {
        /// Whose.
        identity: &'a str,
        /// Why.
        trouble: &'a Failure,
        /// Which run it was.
        run: RunRef,
    },
    /// A run was cut off.
    Interrupted {
        /// Whose.
        identity: &'a str,
        /// Which.
        run: RunRef,
    },
    /// A run failed, and its parents are looked at before the failure counts.
    Asking {
        /// The resource.
        identity: &'a str,
        /// Those that are looked at: itself needs them, or what it needs does.
        above: &'a [&'a str],
    },
    /// The failure does not count: a resource that it needs differs, and is processed first.
    Excused(&'a str),
    /// It is tried again after this.
    Retrying {
        /// Whose.
        identity: &'a str,
        /// The last trouble.
        trouble: Option<&'a Failure>,
        /// The wait.
        after: Duration,
        /// The run before.
        run: Option<RunRef>,
        /// Others undo it again and again.
        in_fight: bool,
    },
    /// No retries are left.
    Failed {
        /// Whose.
        identity: &'a str,
        /// The last trouble.
        trouble: Option<&'a Failure>,
        /// Those that wait for it: some names, and how many in all.
        waiting: (Vec<&'a str>, usize),
        /// Its last run.
        run: Option<RunRef>,
    },
    /// It is right again.
    Recovered {
        /// Which.
        identity: &'a str,
        /// Others undo it again and again.
        in_fight: bool,
    },
    /// It is paused by itself.
    Parked {
        /// Which.
        identity: &'a str,
        /// Why.
        reason: &'a str,
        /// For how long at most.
        limit: Duration,
    },
    /// It has left the graph, or its name, and what becomes of it.
    Undeclared {
        /// Which.
        identity: &'a str,
        /// What.
        message: &'a str,
        /// Its object was removed from the host.
        removed: bool,
    },
    /// An operator has had this done; what is kept of it is durable.
    Done(&'a AuditEntry),
    /// It is in no group for now: the others of its own need not wait for it.
    Apart {
        /// Which.
        identity: &'a str,
        /// Why.
        why: &'a str,
    },
    /// It was well for long enough to be grouped again.
    Joined(&'a str),
    /// The pause of it alone is over.
    Unparked(&'a str),
    /// It rests although it is not as declared.
    Held {
        /// Whose.
        identity: &'a str,
        /// Why.
        holding: HeldReason,
        /// For *unknown until*: that one. For a window: when it is open.
        until: Option<&'a str>,
        /// What would be changed.
        differences: &'a [Difference],
        /// Something that exists would be gone afterwards.
        destructive: bool,
        /// See [`steadfast_resources::Change::seal`].
        seal: u64,
        /// In a plan: what was found is also what steps before it make; the seal is that of the host as it is now.
        follows: bool,
        /// What kept the check from telling.
        trouble: Option<&'a Failure>,
        /// The run that may do no more.
        run: Option<RunRef>,
    },
    /// It is undone again and again: its repairs wait from now on (E-20).
    Contended {
        /// Whose.
        identity: &'a str,
        /// By whom.
        by: ConflictCause<'a>,
        /// How many repairs there were.
        repairs: u32,
    },
    /// It still is.
    StillContended {
        /// Whose.
        identity: &'a str,
        /// How many repairs there were in all.
        repairs: u32,
        /// For how long.
        lasts: Duration,
        /// When it is repaired again at the earliest.
        next: Option<Duration>,
    },
    /// It is not undone any more.
    Calm(&'a str),
    /// So many repairs were undone within a minute that nothing is repaired for that long.
    Braked {
        /// How many.
        repairs: u32,
        /// How long.
        pause: Duration,
    },
    /// Repairing goes on.
    Released,
    /// A run does not return.
    Stuck(&'a str),
    /// No events come for it; looks are all it gets.
    Unwatched {
        /// Whose.
        identity: &'a str,
        /// Why.
        why: &'a str,
    },
    /// Not all is as declared any more, first seen here.
    Diverged {
        /// Whose.
        identity: &'a str,
        /// It is fought over: that was told, and it is so with each of its repairs.
        in_fight: bool,
    },
    /// All is as declared.
    Converged {
        /// Counts over all vertices.
        counts: Counts,
        /// Nothing but what is fought over was not: as above.
        in_fight: bool,
    },
    /// A pause waits for these.
    Pausing(Vec<&'a str>),
    /// At rest.
    Paused {
        /// The reason for the pause.
        reason: &'a str,
        /// The time until the pause ends by itself.
        ends_in: Duration,
    },
    /// Going on.
    Resumed,
    /// The pause ends by itself after this.
    PauseEnds(Duration),
    /// Nothing is changed, whatever the graph says, and why: the state cannot be used (B-22).
    Observing(&'a str),
    /// The state cannot be kept at the moment; nothing is changed until it can.
    Unkept(&'a str),
    /// How far it has come: told from time to time, to who wants it.
    Progress(Progress<'a>),
    /// Stopping; these still run.
    Stopping(Vec<&'a str>),
    /// Stopped; these were cut off.
    Stopped(Vec<&'a str>),
}
