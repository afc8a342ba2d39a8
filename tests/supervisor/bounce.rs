//! Starts, aborted starts and restarts (bounces).

use crate::harness::{Cue, Stage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast::supervisor::{Failure, Kind, Manifold, Outputs, State, WorkerContext};
use tokio::time::Instant;

async fn chain(stage: &Stage) {
    let (b, c) = (stage.worker("b").requires("a"), stage.worker("c").requires("b"));
    stage.install(vec![stage.worker("a"), b, c]).await;
    stage.runs(&["a", "b", "c"]).await;
}

/// a stop ends a start in progress; nothing is started after the stop.
#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_start_in_progress() {
    let stage = Stage::new();
    let slow = stage.worker("slow");
    stage.takes("slow", 3_600_000, 0);
    stage.install(vec![slow]).await;
    stage.until("it is starting", || stage.calls("slow") == 1).await;
    stage.supervisor.stop(None);
    let ended = stage.supervisor.ended().await;
    assert!(ended.fatal.is_none() && ended.late.is_empty(), "{ended:?}");
    assert_eq!((stage.calls("slow"), stage.starts("slow")), (1, 0));
}

/// a new input aborts a start in progress, which is repeated once; the aborted start is no failure.
#[tokio::test(start_paused = true)]
async fn an_input_that_comes_aborts_a_start() {
    let stage = Stage::new();
    let (slow, input) = (stage.worker("slow").uses("input"), stage.worker("input"));
    let below = stage.worker("below").uses("slow");
    stage.takes("slow", 1000, 0);
    stage.install(vec![slow, below]).await;
    stage.until("it is starting", || stage.calls("slow") == 1).await;
    let begun = Instant::now();
    stage.install(vec![input]).await;
    stage.runs(&["slow", "below"]).await;
    assert!(begun.elapsed() < Duration::from_millis(1500), "no delay of a failure");
    stage.quiet().await;
    assert_eq!((stage.calls("slow"), stage.starts("slow")), (2, 1));
    assert_eq!(stage.starts("below"), 1);
    assert_eq!(stage.supervisor.report().workers["slow"].failures, 0);
}

/// a worker that becomes ready after the request to end is ended; its output is never offered, and no
/// worker bounces. A worker that fails before it is ready bounces none either.
#[tokio::test(start_paused = true)]
async fn a_late_output_is_never_offered() {
    let stage = Stage::new();
    let asked = Arc::<AtomicU32>::default();
    let seen = Arc::clone(&asked);
    // The worker fails first, so that no other one waits for it; then it becomes ready without a look at the stop
    // request.
    let late = Manifold::new("late", move |_, life: WorkerContext| {
        let seen = Arc::clone(&seen);
        async move {
            if seen.fetch_add(1, Ordering::SeqCst) < 2 {
                return Err(Failure::again("not yet"));
            }
            tokio::time::sleep(Duration::from_secs(4)).await;
            let is_late = life.stopping().is_cancelled();
            life.ready(Outputs::none().with(is_late));
            tokio::time::sleep(Duration::from_millis(500)).await;
            if is_late { Ok(()) } else { std::future::pending().await }
        }
    });
    let below = stage.worker("below").uses("late");
    stage.install(vec![late.uses("input"), below]).await;
    stage.runs(&["below"]).await;
    assert_eq!(stage.starts("below"), 1);
    stage.until("it is starting", || asked.load(Ordering::SeqCst) == 3).await;
    stage.install(vec![stage.worker("input")]).await;
    stage.runs(&["late"]).await;
    stage.quiet().await;
    assert_eq!(
        asked.load(Ordering::SeqCst),
        4,
        "the third was asked to end, and came all the same"
    );
    assert_eq!(
        (stage.starts("late"), stage.starts("below")),
        (1, 2),
        "bounced by the fourth alone"
    );
    let given = stage.actor("below").seen.lock().expect("whole").clone();
    let given: Vec<_> = given.iter().map(|inputs| inputs.get::<bool>("late").ok()).collect();
    assert_eq!(given, [None, Some(false)]);
}

/// a new input ends the back-off after a failure. The start receives the input, and the next back-off does not
/// grow.
#[tokio::test(start_paused = true)]
async fn an_input_that_comes_ends_a_delay() {
    let stage = Stage::new();
    let waits = stage.worker("waits").uses("input");
    stage.refuse("waits", vec![Failure::again("not yet")]);
    stage.install(vec![waits]).await;
    stage.until("it waits", || stage.state("waits") == Some(State::Waiting)).await;
    let begun = Instant::now();
    stage.install(vec![stage.worker("input")]).await;
    stage.runs(&["waits"]).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let given = stage.actor("waits").seen.lock().expect("whole").clone();
    let given: Vec<_> = given.iter().map(|inputs| inputs.runs("input").is_ok()).collect();
    assert_eq!(given, [false, true]);
    let begun = Instant::now();
    stage.fail("waits");
    stage.until("it is back", || stage.starts("waits") == 2).await;
    let (took, second) = (begun.elapsed(), Duration::from_millis(6700));
    assert!(took < second, "its second failure, not its third: {took:?}");
}

/// a failure restarts the worker after its delay, and each dependent once. A-20: the inputs are not restarted.
#[tokio::test(start_paused = true)]
async fn a_failure_restarts_what_is_below() {
    let stage = Stage::new();
    chain(&stage).await;
    let begun = Instant::now();
    stage.fail("b");
    stage.until("it is back", || stage.starts("b") == 2).await;
    assert!(begun.elapsed() >= Duration::from_secs(3), "after the delay");
    stage.until("so is who needs it", || stage.starts("c") == 2).await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c"].map(|name| stage.starts(name)), [1, 2, 2]);
    assert_eq!(stage.calls("c"), 2, "P-2: not called in vain");
}

/// a clean end is final until an input comes or goes; then the worker starts again.
#[tokio::test(start_paused = true)]
async fn a_clean_end_is_final_until_an_input_changes() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.end("c");
    stage.until("it has ended", || stage.state("c") == Some(State::Stopped)).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((stage.starts("c"), stage.error("c")), (1, String::new()));
    stage.fail("b");
    stage.until("it is run again", || stage.starts("c") == 2).await;
}

/// a failure of the topmost worker restarts all three once, although the other two ended cleanly on
/// request.
#[tokio::test(start_paused = true)]
async fn a_failure_at_the_top_restarts_all_once() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.fail("a");
    stage.until("all are back", || ["a", "b", "c"].iter().all(|n| stage.starts(n) == 2)).await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c"].map(|name| stage.calls(name)), [2, 2, 2]);
}

/// a worker whose required input has ended for good is not started.
#[tokio::test(start_paused = true)]
async fn a_worker_without_its_input_is_not_called() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.end("a");
    stage.until("b rests", || stage.error("b") == "`a` is not running").await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c"].map(|name| stage.calls(name)), [1, 1, 1]);
}

/// a worker that requests a bounce restarts at once, with its dependents. The request is found at any
/// depth of error causes, and all causes are reported.
#[tokio::test(start_paused = true)]
async fn a_requested_restart_happens_at_once() {
    let stage = Stage::new();
    chain(&stage).await;
    let begun = Instant::now();
    for round in 2..12 {
        let wrapped = Wrapped(Some(Box::new(Wrapped(None))));
        stage.cue("b", Cue::End(Err(Failure::new(Kind::Bounce, wrapped))));
        stage.until("both", || stage.starts("b") == round && stage.starts("c") == round).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "P-5: it is no failure, however often");
}

/// An error with causes.
#[derive(Debug)]
struct Wrapped(Option<Box<Self>>);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "around" } else { "within" })
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_deref().map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}

/// the reported reason of a failure includes all its causes.
#[tokio::test(start_paused = true)]
async fn a_reason_is_told_with_its_causes() {
    let stage = Stage::new();
    stage.install(vec![stage.worker("w")]).await;
    stage.runs(&["w"]).await;
    stage.cue("w", Cue::End(Err(Failure::again(Wrapped(Some(Box::new(Wrapped(None))))))));
    stage.until("it is told", || stage.error("w") == "around: within").await;
}

/// the result of a worker that ends on request does not matter: its restart has no back-off.
#[tokio::test(start_paused = true)]
async fn a_failure_on_a_stop_request_is_no_failure() {
    let stage = Stage::new();
    let sulks = Manifold::new("sulks", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.stopping().cancelled().await;
        Err(Failure::again("I was not done"))
    });
    stage.install(vec![stage.worker("input"), sulks.uses("input")]).await;
    stage.runs(&["sulks"]).await;
    let begun = Instant::now();
    for round in 2..6 {
        stage.cue("input", Cue::End(Err(Failure::new(Kind::Bounce, "new"))));
        stage.until("it is back", || stage.starts("sulks") == round).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(stage.supervisor.report().workers["sulks"].failures, 0);
}

/// a worker that ends for good is removed; its dependents are restarted once.
#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_for_good_is_forgotten() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.install(vec![stage.worker("optional").uses("a")]).await;
    stage.runs(&["optional"]).await;
    stage.cue("a", Cue::End(Err(Failure::new(Kind::Uninstall, "done"))));
    stage.until("it is gone", || stage.state("a").is_none()).await;
    stage.quiet().await;
    assert_eq!(
        (stage.calls("a"), stage.calls("b"), stage.state("b")),
        (1, 1, Some(State::Stopped))
    );
    assert_eq!((stage.starts("optional"), stage.state("optional")), (2, Some(State::Running)));
    stage.install(vec![stage.worker("a")]).await;
    stage.runs(&["a", "b", "c"]).await;
    stage.until("it is told", || stage.starts("optional") == 3).await;
}

/// A worker that reports a missing input rests, and is restarted when the input comes.
#[tokio::test(start_paused = true)]
async fn a_worker_with_a_missing_input_rests() {
    let stage = Stage::new();
    let worker = stage.worker("w").uses("later");
    let missing = steadfast::supervisor::Missing::NotRunning("later".into());
    stage.refuse("w", vec![missing.into()]);
    stage.install(vec![worker]).await;
    stage.until("it rests", || stage.error("w") == "`later` is not running").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(stage.calls("w"), 1);
    stage.install(vec![stage.worker("later")]).await;
    stage.runs(&["w"]).await;
}

/// P-4: a diamond is restarted once when its topmost worker restarts.
#[tokio::test(start_paused = true)]
async fn a_diamond_is_restarted_once() {
    let stage = Stage::new();
    let (b, c) = (stage.worker("b").requires("a"), stage.worker("c").requires("a"));
    let d = stage.worker("d").requires("b").requires("c");
    stage.install(vec![stage.worker("a"), b, c, d]).await;
    stage.runs(&["d"]).await;
    assert_eq!(stage.calls("d"), 1);
    stage.cue("a", Cue::End(Err(Failure::new(Kind::Bounce, "new"))));
    stage.until("all are back", || ["a", "b", "c", "d"].iter().all(|n| stage.starts(n) >= 2)).await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c", "d"].map(|name| stage.calls(name)), [2, 2, 2, 2]);
}

/// P-4: a start waits for starting inputs up to a bound; an input that never becomes ready does not delay the start
/// further.
#[tokio::test(start_paused = true)]
async fn a_start_waits_for_inputs_up_to_a_bound() {
    let stage = Stage::new();
    let (slow, waits) = (stage.worker("slow"), stage.worker("waits").uses("slow"));
    stage.takes("slow", 3_600_000, 0);
    let begun = Instant::now();
    stage.install(vec![slow, waits]).await;
    stage.runs(&["waits"]).await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1900) && took < Duration::from_secs(3), "{took:?}");
    assert_eq!(stage.calls("waits"), 1);
}

/// P-4: an input that comes and goes without end delays a start no longer than the bound, once.
#[tokio::test(start_paused = true)]
async fn an_input_that_comes_and_goes_holds_up_nobody_for_ever() {
    let stage = Stage::new();
    let restless = Manifold::new("restless", |_, life: WorkerContext| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        life.ready(Outputs::none());
        tokio::time::sleep(Duration::from_millis(10)).await;
        Err(Failure::new(Kind::Bounce, "again"))
    });
    let begun = Instant::now();
    stage.install(vec![restless, stage.worker("waits").uses("restless")]).await;
    stage.until("it is started", || stage.calls("waits") == 1).await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1900) && took < Duration::from_secs(3), "{took:?}");
    stage.until("it went on coming and going", || stage.starts("restless") > 20).await;
}

/// a worker that ends for good on a request to end is removed, not restarted.
#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_for_good_on_request_is_forgotten() {
    let stage = Stage::new();
    let leaves = Manifold::new("leaves", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.stopping().cancelled().await;
        Err(Failure::new(Kind::Uninstall, "done"))
    });
    stage.install(vec![stage.worker("input"), leaves.uses("input")]).await;
    stage.runs(&["leaves"]).await;
    stage.cue("input", Cue::End(Err(Failure::new(Kind::Bounce, "new"))));
    stage.until("it is gone", || stage.state("leaves").is_none()).await;
    stage.until("the input is back", || stage.starts("input") == 2).await;
    stage.quiet().await;
    assert_eq!(stage.state("leaves"), None);
}
