//! Checks that do not answer, as on a file system that hangs.

use crate::harness::play;
use std::time::Duration;
use steadfast_engine::Meta;
use tokio::time::Instant;

/// E-6, E-18: a converged resource whose check does not answer for a minute is stuck, and the host is not converged
/// until the check answers.
#[test]
fn e6_a_check_without_an_answer_ends_convergence() {
    play(|mut ground| async move {
        ground.load(&[("gate", &[]), ("other", &[])], Meta::default());
        ground.hears("converged").await;
        for _ in 0..2 {
            ground.world().shut = true;
            let asked = Instant::now();
            ground.look("gate");
            ground.hears("stuck thing[gate]").await;
            let waited = asked.elapsed();
            assert!((60..70).contains(&waited.as_secs()), "{waited:?}");
            // The others are repaired meanwhile.
            ground.take_away("other");
            ground.hears("changed thing[other]: Corrective").await;
            tokio::time::sleep(Duration::from_mins(10)).await;
            ground.open();
            ground.hears("converged").await;
        }
        assert_eq!(ground.count("stuck thing[gate]"), 2, "each is reported once");
    });
}
