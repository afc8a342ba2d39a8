//! The kinds of resources that steadfast supports, and the only access to the host.
//!
//! This crate must never know the graph: a kind cannot poke other resources and does not know its neighbours.
//!
//! Reading order: `resource.rs` (the trait [`Resource`]) and `resource_id.rs`, `check_request.rs` and `change.rs` (a
//! check and its result: [`CheckRequest`], [`CheckResult`], [`Change`], [`Outcome`]), `failure.rs`, `permit.rs` (the
//! right to change the host: [`Permit`]), `prior_state.rs` and `reversed_edits.rs` (history and undo), `field_spec.rs`,
//! `field_values.rs`, `kind.rs` and `kind_set.rs` (the declaration of a kind: [`KindSpec`]), `footprint.rs`, `claim.rs`,
//! `dependency.rs`, `watch_source.rs` (a resource as others see it), `transaction.rs`, `removal.rs` and
//! `removal_guard.rs`, `sent_values.rs`, `sent_slot.rs`, `inputs.rs` and `deferred.rs` (send/recv), `secret_text.rs`,
//! `cipher.rs`, `hidden_difference.rs` and `escape.rs` (secrets and foreign text), `copy_digest.rs`, `duration.rs`,
//! `hex.rs`, then `host/`, `parts/`, `kinds/` and `inspect/`.
#![forbid(unsafe_code)]

mod change;
mod check_request;
mod cipher;
mod claim;
mod copy_digest;
mod deferred;
mod dependency;
mod escape;
mod failure;
mod field_spec;
mod field_values;
mod footprint;
mod hex;
mod hidden_difference;
mod inputs;
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
mod sent_values;
mod transaction;
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
pub use crate::field_spec::{
    FieldMode, FieldRole, FieldSpec, FieldType, ForeignValue, Interpreter, Receives,
};
pub use crate::field_values::{Fields, Invalid, MaybeSecret, Place, Value};
pub use crate::footprint::{ClosedDirectory, Footprint, PathAfter};
pub use crate::inputs::{
    BuiltResource, DeferredResource, InputSlot, Origin, Part, Received, ResolvedInput,
    TemplatePiece,
};
pub use crate::kind::{Build, KindSpec, LONGEST_SPAN, Restore, Restoring};
pub use crate::kind_set::KindSet;
pub use crate::prior_state::{
    After, EDITED_TOGETHER, Enclosure, FieldValues, FormerValue, Loss, NotRecorded, PendingRecord,
    PriorContent, PriorEdit, PriorEntry, PriorShape, PriorState, PriorStateRecorder,
};
pub use crate::removal_guard::{DeclaredPaths, guard_removal};
pub use crate::resource_id::ResourceId;
pub use crate::reversed_edits::reverse_edits;
pub use crate::sent_values::{SendSpec, Sent, SentValue, ValueRetention, fits};
pub use crate::watch_source::WatchSource;
pub use change::{Change, CheckResult, Difference, Outcome};
pub use check_request::{Answer, CheckRequest};
pub use cipher::Encrypted;
pub use host::Host;
pub use permit::{MintKey, Permit, Recorders, Revoked};
pub use removal::Removal;
pub use resource::{ExecutorKind, OnInterrupt, Resource, RunPolicy, Traits};
pub use secret_text::{KeyedHash, KeyedHashOf, Secret, StateKey};
pub use sent_slot::SentSlot;
pub use transaction::{Grouping, Member, Transaction};
