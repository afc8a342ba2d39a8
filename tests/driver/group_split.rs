//! Groups: the failure or the contention of one member delays neither the other members nor their children.

use crate::harness::play;
use std::time::Duration;
use steadfast_engine::Meta;
use tokio::time::Instant;

/// E-10, E-19: a failing member holds back its own children and not those of its siblings. It runs in a transaction
/// of its own until it was converged for ten minutes, later for twice as long. A failing member whose siblings have
/// no children stays in the group.
#[test]
fn one_that_cannot_be_made_comes_apart() {
    play(|mut ground| async move {
        ground.world().broken.insert("bad".to_owned());
        ground.load(
            &[("bad", &[]), ("good", &[]), ("fine", &[]), ("last", &["good"])],
            Meta::default(),
        );
        ground.hears("failed thing[bad]").await;
        ground.hears("apart thing[bad]").await;
        ground.hears("changed thing[last]: Intentional").await;
        assert_eq!(ground.world().together[0], ["bad", "good", "fine"]);
        assert_eq!(ground.last_together(), ["good", "fine"]);
        for minutes in [10, 20] {
            ground.world().broken.clear();
            let well = Instant::now();
            ground.look("bad");
            ground.hears("joined thing[bad]").await;
            let waited = well.elapsed();
            assert!(waited >= Duration::from_mins(minutes), "{minutes}: {waited:?}");
            assert!(waited <= Duration::from_mins(minutes + 3), "{minutes}: {waited:?}");
            ground.take_away("good");
            ground.hears("changed thing[good]: Corrective").await;
            assert_eq!(ground.last_together(), ["bad", "good", "fine"]);
            ground.world().broken.insert("bad".to_owned());
            ground.take_away("bad");
            ground.hears("apart thing[bad]").await;
        }
        assert_eq!(ground.count("apart thing[bad]"), 3);
        assert_eq!(ground.count("loaded: 0 removed"), 1, "it is the same graph");
        assert_eq!(ground.count("changed thing[last]: Intentional"), 1);
    });
}

/// E-10: a failing member stays in the group if its siblings have no children.
#[test]
fn one_that_keeps_nobody_waiting_stays() {
    play(|mut ground| async move {
        ground.world().broken.insert("bad".to_owned());
        ground.load(&[("bad", &[]), ("good", &[]), ("last", &[])], Meta::default());
        ground.hears("failed thing[bad]").await;
        ground.take_away("good");
        ground.hears("changed thing[good]: Intentional").await;
        ground.hears("failed thing[bad]").await;
        assert_eq!(ground.last_together(), ["bad", "good"]);
        assert_eq!(ground.count("apart thing[bad]"), 0);
    });
}

/// E-10: children wait for a member with endless retries no longer than three attempts.
#[test]
fn one_that_is_tried_for_ever_comes_apart() {
    play(|mut ground| async move {
        ground.world().broken.insert("bad".to_owned());
        let meta = Meta { retry: None, ..Meta::default() };
        ground.load(&[("good", &[]), ("bad", &[]), ("last", &["good"])], meta);
        ground.hears("apart thing[bad]").await;
        ground.hears("changed thing[last]: Intentional").await;
        ground.world().broken.clear();
        ground.hears("changed thing[bad]: Intentional").await;
        ground.hears("joined thing[bad]").await;
    });
}

/// E-20: a member in contention delays no repair of its siblings; only the member has the contention.
#[test]
fn a_contended_member_is_split() {
    play(|mut ground| async move {
        ground.load(&[("calm", &[]), ("torn", &[]), ("other", &[])], Meta::default());
        ground.hears("converged").await;
        for _ in 0..Meta::REVERSALS {
            ground.take_away("torn");
            ground.hears("changed thing[torn]: Corrective").await;
        }
        ground.hears("contended thing[torn]").await;
        ground.hears("apart thing[torn]").await;
        for _ in 0..3 {
            let taken = Instant::now();
            ground.take_away("calm");
            ground.hears("changed thing[calm]: Corrective").await;
            assert!(taken.elapsed() < Meta::FIRST_BACKOFF / 2, "{:?}", taken.elapsed());
            assert_eq!(ground.last_together(), ["calm", "other"]);
        }
        assert_eq!(ground.count("contended thing[calm]"), 0);
        ground.hears("joined thing[torn]").await;
    });
}

/// E-17: `realize` makes a swap wait for a removed member of a group.
#[test]
fn realize_holds_for_what_could_be_grouped() {
    play(|mut ground| async move {
        ground.world().shut = true;
        let meta = Meta { realize: true, ..Meta::default() };
        ground.load(&[("gate", &[]), ("a", &["gate"]), ("b", &["gate"])], meta.clone());
        ground.hears("loaded: 0 removed").await;
        ground.load(&[("gate", &[]), ("a", &["gate"])], meta);
        ground.hears("waits for thing[b]").await;
        ground.open();
        ground.hears("loaded: 1 removed").await;
        assert!(ground.world().there.contains("b"), "it was made once");
    });
}
