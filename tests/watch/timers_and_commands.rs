//! Sources other than paths: timers and watch commands.

use crate::listener::Ears;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use steadfast::watch::{ExternalSources, LineSource, LineStream, SourceError, SourceFuture};
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use steadfast_resources::host::Command;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// W-15 (of the hub): a timer fires at its interval until it is disarmed.
#[test]
fn a_timer_fires_at_each_interval() {
    let ears = Ears::new();
    let start = Instant::now();
    ears.hub.arm(VertexId(1), vec![WatchSource::Every(Duration::from_millis(20))]);
    ears.until(1, |heard| heard.established == 1 && heard.changed >= 5);
    assert!(start.elapsed() >= Duration::from_millis(100));
    ears.hub.disarm(VertexId(1));
    let after = ears.heard(1);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(ears.heard(1), after, "nothing is told after it was disarmed");
}

/// Simulated watch commands.
#[derive(Default)]
struct Script {
    next: Mutex<VecDeque<Result<UnboundedReceiver<()>, SourceError>>>,
}

struct Stream(UnboundedReceiver<()>);

impl LineSource for Script {
    fn open<'s>(
        &'s self,
        _: &'s Command,
    ) -> SourceFuture<'s, Result<Box<dyn LineStream>, SourceError>> {
        let next = self.next.lock().expect("not poisoned").pop_front();
        Box::pin(async move {
            match next {
                Some(Ok(lines)) => Ok(Box::new(Stream(lines)) as Box<dyn LineStream>),
                Some(Err(why)) => Err(why),
                None => std::future::pending().await,
            }
        })
    }
}

impl LineStream for Stream {
    fn next(&mut self) -> SourceFuture<'_, bool> {
        Box::pin(async { self.0.recv().await.is_some() })
    }

    fn ended(self: Box<Self>) -> SourceFuture<'static, String> {
        Box::pin(async { "exit code 3".to_owned() })
    }
}

#[test]
fn lines_are_events_and_the_command_is_started_again() {
    let script = Arc::new(Script::default());
    let speak = |script: &Script| -> UnboundedSender<()> {
        let (speaker, lines) = unbounded_channel();
        script.next.lock().expect("not poisoned").push_back(Ok(lines));
        speaker
    };
    let ears = Ears::with(ExternalSources {
        lines: Some(Arc::clone(&script) as Arc<dyn LineSource>),
        units: None,
    });
    let first = speak(&script);
    let path = ears.file("file", "x");
    let sources = vec![
        WatchSource::Lines(Command::default()),
        WatchSource::Path { path: path.clone(), below: false },
    ];
    ears.hub.arm(VertexId(1), sources);
    ears.until(1, |heard| heard.established == 1);
    first.send(()).expect("heard");
    ears.until(1, |heard| heard.changed == 1);
    std::fs::write(&path, "y").expect("written");
    ears.until(1, |heard| heard.changed > 1);
    let second = speak(&script);
    drop(first);
    let heard = ears.until(1, |heard| heard.absent.len() == 1);
    assert!(heard.absent[0].contains("exit code 3"), "{heard:?}");
    let again = ears.until(1, |heard| heard.established == 2);
    assert!(again.suspect > heard.suspect, "what it would have said meanwhile is not known");
    second.send(()).expect("heard");
    ears.until(1, |heard| heard.changed > again.changed);
    ears.hub.disarm(VertexId(1));
    let closed = Instant::now() + crate::listener::LONG;
    while !second.is_closed() {
        assert!(Instant::now() < closed, "the command is let go");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// R7: a command that prints without a pause makes events with doubling delays; after a quiet time its next line is an
/// event at once.
#[test]
fn a_command_that_prints_all_the_time_is_slowed_down() {
    let script = Arc::new(Script::default());
    let (speaker, lines) = unbounded_channel();
    script.next.lock().expect("not poisoned").push_back(Ok(lines));
    let ears = Ears::with(ExternalSources {
        lines: Some(Arc::clone(&script) as Arc<dyn LineSource>),
        units: None,
    });
    ears.hub.arm(VertexId(1), vec![WatchSource::Lines(Command::default())]);
    ears.until(1, |heard| heard.established == 1);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        speaker.send(()).expect("heard");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The delays before the seventh event add up to 3.15 s.
    let noisy = ears.heard(1).changed;
    assert!((1..=7).contains(&noisy), "{noisy} events");
    speaker.send(()).expect("heard");
    ears.until(1, |heard| heard.changed > noisy);
}

#[test]
fn a_command_that_cannot_be_run_is_absent() {
    let ears = Ears::new();
    ears.hub.arm(VertexId(1), vec![WatchSource::Lines(Command::default())]);
    let heard = ears.until(1, |heard| !heard.absent.is_empty());
    assert_eq!(heard.established, 0);
    // A vertex without sources is established at once.
    ears.hub.arm(VertexId(2), Vec::new());
    ears.until(2, |heard| heard.established == 1);
}
