//! Edits of one part of a text file: everything outside the part stays byte for byte.
//!
//! Several resources may edit one file. Resources of one transaction group read the file once and write it once.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::dependency::HostObject;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::hidden_difference::{hide_if, is_hidden};
use crate::host::Host;
use crate::host::files::{Acceptance, Content, Draft, EntryStat, Fault, Files, Why, said};
use crate::host::unfinished::{LONGEST_WAIT, note_own_write, time_until_whole};
use crate::kind::Invalid;
use crate::kinds::file::{Validation, unified};
use crate::parts::edit_share::{EditShare, LARGEST};
use crate::parts::file_turn::FileTurn;
use crate::parts::file_values::{HASH, read_file_values};
use crate::parts::text_bytes::{decoded, encoded};
use crate::parts::validate_command::ValidateCommand;
use crate::permit::Permit;
use crate::prior_state::{EDITED_TOGETHER, Loss};
use crate::removal::Removal;
use crate::resource::{Answer, CheckRequest, Resource, Traits};
use crate::transaction::{Grouping, Member, Transaction};
use crate::values::Sent;
use rustix::fs::FileType;
use std::any::Any;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The number of attempts on a file that changes meanwhile.
const ATTEMPTS: usize = 3;

/// The interval of looks at a file that another program is writing.
const STEP: Duration = Duration::from_millis(50);

/// An editor of one part of a text.
pub(crate) trait Editor: Debug + Send + Sync {
    /// Returns the text with the part as declared, or the equal text if the part is as declared. The text of a
    /// missing file is empty.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be edited safely, for example because it is no valid JSON.
    fn edit(&self, text: &str) -> Result<Edited, Failure>;

    /// Returns the name of the aspect in differences: `line`, `key`, `block`.
    fn aspect(&self) -> &'static str;

    /// Returns true if the part must not be shown or recorded.
    fn is_secret(&self) -> bool {
        false
    }
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The complete new text.
    pub(crate) text: String,
    /// The part before the edit; empty if there was none.
    pub(crate) from: String,
    /// The part after the edit; empty if none is left.
    pub(crate) to: String,
}

/// A resource that edits one part of a file.
#[derive(Clone, Debug)]
pub(crate) struct TextEdit {
    pub(crate) path: PathBuf,
    /// The name of the part, unique in the file: the claim of the resource.
    pub(crate) part: String,
    /// The keys down to an edited value; empty for every other part.
    pub(crate) keys: Vec<String>,
    pub(crate) editor: Arc<dyn Editor>,
    /// The mode of a new file; none if a missing file is a failure.
    pub(crate) create: Option<u32>,
    /// The command that must accept the new file.
    pub(crate) validate: ValidateCommand,
    pub(crate) removal: Option<Removal>,
    pub(crate) warnings: Vec<Invalid>,
    /// The declared values that other resources can receive.
    pub(crate) sent: Sent,
}

/// The state of a file before an edit.
#[derive(Default)]
struct Found {
    seen: Option<EntryStat>,
    text: String,
    /// The memory of this edit, until the text is no longer used.
    _share: EditShare,
}

impl TextEdit {
    /// Makes an edit of an existing file.
    pub(crate) fn new(path: PathBuf, part: String, editor: Arc<dyn Editor>) -> Self {
        let (validate, warnings) = (ValidateCommand::NONE, Vec::new());
        let (keys, sent) = (Vec::new(), Sent::new());
        Self { path, part, keys, editor, create: None, validate, removal: None, warnings, sent }
    }

    /// Reads the file.
    fn read(&self, files: &Files) -> Result<Found, Fault> {
        let Some(spot) = files.open_entry(&self.path)? else {
            return match self.create {
                Some(_) => Ok(Found::default()),
                None => Err(Fault::refused(self.no_file())),
            };
        };
        let Some(seen) = spot.look()? else {
            return match self.create {
                Some(_) => Ok(Found::default()),
                None => Err(Fault::refused(self.no_file())),
            };
        };
        if seen.kind == FileType::Symlink {
            let trouble = said("edit", &self.path, "a symbolic link")
                .hint("declare the path of the link's target");
            return Err(Fault::refused(trouble));
        }
        if seen.kind != FileType::RegularFile {
            return Err(Fault::refused(said("edit", &self.path, "not a regular file")));
        }
        let size = usize::try_from(seen.size).unwrap_or(usize::MAX);
        let share = EditShare::wait_for(size);
        let bytes = files.shared_content(&self.path, (&spot, &seen), LARGEST)?;
        let Some(bytes) = bytes else {
            return Err(Fault::refused(said("edit", &self.path, "the file exceeds 4 MiB")));
        };
        Ok(Found { seen: Some(seen), text: decoded(&bytes), _share: share })
    }

    /// Reads the file once no other program seems to be writing it. Blocks the thread.
    fn read_whole(&self, files: &Files) -> Result<Found, Fault> {
        let started = Instant::now();
        loop {
            let found = self.read(files)?;
            let ends_a_line = found.text.ends_with('\n');
            let left = found.seen.and_then(|seen| time_until_whole(&self.path, &seen, ends_a_line));
            match left.filter(|_| started.elapsed() < LONGEST_WAIT) {
                None => return Ok(found),
                Some(left) => {
                    drop(found);
                    std::thread::sleep(left.min(STEP));
                }
            }
        }
    }

    fn no_file(&self) -> Failure {
        said("edit", &self.path, "the file does not exist")
            .hint("set `create: true`, or declare the file with its package or content")
    }

    /// Adds the path to a failure of the editor, which knows only the text.
    fn named(&self, trouble: Failure) -> Failure {
        let named = said("edit", &self.path, &trouble.what);
        Failure { what: named.what, ..trouble }
    }

    /// Returns the difference of an edit; none if the part is as declared.
    fn difference(&self, found: &Found, edited: &Edited) -> Option<Difference> {
        if edited.text == found.text && (found.seen.is_some() || edited.text.is_empty()) {
            return None;
        }
        let modes = found.seen.map(|seen| seen.mode);
        let hides = is_hidden(self.editor.is_secret(), modes);
        let shown = |text: &str| hide_if(hides, text, |text| crate::escape::short(text, 200));
        let (old, new) = (encoded(&found.text), encoded(&edited.text));
        Some(Difference {
            aspect: self.editor.aspect(),
            from: shown(&edited.from),
            to: shown(&edited.to),
            diff: if hides { None } else { unified(&old, &new) },
        })
    }

    fn failed(&self, files: &Files, fault: Fault) -> Outcome {
        if matches!(fault.why, Why::Revoked) {
            return Outcome::Interrupted;
        }
        let touched = fault.touched;
        Outcome::Failed { trouble: files.trouble(fault, &self.path), touched }
    }
}

/// Edits of one file, in the order of their resources.
#[derive(Debug)]
struct Together(Vec<Arc<TextEdit>>);

fn unite(members: Vec<Member>) -> Arc<dyn Transaction> {
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
                Err(fault) => CheckResult::Unknown(host.files().trouble(fault, &edit.path)),
                Ok(found) => one_result(edit, &found),
            };
            return self.0.iter().map(fault).collect();
        };
        self.0.iter().map(|edit| one_result(edit, found)).collect()
    }

    /// Applies the edits that have a change. The file is written once, with all of them.
    fn make_so(&self, host: &Host, permit: &Permit, is_due: &[bool]) -> Vec<Outcome> {
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
        let due = || self.0.iter().zip(is_due).enumerate().filter(|(_, (_, due))| **due);
        let Some((_, (first, _))) = due().next() else { return Ok(()) };
        // One resource that creates the file creates it for all.
        let first = self.0.iter().find(|edit| edit.create.is_some()).unwrap_or(first);
        let _turn = FileTurn::wait_for(&first.path);
        let found = first.read_whole(host.files())?;
        let mut text = found.text.clone();
        let mut edited_by = Vec::new();
        for (number, (edit, _)) in due() {
            match edit.editor.edit(&text) {
                Ok(edited) => {
                    let is_missing = found.seen.is_none() && !edited.text.is_empty();
                    if edited.text != text || is_missing {
                        edited_by.push(number);
                    }
                    text = edited.text;
                }
                Err(trouble) => {
                    let trouble = edit.named(trouble);
                    set(outcomes, number, Outcome::Failed { trouble, touched: false });
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
                let trouble = said("edit", &edit.path, &why)
                    .hint("two resources contradict each other: keep one of them");
                return Err(Fault::refused(trouble));
            }
        }
        let Some(writer) = edited_by.first().copied() else { return Ok(()) };
        self.put(host, &permit.for_member(writer), first, (&found, &text))?;
        for number in edited_by.iter().copied().filter(|number| *number != writer) {
            self.note_writer(permit, number, writer);
        }
        for number in edited_by {
            let note = self.0.get(number).map_or("", |edit| edit.editor.aspect());
            set(outcomes, number, Outcome::Changed(vec![note.to_owned()]));
        }
        Ok(())
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
        host: &Host,
        permit: &Permit,
        edit: &TextEdit,
        (found, text): (&Found, &str),
    ) -> Result<(), Fault> {
        let files = host.files();
        let Some(spot) = files.open_entry(&edit.path)? else {
            return Err(Fault::refused(Files::no_directory(&edit.path)));
        };
        files.guard_file(&spot, None)?;
        if self.0.iter().any(|edit| edit.editor.is_secret()) {
            files.guard_secret_edit(&spot, found.seen.as_ref())?;
        }
        let bytes = encoded(text);
        let content = Content::of(&bytes);
        let mode = found.seen.map_or_else(|| edit.create.unwrap_or(0o644), |seen| seen.mode);
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
            owner: found.seen.map(|seen| seen.uid),
            group: found.seen.map(|seen| seen.gid),
            mode,
            instead_of: found.seen.as_ref(),
            acceptance: validation.as_ref().map(|it| it as &dyn Acceptance),
            extended: None,
            sensitive: secret,
        };
        let what = if found.seen.is_some() { "content" } else { "created" };
        let is_there = found.seen.is_some();
        let edited = Some(bytes.as_slice());
        let losing = Loss { content: is_there, secret, purged: false, edited, what };
        let noted = spot.note(permit, found.seen.as_ref(), losing)?;
        noted.after(files.put(permit, &spot, &draft))?;
        // Without the record, the next edit waits a moment.
        if let Ok(Some(seen)) = spot.look() {
            note_own_write(&edit.path, seen);
        }
        Ok(())
    }
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

fn one_result(edit: &TextEdit, found: &Found) -> CheckResult {
    let edited = match edit.editor.edit(&found.text) {
        Ok(edited) => edited,
        Err(trouble) => return CheckResult::Unknown(edit.named(trouble)),
    };
    let Some(difference) = edit.difference(found, &edited) else { return CheckResult::Same };
    let mut seal = DefaultHasher::new();
    (&edited.from, &edited.to).hash(&mut seal);
    CheckResult::Differs(Change {
        destructive: false,
        seal: seal.finish(),
        creates: edited.from.is_empty() && !edited.to.is_empty(),
        replaces: found.seen.is_none(),
        differences: vec![difference],
        premise: Box::new(()),
    })
}

impl Resource for TextEdit {
    fn footprint(&self) -> Footprint {
        let path = self.path.clone();
        let object = match self.keys.as_slice() {
            [] => HostObject::Part(path, self.part.as_str().into()),
            keys => HostObject::Key(path, keys.into()),
        };
        let own = Footprint::of_part(&self.path, object);
        Footprint {
            removal: self.removal.clone(),
            warnings: self.warnings.clone(),
            grouping: Some(Grouping {
                key: format!("text {}", self.path.display()),
                part: Arc::new(self.clone()) as Arc<dyn Any + Send + Sync>,
                unite,
            }),
            ..own
        }
    }

    fn traits(&self) -> Traits {
        Traits::default()
    }

    fn sends(&self) -> Sent {
        self.sent.clone()
    }

    fn sends_key(&self, key: &str) -> bool {
        key != HASH.key || !self.editor.is_secret()
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        Some(Box::pin(async move {
            let files = host.files();
            let read = read_file_values(files, &self.path, self.editor.is_secret(), cancel);
            let read = read.map_err(|fault| files.trouble(fault, &self.path))?;
            let hash = read.into_iter().filter(|(key, _)| *key == HASH.key);
            Ok(self.sent.iter().cloned().chain(hash).collect())
        }))
    }

    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            match self.read(host.files()) {
                Ok(found) => one_result(self, &found),
                Err(fault) => CheckResult::Unknown(host.files().trouble(fault, &self.path)),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let alone = Together(vec![Arc::new(self.clone())]);
            alone.make_so(host, permit, &[true]).pop().unwrap_or(Outcome::Unchanged)
        })
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

/// Reads a text file for a kind that only looks at it; an empty text if the file does not exist.
///
/// # Errors
///
/// Fails if the file cannot be read or exceeds 4 MiB.
pub(crate) fn text_of(files: &Files, path: &Path) -> Result<Option<String>, Failure> {
    let read = || -> Result<Option<Vec<u8>>, Fault> {
        let Some(origin) = files.origin(path)? else { return Ok(None) };
        if origin.seen().kind != FileType::RegularFile {
            return Err(Fault::refused(said("read", path, "not a regular file")));
        }
        let mut content = Content::default();
        content.push(origin);
        match content.bytes(LARGEST)? {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Fault::refused(said("read", path, "the file exceeds 4 MiB"))),
        }
    };
    match read() {
        Ok(bytes) => Ok(bytes.map(|bytes| decoded(&bytes))),
        Err(fault) => Err(files.trouble(fault, path)),
    }
}
