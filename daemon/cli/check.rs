//! `steadfast check`: every problem of a graph, at once.

use super::args::Check;
use super::exit::Exit;
use super::read::options;
use super::text::{count, out, plain, say};
use crate::config;
use serde_json::json;

/// Checks a graph.
pub(super) fn check(args: &Check) -> Exit {
    match config::load(&args.graph.graphs, &options(&args.graph, false)) {
        Ok(loaded) => {
            if args.json {
                let warnings: Vec<_> =
                    loaded.warnings.iter().map(config::Problem::to_json).collect();
                out(json!({"graph": loaded.name, "problems": warnings}).to_string());
            } else {
                for warning in &loaded.warnings {
                    say(warning.to_string());
                }
                let (vertices, edges) = (loaded.vertices.len(), loaded.edges.len());
                let words = format!("{}, {}", count(vertices, "resource"), count(edges, "edge"));
                out(format!("valid: {}: {words}", plain(&loaded.name)));
            }
            Exit::Well
        }
        Err(rejected) => {
            if args.json {
                out(rejected.to_json().to_string());
            } else {
                say(rejected.to_string());
            }
            Exit::Graph
        }
    }
}
