//! Secrets and foreign text: texts that are never shown, their keyed hashes and encryption, and harmless output.
//!
//! No secret leaves this folder as a plain text, except by a method whose name says so. Reading order:
//! `secret_text.rs`, `cipher.rs`, `hidden_difference.rs`, `escape.rs`, `hex.rs`.

pub(crate) mod cipher;
pub(crate) mod escape;
pub(crate) mod hex;
pub(crate) mod hidden_difference;
pub(crate) mod secret_text;
