//! `steadfast graph`: the loaded graph as text, for graphviz, or as JSON.

use super::args::{Format, ShowGraph};
use super::edges::Edges;
use super::exit::Exit;
use super::output::{count, out_json, plain, print};
use super::{load_graph, output, state_dir};
use crate::config::{self, LoadedGraph, Options};
use crate::driver;
use crate::store::SqliteStore;
use crate::workers::readers;
use serde_json::{Value, json};
use std::sync::Arc;
use steadfast_resources::KindSet;

/// Prints a graph.
pub(super) fn graph(args: &ShowGraph) -> Exit {
    let given = match load_graph::options(&args.graph) {
        Ok(given) => given,
        Err(exit) => return exit,
    };
    if args.expanded {
        return expanded(args, &given);
    }
    let options = Options { origins: true, ..given };
    let loaded = match load_graph::read(&args.graph, &options, args.format == Format::Json) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let edges = Edges::of(&loaded);
    let removals = removals(args, &loaded);
    match args.format {
        Format::Text => {
            let vertices = count(loaded.vertices.len(), "resource");
            print(format!("{}: {vertices}", plain(&loaded.name)));
            for vertex in &loaded.vertices {
                print(format!("  {}", plain(&vertex.identity)));
            }
            for inactive in &loaded.inactive {
                print(plain(&format!("  {} ({inactive})", inactive.identity)));
            }
            edges.show();
            if !removals.is_empty() {
                print(format!("{} pending removal:", count(removals.len(), "resource")));
                for name in &removals {
                    print(format!("  - {}", plain(name)));
                }
            }
        }
        Format::Dot => dot(&loaded, &edges),
        Format::Json => out_json(&to_json(&loaded, &edges, &removals)),
    }
    Exit::Well
}

/// Prints the expanded graph.
fn expanded(args: &ShowGraph, options: &Options) -> Exit {
    match config::expanded_text(&args.graph.graphs, options) {
        Ok(text) => {
            text.lines().for_each(|line| print(plain(line)));
            Exit::Well
        }
        Err(rejected) => {
            output::say_rejected(&rejected);
            Exit::Graph
        }
    }
}

/// Returns the undeclared resources that an apply of this graph would remove; none if the state cannot be read.
fn removals(args: &ShowGraph, loaded: &LoadedGraph) -> Vec<Arc<str>> {
    if args.graph.is_selected() {
        return Vec::new();
    }
    let directory = state_dir::directory(args.state.state_dir.as_deref());
    match SqliteStore::peek(&directory) {
        Ok(recalled) => driver::removals(
            loaded.clone(),
            &readers(KindSet::of_this_build(), |_, _| {}).only_known(recalled),
        ),
        Err(error) => {
            output::eprint(format!("warning: {error}; undeclared resources are not shown"));
            Vec::new()
        }
    }
}

/// Prints the graph for graphviz: notifying edges are solid, others dashed.
fn dot(loaded: &LoadedGraph, edges: &Edges) {
    print(format!("digraph {} {{", quoted(&loaded.name)));
    for vertex in &loaded.vertices {
        print(format!("  {};", quoted(&vertex.identity)));
    }
    for edge in edges.iter() {
        let style = if edge.notify { "" } else { " [style=dashed]" };
        print(format!("  {} -> {}{style};", quoted(&edge.from), quoted(&edge.to)));
    }
    print("}");
}

/// Quotes a name for graphviz.
fn quoted(name: &str) -> String {
    format!("\"{}\"", plain(name).replace('\\', "\\\\").replace('"', "\\\""))
}

fn to_json(loaded: &LoadedGraph, edges: &Edges, removals: &[Arc<str>]) -> Value {
    let vertex = |vertex: &config::Vertex| {
        let (file, line) = vertex.place;
        json!({
            "resource": &*vertex.identity,
            "file": loaded.files.get(file),
            "line": line,
            "noop": vertex.meta.noop,
            "labels": vertex.labels.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    let inactive = |inactive: &config::Inactive| {
        json!({
            "resource": &*inactive.identity,
            "condition": &*inactive.condition,
            "values": inactive.values.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "unknown_until": inactive.unknown_until,
        })
    };
    let semaphore = |(id, count): &(String, u32)| json!({"id": id, "count": count});
    json!({
        "graph": loaded.name,
        "comment": loaded.comment,
        "resources": loaded.vertices.iter().map(vertex).collect::<Vec<_>>(),
        "inactive": loaded.inactive.iter().map(inactive).collect::<Vec<_>>(),
        "edges": edges.to_json(),
        "removals": removals.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        "semaphores": loaded.semaphores.iter().map(semaphore).collect::<Vec<_>>(),
    })
}
