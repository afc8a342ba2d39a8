//! The token bucket on starts (E-12): GCRA by `governor`, on the engine's own time and one integer stored in the
//! vertex.

use crate::interface::ids::Tick;
use crate::interface::metaparams::Pace;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

/// The engine's time as a clock for `governor`. A limiter takes its first reading as its beginning.
#[derive(Clone, Debug, Default)]
struct EngineClock(Cell<Duration>);

impl Clock for EngineClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// The only state of a limiter: the time at which the bucket would be full again, in nanoseconds.
#[derive(Debug)]
struct BucketState(Cell<Option<u64>>);

impl StateStore for BucketState {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _key: &NotKeyed, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (answer, next) = f(self.0.get().map(|n| Nanos::from(Duration::from_nanos(n))))?;
        self.0.set(Some(next.as_u64()));
        Ok(answer)
    }
}

/// Tries to take a token now. `Ok` contains the new state.
///
/// # Errors
///
/// `Err` contains the moment at which a token will be available.
pub(crate) fn take(pace: Pace, number: Option<u64>, now: Tick) -> Result<Option<u64>, Tick> {
    let burst = NonZeroU32::new(pace.burst).unwrap_or(NonZeroU32::MIN);
    let Some(quota) = Quota::with_period(Duration::from_nanos(pace.period_ns)) else {
        return Ok(number);
    };
    let limiter = RateLimiter::<_, _, _, NoOpMiddleware<Duration>>::new(
        quota.allow_burst(burst),
        BucketState(Cell::new(number)),
        EngineClock::default(),
    );
    limiter.clock().0.set(Duration::from_nanos(now.0));
    match limiter.check() {
        Ok(()) => Ok(limiter.into_state_store().0.get()),
        Err(not_until) => {
            let at = not_until.earliest_possible().as_nanos();
            Err(Tick(u64::try_from(at).unwrap_or(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// E-12: `limit: 0.1, burst: 3` gives three starts at once and then one each ten seconds.
    #[test]
    fn a_bucket_starts_full_and_refills_at_its_period() {
        let pace = Pace { period_ns: 10 * SECOND, burst: 3 };
        let (mut number, mut now, mut starts) = (None, Tick(5 * SECOND), Vec::new());
        for _ in 0..6 {
            loop {
                match take(pace, number, now) {
                    Ok(next) => {
                        number = next;
                        break;
                    }
                    Err(at) => {
                        assert!(at > now, "a refusal names a later moment");
                        now = at;
                    }
                }
            }
            starts.push(now.0 / SECOND);
        }
        assert_eq!(starts, [5, 5, 5, 15, 25, 35]);
    }
}
