//! Starts, aborted starts and restarts.

use crate::stage::{Cue, Stage};
use std::time::Duration;
use steadfast::supervisor::{Failure, Kind, State};
use tokio::time::Instant;

async fn chain(stage: &Stage) {
    let (b, c) = (stage.worker("b").requires("a"), stage.worker("c").requires("b"));
    stage.install(vec![stage.worker("a"), b, c]).await;
    stage.runs(&["a", "b", "c"]).await;
}

/// a stop ends a start in progress; nothing is started after it.
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

/// an input that comes during a start aborts it, and the next one is the last; what was aborted was no
/// failure, was never offered to anybody, and bounced nobody.
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
}

/// an input that comes during the delay after a failure ends that delay.
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
}

/// a failure restarts the worker after its delay, and each dependent once. A-20: never its inputs.
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

/// a clean end is final until an input comes or goes; then it is run again.
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

/// a failure at the top restarts all three once, though the others ended well when they were asked to.
#[tokio::test(start_paused = true)]
async fn a_failure_at_the_top_restarts_all_once() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.fail("a");
    stage.until("all are back", || ["a", "b", "c"].iter().all(|n| stage.starts(n) == 2)).await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c"].map(|name| stage.calls(name)), [2, 2, 2]);
}

/// one whose input is gone for good is not called at all.
#[tokio::test(start_paused = true)]
async fn who_lacks_an_input_is_not_called() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.end("a");
    stage.until("b rests", || stage.error("b") == "`a` is not running").await;
    stage.quiet().await;
    assert_eq!(["a", "b", "c"].map(|name| stage.calls(name)), [1, 1, 1]);
}

/// who asks for a restart gets it at once, with who needs it; also through causes of causes.
#[tokio::test(start_paused = true)]
async fn who_asks_for_a_restart_gets_it_at_once() {
    let stage = Stage::new();
    chain(&stage).await;
    let begun = Instant::now();
    for round in 2..12 {
        stage.cue("b", Cue::End(Err(Failure::new(Kind::Bounce, "new"))));
        stage.until("both", || stage.starts("b") == round && stage.starts("c") == round).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "P-5: it is no failure, however often");
}

/// who is done for good is forgotten; who needed it is told once.
#[tokio::test(start_paused = true)]
async fn who_is_done_for_good_is_forgotten() {
    let stage = Stage::new();
    chain(&stage).await;
    stage.cue("a", Cue::End(Err(Failure::new(Kind::Uninstall, "done"))));
    stage.until("it is gone", || stage.state("a").is_none()).await;
    stage.quiet().await;
    assert_eq!(
        (stage.calls("a"), stage.calls("b"), stage.state("b")),
        (1, 1, Some(State::Stopped))
    );
    stage.install(vec![stage.worker("a")]).await;
    stage.runs(&["a", "b", "c"]).await;
}

/// Who lacks something that it found out by itself rests, and is told when an input comes.
#[tokio::test(start_paused = true)]
async fn who_says_that_something_is_missing_rests() {
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

/// P-4: a diamond is restarted once when its top is.
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
