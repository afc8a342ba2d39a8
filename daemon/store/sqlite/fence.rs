//! Fencing (C-10): the owner with the largest epoch in the database may write.
//!
//! The lock on the directory keeps a second daemon out, unless somebody removes the lock file. Then the second daemon
//! takes the next epoch here, and later commits of the first are rejected in the same transaction.

use super::super::database::Fault;
use super::checksums::sum_of_number;
use super::deferred_open::Seen;
use super::manifest::Manifest;
use crate::store::state_dir::StateLock;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

/// The table with one row.
pub(super) const TABLE: &str = "
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;";

/// Returns the epoch of the last owner; 0 if there was none.
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

/// Makes this owner the current one. Rejected if the owner was fenced before, or if the state differs from the one
/// `seen`.
pub(super) fn take(
    connection: &mut Connection,
    state_lock: &StateLock,
    seen: Option<Seen>,
) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let standing = guard(&transaction, state_lock)?;
    if let Some(seen) = seen
        && Seen::of(&transaction, standing)? != seen
    {
        state_lock.fence(standing);
        let since = "another steadfast has taken the state since it was read";
        return Err(Fault::Refused(since.to_owned()));
    }
    let epoch = state_lock.next_epoch(standing);
    if epoch != standing {
        write(&transaction, epoch)?;
        Manifest::renew(&transaction)?;
        transaction.commit()?;
    }
    state_lock.took(epoch);
    Ok(())
}

/// Checks in each writing transaction that this owner may write. Returns the epoch in the database.
pub(super) fn guard(transaction: &Transaction<'_>, state_lock: &StateLock) -> Result<u64, Fault> {
    match current_epoch(transaction)? {
        epoch if state_lock.admits(epoch) => Ok(epoch),
        epoch => Err(Fault::Refused(state_lock.fence(epoch).to_string())),
    }
}

/// Writes the epoch.
pub(super) fn write(connection: &Connection, epoch: u64) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO lease (id, epoch, sum) VALUES (1, ?1, ?2)";
    let sum = sum_of_number(epoch).cast_signed();
    connection.prepare_cached(sql)?.execute(params![epoch.cast_signed(), sum])?;
    Ok(())
}
