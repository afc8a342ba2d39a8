//! The stop: its order, its deadlines, and the workers that miss them.

use crate::harness::Stage;
use std::time::Duration;
use steadfast::supervisor::{Delays, Manifold, Outputs, State, Supervisor, WorkerContext};
use tokio::time::Instant;

/// P-1, A-52, A-53: workers end before the workers that they require, however long each takes. Late-bound inputs make
/// no order, and higher stop ranks end last.
#[tokio::test(start_paused = true)]
async fn workers_end_before_what_they_need() {
    let stage = Stage::new();
    let workers = vec![
        stage.worker("socket").handles("driver").stop_rank(1),
        stage.worker("store"),
        stage.worker("driver").requires("store"),
        stage.worker("graph").uses("driver"),
    ];
    stage.install(workers).await;
    stage.runs(&["socket", "store", "driver", "graph"]).await;
    for name in ["socket", "store", "driver", "graph"] {
        stage.takes(name, 0, 700);
    }
    let begun = Instant::now();
    stage.supervisor.stop(None);
    stage.supervisor.stop(None);
    stage.supervisor.ended().await;
    stage.supervisor.ended().await;
    let log = stage.log.lock().expect("whole").clone();
    let ends: Vec<_> = log.iter().filter_map(|line| line.strip_prefix('-')).collect();
    assert_eq!(ends, ["graph", "driver", "store", "socket"]);
    assert!(begun.elapsed() < Duration::from_secs(4));
}

/// P-1: a worker that does not end within its grace is cut off and named; the other workers still have their time.
#[tokio::test(start_paused = true)]
async fn a_late_worker_is_cut_off_and_named() {
    let stage = Stage::new();
    let late = stage.worker("late").requires("below").grace(Duration::from_secs(1));
    stage.install(vec![stage.worker("below"), late]).await;
    stage.runs(&["below", "late"]).await;
    stage.takes("late", 0, 3_600_000);
    stage.takes("below", 0, 900);
    let begun = Instant::now();
    stage.supervisor.stop(None);
    let ended = stage.supervisor.ended().await;
    assert_eq!(ended.late, ["late".into()]);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1900) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(stage.log.lock().expect("whole").last().map(String::as_str), Some("-below"));
}

/// P-1: the deadline of the stop is a limit for all workers; a second request can shorten it.
#[tokio::test(start_paused = true)]
async fn the_whole_has_a_deadline() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("a"), stage.worker("b").requires("a")]).await;
    stage.runs(&["a", "b"]).await;
    for name in ["a", "b"] {
        stage.takes(name, 0, 3_600_000);
    }
    let begun = Instant::now();
    stage.supervisor.stop(None);
    stage.supervisor.stop(Some(Duration::from_millis(300)));
    stage.supervisor.stop(Some(Duration::from_mins(5)));
    let ended = stage.supervisor.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(ended.late, ["a".into(), "b".into()]);
}

/// P-1: a worker that blocks its thread cannot be cut off; it is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_worker_is_left_behind() {
    let cut_off = Duration::from_millis(50);
    let supervisor = Supervisor::start(Delays { cut_off, ..Delays::default() }).expect("valid");
    let blocks = Manifold::new("blocks", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.stopping().cancelled().await;
        std::thread::sleep(Duration::from_secs(5));
        Ok(())
    });
    let blocks = blocks.grace(Duration::from_millis(50));
    supervisor.install(vec![blocks]).await.expect("installed");
    while supervisor.report().workers["blocks"].state != State::Running {
        tokio::task::yield_now().await;
    }
    let begun = std::time::Instant::now();
    supervisor.stop(None);
    let ended = supervisor.ended().await;
    assert_eq!(ended.late, ["blocks".into()]);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// A worker that does not end on request is never started a second time in parallel.
#[tokio::test(start_paused = true)]
async fn never_two_of_one_name() {
    let stage = Stage::new();
    let slow = stage.worker("slow").requires("input").grace(Duration::from_hours(1));
    stage.install(vec![stage.worker("input"), slow]).await;
    stage.runs(&["slow"]).await;
    stage.takes("slow", 0, 600_000);
    stage.fail("input");
    stage.until("the input is back", || stage.starts("input") == 2).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((stage.calls("slow"), stage.state("slow")), (1, Some(State::Stopping)));
    stage.until("it is started when it has ended", || stage.starts("slow") == 2).await;
}

/// P-1: workers of higher stop ranks end in the order of their ranks, however long each takes.
#[tokio::test(start_paused = true)]
async fn the_last_have_their_ranks() {
    let stage = Stage::new();
    let workers = vec![
        stage.worker("socket").stop_rank(2),
        stage.worker("recorder").stop_rank(1),
        stage.worker("signals").stop_rank(1),
        stage.worker("driver"),
    ];
    stage.install(workers).await;
    let names = ["socket", "recorder", "signals", "driver"];
    stage.runs(&names).await;
    for (name, time) in names.iter().zip([0, 900, 400, 700]) {
        stage.takes(name, 0, time);
    }
    stage.supervisor.stop(None);
    stage.until("they are asked", || stage.state("recorder") == Some(State::Stopping)).await;
    assert_eq!(stage.state("driver"), Some(State::Stopped));
    assert_eq!(stage.state("socket"), Some(State::Running), "it answers meanwhile");
    stage.supervisor.ended().await;
    let log = stage.log.lock().expect("whole").clone();
    let ends: Vec<_> = log.iter().filter_map(|line| line.strip_prefix('-')).collect();
    assert_eq!(ends, ["driver", "signals", "recorder", "socket"]);
}

/// P-1: a worker with a stop rank that requires one without a rank ends before that one, and the stop ends.
#[tokio::test(start_paused = true)]
async fn one_of_the_last_may_need_another() {
    let stage = Stage::new();
    let last = stage.worker("last").requires("first").stop_rank(1);
    stage.install(vec![stage.worker("first"), last, stage.worker("other")]).await;
    stage.runs(&["first", "last", "other"]).await;
    stage.takes("other", 0, 500);
    let begun = Instant::now();
    stage.supervisor.stop(None);
    assert!(stage.supervisor.ended().await.late.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let log = stage.log.lock().expect("whole").clone();
    let ends: Vec<_> = log.iter().filter_map(|line| line.strip_prefix('-')).collect();
    assert_eq!(ends, ["other", "last", "first"]);
}

/// P-1: a failing or removed input during a stop ends no worker before its dependents.
#[tokio::test(start_paused = true)]
async fn a_failure_during_the_stop_changes_no_order() {
    let stage = Stage::new();
    let (b, c) = (stage.worker("b").requires("a"), stage.worker("c").requires("b"));
    stage.install(vec![stage.worker("a"), b, c]).await;
    stage.runs(&["a", "b", "c"]).await;
    stage.takes("c", 0, 1000);
    stage.takes("b", 0, 0);
    stage.supervisor.stop(None);
    stage.until("it stops", || stage.state("c") == Some(State::Stopping)).await;
    let refused = stage.supervisor.remove("b").await.unwrap_err();
    assert!(refused.to_string().contains("shutting down"), "{refused}");
    stage.fail("a");
    stage.supervisor.ended().await;
    let log = stage.log.lock().expect("whole").clone();
    let ends: Vec<_> = log.iter().filter_map(|line| line.strip_prefix('-')).collect();
    assert_eq!(ends, ["a", "c", "b"]);
}
