//! The event stream: publication, subscription and recording.

use crate::{changed, start};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use steadfast::api::event_data::Gap;
use steadfast::api::{EventKind, Level};
use steadfast::events::{
    LogWriter, NewEvent, Next, PublishedEvent, Publisher, Reader, Retention, Stream, Subscriber,
    Wanted, stream,
};

/// A running log writer with its thread.
struct LogThread {
    log_writer: Arc<LogWriter>,
    thread: Option<JoinHandle<()>>,
}

impl LogThread {
    fn new(stream: &Stream, directory: &Path) -> Self {
        let log_writer = LogWriter::new(stream, directory.to_owned(), Retention::default());
        let log_writer = Arc::new(log_writer);
        let own = Arc::clone(&log_writer);
        Self { log_writer, thread: Some(std::thread::spawn(move || own.run())) }
    }

    fn end(&mut self) {
        self.log_writer.finish("stopped", "the end".to_owned());
        self.log_writer.leave();
        self.thread.take().expect("once").join().expect("no panic");
    }
}

fn begun() -> (Publisher, Stream) {
    let (publisher, stream) = stream();
    publisher.publish(start());
    (publisher, stream)
}

fn recorded(directory: &Path) -> Vec<PublishedEvent> {
    let reader = Reader::open(directory).expect("readable").expect("there");
    reader.read(0, u64::MAX, usize::MAX).expect("read")
}

/// Collects all events up to the end of the stream; panics if the stream does not end.
fn rest(mut follower: Subscriber) -> Vec<Arc<PublishedEvent>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let told = async {
        let mut told = Vec::new();
        while let Some(next) = follower.next().await {
            let Next::Event(event) = next else { panic!("{next:?}") };
            told.push(event);
        }
        told
    };
    let within = async { tokio::time::timeout(Duration::from_mins(1), told).await };
    runtime.expect("a runtime").block_on(within).expect("an end")
}

/// C-11, C-12, C-19: a subscriber gets each event once, in order and already durable under its number, and then the
/// end.
#[test]
fn c12_it_is_durable_before_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let (_, mut follower) = stream.follow(|_| true);
    let mut log_thread = LogThread::new(&stream, folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for number in 1..=20 {
        let told = runtime.block_on(follower.next()).expect("one more");
        let Next::Event(event) = told else { panic!("{told:?}") };
        assert_eq!(event.number, Some(number));
        assert_eq!(recorded(folder.path()).last(), Some(&*event), "durable by now");
        publisher.publish(changed(&number.to_string()));
    }
    let (_, late) = stream.follow(|_| true);
    log_thread.end();
    let (early, late) = (rest(follower), rest(late));
    let Some(EventKind::RunEnd(end)) = early.last().map(|event| &event.kind) else {
        panic!("no end")
    };
    assert_eq!((end.run, end.session.is_some()), (Some(1), true));
    assert!(!late.is_empty() && early.ends_with(&late));
    assert!(rest(stream.follow(|_| true).1).is_empty(), "after the end there is only the end");
}

/// C-20: after the end of the stream events are dropped and counted, mark requests are rejected, and nothing hangs.
#[tokio::test]
async fn c20_after_the_end_events_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let mut log_thread = LogThread::new(&stream, folder.path());
    log_thread.end();
    let count = recorded(folder.path()).len();
    for _ in 0..5 {
        publisher.publish(changed("late"));
    }
    assert_eq!((publisher.late(), recorded(folder.path()).len()), (5, count));
    let mark = steadfast::events::Mark::Enlist("r".into(), 1);
    stream.mark(mark).await.expect_err("closed");
}

/// C-12: near the end an event waits briefly for others and is then recorded, also without the end of the stream.
#[test]
fn c12_gathered_events_are_recorded_even_without_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let mut log_thread = LogThread::new(&stream, folder.path());
    stream.gather(Duration::from_millis(20));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let mut standing = stream.progress();
    for number in 0..3_u64 {
        publisher.publish(changed(&number.to_string()));
        let recorded = standing.wait_for(|standing| standing.last_number >= number + 2);
        let within = async { tokio::time::timeout(Duration::from_mins(1), recorded).await.is_ok() };
        assert!(runtime.block_on(within), "{number} is recorded");
    }
    log_thread.end();
    assert_eq!(recorded(folder.path()).len(), 5);
}

/// Collects the numbers of all events that a subscriber gets in batches, up to the end.
async fn by_the_beat(mut follower: Subscriber) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(next) = follower.next_batch().await {
        let mut next = Some(next);
        while let Some(Next::Event(event)) = next {
            numbers.extend(event.number);
            next = follower.try_next();
        }
    }
    numbers
}

/// C-19: a subscriber in batches gets each event once and in order, whatever the size of a batch, and the end without
/// another batch.
#[tokio::test(flavor = "multi_thread")]
async fn c19_a_subscriber_of_marks_misses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let beaten = stream.clone();
    let beating = tokio::spawn(async move { beaten.send_marks(Duration::from_millis(1)).await });
    let following: Vec<_> = (0..20)
        .map(|_| {
            let (_, follower) = stream.follow(|_| true);
            tokio::spawn(by_the_beat(follower))
        })
        .collect();
    let mut log_thread = LogThread::new(&stream, folder.path());
    for number in 0..300_u64 {
        publisher.publish(changed(&number.to_string()));
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    log_thread.end();
    for follower in following {
        let numbers = tokio::time::timeout(Duration::from_mins(1), follower).await;
        assert!(numbers.expect("an end").expect("no panic").into_iter().eq(1..=302));
    }
    beating.await.expect("no panic");
    let (_, mut late) = stream.follow(|_| true);
    assert_eq!(late.next_batch().await, None, "after the end there is only the end");
}

/// C-16: a publisher never waits for the log writer; memory is bounded, and dropped events are counted as a gap.
#[test]
fn c16_a_publisher_waits_for_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let began = Instant::now();
    for number in 0..100_000 {
        publisher.publish(changed(&number.to_string()));
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    LogThread::new(&stream, folder.path()).end();
    let events = recorded(folder.path());
    let gap = events.iter().find(|event| event.kind.name() == "gap").expect("a gap");
    let EventKind::Gap(Gap { count, .. }) = gap.kind else { panic!("{gap:?}") };
    assert_eq!(count, Some(100_001 - 65_536));
    assert_eq!(events.len(), 65_536 + 2);
    let numbers = events.iter().filter_map(|event| event.number);
    assert!(numbers.eq(1..=65_538), "contiguous");
}

/// C-16: a slow subscriber gets the number of missed events and continues with the oldest one available.
#[tokio::test]
async fn c16_a_stalled_subscriber_learns_the_number_of_lost_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let (_, mut slow) = stream.follow(|_| true);
    for number in 0..5000 {
        publisher.publish(changed(&number.to_string()));
    }
    LogThread::new(&stream, folder.path()).end();
    // The session start, five thousand events and two ends; 4096 of them are still available.
    let Some(Next::Missed(missed)) = slow.next().await else { panic!("it was slow") };
    assert_eq!(missed, 5003 - 4096);
    let Some(Next::Event(event)) = slow.next().await else { panic!("an event follows") };
    assert_eq!(event.number, Some(missed + 1));
}

/// C-17, C-18: an event that cannot be stored is replaced by an error event, and its neighbours are stored. Debug
/// events are delivered without a number and not stored.
#[test]
fn c17_one_that_cannot_be_kept_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let (_, follower) = stream.follow(|_| true);
    publisher.publish(changed("before"));
    publisher.publish(NewEvent { message: "x".repeat(2 << 20), ..changed("huge") });
    publisher.publish(NewEvent { message: "a\0b".to_owned(), ..changed("nothing") });
    publisher.publish(NewEvent { level: Level::Debug, ..changed("debug") });
    publisher.publish(changed("after"));
    LogThread::new(&stream, folder.path()).end();
    let events = recorded(folder.path());
    let what: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    let error = "internal_error";
    assert_eq!(what, ["run_start", "changed", error, error, "changed", "run_end"]);
    assert_eq!(events[2].resource.as_deref(), Some("file[huge]"));
    assert!(events[2].message.contains(" bytes could not be recorded"), "{}", events[2].message);
    let told = rest(follower);
    assert_eq!(told.len(), 7);
    assert_eq!(told[4].number, None, "debug");
}

/// C-21: of a thousand equal events ten are recorded and the others counted in one event, at the latest at the end; a
/// subscriber gets all of them.
#[test]
fn c21_a_thousand_alike_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let (_, follower) = stream.follow(|_| true);
    for _ in 0..1000 {
        publisher.publish(changed("a"));
    }
    LogThread::new(&stream, folder.path()).end();
    let events = recorded(folder.path());
    assert_eq!(events.len(), 1 + 10 + 1 + 1);
    let alike = events.iter().find(|event| event.kind.name() == "repeated").expect("counted");
    assert_eq!(alike.message, "990 more `changed` events within ten minutes");
    assert_eq!(alike.resource.as_deref(), Some("file[a]"));
    assert_eq!(rest(follower).iter().filter(|event| event.kind.name() == "changed").count(), 1000);
}

/// C-16, C-22: while the log cannot be written, events are delivered without numbers; they are recorded later.
#[test]
fn c22_without_a_log_it_is_told_and_recorded_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join(steadfast::events::DATABASE);
    std::fs::create_dir(&database).expect("in the way");
    let (publisher, stream) = begun();
    let (_, mut follower) = stream.follow(|_| true);
    let mut log_thread = LogThread::new(&stream, folder.path());
    publisher.publish(changed("a"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for what in ["run_start", "changed"] {
        let Some(Next::Event(event)) = runtime.block_on(follower.next()) else { panic!("one") };
        assert_eq!((event.kind.name(), event.number), (what, None));
    }
    assert!(stream.progress().borrow().problem.is_some());
    std::fs::remove_dir(&database).expect("out of the way");
    let end = Instant::now() + Duration::from_mins(1);
    while stream.progress().borrow().problem.is_some() {
        assert!(Instant::now() < end, "it is not tried again");
        std::thread::sleep(Duration::from_millis(10));
    }
    log_thread.end();
    let what: Vec<String> =
        recorded(folder.path()).into_iter().map(|event| event.kind.name().to_owned()).collect();
    assert_eq!(what, ["run_start", "changed", "run_end"]);
    assert_eq!(rest(follower).len(), 1, "nothing is told twice");
}

/// C-18: debug events are recorded as long as a recorder asks for them; a reader gets them only on request.
#[test]
fn c18_debug_events_are_recorded_where_a_recorder_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let (publisher, stream) = begun();
    let asked = stream.record_debug();
    let mut log_thread = LogThread::new(&stream, folder.path());
    let unchanged = || NewEvent::of("file[a]", EventKind::Unchanged, Level::Debug);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    publisher.publish(unchanged());
    let mut standing = stream.progress();
    let recorded_two = standing.wait_for(|standing| standing.last_number >= 2);
    let within = async { tokio::time::timeout(Duration::from_mins(1), recorded_two).await.is_ok() };
    assert!(runtime.block_on(within), "it is recorded");
    drop(asked);
    publisher.publish(unchanged());
    log_thread.end();
    let events = recorded(folder.path());
    let names: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names, ["run_start", "unchanged", "run_end"]);
    let usual = Wanted::default();
    assert!(!usual.admits(&events[1]) && usual.admits(&events[0]));
    assert!(Wanted { details: true, ..Wanted::default() }.admits(&events[1]));
    let reader = Reader::open(folder.path()).expect("readable").expect("there");
    let last_two = Wanted { limit: Some(2), ..Wanted::default() };
    assert_eq!(reader.begin(&last_two).expect("read"), 1, "details do not count");
}
