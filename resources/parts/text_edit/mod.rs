//! Edits of one part of a text file: everything outside the part stays byte for byte.
//!
//! Several resources may edit one file. Resources of one transaction group read the file once and write it once.
//! Reading order: this file (one edit), `together.rs` (several edits of one file).

mod together;

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::dependency::HostObject;
use crate::failure::Failure;
use crate::fields::field_values::Invalid;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Content, EntryStat, Fault, Files, Why, said};
use crate::host::unfinished::{LONGEST_WAIT, time_until_whole};
use crate::kinds::file::unified;
use crate::parts::edit_share::{EditShare, LARGEST};
use crate::parts::file_values::{HASH, read_file_values};
use crate::parts::text_bytes::{decoded, encoded};
use crate::parts::validate_command::ValidateCommand;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::secrets::hidden_difference::{hide_if, is_hidden};
use crate::transaction::Grouping;
use crate::values::sent_values::Sent;
use rustix::fs::FileType;
use std::any::Any;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use together::{Together, unite};
use tokio_util::sync::CancellationToken;

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
    /// The owner and group of a new file; none for those of the daemon.
    pub(crate) new_owner: Option<(u32, u32)>,
    /// The command that must accept the new file.
    pub(crate) validate: ValidateCommand,
    pub(crate) removal: Option<Removal>,
    pub(crate) warnings: Vec<Invalid>,
    /// The declared owner of the file, by name or number, if another resource declares one.
    pub(crate) file_owner: Option<String>,
    /// True if the edit writes the part; false if it removes it.
    pub(crate) writes: bool,
    /// The declared values that other resources can receive.
    pub(crate) sent: Sent,
}

/// The state of a file before an edit.
#[derive(Default)]
struct Found {
    seen: Option<EntryStat>,
    /// The directory of the file does not exist.
    lacks_directory: bool,
    text: String,
    /// The memory of this edit, until the text is no longer used.
    _share: EditShare,
}

impl TextEdit {
    /// Makes an edit of an existing file.
    pub(crate) fn new(path: PathBuf, part: String, editor: Arc<dyn Editor>) -> Self {
        let (validate, warnings) = (ValidateCommand::NONE, Vec::new());
        let (keys, sent) = (Vec::new(), Sent::new());
        Self {
            path,
            part,
            keys,
            editor,
            create: None,
            new_owner: None,
            validate,
            removal: None,
            warnings,
            file_owner: None,
            writes: true,
            sent,
        }
    }

    /// Reads the file.
    fn read(&self, files: &Files) -> Result<Found, Fault> {
        let Some(spot) = files.open_entry(&self.path)? else {
            return match self.create {
                Some(_) => Ok(Found { lacks_directory: true, ..Found::default() }),
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
            let failure = said("edit", &self.path, "a symbolic link")
                .hint("declare the path of the link's target");
            return Err(Fault::refused(failure));
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
        let (seen, text) = (Some(seen), decoded(&bytes));
        Ok(Found { seen, text, lacks_directory: false, _share: share })
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
    fn named(&self, failure: Failure) -> Failure {
        let named = said("edit", &self.path, &failure.what);
        Failure { what: named.what, ..failure }
    }

    /// Returns the difference of an edit; none if the part is as declared.
    fn difference(&self, found: &Found, edited: &Edited) -> Option<Difference> {
        if edited.text == found.text && (found.seen.is_some() || edited.text.is_empty()) {
            return None;
        }
        let modes = found.seen.map(|seen| seen.mode);
        let hides = is_hidden(self.editor.is_secret(), modes);
        let shown =
            |text: &str| hide_if(hides, text, |text| crate::secrets::escape::short(text, 200));
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
        Outcome::Failed { failure: files.failure(fault, &self.path), touched }
    }
}

fn one_result(edit: &TextEdit, found: &Found) -> CheckResult {
    let edited = match edit.editor.edit(&found.text) {
        Ok(edited) => edited,
        Err(failure) => return CheckResult::Unknown(edit.named(failure)),
    };
    let Some(difference) = edit.difference(found, &edited) else { return CheckResult::Same };
    if found.lacks_directory {
        return CheckResult::Unknown(Files::no_directory(&edit.path));
    }
    let mut premise_digest = DefaultHasher::new();
    (&edited.from, &edited.to).hash(&mut premise_digest);
    CheckResult::Differs(Change {
        destructive: false,
        premise_digest: premise_digest.finish(),
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

    fn with_file_owner(&self, owner: &str) -> Option<Arc<dyn Resource>> {
        let file_owner = Some(owner.to_owned());
        Some(Arc::new(Self { file_owner, ..self.clone() }))
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
            let read = read.map_err(|fault| files.failure(fault, &self.path))?;
            let hash = read.into_iter().filter(|(key, _)| *key == HASH.key);
            Ok(self.sent.iter().cloned().chain(hash).collect())
        }))
    }

    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            match self.read(host.files()) {
                Ok(found) => one_result(self, &found),
                Err(fault) => CheckResult::Unknown(host.files().failure(fault, &self.path)),
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
        Err(fault) => Err(files.failure(fault, path)),
    }
}
