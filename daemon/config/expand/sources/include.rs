//! Includes: other files of the same graph or module, by path or pattern.

use crate::config::document::tree::Node;
use crate::config::document::value_limit::Contents;
use crate::config::document::{Inactivity, Origin};
use crate::config::expand::evaluate::Vars;
use crate::config::expand::resources::conditions::Condition;
use crate::config::expand::resources::name_within;
use crate::config::expand::sources::variables::VariablesFile;
use crate::config::expand::{Context, DEEPEST, Expander, GRAPH_KEYS, MODULE_KEYS};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// An included file as written.
struct Include {
    /// The path or the pattern.
    file: usize,
    when: Option<usize>,
}

impl Expander<'_> {
    /// Returns the given files and all files that they include, each before the files that it includes.
    pub(in crate::config::expand) fn follow_includes(
        &mut self,
        contexts: Vec<Context>,
    ) -> Vec<Context> {
        let mut all = Vec::new();
        for context in contexts {
            self.follow(context, &mut all);
        }
        all
    }

    fn follow(&mut self, mut context: Context, all: &mut Vec<Context>) {
        let root = context.tree().root();
        let include = root.and_then(|root| context.tree().entry(root, "include"));
        let Some((_, node)) = include else {
            all.push(context);
            return;
        };
        self.see_probes(&mut context);
        if !context.is_module() {
            context.scope.vars = self.evaluate_variables();
        }
        // The variables of all files are known after the last include: no copy of the present ones is held.
        let mut own = context.clone();
        own.scope.vars = Arc::new(Vars::none());
        all.push(own);
        // The files that an entry before a pattern includes without a condition.
        let mut included = HashSet::new();
        for include in self.read_includes(&context, node) {
            if self.used.is_over {
                return;
            }
            let mut inner = context.clone();
            if let Some(when) = include.when {
                self.uses.begin_resource();
                match self.evaluate_condition(&context, when) {
                    Condition::Holds(_) => {}
                    Condition::Fails(reason) => {
                        inner.inactive = Some(Inactivity::join(inner.inactive, reason));
                    }
                    Condition::Wrong => continue,
                }
                let used = self.uses.end_resource();
                if !used.is_empty() {
                    let used = used.iter().map(|probe| name_within(&context, probe));
                    let all = used.map(str::to_owned).chain(inner.probes.iter().cloned());
                    inner.probes = Arc::new(all.collect());
                }
            }
            let Some(text) = self.static_path(&context, include.file) else { continue };
            let is_pattern = text.contains(['*', '?']);
            for path in self.included_files(&context, (include.file, &text)).iter() {
                let is_own = *path == context.parsed.file.path;
                if is_pattern && (is_own || included.contains(path)) {
                    continue;
                }
                let display = display_beside(&context.parsed.file.display, &text, path);
                // Each further file of a cycle, or beyond a limit, needs the same correction.
                if !self.include_file(&inner, (include.file, path, &display), all) {
                    break;
                }
                if include.when.is_none() {
                    included.insert(path.clone());
                }
            }
        }
    }

    /// Reads `include`: a path, a list of paths, or a list of maps with `file` and `when`.
    fn read_includes(&mut self, context: &Context, node: usize) -> Vec<Include> {
        let items = match context.tree().node(node) {
            Some(Node::List(items)) => items.clone(),
            _ if context.is_null(node) => Vec::new(),
            _ => vec![node],
        };
        let mut includes = Vec::new();
        for item in items {
            if !matches!(context.tree().node(item), Some(Node::Map(_))) {
                includes.push(Include { file: item, when: None });
                continue;
            }
            let (mut file, mut when) = (None, None);
            for (key, value) in context.tree().entries(item).to_vec() {
                match context.text_of(key) {
                    Some("file") => file = Some(value),
                    Some("when") => when = Some(value),
                    other => {
                        let name = quoted(other.unwrap_or_default());
                        let what = format!("unknown key `{name}` in `include`");
                        let hint = "valid keys: file, when";
                        self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
                    }
                }
            }
            if let Some(file) = file {
                includes.push(Include { file, when });
            } else {
                let what = "an entry of `include` needs `file`";
                self.report(context, item, Problem::new(Code::MissingKey, what));
            }
        }
        includes
    }

    /// Returns the absolute paths that an entry names. A pattern may name the file itself.
    fn included_files(&mut self, context: &Context, (node, text): (usize, &str)) -> Arc<[PathBuf]> {
        let path = context.parsed.file.base.join(text);
        if !text.contains(['*', '?']) {
            return [crate::config::expand::sources::inputs::normal(&path)].into();
        }
        let (found, work) = self.inputs.matching(&path);
        if !self.count_work(context, context.tree().span(node), work) {
            return [].into();
        }
        let own = &context.parsed.file.path;
        if found.iter().all(|path| path == own) {
            let what = format!("`{}` matches no file", quoted(text));
            let problem = Problem::new(Code::Doubt, what).warning();
            self.report(context, node, problem.hint("add a file, or remove the include"));
        }
        found
    }

    /// Includes a file; returns false if the further files of a pattern would have the same problem.
    fn include_file(
        &mut self,
        context: &Context,
        (node, path, display): (usize, &Path, &str),
        all: &mut Vec<Context>,
    ) -> bool {
        if let Some(problem) = check_chain(&context.open, path) {
            self.report(context, node, problem);
            return false;
        }
        if !self.count_included(context, node) {
            return false;
        }
        let parsed = match self.inputs.read(path, display) {
            Ok(Some(number)) => self.parse_source(number),
            Ok(None) => {
                let problem = crate::config::expand::sources::inputs::missing_file(display);
                self.report(context, node, problem);
                None
            }
            Err(problem) => {
                self.report(context, node, problem);
                None
            }
        };
        let Some(parsed) = parsed else {
            self.is_complete = false;
            self.variables.are_incomplete = true;
            return true;
        };
        let place = context.place(context.tree().span(node));
        let used = format!("included at {}:{}:{}", place.file, place.line, place.column);
        let mut chain = vec![used];
        chain.extend(context.origin.chain.iter().cloned());
        let origin = Origin { chain, ..Origin::clone(&context.origin) };
        let mut open = context.open.clone();
        open.push(path.to_owned());
        let inner = Context { parsed, origin: Arc::new(origin), open, ..context.clone() };
        self.note_probes(&inner);
        if inner.is_module() {
            self.check_keys(&inner, &MODULE_KEYS);
        } else {
            self.check_keys(&inner, &GRAPH_KEYS);
            self.define_variables(&inner);
        }
        self.follow(inner, all);
        true
    }

    /// Returns the text of a path, with its expressions evaluated.
    pub(in crate::config::expand) fn static_path(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<String> {
        self.static_text(context, node, "a path")
    }

    /// Returns a text that must be known at load, with its expressions evaluated. `what` names it in messages.
    pub(in crate::config::expand) fn static_text(
        &mut self,
        context: &Context,
        node: usize,
        what: &str,
    ) -> Option<String> {
        let scalar = context.tree().scalar(node).filter(|scalar| !scalar.is_null()).cloned();
        let Some(scalar) = scalar else {
            self.report(context, node, Problem::new(Code::Include, format!("expected {what}")));
            return None;
        };
        if !scalar.text.contains("${") {
            return Some(scalar.text.to_string());
        }
        let names = self.names_in(context, node);
        if !self.names_are_static(context, node, (what, &names)) {
            return None;
        }
        let mut context = context.clone();
        if !context.is_module() && names.iter().any(|name| name.starts_with("vars.")) {
            context.scope.vars = self.evaluate_variables();
        }
        self.scalar_expression(&context.at_load(), node)?.embedded_text()
    }

    /// Reads and parses a file of variables that a file names by a relative path.
    pub(in crate::config::expand) fn open_variables(
        &mut self,
        context: &Context,
        text: &str,
    ) -> Result<VariablesFile, Problem> {
        let path = context.parsed.file.base.join(text);
        let display = display_beside(&context.parsed.file.display, text, &path);
        let Some(number) = self.inputs.read(&path, &display)? else {
            return Ok(VariablesFile::Missing);
        };
        let parsed = self.parse_as(number, Contents::Variables);
        Ok(parsed.map_or(VariablesFile::Broken, VariablesFile::Read))
    }
}

/// Returns the name of a file in messages: as the file that names it is named, in the same folder.
pub(in crate::config::expand) fn display_beside(
    display: &str,
    written: &str,
    path: &Path,
) -> String {
    if written.starts_with('/') || display == "-" {
        return path.display().to_string();
    }
    let folder = Path::new(display).parent().unwrap_or_else(|| Path::new(""));
    let relative = Path::new(written).parent().unwrap_or_else(|| Path::new(""));
    let name = path.file_name().unwrap_or_default();
    without_detours(&folder.join(relative).join(name)).display().to_string()
}

/// Returns a path without `.`, and without each `..` that a folder stands before.
fn without_detours(path: &Path) -> PathBuf {
    let mut shown = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match shown.components().next_back() {
                Some(Component::Normal(_)) => drop(shown.pop()),
                Some(Component::RootDir) => {}
                _ => shown.push(part),
            },
            part => shown.push(part),
        }
    }
    shown
}

/// Returns the problem of a file that is being read already, or of too many files within each other.
pub(in crate::config::expand) fn check_chain(open: &[PathBuf], path: &Path) -> Option<Problem> {
    if let Some(first) = open.iter().position(|known| known == path) {
        let names: Vec<String> = open.iter().skip(first).map(|it| short_name(it)).collect();
        let what = format!("include cycle: {} → {}", names.join(" → "), short_name(path));
        return Some(Problem::new(Code::Include, what).hint("remove one of these uses"));
    }
    (open.len() > DEEPEST).then(|| {
        let what = format!("files include each other more than {DEEPEST} levels deep");
        Problem::new(Code::Include, what)
    })
}

fn short_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
