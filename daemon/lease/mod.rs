//! The lease: the right to act on this host, held by one daemon at a time (C-1 to C-10).
//!
//! A [`Lease`] is acquired, renewed and released; [`keep`] does that in time and publishes the status. Without the
//! lease no run is begun; runs in progress end and are recorded. On one host the right to act comes
//! with the lock of the state directory ([`LocalLease`]) and is never lost; a lease shared by hosts can be lost. The
//! design follows the token source of Pulumi's managed updates. This folder must never decide about runs (the driver
//! reads the status and does), and knows neither the store nor its lock.
//!
//! Reading order: this file, `loss` (the lease is lost), `local`.

mod local;
mod loss;

pub use local::LocalLease;
pub use loss::LeaseLost;

use std::pin::Pin;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The proof that the lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The epoch of the holder. It grows with each holder, so that late writes of an earlier one are recognised.
    pub epoch: u64,
    /// The time for which the lease is valid without renewal; none if it is valid until its release.
    pub lifetime: Option<Duration>,
}

/// The result of a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is valid for its lifetime again.
    Renewed(Token),
    /// The lease could not be renewed now; the old one is valid until its end.
    Later(String),
    /// Somebody else has the lease.
    Lost(String),
}

/// The reason for which a lease was not acquired or not released.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LeaseError(pub String);

/// The future that a call returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lease. A call may take any time: it is dropped when its result would come too late.
pub trait Lease: Send {
    /// Acquires the lease.
    ///
    /// # Errors
    ///
    /// Returns the reason for which the lease cannot be had, for example its present holder.
    fn acquire(&mut self) -> Answer<'_, Result<Token, LeaseError>>;

    /// Extends the lease.
    fn renew(&mut self, token: Token) -> Answer<'_, Renewal>;

    /// Releases the lease.
    ///
    /// # Errors
    ///
    /// Returns the reason if the release failed or is uncertain.
    fn release(&mut self, token: Token) -> Answer<'_, Result<(), LeaseError>>;

    /// Returns the time by which the lease ends, on a clock that includes suspends of the machine (C-6).
    fn now(&self) -> Duration {
        boottime()
    }
}

/// Returns the time since the boot of the machine, including suspends.
#[must_use]
pub fn boottime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// The longest time that a release may take, unless the lease ends sooner.
const RELEASE: Duration = Duration::from_secs(5);

/// The status of the lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease was not acquired yet.
    #[default]
    Wanted,
    /// The lease is held.
    Held {
        /// The epoch of the holder.
        epoch: u64,
        /// The end of the lease by [`Lease::now`], unless it is renewed; none if it is valid until its release. Every
        /// begin of a run compares it with the time: after a suspend the lease may be over without a change of the
        /// status (C-6).
        until: Option<Duration>,
    },
    /// The lease was held, and was lost for this reason.
    Lost(String),
}

/// Acquires the lease, renews it until `stop` is cancelled, and releases it. The status is published in `standing`.
///
/// While it waits, the function calls `beat` again and again as a sign of life; each call must take some time.
///
/// # Errors
///
/// Returns an error if the lease was not acquired, or was lost.
pub async fn keep<L: Lease + ?Sized, B: Future<Output = ()>>(
    lease: &mut L,
    standing: &watch::Sender<LeaseStatus>,
    stop: &CancellationToken,
    beat: impl Fn() -> B,
) -> Result<(), LeaseLost> {
    let mut asked = lease.now();
    // C-7: a stop does not wait for a server that does not reply.
    let answer = beating(stop.run_until_cancelled(lease.acquire()), &beat).await;
    let Some(answer) = answer else { return Ok(()) };
    let mut token = answer.map_err(LeaseLost::Refused)?;
    standing.send_replace(held(token, asked));
    let mut looked = Instant::now();
    let mut failure = None;
    loop {
        let Some(lifetime) = token.lifetime else {
            beating(stop.cancelled(), &beat).await;
            break;
        };
        // C-3, C-5: several attempts fit before the end, even slow ones, and none is made sooner.
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
            None
        } else {
            // C-7: the wait never lasts longer than its result may matter.
            let asking = tokio::time::timeout(left.min(lifetime / 8), lease.renew(token));
            match beating(stop.run_until_cancelled(asking), &beat).await {
                Some(Ok(renewal)) => Some(renewal),
                Some(Err(_)) => Some(Renewal::Later("no response in time".to_owned())),
                None => break,
            }
        };
        let since = lease.now().saturating_sub(asked);
        if let Some(why) = loss::loss_of(renewal.as_ref(), since, lifetime, failure.as_deref()) {
            standing.send_replace(LeaseStatus::Lost(why.clone()));
            return Err(LeaseLost::Lost(why));
        }
        match renewal {
            Some(Renewal::Renewed(new)) => {
                (asked, token, failure) = (at, new, None);
                standing.send_replace(held(token, asked));
            }
            Some(Renewal::Later(why) | Renewal::Lost(why)) => {
                tracing::warn!(event = "lease", "the lease is not renewed yet: {why}");
                failure = Some(why);
            }
            None => {}
        }
    }
    give_back(lease, (token, asked), &beat).await;
    Ok(())
}

/// Returns the status of a lease requested at time `asked`, from which its lifetime is counted.
fn held(token: Token, asked: Duration) -> LeaseStatus {
    let until = token.lifetime.map(|lifetime| asked.saturating_add(lifetime));
    LeaseStatus::Held { epoch: token.epoch, until }
}

/// Releases the lease within a limited time (C-7). A failure is logged: the next holder has to wait for the end of the
/// lease (C-8).
async fn give_back<L: Lease + ?Sized, B: Future<Output = ()>>(
    lease: &mut L,
    (token, asked): (Token, Duration),
    beat: &impl Fn() -> B,
) {
    let since = lease.now().saturating_sub(asked);
    let left = token.lifetime.map_or(RELEASE, |lifetime| lifetime.saturating_sub(since));
    let releasing = tokio::time::timeout(left.min(RELEASE), lease.release(token));
    let released = beating(releasing, beat).await;
    let released =
        released.unwrap_or_else(|_late| Err(LeaseError("no response in time".to_owned())));
    if let Err(why) = released {
        tracing::warn!(event = "lease", "the lease could not be released: {why}");
    }
}

/// Waits for `work`, and calls `beat` meanwhile.
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
        #[cfg(feature = "fault-injection")]
        crate::fault_injection::stall("lease").await;
    }
}
