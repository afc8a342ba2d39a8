//! Resolves paths name by name with links followed, also through objects that a plan expects to appear.

use crate::host::files::paths::directory_identity::Directory;
use crate::host::kernel::{readlinkat, statat};
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The limit of followed links, equal to the kernel's limit.
const LINKS_AT_MOST: usize = 40;

/// The limit of followed branches; each expected object on a path adds at most one alternative to each
/// branch.
const BRANCHES_AT_MOST: usize = 64;

/// A directory that exists, under any name, or that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ground {
    /// The device and inode of an existing directory.
    There(Directory),
    /// The number of an expected directory.
    Expected(usize),
}

/// A name in a directory.
pub type Name = (Ground, OsString);

/// An object that is expected at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coming {
    /// An empty directory.
    Directory,
    /// A symbolic link with this target.
    Link(PathBuf),
}

/// The result of resolving a path.
#[derive(Debug, Default)]
pub struct Resolution {
    /// All names that are looked up on the way, including those in link targets.
    pub names: Vec<Name>,
    /// The possible ends: exactly one, unless an object is expected on the way.
    pub ends: Vec<End>,
    /// The name at which the path presently ends before its last part.
    pub gap: Option<Name>,
}

/// A possible end of a path.
#[derive(Debug)]
pub struct End {
    /// The last name; none for the root.
    pub name: Option<Name>,
    /// The directories above, up to the root.
    pub above: Vec<Ground>,
    /// The present object.
    pub thing: Option<Thing>,
    /// No link was followed on the way.
    pub is_straight: bool,
}

/// The object at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thing {
    /// The device and inode.
    pub identity: (u64, u64),
    /// True for a directory.
    pub is_directory: bool,
}

/// A cache of looked-up names, with the expected objects.
#[derive(Debug, Default)]
pub struct Resolver {
    seen: HashMap<Name, Found>,
    expected: HashMap<Name, Vec<Coming>>,
    /// The numbers of the expected directories.
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
    /// The path without links; none if the directory does not exist yet.
    path: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Branch {
    /// The directories from the root down.
    passed: Vec<Arc<Passed>>,
    left: VecDeque<OsString>,
    links: usize,
    /// The branch contains no expected object.
    is_present: bool,
}

impl Resolver {
    /// Adds an object that is expected at a name; returns true if this is new.
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

    /// Resolves an absolute path; `follow` decides whether a link as the last part is followed.
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

    /// Follows one branch to its end, and queues the alternatives.
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

    /// Returns the branches in which an expected object replaces the present one at this name.
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

    /// Continues the branch through a link; none if too many links were followed.
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

/// Examines a path without following its last part; an object that cannot be examined counts as absent.
fn look(path: &Path) -> Found {
    let Ok(stat) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return Found::Nothing };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        let text = readlinkat(CWD, path, Vec::new());
        let target = |text: std::ffi::CString| OsString::from_vec(text.into_bytes()).into();
        // The object is no link any more.
        return text.map_or(Found::Nothing, |text| Found::Link(target(text)));
    }
    let identity = (stat.st_dev, stat.st_ino);
    Found::Thing(Thing { identity, is_directory: kind == FileType::Directory })
}
