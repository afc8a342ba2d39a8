//! Judges an unpacked tree: rejects entries that are not safe.

use crate::failure::Failure;
use crate::host::files::SET_ID;
use crate::parts::tree_listing::Listed;
use crate::secrets::escape::short;
use rustix::fs::FileType;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// Fails if an entry leads out of the tree, is a device, socket or FIFO, or has a set-id bit.
///
/// # Errors
///
/// The failure names the entry.
pub(super) fn judge(all: &[Listed]) -> Result<(), Failure> {
    let mut names: HashMap<(u64, u64), (u64, u64, &Path)> = HashMap::new();
    for Listed { path, seen, target } in all {
        match seen.kind {
            FileType::Symlink if leads_out(path, Path::new(OsStr::from_bytes(target))) => {
                return Err(unsafe_entry(path, "is a link that leads out"));
            }
            FileType::Symlink => {}
            FileType::RegularFile | FileType::Directory if seen.mode & SET_ID != 0 => {
                return Err(unsafe_entry(path, "has a set-id bit"));
            }
            FileType::RegularFile => {
                names.entry(seen.identity).or_insert((seen.links, 0, path)).1 += 1;
            }
            FileType::Directory => {}
            _ => return Err(unsafe_entry(path, "is a device, a socket or a FIFO")),
        }
    }
    match names.values().find(|(links, found, _)| *links > 1 && links != found) {
        Some((_, _, path)) => Err(unsafe_entry(path, "has a name outside")),
        None => Ok(()),
    }
}

fn unsafe_entry(path: &Path, why: &str) -> Failure {
    let path = short(&path.to_string_lossy(), 40);
    Failure::new(format!("the archive is not safe: {path} {why}"))
        .hint("unpack it by hand and examine it, or ask its authors")
}

/// Returns true if a link at a relative path may lead out of the tree. A `..` after a name counts as such: the name may
/// be a link itself.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    let mut has_name = false;
    for part in target.components() {
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

#[cfg(test)]
mod tests {
    use super::leads_out;
    use std::path::Path;

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
            assert_eq!(leads_out(Path::new(path), Path::new(target)), out, "{path} -> {target}");
        }
    }
}
