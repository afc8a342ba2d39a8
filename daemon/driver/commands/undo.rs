//! What a resource was before its last changes is put back: with a permit of its own, beside the engine, which hears of it as of any
//! change from outside.

use crate::driver::temp_cleanup::sweep;
use crate::driver::{Driver, DriverEvent};
use crate::history::{History, HistoryError, UNDO, Undo, Undoable};
use crate::store::AuditEntry;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_engine::VertexStatus;
use steadfast_resources::host::Files;
use steadfast_resources::host::files::{Why, printable};
use steadfast_resources::{Failure, Host, MintKey, PriorShape, PriorState};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The words in front of each path that an undo put back although others failed.
pub const PUT_BACK: &str = "already restored:";

/// The words in front of each fault of an undo after the first one.
const NOT_PUT_BACK: &str = "not restored:";

/// So many faults of an undo are told in words; the others are counted.
const TOLD: usize = 10;

/// What was put back, a line for each path; or why not.
pub type Undone = Result<Vec<String>, UndoError>;

/// Why it is not undone as a whole, and what was put back all the same.
#[derive(Clone, Debug)]
pub struct UndoError {
    /// Why.
    pub trouble: Failure,
    /// A line for each path.
    pub before: Vec<String>,
}

impl From<Failure> for UndoError {
    fn from(trouble: Failure) -> Self {
        Self { trouble, before: Vec::new() }
    }
}

/// What was put back by it, as a deed; none where nothing was touched.
#[must_use]
pub fn deed(resource: &str, undone: &Undone) -> Option<AuditEntry> {
    let says = match undone {
        Ok(lines) => lines.join("; "),
        Err(UndoError { before, .. }) if before.is_empty() => return None,
        Err(UndoError { trouble, before }) => {
            let mut lines = trouble.what.lines();
            let mut why = lines.next().unwrap_or_default().to_owned();
            for more in lines.filter_map(|line| line.strip_prefix(NOT_PUT_BACK)) {
                why.push_str(&format!(";{more}"));
            }
            format!("{}; not restored: {why}", before.join("; "))
        }
    };
    Some(AuditEntry { what: "undone", resource: resource.into(), message: says })
}

/// What would be put back by [`undo`]; or why that cannot be done. Changes nothing.
pub fn to_undo(history: &History, what: &Undo) -> Result<Undoable, Failure> {
    let unknown = |error: HistoryError| Failure::new(error.to_string());
    let nothing = || Failure::new(format!("no recorded changes of {}", what.resource));
    let reader = history.read().map_err(unknown)?.ok_or_else(nothing)?;
    reader.undo(what).map_err(unknown)
}

/// Puts back what a resource was before its last run that changed anything, or before a change and all that followed. Blocks. The
/// undo is a change like others: it is in the history too. Once it is cancelled no further step is done.
pub fn undo(
    key: &MintKey,
    host: &Host,
    history: &Arc<History>,
    (what, cancel): (&Undo, CancellationToken),
) -> Undone {
    // Also where it was an undo that was cut off.
    sweep(key, host, history);
    let Undoable { steps, left, again, run, undoing } = to_undo(history, what)?;
    check_directories(host, &steps)?;
    history.begin_undo(undoing);
    // Both halves are one: they are undone together.
    let keeper = history.keeper_of(&what.resource, UNDO, run);
    // Who is cancelled is refused the next step.
    let permit = key.mint(cancel).kept_by(keeper);
    let (mut before, mut same) = (Vec::new(), Vec::new());
    let mut failed = Vec::new();
    for (path, former) in steps {
        let name = printable(&path);
        match host.files().restore(&permit, &path, &former) {
            Ok(done) if done.is_empty() => {
                same.push(format!("{name}: already in the former state"))
            }
            Ok(done) => before.push(format!("{name}: {}", done.join(", "))),
            // The rest is put back all the same, unless it was asked to stop.
            Err(fault) => {
                let is_cut_off = matches!(fault.why, Why::Revoked);
                failed.push(host.files().trouble(fault, &path));
                if is_cut_off {
                    break;
                }
            }
        }
    }
    history.flush();
    // What has stopped half way is to be gone on with.
    if failed.is_empty() || (before.is_empty() && !again) {
        history.end_undo(&what.resource);
    }
    let Some(mut trouble) = as_one(failed) else {
        before.append(&mut same);
        if again {
            before.push("completing an interrupted undo".to_owned());
        }
        before.extend(left.into_iter().map(|why| format!("left unchanged: {why}")));
        return Ok(before);
    };
    for line in &before {
        trouble.what.push_str(&format!("\n{PUT_BACK} {line}"));
    }
    if !before.is_empty() || again {
        trouble.what.push_str("\nthe next undo without --to continues with this one");
    }
    Err(UndoError { trouble, before })
}

/// All faults of an undo as one, which begins with the first; none where there was none.
fn as_one(failed: Vec<Failure>) -> Option<Failure> {
    let mut failed = failed.into_iter();
    let mut first = failed.next()?;
    for trouble in failed.by_ref().take(TOLD - 1) {
        let what = trouble.what.replace('\n', ": ");
        first.what.push_str(&format!("\n{NOT_PUT_BACK} {what}"));
    }
    match failed.count() {
        0 => {}
        more => first.what.push_str(&format!("\n{NOT_PUT_BACK} {more} more")),
    }
    Some(first)
}

/// Refuses an undo before its first step where something is to come back into a directory that neither exists nor comes back.
fn check_directories(host: &Host, steps: &[(PathBuf, PriorState)]) -> Result<(), Failure> {
    let mut directories = BTreeSet::new();
    for (path, former) in steps {
        let PriorState::Thing(thing) = former else { continue };
        let comes_back = path.ancestors().skip(1).any(|above| directories.contains(above));
        match host.files().spot(path) {
            _ if comes_back => {}
            Ok(Some(_)) => {}
            Ok(None) => {
                let hint = "create the directory first; nothing was changed";
                return Err(Files::no_directory(path).hint(hint));
            }
            Err(fault) => return Err(host.files().trouble(fault, path)),
        }
        if thing.shape == PriorShape::Directory {
            directories.insert(path.as_path());
        }
    }
    Ok(())
}

/// What is being undone beside the engine. The driver ends after it, and asks it to end.
#[derive(Debug, Default)]
pub(in crate::driver) struct ActiveUndos {
    under_way: BTreeSet<String>,
    cancel: CancellationToken,
}

impl ActiveUndos {
    pub(in crate::driver) fn end(&mut self, resource: &str) {
        self.under_way.remove(resource);
    }

    /// Whether any goes on.
    pub(in crate::driver) fn goes_on(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether there is nothing to wait for, once the driver has come to its end.
    pub(in crate::driver) fn is_over(&self) -> bool {
        self.cancel.cancel();
        !self.goes_on()
    }
}

impl Driver {
    /// The same beside what runs. The resource rests, or is in no graph.
    pub(in crate::driver) fn undo(&mut self, what: Undo, answer: oneshot::Sender<Undone>) {
        let history = match self.may_undo(&what.resource) {
            Ok(history) => history,
            Err(why) => return drop(answer.send(Err(Failure::new(why).into()))),
        };
        let (key, host) = (Arc::clone(&self.key), self.host.clone());
        let (presence, inbox) = (Arc::clone(&self.presence), self.inbox.clone());
        let cancel = self.undoing.cancel.clone();
        self.undoing.under_way.insert(what.resource.clone());
        drop(tokio::task::spawn_blocking(move || {
            let undone = undo(&key, &host, &history, (&what, cancel));
            // Who asked may have gone meanwhile.
            let deed = deed(&what.resource, &undone);
            inbox.put(DriverEvent::Undone(what.resource, deed));
            drop(presence);
            drop(answer.send(undone));
        }));
    }

    /// It is over: what a graph has said of names meanwhile is followed now.
    pub(in crate::driver) fn undone(&mut self, resource: &str, deeds: &[AuditEntry]) {
        self.undoing.end(resource);
        self.tell_done(deeds);
        self.rename_history();
    }

    fn may_undo(&self, resource: &str) -> Result<Arc<History>, String> {
        if self.undoing.under_way.contains(resource) {
            return Err(format!("an undo of {resource} is already in progress"));
        }
        if let Some(why) = &self.observing {
            return Err(format!("the daemon is read-only, no changes are made: {why}"));
        }
        if let Some(why) = self.without_lease() {
            return Err(format!("no changes are made without the lease: {why}"));
        }
        if let Some(id) = self.table.number(resource).filter(|id| self.table.get(*id).is_some()) {
            if !self.is_parked(id) {
                return Err(format!("{resource} is not paused: its graph would reverse the undo"));
            }
            if matches!(
                self.current_status(id),
                Some(VertexStatus::Running(..) | VertexStatus::Stuck(..))
            ) {
                return Err(format!("{resource} is being processed"));
            }
        }
        self.history.clone().ok_or_else(|| "the history is disabled".to_owned())
    }
}
