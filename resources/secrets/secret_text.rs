//! Secrets: texts that are never shown, and the keyed hashes that recognise them.

use crate::secrets::hex::{from_hex, to_hex};
use ring::hmac;
use std::fmt;
use zeroize::Zeroizing;

/// A text that is never shown: printing, logging or serializing yields `<secret>`. The memory is wiped on
/// drop.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Returns the text itself, for the code that must use the clear text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("<secret>")
    }
}

/// The random key of all keyed hashes, stored in the state directory: without the key, the hashes are
/// worthless to others.
#[derive(Clone)]
pub struct StateKey(Zeroizing<[u8; 32]>);

/// A keyed hash, which shows whether two texts are equal and nothing else.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyedHash {
    hash: [u8; 32],
}

/// A keyed hash with its key, which can recognise its own text.
#[derive(Clone)]
pub struct KeyedHashOf {
    key: StateKey,
    seal: KeyedHash,
}

impl StateKey {
    /// Makes a state key of these bytes.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// Returns the bytes of the key, for deriving the cipher's key.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Returns the keyed hash of these bytes (HMAC of SHA-256, RFC 2104).
    #[must_use]
    pub fn seal(&self, bytes: &[u8]) -> KeyedHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(hmac::sign(&self.hmac(), bytes).as_ref());
        KeyedHash { hash }
    }

    /// Returns true if the hash is that of these bytes under this key. The comparison takes the same time for every
    /// wrong hash.
    #[must_use]
    pub fn verify(&self, bytes: &[u8], seal: &KeyedHash) -> bool {
        hmac::verify(&self.hmac(), bytes, &seal.hash).is_ok()
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.bytes())
    }

    /// Returns the keyed hash together with this key, for comparisons.
    #[must_use]
    pub fn sealed(&self, seal: KeyedHash) -> KeyedHashOf {
        KeyedHashOf { key: self.clone(), seal }
    }
}

impl KeyedHashOf {
    /// Returns true if the hash is that of these bytes.
    #[must_use]
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.key.verify(bytes, &self.seal)
    }
}

impl PartialEq for KeyedHashOf {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal
    }
}

impl KeyedHash {
    /// Returns the hash as hexadecimal text, for the store.
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(&self.hash)
    }

    /// Reads the text that [`KeyedHash::to_hex`] returned; none if the text is malformed.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        Some(Self { hash: from_hex(text)?.try_into().ok()? })
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey")
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl fmt::Debug for KeyedHashOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyedHash, Secret, StateKey};

    /// S-6: no format prints a secret.
    #[test]
    fn a_secret_cannot_be_printed() {
        let secret = Secret::from("canary");
        let shown = format!("{secret} {secret:?} {secret:#?} {:?}", [Some(&secret)]);
        assert!(!shown.contains("canary") && shown.starts_with("<secret> <secret>"), "{shown}");
        assert_eq!(secret.reveal(), "canary");
        let key = StateKey::new([7; 32]);
        let shown = format!("{key:?} {:?} {:?}", key.seal(b"canary"), key.sealed(key.seal(b"x")));
        assert_eq!(shown, "SealKey Seal Sealed");
    }

    /// The second test case of RFC 4231, with its key padded with zeros as HMAC does.
    #[test]
    fn a_seal_is_an_hmac() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let seal = StateKey::new(key).seal(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(seal.to_hex(), expected);
        assert_eq!(KeyedHash::from_hex(expected), Some(seal));
        assert_eq!(KeyedHash::from_hex("5bdc"), None);
        assert_eq!(KeyedHash::from_hex(&"ü".repeat(32)), None);
    }

    #[test]
    fn a_seal_knows_its_text_again() {
        let key = StateKey::new([1; 32]);
        let sealed = key.sealed(key.seal(b"text"));
        assert!(sealed.is_of(b"text") && !sealed.is_of(b"tex"));
        assert_ne!(key.seal(b"text"), StateKey::new([2; 32]).seal(b"text"));
        assert!(key.verify(b"text", &key.seal(b"text")));
        assert!(!StateKey::new([2; 32]).verify(b"text", &key.seal(b"text")));
    }
}
