//! The kinds of resources steadfast knows, and the one door to the host.
//!
//! This crate knows the machine and never the graph: a kind cannot poke, and does not know its neighbours. Reading order:
//! the trait ([`Resource`]), what a check finds ([`Verdict`], [`Change`]), what an apply may do ([`Permit`]) and how it ends
//! ([`Outcome`]), how a kind is declared ([`Spec`]), then the host and the kinds.
#![forbid(unsafe_code)]

mod change;
mod cipher;
mod copied;
mod departing;
mod former;
mod hex;
mod permit;
mod printable;
mod receive;
mod recipe;
mod removal;
mod resource;
mod secret;
mod source;
mod spec;
mod token;
mod transaction;
mod trouble;

pub mod host;
pub mod kinds;
pub mod registry;

pub use change::{Change, Difference, Outcome, Verdict};
pub use cipher::Encrypted;
pub use copied::{Copied, Copies};
pub use departing::{Held, departing};
pub use former::{Former, FormerContent, FormerShape, FormerThing, Keeper, Losing, Unkept};
pub use host::Host;
pub use permit::{MintKey, Permit, Revoked};
pub use printable::{is_deceptive, printable, printable_json};
pub use receive::{
    Datum, Given, Kept, Made, Origin, Part, Piece, Received, Receives, Recipe, SendSpec, Sent,
    Slot, Words, fits,
};
pub use removal::Removal;
pub use resource::{Answer, Ask, Becomes, Nature, OnInterrupt, Repeat, Resource, Seat};
pub use secret::{Seal, SealKey, Sealed, Secret};
pub use source::{Claim, Source};
pub use spec::{Build, FieldSpec, FieldType, Fields, Invalid, LONGEST_SPAN, Place, Spec, Value};
pub use token::{Need, Scope, Token};
pub use transaction::{Grouping, Member, Transaction};
pub use trouble::Trouble;
