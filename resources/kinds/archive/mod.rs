//! `archive`: a directory that is unpacked from an archive.
//!
//! The directory belongs to the archive as a whole. A new archive is unpacked and judged in a private folder beside the
//! directory, and then takes its place. A directory that was not unpacked by this kind is never replaced.
//!
//! Reading order: `declare.rs` (the fields), `unpack.rs` (unpacking and judging), this file.

mod declare;
mod unpack;

use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Fault, Files, said};
use crate::kind::{FieldMode, FieldRole, FieldSpec, FieldType, KindSpec, Value};
use crate::parts::checksum::KnownSum;
use crate::parts::download::{self, Download};
use crate::parts::staging::guard_parent;
use crate::parts::text_edit::text_of;
use crate::parts::{ValueSet, WriteFailure, on_thread};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::removal::Removal;
use crate::resource::{Answer, PathAfter, Traits};
use crate::values::{Receives, SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "archive",
    collectible: false,
    doc: "Unpacks an archive (tar, tar.gz, tar.xz, tar.zst, tar.bz2 or zip) into a directory of its own. The name is the directory. Entries that lead out of the directory and devices are rejected; set-id bits are dropped. A new archive replaces the whole directory. The files in the directory are not compared: a missing directory and another archive are repaired, and a change below the directory is not.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Absolute path of the directory. Default: the name.").guarded().role(FieldRole::Path).mode(FieldMode::Static)
            .example("/opt/app"),
        FieldSpec::new("source", FieldType::Text, "Absolute path of an archive on the host.").relative().guarded().mode(FieldMode::Value)
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
            .default("0")
            .receives(Receives::Shown),
        FieldSpec::new(
            "creates",
            FieldType::Text,
            "Path below the directory: while it exists, the directory counts as unpacked, whatever the archive is. Default: the directory must come from this very archive.",
        ).mode(FieldMode::Value)
        .example("bin/app")
        .receives(Receives::Shown),
        FieldSpec::new("owner", FieldType::Text, "Owner of everything, by name or number. Default: the daemon's user.").guarded().mode(FieldMode::Value)
            .example("root")
            .receives(Receives::Shown),
        FieldSpec::new("group", FieldType::Text, "Group of everything, by name or number. Default: the daemon's group.").guarded().mode(FieldMode::Value)
            .example("root")
            .receives(Receives::Shown),
        FieldSpec::new("mode", FieldType::Text, "Octal mode of the directory.").guarded().mode(FieldMode::Value)
            .default("0755")
            .example("0755")
            .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the directory.").guarded().known_at_load()
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
    restore: None,
    build: declare::build,
};

/// The time for unpacking, besides that of the download.
const PATIENCE: Duration = Duration::from_hours(1);

/// The file in the directory that names the archive.
const STAMP: &str = ".steadfast-archive";

/// The origin of an archive.
#[derive(Debug)]
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
#[derive(Debug)]
struct Archive {
    path: PathBuf,
    origin: Origin,
    format: Format,
    strip: u32,
    creates: Option<PathBuf>,
    owner: Option<String>,
    group: Option<String>,
    mode: String,
    /// The sum of `source`, for which none is declared.
    source_sum: KnownSum,
}

/// The resource, shared with the threads that examine the directory.
#[derive(Debug)]
struct Unpacked(Arc<Archive>);

impl Archive {
    /// Returns the text of the stamp for an archive with this checksum.
    fn stamp(&self, sha256: &str) -> String {
        format!("sha256:{sha256} strip:{}", self.strip)
    }

    /// Returns the wanted state: the stamp, or the name of the archive if its checksum is not declared.
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

    /// Returns the state of the directory, written as the wanted one; none if nothing is unpacked there.
    fn found(&self, files: &Files, cancel: &CancellationToken) -> Result<Option<String>, Failure> {
        if let Some(below) = &self.creates {
            let path = self.path.join(below);
            let exists = || -> Result<bool, Fault> {
                let Some(spot) = files.open_entry(&path)? else { return Ok(false) };
                Ok(spot.look()?.is_some())
            };
            let exists = exists().map_err(|fault| files.trouble(fault, &path))?;
            return Ok(exists.then(|| self.wanted()));
        }
        let Some(stamp) = text_of(files, &self.path.join(STAMP))? else { return Ok(None) };
        let stamp = stamp.trim().to_owned();
        let Origin::File(path, None) = &self.origin else { return Ok(Some(stamp)) };
        match self.source_sum.find_sum(files, path, cancel)? {
            Some(sum) if self.stamp(&sum) == stamp => Ok(Some(self.wanted())),
            // An archive that is gone after it was unpacked changes nothing.
            None => Ok(Some(self.wanted())),
            Some(_) => Ok(Some(stamp)),
        }
    }

    /// Fails unless the directory may be replaced: it is absent, empty or stamped, and no other user can exchange it.
    fn guard_place(&self, files: &Files) -> Result<(), Failure> {
        let refused = |why: &str, hint: &str| {
            Err(Fault::refused(said("unpack into", &self.path, why).hint(hint)))
        };
        guard_parent(files, &self.path)?;
        let guard = || -> Result<(), Fault> {
            let Some(spot) = files.open_entry(&self.path)? else { return Ok(()) };
            let Some(seen) = spot.look()? else { return Ok(()) };
            if seen.kind != FileType::Directory {
                return refused("not a directory", "remove the object at the path");
            }
            let is_stamped = spot_exists(files, &self.path.join(STAMP))?;
            if !is_stamped && !spot.is_empty()? {
                let hint = "an archive replaces its whole directory: empty it, or choose another";
                return refused("it has content that no archive brought", hint);
            }
            Ok(())
        };
        guard().map_err(|fault| files.trouble(fault, &self.path))
    }
}

fn spot_exists(files: &Files, path: &Path) -> Result<bool, Fault> {
    let Some(spot) = files.open_entry(path)? else { return Ok(false) };
    Ok(spot.look()?.is_some())
}

impl ValueSet for Unpacked {
    fn wanted(&self) -> FieldValues {
        vec![("archive", Some(self.0.wanted()))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let (archive, cancel) = (Arc::clone(&self.0), cancel.clone());
            let found = on_thread(host, move |host| archive.found(host.files(), &cancel)).await??;
            Ok(vec![("archive", found)])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(unpack::replace(&self.0, host, permit))
    }

    fn footprint(&self) -> Footprint {
        let Archive { path, origin, owner, group, .. } = &*self.0;
        let parent = path.parent().map(|parent| Need::path(parent, "contains the directory"));
        let mut requires: Vec<Need> = parent.into_iter().collect();
        requires.extend(owner.iter().filter_map(|name| Need::user(name, "owns the directory")));
        requires.extend(group.iter().filter_map(|name| Need::group(name, "owns the directory")));
        let below = self.0.creates.as_deref().unwrap_or_else(|| Path::new(STAMP));
        let mut watch = vec![
            WatchSource::Path { path: path.clone(), below: false },
            WatchSource::Path { path: path.join(below), below: false },
        ];
        let (mut reads, mut trusts) = (Vec::new(), Vec::new());
        match origin {
            Origin::File(source, _) => {
                requires.push(Need::path(source.clone(), "is unpacked"));
                watch.push(WatchSource::Path { path: source.clone(), below: false });
                reads.push(source.clone());
                trusts.push(source.clone());
            }
            Origin::Url(download) => {
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
        let stamp = found.iter().find_map(|(_, value)| value.as_deref());
        let sum = stamp.and_then(|stamp| stamp.split(' ').next());
        let sum = sum.filter(|word| word.starts_with("sha256:"));
        let text = |text: String| SentValue::Shown(Value::Text(text));
        let path = ("path", text(self.0.path.display().to_string()));
        sum.map(|sum| ("checksum", text(sum.to_owned()))).into_iter().chain([path]).collect()
    }
}
