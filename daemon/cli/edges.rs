//! Edges with their reasons, for `graph` and `plan --explain-edges`.

use super::output::{plain, print};
use crate::config::{LoadedGraph, Origin};
use serde_json::{Value, json};
use std::sync::Arc;

/// The edges of a graph, each with its origins.
pub(super) struct Edges(Vec<Edge>);

/// One edge.
pub(super) struct Edge {
    pub(super) from: Arc<str>,
    pub(super) to: Arc<str>,
    pub(super) notify: bool,
    reasons: Vec<Origin>,
}

impl Edges {
    /// Returns the edges of a graph that was loaded with origins.
    pub(super) fn of(loaded: &LoadedGraph) -> Self {
        let name = |vertex: usize| loaded.vertices.get(vertex).map(|v| Arc::clone(&v.identity));
        let mut origins = loaded.origins.iter().peekable();
        let edge = |link: &crate::config::Link| {
            let mut reasons = Vec::new();
            while let Some(origin) = origins.next_if(|o| (o.from, o.to) <= (link.from, link.to)) {
                if (origin.from, origin.to) == (link.from, link.to) {
                    reasons.push(origin.clone());
                }
            }
            Some(Edge { from: name(link.from)?, to: name(link.to)?, notify: link.notify, reasons })
        };
        Self(loaded.edges.iter().filter_map(edge).collect())
    }

    /// Iterates over the edges, in the order of the graph.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Edge> {
        self.0.iter()
    }

    /// Prints the edges for people, one per line.
    pub(super) fn show(&self) {
        print(super::output::count(self.0.len(), "edge"));
        for edge in &self.0 {
            let arrow = if edge.notify { "=>" } else { "->" };
            print(format!(
                "  {} {arrow} {}: {}",
                plain(&edge.from),
                plain(&edge.to),
                edge.because()
            ));
        }
        if self.0.iter().any(|edge| edge.notify) {
            print("  (=> notifies: a change of the first refreshes the second)");
        }
    }

    /// Returns the edges as JSON: `from`, `to`, `notify`, `origins` (`key`, `because`, `file`, `line`, `column`).
    pub(super) fn to_json(&self) -> Value {
        let edge = |edge: &Edge| {
            let origin = |origin: &Origin| {
                let place = origin.place.as_ref();
                json!({
                    "key": origin.key,
                    "because": origin.because,
                    "file": place.map(|place| &place.file),
                    "line": place.map(|place| place.line),
                    "column": place.map(|place| place.column),
                })
            };
            json!({
                "from": &*edge.from,
                "to": &*edge.to,
                "notify": edge.notify,
                "origins": edge.reasons.iter().map(origin).collect::<Vec<_>>(),
            })
        };
        self.0.iter().map(edge).collect()
    }
}

impl Edge {
    /// Describes the origins of the edge.
    fn because(&self) -> String {
        let reason = |origin: &Origin| {
            let key = origin.key;
            if let Some(because) = origin.because {
                return format!("{key}: {because}");
            }
            match &origin.place {
                Some(place) => {
                    format!("`{key}` at {}:{}:{}", plain(&place.file), place.line, place.column)
                }
                None => format!("`{key}`"),
            }
        };
        let reasons: Vec<String> = self.reasons.iter().map(reason).collect();
        if reasons.is_empty() { "across excluded resources".to_owned() } else { reasons.join(", ") }
    }
}
