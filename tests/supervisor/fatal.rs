//! Fatal failures, failure budgets, and invalid delays.

use crate::harness::{Cue, Stage, delays};
use std::time::Duration;
use steadfast::supervisor::{Delays, Failure, Kind, State, Supervisor};

/// a failure ends its worker only; a fatal failure ends all workers and is reported.
#[tokio::test(start_paused = true)]
async fn a_fatal_failure_ends_all() {
    let stage = Stage::new();
    stage
        .install(vec![stage.worker("a"), stage.worker("b"), stage.worker("c").requires("b")])
        .await;
    stage.runs(&["a", "b", "c"]).await;
    stage.fail("a");
    stage.until("it is back", || stage.starts("a") == 2).await;
    assert_eq!((stage.starts("b"), stage.starts("c")), (1, 1));
    stage.cue("a", Cue::End(Err(Failure::fatal(1, "the disk is gone"))));
    let ended = stage.supervisor.ended().await;
    let (who, why) = ended.fatal.as_ref().expect("fatal");
    assert_eq!((&**who, why.to_string()), ("a", "the disk is gone".to_owned()));
    assert_eq!(stage.supervisor.report().state, State::Stopped);
    let again = stage.supervisor.ended().await;
    assert_eq!(again.fatal.as_ref().map(|(who, _)| &**who), Some("a"), "A-53");
}

/// of two fatal failures, the one with the higher rank is reported, in either order.
#[tokio::test(start_paused = true)]
async fn the_worst_of_two_is_told() {
    for first in ["a", "b"] {
        let stage = Stage::new();
        stage.install(vec![stage.worker("a"), stage.worker("b")]).await;
        stage.runs(&["a", "b"]).await;
        let second = if first == "a" { "b" } else { "a" };
        for name in [first, second] {
            let rank = if name == "b" { 7 } else { 3 };
            stage.cue(name, Cue::End(Err(Failure::fatal(rank, name))));
        }
        let ended = stage.supervisor.ended().await;
        assert_eq!(ended.fatal.as_ref().map(|(who, _)| who.to_string()), Some("b".to_owned()));
    }
}

/// the failure filter of a worker applies before and after the worker is ready.
#[tokio::test(start_paused = true)]
async fn a_filter_comes_first() {
    let stage = Stage::new();
    let worker = stage.worker("w").filter(|failure| match failure.kind {
        Kind::Again => Failure::new(Kind::Bounce, "filtered"),
        _ => failure,
    });
    stage.refuse("w", vec![Failure::again("not yet")]);
    let begun = tokio::time::Instant::now();
    stage.install(vec![worker]).await;
    stage.runs(&["w"]).await;
    stage.fail("w");
    stage.until("it is back", || stage.starts("w") == 2).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "no delay: {:?}", begun.elapsed());
}

/// a fatal failure counts also from a worker that ends on request.
#[tokio::test(start_paused = true)]
async fn a_fatal_failure_counts_while_stopping() {
    let stage = Stage::new();
    let failing = steadfast::supervisor::Manifold::new("w", |_, life| async move {
        life.ready(steadfast::supervisor::Outputs::none());
        life.stopping().cancelled().await;
        Err(Failure::fatal(1, "not saved"))
    });
    stage.install(vec![failing]).await;
    stage.runs(&["w"]).await;
    stage.supervisor.stop(None);
    let ended = stage.supervisor.ended().await;
    assert_eq!(ended.fatal.as_ref().map(|(_, why)| why.to_string()), Some("not saved".to_owned()));
}

/// P-8: a panic is a failure with the panic message as its reason.
#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("a"), stage.worker("b")]).await;
    stage.runs(&["a", "b"]).await;
    stage.cue("a", Cue::Panic);
    stage.until("it is told", || stage.error("a") == "the worker panicked: on cue").await;
    stage.runs(&["a"]).await;
    assert_eq!((stage.starts("a"), stage.starts("b")), (2, 1));
}

/// P-8: the same number of failures over a longer time does not exhaust the budget.
#[tokio::test(start_paused = true)]
async fn a_budget_of_failures_is_one_of_a_time() {
    let budget = Some((3, Duration::from_mins(10)));
    let stage = Stage::with(Delays { budget, ..delays() });
    stage.install(vec![stage.worker("w")]).await;
    for round in 1..=20 {
        stage.until("it runs", || stage.starts("w") == round).await;
        tokio::time::sleep(Duration::from_mins(6)).await;
        stage.fail("w");
    }
    stage.until("it runs", || stage.starts("w") == 21).await;
    let report = stage.supervisor.report();
    assert_eq!(report.state, State::Running);
    assert!((9..=10).contains(&report.workers["w"].failures), "{report:?}");
}

/// P-8: too many failures within the budget's time end the supervisor.
#[tokio::test(start_paused = true)]
async fn a_budget_of_failures_may_be_used_up() {
    let budget = Some((5, Duration::from_mins(10)));
    let stage = Stage::with(Delays { budget, factor: 1.0, ..delays() });
    let worker = stage.worker("w");
    stage.refuse("w", vec![Failure::again("no"); 100]);
    stage.install(vec![worker]).await;
    let ended = stage.supervisor.ended().await;
    assert_eq!(ended.fatal.as_ref().map(|(_, why)| why.to_string()), Some("no".to_owned()));
    assert_eq!(stage.calls("w"), 5);
}

/// each sort of invalid delays is rejected with its own message.
#[tokio::test]
async fn invalid_delays_are_refused() {
    let second = Duration::from_secs(1);
    let good = Delays::default();
    let wrong = [
        Delays { error: Duration::ZERO, ..good },
        Delays { factor: 0.5, ..good },
        Delays { longest: good.error / 2, ..good },
        Delays { reset: Duration::ZERO, ..good },
        Delays { budget: Some((0, second)), ..good },
    ];
    let mut words: Vec<_> = wrong.map(|delays| Supervisor::start(delays).unwrap_err()).to_vec();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 5, "{words:?}");
    for factor in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        assert!(Supervisor::start(Delays { factor, ..good }).is_err(), "{factor}");
    }
}
