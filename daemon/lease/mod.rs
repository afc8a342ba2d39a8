//! The right to act on this host: held by one daemon at a time, and known to be held (C-1 to C-10).
//!
//! A [`Lease`] is acquired, renewed and given back; [`keep`] does that in time and tells how it stands. Without it nothing is
//! begun, and what runs ends and is recorded. On one host the lease is a lock ([`StateDirLease`]), which is never lost; one that is shared by
//! hosts can be. After the token source of Pulumi's managed updates, in our own words.

mod local;

pub use local::StateDirLease;

use std::pin::Pin;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The proof that the lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Grows with each holder: what an earlier one still writes can be told.
    pub epoch: u64,
    /// How long it holds without being renewed; none where it holds until it is given back.
    pub lifetime: Option<Duration>,
}

/// What comes of asking to have it renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It holds for its lifetime again.
    Renewed(Token),
    /// Nobody could be asked; the old one holds until its end.
    Later(String),
    /// Somebody else has it.
    Lost(String),
}

/// An answer that takes its time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lease. Every call may take as long as it likes: it is given up when it would be too late.
pub trait Lease: Send {
    /// Why it cannot be had.
    type Refusal: std::error::Error + Send + Sync + 'static;

    /// Gets it, or says who has it.
    fn acquire(&mut self) -> Answer<'_, Result<Token, Self::Refusal>>;

    /// Holds it for longer.
    fn renew(&mut self, token: Token) -> Answer<'_, Renewal>;

    /// Gives it back.
    fn release(&mut self, token: Token) -> Answer<'_, Result<(), String>>;

    /// The time by which it ends: on a clock that goes on while the machine sleeps (C-6).
    fn now(&self) -> Duration {
        boottime()
    }
}

/// Since the machine was booted, with all the time that it slept.
#[must_use]
pub fn boottime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// Why it is lost where the machine slept, or nobody let us go on.
const TOO_LATE: &str = "the lease expired before it could be renewed";

/// How long giving it back may take, where it does not end sooner by itself.
const RELEASE: Duration = Duration::from_secs(5);

/// How the lease stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseStatus {
    /// It was not had yet.
    #[default]
    Wanted,
    /// It is held.
    Held {
        /// As the holder of this epoch.
        epoch: u64,
        /// Until then by [`Lease::now`], unless it is renewed; none where it holds until it is given back. Who begins something
        /// judges by it: when the machine has slept, nobody has renewed it, and nobody has said so yet (C-6).
        until: Option<Duration>,
    },
    /// It was held, and is not any more.
    Lost(String),
}

/// Why it is not kept any longer.
#[derive(Debug, Error)]
pub enum LeaseLost<R: std::error::Error> {
    /// It was never had.
    #[error(transparent)]
    Refused(R),
    /// It was lost.
    #[error("the lease is lost: {0}")]
    Lost(String),
}

/// Acquires the lease, holds it until it is asked to stop, and gives it back. How it stands is told in `standing`.
///
/// While it waits it calls `beat` again and again, which takes its time: the proof that it goes on.
pub async fn keep<L: Lease, B: Future<Output = ()>>(
    lease: &mut L,
    standing: &watch::Sender<LeaseStatus>,
    stop: &CancellationToken,
    beat: impl Fn() -> B,
) -> Result<(), LeaseLost<L::Refusal>> {
    let mut asked = lease.now();
    // C-7: who stops does not wait for somebody who does not answer.
    let answer = beating(stop.run_until_cancelled(lease.acquire()), &beat).await;
    let Some(answer) = answer else { return Ok(()) };
    let mut token = answer.map_err(LeaseLost::Refused)?;
    standing.send_replace(held(token, asked));
    let (mut looked, mut late) = (Instant::now(), TOO_LATE.to_owned());
    loop {
        let Some(lifetime) = token.lifetime else {
            beating(stop.cancelled(), &beat).await;
            break;
        };
        // C-3, C-5: several tries fit before the end, also where each of them takes its time, and none is made sooner.
        let rest = stop.run_until_cancelled(tokio::time::sleep_until(looked + lifetime / 8));
        if beating(rest, &beat).await.is_none() {
            break;
        }
        looked = Instant::now();
        let since = lease.now().saturating_sub(asked);
        if since < lifetime / 2 {
            continue;
        }
        let left = lifetime.saturating_sub(since);
        let at = lease.now();
        let renewal = if left.is_zero() {
            // C-4: whoever had it since is not asked.
            Renewal::Lost(late.clone())
        } else {
            // C-7: it never waits for longer than it may matter.
            let asking = tokio::time::timeout(left.min(lifetime / 8), lease.renew(token));
            match beating(stop.run_until_cancelled(asking), &beat).await {
                Some(Ok(renewal)) => renewal,
                Some(Err(_)) => Renewal::Later("no response in time".to_owned()),
                None => break,
            }
        };
        match renewal {
            Renewal::Renewed(new) => {
                (asked, token, late) = (at, new, TOO_LATE.to_owned());
                standing.send_replace(held(token, asked));
            }
            Renewal::Later(why) if lease.now().saturating_sub(asked) < lifetime => {
                tracing::warn!(event = "lease", "the lease is not renewed yet: {why}");
                late = why;
            }
            Renewal::Later(why) | Renewal::Lost(why) => {
                standing.send_replace(LeaseStatus::Lost(why.clone()));
                return Err(LeaseLost::Lost(why));
            }
        }
    }
    give_back(lease, (token, asked), &beat).await;
    Ok(())
}

/// It was asked for at that moment: from then on its life is counted.
fn held(token: Token, asked: Duration) -> LeaseStatus {
    let until = token.lifetime.map(|lifetime| asked.saturating_add(lifetime));
    LeaseStatus::Held { epoch: token.epoch, until }
}

/// Gives it back, without waiting for longer than it may matter (C-7). Where that fails it is said, not hidden: who comes next waits
/// for its end (C-8).
async fn give_back<L: Lease, B: Future<Output = ()>>(
    lease: &mut L,
    (token, asked): (Token, Duration),
    beat: &impl Fn() -> B,
) {
    let since = lease.now().saturating_sub(asked);
    let left = token.lifetime.map_or(RELEASE, |lifetime| lifetime.saturating_sub(since));
    let releasing = tokio::time::timeout(left.min(RELEASE), lease.release(token));
    let released = beating(releasing, beat).await;
    let released = released.unwrap_or_else(|_late| Err("no response in time".to_owned()));
    if let Err(why) = released {
        tracing::warn!(event = "lease", "the lease could not be released: {why}");
    }
}

/// Waits for something, and beats meanwhile.
async fn beating<T, B: Future<Output = ()>>(
    work: impl Future<Output = T>,
    beat: &impl Fn() -> B,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = beat() => {}
        }
        #[cfg(debug_assertions)]
        crate::fault_injection::stall("lease").await;
    }
}
