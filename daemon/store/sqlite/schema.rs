//! The layout of the state database, for each schema.

use super::migrations;
use super::migrations::Columns;
use super::{SCHEMA, manifest};
use crate::store::database::Layout;

/// The layout by which our database is recognised.
pub(super) const LAYOUT: Layout = Layout { schema: SCHEMA, asks, later };

/// Returns a query that only a later schema can answer, for schemas whose number differs in one bit.
fn later(version: i64) -> Vec<String> {
    if version < 9 { vec!["SELECT pays FROM resource".to_owned()] } else { Vec::new() }
}

/// Returns the queries that a database of this schema can answer.
fn asks(version: i64) -> Vec<String> {
    let Columns { most, few, whole } = migrations::columns_of(version);
    let mut asks = vec![
        format!("SELECT {most}, {few} FROM resource"),
        format!("SELECT id, {whole} FROM whole"),
    ];
    let later = [
        (5, "SELECT id, program, machine, unsound, sum FROM manifest"),
        (migrations::HAS_LEASE, "SELECT id, epoch, sum FROM lease"),
        (manifest::HAS_TIME, "SELECT written_at FROM manifest"),
    ];
    let there = later.iter().filter(|(since, _)| version >= *since);
    asks.extend(there.map(|(_, ask)| (*ask).to_owned()));
    asks
}
