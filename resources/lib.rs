//! The kinds of resources that steadfast supports, and the only access to the host.
//!
//! This crate must never know the graph: a kind cannot poke other resources and does not know its neighbours.
//!
//! Reading order: `resource.rs` (the trait [`Resource`]) and `resource_id.rs`, `change.rs` (the result of a check:
//! [`CheckResult`], [`Change`], [`Outcome`]), `failure.rs`, `permit.rs` (the right to change the host: [`Permit`]),
//! `prior_state.rs` and `reversed_edits.rs` (history and undo), `kind.rs`, `field_spec.rs` and `kind_set.rs` (the
//! declaration of a kind: [`KindSpec`]), `footprint.rs`, `claim.rs`, `dependency.rs`, `watch_source.rs` (a resource as
//! others see it), `transaction.rs`, `removal.rs` and `removal_guard.rs`, `values.rs`, `sent_slot.rs` and `deferred.rs`
//! (send/recv), `secret_text.rs`, `cipher.rs`, `hidden_difference.rs` and `escape.rs` (secrets and foreign text),
//! `copy_digest.rs`, `duration.rs`, `hex.rs`, then `host/`, `parts/`, `kinds/` and `inspect/`.
#![forbid(unsafe_code)]

mod change;
mod cipher;
mod claim;
mod copy_digest;
mod deferred;
mod dependency;
mod escape;
mod failure;
mod field_spec;
mod footprint;
mod hex;
mod hidden_difference;
mod kind;
mod kind_set;
mod parts;
mod permit;
mod prior_state;
mod removal;
mod removal_guard;
mod resource;
mod resource_id;
mod reversed_edits;
mod secret_text;
mod sent_slot;
mod transaction;
mod values;
mod watch_source;

pub mod duration;
pub mod host;
pub mod inspect;
pub mod kinds;

pub use crate::claim::{Claim, ClaimMode};
pub use crate::copy_digest::{CopyDigest, CopyDigestSlot};
pub use crate::dependency::{HostObject, Match, Need};
pub use crate::escape::{is_deceptive, printable, printable_json};
pub use crate::failure::Failure;
pub use crate::footprint::Footprint;
pub use crate::kind::{
    Build, FieldMode, FieldRole, FieldSpec, FieldType, Fields, ForeignValue, Interpreter, Invalid,
    KindSpec, LONGEST_SPAN, Place, Restore, Restoring, Value,
};
pub use crate::kind_set::KindSet;
pub use crate::prior_state::{
    After, EDITED_TOGETHER, Enclosure, FieldValues, FormerValue, Loss, NotRecorded, PendingRecord,
    PriorContent, PriorEdit, PriorEntry, PriorShape, PriorState, PriorStateRecorder,
};
pub use crate::removal_guard::{DeclaredPaths, guard_removal};
pub use crate::resource_id::ResourceId;
pub use crate::reversed_edits::reverse_edits;
pub use crate::values::{
    BuiltResource, DeferredResource, InputSlot, MaybeSecret, Origin, Part, Received, Receives,
    ResolvedInput, SendSpec, Sent, SentValue, TemplatePiece, ValueRetention, fits,
};
pub use crate::watch_source::WatchSource;
pub use change::{Change, CheckResult, Difference, Outcome};
pub use cipher::Encrypted;
pub use host::Host;
pub use permit::{MintKey, Permit, Recorders, Revoked};
pub use removal::Removal;
pub use resource::{
    Answer, CheckRequest, ClosedDirectory, ExecutorKind, OnInterrupt, PathAfter, Resource,
    RunPolicy, Traits,
};
pub use secret_text::{KeyedHash, KeyedHashOf, Secret, StateKey};
pub use sent_slot::SentSlot;
pub use transaction::{Grouping, Member, Transaction};
