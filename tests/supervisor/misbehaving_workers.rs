//! Workers that panic, block or end at the wrong time: the supervisor's loop survives and reports them.

use crate::harness::{Cue, Stage, delays};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steadfast::supervisor::{
    Delays, Failure, Handle, Inputs, Manifold, Outputs, State, Supervisor, WorkerContext,
};
use tokio::time::{Instant, timeout};

/// P-8: a panic in a failure filter is a failure of its worker, which is restarted.
#[tokio::test(start_paused = true)]
async fn a_filter_may_panic() {
    let stage = Stage::new();
    let worker = stage.worker("w").filter(|_| panic!("of all things"));
    stage.install(vec![worker, stage.worker("other")]).await;
    stage.runs(&["w", "other"]).await;
    stage.fail("w");
    stage.until("it is told", || stage.error("w").ends_with("panicked: of all things")).await;
    stage.until("it is tried again", || stage.starts("w") == 2).await;
    assert_eq!(stage.starts("other"), 1);
    stage.supervisor.stop(None);
    assert!(stage.supervisor.ended().await.late.is_empty());
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

/// P-8: a panic while an error is formatted is a failure of its worker, which is restarted.
#[tokio::test(start_paused = true)]
async fn an_error_may_panic() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("w")]).await;
    stage.runs(&["w"]).await;
    stage.cue("w", Cue::End(Err(Failure::again(Unspeakable))));
    stage.until("it is told", || stage.error("w").ends_with("panicked: no words")).await;
    stage.until("it is tried again", || stage.starts("w") == 2).await;
}

/// An output with foreign code in its `Drop` and `Clone`.
struct Foreign {
    own: Handle<Arc<Self>>,
    was_dropped: Arc<AtomicBool>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // A locked output registry would deadlock here.
        let gone = self.own.get().is_err();
        self.was_dropped.store(gone, Ordering::SeqCst);
        panic!("in a drop");
    }
}

/// P-6: an output is dropped without a lock and outside the supervisor's loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_may_panic_on_drop() {
    let error = Duration::from_millis(20);
    let supervisor = Supervisor::start(Delays { error, ..delays() }).expect("valid");
    let was_dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_dropped);
    let offers = Manifold::new("w", move |inputs: Inputs, life: WorkerContext| {
        let was_dropped = Arc::clone(&flag);
        async move {
            let own = inputs.handle("self")?;
            life.ready(Outputs::none().with(Arc::new(Foreign { own, was_dropped })));
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err(Failure::again("again"))
        }
    });
    supervisor.install(vec![offers.handles("self")]).await.expect("installed");
    let twice = async {
        while supervisor.report().workers["w"].starts < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), twice).await.expect("the loop lives on");
    assert!(was_dropped.load(Ordering::SeqCst));
    supervisor.stop(None);
    let ended = timeout(Duration::from_secs(30), supervisor.ended()).await.expect("it ends");
    assert!(ended.fatal.is_none(), "{ended:?}");
}

/// A guard that releases a blocked thread at the end of the test.
struct Freed(Arc<AtomicBool>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// P-6, A-44: a worker that blocks its thread delays no report; the report lists the inputs of all workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_does_not_wait_for_who_blocks() {
    let cut_off = Duration::from_millis(50);
    let supervisor = Supervisor::start(Delays { cut_off, ..delays() }).expect("valid");
    let free = Freed(Arc::default());
    let seen = Arc::clone(&free.0);
    let blocks = Manifold::new("blocks", move |_, life: WorkerContext| {
        let seen = Arc::clone(&seen);
        async move {
            life.ready(Outputs::none());
            life.set_status("blocking");
            // The runtime moves the other tasks of the blocked thread to another thread.
            tokio::task::block_in_place(|| wait_for(&seen));
            Ok(())
        }
    });
    let needs = Manifold::new("needs", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.stopping().cancelled().await;
        Ok(())
    });
    let grace = Duration::from_millis(50);
    let workers = vec![blocks.grace(grace), needs.requires("blocks")];
    supervisor.install(workers).await.expect("installed");
    let of = |name: &str| supervisor.report().workers[name].clone();
    let both = async {
        while of("needs").state != State::Running {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), both).await.expect("both run");
    let begun = std::time::Instant::now();
    for _ in 0..1000 {
        assert_eq!(of("blocks").message.as_deref(), Some("blocking"));
        assert_eq!(of("needs").inputs.get("blocks"), Some(&true));
        assert!(of("blocks").inputs.is_empty());
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());

    // A worker that could not be cut off before the stop is still named by the stop.
    let removing = tokio::spawn({
        let supervisor = supervisor.clone();
        async move { supervisor.remove("blocks").await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(of("blocks").state, State::Stopping);
    supervisor.stop(None);
    let ended = timeout(Duration::from_secs(30), supervisor.ended()).await.expect("it ends");
    assert_eq!(ended.late, ["blocks".into()]);
    assert!(removing.await.expect("no panic").is_err(), "it has not ended");
}

/// the cut-off of a worker after a request to end is no failure and uses no budget.
#[tokio::test(start_paused = true)]
async fn to_be_cut_off_is_no_failure_to_be_counted() {
    let budget = Some((3, Duration::from_hours(1)));
    let stage = Stage::with(Delays { budget, ..delays() });
    let stubborn = stage.worker("stubborn").uses("input").grace(Duration::from_secs(1));
    stage.install(vec![stage.worker("input"), stubborn]).await;
    stage.takes("stubborn", 0, 3_600_000);
    for round in 1..=5 {
        stage.runs(&["input", "stubborn"]).await;
        stage.cue("input", Cue::End(Err(Failure::new(steadfast::supervisor::Kind::Bounce, "b"))));
        stage.until("it is back", || stage.starts("stubborn") == round + 1).await;
    }
    assert_eq!(stage.supervisor.report().state, State::Running);
}

/// a long successful life resets the back-off also when it ended with a bounce.
#[tokio::test(start_paused = true)]
async fn a_long_run_that_was_bounced_is_a_new_beginning() {
    let stage = Stage::new();
    let worker = stage.worker("w").uses("input");
    stage.install(vec![stage.worker("input"), worker]).await;
    stage.runs(&["input", "w"]).await;
    for starts in 2..=5 {
        stage.fail("w");
        stage.until("it is back", || stage.starts("w") == starts).await;
    }
    tokio::time::sleep(Duration::from_mins(6)).await;
    stage.cue("input", Cue::End(Err(Failure::new(steadfast::supervisor::Kind::Bounce, "b"))));
    stage.until("it is restarted", || stage.starts("w") == 6).await;
    let begun = Instant::now();
    stage.fail("w");
    stage.until("it is back", || stage.starts("w") == 7).await;
    assert!(begun.elapsed() < Duration::from_millis(3500), "{:?}", begun.elapsed());
}
