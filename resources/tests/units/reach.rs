//! Tests of the connection to systemd: failures and recovery.

use crate::fake::{Fake, Unit, svc, wait};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use steadfast_resources::CheckResult;
use steadfast_resources::host::systemd::{Bus, Happening};

fn one() -> Fake {
    Fake::new(&[("a.service", Unit::new("inactive", "enabled"))])
}

/// Waits for a condition, and panics after a time limit.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !reached() {
        assert!(Instant::now() < limit, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_bus_that_is_not_there_is_named_and_found_when_it_comes_back() {
    let fake = one();
    let unit = svc("a", &[("state", "running")]);
    assert_eq!(fake.plan(&unit, false).len(), 1);
    fake.vanish();
    // The loss has no event on its own: the resource is checked again from time to time.
    until("the loss that passes", || match fake.check(&unit, false) {
        CheckResult::Unknown(failure) => failure.passes,
        _ => false,
    });
    until("the loss", || {
        fake.plan(&unit, false)[0].starts_with("unknown: systemd on the system bus")
    });
    let session = fake.plan(&svc("a", &[("state", "running"), ("session", "true")]), false);
    assert!(session[0].starts_with("unknown: systemd on the user's bus"), "{session:?}");
    fake.listen();
    until("the return", || fake.plan(&unit, false) == ["state: stopped -> running"]);
}

#[test]
fn a_bus_without_systemd_is_named() {
    let fake = one();
    fake.empty(true);
    let unit = svc("a", &[("state", "running")]);
    let said = fake.plan(&unit, false);
    assert!(said[0].contains("nobody is systemd"), "{said:?}");
    fake.empty(false);
    until("systemd", || fake.plan(&unit, false) == ["state: stopped -> running"]);
}

/// F-12: all callers wait for a hanging bus at the same time, not one after the other.
#[test]
fn a_bus_that_hangs_is_waited_for_once() {
    let fake = one();
    fake.mute(true);
    let unit = svc("a", &[("state", "running")]);
    let began = Instant::now();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (fake, unit) = (fake.clone(), Arc::clone(&unit));
            std::thread::spawn(move || fake.plan(&unit, false))
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap()[0].contains("no response within"));
    }
    assert!(began.elapsed() < Duration::from_secs(16), "{:?}", began.elapsed());
}

#[test]
fn a_subscription_ends_with_its_connection() {
    let fake = one();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let sink = Box::new(move |happening: Happening<'_>| {
        notes.lock().unwrap().push(format!("{happening:?}"));
    });
    let subscription = wait(fake.host.systemd().subscribe(Bus::System, sink)).unwrap();
    fake.vanish();
    wait(subscription.lost());
    let heard = heard.lock().unwrap().clone();
    assert!(matches!(&heard[..], [lost] if lost.starts_with("Lost")), "{heard:?}");
}
