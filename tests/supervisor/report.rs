//! The report of the supervisor.

use crate::harness::Stage;
use std::sync::Arc;
use steadfast::supervisor::{Manifold, Outputs, State, Supervisor, WorkerContext};

/// the report is available without workers, during the stop and after it.
#[tokio::test(start_paused = true)]
async fn it_always_answers() {
    let stage = Stage::new();
    let report = stage.supervisor.report();
    assert_eq!((report.state, report.workers.len()), (State::Running, 0));
    stage.install(vec![stage.worker("w")]).await;
    stage.runs(&["w"]).await;
    stage.takes("w", 0, 2000);
    stage.supervisor.stop(None);
    stage.until("it drains", || stage.supervisor.report().state == State::Stopping).await;
    let told = stage.supervisor.report().workers["w"].clone();
    assert_eq!((told.state, told.starts), (State::Stopping, 1), "A-43");
    assert!(told.started.is_some_and(|at| at > 1_600_000_000_000), "A-43: {told:?}");
    stage.supervisor.ended().await;
    let report = stage.supervisor.report();
    assert_eq!((report.state, report.workers["w"].state), (State::Stopped, State::Stopped));
}

/// the report has the state, inputs, number of starts, start time, status text and error of a worker.
#[tokio::test(start_paused = true)]
async fn it_tells_all_of_a_worker() {
    let stage = Stage::new();
    let talker = Manifold::new("talker", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.set_status("12 events");
        life.stopping().cancelled().await;
        Ok(())
    });
    stage.install(vec![stage.worker("w"), talker.requires("w").handles("nobody")]).await;
    stage.runs(&["talker"]).await;
    stage.until("it says", || stage.supervisor.report().workers["talker"].message.is_some()).await;
    let report = stage.supervisor.report();
    let told = &report.workers["talker"];
    assert_eq!(told.message.as_deref(), Some("12 events"));
    assert_eq!(
        told.inputs.iter().map(|(n, there)| (&**n, *there)).collect::<Vec<_>>(),
        [("nobody", false), ("w", true)]
    );
    assert_eq!((told.starts, told.last_error.as_deref()), (1, None));
    assert!(told.started.is_some_and(|at| at > 1_600_000_000_000), "{told:?}");

    stage.fail("w");
    stage.until("it waits", || stage.state("w") == Some(State::Waiting)).await;
    let report = stage.supervisor.report();
    let failed = &report.workers["w"];
    assert_eq!(failed.last_error.as_deref(), Some("w broke"));
    assert!(failed.next_attempt_in.is_some_and(|wait| wait > 0 && wait <= 3300), "{failed:?}");
    assert_eq!((failed.started, failed.starts), (None, 1));
    assert_eq!(report.workers["talker"].message, None, "what is gone says nothing");
    stage.until("it is back", || stage.starts("w") == 2).await;
    let back = stage.supervisor.report().workers["w"].clone();
    assert_eq!(back.last_error, None, "A-46: forgotten when it was started");
    assert_eq!(back.last_failure.as_deref(), Some("w broke"), "but not for good");
    assert_eq!((back.starts, back.started.is_some(), back.failures), (2, true, 1), "A-46");
    assert!(serde_json::to_string(&stage.supervisor.report()).is_ok());
}

/// a worker that never ran is reported without a count and a time, but with a reason.
#[tokio::test(start_paused = true)]
async fn one_that_never_ran_says_why() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("w").requires("nobody")]).await;
    let report = stage.supervisor.report();
    let told = &report.workers["w"];
    assert_eq!((told.state, told.starts, told.started), (State::Stopped, 0, None));
    assert_eq!(told.last_error.as_deref(), Some("`nobody` is not running"));
}

/// a worker can receive the supervisor as an input, and a hundred workers can install others at once.
#[tokio::test(start_paused = true)]
async fn workers_may_install_others() {
    let stage = Stage::new();
    let itself: Supervisor = stage.supervisor.clone();
    let offers = Manifold::new("self", move |_, life: WorkerContext| {
        let itself = itself.clone();
        async move {
            life.ready(Outputs::none().with(itself));
            life.stopping().cancelled().await;
            Ok(())
        }
    });
    let users = (0..100).map(|n| {
        Manifold::new(&format!("user{n}"), move |inputs, life: WorkerContext| async move {
            let supervisor: Supervisor = inputs.get("self")?;
            let child = Manifold::new(&format!("child{n}"), |_, life: WorkerContext| async move {
                life.ready(Outputs::none());
                life.stopping().cancelled().await;
                Ok(())
            });
            let installed = supervisor.install(vec![child]).await;
            installed.map_err(steadfast::supervisor::Failure::again)?;
            life.ready(Outputs::none());
            life.stopping().cancelled().await;
            assert!(supervisor.report().workers.len() > 100);
            Ok(())
        })
        .requires("self")
    });
    stage.install(std::iter::once(offers).chain(users).collect()).await;
    for n in 0..100 {
        let name: Arc<str> = format!("child{n}").into();
        stage.until("all children run", || stage.state(&name) == Some(State::Running)).await;
    }
    stage.supervisor.stop(None);
    assert!(stage.supervisor.ended().await.late.is_empty());
}
