//! Advice about variables and parameters that nothing uses.

use super::{File, Findings};
use crate::config::problem::quoted;
use crate::config::source_file::SourceFile;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Adds the advice about the names that a file declares.
pub(super) fn advise(file: &File, sources: &[Arc<SourceFile>], findings: &mut Findings) {
    let Some(root) = file.tree.root() else { return };
    if let Some((_, vars)) = file.tree.entry(root, "vars") {
        let used = UsedNames::find(sources, "vars", None);
        for (key, _) in file.tree.entries(vars) {
            let Some(name) = file.text_of(*key) else { continue };
            if !used.has(name) {
                let what = format!("nothing uses the variable `{}`", quoted(name));
                let hint = format!("remove it, or use it as `${{vars.{}}}`", quoted(name));
                findings.add("unused-variable", (file, *key, *key), what, hint);
            }
        }
    }
    let is_module = file.tree.entry(root, "module").is_some();
    if let Some((_, params)) = file.tree.entry(root, "params").filter(|_| is_module) {
        let used = UsedNames::find(sources, "params", Some(&file.source.base));
        for (key, _) in file.tree.entries(params) {
            let Some(name) = file.text_of(*key) else { continue };
            if !used.has(name) {
                let what = format!("nothing in the module uses the parameter `{}`", quoted(name));
                findings.add("unused-param", (file, *key, *key), what, "remove it");
            }
        }
    }
}

/// The names below a root that texts use.
struct UsedNames<'a> {
    names: HashSet<&'a str>,
    /// True if a text uses the whole root.
    all: bool,
}

impl<'a> UsedNames<'a> {
    /// Finds the names below a root. `folder` limits the search.
    fn find(sources: &'a [Arc<SourceFile>], root: &str, folder: Option<&Path>) -> Self {
        let mut used = Self { names: HashSet::new(), all: false };
        let is_within = |source: &&'a Arc<SourceFile>| {
            folder.is_none_or(|folder| source.path.starts_with(folder))
        };
        for source in sources.iter().filter(is_within) {
            let text = source.text.as_str();
            for (at, _) in text.match_indices(root) {
                let before = text.get(..at).unwrap_or_default();
                if before.ends_with(|letter| is_part(letter) || letter == '/') {
                    continue;
                }
                used.add(text.get(at + root.len()..).unwrap_or_default());
            }
        }
        used
    }

    /// Adds the use that a text begins with, behind the root.
    fn add(&mut self, after: &'a str) {
        match after.chars().next() {
            Some('.') => {
                let name = after.get(1..).unwrap_or_default();
                let end = name.find(|letter| !is_part(letter)).unwrap_or(name.len());
                self.names.extend(name.get(..end));
            }
            Some('[') => {
                let quoted = ["[\"", "['"].iter().zip(["\"]", "']"]);
                let name = quoted.filter_map(|(open, close)| {
                    after.strip_prefix(open)?.split_once(close).map(|(name, _)| name)
                });
                self.names.extend(name);
            }
            // The whole map, as in `${vars}` or `vars | keys`.
            Some('}' | '|' | ')') => self.all = true,
            Some(' ') => self.all |= after.trim_start().starts_with(['|', '}', ')']),
            _ => {}
        }
    }

    fn has(&self, name: &str) -> bool {
        self.all || self.names.contains(name)
    }
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
