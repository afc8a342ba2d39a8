//! Edges: the resolution of written names to vertices.

use super::Validator;
use super::edge_sets::{Declared, Side};
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted};
use crate::config::read::foreign_words::kind_for;
use crate::config::{Origin, ast};
use crate::nearest_name::nearest;
use steadfast_resources::{Claim, HostObject, ResourceId};

/// An edge between vertices, with its position in a file.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct DraftEdge {
    pub(in crate::config) from: usize,
    pub(in crate::config) to: usize,
    pub(in crate::config) notify: bool,
    /// The key that declares the edge.
    pub(in crate::config) key: &'static str,
    /// The reason of an automatic edge.
    pub(in crate::config) because: Option<&'static str>,
    pub(in crate::config) at: Location,
}

/// The number of unknown names that get a suggestion; each costs a comparison with all names.
const SUGGESTIONS: usize = 50;

/// Returns the service of the same unit: `svc[nginx]` and `svc[nginx.service]` are one.
fn same_unit<'a>(target: &str, mut all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unit = |text: &str| Some(text.strip_prefix("svc[")?.strip_suffix(']')?.to_owned());
    let short =
        |name: String| name.strip_suffix(".service").map_or_else(|| name.clone(), str::to_owned);
    let wanted = unit(target).map(short)?;
    all.find(|other| unit(other).map(short).is_some_and(|other| other == wanted))
}

impl Validator<'_> {
    /// Adds the short edges of a vertex.
    pub(in crate::config) fn short_edges(
        &mut self,
        vertex: usize,
        links: &[ast::Link],
        file: usize,
        index: usize,
    ) {
        for (number, link) in links.iter().enumerate() {
            let at = Location { file, part: Element::Link(index, number) };
            let others = self.find_targets(&link.target, at);
            let (notify, key) = (link.relation.notifies(), link.relation.key());
            let declared = Declared { notify, key, at };
            self.connect(&[vertex], &others, (Side::of(link.relation), declared));
        }
    }

    /// Adds the entries of `edges`.
    pub(in crate::config) fn long_edges(&mut self, edges: &[ast::Edge], file: usize) {
        for (index, edge) in edges.iter().enumerate() {
            let mut end = |end: &ast::End, part| {
                let target = format!("{}[{}]", end.kind, end.name);
                self.find_targets(&target, Location { file, part })
            };
            let from = end(&edge.from, Element::From(index));
            let to = end(&edge.to, Element::To(index));
            let at = Location { file, part: Element::From(index) };
            let declared = Declared { notify: edge.notify, key: "edges", at };
            // The larger set is the one that a barrier stands for.
            if from.members.len() < to.members.len() {
                self.connect(&from.members, &to, (Side::After, declared));
            } else {
                self.connect(&to.members, &from, (Side::Before, declared));
            }
        }
    }

    /// Returns the vertex of a name; reports an unknown name.
    pub(in crate::config) fn find(&mut self, target: &str, at: Location) -> Option<usize> {
        if let Some(found) = self.numbers.get(target).copied() {
            return self.check_export(target, at).then_some(found);
        }
        if self.strangers.contains(target) || !self.whole {
            return None;
        }
        let named = ResourceId::parse(target);
        let suggestion = self.suggest(target, named);
        let problem = if named.is_some() {
            let what = format!("the graph has no resource `{}`", quoted(target));
            Problem::new(Code::Target, what)
        } else {
            let what = format!("expected a resource as kind[name], found `{}`", quoted(target));
            Problem::new(Code::Reference, what)
        };
        let usual = named.is_none().then(|| self.meant_resource(target));
        let problem = problem.hint_if(suggestion.or(usual)).at(self.atlas.place(at));
        self.problems.push(problem);
        None
    }

    /// Returns the advice for a resource that is not written as `kind[name]`.
    fn meant_resource(&self, target: &str) -> String {
        for separator in ['.', ':', '/', ' '] {
            let Some((kind, name)) = target.split_once(separator) else { continue };
            if self.kinds.is_known(kind) && !name.trim().is_empty() {
                return format!("write {kind}[{}]", quoted(name.trim()));
            }
        }
        let last = format!("[{}]", target.rsplit(' ').next().unwrap_or(target));
        let mut all = self.vertices.iter().map(|vertex| vertex.identity.as_ref());
        match all.find(|identity| target.contains(' ') && identity.ends_with(&last)) {
            Some(meant) => format!("did you mean `{}`?", quoted(meant)),
            None => "name a resource by kind and name, for example file[motd]".to_owned(),
        }
    }

    fn suggest(&mut self, target: &str, named: Option<ResourceId<'_>>) -> Option<String> {
        self.suggested += 1;
        if self.suggested > SUGGESTIONS {
            return None;
        }
        let name = named.map_or(target, |id| id.name);
        let foreign = named.filter(|id| !self.kinds.is_known(id.kind));
        let foreign = foreign.and_then(|id| Some((id, kind_for(&id.kind.to_lowercase())?)));
        if let Some((id, kind)) = foreign.filter(|(_, kind)| self.kinds.is_known(kind)) {
            let prefix = if id.instance.is_empty() { "" } else { "/" };
            return Some(format!("write {}{prefix}{kind}[{}]", quoted(id.instance), quoted(name)));
        }
        let ending = format!("[{name}]");
        let identities = || self.vertices.iter().map(|vertex| vertex.identity.as_ref());
        let same_name = identities().find(|identity| identity.ends_with(&ending));
        let found = same_name
            .or_else(|| self.owner_of_path(name))
            .or_else(|| same_unit(target, identities()))
            .or_else(|| nearest(target, identities()))?;
        Some(format!("did you mean `{}`?", quoted(found)))
    }

    /// Returns the resource that manages a path.
    fn owner_of_path(&self, path: &str) -> Option<&str> {
        let object = HostObject::Path(path.into());
        let owns = |claims: &[Claim]| claims.iter().any(|claim| claim.object == object);
        let mut all = self.vertices.iter().filter(|_| path.starts_with('/'));
        let owner = all.find(|vertex| {
            vertex.resource.as_ref().is_some_and(|resource| owns(&resource.footprint().claims))
        })?;
        Some(owner.identity.as_ref())
    }

    /// Records the origins of edges, if the options ask for them.
    pub(in crate::config) fn record_origins(&mut self, ties: &[DraftEdge]) {
        if !self.wants_origins {
            return;
        }
        let atlas = &self.atlas;
        let origin = |tie: &DraftEdge| Origin {
            from: tie.from,
            to: tie.to,
            key: tie.key,
            because: tie.because,
            place: if tie.because.is_some() { None } else { atlas.place(tie.at) },
        };
        self.origins.extend(ties.iter().map(origin));
        self.origins.sort_by_key(|origin| (origin.from, origin.to));
    }

    /// Returns the edges sorted by their ends, each pair once, without edges of a vertex to itself.
    pub(in crate::config) fn sorted_ties(&mut self) -> Vec<DraftEdge> {
        self.lead_through_inactive();
        let mut ties = std::mem::take(&mut self.ties);
        ties.sort_by_key(|tie| (tie.from, tie.to));
        self.record_origins(&ties);
        ties.dedup_by(|later, kept| {
            let same = (later.from, later.to) == (kept.from, kept.to);
            kept.notify |= same && later.notify;
            same
        });
        ties.retain(|tie| {
            if tie.from == tie.to {
                self.refuse_self_edge(tie);
            }
            tie.from != tie.to
        });
        ties
    }
}
