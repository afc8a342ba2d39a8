//! The tests of graph files: accepted graphs, rejected graphs, and their messages.
//!
//! Nothing here runs a resource. Reading order: `kinds` (test kinds), then `accepted`, `refused`, `bounds`,
//! `selection`, `settings`, `values`, `formatting`, `schema` and `advice`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accepted;
mod advice;
mod bounds;
mod edge_sets;
mod field_modes;
mod field_parts;
mod formatting;
mod generated_language;
mod generators;
mod kind_examples;
mod kinds;
mod language;
mod language_bounds;
mod language_copies;
mod language_expanded;
mod language_hints;
mod language_inactive;
mod language_load_facts;
mod language_loops;
mod language_memory;
mod language_messages;
mod language_modules;
mod language_one_run;
mod language_places;
mod language_probes;
mod language_slips;
mod language_templates;
mod language_waiting;
mod language_waiting_cycles;
mod language_work;
mod language_world;
#[path = "../processor_time.rs"]
mod processor_time;
mod refused;
mod schema;
mod selection;
mod settings;
mod values;

use kinds::KINDS;
use std::path::PathBuf;
use steadfast::config::{self, KindSet, LoadedGraph, Options, Problem, Rejected};

/// Graph files in a temporary folder.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self, names: &[&str], options: &Options) -> Result<LoadedGraph, Rejected> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        config::load(&paths, &Options { kinds: test_kinds(), ..options.clone() })
    }

    /// Returns the warnings or the problems of a graph, without the folder's name.
    fn words(&self, names: &[&str]) -> String {
        let said = match self.load(names, &options()) {
            Ok(loaded) => loaded.warnings.iter().map(Problem::with_source).collect(),
            Err(rejected) => rejected.with_source(),
        };
        let folder = self.folder.path().display().to_string();
        said.replace(&format!("{folder}/"), "").replace(&folder, "FOLDER")
    }
}

/// Returns options with the kinds of this build.
fn options() -> Options {
    Options::new(KindSet::of_this_build())
}

fn test_kinds() -> KindSet {
    KindSet::new(KINDS.to_vec(), vec!["pkg", "svc"])
}

fn load(text: &str) -> Result<LoadedGraph, Rejected> {
    load_under(text, &options())
}

fn load_under(text: &str, options: &Options) -> Result<LoadedGraph, Rejected> {
    Files::new().with("graph.yaml", text).load(&["graph.yaml"], options)
}

/// Loads a graph that must be accepted, by the engine too.
#[track_caller]
fn good(text: &str) -> LoadedGraph {
    let loaded = load(text).unwrap_or_else(|rejected| panic!("{rejected}"));
    into_engine(&loaded);
    loaded
}

/// Returns the warnings or the problems of one file.
#[track_caller]
fn words(text: impl AsRef<[u8]>) -> String {
    let words = Files::new().with("graph.yaml", text).words(&["graph.yaml"]);
    let first = words.lines().filter(|line| line.starts_with("graph.yaml"));
    for line in first {
        assert!(line.chars().count() <= 130, "too long: {line}");
    }
    words
}

fn into_engine(loaded: &LoadedGraph) -> steadfast_engine::Graph {
    use steadfast_engine::{Edge, Graph, Traits, VertexId, VertexSpec};
    let id = |vertex: usize| VertexId(u32::try_from(vertex).unwrap());
    let vertices = loaded.vertices.iter().enumerate().map(|(number, vertex)| VertexSpec {
        id: id(number),
        definition: vertex.definition,
        meta: std::sync::Arc::clone(&vertex.meta),
        traits: Traits::default(),
    });
    let edges = loaded.edges.iter().map(|link| Edge {
        from: id(link.from),
        to: id(link.to),
        notify: link.notify,
    });
    let counts = loaded.semaphores.iter().map(|(_, count)| *count).collect();
    Graph::new(vertices.collect(), edges.collect(), counts).unwrap()
}

/// Formats edges as `from -> to`, or `from => to` for notifying ones.
fn edges(loaded: &LoadedGraph) -> Vec<String> {
    let name = |vertex: usize| loaded.vertices[vertex].identity.to_string();
    let arrow = |notify| if notify { "=>" } else { "->" };
    loaded
        .edges
        .iter()
        .map(|link| format!("{} {} {}", name(link.from), arrow(link.notify), name(link.to)))
        .collect()
}
