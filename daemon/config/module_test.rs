//! The test cases of a module (`steadfast test MODULE_DIR`): parameters and facts give resources, or an error. No host
//! is needed, and nothing runs.

use super::document::Document;
use super::document::parse::parse_counted;
use super::document::tree::{Node, Tree};
use super::document::value_limit::{Contents, ValueCount};
use super::problem::code::Code;
use super::problem::render::Rejected;
use super::problem::{Place, Problem, Problems, quoted};
use super::read::files;
use super::read::refused_characters::check_characters;
use super::scalar::Scalar;
use super::source_file::{SourceFile, whole};
use super::{Options, compile, expand};
use crate::expressions::{Shared, Value};
use crate::nearest_name::nearest;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::KindSet;

/// The keys of a case.
const KEYS: [&str; 5] = ["params", "facts", "resources", "inactive", "error"];
/// The name of the graph that stands for a case.
const GRAPH: &str = "the case";
/// The number of lines of this graph before the parameters.
const LINES_BEFORE_PARAMS: usize = 6;
/// The number of spaces before a parameter in this graph.
const INDENT_OF_PARAMS: usize = 4;
/// The name of the instance under test.
const INSTANCE: &str = "case";

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// The file of the case.
    pub file: PathBuf,
    /// The differences between the expected and the found result; empty if the case passes.
    pub differences: Vec<String>,
}

/// Runs all cases of a module: the files `cases/*.yaml` in its folder, in name order.
///
/// # Errors
/// A [`Problem`] if the folder has no cases.
pub fn test_module(folder: &Path, kinds: &KindSet) -> Result<Vec<CaseResult>, Problem> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if !folder.is_dir() {
        let what = "expected the folder of a module, found none";
        return Err(
            Problem::new(Code::EmptyFolder, what).at(Some(whole(&folder.display().to_string())))
        );
    }
    let mut cases = files::list_folder(&folder.join("cases"));
    cases.retain(|path| files::is_graph(path));
    cases.sort();
    if cases.is_empty() {
        let is_module = files::list_folder(&folder).iter().any(|path| files::is_graph(path));
        let (what, hint) = if is_module {
            let hint = "a case has params, facts, and resources or an error";
            ("the module has no cases: expected files cases/*.yaml", hint)
        } else {
            let hint = "a module is a folder with a file that begins with `module: NAME`";
            ("the folder is no module: it has no .yaml file", hint)
        };
        let at = whole(&folder.display().to_string());
        return Err(Problem::new(Code::EmptyFolder, what).hint(hint).at(Some(at)));
    }
    Ok(cases.into_iter().map(|file| run_case((&folder, file), kinds)).collect())
}

/// Runs one case. A case that is wrong itself fails with its problems, and the other cases run.
fn run_case((folder, file): (&Path, PathBuf), kinds: &KindSet) -> CaseResult {
    let display = file.display().to_string();
    let mut problems = Problems::default();
    let read = read_case(&file, &display, &mut problems);
    let differences = if let Some(case) = read {
        let facts = Some(Arc::new(case.facts.clone()));
        let options = Options { facts, ..Options::new(kinds.clone()) };
        compare_case(&case, &graph_of(folder, &case.json), &options)
    } else {
        let problems = problems.sorted(&[display]);
        let shown = |problem: &Problem| problem.with_source().trim_end().to_owned();
        let mut shown: Vec<String> = problems.list.iter().map(shown).collect();
        shown.extend((problems.more > 0).then(|| format!("{} more problems", problems.more)));
        shown
    };
    CaseResult { file, differences }
}

/// A case that was read.
struct Case {
    json: Json,
    facts: Value,
    source: SourceFile,
    tree: Tree<'static>,
}

impl Case {
    /// Returns a problem of the graph that stands for the case at its place in the case.
    fn locate(&self, mut problem: Problem) -> Problem {
        for place in problem.places.iter_mut().filter(|place| place.file == GRAPH) {
            let number = (place.line as usize).checked_sub(LINES_BEFORE_PARAMS + 1);
            let params = self.tree.root().and_then(|root| self.tree.entry(root, "params"));
            let given = self.json.get("params").and_then(Json::as_object);
            let name = number.and_then(|number| given?.keys().nth(number));
            let param = name.and_then(|name| self.tree.entry(params?.1, name));
            let is_key = place.column as usize <= INDENT_OF_PARAMS + 1;
            let node = param.map(|(key, value)| if is_key { key } else { value });
            let span = node.or_else(|| params.map(|(key, _)| key)).map(|node| self.tree.span(node));
            let found = span.map_or_else(|| self.source.whole(), |span| self.source.place(span));
            *place = Place { label: place.label.take(), chain: Vec::new(), ..found };
        }
        let is_of_host = |hint: &String| hint.starts_with("`steadfast doctor`");
        if problem.hint.as_ref().is_some_and(is_of_host) {
            problem = problem.hint("add it to `facts:` of the case");
        }
        problem
    }

    /// Returns a rejection with the places of the case.
    fn locate_all(&self, rejected: Rejected) -> Rejected {
        let problems = rejected.problems.into_iter().map(|it| self.locate(it)).collect();
        Rejected { problems, ..rejected }
    }
}

/// Reads a case and its facts; `None` after a problem.
fn read_case(path: &Path, display: &str, problems: &mut Problems) -> Option<Case> {
    let source = match files::read_used(path, display, (LARGEST, too_large)) {
        Ok(Some(source)) => source,
        Ok(None) => {
            let problem = Problem::new(Code::Unreadable, "no such file");
            problems.push(problem.at(Some(whole(display))));
            return None;
        }
        Err(problem) => {
            problems.push(problem);
            return None;
        }
    };
    if !check_characters(&source, problems) {
        return None;
    }
    let values = (Contents::Variables, &mut ValueCount::default());
    let tree = parse_counted(&source, values, problems)?.into_owned();
    check_case((&source, &tree), problems);
    if problems.errors() > 0 {
        return None;
    }
    let json = tree.root().map_or(Json::Null, |root| json_of(&tree, root));
    let facts = match json.get("facts") {
        None | Some(Json::Null) => Ok(Value::Map(Shared::default())),
        Some(facts) => checked_facts(facts),
    };
    match facts {
        Ok(facts) => Some(Case { json, facts, source, tree }),
        Err(wrong) => {
            let at = tree.root().and_then(|root| tree.entry(root, "facts"));
            for what in wrong {
                let place = at.map(|(key, _)| source.place(tree.span(key)));
                let hint = "`steadfast facts` lists the facts with their types";
                problems.push(Problem::new(Code::Type, what).hint(hint).at(place));
            }
            None
        }
    }
}

/// Returns the facts of a case, or their problems.
fn checked_facts(facts: &Json) -> Result<Value, Vec<String>> {
    let wrong = |error: &dyn std::fmt::Display| vec![format!("the facts cannot be used: {error}")];
    match Value::from_json(facts.clone()).map_err(|error| wrong(&error))? {
        Value::Map(entries) => crate::facts::check_facts(entries.into_inner()),
        other => Err(wrong(&format!("expected a map, found {}", other.value_type()))),
    }
}

/// The largest file of a case, in bytes.
const LARGEST: u64 = 4 << 20;

/// Returns the problem of a case that is too large.
fn too_large(display: &str) -> Problem {
    let what = format!("the case is larger than {} MiB", LARGEST >> 20);
    Problem::new(Code::TooLarge, what).at(Some(whole(display)))
}

/// Reports the unknown keys of a case, and the values of a wrong type.
fn check_case((source, tree): (&SourceFile, &Tree<'static>), problems: &mut Problems) {
    let Some(root) = tree.root() else {
        let what = "the case is empty: it needs resources or an error";
        let hint = format!("valid keys: {}", KEYS.join(", "));
        problems.push(Problem::new(Code::Type, what).hint(hint).at(Some(source.whole())));
        return;
    };
    let mut say = |node: usize, problem: Problem| {
        problems.push(problem.at(Some(source.place(tree.span(node)))));
    };
    let Some(Node::Map(pairs)) = tree.node(root) else {
        say(root, Problem::new(Code::Type, "a case should be a map with params and resources"));
        return;
    };
    let mut seen = BTreeSet::new();
    for (key, value) in pairs {
        let name = tree.scalar(*key).map_or("", |key| key.text.as_ref());
        if !seen.insert(name) {
            let what = format!("`{}` is given twice in a case", quoted(name));
            say(*key, Problem::new(Code::DuplicateKey, what).hint("keep one of the keys"));
        }
        let node = tree.node(*value);
        let is_null = tree.scalar(*value).is_some_and(Scalar::is_null);
        let (is_right, wants) = match name {
            "params" => (matches!(node, Some(Node::Map(_))), "a map: {NAME: VALUE}"),
            "facts" => (matches!(node, Some(Node::Map(_))), "a map: {os: {id: debian}}"),
            "resources" => {
                (matches!(node, Some(Node::Map(_))), "a map: {\"kind[name]\": {FIELD: VALUE}}")
            }
            "inactive" => (matches!(node, Some(Node::List(_))), "a list: [\"kind[name]\"]"),
            "error" => {
                let text = tree.scalar(*value).and_then(expand::values::scalar_value);
                (matches!(text, Some(Value::Text(_))), "a part of the message, as a string")
            }
            _ => {
                let near = nearest(name, KEYS).map(|near| format!("did you mean `{near}`?"));
                let hint = near.unwrap_or_else(|| format!("valid keys: {}", KEYS.join(", ")));
                let what = format!("unknown key `{}` in a case", quoted(name));
                say(*key, Problem::new(Code::UnknownKey, what).hint(hint));
                continue;
            }
        };
        let is_absent = is_null && name != "error";
        if !is_right && !is_absent {
            let what = format!("`{name}` of a case should be {wants}");
            say(*value, Problem::new(Code::Type, what));
        }
        for (resource, fields) in tree.entries(*value).iter().filter(|_| name == "resources") {
            let is_null = tree.scalar(*fields).is_some_and(Scalar::is_null);
            if !is_null && !matches!(tree.node(*fields), Some(Node::Map(_))) {
                let name = tree.scalar(*resource).map_or("", |key| key.text.as_ref());
                let what = format!("the fields of `{}` should be a map", quoted(name));
                let hint = "write {} for any fields, or {FIELD: VALUE}";
                say(*fields, Problem::new(Code::Type, what).hint(hint));
            }
        }
    }
}

/// Returns a graph that uses the module once, with each parameter in a line of its own. JSON is YAML.
fn graph_of(folder: &Path, case: &Json) -> String {
    let params = case.get("params").filter(|params| !params.is_null()).cloned();
    let params = params.unwrap_or_else(|| Json::Object(serde_json::Map::new()));
    let secret = |value: &Json| value.get("secret").and_then(Json::as_str).map(str::to_owned);
    let secrets = params.as_object().into_iter().flatten().filter_map(|(_, value)| secret(value));
    let secrets: serde_json::Map<String, Json> =
        secrets.map(|name| (name, serde_json::json!({"file": "/dev/null"}))).collect();
    let (folder, secrets) = (Json::from(folder.to_string_lossy()), Json::Object(secrets));
    let mut graph = format!(
        "graph: test\nsecrets: {secrets}\nmodules:\n- use: {folder}\n  as: {INSTANCE}\n  with:"
    );
    let given = params.as_object().filter(|given| !given.is_empty());
    match given {
        None => graph.push_str(&format!(" {params}\n")),
        Some(given) => {
            graph.push('\n');
            for (name, value) in given {
                let name = Json::from(name.as_str());
                graph.push_str(&format!("{:INDENT_OF_PARAMS$}{name}: {value}\n", ""));
            }
        }
    }
    graph
}

/// Returns the differences between the expected and the found result.
fn compare_case(case: &Case, graph: &str, options: &Options) -> Vec<String> {
    let source =
        || SourceFile::new(GRAPH, PathBuf::from("-"), PathBuf::from("/"), graph.to_owned());
    let loaded = compile((vec![source()], None), Problems::default(), options);
    let loaded = loaded.map_err(|rejected| case.locate_all(rejected));
    let case = &case.json;
    let loaded = match (loaded, case.get("error").and_then(Json::as_str)) {
        (Ok(_), Some(error)) => return vec![format!("expected the error \"{error}\", found none")],
        (Err(rejected), Some(error)) => {
            let found = rejected.to_string();
            let is_met = found.contains(error);
            return if is_met {
                Vec::new()
            } else {
                vec![format!("expected \"{error}\", found {found}")]
            };
        }
        (Err(rejected), None) => return vec![rejected.with_source()],
        (Ok(loaded), None) => loaded,
    };
    let mut differences = Vec::new();
    let own = |identity: &str| {
        identity
            .strip_prefix(INSTANCE)
            .and_then(|it| it.strip_prefix('/'))
            .unwrap_or(identity)
            .to_owned()
    };
    if let Some(expected) = case.get("inactive").and_then(Json::as_array) {
        let expected: Vec<String> =
            expected.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect();
        let found: Vec<String> = loaded.inactive.iter().map(|it| own(&it.identity)).collect();
        differences.extend(compare_names("inactive", &expected, &found));
    }
    let Some(expected) = case.get("resources").and_then(Json::as_object) else {
        return differences;
    };
    let found: Vec<String> = loaded.vertices.iter().map(|it| own(&it.identity)).collect();
    let names: Vec<String> = expected.keys().cloned().collect();
    differences.extend(compare_names("resources", &names, &found));
    let mut problems = Problems::default();
    let expansion = expand::expand(vec![source()], None, (options, &options.kinds), &mut problems);
    let fields = expanded_fields(&expansion.documents);
    for (identity, expected) in expected {
        let Some(found) = fields.get(identity) else { continue };
        for (field, expected) in expected.as_object().into_iter().flatten() {
            let found = found.get(field).unwrap_or(&Json::Null);
            if found != expected {
                let what = format!("{identity}: `{field}` is {found}, expected {expected}");
                differences.push(what);
            }
        }
    }
    differences
}

fn compare_names(what: &str, expected: &[String], found: &[String]) -> Vec<String> {
    let missing = expected.iter().filter(|name| !found.contains(name));
    let missing = missing.map(|name| format!("{what}: {name} is missing"));
    let more = found.iter().filter(|name| !expected.contains(name));
    missing.chain(more.map(|name| format!("{what}: {name} is not expected"))).collect()
}

/// Returns the fields of all expanded resources, by identity within the module.
fn expanded_fields(documents: &[Document]) -> BTreeMap<String, Json> {
    let mut all = BTreeMap::new();
    for document in documents {
        let prefix = document.origin.prefix();
        let Some(inner) = prefix.strip_prefix(INSTANCE).and_then(|it| it.strip_prefix('/')) else {
            continue;
        };
        let tree = &document.tree;
        let resources = tree.root().and_then(|root| tree.entry(root, "resources"));
        for (kind, list) in resources.map_or(&[][..], |(_, node)| tree.entries(node)) {
            let kind = tree.scalar(*kind).map_or("", |it| it.text.as_ref());
            let Some(Node::List(items)) = tree.node(*list) else { continue };
            for item in items {
                let fields = json_of(tree, *item);
                let name = fields.get("name").and_then(Json::as_str).or_else(|| fields.as_str());
                let identity = format!("{inner}{kind}[{}]", name.unwrap_or_default());
                all.insert(identity, fields);
            }
        }
    }
    all
}

/// Converts a node to JSON.
fn json_of(tree: &Tree<'static>, node: usize) -> Json {
    match tree.node(node) {
        Some(Node::Scalar(scalar)) => match expand::values::scalar_value(scalar) {
            Some(value) => serde_json::to_value(value).unwrap_or(Json::Null),
            None => Json::Null,
        },
        Some(Node::List(items)) => items.iter().map(|item| json_of(tree, *item)).collect(),
        Some(Node::Map(pairs)) => {
            let key =
                |at: usize| tree.scalar(at).map_or_else(String::new, |it| it.text.to_string());
            let entries = pairs.iter().map(|(at, value)| (key(*at), json_of(tree, *value)));
            Json::Object(entries.collect())
        }
        Some(Node::Alias(_)) | None => Json::Null,
    }
}
