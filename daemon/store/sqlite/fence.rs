//! Which holder of the state may write: the one with the largest epoch, which stands in the database (C-10).
//!
//! The lock on the directory keeps a second daemon out, unless somebody removes its file. Then the second takes the next epoch here, and
//! what the first still commits is refused in the same transaction.

use super::super::database::Fault;
use super::checksums::sum_of_number;
use super::deferred_open::Seen;
use super::manifest::Manifest;
use crate::store::state_dir::StateLock;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

/// The table of the one row.
pub(super) const TABLE: &str = "
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;";

/// The epoch of the last who took it; 0 where nobody has.
pub(super) fn current_epoch(connection: &Connection) -> Result<u64, Fault> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
    };
    let mut select = connection.prepare_cached("SELECT epoch, sum FROM lease")?;
    let (epoch, sum) = select.query_row((), read)?;
    if sum == sum_of_number(epoch) {
        return Ok(epoch);
    }
    Err(Fault::Damaged("the checksum of the lease does not match".to_owned()))
}

/// From now on it is that of this holder, unless it has held it before and somebody has taken it since, or something else was `seen`
/// when it was read.
pub(super) fn take(
    connection: &mut Connection,
    hold: &StateLock,
    seen: Option<Seen>,
) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let standing = guard(&transaction, hold)?;
    if let Some(seen) = seen
        && Seen::of(&transaction, standing)? != seen
    {
        hold.fence(standing);
        let since = "another steadfast has taken the state since it was read";
        return Err(Fault::Refused(since.to_owned()));
    }
    let epoch = hold.next_epoch(standing);
    if epoch != standing {
        write(&transaction, epoch)?;
        Manifest::renew(&transaction)?;
        transaction.commit()?;
    }
    hold.took(epoch);
    Ok(())
}

/// Whether this holder may write: asked within each transaction that does. Answers the epoch that stands there.
pub(super) fn guard(transaction: &Transaction<'_>, hold: &StateLock) -> Result<u64, Fault> {
    match current_epoch(transaction)? {
        epoch if hold.admits(epoch) => Ok(epoch),
        epoch => Err(Fault::Refused(hold.fence(epoch).to_string())),
    }
}

/// Puts it there.
pub(super) fn write(connection: &Connection, epoch: u64) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO lease (id, epoch, sum) VALUES (1, ?1, ?2)";
    let sum = sum_of_number(epoch).cast_signed();
    connection.prepare_cached(sql)?.execute(params![epoch.cast_signed(), sum])?;
    Ok(())
}
