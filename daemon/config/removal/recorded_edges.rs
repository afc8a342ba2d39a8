//! The order and the notifications of each resource, as far as its removal needs them (B-17).

use crate::config::{Link, LoadedGraph};
use std::collections::BTreeMap;
use std::sync::Arc;

impl LoadedGraph {
    /// Records the order and the notifications in each vertex.
    pub(in crate::config) fn with_orders(mut self) -> Self {
        let none: Arc<[Arc<str>]> = Arc::default();
        for vertex in &mut self.vertices {
            vertex.after = Arc::clone(&none);
            vertex.notifies = Arc::clone(&none);
        }
        if !self.vertices.iter().any(|vertex| vertex.delete) {
            return self;
        }
        let matters = self.mattering();
        let mut afters: Vec<Vec<Arc<str>>> = vec![Vec::new(); matters.len()];
        for link in self.edges.iter().filter(|link| matters[link.from]) {
            afters[link.to].push(Arc::clone(&self.vertices[link.from].identity));
        }
        for (vertex, mut after) in self.vertices.iter_mut().zip(afters) {
            if !after.is_empty() {
                after.sort_unstable();
                vertex.after = after.into();
            }
        }
        self.note_notifications();
        self
    }

    /// Records in each vertex that is deleted on removal the resources that its changes refresh.
    fn note_notifications(&mut self) {
        let mut notifies: BTreeMap<usize, Vec<Arc<str>>> = BTreeMap::new();
        let deleted = |link: &&Link| link.notify && self.vertices[link.from].delete;
        for link in self.edges.iter().filter(deleted) {
            let target = Arc::clone(&self.vertices[link.to].identity);
            notifies.entry(link.from).or_default().push(target);
        }
        for (number, mut targets) in notifies {
            targets.sort_unstable();
            self.vertices[number].notifies = targets.into();
        }
    }

    /// Returns for each vertex true if it is deleted on removal, or depends on a vertex that is.
    fn mattering(&self) -> Vec<bool> {
        let mut matters: Vec<bool> = self.vertices.iter().map(|vertex| vertex.delete).collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); matters.len()];
        for link in &self.edges {
            children[link.from].push(link.to);
        }
        let mut next: Vec<usize> = (0..matters.len()).filter(|vertex| matters[*vertex]).collect();
        while let Some(vertex) = next.pop() {
            for child in &children[vertex] {
                if !std::mem::replace(&mut matters[*child], true) {
                    next.push(*child);
                }
            }
        }
        matters
    }
}
