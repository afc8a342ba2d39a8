//! The order of package versions, by the rules of Debian (deb-version(7)): a plan tells upgrades from downgrades.

use std::cmp::Ordering;

/// Compares two versions: epoch, then upstream version, then revision.
#[must_use]
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let (epoch, upstream, revision) = split_version(one);
    let (other_epoch, other_upstream, other_revision) = split_version(other);
    epoch
        .cmp(&other_epoch)
        .then_with(|| compare_part(upstream, other_upstream))
        .then_with(|| compare_part(revision, other_revision))
}

/// Splits `1:2.3-4` into the epoch, the upstream version and the revision.
fn split_version(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or_default(), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Compares two parts: text without digits and numbers take turns.
fn compare_part(mut one: &str, mut other: &str) -> Ordering {
    while !one.is_empty() || !other.is_empty() {
        let (text, other_text) = (take_while(&mut one, false), take_while(&mut other, false));
        let (number, other_number) = (take_while(&mut one, true), take_while(&mut other, true));
        let order =
            compare_text(text, other_text).then_with(|| compare_digits(number, other_number));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Takes the leading digits, or the leading text without digits.
fn take_while<'a>(rest: &mut &'a str, is_digit: bool) -> &'a str {
    let end = rest.find(|letter: char| letter.is_ascii_digit() != is_digit).unwrap_or(rest.len());
    let (taken, left) = rest.split_at(end);
    *rest = left;
    taken
}

/// Compares texts without digits: a tilde comes before the end, the end before letters, letters before all others.
fn compare_text(one: &str, other: &str) -> Ordering {
    let weight = |letter: Option<char>| match letter {
        Some('~') => (0, 0),
        None => (1, 0),
        Some(letter) if letter.is_ascii_alphabetic() => (2, u32::from(letter)),
        Some(letter) => (3, u32::from(letter)),
    };
    let (mut one, mut other) = (one.chars(), other.chars());
    loop {
        let (left, right) = (one.next(), other.next());
        match weight(left).cmp(&weight(right)) {
            Ordering::Equal if left.is_none() && right.is_none() => return Ordering::Equal,
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Compares numbers of any length.
fn compare_digits(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::compare_versions;
    use std::cmp::Ordering;

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        for (older, newer) in [
            ("1.0", "1.1"),
            ("1.9", "1.10"),
            ("9", "1:1"),
            ("1.0~rc1-1", "1.0-1"),
            ("1.0-1", "1.0-1+deb12u1"),
            ("1.0-9", "1.0-10"),
            ("1.0a", "1.0+b"),
            ("1.22.1-9", "1.22.1-9+b1"),
            ("2.36-8", "2.36-9"),
            ("0", "00000000000000000000000000000000000000000001"),
        ] {
            assert_eq!(compare_versions(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare_versions(newer, older), Ordering::Greater, "{newer} {older}");
        }
        assert_eq!(compare_versions("1.0-0", "1.0"), Ordering::Equal);
        assert_eq!(compare_versions("", ""), Ordering::Equal);
    }
}
