//! The lease: renewed in time, lost in the defined cases, always released (C-1 to C-10). The tests use virtual time.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::lease::{
    Answer, Lease, LeaseError, LeaseLost, LeaseStatus, LocalLease, Renewal, Token, keep,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const LIFETIME: Duration = Duration::from_secs(80);

/// The recorded calls to a scripted lease.
#[derive(Debug, Default)]
struct Story {
    /// The times of the renewal requests, since the start.
    renewals: Vec<Duration>,
    /// The epoch and the end of each issued token.
    tokens: Vec<(u64, Duration)>,
    released: Option<u64>,
}

/// A lease with scripted answers.
struct Scripted {
    began: Instant,
    /// The time that the machine has slept: timers stood still, the lease ran on.
    slept: Arc<Mutex<Duration>>,
    refuses: bool,
    /// The duration of the first acquisition; none: it never returns.
    takes: Option<Duration>,
    /// True if each renewal issues a token with a new epoch.
    renames: bool,
    /// The reason that the lease cannot be released; an empty reason means that the release never returns.
    sticks: Option<&'static str>,
    /// The results of the renewals; after the last one every renewal succeeds.
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

/// The refusal of a scripted lease.
const HELD: &str = "it is held by pid 7 on another host";

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Next>) -> (Self, Arc<Mutex<Story>>) {
        let story = Arc::<Mutex<Story>>::default();
        let answers = answers.into_iter().collect();
        let (began, seen) = (Instant::now(), Arc::clone(&story));
        let takes = Some(Duration::ZERO);
        let (refuses, renames, sticks, slept) = (false, false, None, Arc::default());
        let epoch = 1;
        (Self { began, slept, refuses, takes, renames, sticks, answers, story, epoch }, seen)
    }

    /// Issues a token that is valid from now on, by the clock of the issuer.
    fn hand_out(&self) -> Token {
        let ends = self.began.elapsed() + LIFETIME;
        self.story.lock().expect("sound").tokens.push((self.epoch, ends));
        Token { epoch: self.epoch, lifetime: Some(LIFETIME) }
    }
}

impl Lease for Scripted {
    fn acquire(&mut self) -> Answer<'_, Result<Token, LeaseError>> {
        let answer =
            if self.refuses { Err(LeaseError(HELD.to_owned())) } else { Ok(self.hand_out()) };
        let takes = self.takes;
        Box::pin(async move {
            match takes {
                Some(takes) => tokio::time::sleep(takes).await,
                None => pending().await,
            }
            answer
        })
    }

    fn renew(&mut self, token: Token) -> Answer<'_, Renewal> {
        self.story.lock().expect("sound").renewals.push(self.began.elapsed());
        match self.answers.pop_front().unwrap_or(Next::Well) {
            Next::Well if self.renames => {
                self.epoch += 1;
                Box::pin(std::future::ready(Renewal::Renewed(self.hand_out())))
            }
            Next::Well => Box::pin(std::future::ready(Renewal::Renewed(token))),
            Next::Fails => Box::pin(std::future::ready(Renewal::Later("no route".to_owned()))),
            Next::Taken => Box::pin(std::future::ready(Renewal::Lost("taken".to_owned()))),
            Next::Hangs => Box::pin(pending()),
        }
    }

    fn release(&mut self, token: Token) -> Answer<'_, Result<(), LeaseError>> {
        self.story.lock().expect("sound").released = Some(token.epoch);
        match self.sticks {
            None => Box::pin(std::future::ready(Ok(()))),
            Some("") => Box::pin(pending()),
            Some(why) => Box::pin(std::future::ready(Err(LeaseError(why.to_owned())))),
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed() + *self.slept.lock().expect("sound")
    }
}

async fn state_lock(
    answers: impl IntoIterator<Item = Next>,
    long: Duration,
) -> (Result<(), LeaseLost>, LeaseStatus, Story) {
    let (lease, story) = Scripted::new(answers);
    hold_this(lease, &story, long).await
}

async fn hold_this(
    mut lease: Scripted,
    story: &Mutex<Story>,
    long: Duration,
) -> (Result<(), LeaseLost>, LeaseStatus, Story) {
    let (standing, stop) = (watch::Sender::default(), CancellationToken::new());
    let shutdown = stop.clone();
    let watcher = tokio::spawn(async move {
        tokio::time::sleep(long).await;
        shutdown.cancel();
    });
    let kept = keep(&mut lease, &standing, &stop, pending::<()>).await;
    watcher.abort();
    let now = standing.borrow().clone();
    (kept, now, std::mem::take(&mut *story.lock().expect("sound")))
}

/// C-3, C-5, C-8: a lease is renewed at half its lifetime, not earlier and once; it is released at the end.
#[tokio::test(start_paused = true)]
async fn it_is_renewed_at_half_its_life() {
    let (kept, standing, story) = state_lock([], Duration::from_secs(195)).await;
    assert!(kept.is_ok());
    assert_eq!(held(&standing), 1);
    assert_eq!(story.renewals, [40, 80, 120, 160].map(Duration::from_secs));
    assert_eq!(story.released, Some(1));
}

/// C-4, C-7: a renewal that fails or hangs is retried at each check, and the old token stays valid meanwhile.
#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_loses_nothing() {
    let answers = [Next::Fails, Next::Hangs, Next::Fails, Next::Well];
    let (kept, standing, story) = state_lock(answers, Duration::from_secs(100)).await;
    assert!(kept.is_ok());
    assert_eq!(held(&standing), 1);
    // A hung renewal is cancelled when the next check is due.
    let expected = [40, 50, 60, 70].map(Duration::from_secs);
    assert_eq!(story.renewals[..4], expected, "tried at each check, and never more often");
}

/// C-4: the end of the lifetime, or another holder's claim, ends the lease with a reason.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_stays_lost() {
    let (kept, standing, story) = state_lock([Next::Well, Next::Taken], Duration::MAX / 4).await;
    assert!(matches!(kept, Err(LeaseLost::Lost(why)) if why == "taken"));
    assert_eq!((standing, story.released), (LeaseStatus::Lost("taken".to_owned()), None));

    let (kept, standing, story) = state_lock([Next::Fails; 20], Duration::MAX / 4).await;
    assert!(matches!(kept, Err(LeaseLost::Lost(_))));
    assert_eq!(standing, LeaseStatus::Lost("no route".to_owned()));
    let last = *story.renewals.last().expect("tried");
    assert!(last <= LIFETIME && story.renewals.len() <= 5, "{:?}", story.renewals);
}

/// C-1: a rejected first acquisition is an error that names the holder; nothing is left to release.
#[tokio::test(start_paused = true)]
async fn a_rejected_acquisition_names_the_holder() {
    let (mut lease, story) = Scripted::new([]);
    lease.refuses = true;
    let standing = watch::Sender::default();
    let kept = keep(&mut lease, &standing, &CancellationToken::new(), pending::<()>).await;
    assert!(matches!(&kept, Err(LeaseLost::Refused(_))));
    assert!(kept.expect_err("refused").to_string().contains("pid 7"));
    assert_eq!(*standing.borrow(), LeaseStatus::Wanted);
    assert!(story.lock().expect("sound").renewals.is_empty());
}

/// C-2: the newest token is the one that is reported and released.
#[tokio::test(start_paused = true)]
async fn the_newest_token_is_the_one_that_counts() {
    let (mut lease, story) = Scripted::new([]);
    lease.renames = true;
    let (kept, standing, story) = hold_this(lease, &story, Duration::from_secs(85)).await;
    assert!(kept.is_ok());
    assert_eq!((held(&standing), story.released), (3, Some(3)));
}

/// C-6: the lifetime counts from the request. After an acquisition of 15 s, the first renewal comes at the first
/// check after half the lifetime since the request.
#[tokio::test(start_paused = true)]
async fn its_life_begins_before_the_answer() {
    let (mut lease, story) = Scripted::new([]);
    lease.takes = Some(Duration::from_secs(15));
    let (_, _, story) = hold_this(lease, &story, Duration::from_secs(50)).await;
    assert_eq!(story.renewals, [Duration::from_secs(45)], "checks come at 25, 35, 45 and 55");

    let (mut lease, story) = Scripted::new([Next::Fails; 20]);
    lease.takes = Some(Duration::from_secs(75));
    let (kept, _, story) = hold_this(lease, &story, Duration::MAX / 4).await;
    assert!(matches!(kept, Err(LeaseLost::Lost(_))));
    assert!(story.renewals.is_empty(), "its life was over at 80, and the first check comes at 85");
}

/// C-6: the reported end of the lease counts from the request, by the clock of the lease, which runs on while the
/// machine sleeps.
#[tokio::test(start_paused = true)]
async fn its_end_is_told_and_counts_what_the_machine_slept() {
    let (mut lease, _) = Scripted::new([]);
    lease.takes = Some(Duration::from_secs(15));
    let (slept, began) = (Arc::clone(&lease.slept), lease.began);
    let standing = watch::Sender::default();
    let stop = CancellationToken::new();
    let sleeping = async {
        let end = || match *standing.borrow() {
            LeaseStatus::Held { until, .. } => until,
            LeaseStatus::Wanted | LeaseStatus::Lost(_) => None,
        };
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(end(), Some(LIFETIME), "since it was asked for");
        tokio::time::sleep_until(began + Duration::from_secs(46)).await;
        let renewed = Duration::from_secs(45) + LIFETIME;
        assert_eq!(end(), Some(renewed));
        *slept.lock().expect("sound") = Duration::from_hours(1);
        // No timer has fired: the last report still says held, but the reported end has passed.
        assert_eq!(end(), Some(renewed));
        assert!(began.elapsed() + Duration::from_hours(1) > renewed);
        tokio::time::sleep(LIFETIME / 8).await;
    };
    let kept = keep(&mut lease, &standing, &stop, pending::<()>);
    let (kept, ()) = tokio::join!(kept, sleeping);
    assert!(matches!(kept, Err(LeaseLost::Lost(_))), "found at the next check");
}

/// C-7, C-8: a release waits for no reply longer than the lease is valid, and logs the missing reply.
#[tokio::test(start_paused = true)]
async fn a_release_does_not_wait_forever() {
    for (held_for, waits) in [(10, 5), (77, 3)] {
        let (mut lease, story) = Scripted::new([Next::Fails; 20]);
        lease.sticks = Some("");
        let began = lease.began;
        let held_for = Duration::from_secs(held_for);
        let (kept, _, story) = hold_this(lease, &story, held_for).await;
        assert!(kept.is_ok());
        assert_eq!(story.released, Some(1));
        assert_eq!(began.elapsed(), held_for + Duration::from_secs(waits));
    }
}

/// C-6: the clock of the local lease counts suspend.
#[test]
fn the_clock_counts_suspend() {
    let boottime = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).expect("below"))
    };
    let (before, now, after) =
        (boottime(), LocalLease::new(watch::Sender::default().subscribe()).now(), boottime());
    assert!(before <= now && now <= after, "{before:?} {now:?} {after:?}");
}

/// C-7: a stop waits neither for a first acquisition nor for a renewal that does not return.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_answer() {
    let (mut lease, story) = Scripted::new([]);
    lease.takes = None;
    let began = Instant::now();
    let (kept, standing, story) = hold_this(lease, &story, Duration::from_secs(3)).await;
    assert!(kept.is_ok());
    assert_eq!((standing, story.released), (LeaseStatus::Wanted, None));
    assert_eq!(began.elapsed(), Duration::from_secs(3));

    let began = Instant::now();
    let (kept, _, story) = state_lock([Next::Hangs], Duration::from_secs(43)).await;
    assert!(kept.is_ok());
    assert_eq!((story.renewals.len(), story.released), (1, Some(1)));
    assert_eq!(began.elapsed(), Duration::from_secs(43));
}

/// The captured log lines of a test.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("sound").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// C-8: a failed release is logged; a repeated or early stop does not prevent the release.
#[tokio::test(start_paused = true)]
async fn a_lease_that_sticks_is_said() {
    let lines = Lines::default();
    let own = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || own.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (mut lease, story) = Scripted::new([]);
    lease.sticks = Some("the server is gone");
    let stop = CancellationToken::new();
    let standing = watch::Sender::default();
    let (kept, ()) = tokio::join!(keep(&mut lease, &standing, &stop, pending::<()>), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
        stop.cancel();
    });
    assert!(kept.is_ok());
    assert_eq!(story.lock().expect("sound").released.take(), Some(1));
    let said = String::from_utf8(lines.0.lock().expect("sound").clone()).expect("text");
    assert!(said.contains("the lease could not be released: the server is gone"), "{said}");

    let (mut lease, _) = Scripted::new([]);
    assert!(
        keep(&mut lease, &standing, &stop, pending::<()>).await.is_ok(),
        "asked to end before it began"
    );
}

fn held(standing: &LeaseStatus) -> u64 {
    let LeaseStatus::Held { epoch, .. } = *standing else { panic!("it is held: {standing:?}") };
    epoch
}

/// C-9: the token is checked at every sixteenth of its lifetime, under random transient faults. Each reported token
/// is valid for its issuer, the first token has epoch 1, and the epoch has changed by half the lifetime without
/// faults, or two checks later with faults.
#[tokio::test(start_paused = true)]
async fn each_token_that_is_told_is_valid() {
    for seed in 0..64_u64 {
        let mut answers = Vec::new();
        for turn in 0..16 {
            let faults = (seed >> (turn % 5)) % 3;
            answers.extend((0..faults).map(|_| Next::Fails).chain([Next::Well]));
        }
        let (mut lease, story) = Scripted::new(answers);
        lease.renames = true;
        let began = lease.began;
        let standing = watch::Sender::default();
        let stop = CancellationToken::new();
        let asking = async {
            let mut told = Vec::new();
            for step in 0..64_u32 {
                // An offset of one second avoids a dependency on the order of timers.
                tokio::time::sleep_until(began + LIFETIME / 16 * step + Duration::from_secs(1))
                    .await;
                let epoch = held(&standing.borrow());
                let story = story.lock().expect("sound");
                let (_, ends) =
                    story.tokens.iter().find(|(of, _)| *of == epoch).expect("handed out");
                assert!(began.elapsed() < *ends, "seed {seed}: at {step} told {epoch}, not valid");
                told.push(epoch);
            }
            stop.cancel();
            told
        };
        let (kept, told) = tokio::join!(keep(&mut lease, &standing, &stop, pending::<()>), asking);
        assert!(kept.is_ok());
        let by = usize::try_from(8 + 2 * (seed % 3)).expect("few");
        assert_eq!((told[0], told[7]), (1, 1));
        assert_eq!(told[by], 2, "seed {seed}");
        assert!(told.is_sorted() && told[63] >= 6, "seed {seed}: {told:?}");
    }
}

/// C-9: under random transient faults the lease is never lost and always renewed before its end.
#[tokio::test(start_paused = true)]
async fn random_faults_that_pass_lose_nothing() {
    let mut seed = 1_u64;
    for _ in 0..64 {
        let mut answers = Vec::new();
        for _ in 0..16 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // At most two faults in a row: three hung renewals do not fit into half a lifetime.
            let faults = (seed >> 33) % 3;
            let fault = |n| if (seed >> (40 + n)) & 1 == 0 { Next::Fails } else { Next::Hangs };
            answers.extend((0..faults).map(fault).chain([Next::Well]));
        }
        let (kept, standing, _) = state_lock(answers, LIFETIME * 16).await;
        assert!(kept.is_ok());
        assert_eq!(held(&standing), 1);
    }
}

/// The lease of one host follows the lock of the state directory: it is not had before the lock is taken, has the epoch
/// of the lock, and is never lost.
#[tokio::test(start_paused = true)]
async fn the_local_one_follows_the_lock() {
    let locked = watch::Sender::default();
    let mut lease = LocalLease::new(locked.subscribe());
    let waits = tokio::time::timeout(LIFETIME, lease.acquire()).await;
    assert!(waits.is_err(), "{waits:?}");
    locked.send_replace(Some(7));
    let token = Token { epoch: 7, lifetime: None };
    assert_eq!(lease.acquire().await, Ok(token));
    assert_eq!(lease.renew(token).await, Renewal::Renewed(token));
    assert_eq!(lease.release(token).await, Ok(()));
    assert_eq!(lease.acquire().await, Ok(token), "who asks again has it still");
    let mut orphan = LocalLease::new(watch::Sender::default().subscribe());
    assert!(orphan.acquire().await.is_err(), "nobody can take the lock any more");
}
