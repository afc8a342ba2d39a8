//! Signals arrive in the order in which they were sent, also those sent before anybody listened.

use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use nix::sys::signal::{SigSet, raise};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use steadfast::signals::{Signal, Signals};

/// The tests share one process, and so its signals.
static ALONE: Mutex<()> = Mutex::new(());

/// The tests send to their own thread, which would keep what is blocked: here the handlers take it.
fn installed() -> Signals {
    let signals = Signals::install().expect("installed");
    SigSet::empty().thread_set_mask().expect("unblocked");
    signals
}

fn collect(signals: &mut Signals, count: usize) -> Vec<Signal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut seen = Vec::new();
        while seen.len() < count {
            let next = tokio::time::timeout(Duration::from_secs(20), signals.next()).await;
            seen.push(next.expect("one comes").expect("readable"));
        }
        let more = tokio::time::timeout(Duration::from_millis(20), signals.next()).await;
        assert!(more.is_err(), "no more than were sent: {more:?}");
        seen
    })
}

/// nothing sent at start-up is lost; order and repeats are kept.
#[test]
fn order_and_repeats_are_kept() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut signals = installed();
    for number in [SIGUSR2, SIGUSR1, SIGUSR1, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGINT] {
        raise(number).expect("sent");
    }
    let expected = [
        Signal::Resume,
        Signal::Pause,
        Signal::Pause,
        Signal::Reload,
        Signal::Stop,
        Signal::Pause,
        Signal::Resume,
        Signal::Stop,
    ];
    assert_eq!(collect(&mut signals, expected.len()), expected);
}

/// F-20: a storm that nobody reads blocks nothing, and its end is right: paused or not, reloaded, stopped.
#[test]
fn a_storm_ends_in_the_right_state() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut signals = installed();
    for _ in 0..35_000 {
        raise(SIGUSR1).expect("sent");
        raise(SIGUSR2).expect("sent");
    }
    for number in [SIGTERM, SIGUSR2, SIGUSR1, SIGHUP] {
        raise(number).expect("sent");
    }
    let seen = collect(&mut signals, 65_536 + 3);
    assert_eq!(seen[..2], [Signal::Pause, Signal::Resume]);
    assert_eq!(seen[65_536..], [Signal::Reload, Signal::Pause, Signal::Stop]);
}

/// Two who listen both hear, and one that is gone is not written to.
#[test]
fn installed_again_after_it_was_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    drop(installed());
    let mut second = installed();
    raise(SIGHUP).expect("sent");
    assert_eq!(collect(&mut second, 1), [Signal::Reload]);
}
