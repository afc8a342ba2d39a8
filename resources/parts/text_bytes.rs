//! Bytes as text and back: bytes that are not UTF-8 survive an edit of the text around them.

/// The first character of the private range that stands for bytes that are not UTF-8.
const RAW: u32 = 0x000f_ff00;

/// Decodes bytes; each byte that is not UTF-8 becomes a character of a private range.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if is_raw(letter) {
                // A letter of the private range is kept as its bytes.
                let bytes = letter.encode_utf8(&mut [0; 4]).bytes().collect::<Vec<_>>();
                text.extend(bytes.iter().filter_map(|it| char::from_u32(RAW + u32::from(*it))));
            } else {
                text.push(letter);
            }
        }
        let raw = chunk.invalid().iter().filter_map(|byte| char::from_u32(RAW + u32::from(*byte)));
        text.extend(raw);
    }
    text
}

/// Returns true for a character that stands for a byte.
fn is_raw(letter: char) -> bool {
    u32::from(letter).checked_sub(RAW).is_some_and(|byte| (0x80..=0xff).contains(&byte))
}

/// Encodes a text that [`decoded`] returned, possibly edited.
pub(crate) fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for letter in text.chars() {
        match u32::from(letter).checked_sub(RAW).and_then(|raw| u8::try_from(raw).ok()) {
            Some(byte) if byte >= 0x80 => bytes.push(byte),
            _ => bytes.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded};

    #[test]
    fn every_byte_survives_an_edit() {
        let all: Vec<u8> = (0..=255).chain("grüße\n".bytes()).collect();
        assert_eq!(encoded(&decoded(&all)), all);
        let private = "a\u{fff80}\u{fffff}b".as_bytes();
        assert_eq!(encoded(&decoded(private)), private);
    }
}
