//! Tests of the results of jobs, and of the trust in them.

use crate::fake::{Fake, JobOutcome, Unit, changed, failure, permit, svc, wait};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast_resources::host::systemd::{Applied, Bus, Install};
use steadfast_resources::{CheckRequest, CheckResult, Outcome, Resource, SentValue, Value};
use tokio_util::sync::CancellationToken;

fn with(fate: JobOutcome) -> (Fake, Arc<dyn Resource>) {
    let mut unit = Unit::new("inactive", "enabled");
    unit.fate = fate;
    (Fake::new(&[("a.service", unit)]), svc("a", &[("state", "running")]))
}

#[test]
fn each_end_of_a_job_has_its_words() {
    for (word, result, said) in [
        ("failed", "exit-code", "a.service did not start: exit-code"),
        ("failed", "start-limit-hit", "a.service was started too often"),
        ("timeout", "success", "its job ended with `timeout`"),
        ("dependency", "success", "a required unit did not"),
        ("canceled", "success", "the job was cancelled by another process"),
    ] {
        let (fake, unit) = with(JobOutcome::Ends(word));
        fake.change("a.service", |unit| unit.result = result);
        let told = failure(fake.run(&unit, false));
        assert!(told.contains(said), "{word}: {told}");
    }
    // The result is that of an earlier start.
    let (fake, unit) = with(JobOutcome::Refused);
    fake.change("a.service", |unit| unit.result = "exit-code");
    let told = failure(fake.run(&unit, false));
    assert!(told.contains("too often") && told.contains("reset-failed"), "{told}");
    let (fake, unit) = with(JobOutcome::EndsAtOnce);
    let told = failure(fake.run(&unit, false));
    assert!(told.contains("exited successfully") && told.contains("RemainAfterExit=yes"), "{told}");
}

/// Every user may send a signal, so only systemd's signals count. A cancelled run returns.
#[test]
fn the_end_of_a_job_is_believed_of_nobody_else() {
    let (fake, unit) = with(JobOutcome::Hangs);
    let change = fake.differs(&unit, false);
    let cancel = CancellationToken::new();
    let permit = permit(&cancel);
    let began = Instant::now();
    let outcome = wait(async {
        let run = unit.apply(&fake.host, &permit, change);
        let cancel_later = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        };
        tokio::join!(run, cancel_later).0
    });
    assert_eq!(outcome, Outcome::Interrupted);
    assert!(began.elapsed() >= Duration::from_millis(300), "a stranger's word was taken");
    assert!(began.elapsed() < Duration::from_secs(10), "it did not return when it was cancelled");
    fake.wait_for("StartUnit a.service");
}

#[test]
fn a_connection_lost_during_a_job_is_a_failure_and_the_next_run_goes_well() {
    let (fake, unit) = with(JobOutcome::Cuts);
    let told = failure(fake.run(&unit, false));
    assert!(told.contains("the D-Bus connection was lost"), "{told}");
    fake.change("a.service", |unit| (unit.active, unit.fate) = ("inactive", JobOutcome::Done));
    assert_eq!(fake.run(&unit, false), changed(&["started"]));
}

/// F-12: a systemd that does not reply delays a check only until its cancellation.
#[test]
fn a_check_that_is_not_answered_ends_when_it_is_cancelled() {
    let (fake, unit) = with(JobOutcome::Done);
    assert_eq!(fake.plan(&unit, false).len(), 1);
    fake.mute(true);
    let cancel = CancellationToken::new();
    let ask = CheckRequest { run: true, cancel: cancel.clone(), ..CheckRequest::default() };
    let verdict = wait(async {
        let cancel_later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        };
        tokio::join!(unit.check(&fake.host, ask), cancel_later).0
    });
    assert!(matches!(verdict, CheckResult::Unknown(_)), "{verdict:?}");
}

/// Nothing is requested under a revoked permit.
#[test]
fn a_revoked_permit_changes_nothing() {
    let (fake, unit) = with(JobOutcome::Done);
    let change = fake.differs(&unit, false);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let permit = permit(&cancel);
    assert_eq!(wait(unit.apply(&fake.host, &permit, change)), Outcome::Interrupted);
    let systemd = fake.host.systemd();
    for install in [Install::Enable, Install::Disable, Install::Mask, Install::Unmask] {
        let applied = wait(systemd.install(Bus::System, install, "a.service", &permit));
        assert_eq!(applied, Ok(Applied::Revoked));
    }
    assert_eq!(wait(systemd.reload(Bus::System, &permit)), Ok(Applied::Revoked));
    assert_eq!(fake.asked(), Vec::<String>::new());
    assert_eq!(fake.active("a.service"), "inactive");
}

#[test]
fn reloads_that_come_together_are_one() {
    let (fake, _) = with(JobOutcome::Done);
    let permit = permit(&CancellationToken::new());
    let systemd = fake.host.systemd();
    // Connects first: callers that wait for the connection could come one after the other.
    assert_eq!(wait(systemd.reload(Bus::System, &permit)), Ok(Applied::Yes));
    let before = fake.asked().len();
    // The first reload is in progress while the others are requested.
    fake.hold(true);
    let all = futures_util::future::join_all((0..20).map(|_| systemd.reload(Bus::System, &permit)));
    let (all, ()) = wait(futures_util::future::join(all, async { fake.hold(false) }));
    for applied in all {
        assert_eq!(applied, Ok(Applied::Yes));
    }
    assert_eq!(fake.asked().len() - before, 2, "reloads");
}

/// A unit sends its state, and what its type has: the process and restarts, the next start, the addresses.
#[test]
fn units_send_what_they_are() {
    let mut service = Unit::new("active", "enabled");
    service.restarts = 2;
    let timer = Unit::new("active", "enabled");
    let socket = Unit::new("inactive", "enabled");
    let fake = Fake::new(&[("a.service", service), ("a.timer", timer), ("a.socket", socket)]);
    let sent = |name: &str| {
        let unit = svc(name, &[("startup", "enabled")]);
        let never = CancellationToken::new();
        let read = wait(unit.read_sent(&fake.host, &never).expect("a unit sends")).unwrap();
        let shown = |(key, value): (&str, SentValue)| match value {
            SentValue::Shown(Value::Texts(texts)) => format!("{key}={}", texts.join("+")),
            SentValue::Shown(Value::Text(text)) => format!("{key}={text}"),
            SentValue::Shown(Value::Int(number)) => format!("{key}={number}"),
            other => panic!("{key}: {other:?}"),
        };
        read.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(sent("a.service"), ["state=active", "startup=enabled", "pid=42", "restarts=2"]);
    assert_eq!(sent("a.timer"), ["state=active", "startup=enabled", "next=1700000000"]);
    let socket = ["state=inactive", "startup=enabled", "listening=Stream [::]:22"];
    assert_eq!(sent("a.socket"), socket);
    assert_eq!(sent("none.service"), ["state=inactive"]);
}
