//! Signals of the operator: no signal is lost, repeated signals merge, and stop signals are counted.

use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use nix::sys::signal::raise;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use steadfast::signals::{Signal, Signals};

/// A lock for the process's signals, which all tests of this target share.
static ALONE: Mutex<()> = Mutex::new(());

fn installed() -> Signals {
    Signals::install().expect("installed")
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

/// Sorts signals by name, since different signals have no order.
fn sorted(mut signals: Vec<Signal>) -> Vec<String> {
    signals.sort_by_key(|signal| format!("{signal:?}"));
    signals.iter().map(|signal| format!("{signal:?}")).collect()
}

/// signals sent before the first wait are found; repeats merge, and stops are counted.
#[test]
fn signals_before_the_first_wait_are_found() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut signals = installed();
    for number in [SIGUSR1, SIGHUP, SIGHUP, SIGTERM, SIGINT] {
        raise(number).expect("sent");
    }
    assert!(signals.stops().is_asked());
    let expected = [Signal::Stop, Signal::Stop, Signal::Reload, Signal::Pause];
    assert_eq!(sorted(collect(&mut signals, expected.len())), sorted(expected.to_vec()));
}

/// The last of pause and resume decides, however often both were sent.
#[test]
fn the_last_of_pause_and_resume_decides() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (last, expected) in [(SIGUSR1, Signal::Pause), (SIGUSR2, Signal::Resume)] {
        let mut signals = installed();
        for number in [SIGUSR2, SIGUSR1, SIGUSR2, SIGUSR1, last] {
            raise(number).expect("sent");
        }
        assert_eq!(collect(&mut signals, 1), [expected]);
    }
}

/// F-20: a storm of unread signals blocks nothing, and the final state is right: pause, reload and stop.
#[test]
fn a_storm_ends_in_the_right_state() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut signals = installed();
    for _ in 0..300_000 {
        raise(SIGUSR1).expect("sent");
        raise(SIGUSR2).expect("sent");
    }
    for number in [SIGTERM, SIGUSR2, SIGUSR1, SIGHUP] {
        raise(number).expect("sent");
    }
    let expected = [Signal::Stop, Signal::Reload, Signal::Pause];
    assert_eq!(sorted(collect(&mut signals, expected.len())), sorted(expected.to_vec()));
}

/// Two listeners both receive a signal, and a dropped listener receives none.
#[test]
fn installed_again_after_it_was_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    drop(installed());
    let mut second = installed();
    raise(SIGHUP).expect("sent");
    assert_eq!(collect(&mut second, 1), [Signal::Reload]);
}
