//! The handler of requests over the control socket: it passes them to the driver, the events, the graph loader or the
//! log.

use crate::api::{
    Data, HostStatus, LogLevelSet, Principal, Reloaded, Reply, ReplySink, Request, ResourceDetails,
    ResourceStatus, State, Status, Undone,
};
use crate::control::RequestHandler;
use crate::driver::{DriverEvent, ListRequest, Query};
use crate::events::{Wanted, without_messages};
use crate::history::Undo;
use crate::store::{Maintenance, StateCommand};
use crate::workers::errors::{LogLevelError, MaintenanceError};
use crate::workers::graph::loader::ReloadCause;
use crate::workers::reporting::health;
use crate::workers::reporting::host_limits;
use crate::workers::requests::conditions;
use crate::workers::requests::event_query::EventQuery;
use crate::workers::requests::parts::HandlerParts;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::{LONGEST_SPAN, printable};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// The time limit of a query to the driver. Its turns are short, but a graph may just be loading.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time limit of a reload.
const RELOAD: Duration = Duration::from_mins(1);

/// The time limit of a check of resources.
const LOOKS: Duration = Duration::from_mins(2);

/// The interval at which a paused resource is polled until its run ends.
const REST: Duration = Duration::from_millis(20);

/// The maximum length of the chain in a reply to `why`.
const STEPS: usize = 100;

/// A function that changes the level of the log. The error says why not.
pub type SetLog = Box<dyn Fn(&str) -> Result<(), LogLevelError> + Send + Sync>;

/// Converts the length of a pause, and rejects an invalid one.
pub(super) fn span(seconds: u64) -> Result<Duration, Reply> {
    let limit = LONGEST_SPAN.as_secs();
    if (1..=limit).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    Err(Reply::Refused(format!("seconds: expected 1 to {limit} (a year), found {seconds}")))
}

/// The handler of a daemon's requests.
pub(in crate::workers) struct DaemonRequestHandler {
    pub(in crate::workers::requests) parts: HandlerParts,
    /// The right to compare selectors with all names: one request at a time.
    pub(in crate::workers::requests) searches: Arc<Semaphore>,
    /// The right to read the event log: of root and the daemon's user, and of all others.
    readers: [Arc<Semaphore>; 2],
}

/// The number of simultaneous reads of the event log for each of the two groups of users.
const READERS: usize = 4;

impl DaemonRequestHandler {
    pub(in crate::workers) fn new(parts: HandlerParts) -> Self {
        let readers = [READERS; 2].map(|places| Arc::new(Semaphore::new(places)));
        Self { parts, searches: Arc::new(Semaphore::new(1)), readers }
    }
}

/// The maximum number of rows of one reply, because replies are built in memory for many clients at once. A list
/// reports the total number, and continues from any row.
const ROWS: usize = 1000;

impl RequestHandler for DaemonRequestHandler {
    fn answer<'a>(
        &'a self,
        ask: Request,
        caller: Principal,
        replies: &'a mut dyn ReplySink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let answered = match self.check_directory(&ask).await {
                Ok(()) => self.attend(ask, caller, replies).await,
                lost => lost,
            };
            if let Err(other) = answered {
                replies.send(&other).await;
            }
        })
    }
}

impl DaemonRequestHandler {
    async fn attend(
        &self,
        ask: Request,
        caller: Principal,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        if ask.changes() {
            let command = printable(&ask.command()).into_owned();
            tracing::info!(event = "request", uid = caller.uid(), "command `{command}` received");
        }
        match self.expand_selectors(ask).await? {
            Request::Select { resources, limit } => {
                self.send_selected(resources, limit.min(ROWS), replies).await?;
            }
            Request::Status { limit } => {
                replies.send_data(self.status(limit.min(ROWS), caller).await?).await;
            }
            Request::Show { resource } => {
                replies.send_data(self.details(&resource).await?).await;
            }
            Request::List { filter, order, from, limit } => {
                let wanted = ListRequest { filter, order, from, limit: limit.min(ROWS) };
                replies.send_data(self.of_driver(|to| Query::List(wanted, to)).await?).await;
            }
            Request::Diff { resources, resume } => {
                let inspect = |to| Query::Inspect { resources, resume, to };
                let found = self.of_driver_in(LOOKS, inspect).await?;
                replies.send_data(found.map_err(Reply::Unknown)?).await;
            }
            Request::Names { prefix, limit } => {
                let names = self.of_driver(|to| Query::Names(prefix, limit.min(ROWS), to)).await?;
                replies.send_data(Data::Names(names)).await;
            }
            Request::Why { resource } => {
                replies.send_data(self.why(resource).await?).await;
            }
            Request::Events { follow, resources, from, since, limit, debug } => {
                let resources = self.recorded_names(resources).await?;
                let wanted = Wanted { from, since, resources, limit, details: debug };
                self.send_events((wanted, follow), caller, replies).await?;
            }
            Request::Workers => {
                replies.send_data(self.parts.shutdown.supervisor.report()).await;
            }
            Request::Pause { seconds, reason, resources, drain } => {
                self.pause((seconds, reason, drain), resources, replies).await?;
            }
            Request::Resume { resources } if resources.is_empty() => {
                self.of_next_driver(DriverEvent::Resume)?;
            }
            Request::Resume { resources } => self.order(resources, Query::ResumeResources).await?,
            Request::Reload { allow_empty, yes } => {
                self.reload((allow_empty, yes), replies).await?;
            }
            Request::Undo { resource, to, seconds, partial } => {
                span(seconds)?;
                let what = Undo { resource, to, partial };
                replies.send_data(self.undo(what, seconds).await?).await;
            }
            Request::StateImport => self.maintain(Maintenance::Import, replies).await?,
            Request::StateRepair => self.maintain(Maintenance::Repair, replies).await?,
            Request::Protect { resources } => {
                self.change_state(StateCommand::Protect, resources, replies).await?;
            }
            Request::Unprotect { resources } => {
                self.change_state(StateCommand::Unprotect, resources, replies).await?;
            }
            Request::Forget { resources } => {
                self.change_state(StateCommand::Forget, resources, replies).await?;
            }
            Request::Retry { resources, persist } => {
                self.retry(resources, persist, replies).await?;
            }
            Request::Check { resources } => self.order(resources, Query::CheckNow).await?,
            Request::Stop { now: true } => self.parts.shutdown.now(),
            Request::Stop { now: false } => self.parts.shutdown.begin(),
            Request::LogLevel { filter } => {
                replies.send_data(self.set_log_level(filter)?).await;
            }
            #[cfg(feature = "fault-injection")]
            Request::Fault { worker, how } => self.parts.inject_fault(&worker, &how)?,
        }
        Ok(())
    }

    async fn send_events(
        &self,
        (wanted, follow): (Wanted, bool),
        caller: Principal,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        let hides_values = !caller.is_trusted();
        let [of_root, of_others] = &self.readers;
        let readers = Arc::clone(if hides_values { of_others } else { of_root });
        let event_query = EventQuery { events: &self.parts.stream, wanted, hides_values, readers };
        event_query.send(&self.parts.state_directory, follow, replies).await
    }

    fn set_log_level(&self, level: String) -> Result<LogLevelSet, Reply> {
        self.parts.settings.set_log(&level)?;
        let until = "the next start, or a reload that changes `log_level`".to_owned();
        Ok(LogLevelSet { level, until })
    }

    async fn maintain(&self, what: Maintenance, replies: &mut dyn ReplySink) -> Result<(), Reply> {
        replies.send_data(self.maintain_state(what).await?).await;
        Ok(())
    }

    /// Rejects a command that changes the state if the state directory was replaced: the next start could not know
    /// about the change.
    async fn check_directory(&self, ask: &Request) -> Result<(), Reply> {
        if !matches!(
            ask,
            Request::Pause { .. }
                | Request::Resume { .. }
                | Request::Undo { .. }
                | Request::StateImport
                | Request::StateRepair
                | Request::Protect { .. }
                | Request::Unprotect { .. }
                | Request::Forget { .. }
                | Request::Retry { persist: true, .. }
        ) {
            return Ok(());
        }
        let Some(state_lock) = self.parts.lock.current() else { return Ok(()) };
        let looked = tokio::task::spawn_blocking(move || state_lock.check_place());
        match timeout(PATIENCE, looked).await {
            Ok(Ok(Err(lost))) => Err(Reply::Refused(format!("{lost}; restart steadfast"))),
            // The worker of the store reports a disk that does not answer.
            Ok(Ok(Ok(())) | Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Returns the status of the host and of the daemon.
    async fn status(&self, limit: usize, caller: Principal) -> Result<Status, Reply> {
        let before = self.parts.graph.has_unused_answers();
        let mut found = match self.of_driver(|to| Query::Status(limit, to)).await {
            Err(_) if self.is_starting() => Status::starting(),
            found => found?,
        };
        let is_behind = before || self.parts.graph.has_unused_answers();
        if is_behind && found.verdict == HostStatus::Converged {
            found.verdict = HostStatus::Converging;
        }
        let graph = self.parts.graph.first_path();
        found.fallback_reason = self.parts.graph.instead();
        (found.reboot, found.checkout) = host_limits::look(graph).await;
        found.daemon = health::look(&self.parts.health);
        conditions::add_conditions(&self.parts.graph, limit, &mut found);
        if !caller.is_trusted() {
            hide_messages(&mut found);
        }
        Ok(found)
    }

    /// Returns true if the first driver of this daemon has not started yet, and no worker before it has failed.
    fn is_starting(&self) -> bool {
        let report = self.parts.shutdown.supervisor.report();
        let is_well = |name: &&str| report.workers.get(*name).is_none_or(|one| one.failures == 0);
        *self.parts.requests.drivers().borrow() == 0
            && report.state != State::Stopping
            && ["lease", "store", "driver"].iter().all(is_well)
    }

    /// Carries out maintenance of the state. The daemon must be paused or read-only; afterwards the driver starts
    /// again with the new state.
    async fn maintain_state(&self, what: Maintenance) -> Result<Vec<String>, Reply> {
        let status = self.of_driver(|to| Query::Status(0, to)).await?;
        if status.read_only.is_none() && !status.pause.is_some_and(|pause| pause.at_rest) {
            return Err(Reply::Refused(MaintenanceError::NotPaused.to_string()));
        }
        let busy = || Reply::Unavailable("another state command is in progress".to_owned());
        let mut drivers = self.parts.requests.drivers();
        drivers.mark_unchanged();
        let answer = self.parts.maintenance.ask(what).ok_or_else(busy)?;
        match timeout(LOOKS, answer).await {
            Ok(Ok(Ok(lines))) => {
                // Later queries should reach the driver that has read the new state; the wait for it is limited.
                drop(timeout(PATIENCE, drivers.changed()).await);
                Ok(lines)
            }
            Ok(Ok(Err(why))) => Err(Reply::Refused(why.to_string())),
            Ok(Err(_)) | Err(_) => {
                Err(Reply::Unavailable("the state worker did not respond".to_owned()))
            }
        }
    }

    pub(super) async fn of_driver<T>(
        &self,
        query: impl FnOnce(oneshot::Sender<T>) -> Query,
    ) -> Result<T, Reply> {
        self.of_driver_in(PATIENCE, query).await
    }

    /// Sends a query with its own time limit to the driver.
    pub(super) async fn of_driver_in<T>(
        &self,
        within: Duration,
        query: impl FnOnce(oneshot::Sender<T>) -> Query,
    ) -> Result<T, Reply> {
        let (to, answer) = oneshot::channel();
        if self.parts.requests.put_now(DriverEvent::Query(query(to))).is_err() {
            return Err(self.no_driver());
        }
        match timeout(within, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(self.no_driver()),
            Err(_) => Err(Reply::Unavailable(self.busy())),
        }
    }

    /// Sends a request to the driver, or to the next one; fails if there will be none.
    pub(super) fn of_next_driver(&self, request: DriverEvent) -> Result<(), Reply> {
        if self.parts.shutdown.is_begun() {
            return Err(self.no_driver());
        }
        self.parts.requests.put(request);
        Ok(())
    }

    /// Describes a driver that has not answered.
    fn busy(&self) -> String {
        let report = self.parts.shutdown.supervisor.report();
        let hangs = report.workers.get("driver").and_then(|worker| worker.hangs_for);
        let busy = "the driver is busy and did not respond";
        match hangs {
            Some(long) => format!(
                "{busy} for {} s: the driver hangs; the systemd watchdog restarts the daemon, or kill the process",
                long / 1000
            ),
            None => format!("{busy}; try again in a few seconds"),
        }
    }

    /// Describes why no driver runs, and the time of the next attempt.
    fn no_driver(&self) -> Reply {
        let report = self.parts.shutdown.supervisor.report();
        if report.state == State::Stopping {
            return Reply::Unavailable(health::shutdown_progress(&report));
        }
        let driver = report.workers.get("driver");
        let why = driver.and_then(|worker| worker.last_error.clone());
        // A failure of the store also keeps the driver from running.
        let why = why.or_else(|| report.workers.get("store")?.last_error.clone());
        let next = driver.and_then(|worker| worker.next_attempt_in);
        let next = next
            .map(|ms| format!("; next try in {:.1} s", Duration::from_millis(ms).as_secs_f64()));
        Reply::Unavailable(match why {
            Some(why) => format!("the driver is not running: {why}{}", next.unwrap_or_default()),
            None => "the driver is starting; try again in a moment".to_owned(),
        })
    }

    async fn details(&self, resource: &str) -> Result<ResourceDetails, Reply> {
        let found = self.of_driver(|to| Query::Show(resource.to_owned(), to)).await?;
        if let Some(found) = found {
            return Ok(found);
        }
        match conditions::inactive_details(&self.parts.graph, resource) {
            Some(inactive) => Ok(inactive),
            None => Err(self.unknown(&[resource.to_owned()]).await),
        }
    }

    /// Returns the chain from a resource through the resources that it waits for.
    async fn why(&self, resource: String) -> Result<Vec<ResourceStatus>, Reply> {
        let mut path = vec![self.details(&resource).await?.status];
        let mut seen = BTreeSet::from([resource]);
        while path.len() < STEPS {
            let waits_for = path.last().map_or(&[][..], |last| &last.waits_for);
            let Some(next) = waits_for.iter().find(|name| !seen.contains(*name)).cloned() else {
                break;
            };
            path.push(self.details(&next).await?.status);
            seen.insert(next);
        }
        Ok(path)
    }

    /// Undoes the last change of a resource at rest. A declared resource is paused, because its graph would revert the
    /// undo.
    async fn undo(&self, what: Undo, seconds: u64) -> Result<Undone, Reply> {
        let (history, asked) = (Arc::clone(&self.parts.history), what.clone());
        let resource = what.resource.clone();
        // The history is checked before anything is paused.
        let look = tokio::task::spawn_blocking(move || match history.read() {
            Ok(Some(reader)) => reader.undo(&asked).map(drop).map_err(|why| why.to_string()),
            Ok(None) => Err(format!("no recorded changes of {}", asked.resource)),
            Err(why) => Err(why.to_string()),
        });
        look.await.map_err(|why| Reply::Refused(why.to_string()))?.map_err(Reply::Refused)?;
        let query = |to| Query::Show(resource.clone(), to);
        let before = self.of_driver(query).await?;
        if before.is_some() {
            let reason = "undone by command".to_owned();
            let limit = Some(Duration::from_secs(seconds));
            let names = vec![resource.clone()];
            let pause_of = |names, to| Query::PauseResources { names, limit, reason, to };
            if let Err(late) = self.order(names, pause_of).await {
                // The pause may have been stored although no answer came.
                self.resume_after_undo(resource, before.as_ref()).await;
                return Err(late);
            }
        }
        let put_back = async {
            if before.is_some() {
                self.rests(&resource).await?;
            }
            let undone = self.of_driver_in(LOOKS, |answer| Query::Undo(what, answer));
            undone.await?.map_err(|refused| Reply::Refused(refused.failure.what))
        };
        match put_back.await {
            Ok(lines) => Ok(Undone { lines, paused: before.is_some() }),
            Err(refused) => {
                self.resume_after_undo(resource, before.as_ref()).await;
                Err(refused)
            }
        }
    }

    /// Resumes a resource after a failed undo, unless it was paused before.
    async fn resume_after_undo(&self, resource: String, before: Option<&ResourceDetails>) {
        if before.is_some_and(|before| before.status.pause.is_none())
            && let Err(why) = self.order(vec![resource], Query::ResumeResources).await
        {
            tracing::warn!(?why, "the pause for the undo could not be ended");
        }
    }

    /// Waits until no run of a resource is active.
    async fn rests(&self, resource: &str) -> Result<(), Reply> {
        let rests = async {
            loop {
                let pause = self.details(resource).await?.status.pause;
                if pause.is_some_and(|pause| pause.at_rest) {
                    return Ok(());
                }
                tokio::time::sleep(REST).await;
            }
        };
        let late = |_| {
            Err(Reply::Unavailable("the current run takes too long; try again later".to_owned()))
        };
        timeout(RELOAD, rests).await.unwrap_or_else(late)
    }

    pub(super) async fn order(
        &self,
        resources: Vec<String>,
        query: impl FnOnce(Vec<String>, oneshot::Sender<Vec<String>>) -> Query,
    ) -> Result<(), Reply> {
        let strangers = self.of_driver(|to| query(resources, to)).await?;
        if strangers.is_empty() { Ok(()) } else { Err(self.unknown(&strangers).await) }
    }

    /// Reads the graph again, and replies with the result of that reload.
    async fn reload(
        &self,
        (allow_empty, yes): (bool, bool),
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        if yes {
            self.parts.world.allow_all();
        }
        let (to, answer) = oneshot::channel();
        let asker = if allow_empty { ReloadCause::Emptying } else { ReloadCause::Operator };
        self.parts.graph.ask(asker, Some(to));
        match timeout(RELOAD, answer).await {
            Ok(Ok(Ok(loaded))) => {
                let settings = self.parts.graph.settings_change();
                replies.send_data(Reloaded { loaded, settings }).await;
                Ok(())
            }
            Ok(Ok(Err(why))) => Err(Reply::Rejected(format!(
                "the previous graph is still running\n{}",
                why.to_string().trim_end()
            ))),
            Ok(Err(_)) | Err(_) => {
                Err(Reply::Unavailable("the result is not known yet".to_owned()))
            }
        }
    }
}

/// Hides the messages of a rejected graph, which quote values of the graph.
fn hide_messages(status: &mut Status) {
    for why in status.fallback_reason.iter_mut().chain(&mut status.read_only) {
        *why = without_messages(why);
    }
    if let Some(rejected) = &mut status.rejected {
        let hidden = without_messages(&rejected.details);
        if hidden != rejected.details {
            hidden.lines().next().unwrap_or_default().clone_into(&mut rejected.reason);
            rejected.details = hidden;
        }
    }
}
