//! The check of what the graph cannot be told by events: guards that nothing watches, and file systems that report no
//! events of other hosts.

use super::Finding;
use crate::config::Vertex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use steadfast_engine::Poll;
use steadfast_resources::{RunPolicy, WatchSource};

/// The number of resources or directories that a finding names.
const NAMED: usize = 3;
/// The number of directories that are looked at.
const DIRECTORIES: usize = 4096;
/// The time limit for the look at all directories: one of them may be on a hanging server.
const PATIENCE: Duration = Duration::from_secs(3);

/// File systems on which a change by another host or by a server makes no event, by the magic number of the kernel.
const WITHOUT_EVENTS: [(u64, &str); 9] = [
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
];

/// Returns the findings about the resources of a graph.
pub(super) fn look(vertices: &[Vertex]) -> Vec<Finding> {
    let guards = unwatched_guards(vertices);
    let all: BTreeSet<PathBuf> = watched_directories(vertices).take(DIRECTORIES).collect();
    guards.into_iter().chain(quiet_file_systems(all)).collect()
}

/// Finds resources whose state can differ without an event: only a sweep or a start checks them.
fn unwatched_guards(vertices: &[Vertex]) -> Option<Finding> {
    let is_blind = |vertex: &&Vertex| {
        vertex.recipe.is_none()
            && vertex.meta.poll == Poll::Never
            && vertex.identity.starts_with("exec[")
            && vertex.resource.traits().repeat == RunPolicy::State
            && vertex.resource.footprint().watch.is_empty()
    };
    let blind: Vec<&str> = vertices.iter().filter(is_blind).map(|it| &*it.identity).collect();
    let first = blind.first()?;
    let says = format!("no event checks the guards of {}: only a sweep does", shorten(&blind));
    let advice = format!(
        "in {first}: `watchfiles: [FILE]` for what its guards read, or `meta: {{poll: 30}}`"
    );
    Some(Finding::warning("guards", says, advice))
}

/// Returns the directories of all watched paths.
fn watched_directories(vertices: &[Vertex]) -> impl Iterator<Item = PathBuf> + '_ {
    let watched = vertices.iter().filter(|vertex| vertex.meta.poll == Poll::Never);
    let sources = watched.flat_map(|vertex| vertex.resource.footprint().watch);
    sources.filter_map(|source| match source {
        WatchSource::Path { path, .. } | WatchSource::Supply(path) => {
            path.parent().map(PathBuf::from)
        }
        WatchSource::Tree(path) => Some(path),
        WatchSource::Every(_)
        | WatchSource::Polled(_)
        | WatchSource::Lines(_)
        | WatchSource::World(_)
        | WatchSource::Unit { .. } => None,
    })
}

/// Finds directories on file systems whose changes make no events here.
fn quiet_file_systems(directories: BTreeSet<PathBuf>) -> Vec<Finding> {
    const NAME: &str = "events";
    let (to, found) = mpsc::channel();
    // The thread is left behind if a server hangs.
    let looking = std::thread::Builder::new().name("doctor".to_owned()).spawn(move || {
        let quiet = directories.iter().filter_map(|directory| {
            Some(format!("{} ({})", directory.display(), kind_without_events(directory)?))
        });
        // The receiver may have given up.
        to.send(quiet.collect::<Vec<_>>()).unwrap_or_default();
    });
    if looking.is_err() {
        return Vec::new();
    }
    let Ok(quiet) = found.recv_timeout(PATIENCE) else {
        let says = "a watched directory is on a file system that does not respond";
        return vec![Finding::warning(NAME, says, "find it: `findmnt`, and processes in state D")];
    };
    if quiet.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = quiet.iter().map(String::as_str).collect();
    let says = format!("changes by other hosts make no events in {}", shorten(&names));
    let advice = "set `meta: {poll: 60}` on the resources there (`findmnt` shows the file system)";
    vec![Finding::warning(NAME, says, advice)]
}

/// Returns the name of the file system of a directory if it reports no events of other hosts.
fn kind_without_events(directory: &std::path::Path) -> Option<&'static str> {
    let there = directory.ancestors().find_map(|place| rustix::fs::statfs(place).ok())?;
    // The type of the number differs between architectures.
    #[expect(clippy::cast_sign_loss, reason = "the numbers of some file systems fill 32 bits")]
    let number = there.f_type as u64 & 0xffff_ffff;
    WITHOUT_EVENTS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Returns the first names, and the number of the others.
fn shorten(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).copied().collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{kind_without_events, quiet_file_systems, shorten};
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn local_file_systems_have_events() {
        assert_eq!(kind_without_events(Path::new("/dev/shm/missing/below")), None);
        assert_eq!(quiet_file_systems(BTreeSet::from([PathBuf::from("/")])), []);
    }

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(shorten(&["a", "b"]), "a, b");
        assert_eq!(shorten(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
