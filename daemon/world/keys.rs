//! The names of keys. Each function returns a key or a prefix below the prefix of the cluster.

/// Returns the prefix of a cluster: all of its keys begin with it.
#[must_use]
pub fn cluster_prefix(cluster: &str) -> String {
    format!("/steadfast/v1/{}/", encode_name(cluster))
}

/// Percent-encodes a name, so that it is one part of a key. Letters, digits, `.`, `-` and `_` stay; a leading `.` does
/// not.
#[must_use]
pub fn encode_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        let stays =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0);
        if stays {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Returns the name of a percent-encoded part of a key; none if the part is no such text.
#[must_use]
pub fn decode_name(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (char::from(rest.next()?), char::from(rest.next()?));
            let value = high.to_digit(16)? * 16 + low.to_digit(16)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns true if a name is a valid host name: `[a-z0-9][a-z0-9.-]*`, at most 253 bytes.
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    let first = name.bytes().next();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    first.is_some_and(is_plain)
        && name.len() <= 253
        && name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'-'))
}

/// The prefix of all hosts.
pub const HOSTS: &str = "hosts/";
/// The prefix of the requested generations.
pub const WANT: &str = "want/";
/// The prefix of exported resources.
pub const EXPORTS: &str = "exports/";
/// The prefix of values for each host.
pub const VALUES: &str = "values/";
/// The prefix of shared values.
pub const STRINGS: &str = "strings/";
/// The prefix of semaphores.
pub const SEMA: &str = "sema/";
/// The prefix of rolling changes.
pub const ROLL: &str = "roll/";
/// The prefix of tombstones of forgotten hosts.
pub const GONE: &str = "gone/";
/// The key of the lease of deploys.
pub const DEPLOY_LEASE: &str = "deploy/lease";

/// Returns the key of the description of a host.
#[must_use]
pub fn host_meta(host: &str) -> String {
    format!("hosts/{}/meta", encode_name(host))
}

/// Returns the key of the status of a host.
#[must_use]
pub fn host_status(host: &str) -> String {
    format!("hosts/{}/status", encode_name(host))
}

/// Returns the key that records that a host has been part of the cluster. It has no lease.
#[must_use]
pub fn host_known(host: &str) -> String {
    format!("hosts/{}/known", encode_name(host))
}

/// Returns the encoded name of the host of a key below `hosts/` that only a running host has: one under its lease.
#[must_use]
pub fn running_host(key: &str) -> Option<&str> {
    let (host, what) = key.strip_prefix(HOSTS)?.split_once('/')?;
    (what != "known").then_some(host)
}

/// Returns the key of the generation that a host should run.
#[must_use]
pub fn want(host: &str) -> String {
    format!("want/{}", encode_name(host))
}

/// Returns the key of an exported resource.
#[must_use]
pub fn export(host: &str, identity: &str) -> String {
    format!("exports/{}/{}", encode_name(host), encode_name(identity))
}

/// Returns the key of a value of one host. The host comes first, so that a role can cover its values by one range.
#[must_use]
pub fn host_value(host: &str, key: &str) -> String {
    format!("values/{}/{}", encode_name(host), encode_name(key))
}

/// Returns the key of a shared value.
#[must_use]
pub fn shared_value(key: &str) -> String {
    format!("strings/{}", encode_name(key))
}

/// Returns the prefix of all holders and waiters of a semaphore.
#[must_use]
pub fn semaphore(id: &str) -> String {
    format!("sema/{}/", encode_name(id))
}

/// Returns the key of one holder or waiter of a semaphore.
#[must_use]
pub fn semaphore_ticket(id: &str, host: &str, resource: &str) -> String {
    format!("sema/{}/{}/{}", encode_name(id), encode_name(host), encode_name(resource))
}

/// Returns the prefix of all slots of a rolling change.
#[must_use]
pub fn roll(name: &str) -> String {
    format!("roll/{}/", encode_name(name))
}

/// Returns the key of the slot of one host in a rolling change.
#[must_use]
pub fn roll_slot(name: &str, host: &str) -> String {
    format!("roll/{}/{}", encode_name(name), encode_name(host))
}

/// Returns the key of the tombstone of a host.
#[must_use]
pub fn tombstone(host: &str) -> String {
    format!("gone/{}", encode_name(host))
}

/// Splits a key into its decoded parts; none if a part is not encoded rightly.
#[must_use]
pub fn split_key(key: &str) -> Option<Vec<String>> {
    key.split('/').map(decode_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_encoding() {
        for name in ["web1", "file[/etc/motd]", "a/b", "..", ".", "ä %2F", "x.y-z_0"] {
            let encoded = encode_name(name);
            assert!(!encoded.contains('/') && !encoded.starts_with('.'), "{encoded}");
            assert_eq!(decode_name(&encoded).as_deref(), Some(name));
        }
        for wrong in ["%", "%2", "%zz", "%FF"] {
            assert_eq!(decode_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn host_names_are_narrow() {
        for name in ["web1", "a.example.org", "1-2"] {
            assert!(is_host_name(name), "{name}");
        }
        for name in ["", "Web1", "-a", ".a", "a/b", "a b", &"a".repeat(254)] {
            assert!(!is_host_name(name), "{name}");
        }
    }
}
