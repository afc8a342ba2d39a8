//! `steadfast check`: all problems of a graph at once.

use super::args::Check;
use super::exit::Exit;
use super::load_graph::options;
use super::output::{count, out_json, plain, print, say_rejected, say_warnings};
use crate::config;
use serde_json::json;
use steadfast_resources::ResourceId;

/// Checks a graph, or makes a running daemon check resources again.
pub(super) fn check(args: &Check) -> Exit {
    // Arguments of the form `kind[name]` are resources of a running daemon; no path has this form.
    let named = args.graph.graphs.iter().map(|path| path.to_str());
    let resources: Option<Vec<String>> =
        named.map(|text| text.filter(|t| is_resource(t)).map(str::to_owned)).collect();
    if let Some(resources) = resources {
        return super::client::check(&args.socket, resources);
    }
    match config::load(&args.graph.graphs, &options(&args.graph)) {
        Ok(loaded) => {
            if args.json {
                let warnings: Vec<_> =
                    loaded.warnings.iter().map(config::Problem::to_json).collect();
                out_json(&json!({"graph": loaded.name, "problems": warnings}));
            } else {
                say_warnings(&loaded.warnings);
                let (vertices, edges) = (loaded.vertices.len(), loaded.edges.len());
                let words = format!("{}, {}", count(vertices, "resource"), count(edges, "edge"));
                print(format!("valid: {}: {words}", plain(&loaded.name)));
            }
            Exit::Well
        }
        Err(rejected) => {
            if args.json {
                out_json(&rejected.to_json());
            } else {
                say_rejected(&rejected);
            }
            Exit::Graph
        }
    }
}

fn is_resource(text: &str) -> bool {
    let is_kind = |kind: &str| {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ':';
        !kind.is_empty() && kind.chars().all(letter)
    };
    ResourceId::parse(text).is_some_and(|id| is_kind(id.kind))
        && !std::path::Path::new(text).exists()
}
