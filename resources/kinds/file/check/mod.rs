//! The check of a file: the object is compared with its declaration, and a plan for the apply is made.
//!
//! The folder changes nothing on the host.
//!
//! Reading order: `steps`, `compare`, `end_state`, `plan`, `diff`; then the digests and caches of copies:
//! `copy_digest`, `equality_cache`, `loss_digest`.

pub(in crate::kinds::file) mod compare;
pub(in crate::kinds::file) mod copy_digest;
pub(in crate::kinds::file) mod diff;
pub(in crate::kinds::file) mod end_state;
pub(in crate::kinds::file) mod equality_cache;
pub(in crate::kinds::file) mod loss_digest;
pub(in crate::kinds::file) mod plan;
pub(in crate::kinds::file) mod steps;
