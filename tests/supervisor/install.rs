//! The installation of workers, and their first starts.

use crate::harness::Stage;
use steadfast::supervisor::{Refused, State};

/// P-9: each worker of a group starts once, all together; a later installation disturbs no worker.
#[tokio::test(start_paused = true)]
async fn a_group_is_started_once_each() {
    let stage = Stage::new();
    let group = vec![stage.worker("a"), stage.worker("b").requires("a"), stage.worker("c")];
    stage.install(group).await;
    stage.runs(&["a", "b", "c"]).await;
    stage.install(vec![stage.worker("d")]).await;
    stage.runs(&["d"]).await;
    stage.quiet().await;
    for name in ["a", "b", "c", "d"] {
        assert_eq!((stage.calls(name), stage.starts(name)), (1, 1), "{name}");
    }
}

/// A-1, P-9: a group with a fault is rejected whole; A-4: the present owner of a duplicate name is not disturbed.
#[tokio::test(start_paused = true)]
async fn a_duplicate_is_refused_with_its_group() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("a")]).await;
    stage.runs(&["a"]).await;
    let running = stage.actor("a");
    let refused =
        stage.supervisor.install(vec![stage.worker("b"), stage.worker("a")]).await.unwrap_err();
    assert_eq!(refused, Refused::Exists("a".into()));
    assert!(refused.to_string().contains("`a`"));
    stage.quiet().await;
    assert_eq!((stage.calls("a"), stage.calls("b"), stage.state("b")), (0, 0, None));
    assert_eq!(running.calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// an input can be installed later than its user; no worker starts twice.
#[tokio::test(start_paused = true)]
async fn an_input_may_come_later() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("late").requires("first")]).await;
    stage.quiet().await;
    assert_eq!((stage.calls("late"), stage.state("late")), (0, Some(State::Stopped)));
    assert_eq!(stage.error("late"), "`first` is not running");
    assert_eq!(
        stage.supervisor.report().missing_inputs,
        ["first"],
        "P-7: a misspelt name is shown"
    );
    stage.install(vec![stage.worker("first")]).await;
    stage.runs(&["first", "late"]).await;
    stage.quiet().await;
    assert_eq!((stage.calls("first"), stage.calls("late")), (1, 1));
    assert!(stage.supervisor.report().missing_inputs.is_empty());
}

/// a dependency cycle is rejected with its names; an acyclic tangle is accepted.
#[tokio::test(start_paused = true)]
async fn cycles_are_refused() {
    let stage = Stage::new();
    stage.supervisor.install(Vec::new()).await.expect("nothing is fine");
    let own = stage.supervisor.install(vec![stage.worker("x").requires("x")]).await.unwrap_err();
    assert_eq!(own.to_string(), "a cycle: x -> x");
    let tangled = vec![
        stage.worker("a").requires("b").requires("c").uses("d"),
        stage.worker("b").requires("d").requires("e"),
        stage.worker("c").requires("d").uses("b"),
        stage.worker("d").requires("f"),
        stage.worker("e").requires("f").requires("g"),
        stage.worker("f").requires("g").handles("a"),
    ];
    stage.install(tangled).await;
    let back = stage.supervisor.install(vec![stage.worker("g").uses("a")]).await.unwrap_err();
    assert!(matches!(&back, Refused::Cycle(ring) if ring.len() >= 4), "{back}");
    assert!(back.to_string().starts_with("a cycle: "), "{back}");
    stage.quiet().await;
    assert_eq!(stage.calls("a"), 0);
    stage.install(vec![stage.worker("g")]).await;
    stage.runs(&["a", "b", "c", "d", "e", "f", "g"]).await;
    assert_eq!(stage.calls("a"), 1, "P-4: it waited until its inputs were settled");
}

/// P-7: an input that is named twice is rejected.
#[tokio::test(start_paused = true)]
async fn an_input_is_named_once() {
    let stage = Stage::new();
    let twice = stage.worker("a").requires("b").uses("b");
    let refused = stage.supervisor.install(vec![twice]).await.unwrap_err();
    assert_eq!(refused.to_string(), "`a` names its input `b` twice");
}

/// an installation after the stop starts nothing.
#[tokio::test(start_paused = true)]
async fn nothing_is_installed_after_the_stop() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("slow")]).await;
    stage.runs(&["slow"]).await;
    stage.takes("slow", 0, 1000);
    stage.supervisor.stop(None);
    for _ in 0..2 {
        let refused = stage.supervisor.install(vec![stage.worker("a")]).await.unwrap_err();
        assert!(refused.to_string().contains("shutting down"), "{refused}");
        stage.supervisor.ended().await;
    }
    assert_eq!(stage.calls("a"), 0);
}

/// P-9: a name is free again once its worker has ended; the dependents of a removed worker rest
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_removed_worker_may_be_installed_again() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("a"), stage.worker("b").requires("a")]).await;
    stage.runs(&["a", "b"]).await;
    stage.takes("a", 0, 500);
    let supervisor = stage.supervisor.clone();
    let removal = tokio::spawn(async move { supervisor.remove("a").await });
    stage.until("it stops", || stage.state("a") == Some(State::Stopping)).await;
    let refused = stage.supervisor.install(vec![stage.worker("a")]).await.unwrap_err();
    assert_eq!(refused, Refused::Exists("a".into()), "still stopping");
    removal.await.expect("no panic").expect("removed");
    stage.quiet().await;
    assert_eq!((stage.state("a"), stage.state("b")), (None, Some(State::Stopped)));
    assert_eq!(stage.supervisor.remove("a").await, Err(Refused::Unknown("a".into())));
    stage.install(vec![stage.worker("a")]).await;
    stage.runs(&["a", "b"]).await;
    assert_eq!(stage.calls("b"), 2);
}
