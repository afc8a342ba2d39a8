//! The JSON Schema of graph files: an independent validator (python3-jsonschema) agrees with the reader.

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use steadfast::config::json_schema;
use steadfast_resources::KindSet;

/// Reads `{schema, documents}` and prints the number and the first problem of each refused document.
const VALIDATOR: &str = r"
import json, sys
from jsonschema import Draft7Validator
given = json.load(sys.stdin)
Draft7Validator.check_schema(given['schema'])
validator = Draft7Validator(given['schema'])
for number, document in enumerate(given['documents']):
    for error in validator.iter_errors(document):
        print(number, list(error.absolute_path), error.message[:200].replace('\n', ' '))
        break
";

/// Returns the problem of each document; `None` for an accepted one. The validator is python3-jsonschema of Debian.
fn validate(documents: &[Value]) -> Vec<Option<String>> {
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let input = json!({"schema": json_schema(&KindSet::of_this_build()), "documents": documents})
        .to_string();
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("the validator reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the validator ends");
    assert!(output.status.success(), "the schema is no draft-07 schema");
    let mut problems = vec![None; documents.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (number, problem) = line.split_once(' ').expect("a number and a problem");
        problems[number.parse::<usize>().expect("a number")] = Some(problem.to_owned());
    }
    problems
}

/// Returns the graph files below a folder with their documents.
fn documents_below(folder: &Path) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // The cases of a module are no graphs.
        if path.ends_with("cases") {
            continue;
        }
        if path.is_dir() {
            all.extend(documents_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).expect("a text");
            let document: Value = serde_json::to_value(
                serde_yaml::from_str::<serde_yaml::Value>(&text).expect("YAML"),
            )
            .expect("JSON");
            // Other files, such as settings (whose key `graph` is a path) and values, are no graphs.
            let is_graph = ["resources", "module", "modules", "collect"]
                .iter()
                .any(|key| document.get(key).is_some());
            if is_graph {
                all.push((path.display().to_string(), document));
            }
        }
    }
    all
}

#[test]
fn the_validator_accepts_every_example() {
    let mut all = documents_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
    assert!(all.len() > 30, "{}", all.len());
    for spec in KindSet::of_this_build().specs() {
        let document: serde_yaml::Value = serde_yaml::from_str(spec.example).expect("YAML");
        let document = serde_json::to_value(document).expect("JSON");
        all.push((format!("the example of {}", spec.kind), json!({"resources": document})));
    }
    let documents: Vec<Value> = all.iter().map(|(_, document)| document.clone()).collect();
    let problems = validate(&documents);
    let refused: Vec<String> = all
        .iter()
        .zip(problems)
        .filter_map(|((name, _), problem)| Some(format!("{name}: {}", problem?)))
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

/// Part 4: the first line of each example names the schema, so that an editor checks it.
#[test]
fn each_example_names_the_schema() {
    for (name, _) in documents_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")) {
        if name.contains("/cases/") {
            continue;
        }
        let text = std::fs::read_to_string(&name).expect("a text");
        let line = text.lines().next().unwrap_or_default();
        let path = line.strip_prefix("# yaml-language-server: $schema=");
        let path = path.unwrap_or_else(|| panic!("{name}: expected a modeline, found `{line}`"));
        let folder = Path::new(&name).parent().expect("a folder");
        assert!(folder.join(path).is_file(), "{name}: {path}");
    }
}

/// Part 4: the schema and the reader agree about the keys of the language.
#[test]
fn the_schema_and_the_reader_agree() {
    let module = |params: Value| json!({"module": "m", "params": params});
    let graph = |key: &str, value: Value| {
        let mut graph = json!({"graph": "g", "resources": {"noop": ["a"]}});
        graph[key] = value;
        graph
    };
    let resource = |fields: Value| {
        let mut file = json!({"name": "/etc/a"});
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        graph("resources", json!({"file": [file]}))
    };
    let secret = |field: Value| {
        let mut graph = resource(json!({"content": field}));
        graph["secrets"] = json!({"s": {"file": "/etc/s"}});
        graph["resources"]["value"] = json!([{"name": "v", "text": "x"}]);
        graph
    };
    let received = |source: Value| {
        let mut graph = resource(json!({"recv": {"content": source}}));
        graph["resources"]["value"] = json!([{"name": "v", "text": "x"}]);
        graph
    };
    let table = [
        (true, graph("include", json!("more.yaml"))),
        (true, graph("include", json!(["more.yaml", {"file": "more.yaml", "when": "false"}]))),
        (true, graph("include", json!({"file": "more.yaml", "when": true}))),
        (false, graph("include", json!([{"include": "more.yaml"}]))),
        (false, graph("include", json!([{"when": "true"}]))),
        (true, graph("assert", json!([{"that": "true", "message": "x"}]))),
        (false, graph("assert", json!([{"that": "true"}]))),
        (false, graph("assert", json!([{"message": "x"}]))),
        (true, resource(json!({"content": "x", "when": [true, "1 > 0"]}))),
        (false, resource(json!({"content": "x", "when": "${1 > 0}"}))),
        (false, resource(json!({"content": "x", "when": null}))),
        (true, resource(json!({"content": "x", "for_each": {"in": ["/a"]}}))),
        (false, resource(json!({"content": "x", "for_each": {"key": "a"}}))),
        (false, resource(json!({"content": "x", "for_each": {"in": ["a"], "of": "a"}}))),
        (false, resource(json!({"content": "x", "for_each": "${vars.x}"}))),
        (true, secret(json!({"secret": "s"}))),
        (false, secret(json!({"from": "value[v]", "key": "text"}))),
        (true, received(json!("value[v].text"))),
        (true, received(json!({"from": "value[v]", "key": "text", "default": "x"}))),
        (false, received(json!({"template": "${x}", "values": {"x": "value[v].text"}}))),
        (true, resource(json!({"template": {"text": "x"}}))),
        (true, module(json!({"a": {"type": "list of string", "min": 1, "required": false}}))),
        (false, module(json!({"a": {"type": "list", "items": "string"}}))),
        (false, module(json!({"a": "string"}))),
        (false, module(json!({"a": null}))),
        (false, module(json!({"a": {"default": 1}}))),
        (false, module(json!({"a": {"type": "int", "min": "abc"}}))),
        (false, module(json!({"a": {"type": "string", "required": "maybe"}}))),
        (true, json!({"module": "m", "exports": ["noop[a]"], "resources": {"noop": ["a"]}})),
        (true, json!({"module": "m", "exports": {"b": "noop[a]"}, "resources": {"noop": ["a"]}})),
    ];
    let documents: Vec<Value> = table.iter().map(|(_, document)| document.clone()).collect();
    let of_schema = validate(&documents);
    for ((is_right, document), of_schema) in table.iter().zip(of_schema) {
        let text = document.to_string();
        let uses = "{graph: g, modules: [{use: m, as: x}]}";
        let is_module = document.get("module").is_some();
        let files = crate::language::Tree::new(&[
            ("web.yaml", if is_module { uses } else { &text }),
            ("m/m.yaml", &text),
            ("more.yaml", "resources: {noop: [more]}"),
        ]);
        let of_reader = files.load(&crate::language::with_facts());
        assert_eq!(of_reader.is_ok(), *is_right, "{document}: {:?}", of_reader.err());
        assert_eq!(of_schema.is_none(), *is_right, "{document}: {of_schema:?}");
    }
}

#[test]
fn the_validator_accepts_the_language() {
    let right = [
        json!({"graph": "a", "vars": {"x": 1}, "vars_files": ["a.yaml", {"file": "b.yaml", "optional": true}]}),
        json!({"resources": {"file": [{"name": "${vars.x}", "mode": "${vars.mode}", "when": "vars.on"}]}}),
        json!({"resources": {"pkg": ["nginx", {"for_each": "vars.names"}]}}),
        json!({"resources": {"svc": [{"name": "a", "startup": "${\"a\" if vars.x else \"b\"}", "after": ["user[*]"]}]}}),
        json!({"module": "site", "params": {"port": {"type": "int", "min": 1}}, "exports": {"conf": "file[a]"}}),
        json!({"modules": [{"use": "m", "as": "a", "with": {"b": [1]}, "notify": ["svc[a]"]}]}),
        json!({"assert": [{"that": "vars.x > 0", "message": "no"}], "include": ["a.yaml"]}),
        json!({"collect": [{"kind": "line", "from": ["web*"], "fields": "line", "set": {"path": "/etc/x"}, "meta": {"noop": true}}]}),
        json!({"collect": [{"kind": "file", "fields": ["path", "content"], "below": "/etc/x"}, {"kind": "file", "pattern": "/etc/y"}]}),
        json!({"resources": {"line": [{"name": "a", "export": true}, {"name": "b", "export": {"apply": true}}]}}),
        json!({"resources": {"file": [{"name": "a", "recv": {"content": {"world": "release"}}}]}}),
    ];
    let problems = validate(&right);
    assert_eq!(problems, vec![None; right.len()]);
}

#[test]
fn the_validator_refuses_wrong_graphs() {
    let wrong = [
        json!({"graphs": "a"}),
        json!({"resources": {"fiel": [{"name": "a"}]}}),
        json!({"resources": {"file": [{"nmae": "a"}]}}),
        json!({"resources": {"file": [{"path": "/a"}]}}),
        json!({"resources": {"file": {"name": "a"}}}),
        json!({"resources": {"file": [{"name": "a", "state": "presnt"}]}}),
        json!({"resources": {"file": [{"name": "a", "meta": {"retry": "many"}}]}}),
        json!({"resources": {"file": [{"name": "a", "meta": {"timeout": "soon"}}]}}),
        json!({"resources": {"file": [{"name": "a", "when": "${vars.x}"}]}}),
        json!({"resources": {"file": [{"name": "a", "meta": {"noop": "${vars.x"}}]}}),
        json!({"modules": [{"as": "a"}]}),
        json!({"params": {"a": {"type": "number"}}}),
        json!({"edges": [{"from": "file[a]"}]}),
        json!({"collect": {"kind": "line"}}),
        json!({"collect": [{"from": ["web*"]}]}),
        json!({"collect": [{"kind": "lien"}]}),
        json!({"collect": [{"kind": "line", "filter": "web*"}]}),
        json!({"resources": {"line": [{"name": "a", "export": "web1"}]}}),
        json!([]),
    ];
    let problems = validate(&wrong);
    for (document, problem) in wrong.iter().zip(problems) {
        assert!(problem.is_some(), "accepted: {document}");
    }
}

#[test]
fn the_schema_names_each_kind_and_field() {
    let schema = json_schema(&KindSet::of_this_build());
    for spec in KindSet::of_this_build().specs() {
        let name = format!("kind_{}", spec.kind.replace(':', "_"));
        let properties = &schema["definitions"][&name]["properties"];
        for field in spec.fields {
            assert!(properties.get(field.name).is_some(), "{}.{}", spec.kind, field.name);
        }
    }
}
