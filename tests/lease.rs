//! The lease: kept in time, lost when it must be, given back always (C-1 to C-9). On a clock of the test's own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::lease::{Answer, Gone, Lease, Local, Renewal, Standing, Token, keep};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const LIFETIME: Duration = Duration::from_secs(80);

/// What happened to a lease of the test's.
#[derive(Debug, Default)]
struct Story {
    /// When renewals were asked for, since the start.
    renewals: Vec<Duration>,
    released: Option<u64>,
}

/// A lease that answers as it is told.
struct Scripted {
    began: Instant,
    refuses: bool,
    /// For each renewal; when none is left, all is well.
    answers: VecDeque<Next>,
    story: Arc<Mutex<Story>>,
    epoch: u64,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Well,
    Fails,
    Hangs,
    Taken,
}

#[derive(Debug, thiserror::Error)]
#[error("it is held by pid 7 on another host")]
struct Held;

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Next>) -> (Self, Arc<Mutex<Story>>) {
        let story = Arc::<Mutex<Story>>::default();
        let answers = answers.into_iter().collect();
        let (began, seen) = (Instant::now(), Arc::clone(&story));
        (Self { began, refuses: false, answers, story, epoch: 1 }, seen)
    }
}

impl Lease for Scripted {
    type Refusal = Held;

    fn acquire(&mut self) -> Answer<'_, Result<Token, Held>> {
        let token = Token { epoch: self.epoch, lifetime: Some(LIFETIME) };
        let answer = if self.refuses { Err(Held) } else { Ok(token) };
        Box::pin(std::future::ready(answer))
    }

    fn renew(&mut self, token: Token) -> Answer<'_, Renewal> {
        self.story.lock().expect("sound").renewals.push(self.began.elapsed());
        match self.answers.pop_front().unwrap_or(Next::Well) {
            Next::Well => Box::pin(std::future::ready(Renewal::Renewed(token))),
            Next::Fails => Box::pin(std::future::ready(Renewal::Later("no route".to_owned()))),
            Next::Taken => Box::pin(std::future::ready(Renewal::Lost("taken".to_owned()))),
            Next::Hangs => Box::pin(std::future::pending()),
        }
    }

    fn release(&mut self, token: Token) -> Answer<'_, Result<(), String>> {
        self.story.lock().expect("sound").released = Some(token.epoch);
        Box::pin(std::future::ready(Ok(())))
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

async fn hold(
    answers: impl IntoIterator<Item = Next>,
    long: Duration,
) -> (Result<(), Gone<Held>>, Standing, Story) {
    let (mut lease, story) = Scripted::new(answers);
    let (standing, stop) = (watch::Sender::default(), CancellationToken::new());
    let ending = stop.clone();
    let watcher = tokio::spawn(async move {
        tokio::time::sleep(long).await;
        ending.cancel();
    });
    let kept = keep(&mut lease, &standing, &stop).await;
    watcher.abort();
    let now = standing.borrow().clone();
    (kept, now, std::mem::take(&mut *story.lock().expect("sound")))
}

/// C-3, C-5, C-8: renewed at half its life, no sooner and not twice; given back at the end.
#[tokio::test(start_paused = true)]
async fn it_is_renewed_at_half_its_life() {
    let (kept, standing, story) = hold([], Duration::from_secs(195)).await;
    assert!(kept.is_ok());
    assert_eq!(standing, Standing::Held(1));
    assert_eq!(story.renewals, [40, 80, 120, 160].map(Duration::from_secs));
    assert_eq!(story.released, Some(1));
}

/// C-4, C-7: what fails or hangs for a while is tried at each check, and the old token holds meanwhile.
#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_loses_nothing() {
    let answers = [Next::Fails, Next::Hangs, Next::Fails, Next::Well];
    let (kept, standing, story) = hold(answers, Duration::from_secs(100)).await;
    assert!(kept.is_ok());
    assert_eq!(standing, Standing::Held(1));
    // The one that hung took one period of its own.
    let expected = [40, 50, 70, 80].map(Duration::from_secs);
    assert_eq!(story.renewals[..4], expected, "tried at each check, and never more often");
}

/// C-4: the end of its life, or somebody else's claim, ends it; that is told.
#[tokio::test(start_paused = true)]
async fn what_is_lost_is_lost() {
    let (kept, standing, story) = hold([Next::Well, Next::Taken], Duration::MAX / 4).await;
    assert!(matches!(kept, Err(Gone::Lost(why)) if why == "taken"));
    assert_eq!((standing, story.released), (Standing::Lost("taken".to_owned()), None));

    let (kept, standing, story) = hold([Next::Fails; 20], Duration::MAX / 4).await;
    assert!(matches!(kept, Err(Gone::Lost(_))));
    assert_eq!(standing, Standing::Lost("no route".to_owned()));
    let last = *story.renewals.last().expect("tried");
    assert!(last <= LIFETIME && story.renewals.len() <= 5, "{:?}", story.renewals);
}

/// C-1: a first refusal is an error that says who has it; nothing stays behind.
#[tokio::test(start_paused = true)]
async fn who_cannot_have_it_is_told() {
    let (mut lease, story) = Scripted::new([]);
    lease.refuses = true;
    let standing = watch::Sender::default();
    let kept = keep(&mut lease, &standing, &CancellationToken::new()).await;
    assert!(matches!(&kept, Err(Gone::Refused(_))));
    assert!(kept.expect_err("refused").to_string().contains("pid 7"));
    assert_eq!(*standing.borrow(), Standing::Wanted);
    assert!(story.lock().expect("sound").renewals.is_empty());
}

/// C-9: under random faults that pass, the lease is always held, and renewed before its end.
#[tokio::test(start_paused = true)]
async fn random_faults_that_pass_lose_nothing() {
    let mut seed = 1_u64;
    for _ in 0..64 {
        let mut answers = Vec::new();
        for _ in 0..16 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // At most two in a row: more than that does not fit into half a life when each hangs.
            let faults = (seed >> 33) % 3;
            let fault = |n| if (seed >> (40 + n)) & 1 == 0 { Next::Fails } else { Next::Hangs };
            answers.extend((0..faults).map(fault).chain([Next::Well]));
        }
        let (kept, standing, _) = hold(answers, LIFETIME * 16).await;
        assert!(kept.is_ok());
        assert_eq!(standing, Standing::Held(1));
    }
}

/// C-10: on one host a lock: a second one is refused and told who has it; the epoch grows with each holder.
#[tokio::test]
async fn the_local_one_is_a_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let mut first = Local::new(path.clone());
    let token = first.acquire().await.expect("nobody has it");
    assert_eq!(token, Token { epoch: 1, lifetime: None });
    let refused = Local::new(path.clone()).acquire().await.expect_err("held").to_string();
    assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
    assert_eq!(first.acquire().await.expect("still").epoch, 1, "who asks again has it still");
    first.release(token).await.expect("given back");
    let second = Local::new(path).acquire().await.expect("free");
    assert_eq!(second.epoch, 2);
}
