//! Exports: a resource of a module may be named from outside only if the module exports it.

use super::Validator;
use super::edge_sets::is_inside;
use crate::config::document::Origin;
use crate::config::problem::code::Code;
use crate::config::problem::location::Location;
use crate::config::problem::{Problem, quoted, shorten};
use std::sync::Arc;
use steadfast_resources::ResourceId;

impl Validator<'_> {
    /// Reports a reference into a module that does not export the resource. `target` is a full identity.
    pub(super) fn check_export(&mut self, target: &str, at: Location) -> bool {
        let Some(info) = self.atlas.documents.get(at.file) else { return true };
        let viewer = info.origin.instance.as_ref();
        let hides = |origin: &&Arc<Origin>| {
            let outside = origin.instance.as_ref() != viewer
                && !viewer.starts_with(&format!("{}/", origin.instance));
            let inside = target.strip_prefix(&*origin.instance).and_then(|it| it.strip_prefix('/'));
            !origin.instance.is_empty()
                && outside
                && is_inside(target, &origin.instance)
                && inside.is_some_and(|inside| !origin.exports.iter().any(|it| it == inside))
        };
        let Some(origin) = self.atlas.documents.iter().map(|it| &it.origin).find(hides) else {
            return true;
        };
        let inside = target.get(origin.instance.len() + 1..).unwrap_or_default();
        let name = ResourceId::parse(inside).map_or(inside, |id| id.name);
        let (name, module) = (shorten(name, 22), shorten(&origin.module, 18));
        let exports = if origin.export_names.is_empty() {
            "it exports nothing".to_owned()
        } else {
            format!("exports: {}", shorten(&origin.export_names.join(", "), 18))
        };
        let what = format!("`{name}` is not exported by module `{module}`; {exports}");
        let hint = format!("add it to the module: exports: {{NAME: \"{}\"}}", quoted(inside));
        let problem = Problem::new(Code::Export, what).hint(hint);
        self.problems.push(problem.at(self.atlas.place(at)));
        false
    }
}
