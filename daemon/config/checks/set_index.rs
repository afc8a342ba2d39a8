//! The index of identities for edges that name a set: the members of a pattern, and the resources of an instance.

use std::collections::HashMap;
use std::sync::Arc;
use steadfast_resources::ResourceId;

/// A pattern of identities.
pub(super) struct Pattern<'t> {
    /// The instance; an empty one means the resources outside of modules. A `*` at its end stands for the rest of a
    /// name, without the instances within.
    pub(super) instance: &'t str,
    /// The kind; none for all resources of an instance, nested ones included.
    pub(super) kind: Option<&'t str>,
    /// The name, or its beginning before a `*`.
    name: &'t str,
    pub(super) is_whole_name: bool,
}

impl<'t> Pattern<'t> {
    /// Reads a pattern; returns `None` for a text that names one resource.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        if let Some(instance) = text.strip_suffix("/*") {
            let is_plain = !instance.is_empty() && !instance.contains('[');
            let (name, is_whole_name) = ("", false);
            return is_plain.then_some(Self { instance, kind: None, name, is_whole_name });
        }
        let id = ResourceId::parse(text)?;
        let prefix = id.name.strip_suffix('*');
        let is_whole_name = prefix.is_none();
        let is_set = !is_whole_name || id.instance.ends_with('*');
        let name = prefix.unwrap_or(id.name);
        is_set.then_some(Self { instance: id.instance, kind: Some(id.kind), name, is_whole_name })
    }

    fn matches_name(&self, name: &str) -> bool {
        if self.is_whole_name { name == self.name } else { name.starts_with(self.name) }
    }
}

/// Returns the instances around a resource, the outermost first: `shop` and `shop/tls` of `shop/tls/file[key]`.
pub(super) fn instances_around(identity: &str) -> impl Iterator<Item = &str> {
    let own = identity.split('[').next().unwrap_or_default();
    own.match_indices('/').filter_map(|(at, _)| own.get(..at))
}

/// The names of one kind in one instance, sorted, each with its resource.
type Names = Vec<(Arc<str>, usize)>;

/// The identities of a graph.
#[derive(Default)]
pub(super) struct SetIndex {
    /// The names by kind, and then by instance.
    names: HashMap<Box<str>, HashMap<Box<str>, Names>>,
    /// The resources of each instance and of those within it.
    members: HashMap<Box<str>, Vec<usize>>,
}

impl SetIndex {
    /// Creates the index of all identities.
    pub(super) fn new(numbers: &HashMap<Arc<str>, usize>) -> Self {
        let mut index = Self::default();
        for (identity, number) in numbers {
            for instance in instances_around(identity) {
                match index.members.get_mut(instance) {
                    Some(members) => members.push(*number),
                    None => drop(index.members.insert(instance.into(), vec![*number])),
                }
            }
            let Some(id) = ResourceId::parse(identity) else { continue };
            let of_kind = index.names.entry(id.kind.into()).or_default();
            let of_instance = of_kind.entry(id.instance.into()).or_default();
            of_instance.push((Arc::clone(identity), *number));
        }
        for names in index.names.values_mut().flat_map(HashMap::values_mut) {
            names.sort_unstable_by(|one, other| name_of(&one.0).cmp(name_of(&other.0)));
        }
        for members in index.members.values_mut() {
            members.sort_unstable();
        }
        index
    }

    /// Returns the resources of an instance and of the instances within it, sorted.
    pub(super) fn inside(&self, instance: &str) -> &[usize] {
        self.members.get(instance).map_or(&[], Vec::as_slice)
    }

    /// Returns the resources that a pattern names, sorted by number.
    pub(super) fn find(&self, pattern: &Pattern<'_>) -> Vec<(usize, Arc<str>)> {
        let mut found = Vec::new();
        let Some(kind) = pattern.kind else {
            let members = self.inside(pattern.instance).iter();
            return members.map(|number| (*number, Arc::default())).collect();
        };
        let Some(of_kind) = self.names.get(kind) else { return found };
        match pattern.instance.strip_suffix('*') {
            None => {
                if let Some(names) = of_kind.get(pattern.instance) {
                    add_named(names, pattern, &mut found);
                }
            }
            Some(start) => {
                let is_meant = |instance: &str| {
                    let rest = instance.strip_prefix(start);
                    !instance.is_empty() && rest.is_some_and(|rest| !rest.contains('/'))
                };
                for (_, names) in of_kind.iter().filter(|(instance, _)| is_meant(instance)) {
                    add_named(names, pattern, &mut found);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// Returns the name in an identity.
fn name_of(identity: &str) -> &str {
    ResourceId::parse(identity).map_or("", |id| id.name)
}

/// Adds the names that a pattern matches; they stand together, because the list is sorted.
fn add_named(names: &Names, pattern: &Pattern<'_>, found: &mut Vec<(usize, Arc<str>)>) {
    let from = names.partition_point(|(identity, _)| name_of(identity) < pattern.name);
    let rest = names.get(from..).unwrap_or_default().iter();
    let together = rest.take_while(|(identity, _)| name_of(identity).starts_with(pattern.name));
    let exact = together.filter(|(identity, _)| pattern.matches_name(name_of(identity)));
    found.extend(exact.map(|(identity, number)| (*number, Arc::clone(identity))));
}
