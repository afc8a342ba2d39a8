//! The expansion: variables, includes, modules, loops, conditions and expressions become plain documents.
//!
//! An expansion is pure: equal files, variables, facts and probe values give equal documents. It must never ask the
//! host: `inputs` reads files of the graph, and nothing else reads anything. A problem names the file, the position,
//! and the uses that led there.
//!
//! Reading order: `detect` (files without the language skip the expansion), this file (the steps), `sources` (files,
//! includes, variables, facts), `budget` (limits), `written`, `evaluate` and `settle` (expressions), `cache`,
//! `comparisons`, `outcome`, `names`, `text` (scalars with `${ }`), `values`, `resources` (conditions, loops, fields,
//! commands, templates), `modules` (files, parameters, uses, pages), `print` and `printed` (an expanded graph as a
//! file), `ask`, `words` (for `explain`).

pub(super) mod ask;
mod budget;
mod cache;
mod comparisons;
pub(super) mod detect;
pub(super) mod evaluate;
pub(super) mod modules;
mod names;
mod outcome;
pub(super) mod print;
pub(super) mod printed;
pub(super) mod resources;
mod settle;
pub(super) mod sources;
pub(super) mod text;
pub(super) mod values;
pub(super) mod words;
mod written;

use super::document::parse::parse_counted;
use super::document::tree::{Node, Tree};
use super::document::value_limit::{Contents, ValueCount};
use super::document::{Document, Inactivity, Origin};
use super::problem::code::Code;
use super::problem::{Place, Problem, Problems, quoted};
use super::read::chain_of;
use super::source_file::{SourceFile, Span};
use super::{Options, Stored, UsedInputs};
use crate::nearest_name::nearest;
use budget::Used;
use cache::Cache;
use evaluate::Scope;
use modules::uses::UseRecord;
use resources::loaded_templates::TemplateCache;
use sources::host_facts::Facts;
use sources::inputs::Inputs;
use sources::probe_types::DeclaredProbes;
use sources::variables::Variables;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::KindSet;

/// The maximum depth of includes and modules together.
const DEEPEST: usize = 16;

/// The result of an expansion.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// All files that were read: the graph files first.
    pub(super) sources: Vec<Arc<SourceFile>>,
    /// The expanded documents.
    pub(super) documents: Vec<Document>,
    /// True if each file was read and each declaration was expanded, so that an unknown name does not exist.
    pub(super) complete: bool,
    /// The facts and probes that expressions use.
    pub(super) used: UsedInputs,
    /// The files and folders that were looked for besides the graph files.
    pub(super) sought: Vec<PathBuf>,
}

/// A parsed file.
#[derive(Debug)]
struct Parsed {
    source: usize,
    file: Arc<SourceFile>,
    tree: Tree<'static>,
}

/// The circumstances under which a part of a file is expanded.
#[derive(Clone)]
struct Context {
    parsed: Arc<Parsed>,
    scope: Scope,
    origin: Arc<Origin>,
    /// The reason, if an outer condition is false.
    inactive: Option<Arc<Inactivity>>,
    /// The key of the loop item.
    item: Option<Arc<str>>,
    /// The files and modules that are being read, for the check of cycles.
    open: Vec<PathBuf>,
    /// The probes that the conditions of the includes read: each resource comes after them.
    probes: Arc<BTreeSet<String>>,
}

impl Context {
    /// Returns the place of a span, with the uses that led to it.
    fn place(&self, span: Span) -> Place {
        let mut place = self.parsed.file.place(span);
        place.chain = chain_of(&self.origin, self.item.as_deref());
        place
    }

    fn tree(&self) -> &Tree<'static> {
        &self.parsed.tree
    }

    /// Returns the text of a scalar that is not null.
    fn text_of(&self, node: usize) -> Option<&str> {
        self.tree().scalar(node).filter(|it| !it.is_null()).map(|it| it.text.as_ref())
    }

    fn is_null(&self, node: usize) -> bool {
        self.tree().scalar(node).is_some_and(super::scalar::Scalar::is_null)
    }

    /// Returns true inside of a module.
    fn is_module(&self) -> bool {
        !self.origin.instance.is_empty()
    }
}

/// The state of an expansion.
struct Expander<'a> {
    kinds: &'a KindSet,
    problems: &'a mut Problems,
    inputs: Inputs,
    parsed: BTreeMap<PathBuf, Arc<Parsed>>,
    /// The modules by folder; none for one that cannot be used.
    modules: BTreeMap<PathBuf, Option<Arc<modules::Loaded>>>,
    /// The names of all instances.
    instances: HashSet<Arc<str>>,
    variables: Variables,
    facts: Arc<Facts>,
    cache: Cache,
    templates: TemplateCache,
    documents: Vec<Document>,
    used: Used,
    /// The values of the files that were read.
    values: ValueCount,
    is_complete: bool,
    /// True while problems are not reported: no hint is searched for them.
    is_quiet: bool,
    uses: UseRecord,
    /// The declared probes by instance.
    probes: HashMap<Arc<str>, DeclaredProbes>,
    /// The texts of conditions, by source file and node.
    conditions: HashMap<(usize, usize), Arc<str>>,
    /// The comparisons that a warning names: the file, and the offsets of the expression and in it.
    doubted: HashSet<(usize, u32, usize)>,
}

/// The keys of a graph file, and of a file of a module.
const GRAPH_KEYS: [&str; 10] = [
    "graph",
    "comment",
    "vars",
    "vars_files",
    "secrets",
    "include",
    "modules",
    "assert",
    "resources",
    "edges",
];
const MODULE_KEYS: [&str; 9] = [
    "module",
    "comment",
    "params",
    "include",
    "modules",
    "assert",
    "resources",
    "edges",
    "exports",
];

/// Expands graph files. `stored` holds the files and values of an earlier expansion, which replace those of the host.
pub(super) fn expand(
    roots: Vec<SourceFile>,
    stored: Option<Stored>,
    (options, kinds): (&Options, &KindSet),
    problems: &mut Problems,
) -> Expansion {
    let mut inputs = Inputs::new(roots, stored, options);
    if let Some(problem) = inputs.refuse_large() {
        problems.push(problem);
        return Expansion { sources: inputs.sources, ..Expansion::default() };
    }
    let facts = Facts::new(inputs.facts.take(), inputs.probes.take());
    let facts = facts.with_load(inputs.facts_at_load.take());
    let facts = Arc::new(facts.with_unknown(options.unknown_facts.clone()));
    let mut expander = new_expander(inputs, facts, kinds, problems);
    expander.expand_roots();
    let Expander { mut inputs, documents, is_complete, facts, uses, .. } = expander;
    let used = uses.finish(&facts);
    inputs.record_values(&used, facts.probes());
    let sought = inputs.sought.into_iter().collect();
    Expansion { sources: inputs.sources, documents, complete: is_complete, used, sought }
}

/// Creates the state of an expansion that has not begun.
fn new_expander<'a>(
    inputs: Inputs,
    facts: Arc<Facts>,
    kinds: &'a KindSet,
    problems: &'a mut Problems,
) -> Expander<'a> {
    Expander {
        kinds,
        problems,
        inputs,
        parsed: BTreeMap::new(),
        modules: BTreeMap::new(),
        instances: HashSet::new(),
        variables: Variables::default(),
        facts,
        cache: Cache::default(),
        templates: TemplateCache::default(),
        documents: Vec::new(),
        used: Used::default(),
        values: ValueCount::default(),
        is_complete: true,
        is_quiet: false,
        uses: UseRecord::default(),
        probes: HashMap::new(),
        conditions: HashMap::new(),
        doubted: HashSet::new(),
    }
}

impl Expander<'_> {
    /// Returns the context of each graph file that can be parsed.
    fn root_contexts(&mut self) -> Vec<Context> {
        let mut contexts = Vec::new();
        for number in 0..self.inputs.roots {
            let Some(parsed) = self.parse_source(number) else { continue };
            contexts.push(Context {
                open: vec![parsed.file.path.clone()],
                parsed,
                scope: Scope::new(&self.facts, ""),
                origin: Arc::new(Origin::default()),
                inactive: None,
                item: None,
                probes: Arc::default(),
            });
        }
        contexts
    }

    fn expand_roots(&mut self) {
        let contexts = self.root_contexts();
        for context in &contexts {
            self.check_keys(context, &GRAPH_KEYS);
        }
        for context in &contexts {
            self.note_probes(context);
            self.define_variables(context);
        }
        self.define_given_variables();
        let contexts = self.follow_includes(contexts);
        let vars = self.evaluate_variables();
        for mut context in contexts {
            self.see_probes(&mut context);
            context.scope.vars = Arc::clone(&vars);
            self.expand_document(&context);
        }
    }

    /// Parses a graph file or a file of a module; returns `None` after reporting its problems.
    fn parse_source(&mut self, number: usize) -> Option<Arc<Parsed>> {
        self.parse_as(number, Contents::Graph)
    }

    /// Parses a source file; returns `None` after reporting its problems.
    fn parse_as(&mut self, number: usize, contents: Contents) -> Option<Arc<Parsed>> {
        let file = Arc::clone(self.inputs.sources.get(number)?);
        if let Some(known) = self.parsed.get(&file.path) {
            return Some(Arc::clone(known));
        }
        let is_text = super::read::refused_characters::check_characters(&file, self.problems);
        let counted = (contents, &mut self.values);
        let tree = is_text.then(|| parse_counted(&file, counted, self.problems)).flatten();
        let Some(tree) = tree.map(Tree::into_owned) else {
            self.is_complete = false;
            return None;
        };
        let parsed = Arc::new(Parsed { source: number, tree, file: Arc::clone(&file) });
        self.parsed.insert(file.path.clone(), Arc::clone(&parsed));
        Some(parsed)
    }

    /// Reports unknown keys at the top of a file.
    fn check_keys(&mut self, context: &Context, known: &[&str]) {
        let Some(root) = context.tree().root().filter(|root| !context.is_null(*root)) else {
            return;
        };
        if !matches!(context.tree().node(root), Some(Node::Map(_))) {
            let what = "the file should be a map with graph, resources, edges";
            let hint = "an Ansible playbook? docs/guide/from-ansible.md translates its words";
            let is_list = matches!(context.tree().node(root), Some(Node::List(_)));
            let problem = Problem::new(Code::Type, what);
            let problem = if is_list { problem.hint(hint) } else { problem };
            self.report(context, root, problem);
            return;
        }
        let pairs = context.tree().entries(root).to_vec();
        let mut seen = BTreeSet::new();
        for (key, _) in pairs {
            let Some(text) = context.text_of(key).map(str::to_owned) else { continue };
            if !seen.insert(text.clone()) {
                let what = format!("`{}` is given twice in the file", quoted(&text));
                let problem = Problem::new(Code::DuplicateKey, what).hint("keep one of the keys");
                self.report(context, key, problem);
            }
            // The reader knows more about the words of other versions.
            let is_known = known.contains(&text.as_str());
            let is_old = ["collect", "remote", "types"].contains(&text.as_str());
            if !is_known && (!is_old || context.is_module()) {
                let foreign = [("variables", "vars"), ("values", "vars"), ("imports", "include")];
                let foreign = foreign
                    .into_iter()
                    .find(|(foreign, key)| *foreign == text && known.contains(key));
                let near = foreign.map(|(_, key)| key);
                let near = near.or_else(|| nearest(&text, known.iter().copied()));
                let near = near.map(|near| format!("did you mean `{near}`?"));
                let hint = match (context.is_module(), text.as_str()) {
                    (true, "vars" | "vars_files") => {
                        "a module sees its params and facts only: pass the value by `with:`"
                            .to_owned()
                    }
                    (true, "secrets") => "declare a param of type secret".to_owned(),
                    (false, "module") => {
                        "the file is a module: write modules: [{use: FOLDER, as: NAME}] instead of `include`"
                            .to_owned()
                    }
                    _ => near.unwrap_or_else(|| format!("valid keys: {}", known.join(", "))),
                };
                let what = format!("unknown key `{}`", quoted(&text));
                self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
            }
        }
    }

    /// Expands one file in its context, and then the modules that it uses.
    fn expand_document(&mut self, context: &Context) {
        let Some(root) = context.tree().root() else { return };
        let mut document = Document {
            source: context.parsed.source,
            origin: Arc::clone(&context.origin),
            ..Document::default()
        };
        let mut top = Vec::new();
        let mut modules = None;
        for (key, value) in context.tree().entries(root).to_vec() {
            let Some(name) = context.text_of(key).map(str::to_owned) else { continue };
            let span = context.tree().span(key);
            if name == "secrets" {
                self.warn_of_expressions(context, value);
            }
            let copied = match name.as_str() {
                "graph" | "comment" | "secrets" | "collect" | "remote" | "types" => {
                    Some(copy_nodes(context.tree(), value, &mut document.tree))
                }
                "edges" => self.expand_edges(context, value, &mut document.tree),
                "resources" => Some(self.expand_resources(context, value, &mut document)),
                "assert" => {
                    self.check_asserts(context, value);
                    None
                }
                "modules" => {
                    modules = Some(value);
                    None
                }
                _ => None,
            };
            if let Some(copied) = copied {
                let key = document.tree.push_text(name, true, span);
                top.push((key, copied));
            }
        }
        let span = context.tree().span(root);
        let id = document.tree.push(Node::Map(top), span);
        document.tree.set_root(id);
        let children = modules.map(|value| self.expand_modules(context, value, &mut document));
        self.documents.push(document);
        self.documents.extend(children.into_iter().flatten());
    }

    /// Warns of expressions in `secrets`: a name and a path are copied as they are.
    fn warn_of_expressions(&mut self, context: &Context, node: usize) {
        match context.tree().node(node) {
            Some(Node::Scalar(scalar)) if scalar.text.contains("${") => {
                let what = "an expression in `secrets` is not evaluated: the text stays as it is";
                let hint = "write the path out; {credential: NAME} names a file of systemd";
                self.report(context, node, Problem::new(Code::Literal, what).warning().hint(hint));
            }
            Some(Node::List(items)) => {
                for item in items.clone() {
                    self.warn_of_expressions(context, item);
                }
            }
            Some(Node::Map(pairs)) => {
                for (_, value) in pairs.clone() {
                    self.warn_of_expressions(context, value);
                }
            }
            _ => {}
        }
    }

    /// Reports a problem at a node.
    fn report(&mut self, context: &Context, node: usize, problem: Problem) {
        self.report_at(context, context.tree().span(node), problem);
    }

    /// Reports a problem at a span.
    fn report_at(&mut self, context: &Context, span: Span, problem: Problem) {
        if problem.severity == super::problem::Severity::Error {
            self.is_complete = false;
        }
        // The place of a problem that is only counted is not computed.
        let place = (!self.problems.is_full()).then(|| context.place(span));
        self.problems.push(problem.at(place));
    }
}

/// Copies a node and everything below it into another tree.
fn copy_nodes(from: &Tree<'static>, node: usize, into: &mut Tree<'static>) -> usize {
    let span = from.span(node);
    let copy = match from.node(node) {
        Some(Node::Scalar(scalar)) => Node::Scalar(scalar.clone()),
        Some(Node::List(items)) => {
            Node::List(items.iter().map(|item| copy_nodes(from, *item, into)).collect())
        }
        Some(Node::Map(pairs)) => Node::Map(
            pairs
                .iter()
                .map(|(key, value)| (copy_nodes(from, *key, into), copy_nodes(from, *value, into)))
                .collect(),
        ),
        Some(Node::Alias(_)) | None => return into.push_text(String::new(), true, span),
    };
    into.push(copy, span)
}
