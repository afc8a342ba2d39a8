//! Automatic edges: from a resource that provides an object to one that needs it, unless an edge is declared. They
//! never close a cycle.

use super::Validator;
use super::edges::DraftEdge;
use crate::config::graph::acyclic::insert_acyclic;
use crate::config::graph::cycles::strongly_connected;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted, shorten};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use steadfast_resources::{Footprint, HostObject, Match, Need};

/// The key under which automatic edges are reported.
const KEY: &str = "automatic";

/// The number of skipped edges that are reported one by one; the others are counted.
const TOLD: usize = 20;

/// The objects that the resources provide. A path has one provider, because claims are exclusive.
#[derive(Default)]
struct Offers {
    paths: HashMap<Vec<u8>, usize>,
    /// The mount points. Every path at or below one needs the mount.
    mounts: HashMap<Vec<u8>, usize>,
    /// The files and folders that packages and users bring.
    brought: HashMap<Vec<u8>, Vec<usize>>,
    /// The repositories of packages: a package may come from any of them.
    repositories: Vec<usize>,
    others: HashMap<HostObject, Vec<usize>>,
    /// The paths again, ordered by their components; built at the first query for all paths below one.
    sorted: Option<BTreeMap<PathBuf, usize>>,
}

impl Offers {
    fn add(&mut self, token: HostObject, vertex: usize) {
        match token {
            HostObject::Path(path) => {
                self.paths.insert(path.into_os_string().into_encoded_bytes(), vertex);
            }
            HostObject::Mount(path) => {
                self.mounts.insert(path.into_os_string().into_encoded_bytes(), vertex);
            }
            HostObject::Brought(path) => {
                let path = path.into_os_string().into_encoded_bytes();
                self.brought.entry(path).or_default().push(vertex);
            }
            other => {
                if matches!(other, HostObject::Repository(_)) {
                    self.repositories.push(vertex);
                }
                self.others.entry(other).or_default().push(vertex);
            }
        }
    }

    /// Adds the vertices that serve a need of the vertex `asking` to a list.
    fn serve(&mut self, need: &Need, asking: usize, to: &mut Vec<usize>) {
        if let HostObject::Path(path) = &need.token
            && !self.mounts.is_empty()
        {
            // A mount needs the mount above it, and not itself.
            to.extend(nearest(&self.mounts, path, asking));
        }
        match (&need.token, need.scope) {
            (_, Match::EveryRepository) => to.extend(&self.repositories),
            (HostObject::Path(path), Match::Exact) => {
                to.extend(self.at(path.as_os_str().as_bytes()));
            }
            (HostObject::Path(path), Match::OrAbove) => {
                to.extend(nearest(&self.paths, path, asking));
            }
            (HostObject::Path(path), Match::AndBelow) => {
                let before = to.len();
                to.extend(self.at(path.as_os_str().as_bytes()));
                self.below(path, to);
                if to.len() == before {
                    to.extend(nearest(&self.paths, path, asking));
                }
            }
            (token, _) => to.extend(self.others.get(token).into_iter().flatten()),
        }
    }

    /// Adds the resources that bring a claimed path, or a folder above it. A repository comes before all packages.
    fn serve_claims(&self, footprint: &Footprint, to: &mut Vec<usize>) {
        let is_repository = |object: &HostObject| matches!(object, HostObject::Repository(_));
        if self.brought.is_empty() || footprint.provides.iter().any(is_repository) {
            return;
        }
        let paths = footprint.claims.iter().filter_map(|claim| match &claim.object {
            HostObject::Path(path) | HostObject::Content(path) => Some(path),
            _ => None,
        });
        for above in paths.flat_map(|path| path.ancestors()) {
            to.extend(self.brought.get(above.as_os_str().as_bytes()).into_iter().flatten());
        }
    }

    fn at(&self, path: &[u8]) -> Option<usize> {
        self.paths.get(path).copied()
    }

    fn below(&mut self, path: &Path, to: &mut Vec<usize>) {
        let paths = &self.paths;
        let sorted = self.sorted.get_or_insert_with(|| {
            let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
            paths.iter().map(|(bytes, vertex)| (path(bytes), *vertex)).collect()
        });
        let after = (Bound::Excluded(path), Bound::Unbounded);
        let below = sorted.range::<Path, _>(after).take_while(|(other, _)| other.starts_with(path));
        to.extend(below.map(|(_, vertex)| *vertex));
    }
}

/// Returns the provider of a path, or of the nearest path above it, besides the vertex `asking`. The paths are
/// normalized, so bytes are compared.
fn nearest(providers: &HashMap<Vec<u8>, usize>, path: &Path, asking: usize) -> Option<usize> {
    let mut path = path.as_os_str().as_bytes();
    while path.len() > 1 {
        if let Some(found) = providers.get(path).filter(|found| **found != asking) {
            return Some(*found);
        }
        let end = path.iter().rposition(|byte| *byte == b'/')?;
        path = path.get(..end)?;
    }
    None
}

impl Validator<'_> {
    /// Adds automatic edges to a sorted list of edges without cycles, and sorts the list again.
    pub(in crate::config) fn add_automatic_edges(&mut self, ties: &mut Vec<DraftEdge>) {
        let mut new = self.wanted();
        new.sort_by_key(|tie| (tie.from, tie.to));
        new.dedup_by_key(|tie| (tie.from, tie.to));
        let is_there = |tie: &DraftEdge| {
            ties.binary_search_by_key(&(tie.from, tie.to), |t| (t.from, t.to)).is_ok()
        };
        new.retain(|tie| !is_there(tie));
        if new.is_empty() {
            return;
        }
        let written = ties.len();
        ties.append(&mut new);
        ties.sort_by_key(|tie| (tie.from, tie.to));
        if let Some(knot_of) = strongly_connected(self.vertices.len(), ties) {
            self.leave_out(&knot_of, ties);
        }
        if ties.len() > written {
            let added: Vec<DraftEdge> =
                ties.iter().filter(|t| t.because.is_some()).copied().collect();
            self.record_origins(&added);
        }
    }

    /// Returns an edge for each need that a resource serves.
    fn wanted(&self) -> Vec<DraftEdge> {
        let part = || self.vertices.iter().enumerate().filter(|(_, vertex)| vertex.autoedge);
        let mut offers = Offers::default();
        for (number, vertex) in part() {
            let tokens = vertex.resource.iter().flat_map(|resource| resource.footprint().provides);
            tokens.for_each(|token| offers.add(token, number));
        }
        let (mut ties, mut serving) = (Vec::new(), Vec::new());
        for (to, vertex) in part() {
            let footprint = vertex.resource.as_ref().map(|it| it.footprint()).unwrap_or_default();
            offers.serve_claims(&footprint, &mut serving);
            let tie = |from: usize, because: &'static str| {
                let because = Some(because);
                DraftEdge { from, to, notify: false, key: KEY, because, at: vertex.at }
            };
            let others = serving.drain(..).filter(|from| *from != to);
            ties.extend(others.map(|from| tie(from, "brings the path")));
            let own = footprint.requires.into_iter();
            let received = vertex.recipe.iter().flat_map(|recipe| recipe.needs());
            for need in own.chain(received) {
                offers.serve(&need, to, &mut serving);
                let others = serving.drain(..).filter(|from| *from != to);
                ties.extend(others.map(|from| tie(from, need.because)));
            }
        }
        ties
    }

    /// Removes, one by one, the automatic edges that would close a cycle, and reports them.
    fn leave_out(&mut self, knot_of: &[usize], ties: &mut Vec<DraftEdge>) {
        let is_inside = |tie: &DraftEdge| knot_of.get(tie.from) == knot_of.get(tie.to);
        // Only vertices of cyclic components matter; they get their own numbers.
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let (mut there, mut wanted) = (Vec::new(), Vec::new());
        for tie in ties.iter().filter(|tie| is_inside(tie)) {
            let [from, to] = [tie.from, tie.to].map(|vertex| {
                let next = numbers.len();
                *numbers.entry(vertex).or_insert(next)
            });
            if tie.because.is_none() { &mut there } else { &mut wanted }.push((from, to));
        }
        let mut taken = insert_acyclic(numbers.len(), &there, &wanted).taken.into_iter();
        let mut is_left_out = |tie: &DraftEdge| {
            tie.because.is_some() && is_inside(tie) && taken.next().is_some_and(|taken| !taken)
        };
        let left_out: Vec<DraftEdge> = ties.extract_if(.., |tie| is_left_out(tie)).collect();
        for tie in left_out.iter().take(TOLD) {
            self.warn_of(tie);
        }
        if let Some(next) = left_out.get(TOLD) {
            let more = left_out.len() - TOLD;
            let what =
                format!("{more} more automatic edges were omitted because they would close cycles");
            let hint = "`steadfast plan --explain-edges` shows the origin of each edge";
            let problem = Problem::new(Code::Automatic, what).warning().hint(hint);
            self.problems.push(problem.at(self.atlas.place(next.at)));
        }
    }

    fn warn_of(&mut self, tie: &DraftEdge) {
        let name = |vertex: usize| {
            let vertex = self.vertices.get(vertex);
            vertex.map_or_else(String::new, |v| quoted(&shorten(&v.identity, 30)))
        };
        let (from, to) = (name(tie.from), name(tie.to));
        let what = format!("`{from}` waits for `{to}`: the opposite automatic edge was omitted");
        let because = tie.because.unwrap_or_default();
        let hint = format!(
            "`{to}` needs `{from}` ({because}); reverse the other edges, or set meta: {{ autoedge: false }}"
        );
        let problem = Problem::new(Code::Automatic, what).warning().hint(hint);
        self.problems.push(problem.at(self.atlas.place(tie.at)));
    }
}
