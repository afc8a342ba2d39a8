//! Tests of the input and output of a child: bounded and free of deadlocks.

use crate::support::{command, eventually, living, output, query, shell, unique, zombies};
use std::fs;
use std::time::{Duration, Instant};
use steadfast_resources::host::{Captured, End};

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_100_mib_costs_what_is_kept() {
    let before = peak_kib();
    let flood = "head -c 104857600 /dev/zero; head -c 104857600 /dev/zero >&2; echo the end >&2";
    let finished = query(&shell(flood));
    assert!(finished.is_success());
    assert_eq!(finished.stdout.total(), 104_857_600);
    assert!(finished.stdout.truncated() && finished.stderr.truncated());
    assert_eq!(finished.stdout.bytes().len(), Captured::BOUND);
    assert!(finished.stderr.last_lines(1)[0].chars().count() <= 200);
    let grown = peak_kib() - before;
    assert!(grown < 32 * 1024, "grew by {grown} KiB");
}

#[test]
fn more_input_than_a_pipe_holds_is_no_deadlock() {
    let mut cat = command(&["cat"]);
    cat.stdin = Some("0123456789abcdef".repeat(32 * 1024).into());
    assert_eq!(output(&cat), cat.stdin.clone().unwrap().reveal());
    let mut no_reader = command(&["true"]);
    no_reader.stdin.clone_from(&cat.stdin);
    assert_eq!(output(&no_reader), "", "a child that does not read is no failure");
    let shown = format!("{cat:?}");
    assert!(!shown.contains("0123456789"), "S-6: what it reads is not shown");
}

#[test]
fn streams_are_kept_apart() {
    let finished = query(&shell("echo out; echo err >&2; exit 7"));
    assert_eq!(finished.end, End::Exited(7));
    assert_eq!((finished.stdout.bytes(), finished.stderr.bytes()), (&b"out\n"[..], &b"err\n"[..]));
    assert!(!finished.held);
}

#[test]
fn a_signal_is_not_a_code() {
    assert_eq!(query(&shell("kill -SEGV $$")).end, End::Killed(11));
}

/// a grandchild that holds the output open does not delay the end of the run; nothing of a query
/// remains.
#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_the_run() {
    let word = unique("4321.9");
    let start = Instant::now();
    let finished = query(&shell(&format!("sleep {word} & echo started")));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(finished.stdout.bytes(), b"started\n");
    assert_eq!(finished.end, End::Exited(0));
    eventually("what a query left behind is gone", || living(&word).is_empty());
    eventually("all are reaped", || zombies().is_empty());
}
