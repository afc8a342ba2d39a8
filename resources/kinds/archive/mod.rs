//! `archive`: a directory that is unpacked from an archive.
//!
//! A new archive is unpacked and judged in a private folder beside the directory. A directory that has only unchanged
//! entries of the former archive is replaced as a whole. In any other directory, the entries of the former archive are
//! replaced one by one. A directory that was not unpacked by this kind is never replaced. A record in the directory
//! lists the entries: a changed entry is written again from the archive, and objects that the archive did not bring
//! stay.
//!
//! Reading order: `declare.rs` (the fields), `listing.rs` (a tree is judged), `record.rs`, `entries.rs`
//! (comparison and repair), `merge.rs`, `unpack.rs`, `undo.rs`, this file.

mod declare;
mod entries;
mod listing;
mod merge;
mod record;
mod undo;
mod unpack;

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::Value;
use crate::footprint::Footprint;
use crate::footprint::PathAfter;
use crate::host::Host;
use crate::host::files::{Fault, Files, said};
use crate::kind::KindSpec;
use crate::parts::checksum::KnownSum;
use crate::parts::download::{self, Download};
use crate::parts::staging::guard_parent;
use crate::parts::{ValueSet, WriteFailure, on_thread};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::removal::Removal;
use crate::resource::Traits;
use crate::secrets::escape::short;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use entries::Destination;
use record::{RECORD, Record};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "archive",
    collectible: false,
    doc: "Unpacks an archive (tar, tar.gz, tar.xz, tar.zst, tar.bz2 or zip) into a directory of its own. The name is the directory. Entries that lead out of the directory and devices are rejected; set-id bits are dropped. A new archive replaces the entries of the former one. A changed or missing entry of the archive is written again, which needs the archive. Added objects, and paths that other resources declare, stay. A removal fails if the directory has added or changed objects.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Absolute path of the directory. Default: the name.").role(FieldRole::Path).mode(FieldMode::Static)
            .example("/opt/app"),
        FieldSpec::new("source", FieldType::Text, "Absolute path of an archive on the host.").relative().mode(FieldMode::Value)
            .example("/var/cache/app-1.2.tar.gz")
            .conflicts_with(&["url"])
            .receives(Receives::Shown),
        download::URL,
        download::CHECKSUM,
        FieldSpec::new(
            "format",
            FieldType::Choice(&["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "zip"]),
            "Format of the archive. Default: by the end of its name.",
        ).receives(Receives::Shown),
        FieldSpec::new("strip", FieldType::Int, "Leading directories to drop from each path.")
            .range(0, 64)
            .default("0")
            .receives(Receives::Shown),
        FieldSpec::new(
            "creates",
            FieldType::Text,
            "Path below the directory: while it exists, the directory counts as unpacked, whatever the archive is, and its content is not compared. Default: the directory must come from this very archive, with all entries unchanged.",
        ).mode(FieldMode::Value)
        .example("bin/app")
        .receives(Receives::Shown),
        FieldSpec::new("owner", FieldType::Text, "Owner of everything, by name or number. Default: the daemon's user.").mode(FieldMode::Value)
            .example("root")
            .receives(Receives::Shown),
        FieldSpec::new("group", FieldType::Text, "Group of everything, by name or number. Default: the daemon's group.").mode(FieldMode::Value)
            .example("root")
            .receives(Receives::Shown),
        FieldSpec::new("mode", FieldType::Text, "Octal mode of the directory.").mode(FieldMode::Value)
            .default("0755")
            .example("0755")
            .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the directory.").known_at_load()
            .default("exists"),
        download::USERNAME,
        download::PASSWORD,
        download::TOKEN,
        download::CACERT,
        download::TIMEOUT,
    ],
    sends: &[
        SendSpec::new("path", FieldType::Text, "The path of the filled directory."),
        SendSpec::new("checksum", FieldType::Text, "The checksum of the archive, sha256:…."),
    ],
    example: "archive:\n  - name: /opt/app\n    url: https://example.org/app-1.2.tar.gz\n    checksum: sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n    strip: 1\n",
    restore: Some(undo::restore),
    build: declare::build,
};

/// The time for unpacking, besides that of the download.
const PATIENCE: Duration = Duration::from_hours(1);

/// The number of changed entries that a difference names.
const NAMED: usize = 3;

/// The value of an unchanged content.
const UNCHANGED: &str = "as unpacked";

/// The origin of an archive.
#[derive(Clone, Debug)]
enum Origin {
    /// A file of the host, with its expected checksum, if one is declared.
    File(PathBuf, Option<String>),
    Url(Box<Download>),
}

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A tar archive with this option for its compression.
    Tar(Option<&'static str>),
    Zip,
}

/// A directory as declared.
#[derive(Clone, Debug)]
struct Archive {
    to: Destination,
    origin: Origin,
    format: Format,
    strip: u32,
    creates: Option<PathBuf>,
    /// The sum of `source`, for which none is declared.
    source_sum: Arc<KnownSum>,
    /// The sum of the unpacked `source`, for the receivers of `checksum`.
    unpacked_sum: Arc<Mutex<Option<String>>>,
}

/// The resource, shared with the threads that examine the directory.
#[derive(Debug)]
struct Directory(Arc<Archive>);

/// The way in which an unpacked tree comes into the directory.
#[derive(Debug)]
enum Placement {
    /// The directory is absent or empty.
    Empty,
    /// The tree takes the place of the directory, which is an unchanged former archive.
    Whole,
    /// The entries of the tree replace those of the former archive; other objects stay.
    Merged(Record),
    /// The directory has all entries of the tree, and lacks the record.
    Recorded,
}

/// The found state of a directory.
#[derive(Debug)]
struct Found {
    /// The words that name the archive, written as the wanted ones; none if nothing is unpacked.
    archive: Option<String>,
    content: String,
}

impl Archive {
    /// Returns the words that name an archive with this checksum.
    fn stamp(&self, sha256: &str) -> String {
        format!("sha256:{sha256} strip:{}", self.strip)
    }

    /// Returns the wanted words: those of the checksum, or the path of the archive if its checksum is not declared.
    fn wanted(&self) -> String {
        if let Some(path) = &self.creates {
            return format!("unpacked, with {}", path.display());
        }
        match &self.origin {
            Origin::File(_, Some(sum)) => self.stamp(sum),
            Origin::File(path, None) => format!("{} strip:{}", path.display(), self.strip),
            Origin::Url(download) => self.stamp(&download.sha256),
        }
    }

    /// Returns the state of the directory.
    fn found(&self, files: &Files, cancel: &CancellationToken) -> Result<Found, Failure> {
        let unchanged = |archive| Found { archive, content: UNCHANGED.to_owned() };
        if let Some(below) = &self.creates {
            let path = self.to.path.join(below);
            let exists = path_exists(files, &path).map_err(|fault| files.failure(fault, &path))?;
            if let (true, Origin::File(source, None)) = (exists, &self.origin)
                && let Ok(sum) = self.source_sum.find_sum(files, source, cancel)
            {
                self.remember_sum(sum);
            }
            return Ok(unchanged(exists.then(|| self.wanted())));
        }
        let Some(record) = Record::read(files, &self.to.path)? else { return Ok(unchanged(None)) };
        let archive = self.found_archive(files, &record, cancel)?;
        if archive != self.wanted() {
            // The other archive replaces all entries.
            return Ok(unchanged(Some(archive)));
        }
        let content = self.found_content(files, &record, cancel)?;
        Ok(Found { archive: Some(archive), content })
    }

    fn remember_sum(&self, sum: Option<String>) {
        *self.unpacked_sum.lock().unwrap_or_else(PoisonError::into_inner) = sum;
    }

    /// Returns the checksum of the unpacked archive, without its algorithm.
    fn known_sum(&self) -> Option<String> {
        match &self.origin {
            Origin::File(_, Some(sum)) => Some(sum.clone()),
            Origin::File(_, None) => {
                self.unpacked_sum.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Origin::Url(download) => Some(download.sha256.clone()),
        }
    }

    /// Returns the words that name the unpacked archive, written as the wanted ones.
    fn found_archive(
        &self,
        files: &Files,
        record: &Record,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let Origin::File(path, None) = &self.origin else { return Ok(record.stamp.clone()) };
        let of_record =
            record.stamp.split(' ').next().and_then(|word| word.strip_prefix("sha256:"));
        self.remember_sum(of_record.map(ToOwned::to_owned));
        Ok(match self.source_sum.find_sum(files, path, cancel)? {
            Some(sum) if self.stamp(&sum) == record.stamp => self.wanted(),
            // An archive that is gone after it was unpacked changes nothing.
            None => self.wanted(),
            Some(_) => record.stamp.clone(),
        })
    }

    /// Returns the value of the content: it names the first changed entries.
    fn found_content(
        &self,
        files: &Files,
        record: &Record,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        if record.is_foreign {
            return Ok(format!("changed: {RECORD}"));
        }
        let changed = self.to.find_changed(files, record, cancel)?;
        Ok(if changed.is_empty() { UNCHANGED.to_owned() } else { described(&changed) })
    }

    /// Writes the entries that differ from the unpacked tree in a private folder, and its record.
    ///
    /// # Errors
    ///
    /// Fails if the tree is of another archive than the directory, or if an entry cannot be written.
    fn repair(
        &self,
        (files, permit): (&Files, &Permit),
        record: &Record,
        tree: &str,
    ) -> Result<(), WriteFailure> {
        let present = Record::read(files, &self.to.path).map_err(WriteFailure::untouched)?;
        let Some(present) = present.filter(|present| present.stamp == record.stamp) else {
            let what = "the archive has changed since it was unpacked";
            return Err(WriteFailure::untouched(Failure::new(what).passing()));
        };
        self.to.repair_entries((files, permit), record, Path::new(tree))?;
        if present.is_like(record) {
            return Ok(());
        }
        record.write((files, permit), &self.to.path).map_err(WriteFailure::touched)
    }

    /// Fails unless the path is absent or a directory, and no other user can exchange it.
    fn guard_place(&self, files: &Files) -> Result<(), Failure> {
        guard_parent(files, &self.to.path)?;
        let guard = || -> Result<(), Fault> {
            let Some(spot) = files.open_entry(&self.to.path)? else { return Ok(()) };
            let Some(seen) = spot.look()? else { return Ok(()) };
            if seen.kind != FileType::Directory {
                let refused = said("unpack into", &self.to.path, "not a directory");
                return Err(Fault::refused(refused.hint("remove the object at the path")));
            }
            Ok(())
        };
        guard().map_err(|fault| files.failure(fault, &self.to.path))
    }

    /// Chooses the way in which an unpacked tree, of which this is the record, comes into the directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory has content without a list of entries, and differs from the tree.
    fn placement(&self, files: &Files, new: &Record) -> Result<Placement, Failure> {
        let is_empty = || -> Result<bool, Fault> {
            let Some(spot) = files.open_entry(&self.to.path)? else { return Ok(true) };
            Ok(spot.look()?.is_none() || spot.is_empty()?)
        };
        if is_empty().map_err(|fault| files.failure(fault, &self.to.path))? {
            return Ok(Placement::Empty);
        }
        let old = Record::read(files, &self.to.path)?;
        let old = old.filter(|old| !old.is_foreign && !old.entries.is_empty());
        let never = CancellationToken::new();
        let Some(old) = old else {
            if self.to.find_changed(files, new, &never)?.is_empty() {
                return Ok(Placement::Recorded);
            }
            let why = "it has content that no archive brought";
            let hint = format!("empty it, or choose another: it has no list of entries ({RECORD})");
            return Err(said("unpack into", &self.to.path, why).hint(hint));
        };
        // The owner of a directory could move objects of others into it before the former tree is removed as a whole.
        let is_pure = self.to.claimed.is_empty()
            && old.is_closed(files)
            && undo::guard_unchanged(files, &self.to.path, &never).is_ok();
        Ok(if is_pure { Placement::Whole } else { Placement::Merged(old) })
    }
}

/// Names the first changed entries, and counts the others.
fn described(changed: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match path.to_string_lossy() {
        name if name.is_empty() => "the directory itself".to_owned(),
        name => short(&name, 40),
    };
    let names: Vec<String> = changed.iter().take(NAMED).map(name).collect();
    match changed.len().saturating_sub(NAMED) {
        0 => format!("changed: {}", names.join(", ")),
        more => format!("changed: {} and {more} more", names.join(", ")),
    }
}

fn path_exists(files: &Files, path: &Path) -> Result<bool, Fault> {
    let Some(spot) = files.open_entry(path)? else { return Ok(false) };
    Ok(spot.look()?.is_some())
}

impl ValueSet for Directory {
    fn wanted(&self) -> FieldValues {
        let content = ("content", Some(UNCHANGED.to_owned()));
        vec![("archive", Some(self.0.wanted())), content]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let (archive, cancel) = (Arc::clone(&self.0), cancel.clone());
            let found = on_thread(host, move |host| archive.found(host.files(), &cancel)).await??;
            Ok(vec![("archive", found.archive), ("content", Some(found.content))])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            if differing.contains(&"archive") {
                return unpack::replace(&self.0, host, permit).await;
            }
            unpack::repair(&self.0, host, permit).await
        })
    }

    /// The former states of entries are recorded with their paths.
    fn recorded_otherwise(&self) -> &'static [&'static str] {
        &["content"]
    }

    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Self> {
        let to = Destination { claimed: claimed.into_iter().collect(), ..self.0.to.clone() };
        Some(Self(Arc::new(Archive { to, ..Archive::clone(&self.0) })))
    }

    fn footprint(&self) -> Footprint {
        let Archive { to: Destination { path, owner, group, .. }, origin, .. } = &*self.0;
        let parent = path.parent().map(|parent| Need::path(parent, "contains the directory"));
        let mut requires: Vec<Need> = parent.into_iter().collect();
        requires.extend(owner.iter().filter_map(|name| Need::user(name, "owns the directory")));
        requires.extend(group.iter().filter_map(|name| Need::group(name, "owns the directory")));
        let mut watch = match &self.0.creates {
            Some(below) => vec![
                WatchSource::Path { path: path.clone(), below: false },
                WatchSource::Path { path: path.join(below), below: false },
            ],
            None => vec![WatchSource::Tree(path.clone())],
        };
        let (mut reads, mut trusts) = (Vec::new(), Vec::new());
        match origin {
            Origin::File(source, _) => {
                requires.push(Need::path(source.clone(), "is unpacked"));
                watch.push(WatchSource::Path { path: source.clone(), below: false });
                reads.push(source.clone());
                trusts.push(source.clone());
            }
            Origin::Url(download) => {
                requires.push(download::needed_package());
                let cacert = download.cacert.iter();
                requires.extend(cacert.map(|path| Need::path(path.clone(), "is read by curl")));
            }
        }
        let removal = Removal::new()
            .with("path", Value::Text(path.display().to_string()))
            .with("state", Value::Text("absent".to_owned()));
        Footprint {
            claims: vec![Claim::path(path.clone())],
            provides: vec![HostObject::Path(path.clone())],
            requires,
            watch,
            reads,
            trusts,
            spares_below: Some(path.clone()),
            path_after_apply: PathAfter::Directory,
            removal: Some(removal),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        let download = match &self.0.origin {
            Origin::Url(download) => download.timeout,
            Origin::File(..) => Duration::ZERO,
        };
        let timeout = Some(PATIENCE + download);
        Traits { timeout, ..Traits::confined_command() }
    }

    fn existence(&self) -> Option<&'static str> {
        Some("archive")
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let stamp = found.iter().find(|(aspect, _)| *aspect == "archive");
        let stamp = stamp.and_then(|(_, value)| value.as_deref());
        let sum = stamp.and_then(|stamp| {
            let first = stamp.split(' ').next().filter(|word| word.starts_with("sha256:"));
            let known = || Some(format!("sha256:{}", self.0.known_sum()?));
            first.map(ToOwned::to_owned).or_else(known)
        });
        let text = |text: String| SentValue::Shown(Value::Text(text));
        let path = ("path", text(self.0.to.path.display().to_string()));
        sum.map(|sum| ("checksum", text(sum))).into_iter().chain([path]).collect()
    }
}
