//! E-10, E-18: budgets that stay used, and convergence while a swap waits.

use crate::contention::standing;
use crate::races::{check, settled, sound};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{Notice, Outcome, RunVerdict, VertexStatus};

/// E-10, planted bug 2: without `retryreset` a success refills no budget, neither after a suspicion nor after a look.
#[test]
fn e10_a_success_refills_nothing_without_retryreset() {
    for looks in [false, true] {
        let mut world = settled(&[Shape::of(1).meta(0, |meta| {
            meta.retry = Some(1);
            meta.retryreset = false;
        })]);
        for round in 0..2 {
            if looks {
                world.steps(&[Step::Look(v(0))]);
                check(&mut world, 0, RunVerdict::Differs);
            } else {
                world.steps(&[Step::Suspect(v(0))]);
            }
            check(&mut world, 0, RunVerdict::Unknown);
            if round == 0 {
                world.steps(&[Step::Wait(ms(1000))]);
                check(&mut world, 0, RunVerdict::Same);
            }
        }
        assert_eq!(standing(&world, 0), VertexStatus::Failed, "its only retry was used");
        sound(&world);
    }
}

/// E-18, planted bug 7: nothing has converged while a swap waits.
#[test]
fn e18_a_waiting_swap_is_no_convergence() {
    let old = Shape::of(2);
    let mut world = settled(&[old.clone(), old.define(0, 2)]);
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Look(v(0)), Step::Swap { graph: 1, operator: false }]);
    world.steps(&[Step::Ended(v(1), Outcome::Changed), Step::Commit]);
    sound(&world);
    assert!(!world.told.contains(&Notice::Converged), "{:?}", world.told);
    sound(&world);
}
