//! Exports: a resource of a module may be named from outside only if the module exports it.

use super::Validator;
use super::inactive::DraftInactive;
use super::set_index::instances_around;
use crate::config::document::Origin;
use crate::config::problem::code::Code;
use crate::config::problem::location::{DocumentInfo, Location};
use crate::config::problem::{Problem, quoted, shorten};
use crate::config::source_file::{SourceFile, Span};
use crate::nearest_name::nearest;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use steadfast_resources::ResourceId;

/// The number of exports that a message looks at.
const LISTED: usize = 9;

/// The number of comparisons of names for all hints.
const MOST_COMPARED: usize = 200_000;

/// Returns the origins of all instances of modules.
pub(super) fn exporters(documents: &[DocumentInfo]) -> HashMap<Arc<str>, Arc<Origin>> {
    let origins = documents.iter().map(|it| &it.origin).filter(|it| !it.instance.is_empty());
    origins.map(|origin| (Arc::clone(&origin.instance), Arc::clone(origin))).collect()
}

impl Validator<'_> {
    /// Reports a reference into a module that does not export the resource. `target` is a full identity.
    pub(super) fn check_export(&mut self, target: &str, at: Location) -> bool {
        let Some(info) = self.atlas.documents.get(at.file) else { return true };
        let viewer = info.origin.instance.as_ref();
        let hides = |origin: &&Arc<Origin>| {
            let below = viewer.strip_prefix(&*origin.instance);
            let outside = below.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('/'));
            let inside = target.get(origin.instance.len() + 1..);
            outside && inside.is_some_and(|inside| !origin.exports.contains(inside))
        };
        let around = instances_around(target).filter_map(|it| self.exporters.get(it));
        let Some(origin) = around.into_iter().find(hides) else { return true };
        let inside = target.get(origin.instance.len() + 1..).unwrap_or_default();
        let name = ResourceId::parse(inside).map_or(inside, |id| id.name);
        let (name, module) = (shorten(name, 22), shorten(&origin.module, 18));
        let names = origin.exports.list.iter().take(LISTED).map(|export| export.name.as_str());
        let names: Vec<&str> = names.collect();
        let exports = if names.is_empty() {
            "it exports nothing".to_owned()
        } else {
            format!("exports: {}", shorten(&names.join(", "), 18))
        };
        let what = format!("`{name}` is not exported by module `{module}`; {exports}");
        let hint = format!("add it to the module: exports: {{NAME: \"{}\"}}", quoted(inside));
        let problem = Problem::new(Code::Export, what).hint(hint);
        self.problems.push(problem.at(self.atlas.place(at)));
        false
    }

    /// Reports each export of a resource that no instance of the module declares.
    pub(super) fn check_declared_exports(&mut self) {
        if !self.whole {
            return;
        }
        let mut missing: BTreeMap<(&str, Span), (&Arc<SourceFile>, &str, &Origin)> =
            BTreeMap::new();
        let mut declared = HashSet::new();
        let inactive: HashSet<&str> = self.inactive.iter().map(DraftInactive::identity).collect();
        let mut target = String::new();
        for origin in self.exporters.values() {
            for export in &origin.exports.list {
                let Some((source, span)) = &export.at else { continue };
                let key = (source.display.as_str(), *span);
                target.clear();
                target.extend([&*origin.instance, "/", &*export.target]);
                let is_declared = self.numbers.contains_key(target.as_str())
                    || self.strangers.contains(&target)
                    || inactive.contains(target.as_str());
                if is_declared {
                    declared.insert(key);
                }
                let known = missing.entry(key).or_insert((source, &export.target, origin));
                if origin.instance < known.2.instance {
                    *known = (source, &export.target, origin);
                }
            }
        }
        missing.retain(|key, _| !declared.contains(key));
        // The search among thousands of names takes long for thousands of exports.
        let mut hints = MOST_COMPARED / self.numbers.len().max(1);
        for ((_, span), (source, export, origin)) in missing {
            let inside = |identity: &Arc<str>| {
                identity.strip_prefix(&*origin.instance)?.strip_prefix('/').map(str::to_owned)
            };
            let names = self.numbers.keys().take(if hints > 0 { usize::MAX } else { 0 });
            hints = hints.saturating_sub(1);
            let own: Vec<String> = names.filter_map(inside).collect();
            let near = nearest(export, own.iter().map(String::as_str));
            let hint = near.map_or_else(
                || "declare the resource in the module, or remove the export".to_owned(),
                |near| format!("did you mean `{}`?", quoted(near)),
            );
            let module = shorten(&origin.module, 20);
            let what =
                format!("module `{module}` exports `{}`, and does not declare it", quoted(export));
            let problem = Problem::new(Code::Export, what).hint(hint);
            self.problems.push(problem.at(Some(source.place(span))));
        }
    }
}
