//! Unpacks an archive in a private folder, judges every entry, and puts the result, or the entries that differ, in its
//! place.

use super::listing::judge;
use super::record::{RECORD, Record};
use super::{Archive, Format, Origin, Placement};
use crate::failure::Failure;
use crate::host::files::{AccountKind, Content, Draft, Fault, Files, said};
use crate::host::input_trust::Reader;
use crate::host::{Command, Host};
use crate::parts::checksum::checksum_of;
use crate::parts::commands::{command, run_change};
use crate::parts::staging::Staging;
use crate::parts::tree_listing::list_tree;
use crate::parts::{WriteFailure, on_thread};
use crate::permit::Permit;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The deadline of one step on a large archive.
const STEP: Duration = Duration::from_mins(30);

/// Gives the tree away. The arguments are the tree, the name of the record, the owner with the group, and the mode.
const FINISH: &str = r#"
set -e
rm -rf -- "${1:?}/$2"
[ -z "$3" ] || chown -hR -- "$3" "$1"
chmod -- "$4" "$1"
"#;

/// Drops leading directories of an unpacked tree. The arguments are the tree, the new tree, and the count plus one.
const STRIP: &str = r#"
set -e
mkdir -- "$2"
find "$1" -mindepth "$3" -maxdepth "$3" -exec mv -t "$2" -- {} +
"#;

/// Puts the new tree in the place of nothing or of an empty directory, in one step. The arguments are the place and the
/// new tree.
const PLACE: &str = r#"mv -T -- "$2" "$1""#;

/// Puts the new tree in the place of the old one. The arguments are the place, the new tree and a name for the old one.
/// If the second step fails, the old tree comes back.
const SWAP: &str = r#"
if [ -d "$1" ]; then mv -T -- "$1" "$3" || exit 1; fi
mv -T -- "$2" "$1" && exit 0
[ -d "$3" ] && mv -T -- "$3" "$1"
exit 1
"#;

/// Replaces the entries of the former archive with those of the archive. A directory without other objects is replaced
/// as a whole.
///
/// # Errors
///
/// Fails without a change if the archive cannot be read, differs from its checksum or has a dangerous entry.
pub(super) async fn replace(
    archive: &Arc<Archive>,
    host: &Host,
    permit: &Permit,
) -> Result<(), WriteFailure> {
    let (staging, prepared) = stage(archive, host, permit).await?;
    let placed = match prepared {
        Ok((tree, record)) => {
            let own = Arc::clone(archive);
            let placed = on_thread(host, move |host| {
                own.placement(host.files(), &record).map(|placement| (placement, record))
            });
            match placed.await.and_then(|placed| placed) {
                Ok((Placement::Empty, _)) => {
                    let place = archive.to.path.display().to_string();
                    run_script(host, permit, PLACE, &[&place, &tree]).await
                }
                Ok((Placement::Whole, _)) => {
                    let place = archive.to.path.display().to_string();
                    let old = staging.join("old").display().to_string();
                    run_script(host, permit, SWAP, &[&place, &tree, &old]).await
                }
                Ok((placement, record)) => {
                    let (own, own_permit) = (Arc::clone(archive), permit.for_thread());
                    let work = move |host: &Host| {
                        let (at, path) = ((host.files(), &own_permit), &own.to.path);
                        match &placement {
                            Placement::Merged(old) => {
                                own.to.merge(at, (old, &record), Path::new(&tree))
                            }
                            _ => record.write(at, path).map_err(WriteFailure::untouched),
                        }
                    };
                    let merged = on_thread(host, work).await;
                    merged.unwrap_or_else(|failure| Err(WriteFailure::touched(failure)))
                }
                Err(failure) => Err(WriteFailure::untouched(failure)),
            }
        }
        Err(failure) => Err(failure),
    };
    if let Err(failure) = &placed
        && failure.touched
        && host.look(&staging.join("old")).await.is_ok()
    {
        let WriteFailure { failure, touched } = failure.clone();
        let kept = staging.join("old");
        let what = format!("{}\nthe former directory is {}", failure.what, kept.display());
        return Err(WriteFailure { failure: Failure { what, ..failure }, touched });
    }
    end(staging, host, permit, placed).await
}

/// Writes the entries that differ from the archive, and nothing else.
///
/// # Errors
///
/// Fails if the archive has changed since it was unpacked, or as [`replace`] does.
pub(super) async fn repair(
    archive: &Arc<Archive>,
    host: &Host,
    permit: &Permit,
) -> Result<(), WriteFailure> {
    let (staging, prepared) = stage(archive, host, permit).await?;
    let repaired = match prepared {
        Ok((tree, record)) => {
            let (own, own_permit) = (Arc::clone(archive), permit.for_thread());
            let work = move |host: &Host| own.repair((host.files(), &own_permit), &record, &tree);
            let repaired = on_thread(host, work).await;
            repaired.unwrap_or_else(|failure| Err(WriteFailure::touched(failure)))
        }
        Err(failure) => Err(failure),
    };
    end(staging, host, permit, repaired).await
}

/// An unpacked tree, with its record.
type Prepared = Result<(String, Record), WriteFailure>;

/// Unpacks the archive in a private folder.
async fn stage(
    archive: &Arc<Archive>,
    host: &Host,
    permit: &Permit,
) -> Result<(Staging, Prepared), WriteFailure> {
    guard(archive, host).await?;
    let parent = archive.to.path.parent().unwrap_or_else(|| Path::new("/"));
    let staging = Staging::make(host, permit, parent).await?;
    let prepared = match prepare(archive, host, permit, &staging).await {
        // The place can have changed during a long download.
        Ok(prepared) => guard(archive, host).await.map(|()| prepared),
        Err(failure) => Err(failure),
    };
    Ok((staging, prepared.map_err(|failure| WriteFailure { touched: false, ..failure })))
}

/// Removes the private folder, and returns the result of the work.
async fn end(
    staging: Staging,
    host: &Host,
    permit: &Permit,
    done: Result<(), WriteFailure>,
) -> Result<(), WriteFailure> {
    let touched = done.is_ok();
    let removed = staging.remove(host, permit).await;
    done.and_then(|()| removed.map_err(|failure| WriteFailure { touched, ..failure }))
}

/// Fails unless the directory may be replaced.
async fn guard(archive: &Arc<Archive>, host: &Host) -> Result<(), WriteFailure> {
    let own = Arc::clone(archive);
    let guarded = on_thread(host, move |host| own.guard_place(host.files())).await;
    guarded.and_then(|guarded| guarded).map_err(WriteFailure::untouched)
}

/// Unpacks and judges the archive; returns the path of the tree, and its record.
async fn prepare(
    archive: &Archive,
    host: &Host,
    permit: &Permit,
    staging: &Staging,
) -> Result<(String, Record), WriteFailure> {
    let (packed, sha256) = match &archive.origin {
        Origin::Url(download) => {
            let packed = staging.join("archive");
            download.store(host, permit, &packed).await?;
            (packed, download.sha256.clone())
        }
        Origin::File(path, wanted) => {
            // The copy cannot change between the comparison and the unpacking.
            let packed = staging.join("archive");
            let (from, to, own_permit) = (path.clone(), packed.clone(), permit.for_thread());
            let source =
                Source { path: from, owner: archive.to.owner.clone(), has_sum: wanted.is_some() };
            let copy = move |host: &Host| source.copy(host.files(), &own_permit, &to);
            let copied = on_thread(host, copy).await.and_then(|copied| copied);
            copied.map_err(WriteFailure::untouched)?;
            let copied = packed.clone();
            let found = on_thread(host, move |host| checksum_of(host.files(), &copied)).await;
            let found = found.and_then(|found| found).map_err(WriteFailure::untouched)?;
            let found = found.unwrap_or_default();
            if let Some(wanted) = wanted.as_ref().filter(|wanted| **wanted != found) {
                let what = format!(
                    "the archive does not have its checksum\nexpected sha256:{wanted}\nfound sha256:{found}"
                );
                let hint = "`checksum` belongs to another file";
                return Err(WriteFailure::untouched(Failure::new(what).hint(hint)));
            }
            (packed, found)
        }
    };
    let tree = unpack(archive, host, permit, (staging, &packed)).await?;
    let top = PathBuf::from(&tree);
    let judged = on_thread(host, move |host| judge(&list_tree(host.files(), &top)?)).await;
    judged.and_then(|judged| judged).map_err(WriteFailure::untouched)?;
    let owner = match (&archive.to.owner, &archive.to.group) {
        (None, None) => String::new(),
        (Some(owner), None) => owner.clone(),
        (owner, Some(group)) => format!("{}:{group}", owner.as_deref().unwrap_or_default()),
    };
    let mode = format!("{:04o}", archive.to.mode.unwrap_or(0o755));
    run_script(host, permit, FINISH, &[&tree, RECORD, &owner, &mode]).await?;
    let (stamp, top, own_permit) =
        (archive.stamp(&sha256), PathBuf::from(&tree), permit.for_thread());
    let recorded = on_thread(host, move |host| {
        let record = Record::of_tree(host.files(), (&top, stamp), &CancellationToken::new())?;
        record.write((host.files(), &own_permit), &top).map(|()| record)
    });
    let record = recorded.await.and_then(|record| record).map_err(WriteFailure::untouched)?;
    run_change(host, permit, &slow(&["sync", "-f", "--", &tree])).await?;
    Ok((tree, record))
}

/// An archive on the host.
struct Source {
    path: PathBuf,
    /// The owner of the unpacked files, who may choose their content.
    owner: Option<String>,
    /// The archive has a declared checksum, so that nobody can choose its content.
    has_sum: bool,
}

impl Source {
    /// Copies the archive into the private folder: a regular file, and no link or private file of root that another
    /// user has put at the path.
    ///
    /// # Errors
    ///
    /// Fails if the file is absent or no regular file, if another user can choose its content, or if it is too large
    /// for a file that another user can change.
    fn copy(&self, files: &Files, permit: &Permit, to: &Path) -> Result<(), Failure> {
        let from = self.path.as_path();
        let copy = || -> Result<(), Fault> {
            let refused = |why: &str| said("unpack", from, why);
            let Some(origin) = files.origin(from)? else {
                return Err(Fault::refused(refused("the archive does not exist")));
            };
            let seen = *origin.seen();
            if seen.kind != FileType::RegularFile {
                return Err(Fault::refused(refused("not a regular file")));
            }
            let owner = self.owner.as_ref();
            let owner = owner.map(|name| files.accounts().number(AccountKind::User, name));
            let owner = owner.transpose().map_err(Fault::refused)?;
            let reader = Reader::here().on_behalf_of(owner);
            let doubt =
                reader.untrusted_on_the_way(from).or_else(|| reader.doubts_seen(from, &seen));
            if let Some(doubt) = doubt.filter(|_| reader.is_strict() && !self.has_sum) {
                let mut failure = refused("another user can change the archive");
                failure.what.push_str(&format!("\n{doubt}"));
                let hint = "declare its `checksum`, or make root the owner of the file and all parent directories";
                return Err(Fault::refused(failure.hint(hint)));
            }
            files.guard_lent(&origin, reader)?;
            // The owner may choose the content, and not the time that it takes.
            Files::guard_size(from, &seen)?;
            let Some(spot) = files.open_entry(to)? else { return Err(Fault::moved()) };
            let mut content = Content::default();
            content.push(origin);
            files.put(permit, &spot, &Draft::private(&content)).map(drop)
        };
        copy().map_err(|fault| files.failure(fault, from))
    }
}

async fn unpack(
    archive: &Archive,
    host: &Host,
    permit: &Permit,
    (staging, packed): (&Staging, &Path),
) -> Result<String, WriteFailure> {
    let tree = staging.join("tree").display().to_string();
    let packed = packed.display().to_string();
    run_change(host, permit, &command(&["mkdir", "--", &tree])).await?;
    match archive.format {
        Format::Tar(compression) => {
            let strip = format!("--strip-components={}", archive.strip);
            let mut argv = vec!["tar", "--extract", "--force-local"];
            argv.extend(compression);
            argv.extend(["--no-same-owner", "--no-same-permissions", "--delay-directory-restore"]);
            argv.extend([strip.as_str(), "--directory", &tree, "--file", &packed]);
            run_change(host, permit, &slow(&argv)).await.map_err(with_advice)?;
            Ok(tree)
        }
        Format::Zip => {
            let argv = ["unzip", "-q", "-o", &packed, "-d", &tree];
            run_change(host, permit, &slow(&argv)).await.map_err(with_advice)?;
            if archive.strip == 0 {
                return Ok(tree);
            }
            let stripped = staging.join("stripped").display().to_string();
            let depth = (archive.strip + 1).to_string();
            run_script(host, permit, STRIP, &[&tree, &stripped, &depth]).await?;
            Ok(stripped)
        }
    }
}

fn with_advice(failure: WriteFailure) -> WriteFailure {
    let hint = "the archive may be damaged, or the host lacks tar, unzip, xz-utils or zstd";
    WriteFailure { failure: failure.failure.hint(hint), touched: false }
}

fn slow(argv: &[&str]) -> Command {
    Command { timeout: Some(STEP), ..command(argv) }
}

async fn run_script(
    host: &Host,
    permit: &Permit,
    script: &str,
    arguments: &[&str],
) -> Result<(), WriteFailure> {
    let mut argv = vec!["sh", "-c", script, "sh"];
    argv.extend(arguments);
    run_change(host, permit, &slow(&argv)).await.map(|_| ())
}
