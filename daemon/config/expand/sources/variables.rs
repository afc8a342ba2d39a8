//! The definitions of variables, in layers: the lowest definition gives the type, the highest the value.

use crate::config::document::Origin;
use crate::config::document::tree::Node;
use crate::config::document::value_limit::Contents;
use crate::config::expand::evaluate::{Scope, Vars};
use crate::config::expand::sources::variable_values::VariablePass;
use crate::config::expand::{Context, Expander, Parsed};
use crate::config::problem::code::Code;
use crate::config::problem::{Place, Problem, quoted};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of variables: each takes about a kilobyte.
const MOST_VARIABLES: usize = 40_000;

/// The definitions of all variables, and the values so far.
#[derive(Default)]
pub(in crate::config::expand) struct Variables {
    /// The definitions by name, the lowest first.
    pub(super) defined: BTreeMap<String, Vec<Definition>>,
    /// The values of the present pass: with the present facts, or with those of the last load.
    pub(super) pass: VariablePass,
    /// The values of the other pass.
    pub(super) other_pass: VariablePass,
    /// The variables that are being evaluated.
    pub(super) open: Vec<String>,
    /// True if a file that may define variables cannot be read: an unknown one is no further problem.
    pub(in crate::config::expand) are_incomplete: bool,
    /// The result, as long as no definition is added.
    pub(super) evaluated: Option<Arc<Vars>>,
}

impl Variables {
    /// Returns the number of variables.
    pub(in crate::config::expand) fn count(&self) -> usize {
        self.defined.len()
    }

    /// Returns true if a variable has this name.
    pub(in crate::config::expand) fn has(&self, name: &str) -> bool {
        self.defined.contains_key(name)
    }
}

/// One definition of a variable.
#[derive(Clone)]
pub(super) struct Definition {
    /// The layer: 0 for `vars:`, 1 for its `vars_files:`, 2 for `--vars`, 3 for `--var`.
    pub(super) layer: u8,
    pub(super) written: Source,
}

/// The value of a definition as written.
#[derive(Clone)]
pub(super) enum Source {
    /// A node of a file.
    Node(Arc<Context>, usize),
    /// A text of the command line.
    Text(String),
}

/// A file of variables.
pub(in crate::config::expand) enum VariablesFile {
    /// There is no such file.
    Missing,
    /// The file is no valid YAML, and its problems are reported.
    Broken,
    Read(Arc<Parsed>),
}

/// The keys of an entry of `vars_files:`.
pub(in crate::config::expand) const FILE_KEYS: [&str; 2] = ["file", "optional"];

impl Expander<'_> {
    /// Collects `vars:` and `vars_files:` of a file.
    pub(in crate::config::expand) fn define_variables(&mut self, context: &Context) {
        let Some(root) = context.tree().root() else { return };
        if let Some((_, node)) = context.tree().entry(root, "vars") {
            self.define_all(context, node, 0);
        }
        let Some((_, node)) = context.tree().entry(root, "vars_files") else { return };
        let items = match context.tree().node(node) {
            Some(Node::List(items)) => items.clone(),
            _ if context.is_null(node) => Vec::new(),
            _ => vec![node],
        };
        for item in items {
            self.define_file(context, item);
        }
    }

    /// Collects one entry of `vars_files:`: a path, or a map with `file` and `optional`.
    fn define_file(&mut self, context: &Context, item: usize) {
        let (file, is_optional) = match context.tree().node(item) {
            Some(Node::Map(_)) => {
                let file = context.tree().entry(item, "file").map(|(_, value)| value);
                let optional = context.tree().entry(item, "optional").map(|(_, value)| value);
                for (key, _) in context.tree().entries(item).to_vec() {
                    let text = context.text_of(key).unwrap_or_default().to_owned();
                    if !FILE_KEYS.contains(&text.as_str()) {
                        let what = format!("unknown key `{}` in `vars_files`", quoted(&text));
                        let hint = "valid keys: file, optional";
                        self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
                    }
                }
                let is_optional = optional.is_some_and(|it| context.text_of(it) == Some("true"));
                (file, is_optional)
            }
            _ => (Some(item), false),
        };
        let Some(file) = file else {
            let what = "an entry of `vars_files` needs `file`";
            self.report(context, item, Problem::new(Code::MissingKey, what));
            return;
        };
        let Some(path) = self.static_path(context, file) else { return };
        match self.open_variables(context, &path) {
            Ok(VariablesFile::Read(parsed)) => self.define_parsed(&parsed, context, 1),
            Ok(VariablesFile::Broken) => self.variables.are_incomplete = true,
            Ok(VariablesFile::Missing) if is_optional => {}
            Ok(VariablesFile::Missing) => {
                self.variables.are_incomplete = true;
                let problem = crate::config::expand::sources::inputs::missing_file(&path);
                let problem = problem.hint("add the file, or write {file: …, optional: true}");
                self.report(context, file, problem);
            }
            Err(problem) => {
                self.variables.are_incomplete = true;
                self.report(context, file, problem);
            }
        }
    }

    /// Collects the files of `--vars` and of the settings, and then the values of `--var`.
    pub(in crate::config::expand) fn define_given_variables(&mut self) {
        for path in self.inputs.vars_files.clone() {
            let display = path.display().to_string();
            let absolute = std::path::absolute(&path).unwrap_or(path);
            match self.inputs.read(&absolute, &display) {
                Ok(Some(number)) => {
                    if let Some(parsed) = self.parse_as(number, Contents::Variables) {
                        let context = self.context_of(parsed);
                        self.define_parsed_at(&context, 2);
                    } else {
                        self.variables.are_incomplete = true;
                    }
                }
                Ok(None) => {
                    let problem = crate::config::expand::sources::inputs::missing_file(&display);
                    self.problems.push(problem.hint("`--vars` needs an existing file"));
                    self.is_complete = false;
                }
                Err(problem) => {
                    self.problems.push(problem);
                    self.is_complete = false;
                }
            }
        }
        for (name, text) in self.inputs.vars.clone() {
            let written = Source::Text(text);
            self.add_definition(name, Definition { layer: 3, written });
        }
    }

    fn define_parsed(&mut self, parsed: &Arc<Parsed>, from: &Context, layer: u8) {
        let context = Context { parsed: Arc::clone(parsed), ..from.clone() };
        self.define_parsed_at(&context, layer);
    }

    fn define_parsed_at(&mut self, context: &Context, layer: u8) {
        let Some(root) = context.tree().root().filter(|root| !context.is_null(*root)) else {
            return;
        };
        if let [(key, value)] = context.tree().entries(root)
            && context.text_of(*key) == Some("vars")
            && matches!(context.tree().node(*value), Some(Node::Map(_)))
        {
            let what = "the file of variables defines one variable: `vars`";
            let hint = "write the variables at the top of the file, without `vars:`";
            let problem = Problem::new(Code::Doubt, what).warning().hint(hint);
            self.report(context, *key, problem);
        }
        self.define_all(context, root, layer);
    }

    /// Returns the context of a file that no file of the graph names.
    pub(in crate::config::expand) fn context_of(&self, parsed: Arc<Parsed>) -> Context {
        Context {
            open: vec![parsed.file.path.clone()],
            parsed,
            scope: Scope::new(&self.facts, ""),
            origin: Arc::default(),
            inactive: None,
            item: None,
            probes: Arc::default(),
        }
    }

    /// Collects the entries of a map of variables.
    fn define_all(&mut self, context: &Context, node: usize, layer: u8) {
        if context.is_null(node) {
            return;
        }
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            let what = "variables should be a map, such as `vars: {workers: 4}`";
            let is_list = matches!(context.tree().node(node), Some(Node::List(_)));
            let hint = is_list.then_some("remove the dashes: each line is NAME: VALUE");
            self.report(context, node, Problem::new(Code::Variable, what).hint_if(hint));
            return;
        };
        let shared = Arc::new(context.clone());
        for (key, value) in pairs.clone() {
            let Some(name) = context.text_of(key).map(str::to_owned) else { continue };
            if !is_name(&name) {
                let what = format!("`{}` cannot be the name of a variable", quoted(&name));
                let hint = "use letters, digits and `_`, beginning with a letter";
                self.report(context, key, Problem::new(Code::Variable, what).hint(hint));
                continue;
            }
            let is_twice = layer == 0
                && self
                    .variables
                    .defined
                    .get(&name)
                    .is_some_and(|it| it.iter().any(|d| d.layer == 0));
            if is_twice {
                let what = format!("the variable `{}` is given twice", quoted(&name));
                let mut problem = Problem::new(Code::DuplicateKey, what).hint("keep one of them");
                // The places of a problem that is only counted are not computed.
                if !self.problems.is_full() {
                    let known = self.variables.defined.get(&name);
                    let first = known.and_then(|it| it.first()?.place());
                    let place = context.place(context.tree().span(key));
                    problem = problem.at(Some(place)).at(first);
                }
                self.is_complete = false;
                self.problems.push(problem);
                continue;
            }
            let written = Source::Node(Arc::clone(&shared), value);
            self.add_definition(name, Definition { layer, written });
        }
    }

    /// Returns the list or map of a loop as it is written: that of the loop itself, or that of the variable that it
    /// names. Of a computed list, the node of the expression is returned.
    pub(in crate::config::expand) fn written_list(
        &self,
        context: &Context,
        node: usize,
    ) -> (Context, usize) {
        let here = || (context.clone(), node);
        let at = context.place(context.tree().span(node));
        let Some(name) = context.text_of(node).and_then(|text| text.trim().strip_prefix("vars."))
        else {
            return here();
        };
        let mut steps = name.split('.');
        let variable = steps.next().unwrap_or_default();
        let definition = self.variables.defined.get(variable).and_then(|all| all.last());
        let Some(Source::Node(context, top)) = definition.map(|it| &it.written) else {
            return here();
        };
        let mut step = |at: usize, step: &str| Some(context.tree().entry(at, step)?.1);
        let found = steps.try_fold(*top, &mut step);
        let is_written = |at: &usize| context.tree().scalar(*at).is_none();
        let Some(found) = found.filter(is_written) else { return here() };
        // A problem of an item names the loop, too.
        let mut origin = Origin::clone(&context.origin);
        origin.chain.insert(0, format!("in the loop at {}:{}:{}", at.file, at.line, at.column));
        (Context { origin: Arc::new(origin), ..Context::clone(context) }, found)
    }

    /// Returns the definitions of a variable, the lowest first.
    pub(in crate::config::expand) fn layers_of(
        &self,
        name: &str,
    ) -> Vec<crate::config::expand::ask::Layer> {
        let definitions = self.variables.defined.get(name).map(Vec::as_slice).unwrap_or_default();
        let layers = definitions.iter().map(|definition| match &definition.written {
            Source::Text(text) => crate::config::expand::ask::Layer {
                place: "--var".to_owned(),
                written: text.clone(),
            },
            Source::Node(context, node) => {
                let span = context.tree().span(*node);
                let place = context.place(span);
                let written = context.parsed.file.text.get(span.start as usize..span.end as usize);
                crate::config::expand::ask::Layer {
                    place: format!("{}:{}:{}", place.file, place.line, place.column),
                    written: written.unwrap_or_default().trim_end().to_owned(),
                }
            }
        });
        layers.collect()
    }

    fn add_definition(&mut self, name: String, definition: Definition) {
        self.variables.evaluated = None;
        let is_new = !self.variables.defined.contains_key(&name);
        if is_new && self.variables.defined.len() >= MOST_VARIABLES {
            if !self.used.is_over {
                self.used.is_over = true;
                self.is_complete = false;
                let what = format!("the graph has more than {MOST_VARIABLES} variables");
                let problem = Problem::new(Code::Budget, what);
                let hint = "a list or a map in one variable holds many values";
                self.problems.push(problem.hint(hint).at(definition.place()));
            }
            return;
        }
        let all = self.variables.defined.entry(name).or_default();
        let at = all.partition_point(|known| known.layer <= definition.layer);
        all.insert(at, definition);
    }
}

impl Definition {
    /// Returns true for a definition at the same place. The places themselves take long for thousands of variables.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.written, &other.written) {
            (Source::Node(context, node), Source::Node(of_other, other)) => {
                Arc::ptr_eq(&context.parsed, &of_other.parsed) && node == other
            }
            (Source::Text(_), Source::Text(_)) => true,
            _ => false,
        }
    }

    pub(super) fn place(&self) -> Option<Place> {
        match &self.written {
            Source::Node(context, node) => Some(context.place(context.tree().span(*node))),
            Source::Text(_) => None,
        }
    }
}

/// Returns true for the name of a variable, a parameter or a key that expressions use.
pub(in crate::config::expand) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
