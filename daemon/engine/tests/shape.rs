//! A builder for graphs in tests, with a text form.

use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Edge, Graph, Meta, SemaphoreId, Traits, VertexId, VertexSpec};

/// Returns the vertex with this number.
pub(crate) fn v(number: u32) -> VertexId {
    VertexId(number)
}

/// Returns this number of milliseconds.
pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A graph before its validation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) vertices: Vec<VertexSpec>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) semaphores: Vec<u32>,
}

impl Shape {
    /// Returns a shape of plain vertices, numbered from 0.
    pub(crate) fn of(count: u32) -> Self {
        let meta = Arc::new(Meta::default());
        let vertices = (0..count)
            .map(|number| VertexSpec {
                id: v(number),
                definition: 1,
                meta: Arc::clone(&meta),
                traits: Traits::default(),
            })
            .collect();
        Self { vertices, edges: Vec::new(), semaphores: Vec::new() }
    }

    /// Adds a plain edge.
    pub(crate) fn edge(mut self, from: u32, to: u32) -> Self {
        self.edges.push(Edge { from: v(from), to: v(to), notify: false });
        self
    }

    /// Adds an edge that notifies.
    pub(crate) fn notify(mut self, from: u32, to: u32) -> Self {
        self.edges.push(Edge { from: v(from), to: v(to), notify: true });
        self
    }

    /// Adds a semaphore with this count.
    pub(crate) fn semaphore(mut self, count: u32) -> Self {
        self.semaphores.push(count);
        self
    }

    /// Changes the metaparams of one vertex.
    pub(crate) fn meta(mut self, number: u32, change: impl FnOnce(&mut Meta)) -> Self {
        let vertex = self.find(number);
        change(Arc::make_mut(&mut vertex.meta));
        self
    }

    /// Changes the metaparams of all vertices.
    pub(crate) fn all(mut self, change: impl Fn(&mut Meta)) -> Self {
        for vertex in &mut self.vertices {
            change(Arc::make_mut(&mut vertex.meta));
        }
        self
    }

    /// Changes the traits of one vertex.
    pub(crate) fn traits(mut self, number: u32, change: impl FnOnce(&mut Traits)) -> Self {
        change(&mut self.find(number).traits);
        self
    }

    /// Sets the definition of one vertex.
    pub(crate) fn define(mut self, number: u32, definition: u64) -> Self {
        self.find(number).definition = definition;
        self
    }

    /// Removes one vertex and its edges.
    pub(crate) fn without(mut self, number: u32) -> Self {
        self.vertices.retain(|vertex| vertex.id != v(number));
        self.edges.retain(|edge| edge.from != v(number) && edge.to != v(number));
        self
    }

    /// Lets one vertex use a semaphore.
    pub(crate) fn uses(self, number: u32, semaphore: u32) -> Self {
        self.meta(number, |meta| meta.semaphores.push(SemaphoreId(semaphore)))
    }

    /// Returns the validated graph.
    pub(crate) fn build(&self) -> Arc<Graph> {
        let graph = Graph::new(self.vertices.clone(), self.edges.clone(), self.semaphores.clone());
        Arc::new(graph.expect("the tests write valid graphs"))
    }

    fn find(&mut self, number: u32) -> &mut VertexSpec {
        self.vertices.iter_mut().find(|vertex| vertex.id == v(number)).expect("a declared vertex")
    }
}
