//! Conversion between bytes and hexadecimal digits.

/// Returns two hexadecimal digits for each byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let all = String::with_capacity(bytes.len() * 2);
    bytes.iter().fold(all, |text, byte| text + &format!("{byte:02x}"))
}

/// Returns the bytes of a hexadecimal text; none if the text is malformed.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
