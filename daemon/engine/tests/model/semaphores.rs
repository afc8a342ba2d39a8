//! E-14, for docs/semaphores.md: several semaphores of sizes 1 and 2, also with few slots, and swaps that change the
//! counts.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{Configuration, graphs};
use crate::model::exploration::sights;
use crate::model::{explore, explore_in_ci};
use crate::shape::Shape;

/// The semaphores that each of three vertices uses: sets of bits.
type Uses = [u32; 3];

/// Returns the uses in which each semaphore has several users.
fn contended() -> Vec<Uses> {
    let all = (0..64).map(|n| [n & 3, n >> 2 & 3, n >> 4 & 3]);
    let users = |uses: &Uses, bit: u32| uses.iter().filter(|set| *set >> bit & 1 == 1).count();
    all.filter(|uses| users(uses, 0) > 1 && users(uses, 1) > 1).collect()
}

fn under(graph: &Shape, uses: Uses, counts: [u32; 2]) -> Shape {
    let shape = counts.into_iter().fold(graph.clone(), Shape::semaphore);
    (0..3).zip(uses).fold(shape, |shape, (vertex, set)| {
        let wanted = (0..2).filter(|bit| set >> bit & 1 == 1);
        wanted.fold(shape, |shape, semaphore| shape.uses(vertex, semaphore))
    })
}

/// Returns every contended use on a graph, with these counts, and with a swap to others.
pub(super) fn all(graph: &Shape, counts: [u32; 2], budget: Budget) -> Vec<Configuration> {
    let each = |uses| {
        let shape = under(graph, uses, counts);
        let other = under(graph, uses, counts.map(|count| 3 - count));
        let shapes = if budget.swaps > 0 { vec![shape, other] } else { vec![shape] };
        Configuration { shapes, budget, grouping: None }
    };
    contended().into_iter().map(each).collect()
}

/// One swap of the counts, one pause, or one stop, while all three are loaded.
const BUDGET: Budget = Budget { turns: 1, pauses: 1, stops: 1, swaps: 1, ..Budget::NONE };

#[test]
fn model_semaphores() {
    let wanted = [sights::NO_SEMAPHORE, sights::SWAPPED, sights::AT_ONCE];
    let budget = Budget { pauses: 0, stops: 0, ..BUDGET };
    let loose = all(&graphs(3)[0], [1, 2], budget);
    let one_slot = all(&graphs(3)[1], [2, 2], Budget { one_slot: true, ..budget });
    explore_in_ci("semaphores", loose.into_iter().chain(one_slot).collect(), &wanted);
}

/// E-14: all graphs of three vertices, all counts, with and without a shortage of slots.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_semaphores() {
    let mut configurations = Vec::new();
    for graph in graphs(3) {
        for counts in [[1, 1], [1, 2], [2, 2]] {
            let failing = Budget { failures: 1, ..BUDGET };
            configurations.extend(all(&graph, counts, failing));
            configurations.extend(all(&graph, counts, Budget { one_slot: true, ..BUDGET }));
        }
    }
    explore("semaphores", configurations, &[sights::NO_SEMAPHORE, sights::SWAPPED]);
}
