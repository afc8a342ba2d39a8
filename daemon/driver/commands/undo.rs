//! Undo: restores a prior state of a resource with a permit of its own, beside the engine, which sees the result as
//! drift.

use crate::driver::temp_cleanup::clean_up;
use crate::driver::undo_values::{put_back, read_units};
use crate::driver::{Driver, DriverEvent};
use crate::history::{History, HistoryError, UNDO, Undo, UndoStep, Undoable};
use crate::store::AuditEntry;
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_engine::{Event, VertexStatus};
use steadfast_resources::KindSet;
use steadfast_resources::Restoring;
use steadfast_resources::host::Files;
use steadfast_resources::host::files::{RestoredDirectories, Why, printable};
use steadfast_resources::{Failure, Host, MintKey, PriorShape, PriorState};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The prefix of each restored path in the message of a partly failed undo.
pub const PUT_BACK: &str = "already restored:";

/// The folder of the unit files of this host: systemd reads them again when one is restored.
const UNITS: &str = "/etc/systemd/system";

/// The prefix of each failure of an undo after the first.
const NOT_PUT_BACK: &str = "not restored:";

/// The maximum number of failures that a message describes; more are counted.
const TOLD: usize = 10;

/// The restored paths, one line for each, or the error.
pub type Undone = Result<Vec<String>, UndoError>;

/// The error of an undo, with the paths that were restored in spite of it.
#[derive(Clone, Debug)]
pub struct UndoError {
    /// The failure.
    pub failure: Failure,
    /// One line for each restored path.
    pub before: Vec<String>,
}

impl From<Failure> for UndoError {
    fn from(failure: Failure) -> Self {
        Self { failure, before: Vec::new() }
    }
}

/// Returns the audit entry of an undo; `None` if nothing was changed.
#[must_use]
pub fn undo_audit_entry(resource: &str, undone: &Undone) -> Option<AuditEntry> {
    let says = match undone {
        Ok(lines) => lines.join("; "),
        Err(UndoError { before, .. }) if before.is_empty() => return None,
        Err(UndoError { failure, before }) => {
            let mut lines = failure.what.lines();
            let mut why = lines.next().unwrap_or_default().to_owned();
            for more in lines.filter_map(|line| line.strip_prefix(NOT_PUT_BACK)) {
                why.push_str(&format!(";{more}"));
            }
            format!("{}; not restored: {why}", before.join("; "))
        }
    };
    Some(AuditEntry { what: "undone", resource: resource.into(), message: says })
}

/// Returns the steps that [`undo`] would take, without any change.
///
/// # Errors
///
/// A failure if the history has no record of the resource or cannot be read, or if the values cannot be restored.
pub fn to_undo(history: &History, what: &Undo, kinds: &KindSet) -> Result<Undoable, Failure> {
    let unknown = |error: HistoryError| Failure::new(error.to_string());
    let nothing = || Failure::new(format!("no recorded changes of {}", what.resource));
    let reader = history.read().map_err(unknown)?.ok_or_else(nothing)?;
    let undoable = reader.undo(what).map_err(unknown)?;
    restoring(what, &undoable, kinds)?;
    Ok(undoable)
}

/// Returns the resource with its prior values; `None` if the undo concerns paths only.
fn restoring(
    what: &Undo,
    undoable: &Undoable,
    kinds: &KindSet,
) -> Result<Option<Restoring>, Failure> {
    let values = &undoable.values;
    if values.is_empty() {
        return Ok(None);
    }
    kinds.restoring(&what.resource, values).map(Some)
}

/// Restores the state of a resource before its last change, or before a given change and all later ones. Blocks. The
/// undo is recorded in the history like any change. A cancelled undo takes no further step.
///
/// # Errors
///
/// The failures of all steps; other steps may have succeeded.
pub fn undo(
    key: &MintKey,
    host: &Host,
    history: &Arc<History>,
    (what, cancel): (&Undo, CancellationToken),
    kinds: &KindSet,
) -> Undone {
    // The interrupted work may be an earlier undo.
    clean_up(key, host, history);
    let undoable = to_undo(history, what, kinds)?;
    let restoring = restoring(what, &undoable, kinds)?;
    let Undoable { steps, left, again, run, undoing, .. } = undoable;
    check_directories(host, &steps)?;
    history.begin_undo(undoing);
    // Paths and values share one history entry: a later undo reverts both.
    let keeper = history.keeper_of(&what.resource, UNDO, run);
    // A cancelled permit refuses the next step.
    let permit = key.mint(cancel.clone(), keeper.into());
    let (mut before, mut same) = (Vec::new(), Vec::new());
    let (mut failed, mut directories) = (Vec::new(), RestoredDirectories::default());
    let (mut has_units, mut withheld) = (false, 0);
    for UndoStep { path, former, edits } in steps {
        let name = printable(&path);
        let (files, goal) = (host.files(), (&*path, &former));
        let restored = match edits.as_slice() {
            [] => files.restore(&permit, goal, &mut directories),
            edits => files.restore_part(&permit, goal, edits, &mut directories),
        };
        match restored {
            Ok(done) if done.is_empty() => {
                same.push(format!("{name}: already in the former state"));
            }
            Ok(done) => {
                has_units |= path.starts_with(UNITS);
                before.push(format!("{name}: {}", done.join(", ")));
            }
            // The other steps go on, unless the undo was cancelled.
            Err(fault) => {
                let (is_cut_off, touched) = (matches!(fault.why, Why::Revoked), fault.touched);
                withheld += usize::from(matches!(fault.why, Why::Withheld(_)));
                failed.push(host.files().failure(fault, &path));
                if touched {
                    before.push(format!("{name}: a part, before the failure"));
                }
                if is_cut_off {
                    break;
                }
            }
        }
    }
    if has_units {
        before.extend(read_units(host, &permit));
    }
    if let Some(restoring) = restoring.filter(|_| failed.len() == withheld) {
        let name = &what.resource;
        match put_back(host, (&permit, cancel), &restoring) {
            Ok(done) if done.is_empty() => same.push(format!("{name}: as it was already")),
            Ok(done) => before.push(format!("{name}: {}", done.join(", "))),
            Err(failure) => failed.push(failure),
        }
    }
    history.flush();
    // An undo that stopped halfway can be continued.
    // Another undo would withhold the same privileges.
    let is_over = failed.len() == withheld;
    if is_over || (before.is_empty() && !again) {
        history.end_undo(&what.resource);
    }
    let Some(mut failure) = as_one(failed) else {
        before.append(&mut same);
        if again {
            before.push("completing an interrupted undo".to_owned());
        }
        before.extend(left.into_iter().map(|why| format!("left unchanged: {why}")));
        return Ok(before);
    };
    for line in &before {
        failure.what.push_str(&format!("\n{PUT_BACK} {line}"));
    }
    if !is_over && (!before.is_empty() || again) {
        failure.what.push_str("\nthe next undo without --to continues with this one");
    }
    Err(UndoError { failure, before })
}

/// Combines the failures of an undo, the first one leading; `None` if there are none.
fn as_one(failed: Vec<Failure>) -> Option<Failure> {
    let mut failed = failed.into_iter();
    let mut first = failed.next()?;
    for failure in failed.by_ref().take(TOLD - 1) {
        let what = failure.what.replace('\n', ": ");
        first.what.push_str(&format!("\n{NOT_PUT_BACK} {what}"));
    }
    match failed.count() {
        0 => {}
        more => first.what.push_str(&format!("\n{NOT_PUT_BACK} {more} more")),
    }
    Some(first)
}

/// Rejects an undo before its first step if a path would return into a directory that does not exist and is not
/// restored.
fn check_directories(host: &Host, steps: &[UndoStep]) -> Result<(), Failure> {
    let mut directories = BTreeSet::new();
    for UndoStep { path, former, .. } in steps {
        let PriorState::Thing(thing) = former else { continue };
        let comes_back = path.ancestors().skip(1).any(|above| directories.contains(above));
        match host.files().open_entry(path) {
            _ if comes_back => {}
            Ok(Some(_)) => {}
            Ok(None) => {
                let hint = "create the directory first; nothing was changed";
                return Err(Files::no_directory(path).hint(hint));
            }
            Err(fault) => return Err(host.files().failure(fault, path)),
        }
        if thing.shape == PriorShape::Directory {
            directories.insert(path.as_path());
        }
    }
    Ok(())
}

/// Undos in progress. The driver cancels them at its end and waits for them.
#[derive(Debug, Default)]
pub(in crate::driver) struct ActiveUndos {
    under_way: BTreeSet<String>,
    cancel: CancellationToken,
}

impl ActiveUndos {
    pub(in crate::driver) fn end(&mut self, resource: &str) {
        self.under_way.remove(resource);
    }

    /// Returns true if an undo is in progress.
    pub(in crate::driver) fn goes_on(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Cancels all undos; returns true once none is in progress.
    pub(in crate::driver) fn is_over(&self) -> bool {
        self.cancel.cancel();
        !self.goes_on()
    }
}

impl Driver {
    /// Starts an undo on a blocking thread. The resource must be at rest, or in no graph.
    pub(in crate::driver) fn undo(&mut self, what: Undo, answer: oneshot::Sender<Undone>) {
        let (key, history) = match self.may_undo(&what.resource) {
            Ok(found) => found,
            Err(failure) => return drop(answer.send(Err(failure.into()))),
        };
        let (host, kinds) = (self.runtime.host.clone(), self.graph.kinds.clone());
        let (presence, inbox) = (self.runtime.presence(), self.runtime.inbox());
        let cancel = self.commands.undos.cancel.clone();
        self.commands.undos.under_way.insert(what.resource.clone());
        drop(tokio::task::spawn_blocking(move || {
            let undone = undo(&key, &host, &history, (&what, cancel), &kinds);
            // The client may have gone.
            let deed = undo_audit_entry(&what.resource, &undone);
            inbox.put(DriverEvent::Undone(what.resource, deed));
            drop(presence);
            drop(answer.send(undone));
        }));
    }

    /// Finishes an undo: reports it, and applies renames that waited for its end.
    pub(in crate::driver) fn undone(&mut self, resource: &str, deeds: &[AuditEntry]) {
        self.commands.undos.end(resource);
        self.notify_done(deeds);
        // The source of events may take the change for one of our own.
        if let Some(id) = self.graph.number(resource).filter(|id| self.graph.get(*id).is_some()) {
            self.turn(Event::Suspect(self.graph.groups().leader(id)));
        }
        self.rename_history();
    }

    fn may_undo(&self, resource: &str) -> Result<(Arc<MintKey>, Arc<History>), Failure> {
        if self.commands.undos.under_way.contains(resource) {
            return Err(Failure::new(format!("an undo of {resource} is already in progress")));
        }
        if let Some(why) = self.mode.read_only() {
            return Err(Failure::new(format!(
                "the daemon is read-only, no changes are made: {why}"
            )));
        }
        if let Some(why) = self.permission.lease.loss() {
            return Err(Failure::new(format!("no changes are made without the lease: {why}")));
        }
        if let Some(id) = self.graph.number(resource).filter(|id| self.graph.get(*id).is_some()) {
            if !self.is_resource_paused(id) {
                let why = format!("{resource} is not paused: its graph would reverse the undo");
                return Err(Failure::new(why));
            }
            if matches!(
                self.current_status(id),
                Some(VertexStatus::Running(..) | VertexStatus::Stuck(..))
            ) {
                return Err(Failure::new(format!("{resource} is being processed")));
            }
        }
        self.permission.for_undo().ok_or_else(|| Failure::new("the history is disabled"))
    }
}
