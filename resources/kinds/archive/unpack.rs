//! Unpacks an archive in a private folder, judges every entry, and puts the result in its place.

use super::{Archive, Format, Origin, STAMP};
use crate::escape::short;
use crate::failure::Failure;
use crate::host::files::{Content, Draft, Fault, Files, said};
use crate::host::input_trust::Reader;
use crate::host::{Command, Host};
use crate::parts::checksum::{LARGEST, checksum_of};
use crate::parts::commands::{command, failed, run_change};
use crate::parts::staging::Staging;
use crate::parts::{WriteFailure, on_thread};
use crate::permit::Permit;
use rustix::fs::FileType;
use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The deadline of one step on a large archive.
const STEP: Duration = Duration::from_mins(30);

/// Writes the stamp, gives the tree away and makes it durable. The arguments are the tree, the name of the stamp, its
/// text, the owner with the group, and the mode.
const FINISH: &str = r#"
set -e
rm -rf -- "${1:?}/$2"
printf '%s\n' "$3" >"$1/$2"
[ -z "$4" ] || chown -hR -- "$4" "$1"
chmod -- "$5" "$1"
sync -f -- "$1"
"#;

/// Drops leading directories of an unpacked tree. The arguments are the tree, the new tree, and the count plus one.
const STRIP: &str = r#"
set -e
mkdir -- "$2"
find "$1" -mindepth "$3" -maxdepth "$3" -exec mv -t "$2" -- {} +
"#;

/// Puts the new tree in the place of the old one. The arguments are the place, the new tree and a name for the old one.
/// If the second step fails, the old tree comes back.
const SWAP: &str = r#"
if [ -d "$1" ]; then mv -T -- "$1" "$3" || exit 1; fi
mv -T -- "$2" "$1" && exit 0
[ -d "$3" ] && mv -T -- "$3" "$1"
exit 1
"#;

/// Replaces the directory with the content of the archive.
///
/// # Errors
///
/// Fails without a change if the archive cannot be read, differs from its checksum or has a dangerous entry.
pub(super) async fn replace(
    archive: &Arc<Archive>,
    host: &Host,
    permit: &Permit,
) -> Result<(), WriteFailure> {
    guard(archive, host).await?;
    let parent = archive.path.parent().unwrap_or_else(|| Path::new("/"));
    let staging = Staging::make(host, permit, parent).await?;
    let tree = prepare(archive, host, permit, &staging).await;
    let tree = match tree {
        // The place can have changed during a long download.
        Ok(tree) => guard(archive, host).await.map(|()| tree),
        Err(failure) => Err(failure),
    };
    let placed = match tree {
        Ok(tree) => {
            let place = archive.path.display().to_string();
            let old = staging.join("old").display().to_string();
            run_script(host, permit, SWAP, &[&place, &tree, &old]).await
        }
        Err(failure) => Err(WriteFailure { touched: false, ..failure }),
    };
    if let Err(failure) = &placed
        && failure.touched
        && host.look(&staging.join("old")).await.is_ok()
    {
        let WriteFailure { trouble, touched } = failure.clone();
        let kept = staging.join("old");
        let what = format!("{}\nthe former directory is {}", trouble.what, kept.display());
        return Err(WriteFailure { trouble: Failure { what, ..trouble }, touched });
    }
    let touched = placed.is_ok();
    let removed = staging.remove(host, permit).await;
    placed.and_then(|()| removed.map_err(|failure| WriteFailure { touched, ..failure }))
}

/// Fails unless the directory may be replaced.
async fn guard(archive: &Arc<Archive>, host: &Host) -> Result<(), WriteFailure> {
    let own = Arc::clone(archive);
    let guarded = on_thread(host, move |host| own.guard_place(host.files())).await;
    guarded.and_then(|guarded| guarded).map_err(WriteFailure::untouched)
}

/// Unpacks and judges the archive; returns the path of the tree.
async fn prepare(
    archive: &Archive,
    host: &Host,
    permit: &Permit,
    staging: &Staging,
) -> Result<String, WriteFailure> {
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
            let copy = move |host: &Host| copy_source(host.files(), &own_permit, &from, &to);
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
    judge(host, &tree).await.map_err(WriteFailure::untouched)?;
    let owner = match (&archive.owner, &archive.group) {
        (None, None) => String::new(),
        (Some(owner), None) => owner.clone(),
        (owner, Some(group)) => format!("{}:{group}", owner.as_deref().unwrap_or_default()),
    };
    let stamp = archive.stamp(&sha256);
    run_script(host, permit, FINISH, &[&tree, STAMP, &stamp, &owner, &archive.mode]).await?;
    Ok(tree)
}

/// Copies an archive of the host into the private folder: a regular file, and no link or private file of root that
/// another user has put at the path.
///
/// # Errors
///
/// Fails if the file is absent, no regular file, or too large for a file that another user can change.
fn copy_source(files: &Files, permit: &Permit, from: &Path, to: &Path) -> Result<(), Failure> {
    let copy = || -> Result<(), Fault> {
        let refused = |why: &str| Fault::refused(said("unpack", from, why));
        let Some(origin) = files.origin(from)? else {
            return Err(refused("the archive does not exist"));
        };
        let seen = *origin.seen();
        if seen.kind != FileType::RegularFile {
            return Err(refused("not a regular file"));
        }
        let reader = Reader::here();
        let doubts = || reader.doubts_on_the_way(from).or_else(|| reader.doubts_seen(from, &seen));
        if seen.size > LARGEST && reader.is_strict() && doubts().is_some() {
            let hint = "make root the owner of the file and all parent directories";
            let why = "another user can change the file, and it is larger than 1 GiB";
            return Err(Fault::refused(said("unpack", from, why).hint(hint)));
        }
        let Some(spot) = files.open_entry(to)? else { return Err(Fault::moved()) };
        let mut content = Content::default();
        content.push(origin);
        let draft = Draft {
            content: &content,
            owner: None,
            group: None,
            mode: 0o600,
            instead_of: None,
            acceptance: None,
            extended: None,
            sensitive: true,
        };
        files.put(permit, &spot, &draft).map(drop)
    };
    copy().map_err(|fault| files.trouble(fault, from))
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
    WriteFailure { trouble: failure.trouble.hint(hint), touched: false }
}

/// Fails if an entry leads out of the tree, is a device, socket or FIFO, or has a set-id bit.
async fn judge(host: &Host, tree: &str) -> Result<(), Failure> {
    // The output for a whole large tree exceeds the limit of captured output: find selects what must be judged.
    let argv = [
        "find",
        tree,
        "-mindepth",
        "1",
        "(",
        "-type",
        "l",
        "-o",
        "-perm",
        "/6000",
        "-o",
        "-links",
        "+1",
        "-not",
        "-type",
        "d",
        "-o",
        "-not",
        "(",
        "-type",
        "f",
        "-o",
        "-type",
        "d",
        ")",
        ")",
        "-printf",
        "%y %m %n %i\\0%P\\0%l\\0",
    ];
    let find = slow(&argv);
    let finished = host.query(&find, &CancellationToken::new()).await?;
    if !finished.is_success() {
        return Err(failed(&find, &finished));
    }
    if finished.stdout.truncated() {
        let what = "the archive has too many links to judge them";
        return Err(
            Failure::new(what).hint("unpack it with `exec`, or ask its authors for another")
        );
    }
    let text = finished.stdout.text();
    let mut parts = text.split_terminator('\0');
    let mut names: HashMap<&str, (u64, u64, &str)> = HashMap::new();
    while let (Some(head), Some(path), Some(target)) = (parts.next(), parts.next(), parts.next()) {
        let words: Vec<&str> = head.split(' ').collect();
        let [kind, mode, links, inode] = words.as_slice() else {
            return Err(unsafe_entry(path, "has a name that cannot be judged"));
        };
        let mode = u32::from_str_radix(mode, 8).unwrap_or(0o6000);
        match *kind {
            "l" if leads_out(path, target) => {
                return Err(unsafe_entry(path, "is a link that leads out"));
            }
            "l" => {}
            "f" | "d" if mode & 0o6000 != 0 => return Err(unsafe_entry(path, "has a set-id bit")),
            "f" => {
                let links = links.parse().unwrap_or(u64::MAX);
                names.entry(inode).or_insert((links, 0, path)).1 += 1;
            }
            "d" => {}
            _ => return Err(unsafe_entry(path, "is a device, a socket or a FIFO")),
        }
    }
    match names.values().find(|(links, found, _)| *links > 1 && links != found) {
        Some((_, _, path)) => Err(unsafe_entry(path, "has a name outside")),
        None => Ok(()),
    }
}

fn unsafe_entry(path: &str, why: &str) -> Failure {
    let path = short(path, 40);
    Failure::new(format!("the archive is not safe: {path} {why}"))
        .hint("unpack it by hand and examine it, or ask its authors")
}

/// Returns true if a link at a relative path may lead out of the tree. A `..` after a name counts as such: the name may
/// be a link itself.
fn leads_out(path: &str, target: &str) -> bool {
    let mut depth = Path::new(path).components().count().saturating_sub(1);
    let mut has_name = false;
    for part in Path::new(target).components() {
        match part {
            Component::Normal(_) => has_name = true,
            Component::CurDir => {}
            Component::ParentDir if has_name || depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
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

#[cfg(test)]
mod tests {
    use super::leads_out;

    #[test]
    fn links_out_of_the_tree_are_found() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a", "../b", true),
            ("d/a", "../b", false),
            ("d/a", "../../b", true),
            ("d/a", "x/../../../b", true),
            ("a", "/etc/passwd", true),
            ("d/e/a", "./../../b", false),
            ("a", "d/x/../..", true),
        ] {
            assert_eq!(leads_out(path, target), out, "{path} -> {target}");
        }
    }
}
