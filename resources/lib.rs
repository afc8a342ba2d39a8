//! The kinds of resources that steadfast supports, and the only access to the host.
//!
//! This crate must never know the graph: a kind cannot poke other resources and does not know its neighbours.
//!
//! Reading order: `resource.rs` (the trait [`Resource`]) and `resource_id.rs`, `check_request.rs` and `change.rs` (a
//! check and its result: [`CheckRequest`], [`CheckResult`], [`Change`], [`Outcome`]), `failure.rs`, `permit.rs` (the
//! right to change the host: [`Permit`]), `prior_state.rs` and `reversed_edits.rs` (history and undo), `fields/`,
//! `kind.rs` and `kind_set.rs` (the declaration of a kind: [`KindSpec`]), `footprint.rs`, `claim.rs`, `dependency.rs`,
//! `watch_source.rs` (a resource as others see it), `transaction.rs`, `removal.rs` and `removal_guard.rs`, `values/`
//! (send/recv), `secrets/`, `copy_digest.rs`, `duration.rs`, then `host/`, `parts/`, `kinds/` and `inspect/`.
#![forbid(unsafe_code)]

mod change;
mod check_request;
mod claim;
mod copy_digest;
mod dependency;
mod failure;
mod fields;
mod footprint;
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
mod secrets;
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
pub use crate::failure::Failure;
pub use crate::fields::field_spec::{
    FieldMode, FieldRole, FieldSpec, FieldType, ForeignValue, Interpreter, Receives,
};
pub use crate::fields::field_values::{Fields, Invalid, MaybeSecret, Place, Value};
pub use crate::footprint::{ClosedDirectory, Footprint, PathAfter};
pub use crate::kind::{Build, KindSpec, LONGEST_SPAN, Restore, Restoring};
pub use crate::kind_set::KindSet;
pub use crate::prior_state::{
    After, EDITED_TOGETHER, Enclosure, FieldValues, FormerValue, Loss, NotRecorded, PendingRecord,
    PriorContent, PriorEdit, PriorEntry, PriorShape, PriorState, PriorStateRecorder,
};
pub use crate::removal_guard::{DeclaredPaths, guard_removal};
pub use crate::resource_id::ResourceId;
pub use crate::reversed_edits::reverse_edits;
pub use crate::secrets::escape::{is_deceptive, printable, printable_json};
pub use crate::values::inputs::{
    BuiltResource, DeferredResource, InputSlot, Origin, Part, Received, ResolvedInput,
    TemplatePiece,
};
pub use crate::values::sent_values::{SendSpec, Sent, SentValue, ValueRetention, fits};
pub use crate::watch_source::WatchSource;
pub use change::{Change, CheckResult, Difference, Outcome};
pub use check_request::{Answer, CheckRequest};
pub use host::Host;
pub use permit::{MintKey, Permit, Recorders, Revoked};
pub use removal::Removal;
pub use resource::{ExecutorKind, OnInterrupt, Resource, RunPolicy, Traits};
pub use secrets::cipher::Encrypted;
pub use secrets::secret_text::{KeyedHash, KeyedHashOf, Secret, StateKey};
pub use transaction::{Grouping, Member, Transaction};
pub use values::sent_slot::SentSlot;
