//! The kinds of resources steadfast knows, and the one door to the host.
//!
//! This crate knows the machine and never the graph: a kind cannot poke, and does not know its neighbours. Reading order:
//! the trait ([`Resource`]), what a check finds ([`Verdict`], [`Change`]), what an apply may do ([`Permit`]) and how it ends
//! ([`Outcome`]), how a kind is declared ([`Spec`]), then the host and the kinds.
#![forbid(unsafe_code)]

mod change;
mod cipher;
mod copy_digest;
mod deferred;
mod dependency;
mod escape;
mod failure;
mod hex;
mod kind;
mod permit;
mod prior_state;
mod removal;
mod removal_guard;
mod resource;
mod secret;
mod transaction;
mod values;
mod watch_source;

pub mod host;
pub mod kinds;
pub mod registry;

pub use crate::copy_digest::{Copied, Copies};
pub use crate::dependency::{Need, Scope, Token};
pub use crate::escape::{is_deceptive, printable, printable_json};
pub use crate::failure::Trouble;
pub use crate::kind::{
    Build, FieldSpec, FieldType, Fields, Invalid, LONGEST_SPAN, Place, Spec, Value,
};
pub use crate::prior_state::{
    Former, FormerContent, FormerShape, FormerThing, Keeper, Losing, Unkept,
};
pub use crate::removal_guard::{Held, departing};
pub use crate::values::{
    Datum, Given, Kept, Made, Origin, Part, Piece, Received, Receives, Recipe, SendSpec, Sent,
    Slot, Words, fits,
};
pub use crate::watch_source::{Claim, Source};
pub use change::{Change, Difference, Outcome, Verdict};
pub use cipher::Encrypted;
pub use host::Host;
pub use permit::{MintKey, Permit, Revoked};
pub use removal::Removal;
pub use resource::{Answer, Ask, Becomes, Nature, OnInterrupt, Repeat, Resource, Seat};
pub use secret::{Seal, SealKey, Sealed, Secret};
pub use transaction::{Grouping, Member, Transaction};
