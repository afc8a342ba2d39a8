//! Where a path leads, name by name, links followed; and where it may lead once what is expected on its way has come.

use super::directory_identity::Directory;
use crate::host::kernel::{readlinkat, statat};
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// As many links as the kernel follows.
const LINKS_AT_MOST: usize = 40;

/// So many ways that a path may take are followed; each thing that is expected on it makes at most one more of each.
const BRANCHES_AT_MOST: usize = 64;

/// A directory that is there, whatever it is called, or one that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ground {
    /// Its device and inode.
    There(Directory),
    /// The number under which it is expected.
    Expected(usize),
}

/// A name in a directory.
pub type Name = (Ground, OsString);

/// What may come to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coming {
    /// A directory with nothing in it.
    Directory,
    /// A link with this target.
    Link(PathBuf),
}

/// Where a path leads.
#[derive(Debug, Default)]
pub struct Resolution {
    /// All names that are looked up on its way, those that links bring too.
    pub names: Vec<Name>,
    /// What may be at its end: one, unless something is expected on its way.
    pub ends: Vec<End>,
    /// The name at which its way ends before its last one, as things are now.
    pub gap: Option<Name>,
}

/// An end of a path.
#[derive(Debug)]
pub struct End {
    /// Its last name; none for the root.
    pub name: Option<Name>,
    /// The directories that it lies in, up to the root.
    pub above: Vec<Ground>,
    /// What is there now.
    pub thing: Option<Thing>,
    /// No link has led there.
    pub is_straight: bool,
}

/// What is at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thing {
    /// Device and inode.
    pub identity: (u64, u64),
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What was looked up, each name once, and what is expected.
#[derive(Debug, Default)]
pub struct Resolver {
    seen: HashMap<Name, Found>,
    expected: HashMap<Name, Vec<Coming>>,
    /// The numbers of the directories that are expected.
    numbers: HashMap<Name, usize>,
}

#[derive(Clone, Debug)]
enum Found {
    Nothing,
    Link(PathBuf),
    Thing(Thing),
}

/// A directory on the way.
#[derive(Debug)]
struct Passed {
    ground: Ground,
    /// Its path without links; none where nothing is there yet.
    path: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Branch {
    /// From the root down.
    passed: Vec<Arc<Passed>>,
    left: VecDeque<OsString>,
    links: usize,
    /// Nothing that is only expected is on it.
    is_present: bool,
}

impl Resolver {
    /// From now on this may come to that name; whether that is new.
    pub fn expect(&mut self, name: &Name, coming: Coming) -> bool {
        let number = self.numbers.len();
        if coming == Coming::Directory {
            self.numbers.entry(name.clone()).or_insert(number);
        }
        let all = self.expected.entry(name.clone()).or_default();
        let is_new = !all.contains(&coming);
        if is_new {
            all.push(coming);
        }
        is_new
    }

    /// Where an absolute path leads; its last name is followed where that is wanted.
    pub fn of(&mut self, path: &Path, follow: bool) -> Resolution {
        let mut lead = Resolution::default();
        let Some(root) = root() else { return lead };
        let left = path.components().filter_map(part).collect();
        let mut branches = vec![Branch { passed: vec![root], left, links: 0, is_present: true }];
        let mut begun = 1;
        while let Some(branch) = branches.pop() {
            let before = branches.len();
            self.follow(branch, follow, &mut lead, &mut branches);
            branches.truncate(before + BRANCHES_AT_MOST.saturating_sub(begun));
            begun += branches.len() - before;
        }
        lead
    }

    /// Follows one branch to its end, and puts others beside it.
    fn follow(
        &mut self,
        mut branch: Branch,
        follow: bool,
        lead: &mut Resolution,
        others: &mut Vec<Branch>,
    ) {
        while let Some(part) = branch.left.pop_front() {
            if part == ".." {
                branch.passed.truncate((branch.passed.len() - 1).max(1));
                continue;
            }
            let Some(here) = branch.passed.last().map(Arc::clone) else { return };
            let name = (here.ground, part);
            lead.names.push(name.clone());
            let ends = branch.left.is_empty();
            let goes_on = !ends || follow;
            if goes_on {
                others.extend(self.others(&branch, &name));
            }
            match self.look(&here, &name) {
                Found::Link(target) if goes_on => {
                    let Some(next) = branch.through(&target) else { return };
                    branch = next;
                }
                Found::Thing(thing) if thing.is_directory && !ends => {
                    let path = here.path.as_ref().map(|path| path.join(&name.1));
                    branch.pass(Ground::There(thing.identity), path);
                }
                Found::Nothing | Found::Thing(_) | Found::Link(_) if !ends => {
                    if branch.is_present {
                        lead.gap = Some(name);
                    }
                    return;
                }
                found => {
                    let thing = found.thing();
                    return lead.ends.push(branch.end(Some(name), thing));
                }
            }
        }
        let Some(last) = branch.passed.pop() else { return };
        let thing = match last.ground {
            Ground::There(identity) => Some(Thing { identity, is_directory: true }),
            Ground::Expected(_) => None,
        };
        lead.ends.push(branch.end(None, thing));
    }

    /// The same branch with what is expected at this name instead of what is there.
    fn others(&self, branch: &Branch, name: &Name) -> Vec<Branch> {
        let all = self.expected.get(name).into_iter().flatten();
        let with = |coming: &Coming| match coming {
            Coming::Link(target) => branch.through(target).map(|mut other| {
                other.is_present = false;
                other
            }),
            Coming::Directory => {
                let mut other = Branch { is_present: false, ..branch.clone() };
                other.pass(Ground::Expected(*self.numbers.get(name)?), None);
                Some(other)
            }
        };
        all.filter_map(with).collect()
    }

    fn look(&mut self, here: &Passed, name: &Name) -> Found {
        if let Some(known) = self.seen.get(name) {
            return known.clone();
        }
        let path = here.path.as_ref().map(|path| path.join(&name.1));
        let found = path.map_or(Found::Nothing, |path| look(&path));
        self.seen.insert(name.clone(), found.clone());
        found
    }
}

impl Found {
    fn thing(&self) -> Option<Thing> {
        match self {
            Self::Thing(thing) => Some(*thing),
            Self::Nothing | Self::Link(_) => None,
        }
    }
}

impl Branch {
    fn pass(&mut self, ground: Ground, path: Option<PathBuf>) {
        self.passed.push(Arc::new(Passed { ground, path }));
    }

    /// The same, led on by a link; none where it was led too often.
    fn through(&self, target: &Path) -> Option<Self> {
        let mut next = self.clone();
        next.links += 1;
        if target.is_absolute() {
            next.passed.truncate(1);
        }
        let parts: Vec<OsString> = target.components().filter_map(part).collect();
        for part in parts.into_iter().rev() {
            next.left.push_front(part);
        }
        (next.links <= LINKS_AT_MOST).then_some(next)
    }

    fn end(&self, name: Option<Name>, thing: Option<Thing>) -> End {
        let above = self.passed.iter().map(|passed| passed.ground).collect();
        End { name, above, thing, is_straight: self.links == 0 }
    }
}

fn root() -> Option<Arc<Passed>> {
    let stat = statat(CWD, "/", AtFlags::empty()).ok()?;
    let ground = Ground::There((stat.st_dev, stat.st_ino));
    Some(Arc::new(Passed { ground, path: Some("/".into()) }))
}

fn part(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }
}

/// What is at a path, its last name not followed; what cannot be looked at is not there, as far as this can tell.
fn look(path: &Path) -> Found {
    let Ok(stat) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return Found::Nothing };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        let text = readlinkat(CWD, path, Vec::new());
        let target = |text: std::ffi::CString| OsString::from_vec(text.into_bytes()).into();
        // It is a link no more.
        return text.map_or(Found::Nothing, |text| Found::Link(target(text)));
    }
    let identity = (stat.st_dev, stat.st_ino);
    Found::Thing(Thing { identity, is_directory: kind == FileType::Directory })
}
