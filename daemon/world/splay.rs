//! The splay: a delay that differs between hosts, so that they do not act at the same moment.

use super::bundle::sha256_hex;
use std::time::Duration;

/// The longest splay, in seconds.
pub const LONGEST_SPLAY: u64 = 3600;

/// Returns the delay of a host: a part of the splay (in seconds, at most [`LONGEST_SPLAY`]) that depends on its name
/// alone.
///
/// ```
/// # use steadfast::world::splay::host_delay;
/// assert!(host_delay("web1", 300) < std::time::Duration::from_secs(300));
/// assert_ne!(host_delay("web1", 300), host_delay("web2", 300));
/// assert_eq!(host_delay("web1", 0), std::time::Duration::ZERO);
/// ```
#[must_use]
pub fn host_delay(host: &str, splay: u64) -> Duration {
    let splay = splay.min(LONGEST_SPLAY) * 1000;
    let digits: String = sha256_hex(host.as_bytes()).chars().take(12).collect();
    let number = u64::from_str_radix(&digits, 16).unwrap_or_default();
    Duration::from_millis(number.checked_rem(splay).unwrap_or_default())
}
