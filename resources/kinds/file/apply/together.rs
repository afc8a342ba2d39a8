//! Several files whose new contents one validation command judges together, under their final paths.
//!
//! The files are staged one inside the other: the validation of a staged file first applies the files before it, and
//! the innermost one runs the command on all staged contents. After an acceptance the files are replaced in the order
//! of their resources; after a rejection none is.

use super::steps::Hands;
use super::validate::{Rejection, Validation, staged_file};
use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::host::Host;
use crate::host::files::{Acceptance, Fault, said};
use crate::kinds::file::File;
use crate::parts::validate_command::StagedFile;
use crate::permit::Permit;
use crate::transaction::{Grouping, Member, Transaction};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Files with the same validation command, in the order of their resources.
#[derive(Debug)]
struct Together(Vec<Arc<File>>);

impl File {
    /// Returns the group of the files that one run of the validation command judges.
    pub(in crate::kinds::file) fn grouping(&self) -> Option<Grouping> {
        let words = self.rare().validate.shared_run()?;
        Some(Grouping {
            key: format!("file validated by {}", words.join("\0")),
            part: Arc::new(self.clone()) as Arc<dyn Any + Send + Sync>,
            unite,
        })
    }
}

fn unite(members: Vec<Member>) -> Arc<dyn Transaction> {
    let files = members.into_iter().filter_map(|member| member.downcast::<File>().ok());
    Arc::new(Together(files.collect()))
}

impl Transaction for Together {
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, Vec<CheckResult>> {
        Box::pin(async move { self.0.iter().map(|it| it.verdict(host.files(), &ask)).collect() })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async move { apply_in_rounds(&self.0, (host, permit), changes) })
    }
}

/// The largest number of files that one run judges. Each staged file keeps some descriptors open, and a part of the
/// stack.
const MOST: usize = 32;

/// Applies the changes, at most [`MOST`] with one run of the command.
fn apply_in_rounds(
    files: &[Arc<File>],
    (host, permit): (&Host, &Permit),
    mut changes: Vec<Option<Change>>,
) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Unchanged; files.len()];
    while changes.iter().any(Option::is_some) {
        let mut left = MOST;
        let taken: Vec<Option<Change>> = changes
            .iter_mut()
            .map(|change| {
                let taken = if left > 0 { change.take() } else { None };
                left -= usize::from(taken.is_some());
                taken
            })
            .collect();
        let is_due: Vec<bool> = taken.iter().map(Option::is_some).collect();
        let done = Round::new(files, host, permit, taken).run();
        for ((slot, outcome), is_due) in outcomes.iter_mut().zip(done).zip(is_due) {
            if is_due {
                *slot = outcome;
            }
        }
    }
    outcomes
}

/// One run of the command, with the files that it judges.
pub(in crate::kinds::file) struct Round<'a> {
    files: &'a [Arc<File>],
    host: &'a Host,
    permit: &'a Permit,
    /// The changes that are not begun yet.
    changes: RefCell<Vec<Option<Change>>>,
    /// The staged files, outermost first.
    staged: RefCell<Vec<StagedFile>>,
    /// A staged content is secret.
    has_secret: Cell<bool>,
    /// The result of the command; none before it ran.
    judgement: RefCell<Option<Result<(), Rejection>>>,
    outcomes: RefCell<Vec<Outcome>>,
    /// A file that was accepted and then not replaced.
    left_out: Cell<Option<usize>>,
}

/// The validation of one member of a round.
pub(in crate::kinds::file) struct MemberValidation<'a> {
    round: &'a Round<'a>,
    own: &'a Validation<'a>,
}

impl<'a> Round<'a> {
    fn new(
        files: &'a [Arc<File>],
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Self {
        Self {
            files,
            host,
            permit,
            changes: RefCell::new(changes),
            staged: RefCell::default(),
            has_secret: Cell::new(false),
            judgement: RefCell::default(),
            outcomes: RefCell::new(vec![Outcome::Unchanged; files.len()]),
            left_out: Cell::new(None),
        }
    }

    fn run(self) -> Vec<Outcome> {
        while let Some((number, change)) = self.last_change() {
            self.apply_one(number, change);
        }
        self.outcomes.into_inner()
    }

    /// Takes the last change that is not begun: its file is replaced after those before it.
    fn last_change(&self) -> Option<(usize, Change)> {
        let mut changes = self.changes.borrow_mut();
        let number = changes.iter().rposition(Option::is_some)?;
        changes.get_mut(number)?.take().map(|change| (number, change))
    }

    fn apply_one(&self, number: usize, change: Change) {
        let Some(file) = self.files.get(number) else { return };
        let permit = self.permit.for_member(number);
        let hands = Hands { file, host: self.host, permit: &permit, round: Some(self) };
        let outcome = file.make_so_with(hands, change);
        let is_failed = matches!(outcome, Outcome::Failed { .. } | Outcome::Interrupted);
        if is_failed && matches!(*self.judgement.borrow(), Some(Ok(()))) {
            self.left_out.set(Some(number));
        }
        if let Some(slot) = self.outcomes.borrow_mut().get_mut(number) {
            *slot = outcome;
        }
    }

    /// Returns the validation of a member that stages a content.
    pub(in crate::kinds::file) fn member<'b>(
        &'b self,
        own: &'b Validation<'b>,
    ) -> MemberValidation<'b> {
        MemberValidation { round: self, own }
    }

    /// Applies the changes before the staged ones; the last of them runs the command. Returns its result.
    fn judge_with_rest(&self, own: &Validation<'_>) -> Result<(), Rejection> {
        while let Some((number, change)) = self.last_change() {
            self.apply_one(number, change);
            // Changes of attributes alone, and failures before the staging, have no part in the judgement.
            if let Some(judgement) = self.judgement.borrow().clone() {
                return judgement;
            }
        }
        let all = Validation { secret: self.has_secret.get(), ..*own };
        let judgement = all.judge(&self.staged.borrow());
        self.judgement.replace(Some(judgement.clone()));
        judgement
    }
}

impl fmt::Debug for MemberValidation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)
    }
}

impl Acceptance for MemberValidation<'_> {
    fn accept(&self, candidate: &Path) -> Result<(), Fault> {
        let (round, own) = (self.round, self.own);
        round.staged.borrow_mut().push(staged_file(candidate, own.path)?);
        round.has_secret.set(round.has_secret.get() || own.secret);
        let judgement = round.judge_with_rest(own);
        round.staged.borrow_mut().pop();
        judgement.map_err(|rejection| rejection.fault(own.path))?;
        let left_out = round.left_out.get().and_then(|number| round.files.get(number));
        match left_out {
            None => Ok(()),
            Some(other) => {
                let why = format!("{} is validated with it and failed", other.path.display());
                Err(Fault::refused(said("write", own.path, &why)))
            }
        }
    }
}
