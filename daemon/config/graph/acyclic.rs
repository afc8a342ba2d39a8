//! The insertion of edges into a graph without cycles: each edge is accepted unless it closes a cycle with earlier
//! ones.
//!
//! An edge `u → v` closes a cycle if `v` leads to `u`. One walk over the graph answers that for 64 sources at once,
//! with one bit for each source. Edges accepted meanwhile are considered among these 64 sources only.

/// The number of sources of one walk: the bits of a word.
const TOGETHER: usize = 64;

/// The result of an insertion.
#[derive(Debug)]
pub(in crate::config) struct Added {
    /// For each wanted edge, true if it was added.
    pub(in crate::config) taken: Vec<bool>,
    /// The number of visited vertices and edges.
    #[cfg_attr(not(test), expect(dead_code, reason = "the bound on work is held by tests"))]
    pub(in crate::config) steps: usize,
}

/// A graph without cycles that grows.
struct GrowingDag {
    children: Vec<Vec<usize>>,
    steps: usize,
}

/// Adds wanted edges one by one to a graph without cycles (`there`, edges between `vertices` numbers), except those
/// that would close a cycle. The wanted edges of one source are consecutive, and none leads to its own source.
pub(in crate::config) fn insert_acyclic(
    vertices: usize,
    there: &[(usize, usize)],
    wanted: &[(usize, usize)],
) -> Added {
    let mut graph = GrowingDag { children: vec![Vec::new(); vertices], steps: 0 };
    for (from, to) in there {
        graph.children[*from].push(*to);
    }
    let mut taken = Vec::with_capacity(wanted.len());
    let groups: Vec<&[(usize, usize)]> = wanted.chunk_by(|a, b| a.0 == b.0).collect();
    for together in groups.chunks(TOGETHER) {
        let leads_to = graph.leads_to(together);
        // For each source, the sources reached by the edges added to it so far.
        let mut since = [0_u64; TOGETHER];
        for (bit, edges) in together.iter().enumerate() {
            for (from, to) in *edges {
                let closes = closure(leads_to[*to], &since) >> bit & 1 == 1;
                if !closes {
                    since[bit] |= leads_to[*to];
                    graph.children[*from].push(*to);
                }
                taken.push(!closes);
            }
        }
    }
    Added { taken, steps: graph.steps }
}

/// Returns the sources reached from a set of sources, by themselves and by edges added since.
fn closure(mut bits: u64, since: &[u64; TOGETHER]) -> u64 {
    let mut new = bits;
    while new != 0 {
        let more = since[new.trailing_zeros() as usize] & !bits;
        bits |= more;
        new = new & (new - 1) | more;
    }
    bits
}

impl GrowingDag {
    /// Returns for each vertex the sources that it leads to; a source leads to itself.
    fn leads_to(&mut self, sources: &[&[(usize, usize)]]) -> Vec<u64> {
        let mut leads_to = vec![0; self.children.len()];
        for (bit, (source, _)) in sources.iter().filter_map(|edges| edges.first()).enumerate() {
            leads_to[*source] |= 1 << bit;
        }
        for vertex in self.order().into_iter().rev() {
            for child in &self.children[vertex] {
                leads_to[vertex] |= leads_to[*child];
            }
        }
        leads_to
    }

    /// Returns all vertices, parents before children.
    fn order(&mut self) -> Vec<usize> {
        let mut missing = vec![0_u32; self.children.len()];
        for child in self.children.iter().flatten() {
            missing[*child] += 1;
            self.steps += 1;
        }
        let mut order: Vec<usize> =
            (0..missing.len()).filter(|vertex| missing[*vertex] == 0).collect();
        let mut next = 0;
        while let Some(vertex) = order.get(next).copied() {
            next += 1;
            for child in &self.children[vertex] {
                missing[*child] -= 1;
                if missing[*child] == 0 {
                    order.push(*child);
                }
            }
        }
        self.steps += missing.len();
        order
    }
}

#[cfg(test)]
mod tests {
    use super::{Added, insert_acyclic};
    use proptest::prelude::*;

    fn leads(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
        let (mut seen, mut walk) = (vec![from], vec![from]);
        while let Some(vertex) = walk.pop() {
            for (_, next) in edges.iter().filter(|(from, _)| *from == vertex) {
                if !seen.contains(next) {
                    seen.push(*next);
                    walk.push(*next);
                }
            }
        }
        seen.contains(&to)
    }

    /// Accepts each edge by itself: the simple reference, slow and correct.
    fn one_by_one(there: &[(usize, usize)], wanted: &[(usize, usize)]) -> Vec<bool> {
        let mut edges = there.to_vec();
        let take = |(from, to): &(usize, usize)| {
            let closes = leads(&edges, *to, *from);
            if !closes {
                edges.push((*from, *to));
            }
            !closes
        };
        wanted.iter().map(take).collect()
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        /// The result equals that of the reference, also for more sources than a word has bits.
        #[test]
        fn the_same_as_one_by_one(
            (vertices, there, wanted) in (2..100_usize).prop_flat_map(|vertices| {
                let edges = || prop::collection::vec((0..vertices, 0..vertices), 0..200);
                (Just(vertices), edges(), edges())
            }),
        ) {
            let down = |(a, b): (usize, usize)| (a.min(b), a.max(b));
            let there: Vec<_> = there.into_iter().map(down).filter(|(a, b)| a != b).collect();
            let mut wanted: Vec<_> = wanted.into_iter().filter(|(a, b)| a != b).collect();
            wanted.sort_unstable();
            let Added { taken, .. } = insert_acyclic(vertices, &there, &wanted);
            prop_assert_eq!(taken, one_by_one(&there, &wanted));
        }
    }

    /// Chained files before a directory that contains all: one walk finds that none can depend on the directory.
    #[test]
    fn a_directory_that_comes_last_costs_one_walk() {
        let files = 100_000;
        let there: Vec<_> = (0..files).map(|file| (file, file + 1)).collect();
        let wanted: Vec<_> = (0..files).map(|file| (files, file)).collect();
        let Added { taken, steps } = insert_acyclic(files + 1, &there, &wanted);
        assert!(taken.iter().all(|taken| !taken));
        assert_eq!(steps, 2 * files + 1, "each vertex and each edge once");
    }

    /// Chained files before one directory each: one walk handles 64 directories.
    #[test]
    fn as_many_directories_as_files_cost_a_walk_for_each_64() {
        let files = 6400;
        let chain = (1..files).map(|file| (file - 1, file));
        let there: Vec<_> = chain.chain((0..files).map(|at| (files - 1, files + at))).collect();
        let wanted: Vec<_> = (0..files).map(|at| (files + at, at)).collect();
        let Added { taken, steps } = insert_acyclic(2 * files, &there, &wanted);
        assert!(taken.iter().all(|taken| !taken));
        assert_eq!(steps, files / 64 * (2 * files + 2 * files - 1));
    }
}
