//! Rules shown one at a time, by hand.

use crate::shape::Shape;
use crate::shape::v;
use crate::step::Step;
use crate::world::World;
use steadfast_engine::{Outcome, Slots, Verdict};

#[test]
fn e01_a_chain_starts_in_order() {
    let shape = Shape::of(2).edge(0, 1);
    let mut world = World::new(&[shape], Slots::default(), false);
    world.steps(&[
        Step::Swap { graph: 0, operator: false },
        Step::Watching(v(1)),
        Step::Watching(v(0)),
        Step::Checked(v(0), Verdict::Differs),
        Step::Commit,
        Step::Ended(v(0), Outcome::Changed),
        Step::Checked(v(1), Verdict::Same),
        Step::Commit,
    ]);
    assert!(
        world.oracle.books.violations.is_empty(),
        "{:#?} {}",
        world.oracle.books.violations,
        world.log.join("\n")
    );
}
