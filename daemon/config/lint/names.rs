//! Advice about variables and parameters that nothing uses.

use super::{File, Findings};
use crate::config::problem::quoted;
use crate::config::source_file::SourceFile;
use std::path::Path;
use std::sync::Arc;

/// Adds the advice about the names that a file declares.
pub(super) fn advise(file: &File, sources: &[Arc<SourceFile>], findings: &mut Findings) {
    let Some(root) = file.tree.root() else { return };
    if let Some((_, vars)) = file.tree.entry(root, "vars") {
        for (key, _) in file.tree.entries(vars) {
            let Some(name) = file.text_of(*key) else { continue };
            if !is_used(sources, "vars", name, None) {
                let what = format!("nothing uses the variable `{}`", quoted(name));
                let hint = format!("remove it, or use it as `${{vars.{}}}`", quoted(name));
                findings.add("unused-variable", (file, *key, *key), what, hint);
            }
        }
    }
    let is_module = file.tree.entry(root, "module").is_some();
    if let Some((_, params)) = file.tree.entry(root, "params").filter(|_| is_module) {
        for (key, _) in file.tree.entries(params) {
            let Some(name) = file.text_of(*key) else { continue };
            if !is_used(sources, "params", name, Some(&file.source.base)) {
                let what = format!("nothing in the module uses the parameter `{}`", quoted(name));
                findings.add("unused-param", (file, *key, *key), what, "remove it");
            }
        }
    }
}

/// Returns true if a text uses a name, or the whole root. `folder` limits the search.
fn is_used(sources: &[Arc<SourceFile>], root: &str, name: &str, folder: Option<&Path>) -> bool {
    let sources =
        sources.iter().filter(|source| folder.is_none_or(|folder| source.path.starts_with(folder)));
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    sources.into_iter().any(|source| {
        let text = source.text.as_str();
        text.match_indices(root).any(|(at, _)| {
            let before = text.get(..at).unwrap_or_default();
            let after = text.get(at + root.len()..).unwrap_or_default();
            if before.ends_with(|letter| is_part(letter) || letter == '/') {
                return false;
            }
            match after.chars().next() {
                Some('.') => after.get(1..).is_some_and(|rest| {
                    rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_part))
                }),
                Some('[') => {
                    after.starts_with(&format!("[\"{name}\"]"))
                        || after.starts_with(&format!("['{name}']"))
                }
                // The whole map, as in `${vars}` or `vars | keys`.
                Some('}' | '|' | ')') => true,
                Some(' ') => after.trim_start().starts_with(['|', '}', ')']),
                _ => false,
            }
        })
    })
}
