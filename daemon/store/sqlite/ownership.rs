//! Ownership records as columns.

use super::rows::split;
use crate::store::database::Fault;
use crate::store::{Origin, Ownership};
use rusqlite::Row;
use std::sync::Arc;

const CREATED: i64 = 1;
const ADOPTED: i64 = 2;
const DELETE: i64 = 4;
const PROTECT: i64 = 8;
const PINNED: i64 = 16;

/// Returns all flags of the record as one number.
pub(super) fn marks(owned: &Ownership) -> i64 {
    let origin = match owned.origin {
        None => 0,
        Some(Origin::Created) => CREATED,
        Some(Origin::Adopted) => ADOPTED,
    };
    let marks = [(owned.delete, DELETE), (owned.protect, PROTECT), (owned.pinned, PINNED)];
    marks.iter().filter(|(is, _)| *is).fold(origin, |sum, (_, mark)| sum | mark)
}

/// Reads the ownership columns from index `first` on.
pub(super) fn read(row: &Row<'_>, first: usize) -> Result<Option<Arc<Ownership>>, Fault> {
    let damaged = || Fault::Damaged("an incomplete ownership record".to_owned());
    let text = |index: usize| row.get::<_, Option<String>>(first + index);
    let Some(marks) = row.get::<_, Option<i64>>(first)? else { return Ok(None) };
    let thing = row.get::<_, Option<i64>>(first + 2)?.ok_or_else(damaged)?;
    let after = match text(4)? {
        None => Vec::new(),
        Some(list) => split(&list).ok_or_else(damaged)?,
    };
    let has = |mark: i64| marks & mark != 0;
    Ok(Some(Arc::new(Ownership {
        origin: match (has(CREATED), has(ADOPTED)) {
            (true, _) => Some(Origin::Created),
            (false, true) => Some(Origin::Adopted),
            (false, false) => None,
        },
        graph: text(1)?.ok_or_else(damaged)?.into(),
        delete: has(DELETE),
        protect: has(PROTECT),
        pinned: has(PINNED),
        thing: thing.cast_unsigned(),
        removal: text(3)?.map(Into::into),
        after: after.into_iter().map(Into::into).collect(),
    })))
}
