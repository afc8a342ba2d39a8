//! The answers to *is this host as declared; if not, what stands in the way; what happens next?* As data, for whoever asks.
//!
//! Ages and waits are in whole seconds.

use serde::{Deserialize, Serialize};
use steadfast_engine::Class;
use steadfast_resources::Difference;

/// How a host stands, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostStatus {
    /// Nothing is changed: the state cannot be used.
    ReadOnly,
    /// A run does not return.
    Stuck,
    /// A resource has failed, and no retries are left.
    Failed,
    /// A resource has failed, and is tried again.
    Failing,
    /// What is put right is undone again and again.
    Contended,
    /// A resource rests although it is not as declared.
    Held,
    /// The daemon is stopping.
    Stopping,
    /// Nothing is started: it was asked to pause.
    Paused,
    /// No graph is loaded yet.
    Starting,
    /// On the way to what is declared.
    Converging,
    /// All is as declared.
    Converged,
}

/// How many resources stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All.
    pub total: u32,
    /// As declared.
    pub settled: u32,
    /// To be processed.
    pub waiting: u32,
    /// In progress.
    pub running: u32,
    /// Failed and tried again.
    pub delayed: u32,
    /// Failed for good.
    pub failed: u32,
    /// Held.
    pub held: u32,
    /// Stuck.
    pub stuck: u32,
    /// Put right and undone again and again.
    pub contended: u32,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseStatus {
    /// Who or what asked for it.
    pub reason: String,
    /// When it ends by itself.
    pub ends_in: Option<u64>,
    /// Nothing runs any more.
    pub at_rest: bool,
}

/// The pause of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinglePause {
    /// `kind[name]`.
    pub resource: String,
    /// Why, and how long.
    pub pause: PauseStatus,
}

/// How long ago something was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ages {
    /// The last check.
    pub check: Option<u64>,
    /// The last change that was made.
    pub repair: Option<u64>,
    /// The last event of a source.
    pub event: Option<u64>,
}

/// Of what sort a change was, in the words of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeClass {
    /// The graph changed, or the operator asked.
    #[serde(rename = "intentional")]
    Intentional,
    /// Something else had changed the host.
    #[serde(rename = "corrective")]
    Corrective,
    /// We had changed it, and it differed again by our own hand.
    #[serde(rename = "not idempotent")]
    NotIdempotent,
    /// Another party undoes it again and again.
    #[serde(rename = "contended")]
    Contended,
}

/// How many changes of each sort were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// See [`ChangeClass`]; and so on.
    pub intentional: u32,
    /// Repairs of what others did.
    pub corrective: u32,
    /// Repairs of what we undid ourselves.
    pub not_idempotent: u32,
    /// Repairs in a fight.
    pub contended: u32,
}

/// How a host stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// In one word.
    pub verdict: HostStatus,
    /// Why nothing is changed, where that is so, and what to do.
    #[serde(default)]
    pub read_only: Option<String>,
    /// Why the graph that was accepted last runs instead of the one that is there, where that is so.
    #[serde(default)]
    pub fallback_reason: Option<String>,
    /// The graph that is there was refused, and the one that runs goes on.
    #[serde(default)]
    pub rejected: Option<GraphRejection>,
    /// A newer graph was taken, and does not run yet.
    #[serde(default)]
    pub swap: Option<SwapStatus>,
    /// Since when all is as declared, where it is.
    pub converged_for: Option<u64>,
    /// The name of the graph; empty before the first.
    pub graph: String,
    /// How many stand how.
    pub counts: Counts,
    /// Those that have left the graph by a start, or a reload that nobody asked for: they leave with the next that somebody asks for.
    #[serde(default)]
    pub pending_removals: Vec<String>,
    /// How many have no events, and are looked at instead.
    pub unwatched: usize,
    /// The pause, if there is one.
    pub pause: Option<PauseStatus>,
    /// Those that are paused by themselves: not all where there are many.
    #[serde(default)]
    pub paused: Vec<SinglePause>,
    /// How old all this is.
    pub ages: Ages,
    /// What was changed since the daemon was started.
    #[serde(default)]
    pub changes: Changes,
    /// Those that are not as declared, worst first: not all where there are many.
    pub unhealthy: Vec<ResourceStatus>,
    /// How many more there are.
    pub unhealthy_omitted: usize,
    /// How long the daemon has been running.
    pub uptime: u64,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// What is wrong with the daemon itself, worst first. The verdict is of the resources alone.
    #[serde(default)]
    pub daemon: Vec<PartStatus>,
    /// The host waits for a reboot.
    #[serde(default)]
    pub reboot: Option<Reboot>,
    /// The checkout in which the graph lies.
    #[serde(default)]
    pub checkout: Option<Checkout>,
}

impl Status {
    /// The status of a daemon whose first driver is still to come.
    #[must_use]
    pub fn starting() -> Self {
        Self {
            verdict: HostStatus::Starting,
            read_only: None,
            fallback_reason: None,
            rejected: None,
            swap: None,
            converged_for: None,
            graph: String::new(),
            counts: Counts::default(),
            pending_removals: Vec::new(),
            unwatched: 0,
            pause: None,
            paused: Vec::new(),
            ages: Ages::default(),
            changes: Changes::default(),
            unhealthy: Vec::new(),
            unhealthy_omitted: 0,
            uptime: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            daemon: Vec::new(),
            reboot: None,
            checkout: None,
        }
    }
}

/// The last reload was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphRejection {
    /// Since when no graph was taken.
    pub rejected_for: u64,
    /// Why the last one was not, in a line with its place.
    pub reason: String,
    /// The same with all that was said.
    pub details: String,
}

/// A newer graph that runs as soon as what it changes rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapStatus {
    /// Its name.
    pub graph: String,
    /// Since when it waits.
    pub waiting_for: u64,
    /// Those that do not rest yet.
    pub waits_for: Vec<String>,
}

/// What is wrong with a part of the daemon, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartCondition {
    /// It does nothing any more, and nobody can cut it off.
    Hangs,
    /// It does not run.
    Down,
    /// It cannot write what it is to keep.
    WriteFailed,
    /// It runs, and has failed within the last hour.
    Unsteady,
}

/// A part of the daemon with which something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStatus {
    /// A worker, or what is kept.
    pub part: String,
    /// In one word.
    pub condition: PartCondition,
    /// In a few words, with the reason.
    pub message: String,
}

/// A reboot that packages have asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reboot {
    /// Which, as far as they have said.
    pub packages: Vec<String>,
}

/// A checkout of git. Edits that were not committed are not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The commit that is checked out now.
    pub commit: String,
    /// The branch, if one is.
    pub branch: Option<String>,
}

/// What was undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// What was put back, a line for each path.
    pub lines: Vec<String>,
    /// The resource was paused, for its graph would put it back.
    pub paused: bool,
}

/// How one resource stands, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Its run does not return.
    Stuck,
    /// It has failed, and no retries are left.
    Failed,
    /// It has failed, and is tried again.
    Delayed,
    /// What is put right is undone again and again: it is put right less and less often.
    Contended,
    /// It rests although it is not as declared.
    Held,
    /// It waits for others, for its watch, its limit, semaphores or a slot.
    Waiting,
    /// It is being checked or applied.
    Running,
    /// As declared, as far as is known.
    Settled,
}

/// How one resource stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// `kind[name]`.
    pub resource: String,
    /// In one word.
    pub phase: Phase,
    /// In a few words: what it waits for, why it is held.
    pub message: String,
    /// Those it waits for.
    pub waits_for: Vec<String>,
    /// When it is tried next.
    pub next_try_in: Option<u64>,
    /// Since when its run is in progress.
    pub running_for: Option<u64>,
    /// For how long it has waited for the operator's word, as far as this daemon has seen it.
    #[serde(default)]
    pub awaiting_operator_for: Option<u64>,
    /// The last trouble with it, with a hint.
    pub error: Option<String>,
    /// See [`Ages`].
    pub ages: Ages,
    /// How often it was changed since the daemon was started.
    #[serde(default)]
    pub repairs: u32,
    /// Of what sort its last change was, since the daemon was started.
    #[serde(default)]
    pub last_change: Option<ChangeClass>,
    /// The pause of it alone, if there is one.
    #[serde(default)]
    pub pause: Option<PauseStatus>,
    /// It has left the graph, and is being removed.
    #[serde(default)]
    pub pending_removal: bool,
}

/// Whose a thing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// We made it; otherwise it was there. None where there is nothing that could be removed.
    pub created: Option<bool>,
    /// It is deleted when it leaves the graph, if we made it.
    pub on_remove_delete: bool,
    /// A graph without it is refused.
    pub protected: bool,
}

/// In which order resources are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Worst first.
    #[default]
    State,
    /// By name.
    Name,
    /// Changed last, first.
    Changed,
    /// Changed most often first.
    Repairs,
}

/// Which part of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Only those whose name has this in it.
    pub filter: String,
    /// In which order.
    pub order: Order,
    /// Without so many.
    pub from: usize,
    /// At most so many.
    pub most: usize,
}

/// A part of the list of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The part.
    pub rows: Vec<ResourceStatus>,
    /// How many fit, in all.
    pub total: usize,
}

/// One aspect in which a resource is not as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// Which.
    pub aspect: String,
    /// How it is; empty where it is not there.
    pub from: String,
    /// How it is declared.
    pub to: String,
    /// A unified diff, for texts that may be shown.
    pub diff: Option<String>,
}

impl From<Class> for ChangeClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Intentional => Self::Intentional,
            Class::Corrective => Self::Corrective,
            Class::NotIdempotent => Self::NotIdempotent,
            Class::Contended => Self::Contended,
        }
    }
}

impl ChangeClass {
    /// The words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Intentional => "intentional",
            Self::Corrective => "corrective",
            Self::NotIdempotent => "not idempotent",
            Self::Contended => "contended",
        }
    }
}

impl From<&Difference> for Differing {
    fn from(one: &Difference) -> Self {
        let (from, to, diff) = (one.from.clone(), one.to.clone(), one.diff.clone());
        Self { aspect: one.aspect.to_owned(), from, to, diff }
    }
}

/// What a look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// `kind[name]`.
    pub resource: String,
    /// What differs; nothing where it is as declared.
    pub differences: Vec<Differing>,
    /// Something that exists would be gone afterwards.
    pub destructive: bool,
    /// Why it cannot be told.
    pub error: Option<String>,
}

/// What looks have found: those that differ, and those of which it cannot be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspections {
    /// Each.
    pub items: Vec<Inspection>,
    /// So many were not looked at.
    pub skipped: usize,
    /// Resources with a pause of their own that are left out.
    #[serde(default)]
    pub paused: Vec<String>,
    /// Resources that are left out because they depend on one of those.
    #[serde(default)]
    pub waiting: Vec<String>,
}

/// One resource in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceDetails {
    /// How it stands.
    pub status: ResourceStatus,
    /// What it needs.
    pub needs: Vec<String>,
    /// What needs it.
    pub needed_by: Vec<String>,
    /// Who waits for it now: not all where very many need it.
    #[serde(default)]
    pub waited_for_by: Vec<String>,
    /// What brings its events.
    pub watch: String,
    /// Whose it is, as far as that is known.
    #[serde(default)]
    pub owned: Option<Ownership>,
}
