//! Path overlaps: finds resources whose planned changes affect each other, by the real directories and names behind
//! their paths.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::path::PathBuf;
use steadfast_engine::VertexId;
use steadfast_resources::PathAfter;
use steadfast_resources::host::files::{Coming, End, Ground, Name, Resolution, Resolver};

/// The maximum number of rounds in which planned links may redirect other planned changes.
const ROUNDS_AT_MOST: usize = 40;

/// The planned effect on the object at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedEffect {
    Nothing,
    /// Attributes or content of the object change.
    Alters,
    /// The object is created, rewritten or removed.
    Replaces,
    /// The effect is unknown: any of these.
    Unsure,
}

/// A resource with paths.
#[derive(Debug)]
pub(super) struct PlannedPath {
    pub(super) id: VertexId,
    pub(super) act: PlannedEffect,
    /// The claimed paths.
    pub(super) own: Vec<PathBuf>,
    /// Other paths that its check reads, with all their content.
    pub(super) reads: Vec<PathBuf>,
    /// The directory in which the resource removes everything that no other resource claims.
    pub(super) holds: Option<PathBuf>,
    pub(super) after: PathAfter,
    /// True if the resource is as declared.
    pub(super) is_settled: bool,
    /// True for a removal, which leaves the object alone if the graph declares it under another path.
    pub(super) removes: bool,
}

impl PlannedPath {
    fn replaces(&self) -> bool {
        matches!(self.act, PlannedEffect::Replaces | PlannedEffect::Unsure)
    }

    /// Returns the planned directory or link that other paths can pass through.
    fn coming(&self) -> Option<Coming> {
        match &self.after {
            _ if !self.replaces() => None,
            PathAfter::Directory => Some(Coming::Directory),
            PathAfter::Link(target) => Some(Coming::Link(target.clone())),
            PathAfter::Nothing | PathAfter::File | PathAfter::Other => None,
        }
    }
}

/// The resolved paths of a resource.
struct ResolvedPaths<'s> {
    subject: &'s PlannedPath,
    own: Vec<Resolution>,
    reads: Vec<Resolution>,
}

/// Returns each vertex whose check may have another result after other changes, with the vertices of those changes.
pub(super) fn find_overlaps(subjects: &[PlannedPath]) -> Vec<(VertexId, Vec<VertexId>)> {
    let walked = walk(subjects);
    let touched = ChangedPaths::of(&walked);
    let mut met: Vec<BTreeSet<VertexId>> =
        walked.iter().enumerate().map(|(at, one)| touched.meets(at, one)).collect();
    inside(&walked, &mut met);
    spared(&walked, &mut met);
    let each = walked.iter().zip(met).filter(|(_, others)| !others.is_empty());
    each.map(|(one, others)| (one.subject.id, others.into_iter().collect())).collect()
}

/// Resolves all paths, as they lead now and as they will lead after planned changes.
fn walk(subjects: &[PlannedPath]) -> Vec<ResolvedPaths<'_>> {
    let mut leads = Resolver::default();
    let coming = subjects.iter().filter_map(|one| Some((one.own.first()?, one.coming()?)));
    let mut coming: Vec<(&PathBuf, Coming)> = coming.collect();
    // Sorted, a directory comes before its content; only links may lead back.
    coming.sort_by_key(|(path, _)| *path);
    for _ in 0..ROUNDS_AT_MOST {
        let mut is_new = false;
        for (path, coming) in &coming {
            for name in leads.of(path, false).ends.iter().filter_map(|end| end.name.as_ref()) {
                is_new |= leads.expect(name, coming.clone());
            }
        }
        if !is_new {
            break;
        }
    }
    let mut each = |paths: &[PathBuf], follow| -> Vec<Resolution> {
        paths.iter().map(|path| leads.of(path, follow)).collect()
    };
    let walked = subjects.iter().map(|subject| ResolvedPaths {
        subject,
        own: each(&subject.own, false),
        reads: each(&subject.reads, true),
    });
    walked.collect()
}

impl ResolvedPaths<'_> {
    /// Lists the ends of the claimed paths.
    fn ends(&self) -> impl Iterator<Item = &End> {
        self.own.iter().flat_map(|lead| &lead.ends)
    }

    fn replaces(&self) -> bool {
        self.subject.replaces()
    }

    /// Returns true if a directory, or anything in it, is removed or replaced.
    fn changes_what_is_in_it(&self) -> bool {
        self.replaces() || self.subject.holds.is_some()
    }

    /// Lists the directories whose whole content matters to the resource.
    fn whole(&self) -> impl Iterator<Item = Ground> {
        let subject = self.subject;
        let is_whole = subject.holds.is_some() || subject.act == PlannedEffect::Replaces;
        let own = self.ends().filter(move |_| is_whole);
        own.chain(self.reads.iter().flat_map(|lead| &lead.ends)).filter_map(directory)
    }

    /// Returns true if this resource does not touch the other one in its purged directory: declared there by its path,
    /// and found there without a link.
    fn leaves(&self, other: &Self) -> bool {
        let is_below = |directory: &PathBuf| {
            other.subject.own.iter().all(|path| path.starts_with(directory))
                && other.ends().all(|end| end.is_straight)
        };
        self.subject.holds.as_ref().is_some_and(is_below)
    }
}

fn directory(end: &End) -> Option<Ground> {
    let thing = end.thing.filter(|thing| thing.is_directory)?;
    Some(Ground::There(thing.identity))
}

/// The planned changes by name, object and directory; the numbers are positions in `walked`.
struct ChangedPaths<'w> {
    walked: &'w [ResolvedPaths<'w>],
    /// Names that will lead to another object, or to none.
    names: HashMap<&'w Name, Vec<usize>>,
    /// Objects that will change.
    things: HashMap<(u64, u64), Vec<usize>>,
    /// Directories that will be removed, or whose content may change.
    grounds: HashMap<Ground, Vec<usize>>,
}

impl<'w> ChangedPaths<'w> {
    fn of(walked: &'w [ResolvedPaths<'w>]) -> Self {
        let (names, things) = (HashMap::new(), HashMap::new());
        let mut touched = Self { walked, names, things, grounds: HashMap::new() };
        for (at, one) in walked.iter().enumerate() {
            if one.subject.act == PlannedEffect::Nothing {
                continue;
            }
            for end in one.ends() {
                if let Some(thing) = end.thing {
                    note(&mut touched.things, thing.identity, at);
                }
                if one.replaces()
                    && let Some(name) = &end.name
                {
                    note(&mut touched.names, name, at);
                }
                if let Some(ground) = directory(end)
                    && one.changes_what_is_in_it()
                {
                    note(&mut touched.grounds, ground, at);
                }
            }
        }
        touched
    }

    /// Returns the vertices that change anything that the check of this resource reads.
    fn meets(&self, at: usize, one: &ResolvedPaths<'_>) -> BTreeSet<VertexId> {
        let mut met: BTreeSet<usize> = BTreeSet::new();
        let own = one.own.iter().map(|lead| (lead, true));
        for (lead, is_own) in own.chain(one.reads.iter().map(|lead| (lead, false))) {
            for name in &lead.names {
                let others = self.names.get(name).into_iter().flatten();
                met.extend(others.filter(|other| !self.is_mere_room(one, (lead, name), **other)));
            }
            for end in &lead.ends {
                let others = end.thing.and_then(|thing| self.things.get(&thing.identity));
                let is_room = !is_own && directory(end).is_some();
                met.extend(others.into_iter().flatten().filter(|other| {
                    // A reader of the content is not affected by the mode.
                    !is_room || self.get(**other).is_some_and(ResolvedPaths::changes_what_is_in_it)
                }));
                let others = end.above.iter().filter_map(|ground| self.grounds.get(ground));
                met.extend(others.flatten().filter(|other| {
                    self.get(**other).is_some_and(|other| other.replaces() || !other.leaves(one))
                }));
            }
        }
        met.remove(&at);
        met.into_iter().filter_map(|other| Some(self.get(other)?.subject.id)).collect()
    }

    fn get(&self, at: usize) -> Option<&ResolvedPaths<'w>> {
        self.walked.get(at)
    }

    /// Returns true if the other change only makes a directory on the missing path of a settled resource: a new
    /// directory is empty, so the path stays missing.
    fn is_mere_room(
        &self,
        one: &ResolvedPaths<'_>,
        (lead, name): (&Resolution, &Name),
        other: usize,
    ) -> bool {
        let after = self.get(other).map(|other| &other.subject.after);
        let is_beyond = matches!(name.0, Ground::Expected(_)) || lead.gap.as_ref() == Some(name);
        one.subject.is_settled
            && lead.gap.is_some()
            && is_beyond
            && after == Some(&PathAfter::Directory)
    }
}

/// Adds the vertices that change something in a directory whose whole content matters.
fn inside(walked: &[ResolvedPaths<'_>], met: &mut [BTreeSet<VertexId>]) {
    let mut whole: HashMap<Ground, Vec<usize>> = HashMap::new();
    for (at, one) in walked.iter().enumerate() {
        for ground in one.whole() {
            note(&mut whole, ground, at);
        }
    }
    for other in walked.iter().filter(|other| other.subject.act != PlannedEffect::Nothing) {
        let above = other.ends().flat_map(|end| &end.above);
        for at in above.filter_map(|ground| whole.get(ground)).flatten() {
            let (Some(one), Some(met)) = (walked.get(*at), met.get_mut(*at)) else { continue };
            // An object that is removed first was in the directory: a plan knows that (`Plan::objection`).
            let is_removed = other.subject.act == PlannedEffect::Replaces
                && other.subject.after == PathAfter::Nothing
                && one.subject.holds.is_none()
                && one.reads.is_empty();
            if one.subject.id != other.subject.id && !is_removed && !one.leaves(other) {
                met.insert(other.subject.id);
            }
        }
    }
}

/// Adds overlaps of removals: a removal is skipped while the graph declares its object under another path, so a change
/// of that path affects the removal.
fn spared(walked: &[ResolvedPaths<'_>], met: &mut [BTreeSet<VertexId>]) {
    if walked.iter().all(|one| !one.subject.removes) {
        return;
    }
    let (mut names, mut inside) = (HashMap::new(), HashMap::new());
    for (at, one) in walked.iter().enumerate().filter(|(_, one)| !one.subject.removes) {
        for end in one.ends() {
            if let Some(name) = &end.name {
                note(&mut names, name, at);
            }
            for ground in &end.above {
                note(&mut inside, *ground, at);
            }
        }
    }
    for (at, one) in walked.iter().enumerate().filter(|(_, one)| one.subject.removes) {
        let mut more = BTreeSet::new();
        for end in one.ends() {
            let same = end.name.as_ref().and_then(|name| names.get(name));
            let below = directory(end).and_then(|ground| inside.get(&ground));
            for holder in same.into_iter().chain(below).flatten() {
                more.extend(met.get(*holder).into_iter().flatten().copied());
            }
        }
        more.remove(&one.subject.id);
        if let Some(met) = met.get_mut(at) {
            met.extend(more);
        }
    }
}

fn note<K: Eq + Hash>(index: &mut HashMap<K, Vec<usize>>, key: K, at: usize) {
    let all = index.entry(key).or_default();
    if all.last() != Some(&at) {
        all.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn subject(id: u32, path: PathBuf, act: PlannedEffect, after: PathAfter) -> PlannedPath {
        PlannedPath {
            id: VertexId(id),
            act,
            own: vec![path],
            reads: Vec::new(),
            holds: None,
            after,
            is_settled: act == PlannedEffect::Nothing,
            removes: false,
        }
    }

    /// Creates directories `one` and `two` with a file `f` in each, and a link `l` to the first.
    fn host() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("f"), name).unwrap();
        }
        symlink("one", folder.path().join("l")).unwrap();
        folder
    }

    fn met(subjects: &[PlannedPath]) -> Vec<(u32, Vec<u32>)> {
        let numbers = |all: Vec<VertexId>| all.into_iter().map(|id| id.0).collect();
        find_overlaps(subjects).into_iter().map(|(id, others)| (id.0, numbers(others))).collect()
    }

    /// F-16: a write through a link that another resource redirects may hit the path of a third resource.
    #[test]
    fn a_link_that_is_turned_may_lead_to_what_another_declares() {
        let host = host();
        let path = |name: &str| host.path().join(name);
        let turned = PathAfter::Link("two".into());
        let subjects = [
            subject(0, path("l"), PlannedEffect::Replaces, turned),
            subject(1, path("l/f"), PlannedEffect::Unsure, PathAfter::Other),
            subject(2, path("two/f"), PlannedEffect::Nothing, PathAfter::Other),
            subject(3, path("one/g"), PlannedEffect::Nothing, PathAfter::Other),
        ];
        assert_eq!(met(&subjects), [(1, vec![0]), (2, vec![1])]);
    }

    /// F-16: two paths into a planned directory lead to one object.
    #[test]
    fn two_paths_into_what_is_to_be_made_meet() {
        let host = host();
        let path = |name: &str| host.path().join(name);
        symlink("new", path("k")).unwrap();
        let subjects = [
            subject(0, path("new"), PlannedEffect::Replaces, PathAfter::Directory),
            subject(1, path("new/deep"), PlannedEffect::Unsure, PathAfter::Directory),
            subject(2, path("new/deep/f"), PlannedEffect::Unsure, PathAfter::Other),
            subject(3, path("k/deep/f"), PlannedEffect::Nothing, PathAfter::Nothing),
            subject(4, path("new/deep/g"), PlannedEffect::Nothing, PathAfter::Nothing),
        ];
        assert_eq!(met(&subjects), [(1, vec![0]), (2, vec![0, 1]), (3, vec![2])]);
    }

    /// F-16: a new mode of a directory does not affect its content; a new mode of a file affects its other names.
    #[test]
    fn attributes_meet_at_one_thing_alone() {
        let host = host();
        let path = |name: &str| host.path().join(name);
        std::fs::hard_link(path("one/f"), path("two/g")).unwrap();
        let subjects = [
            subject(0, path("one"), PlannedEffect::Alters, PathAfter::Directory),
            subject(1, path("one/f"), PlannedEffect::Alters, PathAfter::Other),
            subject(2, path("two/g"), PlannedEffect::Nothing, PathAfter::Other),
            subject(3, path("two/f"), PlannedEffect::Nothing, PathAfter::Other),
        ];
        assert_eq!(met(&subjects), [(2, vec![1])]);
    }

    /// F-16: a purged directory leaves declared content alone, unless a link leads there.
    #[test]
    fn a_directory_step_overlaps_with_steps_through_a_link() {
        let host = host();
        let path = |name: &str| host.path().join(name);
        let holds =
            |subject: PlannedPath| PlannedPath { holds: subject.own.first().cloned(), ..subject };
        let subjects = [
            holds(subject(0, path("one"), PlannedEffect::Alters, PathAfter::Directory)),
            subject(1, path("one/f"), PlannedEffect::Replaces, PathAfter::Other),
            subject(2, path("l/g"), PlannedEffect::Replaces, PathAfter::Other),
        ];
        assert_eq!(met(&subjects), [(0, vec![2]), (2, vec![0])]);
    }

    /// F-16, B-16: a removal of an object that is declared through a link is unknown until that link has changed.
    #[test]
    fn a_removal_behind_a_link_is_unknown_until_the_link_changes() {
        let host = host();
        let path = |name: &str| host.path().join(name);
        let left = subject(2, path("one/f"), PlannedEffect::Nothing, PathAfter::Nothing);
        let subjects = [
            subject(0, path("l"), PlannedEffect::Replaces, PathAfter::Link("two".into())),
            subject(1, path("l/f"), PlannedEffect::Nothing, PathAfter::Other),
            PlannedPath { removes: true, ..left },
        ];
        assert_eq!(met(&subjects), [(1, vec![0]), (2, vec![0])]);
    }
}
