//! The order of versions, as dpkg defines it: an epoch, then parts of text and digits in turn, `~` before the end.

use std::cmp::Ordering;

/// Compares two versions: the epochs, then the upstream versions, then the revisions.
#[must_use]
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let ((epoch, one), (other_epoch, other)) = (split_epoch(one), split_epoch(other));
    let ((one, revision), (other, other_revision)) = (split_revision(one), split_revision(other));
    compare_digits(epoch, other_epoch)
        .then_with(|| compare_parts(one, other))
        .then_with(|| compare_parts(revision, other_revision))
}

fn split_epoch(version: &str) -> (&str, &str) {
    match version.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => (epoch, rest),
        _ => ("", version),
    }
}

fn split_revision(version: &str) -> (&str, &str) {
    version.rsplit_once('-').unwrap_or((version, ""))
}

/// Compares parts of text and digits in turn.
fn compare_parts(mut one: &str, mut other: &str) -> Ordering {
    while !one.is_empty() || !other.is_empty() {
        let (text, rest) = take_while(one, |letter| !letter.is_ascii_digit());
        let (other_text, other_rest) = take_while(other, |letter| !letter.is_ascii_digit());
        let (digits, following) = take_while(rest, |letter| letter.is_ascii_digit());
        let (other_digits, remaining) = take_while(other_rest, |letter| letter.is_ascii_digit());
        let order =
            compare_texts(text, other_text).then_with(|| compare_digits(digits, other_digits));
        if order.is_ne() {
            return order;
        }
        (one, other) = (following, remaining);
    }
    Ordering::Equal
}

fn take_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|letter| !belongs(letter)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Compares texts: `~` before the end, the end before letters, letters before other characters.
fn compare_texts(one: &str, other: &str) -> Ordering {
    let rank = |letter: Option<char>| match letter {
        Some('~') => (0, '~'),
        None => (1, ' '),
        Some(letter) if letter.is_ascii_alphabetic() => (2, letter),
        Some(letter) => (3, letter),
    };
    let (mut letters, mut others) = (one.chars(), other.chars());
    loop {
        let (letter, other) = (letters.next(), others.next());
        let order = rank(letter).cmp(&rank(other));
        if order.is_ne() || letter.is_none() {
            return order;
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
    fn versions_have_the_order_of_dpkg() {
        for (one, other, order) in [
            ("9", "12", Ordering::Less),
            ("1.0~rc1", "1.0", Ordering::Less),
            ("1.0", "1.0a", Ordering::Less),
            ("1:0.9", "2.0", Ordering::Greater),
            ("1.2.3-4", "1.2.3-10", Ordering::Less),
            ("2.36", "2.036", Ordering::Equal),
            ("", "", Ordering::Equal),
            ("1.0-0", "1.0", Ordering::Equal),
            ("1.0", "1.1", Ordering::Less),
            ("1.9", "1.10", Ordering::Less),
            ("9", "1:1", Ordering::Less),
            ("1.0~rc1-1", "1.0-1", Ordering::Less),
            ("1.0-1", "1.0-1+deb12u1", Ordering::Less),
            ("1.0-9", "1.0-10", Ordering::Less),
            ("1.0a", "1.0+b", Ordering::Less),
            ("1.22.1-9", "1.22.1-9+b1", Ordering::Less),
            ("2.36-8", "2.36-9", Ordering::Less),
            ("0", "00000000000000000000000000000000000000000001", Ordering::Less),
            ("99999999999999999999999", "1", Ordering::Greater),
        ] {
            assert_eq!(compare_versions(one, other), order, "{one} {other}");
            assert_eq!(compare_versions(other, one), order.reverse(), "{other} {one}");
        }
    }
}
