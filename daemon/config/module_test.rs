//! The test cases of a module (`steadfast test MODULE_DIR`): parameters and facts give resources, or an error. No host
//! is needed, and nothing runs.

use super::document::Document;
use super::document::tree::{Node, Tree};
use super::problem::code::Code;
use super::problem::{Problem, Problems, quoted};
use super::read::files;
use super::source_file::{SourceFile, whole};
use super::{Options, compile, expand};
use crate::expressions::{Shared, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::KindSet;

/// The keys of a case.
const KEYS: [&str; 5] = ["params", "facts", "resources", "inactive", "error"];
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
/// A [`Problem`] if the folder has no cases, or a case cannot be read.
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
        let what = "the module has no cases: expected files cases/*.yaml in its folder";
        let hint = "a case has params, facts, and resources or an error";
        let at = whole(&folder.display().to_string());
        return Err(Problem::new(Code::EmptyFolder, what).hint(hint).at(Some(at)));
    }
    cases.into_iter().map(|file| run_case((&folder, file), kinds)).collect()
}

fn run_case((folder, file): (&Path, PathBuf), kinds: &KindSet) -> Result<CaseResult, Problem> {
    let display = file.display().to_string();
    let wrong = |what: String| Problem::new(Code::Type, what).at(Some(whole(&display)));
    let source = files::read_used(&file, &display, (files::LARGEST, files::oversized))?;
    let source = source.ok_or_else(|| wrong("no such file".to_owned()))?;
    let case: Json = serde_yaml::from_str(&source.text)
        .map_err(|error| wrong(format!("the case is not valid YAML: {error}")))?;
    let Json::Object(entries) = &case else {
        return Err(wrong("a case should be a map".to_owned()));
    };
    if let Some(unknown) = entries.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let what = format!("unknown key `{}` in a case", quoted(unknown));
        return Err(wrong(what).hint(format!("valid keys: {}", KEYS.join(", "))));
    }
    let facts = match case.get("facts") {
        Some(facts) => Value::from_json(facts.clone())
            .map_err(|error| wrong(format!("the facts cannot be used: {error}")))?,
        None => Value::Map(Shared::default()),
    };
    let options = Options { facts: Some(Arc::new(facts)), ..Options::new(kinds.clone()) };
    let differences = compare_case(&case, &graph_of(folder, &case), &options);
    Ok(CaseResult { file, differences })
}

/// Returns a graph that uses the module once. JSON is YAML.
fn graph_of(folder: &Path, case: &Json) -> String {
    let params =
        case.get("params").cloned().unwrap_or_else(|| Json::Object(serde_json::Map::new()));
    let secret = |value: &Json| value.get("secret").and_then(Json::as_str).map(str::to_owned);
    let secrets = params.as_object().into_iter().flatten().filter_map(|(_, value)| secret(value));
    let secrets: serde_json::Map<String, Json> =
        secrets.map(|name| (name, serde_json::json!({"file": "/dev/null"}))).collect();
    let graph = serde_json::json!({
        "graph": "test",
        "secrets": secrets,
        "modules": [{"use": folder, "as": INSTANCE, "with": params}],
    });
    graph.to_string()
}

/// Returns the differences between the expected and the found result.
fn compare_case(case: &Json, graph: &str, options: &Options) -> Vec<String> {
    let source =
        || SourceFile::new("the case", PathBuf::from("-"), PathBuf::from("/"), graph.to_owned());
    let loaded = compile((vec![source()], None), Problems::default(), options);
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
