//! The log of undos in progress: an undo that is interrupted is completed by the next one.

use super::database::Job;
use super::{History, HistoryError, Reader, UNDO, Undo};
use crate::store::database::Fault;
use rusqlite::{OptionalExtension as _, Transaction, params};

/// An undo in progress, or an interrupted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undoing {
    pub(super) resource: String,
    /// The number of the first change that is undone.
    pub(super) first: u64,
    /// The number of the last change at the begin of the undo.
    last: u64,
    /// The number of entries from `first` to `last`.
    entries: u64,
    pub(super) partial: bool,
}

impl Undoing {
    /// Records the undo as part of a transaction.
    pub(super) fn note(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let sql = "DELETE FROM undoing
            WHERE NOT EXISTS (SELECT 1 FROM entry WHERE entry.resource = undoing.resource)";
        transaction.prepare_cached(sql)?.execute(())?;
        let sql = "INSERT OR REPLACE INTO undoing VALUES (?1, ?2, ?3, ?4, ?5)";
        let Self { resource, first, last, entries, partial } = self;
        transaction
            .prepare_cached(sql)?
            .execute(params![resource, first, last, entries, partial])?;
        Ok(())
    }

    /// Deletes the record of an undo that has ended.
    pub(super) fn end(transaction: &Transaction<'_>, resource: &str) -> Result<(), Fault> {
        let sql = "DELETE FROM undoing WHERE resource = ?1";
        transaction.prepare_cached(sql)?.execute([resource])?;
        Ok(())
    }

    /// Moves the record to the new name of a resource.
    pub(super) fn rename(transaction: &Transaction<'_>, names: (&str, &str)) -> Result<(), Fault> {
        let sql = "UPDATE OR REPLACE undoing SET resource = ?2 WHERE resource = ?1";
        transaction.prepare_cached(sql)?.execute(names)?;
        Ok(())
    }
}

impl Reader {
    /// Returns true if the last undo of a resource was interrupted and only undos have changed the resource since. The
    /// next undo completes it.
    #[must_use]
    pub fn was_cut_off(&self, resource: &str) -> bool {
        self.cut_off(resource).is_ok_and(|undoing| undoing.is_some())
    }

    /// Returns the record of an interrupted undo. Repeating that undo is safe as long as all its entries exist.
    pub(super) fn cut_off(&self, resource: &str) -> Result<Option<Undoing>, HistoryError> {
        if !self.knows_undoing {
            return Ok(None);
        }
        let read = || -> rusqlite::Result<Option<Undoing>> {
            let sql = "SELECT first, last, entries, partial FROM undoing WHERE resource = ?1
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.resource = ?1
                    AND number > last AND cause <> ?2)";
            let found = self.connection.query_row(sql, [resource, UNDO], |row| {
                Ok(Undoing {
                    resource: resource.to_owned(),
                    first: row.get(0)?,
                    last: row.get(1)?,
                    entries: row.get(2)?,
                    partial: row.get(3)?,
                })
            });
            found.optional()
        };
        read().map_err(|error| self.refuse(&error))
    }

    /// Returns the number of the first change to undo, true if a partial undo is allowed, and true if the undo
    /// completes an interrupted one.
    pub(super) fn asked(&self, undo: &Undo) -> Result<(u64, bool, bool), HistoryError> {
        let resource = undo.resource.as_str();
        if let Some(number) = undo.to {
            return Ok((self.entry(resource, number)?.number, undo.partial, false));
        }
        let Some(before) = self.cut_off(resource)? else {
            return Ok((self.last_change(resource)?.run, undo.partial, false));
        };
        let (_, left) = self.span(resource, before.first, before.last)?;
        if left < before.entries && !undo.partial {
            return Err(HistoryError::Unknown(format!(
                "the last undo of {resource} was interrupted, and a part of its record is gone; \
                 --to N undoes change N and later ones"
            )));
        }
        Ok((before.first, before.partial || undo.partial, true))
    }

    /// Returns the last change of a resource between two numbers, and the number of changes.
    fn span(&self, resource: &str, first: u64, last: u64) -> Result<(u64, u64), HistoryError> {
        let sql = "SELECT coalesce(max(number), 0), count(*) FROM entry
            WHERE resource = ?1 AND number BETWEEN ?2 AND ?3";
        let found = self
            .connection
            .query_row(sql, params![resource, first, last], |row| Ok((row.get(0)?, row.get(1)?)));
        found.map_err(|error| self.refuse(&error))
    }

    /// Returns the run of an interrupted undo; 0 if that undo changed nothing.
    pub(super) fn half(&self, undoing: &Undoing) -> Result<u64, HistoryError> {
        let sql = "SELECT coalesce(min(run), 0) FROM entry WHERE resource = ?1 AND number > ?2";
        let params = params![undoing.resource, undoing.last];
        let found = self.connection.query_row(sql, params, |row| row.get(0));
        found.map_err(|error| self.refuse(&error))
    }

    /// Returns the record of an undo from a change on. The record of an interrupted undo stays as it was.
    pub(super) fn undoing(
        &self,
        undo: &Undo,
        (first, partial): (u64, bool),
    ) -> Result<Undoing, HistoryError> {
        let before = if undo.to.is_none() { self.cut_off(&undo.resource)? } else { None };
        if let Some(before) = before {
            return Ok(Undoing { partial, ..before });
        }
        let (last, entries) = self.span(&undo.resource, first, i64::MAX.unsigned_abs())?;
        Ok(Undoing { resource: undo.resource.clone(), first, last, entries, partial })
    }
}

impl History {
    /// Records an undo before its first step. A failure is only logged: it does not prevent the undo.
    pub(crate) fn begin_undo(&self, undoing: Undoing) {
        if self.limits.get().total > 0
            && let Err(why) = self.hand_in_and_wait(Job::Undoing(undoing))
        {
            self.warn(&why);
        }
    }

    /// Deletes the record of the undo of a resource.
    pub(crate) fn end_undo(&self, resource: &str) {
        if let Err(why) = self.hand_in_and_wait(Job::Undone(resource.to_owned())) {
            self.warn(&why);
        }
    }
}
