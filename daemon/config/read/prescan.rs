//! A scan of the bytes of a file for rejected characters, and for constructs that need the slow reader.

/// The result of a scan.
#[derive(Debug, Default)]
pub(in crate::config) struct Scan {
    /// True if the text holds constructs that the fast reader does not see, or that YAML readers treat differently
    /// (tags, anchors, aliases, tabs in the indentation, directives, deep nesting). The slow reader must agree then.
    pub(in crate::config) careful: bool,
    /// The rejected characters: the offset and the number of bytes of each.
    pub(in crate::config) bad: Vec<(usize, usize)>,
}

/// The depth of brackets from which the slow reader must agree.
const DEEP: i32 = 60;
/// The maximum number of listed rejected characters.
const LISTED: usize = 20;

/// Scans the bytes of a text.
pub(in crate::config) fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let mut scan = Scan::default();
    let (mut depth, mut comment_end) = (0_i32, 0);
    // The number of lists that begin on one line, and the offset of the last.
    let (mut lists, mut last) = (0_i32, 0);
    for (at, byte) in bytes.iter().enumerate() {
        if PLAIN[usize::from(*byte)] {
            continue;
        }
        let next = bytes.get(at + 1).copied();
        match byte {
            b'[' | b'{' => {
                depth += 1;
                scan.careful |= depth > DEEP;
            }
            b'-' if next == Some(b' ') && begins_token(bytes, at) => {
                lists = if at == last + 2 { lists + 1 } else { 1 };
                last = at;
                scan.careful |= lists > DEEP;
            }
            b'-' => {}
            b'#' if depth > 0 && at >= comment_end && begins_token(bytes, at) => {
                let rest = bytes.get(at..).unwrap_or_default();
                let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                comment_end = at + line;
            }
            b'#' => scan.careful |= follows_closing(bytes, at),
            // Brackets in comments and quotes close nothing: a depth that is too high is safe.
            b']' | b'}' if at >= comment_end && ends_token(next) => depth = (depth - 1).max(0),
            b']' | b'}' => {}
            b'\r' => scan.careful |= next != Some(b'\n'),
            b'\t' => scan.careful |= is_indentation(bytes, at),
            b'!' => scan.careful |= begins_token(bytes, at),
            b'&' | b'*' => {
                let name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                scan.careful |= next.is_some_and(name) && begins_token(bytes, at);
            }
            b'?' => {
                let alone = next.is_none_or(|b| b.is_ascii_whitespace());
                scan.careful |= alone && begins_token(bytes, at);
            }
            b'%' => scan.careful |= at == 0 || bytes.get(at - 1) == Some(&b'\n'),
            _ => {
                let length = refused(bytes.get(at..).unwrap_or_default());
                if length > 0 && scan.bad.len() < LISTED {
                    scan.bad.push((at, length));
                }
            }
        }
    }
    scan
}

/// The bytes that need no further look.
static PLAIN: [bool; 256] = plain();

const fn plain() -> [bool; 256] {
    let mut table = [true; 256];
    let mut byte = 0_u8;
    loop {
        let special = matches!(
            byte,
            b'#' | b'-' | b'[' | b']' | b'{' | b'}' | b'!' | b'&' | b'*' | b'?' | b'%'
        );
        let control = matches!(byte, 0..=9 | 11..=31 | 0x7f | 0xc2 | 0xe2 | 0xef);
        table[byte as usize] = !special && !control;
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

fn begins_token(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).and_then(|before| bytes.get(before)) {
        None => true,
        Some(before) => before.is_ascii_whitespace() || b"[{,:-?".contains(before),
    }
}

fn follows_closing(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_some_and(|before| b"\"']},:[{|>".contains(before))
}

fn ends_token(next: Option<u8>) -> bool {
    next.is_none_or(|next| next.is_ascii_whitespace() || b"]},:".contains(&next))
}

fn is_indentation(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'?' | b':'))
}

/// Returns the number of bytes of a rejected character: a control, a line break of only some readers, or a mark.
fn refused(bytes: &[u8]) -> usize {
    match bytes {
        [0..=8 | 11 | 12 | 14..=31 | 0x7f, ..] => 1,
        [0xc2, 0x80..=0x9f, ..] => 2,
        [0xe2, 0x80, 0xa8 | 0xa9, ..] | [0xef, 0xbb | 0xbf, 0xbf, ..] | [0xef, 0xbf, 0xbe, ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn rejected_texts_and_texts_for_the_careful_reader() {
        for text in ["a\u{0}b", "\u{1b}[0m", "a\u{85}b", "a\u{2028}b", "a\u{feff}b", "a\u{7f}"] {
            assert_eq!(scan(text).bad.len(), 1, "{text:?}");
        }
        for text in ["a: !x b", "a: &b c", "a: *b", "\ta: b", "? a", "%YAML 1.2\n", "a\rb"] {
            assert!(scan(text).careful, "{text:?}");
        }
        assert!(scan(&"- ".repeat(100)).careful && !scan(&"- a\n".repeat(100)).careful);
        for text in ["a: b!\n", "é: ü\r\n", "a: x && y", "a: 5 * 5", "a: b\tc", "#!/bin/sh", "a?"]
        {
            let scan = scan(text);
            assert!(!scan.careful && scan.bad.is_empty(), "{text:?}");
        }
    }
}
