//! Facts about the host in a status: a pending reboot, and the git commit of the graph.
//!
//! The files of the checkout are read without running git, so that uncommitted edits are unknown.

use crate::api::{Checkout, Reboot};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The file that package scripts create to request a reboot; a file beside it lists the packages.
const REBOOT: &str = "/run/reboot-required";
/// The maximum size of a file of a checkout, in bytes.
const LONGEST: u64 = 16 << 20;
/// The maximum depth of symbolic references.
const DEPTH: usize = 5;
/// The time limit, so that a hanging file system does not block a status.
const PATIENCE: Duration = Duration::from_millis(200);

/// Returns the pending reboot and the checkout, as far as known in time.
pub(in crate::workers) async fn look(graph: Option<PathBuf>) -> (Option<Reboot>, Option<Checkout>) {
    let look = tokio::task::spawn_blocking(move || {
        (reboot(Path::new(REBOOT)), graph.as_deref().and_then(checkout))
    });
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) | Err(_) => (None, None),
    }
}

fn reboot(mark: &Path) -> Option<Reboot> {
    if !mark.exists() {
        return None;
    }
    let mut list = mark.as_os_str().to_owned();
    list.push(".pkgs");
    let text = read(Path::new(&list)).unwrap_or_default();
    let mut packages: Vec<String> = text.lines().map(str::to_owned).collect();
    packages.sort_unstable();
    packages.dedup();
    Some(Reboot { packages })
}

/// Returns the checkout that contains a graph.
fn checkout(graph: &Path) -> Option<Checkout> {
    let graph = graph.canonicalize().ok()?;
    let directory = graph.ancestors().find_map(|folder| git_directory(&folder.join(".git")))?;
    // A worktree has its own HEAD; its branches are in the main repository.
    let common = read(&directory.join("commondir")).map(|path| directory.join(path.trim()));
    let places = [Some(directory.clone()), common];
    let places: Vec<PathBuf> = places.into_iter().flatten().collect();
    let head = read(&directory.join("HEAD"))?;
    let name = head.trim().strip_prefix("ref:").map(|name| name.trim().to_owned());
    let branch = name.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
    let branch = branch.map(str::to_owned);
    let commit = match &name {
        Some(name) => resolve(&places, name),
        None => commit(&head),
    };
    commit.map(|commit| Checkout { commit, branch })
}

/// Returns the git directory: `.git` is a directory, or a file with its path.
fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let text = read(dot_git)?;
    let path = text.trim().strip_prefix("gitdir:")?.trim();
    Some(dot_git.parent()?.join(path))
}

/// Returns the commit of a reference; loose files take precedence over packed ones.
fn resolve(places: &[PathBuf], name: &str) -> Option<String> {
    let mut name = name.to_owned();
    for _ in 0..DEPTH {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !name.starts_with("refs/") || !Path::new(&name).components().all(plain) {
            return None;
        }
        match places.iter().find_map(|place| read(&place.join(&name))) {
            Some(text) => match text.trim().strip_prefix("ref:") {
                Some(next) => next.trim().clone_into(&mut name),
                None => return commit(&text),
            },
            None => return places.iter().find_map(|place| packed(place, &name)),
        }
    }
    None
}

fn packed(place: &Path, name: &str) -> Option<String> {
    let text = read(&place.join("packed-refs"))?;
    text.lines().find_map(|line| {
        let (hash, found) = line.split_once(' ')?;
        (found.trim() == name).then(|| commit(hash)).flatten()
    })
}

/// Parses a commit id of 40 or 64 hexadecimal digits.
fn commit(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_ascii_lowercase())
}

/// Reads a regular file; a pipe or device might never end.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{checkout, reboot};
    use std::fs;
    use std::path::Path;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn found(graph: &Path) -> Option<(String, Option<String>)> {
        checkout(graph).map(|found| (found.commit, found.branch))
    }

    fn put(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// The commit is found for loose and packed branches, a detached HEAD and a worktree, and is unknown in all other
    /// cases.
    #[test]
    fn the_commit_is_read_from_the_files_of_git() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path();
        put(top, "site/graph.yaml", "");
        let graph = top.join("site/graph.yaml");
        assert_eq!(found(&graph), None);
        put(top, ".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(found(&graph), None, "no commit yet");
        put(top, ".git/packed-refs", &format!("# pack-refs\n{ONE} refs/heads/main\n^{TWO}\n"));
        assert_eq!(found(&graph), Some((ONE.to_owned(), Some("main".to_owned()))));
        put(top, ".git/refs/heads/main", &format!("{TWO}\n"));
        assert_eq!(found(&graph), Some((TWO.to_owned(), Some("main".to_owned()))));
        put(top, ".git/HEAD", &format!("{ONE}\n"));
        assert_eq!(found(&graph), Some((ONE.to_owned(), None)));

        put(top, "tree/graph.yaml", "");
        put(top, "tree/.git", "gitdir: ../.git/worktrees/tree\n");
        put(top, ".git/worktrees/tree/HEAD", "ref: refs/heads/main\n");
        put(top, ".git/worktrees/tree/commondir", "../..\n");
        let tree = top.join("tree/graph.yaml");
        assert_eq!(found(&tree), Some((TWO.to_owned(), Some("main".to_owned()))));

        for lie in ["ref: ../../secret", "ref: refs/../../secret", "ref: refs/heads/loop", "x"] {
            put(top, ".git/HEAD", lie);
            put(top, ".git/refs/heads/loop", "ref: refs/heads/loop\n");
            put(top, "secret", ONE);
            assert_eq!(found(&graph), None, "{lie}");
        }
    }

    #[test]
    fn a_reboot_is_asked_for_by_packages() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().join("reboot-required");
        assert_eq!(reboot(&mark), None);
        put(folder.path(), "reboot-required", "*** System restart required ***\n");
        assert_eq!(reboot(&mark).map(|reboot| reboot.packages), Some(Vec::new()));
        put(folder.path(), "reboot-required.pkgs", "linux-image\ndbus\nlinux-image\n");
        let packages = reboot(&mark).expect("asked for").packages;
        assert_eq!(packages, ["dbus", "linux-image"]);
    }
}
