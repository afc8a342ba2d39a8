//! Edits of one file by several resources: the file is read once and written once.

use super::{Found, TextEdit, one_result};
use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::host::Host;
use crate::host::files::{
    Acceptance, AccountKind, Content, Draft, EntryStat, Fault, Files, FormerFile, LateContent, Why,
    said,
};
use crate::host::unfinished::note_own_write;
use crate::kinds::file::Validation;
use crate::parts::edit_share::LARGEST;
use crate::parts::file_turn::FileTurn;
use crate::parts::text_bytes::{decoded, encoded};
use crate::permit::Permit;
use crate::prior_state::{EDITED_TOGETHER, Loss};
use crate::secrets::hidden_difference::is_hidden;
use crate::transaction::{Member, Transaction};
use std::sync::Arc;

/// The number of attempts on a file that changes meanwhile.
const ATTEMPTS: usize = 3;

/// The number of replaced files in a row into which other programs may write.
const LATE_ROUNDS: usize = 20;

/// Edits of one file, in the order of their resources.
#[derive(Debug)]
pub(super) struct Together(pub(super) Vec<Arc<TextEdit>>);

/// A file that an edit has replaced.
struct Replaced {
    former: FormerFile,
    /// The text of the replaced file.
    text: String,
    /// The text of the new file.
    new: String,
}

/// The text that another program has written into a replaced file.
struct LateText {
    /// The text of the replaced file when it was read.
    base: String,
    /// The text of the replaced file now.
    late: String,
    /// The text that replaced it.
    edited: String,
    /// The state of the replaced file.
    of: EntryStat,
}

impl LateText {
    /// Returns a text with the late one: appended lines come to its end, and a replaced file that was written anew
    /// counts if nobody has changed the new file.
    fn merged_with(&self, current: &str) -> Option<String> {
        let is_whole = self.base.is_empty() || self.base.ends_with('\n');
        match self.late.strip_prefix(&self.base).filter(|_| is_whole) {
            Some(lines) => {
                let end = if current.is_empty() || current.ends_with('\n') { "" } else { "\n" };
                Some(format!("{current}{end}{lines}"))
            }
            None if current == self.edited => Some(self.late.clone()),
            None => None,
        }
    }
}

/// The record of a step in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    /// The step is recorded.
    Noted,
    /// The step before is recorded, and this one loses nothing: an undo reverses the edit alone.
    Known,
}

/// Returns the transaction of several edits.
pub(super) fn unite(members: Vec<Member>) -> Arc<dyn Transaction> {
    let edits = members.into_iter().filter_map(|member| member.downcast::<TextEdit>().ok());
    Arc::new(Together(edits.collect()))
}

impl Together {
    /// Compares each part with the file, which is read once.
    fn compare(&self, host: &Host) -> Vec<CheckResult> {
        let Some(first) = self.0.first() else { return Vec::new() };
        let read = first.read(host.files());
        let Ok(found) = &read else {
            let fault = |edit: &Arc<TextEdit>| match edit.read(host.files()) {
                Err(fault) => CheckResult::Unknown(host.files().failure(fault, &edit.path)),
                Ok(found) => one_result(edit, &found),
            };
            return self.0.iter().map(fault).collect();
        };
        self.0.iter().map(|edit| one_result(edit, found)).collect()
    }

    /// Applies the edits that have a change. The file is written once, with all of them.
    pub(super) fn make_so(&self, host: &Host, permit: &Permit, is_due: &[bool]) -> Vec<Outcome> {
        let mut attempt = 1;
        loop {
            let mut outcomes = vec![Outcome::Unchanged; self.0.len()];
            match self.write(host, permit, is_due, &mut outcomes) {
                Ok(()) => return outcomes,
                Err(fault)
                    if matches!(fault.why, Why::Moved) && attempt < ATTEMPTS && !fault.touched =>
                {
                    attempt += 1;
                }
                Err(fault) => {
                    let Some(first) = self.0.first() else { return outcomes };
                    let outcome = first.failed(host.files(), fault);
                    for (slot, _) in outcomes.iter_mut().zip(is_due).filter(|(_, due)| **due) {
                        keep_failure(slot, &outcome);
                    }
                    return outcomes;
                }
            }
        }
    }

    fn write(
        &self,
        host: &Host,
        permit: &Permit,
        is_due: &[bool],
        outcomes: &mut [Outcome],
    ) -> Result<(), Fault> {
        let mut due = self.0.iter().zip(is_due).filter(|(_, due)| **due);
        let Some((first, _)) = due.next() else { return Ok(()) };
        // One resource that creates the file creates it for all.
        let first = self.0.iter().find(|edit| edit.create.is_some()).unwrap_or(first);
        let _turn = FileTurn::wait_for(&first.path);
        let found = first.read_whole(host.files())?;
        let (text, edited_by) = self.edit(&found, is_due, outcomes)?;
        let Some(writer) = edited_by.first().copied() else { return Ok(()) };
        let of_writer = permit.for_member(writer);
        let replaced = self.put((host, &of_writer), first, (&found, &text), Record::Noted)?;
        // A thread must not wait for a second share of the memory.
        drop(found);
        self.keep_late_writes((host, &of_writer), first, is_due, replaced)?;
        for number in edited_by.iter().copied().filter(|number| *number != writer) {
            self.note_writer(permit, number, writer);
        }
        for number in edited_by {
            let note = self.0.get(number).map_or("", |edit| edit.editor.aspect());
            set(outcomes, number, Outcome::Changed(vec![note.to_owned()]));
        }
        Ok(())
    }

    /// Returns the text with all due edits, and the numbers of the resources that change it. An edit that fails is
    /// left out, and its outcome is set.
    fn edit(
        &self,
        found: &Found,
        is_due: &[bool],
        outcomes: &mut [Outcome],
    ) -> Result<(String, Vec<usize>), Fault> {
        let due = self.0.iter().zip(is_due).enumerate().filter(|(_, (_, due))| **due);
        let mut text = found.text.clone();
        let mut edited_by = Vec::new();
        for (number, (edit, _)) in due {
            match edit.editor.edit(&text) {
                Ok(edited) => {
                    let is_missing = found.seen.is_none() && !edited.text.is_empty();
                    if edited.text != text || is_missing {
                        edited_by.push(number);
                    }
                    text = edited.text;
                }
                Err(failure) => {
                    let failure = edit.named(failure);
                    set(outcomes, number, Outcome::Failed { failure, touched: false });
                }
            }
        }
        // Two parts that undo each other would be written for ever.
        for (number, edit) in self.0.iter().enumerate() {
            let is_as_declared =
                |text: &str| edit.editor.edit(text).is_ok_and(|again| again.text == *text);
            let is_due = is_due.get(number) == Some(&true);
            let was_as_declared = !is_due && is_as_declared(&found.text);
            let has_failed = matches!(outcomes.get(number), Some(Outcome::Failed { .. }));
            if (is_due || was_as_declared) && !is_as_declared(&text) && !has_failed {
                let all = self.0.iter().enumerate().filter(|(it, _)| *it != number);
                let others: Vec<&str> = all.map(|(_, it)| it.part.as_str()).collect();
                let why = format!("{} is undone by {}", edit.part, others.join(", "));
                let failure = said("edit", &edit.path, &why)
                    .hint("two resources contradict each other: keep one of them");
                return Err(Fault::refused(failure));
            }
        }
        Ok((text, edited_by))
    }

    /// Adds the text that another program has written into the replaced file: it had that file open, and its text would
    /// be lost. The edit stands already, so that a failure counts as one after a change.
    fn keep_late_writes(
        &self,
        (host, permit): (&Host, &Permit),
        edit: &TextEdit,
        is_due: &[bool],
        mut replaced: Option<Replaced>,
    ) -> Result<(), Fault> {
        for _ in 0..LATE_ROUNDS {
            let Some(Replaced { former, text, new }) = replaced else { return Ok(()) };
            let found = former.found();
            let late = match former.late_content(&encoded(&text), LARGEST) {
                Ok(LateContent::Whole(late)) => late,
                Ok(LateContent::Lost(why)) => return Err(lost(edit, why)),
                Ok(LateContent::Nothing) | Err(_) => return Ok(()),
            };
            let late = LateText { base: text, late: decoded(&late), edited: new, of: found };
            match self.merge((host, permit), edit, is_due, &late) {
                Ok(next) => replaced = next,
                // The run ends, and its edit stands.
                Err(Fault { why: Why::Revoked, .. }) => return Ok(()),
                Err(fault) => {
                    let why = host.files().failure(fault, &edit.path).what;
                    return Err(lost(edit, &why));
                }
            }
        }
        Ok(())
    }

    /// Writes the file as it is now with the late text and all due edits.
    fn merge(
        &self,
        (host, permit): (&Host, &Permit),
        edit: &TextEdit,
        is_due: &[bool],
        late: &LateText,
    ) -> Result<Option<Replaced>, Fault> {
        let mut attempt = 1;
        loop {
            let current = edit.read(host.files())?;
            let fits = |seen: &EntryStat| FormerFile::may_go_into(&late.of, seen);
            if !current.seen.as_ref().is_some_and(fits) {
                let what = "another file with other rights has its name now";
                return Err(Fault::refused(said("edit", &edit.path, what)));
            }
            let Some(merged) = late.merged_with(&current.text) else {
                let what = "another program has changed the new file, too";
                return Err(Fault::refused(said("edit", &edit.path, what)));
            };
            let found = Found { seen: current.seen, text: merged, ..Found::default() };
            let mut outcomes = vec![Outcome::Unchanged; self.0.len()];
            let (text, _) = self.edit(&found, is_due, &mut outcomes)?;
            match self.put((host, permit), edit, (&current, &text), Record::Known) {
                Err(Fault { why: Why::Moved, .. }) if attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    /// Records for one resource that its part was written together with the part of another one, which has the entry
    /// of the whole file.
    fn note_writer(&self, permit: &Permit, number: usize, writer: usize) {
        let (Some(keeper), Some(own)) = (permit.keeper_of(number), self.0.get(number)) else {
            return;
        };
        let part = self.0.get(writer).map_or("", |edit| edit.part.as_str());
        let text = format!("{}, in one step with {part}", own.path.display());
        keeper.note_values(vec![(EDITED_TOGETHER, Some(text))]);
    }

    fn put(
        &self,
        (host, permit): (&Host, &Permit),
        edit: &TextEdit,
        (found, text): (&Found, &str),
        record: Record,
    ) -> Result<Option<Replaced>, Fault> {
        let files = host.files();
        let Some(spot) = files.open_entry(&edit.path)? else {
            return Err(Fault::refused(Files::no_directory(&edit.path)));
        };
        files.guard_file(&spot, None)?;
        if self.0.iter().any(|edit| edit.writes && edit.editor.is_secret()) {
            let owner = self.0.iter().find_map(|edit| edit.file_owner.as_ref());
            let number = |text: &String| files.accounts().number(AccountKind::User, text);
            let owner = owner.map(number).transpose().map_err(Fault::refused)?;
            // A file that an edit creates is root's.
            let is_created = self.0.iter().any(|edit| edit.create.is_some());
            let owner = owner.or_else(|| is_created.then(|| files.own_uid()));
            files.guard_secret_edit(&spot, found.seen.as_ref(), owner)?;
        }
        let bytes = encoded(text);
        let content = Content::of(&bytes);
        let mode = match &found.seen {
            None => edit.create.unwrap_or(0o644),
            Some(seen) => files.mode_once_replaced(&spot, seen, (seen.mode, Some(seen.uid)))?,
        };
        let owner = found.seen.map(|seen| (seen.uid, seen.gid)).or(edit.new_owner);
        let secret = is_hidden(self.0.iter().any(|edit| edit.editor.is_secret()), [mode]);
        let validate = self.0.iter().find(|edit| !edit.validate.is_empty());
        let validation = validate.map(|edit| Validation {
            host,
            permit,
            command: &edit.validate,
            path: &edit.path,
            secret,
        });
        let draft = Draft {
            content: &content,
            owner: owner.map(|(uid, _)| uid),
            group: owner.map(|(_, gid)| gid),
            mode,
            instead_of: found.seen.as_ref(),
            acceptance: validation.as_ref().map(|it| it as &dyn Acceptance),
            extended: None,
            sensitive: secret,
            whole_only: true,
            record: None,
        };
        let what = if found.seen.is_some() { "content" } else { "created" };
        let is_there = found.seen.is_some();
        let edited = Some(bytes.as_slice());
        let losing = Loss { content: is_there, secret, purged: false, edited, what };
        let former = match found.seen.as_ref() {
            Some(seen) => FormerFile::open(files, &spot, seen)?,
            None => None,
        };
        match record {
            Record::Noted => {
                let noted = spot.note(permit, found.seen.as_ref(), losing)?;
                noted.after(files.put(permit, &spot, &draft))?;
            }
            Record::Known => drop(files.put(permit, &spot, &draft)?),
        }
        // Without the record, the next edit waits a moment.
        if let Ok(Some(written)) = spot.look() {
            note_own_write(&edit.path, written);
        }
        let new = text.to_owned();
        Ok(former.map(|former| Replaced { former, text: found.text.clone(), new }))
    }
}

/// Returns the failure of an edit that stands, while text of another program is lost.
fn lost(edit: &TextEdit, why: &str) -> Fault {
    let what = "text that another program wrote meanwhile is lost";
    let failure = said("edit", &edit.path, &format!("{what}: {why}"));
    Fault { touched: true, ..Fault::refused(failure) }
}

/// Sets an outcome, unless the member has failed for a reason of its own.
fn keep_failure(slot: &mut Outcome, outcome: &Outcome) {
    if !matches!(slot, Outcome::Failed { .. }) {
        *slot = outcome.clone();
    }
}

fn set(outcomes: &mut [Outcome], number: usize, outcome: Outcome) {
    if let Some(slot) = outcomes.get_mut(number) {
        *slot = outcome;
    }
}

impl Transaction for Together {
    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, Vec<CheckResult>> {
        Box::pin(async move { self.compare(host) })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>> {
        let is_due: Vec<bool> = changes.iter().map(Option::is_some).collect();
        Box::pin(async move { self.make_so(host, permit, &is_due) })
    }
}
