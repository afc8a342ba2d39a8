//! Tests of the ends of child processes by deadline, cancellation and drop: always the whole group, always
//! reaped.

use crate::support::{
    command, eventually, host, living, permit, query, runtime, shell, unique, wait, zombies,
};
use std::time::{Duration, Instant};
use steadfast_resources::host::{Command, End, Finished};
use tokio_util::sync::CancellationToken;

/// Makes a shell with a child and a grandchild that ignore TERM; all carry the word.
fn stubborn(word: &str) -> Command {
    let text =
        r#"trap "" TERM; /bin/sh -c 'trap "" TERM; while :; do sleep 0.05; done' "$0" & wait"#;
    command(&["/bin/sh", "-c", text, word])
}

/// Runs a command until both processes exist, calls `act`, and waits for the end.
fn run_until_there(command: &Command, word: &str, act: impl FnOnce()) -> Finished {
    let cancel = CancellationToken::new();
    let (command, inner) = (command.clone(), cancel.clone());
    let task = runtime().spawn(async move { host().query(&command, &inner).await });
    eventually("both are there", || living(word).len() == 2);
    act();
    cancel.cancel();
    wait(task).unwrap().unwrap()
}

/// R-16: a group that ignores TERM gets KILL after two seconds.
#[test]
fn a_cancelled_group_gets_term_then_kill() {
    let word = unique("stubborn-1-");
    let mut start = Instant::now();
    let finished = run_until_there(&stubborn(&word), &word, || start = Instant::now());
    assert_eq!(finished.end, End::Cancelled { started: true });
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
    eventually("all are gone", || living(&word).is_empty());
    eventually("all are reaped", || zombies().is_empty());
}

/// R-16: the leader obeys TERM, and its child gets the time to end.
#[test]
fn a_child_that_ends_in_order_is_given_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("in-order");
    let text = r#"/bin/sh -c 'trap "sleep 0.5; : > $1; exit 0" TERM; while :; do sleep 0.05; done' "$0" "$1" & wait"#;
    let word = unique("orderly-1-");
    let orderly = command(&["/bin/sh", "-c", text, &word, mark.to_str().unwrap()]);
    let finished = run_until_there(&orderly, &word, || {
        std::thread::sleep(Duration::from_millis(200));
    });
    assert_eq!(finished.end, End::Cancelled { started: true });
    assert!(mark.exists(), "it was not given the time");
    assert!(living(&word).is_empty());
}

#[test]
fn a_time_that_is_over_ends_the_group() {
    let word = unique("4321.1");
    let mut slow = shell(&format!("echo begun; sleep {word} & sleep {word}"));
    slow.timeout = Some(Duration::from_millis(300));
    let start = Instant::now();
    let finished = query(&slow);
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(finished.stdout.bytes(), b"begun\n");
    assert!(start.elapsed() < Duration::from_secs(2), "they heed TERM: {:?}", start.elapsed());
    assert!(living(&word).is_empty());
    eventually("all are reaped", || zombies().is_empty());
}

/// R-16: a dropped run is killed at once and reaped.
#[test]
fn a_dropped_run_is_killed_and_reaped() {
    let word = unique("stubborn-2-");
    let command = stubborn(&word);
    let task =
        runtime().spawn(async move { host().query(&command, &CancellationToken::new()).await });
    eventually("both are there", || living(&word).len() == 2);
    let start = Instant::now();
    task.abort();
    assert!(wait(task).unwrap_err().is_cancelled());
    eventually("all are gone", || living(&word).is_empty());
    assert!(start.elapsed() < Duration::from_secs(2));
    eventually("reaped", || zombies().is_empty());
}

/// A revoked permit prevents the start of a command.
#[test]
fn a_revoked_permit_stops_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let touch = command(&["touch", mark.to_str().unwrap()]);
    let cancel = CancellationToken::new();
    let permit = permit(&cancel);
    cancel.cancel();
    let finished = wait(host().run(&touch, &permit)).unwrap();
    assert_eq!(finished.end, End::Cancelled { started: false });
    assert!(!mark.exists());
    let finished = wait(host().query(&touch, &cancel)).unwrap();
    assert_eq!(finished.end, End::Cancelled { started: false });
    assert!(!mark.exists());
}

#[test]
fn a_permit_revoked_meanwhile_ends_the_group() {
    let cancel = CancellationToken::new();
    let permit = permit(&cancel);
    let word = unique("4321.2");
    let sleep = command(&["sleep", &word]);
    let task = runtime().spawn(async move { host().run(&sleep, &permit).await });
    eventually("it is there", || !living(&word).is_empty());
    cancel.cancel();
    assert_eq!(wait(task).unwrap().unwrap().end, End::Cancelled { started: true });
    assert!(living(&word).is_empty());
}

/// A process that a run leaves behind on purpose (a daemon) is left alone.
#[test]
fn a_run_may_leave_a_daemon_behind() {
    let word = unique("4321.3");
    let permit = permit(&CancellationToken::new());
    let finished = wait(host().run(&shell(&format!("sleep {word} & echo $!")), &permit)).unwrap();
    assert_eq!(finished.end, End::Exited(0));
    assert!(finished.held, "it holds the output, which is said");
    let pid: i32 = finished.stdout.text().trim().parse().unwrap();
    assert_eq!(living(&word), [pid]);
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Many children with different ends are all reaped.
#[test]
fn many_at_once_are_all_reaped() {
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            runtime().spawn(async move {
                let mut one = shell(["exit 0", "exit 3", "kill -9 $$", "sleep 9"][number % 4]);
                one.timeout = Some(Duration::from_millis(500));
                if number % 5 == 0 {
                    drop(
                        tokio::time::timeout(
                            Duration::from_millis(number as u64),
                            host().query(&one, &CancellationToken::new()),
                        )
                        .await,
                    );
                } else {
                    host().query(&one, &CancellationToken::new()).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        wait(task).unwrap();
    }
    eventually("all are reaped", || zombies().is_empty());
}

/// A run needs no runtime of its own, so kinds on a thread may use it.
#[test]
fn it_works_on_any_executor() {
    let handle = std::thread::spawn(|| {
        let mut query = Box::pin(async {
            host().query(&command(&["echo", "hello"]), &CancellationToken::new()).await
        });
        let waker = std::task::Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
        loop {
            let mut context = std::task::Context::from_waker(&waker);
            match query.as_mut().poll(&mut context) {
                std::task::Poll::Ready(finished) => return finished.unwrap(),
                std::task::Poll::Pending => std::thread::park(),
            }
        }
    });
    assert_eq!(handle.join().unwrap().stdout.bytes(), b"hello\n");
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}
