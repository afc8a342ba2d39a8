//! Secrets that are kept and must come back: encrypted, each for the one place in which it stands.
//!
//! ChaCha20-Poly1305 under a key that follows from that of the hashes (HKDF of SHA-256), with a nonce of the system each time. A hash
//! is an HMAC under the key itself, of texts that others may choose: no such hash is the key of the cipher.

use crate::failure::Failure;
use crate::hex::{from_hex, to_hex};
use crate::host::Host;
use crate::secret::{Secret, StateKey};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

/// What the key of the cipher is for.
const LABEL: &[u8] = b"steadfast: secrets that are kept, 1";

/// A secret as it is kept: it says nothing to whoever has no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    nonce: [u8; NONCE_LEN],
    /// With its tag.
    text: Vec<u8>,
}

impl Encrypted {
    /// As text, for the store.
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(&self.nonce) + &to_hex(&self.text)
    }

    /// From that text.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = from_hex(text)?;
        let (nonce, text) = bytes.split_first_chunk()?;
        let is_whole = text.len() >= CHACHA20_POLY1305.tag_len();
        is_whole.then(|| Self { nonce: *nonce, text: text.to_vec() })
    }
}

impl StateKey {
    /// Encrypts a secret for one place: nowhere else it is known again.
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
        // Encrypted where it stands: with room for the tag no copy in clear is left behind.
        let mut text = Vec::with_capacity(clear.len() + CHACHA20_POLY1305.tag_len());
        text.extend_from_slice(clear);
        let unique = Nonce::assume_unique_for_key(nonce);
        let done = cipher.seal_in_place_append_tag(unique, Aad::from(name(place)), &mut text);
        done.map_err(|_says_nothing| refuse())?;
        Ok(Encrypted { nonce, text })
    }

    /// The secret; none where another key or another place has encrypted it, or where anything of it was changed.
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

/// A place in one way only: each of its parts after its length.
fn name(place: &[&str]) -> Vec<u8> {
    // The same on every machine.
    let length = |part: &str| u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes();
    let part = |part: &&str| [&length(part)[..], part.as_bytes()].concat();
    place.iter().flat_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::{Encrypted, name};
    use crate::host::Host;
    use crate::secret::{Secret, StateKey};

    const PLACE: &[&str] = &["password[db]", "password"];

    fn encrypted(key: &StateKey) -> Encrypted {
        key.encrypt(&Secret::from("canary"), PLACE, &Host::default()).unwrap()
    }

    /// B-26: what is kept of a secret does not hold it, and is another text each time.
    #[test]
    fn what_is_encrypted_comes_back_and_is_not_shown() {
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

    /// B-26: with another key, in another place, or with any bit flipped it is unknown, and never another secret.
    #[test]
    fn what_was_changed_is_not_known() {
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

    /// The hash of a text that somebody has chosen is kept as it is: none of them is the key of the cipher.
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
