//! Properties of units that others receive: the process, the restarts, the next start of a timer, the addresses of a
//! socket.

use super::unit::{find, property_of};
use super::{Bus, Systemd, fault::Fault};
use crate::failure::Failure;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use zbus::Variant;

/// The present properties of a unit, as far as its type has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// The main process of a service that runs.
    pub pid: Option<u32>,
    /// The number of automatic restarts of a service.
    pub restarts: Option<u32>,
    /// The next start by a timer, in seconds since 1970.
    pub next: Option<u64>,
    /// The addresses of a socket, each with its type: `Stream [::]:22`.
    pub listening: Option<Vec<String>>,
}

impl Systemd {
    /// Returns the properties of a unit by its name; none of them if the unit is not in memory.
    ///
    /// # Errors
    ///
    /// Fails if systemd does not answer.
    pub async fn unit_facts(&self, bus: Bus, name: &str) -> Result<UnitFacts, Failure> {
        let link = self.link(bus).await?;
        let ask = async {
            let mut facts = UnitFacts::default();
            let Some(path) = find(&link, name).await?.0 else { return Ok(facts) };
            let get = async |interface: &str, property: &str| {
                let interface = format!("org.freedesktop.systemd1.{interface}");
                property_of(&link, &path, &interface, property).await
            };
            let kind = name.rsplit('.').next().unwrap_or_default();
            if kind == "service" {
                let pid = u32::try_from(get("Service", "MainPID").await?)?;
                facts.pid = (pid != 0).then_some(pid);
                facts.restarts = Some(u32::try_from(get("Service", "NRestarts").await?)?);
            } else if kind == "timer" {
                let calendar = u64::try_from(get("Timer", "NextElapseUSecRealtime").await?)?;
                let monotonic = u64::try_from(get("Timer", "NextElapseUSecMonotonic").await?)?;
                facts.next = [calendar_time(calendar), monotonic_time(monotonic)]
                    .into_iter()
                    .flatten()
                    .min();
            } else if kind == "socket" {
                let listens: Variant<'_> = get("Socket", "Listen").await?.into();
                let listens = Vec::<(String, String)>::try_from(listens)?;
                let each = listens.into_iter().map(|(kind, address)| format!("{kind} {address}"));
                facts.listening = Some(each.collect());
            }
            Ok(facts)
        };
        match ask.await {
            // The unit was removed from memory meanwhile, or systemd is older than a property.
            Err(Fault::Refused { .. }) => Ok(UnitFacts::default()),
            other => other
                .map_err(|fault: Fault| fault.failure(&format!("asking for the facts of {name}"))),
        }
    }
}

/// Returns a time of the calendar in seconds; systemd writes 0 or the largest number for none.
fn calendar_time(microseconds: u64) -> Option<u64> {
    (microseconds != 0 && microseconds != u64::MAX).then_some(microseconds / 1_000_000)
}

/// Returns a time of the clock since boot in seconds since 1970.
fn monotonic_time(microseconds: u64) -> Option<u64> {
    calendar_time(microseconds)?;
    let now = clock_gettime(ClockId::Monotonic);
    let now = Duration::try_from(now).ok()?;
    let left = Duration::from_micros(microseconds).saturating_sub(now);
    Some((crate::host::wall() + left).as_secs())
}

#[cfg(test)]
mod tests {
    use super::{calendar_time, monotonic_time};

    #[test]
    fn an_unset_time_is_none() {
        for none in [0, u64::MAX] {
            assert_eq!((calendar_time(none), monotonic_time(none)), (None, None));
        }
        assert_eq!(calendar_time(1_700_000_000_000_000), Some(1_700_000_000));
        assert!(monotonic_time(1).is_some_and(|now| now > 1_600_000_000));
    }
}
