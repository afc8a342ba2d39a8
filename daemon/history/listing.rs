//! Lists of recorded changes: by resources, by time and by number.

use super::entry::Stored;
use super::{Entry, HistoryError, Listed, PRODUCED, Reader};
use rusqlite::params;
use std::collections::BTreeSet;

/// The selection of entries.
#[derive(Clone, Debug, Default)]
pub struct Selected {
    /// Only changes of these resources; `None` for all.
    pub resources: Option<BTreeSet<String>>,
    /// Only entries with this number or a higher one.
    pub from: u64,
    /// Only changes at or after this time, in milliseconds since 1970.
    pub since: u64,
    /// The maximum number of entries; the last ones are listed.
    pub limit: Option<usize>,
}

impl Reader {
    /// Returns the selected changes, the oldest first. Unreadable entries are listed as such.
    ///
    /// # Errors
    /// [`HistoryError`] if the database cannot be read.
    pub fn select(&self, wanted: &Selected) -> Result<Vec<Listed>, HistoryError> {
        let columns = &self.columns;
        let sql = format!(
            "SELECT {columns} FROM entry WHERE number >= ?1 AND at >= ?2 ORDER BY number DESC"
        );
        let limit = wanted.limit.unwrap_or(usize::MAX);
        let read = || -> rusqlite::Result<Vec<Listed>> {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query(params![wanted.from, wanted.since])?;
            let mut listed = Vec::new();
            while listed.len() < limit
                && let Some(row) = rows.next()?
            {
                match Stored::read(row, &self.key)? {
                    Some(stored) if wanted.selects(&stored.resource) => {
                        listed.push(Listed::Entry(Box::new(stored.into())));
                    }
                    None if wanted.selects(&row.get::<_, String>("resource")?) => {
                        listed.push(Listed::Unreadable(row.get("number")?));
                    }
                    Some(_) | None => {}
                }
            }
            listed.reverse();
            Ok(listed)
        };
        read().map_err(|error| self.refuse(&error))
    }

    /// Returns the names of all resources with recorded changes, sorted.
    ///
    /// # Errors
    /// [`HistoryError`] if the database cannot be read.
    pub fn names(&self) -> Result<Vec<String>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut names =
                self.connection.prepare("SELECT DISTINCT resource FROM entry ORDER BY resource")?;
            names.query_map((), |row| row.get(0))?.collect()
        };
        read().map_err(|error| self.refuse(&error))
    }

    /// Returns what the last run of a resource has produced, such as the output of a command; `None` without a record.
    ///
    /// # Errors
    /// [`HistoryError`] if the database cannot be read.
    pub fn last_produced(&self, resource: &str) -> Result<Option<Entry>, HistoryError> {
        let resources = Some(BTreeSet::from([resource.to_owned()]));
        let listed = self.select(&Selected { resources, limit: Some(1), ..Selected::default() })?;
        let last = listed.into_iter().next_back().and_then(Listed::entry);
        Ok(last.filter(|entry| entry.what == PRODUCED))
    }
}

impl Selected {
    fn selects(&self, resource: &str) -> bool {
        self.resources.as_ref().is_none_or(|names| names.contains(resource))
    }
}
