//! Compression of contents (deflate, RFC 1951). Unpacking never yields more than the recorded size.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read as _, Write as _};

/// Compresses bytes.
///
/// # Errors
///
/// Returns the error of the encoder.
pub(crate) fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let room = Vec::with_capacity(bytes.len() / 3 + 64);
    let mut encoder = DeflateEncoder::new(room, Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Decompresses bytes; returns `None` unless the result has exactly this size.
pub(crate) fn unpack(packed: &[u8], size: u64) -> Option<Vec<u8>> {
    // A damaged row may claim any size, so the memory reserved first depends on the packed length.
    let room = packed.len().saturating_mul(8).min(usize::try_from(size).ok()?);
    let mut bytes = Vec::with_capacity(room);
    let mut limited = DeflateDecoder::new(packed).take(size.saturating_add(1));
    limited.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};

    #[test]
    fn packed_content_is_unpacked_exactly() {
        let texts = [Vec::new(), b"a\n".repeat(5000), (0..=255).collect::<Vec<u8>>()];
        for text in texts {
            let packed = pack(&text).unwrap();
            let size = text.len() as u64;
            assert_eq!(unpack(&packed, size).as_ref(), Some(&text));
            assert_eq!(unpack(&packed, size + 1), None);
            assert_eq!(size.checked_sub(1).and_then(|size| unpack(&packed, size)), None);
        }
        assert!(pack(&b"a\n".repeat(5000)).unwrap().len() < 200);
        assert_eq!(unpack(b"no deflate", 10), None);
    }
}
