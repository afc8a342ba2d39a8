//! Tests of commands that are read line by line.

use crate::support::{command, eventually, host, living, shell, unique, wait, zombies};
use std::time::{Duration, Instant};
use steadfast_resources::host::{End, Lines};
use tokio_util::sync::CancellationToken;

#[test]
fn lines_come_as_they_are_printed() {
    let text = r"echo one; sleep 0.2; printf 'two\nthree'; echo gone >&2; exit 4";
    let (texts, finished) = wait(async {
        let mut lines = host().lines(&shell(text), &CancellationToken::new()).await.unwrap();
        let mut texts = Vec::new();
        while let Some(line) = lines.next().await {
            texts.push(line.text);
        }
        (texts, lines.ended().await.unwrap())
    });
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(finished.end, End::Exited(4));
    assert_eq!(finished.stderr.last_lines(1), ["gone"]);
}

#[test]
fn a_line_without_end_is_bounded() {
    let word = unique("4321.7");
    let line = wait(async {
        let flood = format!("head -c 20000000 /dev/zero | tr '\\0' x; echo; sleep {word}");
        let flood = shell(&flood);
        let mut lines = host().lines(&flood, &CancellationToken::new()).await.unwrap();
        lines.next().await.unwrap()
    });
    assert_eq!(line.text.len(), Lines::LONGEST);
    assert!(line.cut);
    eventually("it was killed", || living(&word).is_empty());
}

/// R-16: a dropped watch is killed and reaped.
#[test]
fn a_dropped_watch_is_killed_and_reaped() {
    let text = "trap '' TERM; echo up; while :; do sleep 0.05; done";
    let word = unique("watch-1-");
    let watch = command(&["/bin/sh", "-c", text, &word]);
    wait(async {
        let mut lines = host().lines(&watch, &CancellationToken::new()).await.unwrap();
        assert_eq!(lines.next().await.unwrap().text, "up");
    });
    eventually("it is gone", || living(&word).is_empty());
    eventually("it is reaped", || zombies().is_empty());
}

/// R-16: the group of a stopped or cancelled watch gets TERM.
#[test]
fn a_watch_is_stopped_in_order() {
    let start = Instant::now();
    let word = unique("4321.8");
    for by_token in [true, false] {
        let cancel = CancellationToken::new();
        let finished = wait(async {
            let watch = shell(&format!("echo up; sleep {word} & wait"));
            let mut lines = host().lines(&watch, &cancel).await.unwrap();
            lines.next().await.unwrap();
            if by_token {
                cancel.cancel();
                assert_eq!(lines.next().await, None);
            }
            lines.stop().await.unwrap()
        });
        assert_eq!(finished.end, End::Cancelled { started: true });
        assert!(living(&word).is_empty());
        eventually("all are reaped", || zombies().is_empty());
    }
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_watch_that_cannot_be_started_says_so() {
    let missing = command(&["steadfast-no-such"]);
    let failure = wait(host().lines(&missing, &CancellationToken::new())).unwrap_err();
    assert!(failure.what.contains("steadfast-no-such"));
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(wait(host().lines(&command(&["true"]), &cancel)).is_err());
}

/// A command that prints more than is read waits, and needs no more memory.
#[test]
fn a_listener_that_is_slow_holds_the_command() {
    wait(async {
        let mut lines = host().lines(&command(&["yes"]), &CancellationToken::new()).await.unwrap();
        for _ in 0..1000 {
            assert_eq!(lines.next().await.unwrap().text, "y");
        }
        lines.stop().await.unwrap();
    });
}
