//! The law of `graph --expanded`: the printed graph is a graph, and it is the same one.

use crate::language::{Tree, edges, example, with_facts};
use std::path::{Path, PathBuf};
use steadfast::config::{self, LoadedGraph};

/// Returns all that makes two graphs the same: resources with their definitions, edges, inactive resources.
fn content(loaded: &LoadedGraph) -> [Vec<String>; 3] {
    let vertex = |vertex: &config::Vertex| {
        format!("{} {} {:?} {:?}", vertex.identity, vertex.definition, vertex.meta, vertex.labels)
    };
    let mut vertices: Vec<String> = loaded.vertices.iter().map(vertex).collect();
    let mut edges: Vec<String> = edges(loaded).iter().map(|edge| format!("{edge:?}")).collect();
    let inactive = |it: &config::Inactive| format!("{} {it} {:?}", it.identity, it.condition_at);
    let inactive = loaded.inactive.iter().map(inactive).collect();
    vertices.sort_unstable();
    edges.sort_unstable();
    [vertices, edges, inactive]
}

/// Loads a graph, prints it expanded, and loads the printed text from another folder. Returns false for files that
/// are no valid graph for the facts of the tests.
#[track_caller]
fn survives(path: &Path) -> bool {
    let paths = [PathBuf::from(path)];
    let Ok(loaded) = config::load(&paths, &with_facts()) else { return false };
    let text = config::expanded_text(&paths, &with_facts()).expect("an expanded text");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("expanded.yaml");
    std::fs::write(&file, &text).expect("written");
    let again = match config::load(&[file], &with_facts()) {
        Ok(again) => again,
        Err(rejected) => panic!("{}: {}\n{text}", path.display(), rejected.with_source()),
    };
    assert_eq!(content(&again), content(&loaded), "{}\n{text}", path.display());
    assert_eq!(again.name, loaded.name);
    assert_eq!(text.matches("\nresources:").count(), 1, "{text}");
    true
}

fn yaml_below(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            yaml_below(&path, all);
        } else if path.extension().is_some_and(|it| it == "yaml") {
            all.push(path);
        }
    }
}

#[test]
fn the_expanded_examples_are_the_same_graphs() {
    let mut all = Vec::new();
    yaml_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), &mut all);
    let count = all.iter().filter(|path| survives(path)).count();
    assert!(count >= 10, "{count} of {}", all.len());
}

#[test]
fn the_expanded_language_is_the_same_graph() {
    let tree = Tree::new(&example());
    assert!(survives(&tree.path("web.yaml")));
    for text in [
        "vars: {a: 1, b: 2}\nresources:\n  noop:\n  - {name: a, when: vars.a > vars.b}\n  - {name: b, labels: {l: \"${vars.a}\"}}\n  - c\n",
        "resources:\n  file:\n  - {name: /a, content: 'x $${y} ${z}', mode: 0644}\n  - name: /b\n    content: |\n      a\n\n        b # c\n  exec: [{name: e, cmd: /bin/true}]\n  svc: [{name: s, state: running, after: ['exec[e]']}]\n",
        "secrets: {s: {file: /s}}\nresources:\n  file:\n  - {name: /a, template: {text: \"p={{ p }}\\n\"}, values: {p: {secret: s}}}\n",
        "resources:\n  noop:\n  - {name: \"a: b\"}\n  - {name: \"1\"}\n  - {name: \"#x\"}\n  - {name: 'true'}\nedges:\n- {from: \"noop[1]\", to: \"noop[true]\"}\n",
        "include: more.yaml\nmodules:\n- {use: m, as: one, after: [\"noop[first]\"], notify: [\"test[last]\"]}\n- {use: m, for_each: [x, y], when: \"item != 'y'\"}\nresources:\n  noop: [{name: first}]\n  test: [{name: last, after: [\"one/noop[out]\"]}]\n",
    ] {
        let module = "module: m\nresources:\n  noop:\n  - {name: in}\n  - {name: out, after: [\"noop[in]\"]}\n  file: [{name: f, path: \"/srv/f\", state: absent, when: false}]\nexports: {out: \"noop[out]\"}\n";
        let tree = Tree::new(&[
            ("web.yaml", &format!("graph: g\n{text}")),
            ("more.yaml", "resources: {noop: [{name: included}]}\n"),
            ("m/m.yaml", module),
        ]);
        assert!(survives(&tree.path("web.yaml")), "{text}");
    }
}
