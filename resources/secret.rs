//! Secrets: texts that cannot be shown, and the keyed hashes by which one is known again.

use crate::hex::{from_hex, to_hex};
use sha2::{Digest as _, Sha256};
use std::fmt;
use zeroize::{Zeroize as _, Zeroizing};

/// A text that is never shown: whoever prints, logs or serializes it gets `<secret>`. It is wiped when it is dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself, for the one who needs it.
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

/// What makes hashes of secrets worthless to others: random, and kept beside the state.
#[derive(Clone)]
pub struct StateKey(Zeroizing<[u8; 32]>);

/// A keyed hash: it tells whether something is the same again, and nothing else.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyedHash {
    hash: [u8; 32],
}

/// A seal with the key that it was made by: it knows its own text again.
#[derive(Clone)]
pub struct KeyedHashOf {
    key: StateKey,
    seal: KeyedHash,
}

impl StateKey {
    /// With this key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// From which the key of the cipher follows.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The hash of these bytes (HMAC of SHA-256, RFC 2104).
    #[must_use]
    pub fn seal(&self, bytes: &[u8]) -> KeyedHash {
        let pad = |byte: u8| {
            let mut block = [byte; 64];
            for (to, from) in block.iter_mut().zip(self.0.iter()) {
                *to ^= from;
            }
            block
        };
        let (mut inner, mut outer) = (pad(0x36), pad(0x5c));
        let hash = Sha256::new().chain_update(inner).chain_update(bytes).finalize();
        let hash = Sha256::new().chain_update(outer).chain_update(hash).finalize();
        inner.zeroize();
        outer.zeroize();
        KeyedHash { hash: hash.into() }
    }

    /// A seal that can be compared.
    #[must_use]
    pub fn sealed(&self, seal: KeyedHash) -> KeyedHashOf {
        KeyedHashOf { key: self.clone(), seal }
    }
}

impl KeyedHashOf {
    /// Whether these are the bytes that were sealed.
    #[must_use]
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.key.seal(bytes) == self.seal
    }
}

impl PartialEq for KeyedHashOf {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal
    }
}

impl KeyedHash {
    /// As text, for the store.
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(&self.hash)
    }

    /// From that text.
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

    /// S-6: by no way of printing.
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

    /// The second test case of RFC 4231, with its key filled up by zeros as HMAC does.
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
    }
}
