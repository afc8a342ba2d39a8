//! Queries: read-only questions to the driver, and the operator's requests. They pass through the inbox, and none of
//! them blocks.
//!
//! Purpose: answer queries from the state of the driver and the engine. Invariant: no reply waits for the host within
//! the loop; requests become events of the engine or jobs on other threads. Reading order: this file, `statistics.rs`
//! (times and counts), `metrics.rs`, `blockers.rs` (resources that wait), `list.rs` (the paged list), `selection.rs`,
//! `abandoned.rs` (queries without a client), `check_now.rs` (a check on request).

mod abandoned;
pub(super) mod blockers;
pub(super) mod check_now;
pub(super) mod list;
pub(super) mod metrics;
pub(super) mod selection;
pub(super) mod statistics;

use super::commands::state_commands::CommandResult;
use super::{Caveat, Driver, LoadError, Undone};
use crate::api::{
    Ages, Changes, Counts, HostStatus, Inspections, List, LoadOutcome, Ownership, PauseStatus,
    Phase, ResourceDetails, ResourceStatus, SelectedResources, Status,
};
use crate::history::Undo;
use crate::metrics::DriverValues;
use crate::selection::Selectable;
use crate::store::{Origin, StateCommand};
use list::ListRequest;
use statistics::Moment;
use std::collections::HashSet;
use std::time::Duration;
use steadfast_engine::{Class, Culprit, Event, HeldReason, Mode, VertexId, VertexStatus};
use steadfast_resources::WatchSource;
use tokio::sync::oneshot;

/// A query or a request, with the sender for its reply. It is processed even if nobody waits for the reply any more.
#[derive(Debug)]
pub enum Query {
    /// The status of the host, with at most this many resources that are not as declared.
    Status(usize, oneshot::Sender<Status>),
    /// The values for metrics, with at most this many resources that are not converged.
    Metrics(usize, oneshot::Sender<Box<DriverValues>>),
    /// The details of one resource; `None` if the identity is unknown.
    Show(String, oneshot::Sender<Option<ResourceDetails>>),
    /// Identities with this prefix in ascending order, at most this many.
    Names(String, usize, oneshot::Sender<Vec<String>>),
    /// A page of the list of all resources.
    List(ListRequest, oneshot::Sender<List>),
    /// All declared resources, in no order. Selectors are compared with them elsewhere, since that can take long.
    Selectable(oneshot::Sender<Vec<Selectable>>),
    /// The status of these resources, with at most this many rows. The reply may be the unknown identities.
    Selected(Vec<String>, usize, oneshot::Sender<Result<SelectedResources, Vec<String>>>),
    /// Checks these resources, or all that are due, without a change; the reply may be the unknown identities.
    Inspect {
        /// The identities; empty means all resources that are due.
        resources: Vec<String>,
        /// True to predict a resume of these resources: each is checked after its dependencies are changed. An empty
        /// list always does so.
        resume: bool,
        /// The sender for the reply.
        to: oneshot::Sender<Result<Inspections, Vec<String>>>,
    },
    /// Pauses single resources. The reply lists unknown identities; if there are any, nothing is done.
    PauseResources {
        /// The identities.
        names: Vec<String>,
        /// The time until the pause ends without a resume; `None` selects the configured limit.
        limit: Option<Duration>,
        /// The reason, as shown in the status.
        reason: String,
        /// The sender for the reply.
        to: oneshot::Sender<Vec<String>>,
    },
    /// Resumes single resources. The reply lists unknown identities; if there are any, nothing is done.
    ResumeResources(Vec<String>, oneshot::Sender<Vec<String>>),
    /// Waits until all pauses are durable; the reply is the reason why they cannot be stored now.
    PauseSaved(oneshot::Sender<Option<String>>),
    /// Restores a prior state of a resource.
    Undo(Undo, oneshot::Sender<Undone>),
    /// The result of the last load.
    LoadResult(Vec<oneshot::Sender<Result<LoadOutcome, LoadError>>>),
    /// Carries out a state command for these identities; the reply comes when its records are durable.
    StateCommand(StateCommand, Vec<String>, oneshot::Sender<CommandResult>),
    /// Checks these resources now; empty means all. The reply lists unknown identities; if there are any, nothing is
    /// done.
    CheckNow(Vec<String>, oneshot::Sender<Vec<String>>),
    /// Runs these resources again, also those that run once or have failed. The reply lists unknown identities; if
    /// there are any, nothing is done.
    Retry(Vec<String>, oneshot::Sender<Vec<String>>),
}

/// The number of unwatched resources that a status names.
const UNWATCHED: usize = 5;

impl Driver {
    pub(super) fn answer(&mut self, query: Query) {
        if query.is_abandoned() {
            return;
        }
        match query {
            Query::Status(limit, to) => drop(to.send(self.status(limit))),
            Query::Metrics(limit, to) => drop(to.send(Box::new(self.metric_values(limit)))),
            Query::Show(name, to) => {
                let id = self.running(&name);
                drop(to.send(id.map(|id| self.details(id))));
            }
            Query::Names(prefix, limit, to) => drop(to.send(self.names_from(&prefix, limit))),
            Query::List(wanted, to) => drop(to.send(self.list(&wanted))),
            Query::Selectable(to) => drop(to.send(self.selectable())),
            Query::Selected(names, limit, to) => drop(to.send(self.selected(&names, limit))),
            Query::Inspect { resources, resume, to } => self.inspect((&resources, resume), to),
            pauses @ (Query::PauseResources { .. } | Query::ResumeResources(..)) => {
                self.answer_pause_query(pauses);
                self.turn(Event::Wake);
            }
            Query::PauseSaved(to) => {
                let read_only = self.mode.read_only().map(ToString::to_string);
                match read_only {
                    Some(why) => drop(to.send(Some(why))),
                    None => self.journal.when_pause_saved(to),
                }
            }
            Query::Undo(what, to) => self.undo(what, to),
            Query::LoadResult(all) => {
                for to in all {
                    drop(to.send(self.graph.loads.outcome().clone()));
                }
            }
            Query::StateCommand(order, names, to) => self.order(order, &names, to),
            Query::CheckNow(names, to) => {
                let ids = self.named(&names);
                self.ask_engine(ids, to, Event::Look);
            }
            Query::Retry(names, to) => {
                let ids = self.named(&names);
                self.ask_engine(ids, to, Event::RetryNow);
            }
        }
    }

    fn ask_engine(
        &mut self,
        ids: Result<Vec<VertexId>, Vec<String>>,
        to: oneshot::Sender<Vec<String>>,
        event: fn(VertexId) -> Event,
    ) {
        let strangers = match ids {
            Ok(ids) => {
                for id in ids {
                    self.turn(event(id));
                }
                Vec::new()
            }
            Err(strangers) => strangers,
        };
        drop(to.send(strangers));
    }

    fn names_from(&self, prefix: &str, limit: usize) -> Vec<String> {
        let all = self.graph.ids().map(|id| self.graph.name(id));
        let mut names: Vec<&str> = all.filter(|name| name.starts_with(prefix)).collect();
        names.sort_unstable();
        names.into_iter().take(limit).map(str::to_owned).collect()
    }

    fn running(&self, name: &str) -> Option<VertexId> {
        self.graph.number(name).filter(|id| self.graph.get(*id).is_some())
    }

    /// Lists the identities that no running resource has.
    pub(super) fn strangers(&self, names: &[String]) -> Vec<String> {
        names.iter().filter(|name| self.running(name).is_none()).cloned().collect()
    }

    /// Returns the vertices of these identities; empty means all.
    ///
    /// # Errors
    ///
    /// The unknown identities.
    fn named(&self, names: &[String]) -> Result<Vec<VertexId>, Vec<String>> {
        if names.is_empty() {
            return Ok(self.graph.vertices().collect());
        }
        let strangers = self.strangers(names);
        if !strangers.is_empty() {
            return Err(strangers);
        }
        let vertex = |name: &String| Some(self.graph.groups().leader(self.running(name)?));
        let mut taken = HashSet::new();
        Ok(names.iter().filter_map(vertex).filter(|id| taken.insert(*id)).collect())
    }

    fn status(&self, limit: usize) -> Status {
        let mut unhealthy: Vec<(Phase, VertexId, VertexStatus)> = self
            .graph
            .ids()
            .filter_map(|id| self.current_status(id).map(|standing| (id, standing)))
            .filter(|(_, standing)| *standing != VertexStatus::Settled)
            .map(|(id, standing)| (phase(&standing), id, standing))
            .collect();
        unhealthy.sort_by_key(|(phase, id, _)| (*phase, *id));
        let worst = unhealthy.first().map(|(phase, ..)| *phase);
        let paused = unhealthy.iter().filter(|(_, _, standing)| *standing == VertexStatus::Paused);
        let paused = u32::try_from(paused.count()).unwrap_or(u32::MAX);
        let noop =
            unhealthy.iter().filter(|(_, _, standing)| self.is_held_by_noop(standing)).count();
        let more = unhealthy.len().saturating_sub(limit);
        unhealthy.truncate(limit);
        let (verdict, counts) = (self.verdict(worst), self.counts());
        let suspected = if verdict == HostStatus::Paused { self.suspected() } else { 0 };
        let converged = self.runs.statistics.converged.filter(|_| verdict == HostStatus::Converged);
        Status {
            verdict,
            read_only: self.mode.read_only().map(ToString::to_string),
            rejected: self.graph.loads.rejection(),
            swap: self.swap_status(),
            converged_for: converged.map(|at| at.elapsed().as_secs()),
            graph: self.graph.graph().to_owned(),
            counts: Counts {
                total: counts.total,
                settled: counts.settled.saturating_sub(suspected),
                waiting: counts.waiting.saturating_sub(paused).saturating_add(suspected),
                running: counts.running,
                delayed: counts.delayed,
                failed: counts.failed,
                held: counts.held.saturating_add(paused),
                noop: u32::try_from(noop).unwrap_or(u32::MAX),
                stuck: counts.stuck,
                contended: counts.contended,
            },
            // A selection removes nothing: the other resources are declared.
            pending_removals: if self.settings.removes {
                self.ownership.waiting(limit)
            } else {
                Vec::new()
            },
            unwatched: self.watches.states.polled.unwatched().len(),
            unwatched_names: self.unwatched_names(),
            pause: self.pause_status(),
            paused: self.single_pauses(limit),
            ages: Ages {
                check: self.runs.statistics.youngest(Moment::Checked),
                repair: self.runs.statistics.youngest(Moment::Changed),
                event: self.runs.statistics.youngest(Moment::Heard),
            },
            changes: Changes {
                intentional: self.runs.statistics.total(Class::Intentional),
                corrective: self.runs.statistics.total(Class::Corrective),
                not_idempotent: self.runs.statistics.total(Class::NotIdempotent),
                contended: self.runs.statistics.total(Class::Contended),
            },
            unhealthy: unhealthy
                .into_iter()
                .map(|(_, id, standing)| self.resource_status(id, &standing))
                .collect(),
            unhealthy_omitted: more,
            uptime: self.runtime.uptime().as_secs(),
            // Other workers own the other fields and fill them in.
            ..Status::starting()
        }
    }

    /// Returns the names of the first resources that are polled because they cannot be watched.
    fn unwatched_names(&self) -> Vec<String> {
        let all = self.watches.states.polled.unwatched().iter();
        all.take(UNWATCHED).map(|id| self.graph.name(*id).to_owned()).collect()
    }

    /// Counts settled resources with a check due: they may have drifted.
    fn suspected(&self) -> u32 {
        let is_suspected = |id: &VertexId| {
            self.current_status(*id) == Some(VertexStatus::Settled)
                && self.engine.is_to_be_looked_at(self.graph.groups().leader(*id))
        };
        u32::try_from(self.graph.ids().filter(is_suspected).count()).unwrap_or(u32::MAX)
    }

    fn verdict(&self, worst: Option<Phase>) -> HostStatus {
        if self.mode.read_only().is_some() && self.engine.mode() == Mode::Running {
            return HostStatus::ReadOnly;
        }
        match (worst, self.engine.mode()) {
            (Some(Phase::Stuck), _) => HostStatus::Stuck,
            (Some(Phase::Failed), _) => HostStatus::Failed,
            (Some(Phase::Delayed), _) => HostStatus::Failing,
            (Some(Phase::Contended), _) => HostStatus::Contended,
            (_, Mode::Stopping | Mode::Stopped) => HostStatus::Stopping,
            _ if self.is_starting() => HostStatus::Starting,
            (_, Mode::Draining | Mode::Pausing | Mode::Paused) => HostStatus::Paused,
            (Some(Phase::Held), Mode::Running) => HostStatus::Held,
            (_, Mode::Running) if self.engine.is_converged() => HostStatus::Converged,
            (_, Mode::Running) => HostStatus::Converging,
        }
    }

    /// Returns true if this driver has loaded no graph yet.
    pub(super) fn is_starting(&self) -> bool {
        self.mode.is_starting()
    }

    /// Returns the caveat that the reply to a ping adds to the counts.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        let read_only = self.mode.read_only().is_some().then_some(Caveat::ReadOnly);
        let starting = self.is_starting().then_some(Caveat::Starting);
        let rejected = self.graph.loads.is_rejected().then_some(Caveat::GraphRejected);
        read_only.or(starting).or(rejected)
    }

    fn pause_status(&self) -> Option<PauseStatus> {
        let mode = self.engine.mode();
        matches!(mode, Mode::Draining | Mode::Pausing | Mode::Paused).then(|| PauseStatus {
            reason: self.commands.pause_reason.clone(),
            ends_in: Some(self.runtime.until(self.commands.pause_until).as_secs()),
            at_rest: mode == Mode::Paused,
        })
    }

    pub(super) fn resource_status(&self, id: VertexId, standing: &VertexStatus) -> ResourceStatus {
        let (mut says, waits_for) = self.in_words(id, standing);
        if self.runs.split.has(id) {
            says.push_str("; applied separately from its group until it is stable");
        }
        let tried_at = match standing {
            VertexStatus::WaitingForLimit(at)
            | VertexStatus::WaitingForRepairLimit(at)
            | VertexStatus::Delayed(at) => Some(*at),
            VertexStatus::Contended { next, .. } => *next,
            _ => None,
        };
        let since = match standing {
            VertexStatus::Running(_, since) | VertexStatus::Stuck(_, since) => Some(*since),
            _ => None,
        };
        let now = self.now().0;
        let failure = self.runs.failures.get(id).map(|failure| match &failure.hint {
            Some(hint) => format!("{failure}; {hint}"),
            None => failure.to_string(),
        });
        ResourceStatus {
            resource: self.graph.name(id).to_owned(),
            phase: phase(standing),
            message: says,
            waits_for,
            next_try_in: tried_at.map(|at| seconds(at.0.saturating_sub(now))),
            running_for: since.map(|at| seconds(now.saturating_sub(at.0))),
            awaiting_operator_for: match standing {
                VertexStatus::Held(HeldReason::Operator) => self.runs.statistics.undecided(id),
                _ => None,
            },
            error: failure,
            ages: Ages {
                check: self.runs.statistics.age(id, Moment::Checked),
                repair: self.runs.statistics.age(id, Moment::Changed),
                event: self.runs.statistics.age(id, Moment::Heard),
            },
            repairs: self.runs.statistics.changes(id),
            last_change: self.runs.statistics.class(id).map(Into::into),
            pause: self.commands.pauses.status(id, standing),
            pending_removal: self.graph.get(id).is_some_and(|entry| entry.removes),
        }
    }

    /// Describes a status in words, with the identities that the resource waits for.
    fn in_words(&self, id: VertexId, standing: &VertexStatus) -> (String, Vec<String>) {
        let says = match standing {
            VertexStatus::Contended { party, repairs, since, .. } => {
                let who = match party {
                    Some(Culprit::Itself) => "the resource itself",
                    Some(Culprit::Ours(other)) => match self.culprit(*other, id) {
                        Some(other) => self.graph.name(other),
                        None => "something else",
                    },
                    Some(_) | None => "something else",
                };
                let time = seconds(self.now().0.saturating_sub(since.0));
                let says = format!("repeatedly reverted by {who}: {repairs} repairs in {time} s");
                return (says, Vec::new());
            }
            VertexStatus::Settled => "converged",
            VertexStatus::WaitingForWatch => "waiting for its watch",
            VertexStatus::WaitingFor(_) => "waiting for others",
            VertexStatus::WaitingForLimit(_) => "waiting for its rate limit",
            VertexStatus::WaitingForRepairLimit(_) => "waiting: repairs are suspended",
            VertexStatus::WaitingForSemaphore => return self.semaphores_in_words(id),
            VertexStatus::WaitingForSlot => "waiting for a free slot",
            VertexStatus::Paused => "paused, check pending",
            VertexStatus::Suspended => "waiting for a resume",
            VertexStatus::Running(..) => "running",
            VertexStatus::Asking(_) => {
                "the run failed; checking the dependencies before counting this as a failure"
            }
            VertexStatus::Delayed(_) => "failed, retrying",
            VertexStatus::Failed => "failed, no retries left",
            VertexStatus::Held(HeldReason::WouldChange) => "would change (noop)",
            VertexStatus::Held(HeldReason::Window(window)) => {
                let windows = self.graph.windows();
                let text = windows.get(window.0 as usize).map_or("", |(text, _)| text.as_str());
                return (format!("would change, maintenance window closed ({text})"), Vec::new());
            }
            VertexStatus::Held(HeldReason::WouldRefresh) => "would refresh (noop)",
            VertexStatus::Held(HeldReason::UnknownUntil(_)) => {
                "unknown until another resource is changed"
            }
            VertexStatus::Held(HeldReason::Operator) => {
                "interrupted, waiting for the operator (`steadfast retry`)"
            }
            VertexStatus::Stuck(..) => "the run does not return",
        };
        let waits_for = match standing {
            VertexStatus::WaitingFor(ids) | VertexStatus::Asking(ids) => self.names(ids),
            VertexStatus::Held(HeldReason::UnknownUntil(id)) => self.names(&[*id]),
            _ => Vec::new(),
        };
        (says.to_owned(), waits_for)
    }

    fn details(&self, id: VertexId) -> ResourceDetails {
        let mut standing = self.current_status(id).unwrap_or(VertexStatus::Settled);
        if let VertexStatus::WaitingFor(ids) = &mut standing {
            self.worst_first(ids);
        }
        let (needs, needed_by) = self.engine.neighbours(self.graph.groups().leader(id));
        ResourceDetails {
            status: self.resource_status(id, &standing),
            needs: self.names(&needs),
            needed_by: self.names(&needed_by),
            waited_for_by: self.waiters(id),
            watch: self.watch_in_words(id),
            declared_at: self.graph.declared_at(id),
            owned: self.ownership.record(self.graph.name(id)).map(|owned| Ownership {
                created: owned.origin.map(|origin| origin == Origin::Created),
                on_remove_delete: owned.delete,
                protected: owned.is_protected(),
            }),
            condition_at: None,
        }
    }

    fn watch_in_words(&self, id: VertexId) -> String {
        if self.watches.states.polled.unwatched().contains(&self.graph.groups().leader(id)) {
            return "not watched: polled every 30 seconds".to_owned();
        }
        let Some(entry) = self.graph.get(id) else { return String::new() };
        let mut words: Vec<&str> = Vec::new();
        let footprint = entry.resource.footprint();
        for source in footprint.watch {
            let word = match source {
                WatchSource::Path { .. } | WatchSource::Supply(_) | WatchSource::Tree(_) => {
                    "inotify"
                }
                WatchSource::Every(_) => "time",
                WatchSource::Lines(_) => "a watch command",
                WatchSource::Unit { .. } => "systemd",
                WatchSource::World(_) => "the world",
                WatchSource::Polled(_) => "a poll every 30 seconds",
            };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let words = if words.is_empty() { "none needed".to_owned() } else { words.join(", ") };
        if footprint.guard_watches.is_empty() {
            return words;
        }
        let files = footprint.guard_watches.iter().map(|path| path.display().to_string());
        format!("{words}; guard watches: {}", files.collect::<Vec<_>>().join(", "))
    }

    /// Returns the identities of these engine vertices; a group is replaced by its concerned members.
    pub(super) fn names(&self, ids: &[VertexId]) -> Vec<String> {
        let each = ids.iter().flat_map(|id| self.runs.concerned(self.graph.groups(), *id));
        each.map(|id| self.graph.name(id).to_owned()).collect()
    }
}

pub(super) fn phase(standing: &VertexStatus) -> Phase {
    match standing {
        VertexStatus::Stuck(..) => Phase::Stuck,
        VertexStatus::Failed => Phase::Failed,
        VertexStatus::Delayed(_) => Phase::Delayed,
        VertexStatus::Held(_) | VertexStatus::Paused => Phase::Held,
        VertexStatus::Contended { .. } => Phase::Contended,
        VertexStatus::WaitingForWatch
        | VertexStatus::WaitingFor(_)
        | VertexStatus::Asking(_)
        | VertexStatus::WaitingForLimit(_)
        | VertexStatus::WaitingForRepairLimit(_)
        | VertexStatus::WaitingForSemaphore
        | VertexStatus::WaitingForSlot
        | VertexStatus::Suspended => Phase::Waiting,
        VertexStatus::Running(..) => Phase::Running,
        VertexStatus::Settled => Phase::Settled,
    }
}

fn seconds(nanoseconds: u64) -> u64 {
    Duration::from_nanos(nanoseconds).as_secs()
}
