//! The page of a module (`steadfast explain MODULE_DIR`): its declarations, without a use.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::modules::Loaded;
use crate::config::expand::values::shown;
use crate::config::expand::{Expander, Facts, Inputs, new_expander};
use crate::config::problem::Problems;
use crate::config::read::files;
use crate::config::source_file::SourceFile;
use crate::config::{Options, Rejected};
use crate::expressions::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::KindSet;

/// The declarations of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModulePage {
    /// The name (`module:`).
    pub name: String,
    /// The comment (`comment:`).
    pub comment: Option<String>,
    /// The parameters, by name.
    pub params: Vec<ModuleParam>,
    /// The names of the exports, each with its resource.
    pub exports: Vec<(String, String)>,
    /// The resources, in the order written.
    pub resources: Vec<ModuleResource>,
    /// The instances of other modules, each with the folder.
    pub modules: Vec<(String, String)>,
    /// The included files, as written.
    pub includes: Vec<String>,
}

/// A parameter of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleParam {
    /// The name.
    pub name: String,
    /// The type, such as `int` or `list of string`.
    pub value_type: String,
    /// The default, as it is written in JSON.
    pub default: Option<String>,
    /// True if each use must give a value.
    pub is_required: bool,
    /// The limits, each in words.
    pub limits: Vec<String>,
    /// The description (`doc:`).
    pub doc: Option<String>,
}

/// A resource of a module, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleResource {
    /// The identity within the module; expressions in the name stay.
    pub identity: String,
    /// The condition and the loop.
    pub terms: Vec<String>,
}

/// Returns the folder of a module, if a path is the folder or a file of one: a file with `module:` at its top.
#[must_use]
pub fn module_folder(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let is_part = |file: &PathBuf| {
        let source = files::read_used(file, "", (files::LARGEST, files::oversized)).ok().flatten();
        source.is_some_and(|source| source.text.lines().any(|line| line.starts_with("module:")))
    };
    if !path.is_dir() {
        return is_part(&path).then(|| path.parent().map(Path::to_owned)).flatten();
    }
    let mut all = files::list_folder(&path).into_iter().filter(|file| files::is_graph(file));
    all.any(|file| is_part(&file)).then_some(path)
}

/// Reads the declarations of a module.
///
/// # Errors
/// [`Rejected`] if the folder is no module, or a declaration is wrong.
pub fn describe_module(folder: &Path, kinds: &KindSet) -> Result<ModulePage, Rejected> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let graph = serde_json::json!({"graph": "page", "modules": [{"use": folder, "as": "module"}]});
    let source =
        SourceFile::new("the graph", PathBuf::from("-"), PathBuf::from("/"), graph.to_string());
    let options = Options::default();
    let mut problems = Problems::default();
    let mut inputs = Inputs::new(vec![source], None, &options);
    let facts = Arc::new(Facts::new(inputs.facts.take(), inputs.probes.take()));
    let mut expander = new_expander(inputs, facts, kinds, &mut problems);
    let loaded = expander.load_only_module();
    if problems.errors() > 0 {
        return Err(Rejected::of(problems));
    }
    Ok(loaded.map(|loaded| page_of(&loaded)).unwrap_or_default())
}

impl Expander<'_> {
    /// Loads the one module that the graph uses.
    fn load_only_module(&mut self) -> Option<Arc<Loaded>> {
        let parsed = self.parse_source(0)?;
        let context = self.context_of(parsed);
        let tree = context.tree();
        let (_, uses) = tree.entry(tree.root()?, "modules")?;
        let Some(Node::List(items)) = tree.node(uses) else { return None };
        let (_, folder) = tree.entry(*items.first()?, "use")?;
        self.load_module(&context, folder)
    }
}

fn page_of(loaded: &Loaded) -> ModulePage {
    let module = &loaded.module;
    let params = module.params.iter().map(|(name, declaration)| ModuleParam {
        name: name.clone(),
        value_type: declaration.value_type.word(),
        default: declaration.default.as_ref().map(written_value),
        is_required: !declaration.may_be_absent(),
        limits: declaration.limits(),
        doc: declaration.doc.clone(),
    });
    let mut page =
        ModulePage { name: module.name.clone(), params: params.collect(), ..ModulePage::default() };
    for parsed in &module.files {
        add_file(&mut page, &parsed.tree);
    }
    page
}

fn written_value(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| shown(value))
}

/// Adds the declarations of one file.
fn add_file(page: &mut ModulePage, tree: &Tree<'static>) {
    let Some(root) = tree.root() else { return };
    for (key, value) in tree.entries(root) {
        match text_of(tree, *key) {
            "comment" => page.comment = Some(text_of(tree, *value).to_owned()),
            "exports" => page.exports.extend(exports_of(tree, *value)),
            "include" => page.includes.extend(items_of(tree, *value).map(|it| written(tree, it))),
            "modules" => page.modules.extend(items_of(tree, *value).map(|it| use_of(tree, it))),
            "resources" => add_resources(page, tree, *value),
            _ => {}
        }
    }
}

fn exports_of(tree: &Tree<'static>, node: usize) -> Vec<(String, String)> {
    let pairs = tree.entries(node);
    if pairs.is_empty() {
        return items_of(tree, node).map(|it| (written(tree, it), String::new())).collect();
    }
    pairs.iter().map(|(key, value)| (written(tree, *key), written(tree, *value))).collect()
}

/// Returns the instance and the folder of a use of another module.
fn use_of(tree: &Tree<'static>, item: usize) -> (String, String) {
    let field = |name: &str| tree.entry(item, name).map(|(_, node)| written(tree, node));
    let name = field("as").unwrap_or_else(|| "one for each item".to_owned());
    let when = field("when").map(|when| format!(", when {when}")).unwrap_or_default();
    (name, format!("{}{when}", field("use").unwrap_or_default()))
}

fn add_resources(page: &mut ModulePage, tree: &Tree<'static>, node: usize) {
    for (kind, list) in tree.entries(node) {
        let kind = text_of(tree, *kind);
        for item in items_of(tree, *list) {
            let field = |name: &str| tree.entry(item, name).map(|(_, node)| written(tree, node));
            let plain = tree.scalar(item).map(|scalar| scalar.text.to_string());
            let looped = field("for_each").map(|of| format!("for each of {of}"));
            let name = plain.or_else(|| field("name")).or_else(|| field("path"));
            let name = name.unwrap_or_else(|| "${item}".to_owned());
            let when = field("when").map(|when| format!("when {when}"));
            let terms = looped.into_iter().chain(when).collect();
            page.resources.push(ModuleResource { identity: format!("{kind}[{name}]"), terms });
        }
    }
}

/// Returns the items of a list; another node is its only item, and null has none.
fn items_of(tree: &Tree<'static>, node: usize) -> impl Iterator<Item = usize> {
    let items = match tree.node(node) {
        Some(Node::List(items)) => items.clone(),
        Some(Node::Scalar(scalar)) if scalar.is_null() => Vec::new(),
        _ => vec![node],
    };
    items.into_iter()
}

fn text_of<'t>(tree: &'t Tree<'static>, node: usize) -> &'t str {
    tree.scalar(node).map_or("", |scalar| scalar.text.as_ref())
}

/// Returns a node as it is written, in one line.
fn written(tree: &Tree<'static>, node: usize) -> String {
    match tree.node(node) {
        Some(Node::Scalar(scalar)) => scalar.text.to_string(),
        Some(Node::List(items)) => {
            let items: Vec<String> = items.iter().map(|item| written(tree, *item)).collect();
            format!("[{}]", items.join(", "))
        }
        Some(Node::Map(pairs)) => {
            let pair = |(key, value): &(usize, usize)| {
                format!("{}: {}", written(tree, *key), written(tree, *value))
            };
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Some(Node::Alias(_)) | None => String::new(),
    }
}
