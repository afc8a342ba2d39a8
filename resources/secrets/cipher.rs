//! Encryption of secrets that must be readable again after a restart, each bound to its own place in the
//! store.
//!
//! The cipher is ChaCha20-Poly1305. Its key is derived (HKDF of SHA-256) from the key of the keyed hashes,
//! and each encryption takes a new nonce from the system. The keyed hashes are HMACs under the original key
//! over texts that others may choose; the derivation makes sure that no such hash equals the cipher's key.

use crate::failure::Failure;
use crate::host::Host;
use crate::secrets::hex::{from_hex, to_hex};
use crate::secrets::secret_text::{Secret, StateKey};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

/// The purpose in the key derivation of the cipher.
const LABEL: &[u8] = b"steadfast: secrets that are kept, 1";

/// An encrypted secret as stored, useless without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    nonce: [u8; NONCE_LEN],
    /// The ciphertext with its tag.
    text: Vec<u8>,
}

impl Encrypted {
    /// Returns the nonce and the ciphertext as hexadecimal text, for the store.
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(&self.nonce) + &to_hex(&self.text)
    }

    /// Reads the text that [`Encrypted::to_hex`] returned; none if the text is malformed.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = from_hex(text)?;
        let (nonce, text) = bytes.split_first_chunk()?;
        let is_whole = text.len() >= CHACHA20_POLY1305.tag_len();
        is_whole.then(|| Self { nonce: *nonce, text: text.to_vec() })
    }
}

impl StateKey {
    /// Encrypts a secret for one place; [`StateKey::decrypt`] rejects the result at any other place.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random bytes or the cipher fails.
    pub fn encrypt(
        &self,
        secret: &Secret,
        place: &[&str],
        host: &Host,
    ) -> Result<Encrypted, Failure> {
        let mut nonce = [0; NONCE_LEN];
        host.random(&mut nonce)?;
        let refuse = || Failure::new("a secret cannot be encrypted");
        let cipher = self.cipher().ok_or_else(refuse)?;
        let clear = secret.reveal().as_bytes();
        // Encrypts in place: with room for the tag, the buffer is not reallocated and no copy of the clear text
        // remains.
        let mut text = Vec::with_capacity(clear.len() + CHACHA20_POLY1305.tag_len());
        text.extend_from_slice(clear);
        let unique = Nonce::assume_unique_for_key(nonce);
        let done = cipher.seal_in_place_append_tag(unique, Aad::from(name(place)), &mut text);
        done.map_err(|_says_nothing| refuse())?;
        Ok(Encrypted { nonce, text })
    }

    /// Decrypts a secret; none if another key or another place encrypted the secret, or if any bit was changed.
    #[must_use]
    pub fn decrypt(&self, encrypted: &Encrypted, place: &[&str]) -> Option<Secret> {
        let mut text = Zeroizing::new(encrypted.text.clone());
        let nonce = Nonce::assume_unique_for_key(encrypted.nonce);
        let clear = self.cipher()?.open_in_place(nonce, Aad::from(name(place)), &mut text).ok()?;
        std::str::from_utf8(clear).ok().map(Secret::from)
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        let root = Salt::new(HKDF_SHA256, LABEL).extract(self.bytes());
        let key = root.expand(&[b"ChaCha20-Poly1305"], &CHACHA20_POLY1305).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }
}

/// Encodes a place unambiguously: each part follows its length.
fn name(place: &[&str]) -> Vec<u8> {
    // The length has a fixed width and byte order, so the encoding is equal on every machine.
    let length = |part: &str| u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes();
    let part = |part: &&str| [&length(part)[..], part.as_bytes()].concat();
    place.iter().flat_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::{Encrypted, name};
    use crate::host::Host;
    use crate::secrets::secret_text::{Secret, StateKey};

    const PLACE: &[&str] = &["password[db]", "password"];

    fn encrypted(key: &StateKey) -> Encrypted {
        key.encrypt(&Secret::from("canary"), PLACE, &Host::default()).unwrap()
    }

    /// B-26: an encrypted secret does not contain the clear text, and each encryption differs.
    #[test]
    fn encrypted_text_is_decrypted_and_not_shown() {
        let key = StateKey::new([7; 32]);
        let (one, two) = (encrypted(&key), encrypted(&key));
        assert_ne!(one, two, "the same nonce twice");
        for one in [one, two] {
            let shown = format!("{one:?} {} {}", one.to_hex(), String::from_utf8_lossy(&one.text));
            assert!(!shown.contains("canary"), "{shown}");
            let again = Encrypted::from_hex(&one.to_hex()).unwrap();
            assert_eq!(key.decrypt(&again, PLACE), Some("canary".into()));
        }
        let empty = key.encrypt(&Secret::default(), PLACE, &Host::default()).unwrap();
        assert_eq!(key.decrypt(&empty, PLACE), Some(Secret::default()));
    }

    /// B-26: with another key, in another place, or with any bit flipped, the decryption returns nothing.
    #[test]
    fn altered_ciphertext_is_unknown() {
        let key = StateKey::new([7; 32]);
        let one = encrypted(&key);
        assert_eq!(StateKey::new([8; 32]).decrypt(&one, PLACE), None);
        for place in [&["password[other]", "password"][..], &["password[db]", "other"], &[]] {
            assert_eq!(key.decrypt(&one, place), None, "{place:?}");
        }
        let hex = one.to_hex();
        for at in 0..hex.len() * 4 {
            let mut bytes = super::from_hex(&hex).unwrap();
            let Some(byte) = bytes.get_mut(at / 8) else { break };
            *byte ^= 1 << (at % 8);
            let flipped = Encrypted::from_hex(&super::to_hex(&bytes)).unwrap();
            assert_eq!(key.decrypt(&flipped, PLACE), None, "bit {at}");
        }
        let (short, odd): (String, String) =
            (hex.chars().take(54).collect(), hex.chars().skip(1).collect());
        for wrong in ["", "x", "+f", &short, &odd, &format!("{hex}zz")] {
            assert_eq!(Encrypted::from_hex(wrong), None, "{wrong}");
        }
    }

    /// The keyed hash of a chosen text never equals the cipher's key, and distinct places have distinct
    /// encodings.
    #[test]
    fn places_and_keys_are_told_apart() {
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        let key = StateKey::new([7; 32]);
        let hash = super::from_hex(&key.seal(super::LABEL).to_hex()).unwrap();
        let as_key = ring::aead::UnboundKey::new(&super::CHACHA20_POLY1305, &hash).unwrap();
        let mut one = encrypted(&key);
        let nonce = ring::aead::Nonce::assume_unique_for_key(one.nonce);
        let opened = ring::aead::LessSafeKey::new(as_key)
            .open_in_place(nonce, ring::aead::Aad::from(name(PLACE)), &mut one.text)
            .is_ok();
        assert!(!opened);
    }
}
