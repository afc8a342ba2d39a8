//! Hung workers and threads.

use crate::harness::{Stage, delays};
use crate::misbehaving_workers::wait_for;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::supervisor::{Delays, Manifold, Outputs, State, Supervisor, WorkerContext};
use tokio::sync::oneshot;
use tokio::time::{Instant, advance, sleep};

const LIMIT: Duration = Duration::from_secs(30);

/// Creates a worker with a heartbeat until the flag makes it hang.
fn mortal(hangs: &Arc<AtomicBool>) -> Manifold {
    let hangs = Arc::clone(hangs);
    let worker = Manifold::new("w", move |_, life: WorkerContext| {
        let hangs = Arc::clone(&hangs);
        async move {
            life.ready(Outputs::none());
            loop {
                if hangs.swap(false, Ordering::SeqCst) {
                    pending::<()>().await;
                }
                tokio::select! {
                    () = life.prove_alive() => {}
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    });
    worker.heartbeat_within(LIMIT)
}

/// F-19: a hung worker is named and cut off in time; it counts as failed and is restarted with its dependents.
#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_cut_off_and_tried_again() {
    let stage = Stage::new();
    let hangs = Arc::<AtomicBool>::default();
    stage.install(vec![mortal(&hangs), stage.worker("below").requires("w")]).await;
    stage.runs(&["w", "below"]).await;
    sleep(Duration::from_hours(5)).await;
    assert_eq!((stage.starts("w"), stage.starts("below")), (1, 1), "it lives");

    hangs.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    stage.until("it is cut off", || stage.state("w") == Some(State::Waiting)).await;
    let took = begun.elapsed();
    assert!(took >= LIMIT && took < LIMIT * 2, "{took:?}");
    assert!(stage.error("w").starts_with("the worker hung for"), "{}", stage.error("w"));
    let begun = Instant::now();
    stage.runs(&["w", "below"]).await;
    assert!(begun.elapsed() >= Duration::from_secs(2), "after the delay of a failure");
    assert_eq!((stage.starts("w"), stage.starts("below")), (2, 2));
    let told = stage.supervisor.report().workers["w"].clone();
    assert_eq!((told.failures, told.hangs_for, told.last_error), (1, None, None));
    assert!(told.last_failure.is_some_and(|why| why.starts_with("the worker hung for ")));
    sleep(Duration::from_hours(1)).await;
    assert_eq!(stage.supervisor.report().workers["w"].failures, 0, "an hour is over");
}

/// P-8: repeated hangs use up the failure budget.
#[tokio::test(start_paused = true)]
async fn to_hang_is_a_failure_to_be_counted() {
    let budget = Some((2, Duration::from_hours(1)));
    let stage = Stage::with(Delays { budget, ..delays() });
    let hangs = Arc::<AtomicBool>::default();
    stage.install(vec![mortal(&hangs)]).await;
    for round in 1..=2 {
        stage.until("it runs", || stage.starts("w") == round).await;
        hangs.store(true, Ordering::SeqCst);
        sleep(LIMIT * 2).await;
    }
    let ended = stage.supervisor.ended().await;
    assert_eq!(ended.fatal.as_ref().map(|(who, _)| who.to_string()), Some("w".to_owned()));
}

/// F-11: a process that was stopped, or a machine that slept, makes no worker count as hung.
#[tokio::test(start_paused = true)]
async fn a_suspended_worker_does_not_count_as_hung() {
    let stage = Stage::new();
    let hangs = Arc::<AtomicBool>::default();
    stage.install(vec![mortal(&hangs)]).await;
    stage.runs(&["w"]).await;
    for _ in 0..20 {
        advance(Duration::from_mins(10)).await;
        sleep(Duration::from_secs(7)).await;
    }
    assert_eq!((stage.starts("w"), stage.state("w")), (1, Some(State::Running)));
}

/// A worker in a declared long wait does not count as hung, however long the wait takes.
#[tokio::test(start_paused = true)]
async fn a_waiting_worker_does_not_count_as_hung() {
    let stage = Stage::new();
    let waits = Manifold::new("w", |_, life: WorkerContext| async move {
        life.ready(Outputs::none());
        life.during(sleep(Duration::from_hours(2))).await;
        Ok(())
    });
    stage.install(vec![waits.heartbeat_within(LIMIT)]).await;
    stage.runs(&["w"]).await;
    sleep(Duration::from_mins(119)).await;
    assert_eq!((stage.starts("w"), stage.state("w")), (1, Some(State::Running)));
    stage.until("it has ended", || stage.state("w") == Some(State::Stopped)).await;
    assert_eq!((stage.starts("w"), stage.error("w").as_str()), (1, ""));
}

/// A simulated thread with a heartbeat on request.
#[derive(Default)]
struct Thread {
    hangs: AtomicBool,
    asked: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Thread {
    fn ask(&self) -> oneshot::Receiver<()> {
        let (to, answer) = oneshot::channel();
        self.asked.lock().expect("whole").push(to);
        if !self.hangs.load(Ordering::SeqCst) {
            self.goes_on();
        }
        answer
    }

    fn goes_on(&self) {
        self.hangs.store(false, Ordering::SeqCst);
        for to in self.asked.lock().expect("whole").drain(..) {
            let _told = to.send(());
        }
    }
}

/// A hung thread cannot be cut off; it is named for as long as it hangs.
#[tokio::test(start_paused = true)]
async fn a_thread_that_hangs_is_named() {
    let supervisor = Supervisor::start(delays()).expect("valid");
    let (thread, starts) = (Arc::<Thread>::default(), Arc::<AtomicU32>::default());
    let own = (Arc::clone(&thread), Arc::clone(&starts));
    let holds = Manifold::new("w", move |_, life: WorkerContext| {
        let (thread, starts) = own.clone();
        async move {
            starts.fetch_add(1, Ordering::SeqCst);
            life.ready(Outputs::none());
            tokio::select! {
                never = life.watch_thread(|| thread.ask()) => match never {},
                () = life.stopping().cancelled() => Ok(()),
            }
        }
    });
    supervisor.install(vec![holds.heartbeat_within(LIMIT)]).await.expect("installed");
    let hangs = || supervisor.report().workers["w"].hangs_for;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(hangs(), None);
    thread.hangs.store(true, Ordering::SeqCst);
    sleep(LIMIT * 3).await;
    let long = hangs().expect("it is named");
    assert!((60_000..=90_000).contains(&long), "{long}");
    sleep(LIMIT * 10).await;
    assert_eq!(starts.load(Ordering::SeqCst), 1, "its task lives: to cut it off would end nothing");
    thread.goes_on();
    sleep(LIMIT).await;
    assert_eq!(hangs(), None, "it answers again");
    supervisor.stop(None);
    assert!(supervisor.ended().await.late.is_empty());
}

/// A worker that blocks its thread cannot be cut off; it is named and not started a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_worker_is_named_and_not_started_again() {
    let cut_off = Duration::from_millis(50);
    let supervisor = Supervisor::start(Delays { cut_off, ..Delays::default() }).expect("valid");
    let (free, starts) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let own = (Arc::clone(&free), Arc::clone(&starts));
    let blocks = Manifold::new("w", move |_, life: WorkerContext| {
        let (free, starts) = own.clone();
        async move {
            life.ready(Outputs::none());
            if starts.fetch_add(1, Ordering::SeqCst) == 0 {
                // The runtime moves the other tasks of the blocked thread to another thread.
                tokio::task::block_in_place(|| wait_for(&free));
            }
            life.during(life.stopping().cancelled()).await;
            Ok(())
        }
    });
    let workers = vec![blocks.heartbeat_within(Duration::from_millis(200))];
    supervisor.install(workers).await.expect("installed");
    let of = || supervisor.report().workers["w"].clone();
    while of().hangs_for.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((of().state, starts.load(Ordering::SeqCst)), (State::Stopping, 1));
    free.store(true, Ordering::SeqCst);
    while of().starts < 2 {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(of().hangs_for, None);
    supervisor.stop(None);
    assert!(supervisor.ended().await.late.is_empty());
}
