//! Keys as OpenSSL writes them: PEM with PKCS#8 (private) and `SubjectPublicKeyInfo` (public).

/// The bytes before an ed25519 key in a `SubjectPublicKeyInfo`.
const ED25519_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the bytes of the first PEM block with a label.
pub(super) fn decode_pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    decode_base64(body)
}

/// Returns the ed25519 key of a public key in PEM.
pub(super) fn decode_public_key(text: &str) -> Option<[u8; 32]> {
    let der = decode_pem(text, "PUBLIC KEY")?;
    der.strip_prefix(&ED25519_PREFIX)?.try_into().ok()
}

/// Writes an ed25519 key as PEM.
pub(super) fn encode_public_key(key: &[u8]) -> String {
    let der: Vec<u8> = ED25519_PREFIX.iter().chain(key).copied().collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", encode_base64(&der))
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut number) = (0_u32, 0_u32);
    let mut bytes = Vec::new();
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = ALPHABET.iter().position(|letter| *letter == byte)?;
        number = (number << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((number >> bits) & 0xff).ok()?);
            number &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        let number = number << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let index = (number >> (18 - 6 * at)) & 63;
            let letter = ALPHABET.get(index as usize).map_or('=', |letter| char::from(*letter));
            text.push(if at <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_written() {
        for length in 0..40_u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37)).collect();
            assert_eq!(decode_base64(&encode_base64(&bytes)), Some(bytes));
        }
        assert_eq!(encode_base64(b"ab"), "YWI=");
        assert_eq!(decode_base64("a!"), None);
    }
}
