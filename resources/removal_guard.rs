//! A guard for removals: spares an object that the graph still declares under another path (B-16).
//!
//! Two paths are the same object if device, inode and last name are equal. Only the host knows that, so the
//! check of the removal, which has its own thread, compares them, and not the loader of the graph.

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::claim::Claim;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{DirectoryIds, Mounts};
use crate::permit::Permit;
use crate::resource::{ExecutorKind, Resource, Traits};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The paths that the resources of a graph declare.
#[derive(Debug)]
pub struct DeclaredPaths {
    resources: Vec<(Arc<str>, Arc<dyn Resource>)>,
    /// The index by names, built on first use.
    index: OnceLock<Index>,
}

/// The declared paths, each with the position of its resource.
#[derive(Debug, Default)]
struct Index {
    /// The paths by their last names.
    names: HashMap<OsString, Vec<(PathBuf, usize)>>,
    /// Directories that are declared with everything in them.
    trees: Vec<(PathBuf, usize)>,
}

/// An overlap between a removal and the declared paths.
enum Meeting {
    /// The graph declares the object itself, or a directory tree that contains the object.
    Thing(String),
    /// The graph declares something below the object.
    Inside(Failure),
    /// The comparison was cancelled.
    CutOff,
}

impl DeclaredPaths {
    /// Collects the declared paths of these resources, given by identity.
    #[must_use]
    pub fn by(resources: Vec<(Arc<str>, Arc<dyn Resource>)>) -> Self {
        let creating = resources.into_iter().filter(|(_, resource)| resource.footprint().creates());
        Self { resources: creating.collect(), index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::default();
            for (number, (_, resource)) in self.resources.iter().enumerate() {
                let footprint = resource.footprint();
                for path in footprint.claimed_paths().map(Path::to_owned) {
                    let name = path.file_name().unwrap_or_default().to_owned();
                    index.names.entry(name).or_default().push((path, number));
                }
                index.trees.extend(footprint.purge_root.map(|path| (path, number)));
            }
            index
        })
    }

    fn name(&self, number: usize) -> &str {
        self.resources.get(number).map_or("", |(identity, _)| identity)
    }

    /// Returns the overlap for an object that another resource now declares under another path.
    fn same(&self, number: usize, other: &Path) -> Meeting {
        let (holder, other) = (self.name(number), other.display());
        Meeting::Thing(format!("undeclared; {holder} now manages the same object as {other}"))
    }

    /// Returns the overlap of a path with the declared paths. A path that cannot be examined counts as absent.
    fn meet(&self, path: &Path, cancel: &CancellationToken) -> Option<Meeting> {
        let (parent, index) = (path.parent()?, self.index());
        let mut ways = DirectoryIds::default();
        let place = ways.to(parent)?;
        let last = path.file_name().unwrap_or_else(|| OsStr::new(""));
        for (other, number) in index.names.get(last).into_iter().flatten() {
            if other.parent().and_then(|parent| ways.to(parent)) == Some(place) {
                return Some(self.same(*number, other));
            }
        }
        let (mut mounts, own) = (Mounts::read(), DirectoryIds::itself(path));
        // Only a file system with several mounts offers another way to the path.
        let place = mounts.thing(path).filter(|place| mounts.are_several_of(place));
        for (tree, number) in &index.trees {
            let above = ways.to(tree).is_some_and(|tree| ways.above(parent).contains(&tree));
            let mut is_there = || {
                let place = place.as_ref()?;
                Some(place.is_in(mounts.directory(tree)?))
            };
            if above || is_there().unwrap_or_default() {
                let (holder, tree) = (self.name(*number), tree.display());
                let says =
                    format!("undeclared; {holder} now manages the object as a part of {tree}");
                return Some(Meeting::Thing(says));
            }
        }
        if own.is_none() && place.is_none() {
            // An object that is no directory, in a file system with one mount, is reachable by its own path alone.
            return None;
        }
        for (other, number) in index.names.values().flatten() {
            if cancel.is_cancelled() {
                return Some(Meeting::CutOff);
            }
            let Some(parent) = other.parent() else { continue };
            let there = place.as_ref().and_then(|place| Some((place, mounts.thing(other)?)));
            if there.as_ref().is_some_and(|(place, there)| *place == there) {
                return Some(self.same(*number, other));
            }
            let is_there = there.is_some_and(|(place, there)| there.is_in(place));
            if is_there || own.as_ref().is_some_and(|own| ways.above(parent).contains(own)) {
                let what = format!("not removed: {} lies in the directory", self.name(*number));
                let hint = format!(
                    "the object exists as {}; declare that resource elsewhere, or `steadfast forget` the removed one",
                    other.display()
                );
                return Some(Meeting::Inside(Failure::new(what).hint(hint)));
            }
        }
        None
    }
}

/// Returns the paths that a resource claims.
fn paths(resource: &dyn Resource) -> impl Iterator<Item = PathBuf> {
    resource.footprint().claims.into_iter().filter_map(Claim::into_path)
}

/// Wraps a removal so that it spares the declared paths. A removal without paths or without its own thread
/// stays as it is.
#[must_use]
pub fn guard_removal(removal: Arc<dyn Resource>, held: &Arc<DeclaredPaths>) -> Arc<dyn Resource> {
    let paths: Vec<PathBuf> = paths(removal.as_ref()).collect();
    if paths.is_empty() || removal.traits().executor != ExecutorKind::Thread {
        return removal;
    }
    Arc::new(Departing { removal, paths, held: Arc::clone(held), spared: Mutex::default() })
}

#[derive(Debug)]
struct Departing {
    removal: Arc<dyn Resource>,
    /// The paths that the removal claims.
    paths: Vec<PathBuf>,
    held: Arc<DeclaredPaths>,
    /// The reason for sparing the object, from the last check.
    spared: Mutex<Option<String>>,
}

impl Departing {
    /// Returns the first overlap of the removal's paths with the declared paths.
    fn meet(&self, cancel: &CancellationToken) -> Option<Meeting> {
        self.paths.iter().find_map(|path| self.held.meet(path, cancel))
    }

    fn spare(&self, why: Option<String>) {
        *self.spared.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

impl Resource for Departing {
    fn footprint(&self) -> Footprint {
        self.removal.footprint()
    }

    fn traits(&self) -> Traits {
        self.removal.traits()
    }

    fn left_alone_reason(&self) -> Option<String> {
        self.spared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let met = self.meet(&ask.cancel);
            self.spare(None);
            match met {
                None => self.removal.check(host, ask).await,
                Some(Meeting::Thing(why)) => {
                    self.spare(Some(why));
                    CheckResult::Same
                }
                Some(Meeting::Inside(failure)) => CheckResult::Unknown(failure),
                Some(Meeting::CutOff) => {
                    CheckResult::Unknown(Failure::new("the run was interrupted"))
                }
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            // A link may have been made since the check.
            let failure = match self.meet(&CancellationToken::new()) {
                None => return self.removal.apply(host, permit, change).await,
                Some(Meeting::Inside(failure)) => failure,
                Some(Meeting::Thing(why)) => Failure::new(why),
                Some(Meeting::CutOff) => Failure::new("the run was interrupted"),
            };
            Outcome::Failed { failure, touched: false }
        })
    }
}
