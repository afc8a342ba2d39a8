//! `fetch`: a file from a server, with a checksum. The file counts as declared while it has the checksum, so nothing
//! is downloaded for a check.

use crate::check_request::Answer;
use crate::dependency::Need;
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{
    AccountKind, Attributes, Content, Draft, EntryStat, Fault, Files, SET_ID, denies_others,
    grants_group_more, said,
};
use crate::kind::KindSpec;
use crate::kinds::file::mode_after;
use crate::parts::checksum::KnownSum;
use crate::parts::download::{self, Download};
use crate::parts::staging::{DOWNLOADS, Staging};
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, Managed, Sequence, ValueSet, WriteFailure, on_thread};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, Loss};
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "fetch",
    collectible: false,
    doc: "Downloads a file with curl and compares it with its checksum before it takes its place. The name is the path.",
    fields: &[
        download::URL,
        download::CHECKSUM,
        FieldSpec::new("path", FieldType::Text, "Absolute path of the file. Default: the name.")
            .role(FieldRole::Path)
            .mode(FieldMode::Static)
            .example("/opt/app.jar"),
        FieldSpec::new(
            "owner",
            FieldType::Text,
            "Owner, by name or number. Default: unchanged; the daemon's user when created.",
        )
        .mode(FieldMode::Value)
        .example("root")
        .receives(Receives::Shown),
        FieldSpec::new("group", FieldType::Text, "Group, by name or number. Default: unchanged.")
            .mode(FieldMode::Value)
            .example("root")
            .receives(Receives::Shown),
        FieldSpec::new(
            "mode",
            FieldType::Text,
            "Mode, 0644 or u=rw,g=r. Default: unchanged; 0644 when created.",
        )
        .mode(FieldMode::Value)
        .example("0644")
        .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the file.")
            .known_at_load()
            .default("exists"),
        download::USERNAME,
        download::PASSWORD,
        download::TOKEN,
        download::CACERT,
        download::TIMEOUT,
    ],
    sends: &[
        SendSpec::new("path", FieldType::Text, "The path of the file."),
        SendSpec::new("checksum", FieldType::Text, "The checksum of the file, sha256:…."),
    ],
    example: "fetch:\n  - name: /opt/app.jar\n    url: https://example.org/app-1.2.jar\n    checksum: sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n    mode: 0644\n",
    restore: None,
    build,
};

/// The addition to the checksum of a file that another user may have open.
const OPEN: &str = " (others can have the file open for writing)";

/// The mode of a new file.
const MODE: u32 = 0o644;

/// The content of a downloaded file.
#[derive(Debug)]
struct Fetched {
    path: PathBuf,
    download: Download,
    /// The mode of a new file over which the declared one is taken.
    mode: u32,
    /// The declared owner, group and mode, which `place` writes with the content. Without a mode, that of an old file
    /// stays.
    declared: Declared,
    /// The checksum of the file.
    known: KnownSum,
}

/// The declared attributes, as texts.
#[derive(Debug, Default)]
struct Declared {
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

impl Declared {
    /// Returns the attributes after a run, of a file that has this mode, in the place of the found one. In the place of
    /// a stranger's file, a file that is closed to others or has set-id bits belongs to the daemon's user unless an
    /// owner is declared.
    fn over(
        &self,
        files: &Files,
        now: u32,
        found: Option<&EntryStat>,
    ) -> Result<Attributes, Fault> {
        let number = |kind, text: &Option<String>| {
            let number = |text| files.accounts().number(kind, text).map_err(Fault::refused);
            text.as_deref().map(number).transpose()
        };
        let mode = self.mode.as_deref().and_then(|mode| mode_after(mode, now));
        let is_guarded = mode.is_some_and(|mode| denies_others(mode) || mode & SET_ID != 0);
        let takes_over = is_guarded && found.is_some_and(|found| files.is_strangers(found));
        let own = takes_over.then(|| files.own_uid());
        Ok(Attributes {
            owner: number(AccountKind::User, &self.owner)?.or(own),
            group: number(AccountKind::Group, &self.group)?,
            mode,
        })
    }
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let path = reader.path("path", name);
    if !reader.is_present() {
        reader.finish(())?;
        return managed_file(&path, Shape::Absent, &[]);
    }
    let download = Download::read(&mut reader);
    let mut attributes = Fields::default();
    attributes.insert("path", Value::Text(path.display().to_string()));
    let mode = reader.text("mode");
    let (owner, group) = (reader.text("owner"), reader.text("group"));
    let declared = Declared { owner: owner.clone(), group: group.clone(), mode: mode.clone() };
    let words = [("owner", owner), ("group", group), ("mode", mode.clone())];
    let has_attributes = words.iter().any(|(_, word)| word.is_some());
    for (field, word) in words {
        if let Some(word) = word {
            attributes.insert(field, Value::Text(word));
        }
    }
    let attributes = crate::kinds::file::SPEC.build_resource(name, attributes, &place_of_root());
    let attributes = match attributes {
        Ok(attributes) => Some(attributes),
        Err(problems) => {
            for problem in problems {
                reader.reject(problem);
            }
            None
        }
    };
    let mode = if mode.is_some() { 0o600 } else { MODE };
    let known = KnownSum::default();
    let removal = Removal::new()
        .with("path", Value::Text(path.display().to_string()))
        .with("state", Value::Text("absent".to_owned()));
    let fetched = Fetched { path, download, mode, declared, known };
    let fetched = reader.finish(fetched)?;
    let mut elements: Vec<Arc<dyn Resource>> =
        vec![Arc::new(Managed::new(Shared(Arc::new(fetched))))];
    elements.extend(attributes.filter(|_| has_attributes));
    Ok(Arc::new(Sequence::new(elements).removed_by(Some(removal))))
}

fn place_of_root() -> Place {
    Place { base: PathBuf::from("/") }
}

impl Fetched {
    /// Returns the checksum of the file; none if there is no file. An unchanged file is not read again. A file that
    /// another user may have open differs, whatever its checksum is: it is written anew.
    fn found(&self, files: &Files, cancel: &CancellationToken) -> Result<Option<String>, Failure> {
        let look = || -> Result<Option<bool>, Fault> {
            let Some(spot) = files.open_entry(&self.path)? else { return Ok(None) };
            let Some(seen) = spot.look()? else { return Ok(None) };
            if seen.kind != FileType::RegularFile {
                let failure = said("fetch", &self.path, "not a regular file");
                return Err(Fault::refused(failure.hint("remove the object at the path")));
            }
            let after = self.declared.over(files, seen.mode, Some(&seen))?;
            let is_open = files.may_be_open(&spot, &seen, after);
            Ok(Some(files.is_root() && (is_open || files.is_marked_open(&spot, &seen))))
        };
        let Some(is_open) = look().map_err(|fault| files.failure(fault, &self.path))? else {
            return Ok(None);
        };
        let sum = self.known.find_sum(files, &self.path, cancel)?;
        Ok(if is_open { sum.map(|sum| sum + OPEN) } else { sum })
    }

    /// Writes the downloaded file to its place.
    fn place(&self, host: &Host, permit: &Permit, staged: &Path) -> Result<(), WriteFailure> {
        let files = host.files();
        let put = || -> Result<(), Fault> {
            let Some(origin) = files.origin(staged)? else { return Err(Fault::moved()) };
            let Some(spot) = files.open_entry(&self.path)? else {
                return Err(Fault::refused(Files::no_directory(&self.path)));
            };
            files.guard_file(&spot, None)?;
            let seen = spot.look()?;
            let mut content = Content::default();
            content.push(origin);
            let owner = self.declared.over(files, self.mode, seen.as_ref())?.owner;
            let is_handed = seen.is_some_and(|seen| files.leaves_stranger(&seen, owner));
            let kept_group = seen.filter(|_| !is_handed);
            let most = if is_handed { 0o755 } else { 0o777 };
            let base = match &seen {
                None => self.mode,
                Some(seen) => {
                    let kept = (seen.mode & most, owner.or(Some(seen.uid)));
                    files.mode_once_replaced(&spot, seen, kept)?
                }
            };
            let declared = self.declared.over(files, base, seen.as_ref())?;
            // With its set-id bits: a later step could not tell the inode from one that another user has moved there.
            let mode = declared.mode.unwrap_or(base);
            let after = declared.owner.or_else(|| seen.map(|seen| seen.uid));
            let is_strangers_group =
                grants_group_more(mode) && files.is_in_strangers_directory(&spot, after)?;
            let kept_group = kept_group.filter(|_| !is_strangers_group);
            let draft = Draft {
                content: &content,
                owner: declared.owner.or_else(|| seen.map(|seen| seen.uid)),
                group: declared.group.or_else(|| kept_group.map(|seen| seen.gid)),
                mode,
                instead_of: seen.as_ref(),
                acceptance: None,
                extended: None,
                sensitive: denies_others(mode),
                whole_only: false,
                record: None,
            };
            let what = if seen.is_some() { "content" } else { "created" };
            let losing = Loss { content: true, secret: false, purged: false, edited: None, what };
            let noted = spot.note(permit, seen.as_ref(), losing)?;
            noted.after(files.put(permit, &spot, &draft))?;
            Ok(())
        };
        put().map_err(|fault| {
            let touched = fault.touched;
            WriteFailure { failure: files.failure(fault, &self.path), touched }
        })
    }
}

/// The file, shared with the threads that read and write it.
#[derive(Debug)]
struct Shared(Arc<Fetched>);

impl ValueSet for Shared {
    fn wanted(&self) -> FieldValues {
        vec![("content", Some(format!("sha256:{}", self.0.download.sha256)))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let (fetched, cancel) = (Arc::clone(&self.0), cancel.clone());
            let found = on_thread(host, move |host| fetched.found(host.files(), &cancel)).await??;
            Ok(vec![("content", found.map(|sum| format!("sha256:{sum}")))])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            let staging = Staging::make(host, permit, Path::new(DOWNLOADS)).await?;
            let staged = staging.join("file");
            let mut done = self.0.download.store(host, permit, &staged).await;
            if done.is_ok() {
                let (fetched, own_permit) = (Arc::clone(&self.0), permit.for_thread());
                let work = move |host: &Host| fetched.place(host, &own_permit, &staged);
                let placed = on_thread(host, work).await;
                done = placed.unwrap_or_else(|failure| Err(WriteFailure::touched(failure)));
            }
            let touched = done.is_ok();
            let removed = staging.remove(host, permit).await;
            done.and_then(|()| removed.map_err(|failure| WriteFailure { touched, ..failure }))
        })
    }

    fn footprint(&self) -> Footprint {
        let mut own = Footprint::of_file(&self.0.path);
        let cacert = self.0.download.cacert.iter();
        own.trusts.extend(cacert.clone().cloned());
        own.requires.push(download::needed_package());
        own.requires.extend(cacert.map(|path| Need::path(path.clone(), "is read by curl")));
        Footprint { uses_only_files: false, ..own }
    }

    fn traits(&self) -> Traits {
        let timeout = Some(self.0.download.timeout + Duration::from_mins(5));
        Traits { timeout, ..Traits::confined_command() }
    }

    fn existence(&self) -> Option<&'static str> {
        Some("content")
    }

    fn recorded_otherwise(&self) -> &'static [&'static str] {
        &["content"]
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let sum = found.iter().find_map(|(_, value)| value.clone());
        let sum = sum.map(|sum| sum.strip_suffix(OPEN).map(str::to_owned).unwrap_or(sum));
        let text = |text: String| SentValue::Shown(Value::Text(text));
        let path = ("path", text(self.0.path.display().to_string()));
        sum.map(|sum| ("checksum", text(sum))).into_iter().chain([path]).collect()
    }
}
