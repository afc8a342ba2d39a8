//! How the database of a state is laid out, in each schema that there has been.

use super::super::database::Layout;
use super::rows::FEW;
use super::{SCHEMA, older};

/// By this a database of ours is known.
pub(super) const LAYOUT: Layout = Layout { schema: SCHEMA, asks };

/// What can be asked of a database of this schema.
fn asks(version: i64) -> Vec<String> {
    let mut asks = vec![
        format!("SELECT {} FROM resource", older::columns_of(version)),
        "SELECT id, stamp, reason, until, rows, digest, sum FROM whole".to_owned(),
    ];
    let later = [
        (5, "SELECT id, program, machine, unsound, sum FROM manifest"),
        (older::HAS_LEASE, "SELECT id, epoch, sum FROM lease"),
        (7, "SELECT lasts FROM whole"),
    ];
    if version >= older::HAS_FEW {
        asks.push(format!("SELECT {FEW} FROM resource"));
    }
    let there = later.iter().filter(|(since, _)| version >= *since);
    asks.extend(there.map(|(_, ask)| (*ask).to_owned()));
    asks
}
