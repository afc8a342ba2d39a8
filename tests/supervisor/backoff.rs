//! The back-off of failing workers.

use crate::harness::{Stage, delays};
use std::time::Duration;
use steadfast::supervisor::{Delays, Failure};

fn growing() -> Delays {
    let second = Duration::from_secs(1);
    Delays { error: second, factor: 2.0, longest: 3 * second, ..delays() }
}

fn spacing(stage: &Stage, name: &str) -> Vec<f64> {
    let times = stage.actor(name).times.lock().expect("whole").clone();
    times.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect()
}

/// A-36, P-5: the back-off grows from one second by the factor and stays between the first and the longest delay.
#[tokio::test(start_paused = true)]
async fn waits_grow_up_to_the_longest() {
    let stage = Stage::with(growing());
    let worker = stage.worker("w");
    stage.refuse("w", vec![Failure::again("no"); 6]);
    stage.install(vec![worker]).await;
    stage.runs(&["w"]).await;
    let waits = spacing(&stage, "w");
    for (wait, wanted) in waits.iter().zip([1.0, 2.0, 3.0, 3.0, 3.0, 3.0]) {
        assert!((wanted..=wanted * 1.1 + 0.01).contains(wait), "{waits:?}");
        assert!(*wait <= 3.01, "{waits:?}");
    }
    assert_eq!(waits.len(), 6);
}

/// the back-off counts from the end of a worker, not from its start.
#[tokio::test(start_paused = true)]
async fn a_wait_begins_at_the_end() {
    let stage = Stage::with(growing());
    stage.install(vec![stage.worker("w")]).await;
    stage.runs(&["w"]).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    stage.fail("w");
    stage.until("it is back", || stage.starts("w") == 2).await;
    let wait = spacing(&stage, "w")[0] - 100.0;
    assert!((0.99..1.2).contains(&wait), "{wait}");
}

/// a long successful life resets the back-off.
#[tokio::test(start_paused = true)]
async fn a_long_run_is_a_new_beginning() {
    let stage = Stage::with(growing());
    let worker = stage.worker("w");
    stage.refuse("w", vec![Failure::again("no"); 5]);
    stage.install(vec![worker]).await;
    stage.runs(&["w"]).await;
    tokio::time::sleep(Duration::from_mins(6)).await;
    let begun = tokio::time::Instant::now();
    stage.fail("w");
    stage.until("it is back", || stage.starts("w") == 2).await;
    assert!(begun.elapsed() < Duration::from_millis(1200), "{:?}", begun.elapsed());
}

/// after two hundred failures with a factor of 100, each delay is still between the first and the longest.
#[tokio::test(start_paused = true)]
async fn no_wait_overflows() {
    let stage = Stage::with(Delays { factor: 100.0, ..growing() });
    let worker = stage.worker("w");
    stage.refuse("w", vec![Failure::again("no"); 200]);
    stage.install(vec![worker]).await;
    stage.runs(&["w"]).await;
    let waits = spacing(&stage, "w");
    assert_eq!(waits.len(), 200);
    assert!(waits.iter().all(|wait| (0.99..=3.02).contains(wait)), "{waits:?}");
}

/// the back-off also grows for a worker that fails soon after each start.
#[tokio::test(start_paused = true)]
async fn waits_grow_for_who_breaks_soon_after_its_start() {
    let stage = Stage::with(growing());
    stage.install(vec![stage.worker("w")]).await;
    for round in 1..=4 {
        stage.until("it runs", || stage.starts("w") == round).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.fail("w");
    }
    stage.until("it is back", || stage.starts("w") == 5).await;
    let waits = spacing(&stage, "w");
    for (wait, wanted) in waits.iter().zip([1.0, 2.0, 3.0, 3.0]) {
        let wait = wait - 0.5;
        assert!((wanted - 0.01..=wanted * 1.1 + 0.02).contains(&wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 4);
}

/// a stop does not wait for the end of a back-off.
#[tokio::test(start_paused = true)]
async fn a_stop_cuts_a_wait_short() {
    let hour = Duration::from_hours(1);
    let stage = Stage::with(Delays { error: hour, longest: hour, ..delays() });
    stage.install(vec![stage.worker("w")]).await;
    stage.runs(&["w"]).await;
    stage.fail("w");
    stage.until("it waits", || stage.error("w") == "w broke").await;
    let begun = tokio::time::Instant::now();
    stage.supervisor.stop(None);
    stage.supervisor.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(stage.calls("w"), 1);
}
