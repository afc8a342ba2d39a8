//! Claims: no two resources write one object, except with shared claims. A resource that purges a directory receives
//! the claims of others below it, and a resource below a directory that another one closes to other users receives
//! this directory, as parts of their definitions.

use super::Validator;
use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::location::Location;
use crate::config::problem::{Problem, quoted};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{Claim, ClosedDirectory, Footprint, HostObject, PathAfter};

/// The roles of a resource for the paths of other resources. They are stored, since a footprint is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::config) struct PathRoles {
    /// The path is a regular file after an apply.
    pub(in crate::config) is_file: bool,
    /// The resource manages the content of a directory.
    manages_content: bool,
    /// The resource closes a directory to other users.
    closes_directory: bool,
}

impl PathRoles {
    /// Returns the roles in a footprint.
    pub(super) fn of(footprint: &Footprint) -> Self {
        Self {
            is_file: footprint.path_after_apply == PathAfter::File,
            manages_content: footprint.purge_root.is_some() || footprint.spares_below.is_some(),
            closes_directory: footprint.closed_directory.is_some(),
        }
    }
}

impl Validator<'_> {
    /// Records the claims of a resource, and reports each object that another resource claims exclusively.
    pub(super) fn claim(
        &mut self,
        claims: Vec<Claim>,
        vertex: usize,
        identity: &str,
        at: Location,
    ) {
        for claim in claims {
            let is_exclusive = claim.is_exclusive();
            match claim.object {
                // An exclusive content belongs to an exclusive path: only shared contents need a comparison.
                HostObject::Content(_) if is_exclusive => {}
                object if !is_exclusive => self.shared.push((object, vertex)),
                object => {
                    if !object.includers().is_empty() {
                        self.shared.push((object.clone(), vertex));
                    }
                    let name = object.to_string();
                    let holder = self.claims.insert(object, vertex);
                    if let Some(holder) = holder.filter(|holder| *holder != vertex) {
                        self.report_claim(&name, holder, (identity, at));
                    }
                }
            }
        }
    }

    /// Returns the claimed object for which a collected resource contradicts the resources before it. Another host
    /// chose it, so the resource is left out: a graph that is rejected would hold nothing any more.
    pub(super) fn contradiction(&self, claims: &[Claim]) -> Option<String> {
        let is_claimed = |object: &HostObject| self.claims.contains_key(object);
        let is_edited = |path: &PathBuf| {
            let same = |(object, _): &(HostObject, usize)| matches!(object, HostObject::Content(it) if it == path);
            self.shared.iter().any(same)
        };
        let found = claims.iter().find(|claim| {
            let is_taken = match (&claim.object, claim.is_exclusive()) {
                (HostObject::Content(path), true) => is_edited(path),
                (HostObject::Content(path), false) => self.writes_content(path),
                (HostObject::Path(path), true) => is_claimed(&claim.object) || self.is_nested(path),
                (object, _) => is_claimed(object),
            };
            is_taken || claim.object.includers().iter().any(is_claimed)
        });
        found.map(|claim| claim.object.to_string())
    }

    /// Returns true if a resource determines all bytes of the file.
    fn writes_content(&self, path: &Path) -> bool {
        let holder = self.claims.get(&HostObject::Path(path.to_owned()));
        let resource = holder.and_then(|holder| self.vertices.get(*holder)?.resource.as_ref());
        resource.is_some_and(|resource| {
            let is_own = |claim: &Claim| {
                claim.is_exclusive()
                    && matches!(&claim.object, HostObject::Content(it) if it == path)
            };
            resource.footprint().claims.iter().any(is_own)
        })
    }

    /// Returns true if the path lies below a declared file, or above a declared path.
    fn is_nested(&self, path: &Path) -> bool {
        let is_file = |above: &Path| {
            let holder = self.claims.get(&HostObject::Path(above.to_owned()));
            holder.and_then(|holder| self.vertices.get(*holder)).is_some_and(|it| it.roles.is_file)
        };
        let is_below = |object: &HostObject| matches!(object, HostObject::Path(other) if other != path && other.starts_with(path));
        path.ancestors().skip(1).any(is_file) || self.claims.keys().any(is_below)
    }

    /// Reports each shared claim, and each membership, that an exclusive claim of another resource contradicts.
    pub(in crate::config) fn check_shared_claims(&mut self) {
        let shared = std::mem::take(&mut self.shared);
        let mut contradictions = Vec::new();
        let has_contents =
            shared.iter().any(|(object, _)| matches!(object, HostObject::Content(_)));
        let contents = if has_contents { self.exclusive_contents() } else { HashMap::new() };
        for (object, vertex) in &shared {
            let above = object.includers();
            let exact = match object {
                HostObject::Content(path) => contents.get(path).copied(),
                // Two exclusive claims on an included object are already reported.
                _ if !above.is_empty() => None,
                other => self.claims.get(other).copied(),
            };
            let above = above.iter().filter_map(|includer| self.claims.get(includer).copied());
            let holders = exact.into_iter().chain(above);
            for holder in holders.filter(|holder| holder != vertex) {
                contradictions.push((holder, *vertex, object.to_string()));
            }
        }
        self.edited = shared.into_iter().filter_map(edited_path).collect();
        contradictions.sort();
        contradictions.dedup();
        for (holder, vertex, name) in contradictions {
            let Some((identity, at)) = self.declaration(vertex) else { continue };
            self.report_claim(&name, holder, (&identity, at));
        }
    }

    /// Returns the vertices that determine all bytes of a file, by path.
    fn exclusive_contents(&self) -> HashMap<PathBuf, usize> {
        let mut contents = HashMap::new();
        for (number, vertex) in self.vertices.iter().enumerate() {
            let Some(resource) = &vertex.resource else { continue };
            for claim in resource.footprint().claims.into_iter().filter(Claim::is_exclusive) {
                if let HostObject::Content(path) = claim.object {
                    contents.insert(path, number);
                }
            }
        }
        contents
    }

    fn report_claim(&mut self, object: &str, holder: usize, (identity, at): (&str, Location)) {
        let Some((holder, first)) = self.declaration(holder) else { return };
        let both = format!("`{}` and `{}`", quoted(&holder), quoted(identity));
        let problem = Problem::new(Code::Claim, format!("{} is claimed twice", quoted(object)))
            .hint(format!("{both} would both manage this object; keep one of them"))
            .at(self.atlas.labelled(at, "claimed again here"))
            .at(self.atlas.labelled(first, "first claimed here"));
        self.problems.push(problem);
    }

    /// Returns the identity and the place of a vertex or an inactive resource.
    fn declaration(&self, number: usize) -> Option<(Arc<str>, Location)> {
        match number.checked_sub(super::inactive::FIRST) {
            None => self.vertices.get(number).map(|it| (Arc::clone(&it.identity), it.at)),
            Some(number) => self.inactive.get(number).map(super::inactive::DraftInactive::named),
        }
    }

    /// Passes to each resource that manages the content of a directory the claims of others below that directory.
    pub(in crate::config) fn share_claims(&mut self) {
        let managed = |vertex: usize| {
            let candidate = self.vertices.get(vertex).filter(|it| it.roles.manages_content)?;
            let footprint = candidate.resource.as_ref()?.footprint();
            footprint.purge_root.or(footprint.spares_below)
        };
        let minding: Vec<(usize, PathBuf)> = (0..self.vertices.len())
            .filter_map(|vertex| Some((vertex, managed(vertex)?)))
            .collect();
        if minding.is_empty() {
            return;
        }
        // Paths are ordered by their components, so that all paths below one follow it. Rule 12 of the language: a
        // purge spares the paths of inactive resources, because no automatic change may delete.
        let edited =
            self.edited.iter().chain(&self.spared).map(|(path, holder)| (path.as_path(), *holder));
        let claimed: BTreeMap<&Path, usize> = edited
            .chain(self.claims.iter().filter_map(|(object, holder)| match object {
                HostObject::Path(path) => Some((path.as_path(), *holder)),
                _ => None,
            }))
            .collect();
        for (vertex, directory) in minding {
            let below = (Bound::Excluded(directory.as_path()), Bound::Unbounded);
            let others: Vec<PathBuf> = claimed
                .range::<Path, _>(below)
                .take_while(|(path, _)| path.starts_with(&directory))
                .filter(|(_, holder)| **holder != vertex)
                .map(|(path, _)| (*path).to_owned())
                .collect();
            let Some(candidate) = self.vertices.get_mut(vertex) else { continue };
            let Some(resource) = candidate.resource.as_ref().filter(|_| !others.is_empty()) else {
                continue;
            };
            let hash = Stable::new().number(candidate.definition);
            let told = others.iter().fold(hash, |hash, path| hash.text(&path.to_string_lossy()));
            if let Some(resource) = resource.with_claims(others) {
                candidate.resource = Some(resource);
                candidate.definition = told.finish();
            }
        }
    }

    /// Passes to each edit of a file the owner that another resource declares for the file.
    pub(in crate::config) fn share_file_owners(&mut self) {
        let owner_of = |path: &PathBuf| {
            let holder = *self.claims.get(&HostObject::Path(path.clone()))?;
            let candidate = self.vertices.get(holder).filter(|it| it.roles.is_file)?;
            candidate.resource.as_ref()?.footprint().file_owner
        };
        let owned: Vec<(usize, String)> = self
            .edited
            .iter()
            .filter_map(|(path, editor)| Some((*editor, owner_of(path)?)))
            .collect();
        for (vertex, owner) in owned {
            let Some(candidate) = self.vertices.get_mut(vertex) else { continue };
            let resource = candidate.resource.as_ref();
            if let Some(resource) = resource.and_then(|one| one.with_file_owner(&owner)) {
                candidate.resource = Some(resource);
                candidate.definition =
                    Stable::new().number(candidate.definition).text(&owner).finish();
            }
        }
    }

    /// Passes to each resource the innermost directory above its path that another resource closes to other users.
    pub(in crate::config) fn share_closed_directories(&mut self) {
        let directory_of = |candidate: &super::DraftVertex| {
            let resource = candidate.resource.as_ref().filter(|_| candidate.roles.closes_directory);
            resource?.footprint().closed_directory
        };
        let closed: BTreeMap<PathBuf, ClosedDirectory> = self
            .vertices
            .iter()
            .filter_map(directory_of)
            .map(|one| (one.path.clone(), one))
            .collect();
        if closed.is_empty() {
            return;
        }
        let mut below = Vec::new();
        for (claim, holder) in &self.claims {
            let HostObject::Path(path) = claim else { continue };
            let above = path.ancestors().skip(1).find_map(|above| closed.get(above));
            below.extend(above.map(|above| (*holder, above.clone())));
        }
        for (vertex, directory) in below {
            let Some(candidate) = self.vertices.get_mut(vertex) else { continue };
            let hash = Stable::new().number(candidate.definition);
            let hash = hash.text(&directory.path.to_string_lossy());
            let hash = hash.text(directory.owner.as_deref().unwrap_or_default());
            let resource = candidate.resource.as_ref();
            if let Some(resource) = resource.and_then(|one| one.with_closed_directory(directory)) {
                candidate.resource = Some(resource);
                candidate.definition = hash.finish();
            }
        }
    }
}

/// Returns the path of a file whose content is shared.
fn edited_path((object, vertex): (HostObject, usize)) -> Option<(PathBuf, usize)> {
    match object {
        HostObject::Content(path) => Some((path, vertex)),
        _ => None,
    }
}
