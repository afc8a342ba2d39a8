//! The conversion of a loaded graph to the engine's graph, as the daemon does it; shared by benches.

use std::sync::Arc;
use steadfast::config::LoadedGraph;
use steadfast_engine::{Edge, Graph, Traits, VertexId, VertexSpec};

/// Converts a loaded graph; vertices are numbered in the order of the text.
pub(crate) fn for_the_engine(loaded: &LoadedGraph) -> Graph {
    let id = |number: usize| VertexId(u32::try_from(number).expect("fewer than 2^32"));
    let vertices = loaded.vertices.iter().enumerate().map(|(number, vertex)| VertexSpec {
        id: id(number),
        definition: vertex.definition,
        meta: Arc::clone(&vertex.meta),
        traits: Traits::default(),
    });
    let edges = loaded.edges.iter().map(|link| Edge {
        from: id(link.from),
        to: id(link.to),
        notify: link.notify,
    });
    Graph::new(vertices.collect(), edges.collect(), Vec::new()).expect("a valid graph")
}
