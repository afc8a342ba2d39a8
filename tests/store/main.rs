//! The tests of the store: one contract for both stores, the journal, `kill -9`, and damage.
//!
//! Nothing here starts a daemon. Reading order: `contract`, `journal`, `crash`, `damage`, `rules`, `directory`,
//! `overwritten_log`, `fence`, `later`, `readers`, `owned`, `foreign` and `migrated`.

#[path = "../state_checksums.rs"]
mod state_checksums;

mod contract;
mod crash;
mod damage;
mod directory;
mod fence;
mod foreign;
mod journal;
mod later;
mod migrated;
mod overwritten_log;
mod owned;
mod readers;
mod rules;

use std::sync::Arc;
use steadfast::store::{Ended, Entry, Verb};

fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn begin(identity: &str, stamp: u64, owes: &[&str]) -> Entry {
    let (definition, owes) = (stamp + 1000, names(owes));
    Entry::Begin {
        identity: identity.into(),
        definition,
        stamp,
        verb: Verb::Update,
        owes,
        pays: None,
    }
}

fn end(identity: &str, stamp: u64, outcome: Ended, owes: &[&str], paid: Option<u64>) -> Entry {
    let definition = stamp + 1000;
    let (begun, owes) = (Some(stamp), names(owes));
    Entry::End { identity: identity.into(), definition, outcome, begun, stamp, owes, paid }
}
