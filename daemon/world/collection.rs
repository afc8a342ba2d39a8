//! The exports of all hosts as this host uses them. They vanish slowly: a lost host keeps its exports for a while, and
//! at most a tenth of a collection vanishes within an hour, unless an operator reloads.

use super::host_world::{HostWorld, Views, store_file};
use crate::config::CollectedExport;
use crate::world::follower::RangeView;
use crate::world::keys;
use crate::world::records::{ExportRecord, read_record, unix_seconds};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The name of the known exports in the state directory.
const FILE: &str = "world-exports.json";

/// The time in which at most a tenth of a collection vanishes, in seconds.
const HOUR: u64 = 3600;

/// An export that this host knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownExport {
    record: ExportRecord,
    /// The time since which the export is withdrawn, in seconds since 1970.
    #[serde(default)]
    withdrawn: Option<u64>,
}

/// The exports of all hosts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Collection {
    /// By host and identity.
    exports: BTreeMap<String, KnownExport>,
    /// The times at which exports of a kind have vanished, for the limit of an hour.
    /// The time since which an exporting host is lost.
    #[serde(default)]
    lost: BTreeMap<String, u64>,
    #[serde(default)]
    vanished: BTreeMap<String, Vec<u64>>,
    /// The time of the last look, for the next vanishing.
    #[serde(skip)]
    revision: u64,
    #[serde(skip)]
    is_begun: bool,
    /// The time after which exports of a lost host vanish, in seconds.
    #[serde(skip, default = "usual_gone_after")]
    gone_after: u64,
    /// True while withdrawn exports wait for the limit.
    #[serde(skip)]
    waits_until: Option<u64>,
}

/// Reads the known exports of the last session, for the first load of the graph.
#[must_use]
pub fn stored_exports(directory: &Path) -> Arc<[CollectedExport]> {
    Collection::read(directory).exports()
}

/// Returns the default of the setting `gone_after`: 7 days.
const fn usual_gone_after() -> u64 {
    7 * 24 * 3600
}

impl Collection {
    /// Reads the known exports of the last session.
    pub(super) fn read(directory: &Path) -> Self {
        let text = std::fs::read_to_string(directory.join(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Stores the known exports.
    pub(super) fn store(&self, directory: &Path) {
        store_file(directory, FILE, serde_json::to_string(self).unwrap_or_default());
    }

    /// Returns the exports for the graph.
    pub(super) fn exports(&self) -> Arc<[CollectedExport]> {
        let export = |(key, known): (&String, &KnownExport)| {
            // The host becomes a part of identities.
            let host = keys::decode_name(key.split_once('/')?.0)?;
            let host = keys::is_host_name(&host).then_some(host)?;
            Some(CollectedExport { host, record: known.record.clone() })
        };
        self.exports.iter().filter_map(export).collect()
    }

    /// Takes over the view of exports. Returns true if the exports for the graph have changed.
    pub(super) fn update(&mut self, host: &HostWorld, views: &Views) -> bool {
        let (seen, gone) = (views.exports.borrow().clone(), views.gone.borrow().clone());
        // A view that was never read says nothing; a stale one says nothing new.
        if seen.revision == 0 || seen.stale.is_some() {
            return false;
        }
        self.gone_after = host.settings().gone_after.unwrap_or_else(usual_gone_after);
        let now = unix_seconds();
        let is_due = self.waits_until.is_some_and(|until| until <= now);
        if self.is_begun && seen.revision == self.revision && !is_due && !host.takes_all() {
            return false;
        }
        (self.revision, self.is_begun) = (seen.revision, true);
        self.merge(&seen, &gone, now, host.take_all())
    }

    /// Returns true if this host knows exports of others, so that their hosts matter.
    pub(super) fn needs_hosts(&self) -> bool {
        !self.exports.is_empty()
    }

    /// Notes which exporting hosts are there: each host that runs has a key under its lease.
    pub(super) fn note_hosts(&mut self, hosts: &crate::world::Range) {
        let now = unix_seconds();
        let present: BTreeSet<&str> = hosts
            .entries
            .iter()
            .filter_map(|entry| entry.key.strip_prefix(keys::HOSTS)?.split('/').next())
            .collect();
        for key in self.exports.keys() {
            let host = key.split('/').next().unwrap_or_default();
            if present.contains(host) {
                self.lost.remove(host);
            } else {
                self.lost.entry(host.to_owned()).or_insert(now);
            }
        }
        // The next update judges again.
        self.is_begun = false;
    }

    /// Adds new exports at once, and removes withdrawn ones within the limit.
    fn merge(&mut self, seen: &RangeView, gone: &RangeView, now: u64, takes_all: bool) -> bool {
        let mut changed = false;
        let mut present = BTreeSet::new();
        for (full, entry) in &seen.entries {
            let Some(key) = full.strip_prefix(keys::EXPORTS) else { continue };
            let host = key.split_once('/').map(|(host, _)| host).unwrap_or_default();
            let is_lost = self.lost.get(host).is_some_and(|since| since + self.gone_after < now);
            if is_lost || gone.entries.contains_key(&format!("{}{host}", keys::GONE)) {
                continue;
            }
            let Some(record) = read_record::<ExportRecord>(entry) else { continue };
            present.insert(key.to_owned());
            let known = KnownExport { record, withdrawn: None };
            if self.exports.get(key) != Some(&known) {
                changed |= self.exports.get(key).is_none_or(|it| it.record != known.record);
                self.exports.insert(key.to_owned(), known);
            }
        }
        for (key, known) in &mut self.exports {
            if !present.contains(key) && known.withdrawn.is_none() {
                known.withdrawn = Some(now);
            }
        }
        changed | self.remove_withdrawn(now, takes_all)
    }

    /// Removes withdrawn exports: at most a tenth of each kind (at least one) within an hour.
    fn remove_withdrawn(&mut self, now: u64, takes_all: bool) -> bool {
        let mut kinds: BTreeMap<String, (usize, Vec<(u64, String)>)> = BTreeMap::new();
        for (key, known) in &self.exports {
            let (all, withdrawn) = kinds.entry(known.record.kind.clone()).or_default();
            *all += 1;
            withdrawn.extend(known.withdrawn.map(|since| (since, key.clone())));
        }
        self.waits_until = None;
        let mut changed = false;
        for (kind, (all, mut withdrawn)) in kinds {
            withdrawn.sort();
            let times = self.vanished.entry(kind).or_default();
            times.retain(|at| at + HOUR > now);
            // What has vanished within the hour counts as part of the collection.
            let limit = ((all + times.len()) / 10).max(1).saturating_sub(times.len());
            let number = if takes_all { withdrawn.len() } else { limit.min(withdrawn.len()) };
            if number < withdrawn.len() {
                let next = times.first().map_or(now + 60, |first| first + HOUR);
                self.waits_until = Some(self.waits_until.map_or(next, |before| before.min(next)));
            }
            for (_, key) in withdrawn.into_iter().take(number) {
                self.exports.remove(&key);
                times.push(now);
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Entry;
    use crate::world::records::{SCHEMA, write_record};

    fn view(hosts: std::ops::Range<u32>) -> RangeView {
        let mut view = RangeView { revision: 5, ..RangeView::default() };
        for host in hosts {
            let key = keys::export(&format!("h{host}"), "noop[x]");
            let record = ExportRecord {
                schema: SCHEMA,
                kind: "noop".to_owned(),
                module: String::new(),
                name: "x".to_owned(),
                fields: BTreeMap::new(),
            };
            let value = write_record(&record);
            let entry =
                Entry { key: key.clone(), value, create_revision: 1, mod_revision: 1, lease: None };
            view.entries.insert(key, entry);
        }
        view
    }

    /// A stale read, a wrong deployment or an emptied world removes at most a tenth in an hour.
    #[test]
    fn a_collection_shrinks_slowly() {
        let (mut collection, none) = (Collection::default(), RangeView::default());
        assert!(collection.merge(&view(0..30), &none, 1000, false));
        assert_eq!(collection.exports().len(), 30);
        assert!(!collection.merge(&view(0..30), &none, 1001, false), "nothing is new");
        assert!(collection.merge(&view(0..0), &none, 1002, false));
        assert_eq!(collection.exports().len(), 27);
        for now in [1003, 2000, 1001 + HOUR] {
            assert!(!collection.merge(&view(0..0), &none, now, false), "{now}");
        }
        assert_eq!(collection.waits_until, Some(1002 + HOUR));
        assert!(collection.merge(&view(0..0), &none, 1002 + HOUR, false));
        assert_eq!(collection.exports().len(), 25, "a tenth of 27");
        assert!(
            collection.merge(&view(0..25), &none, 1003 + HOUR, false)
                || collection.exports().len() >= 25
        );
        assert!(collection.merge(&view(0..0), &none, 1004 + HOUR, true), "an operator allows all");
        assert_eq!(collection.exports().len(), 0);
    }

    #[test]
    fn a_single_export_vanishes_and_returns_at_once() {
        let (mut collection, none) = (Collection::default(), RangeView::default());
        collection.merge(&view(0..3), &none, 1000, false);
        assert!(collection.merge(&view(1..3), &none, 1001, false));
        assert_eq!(collection.exports().len(), 2);
        assert!(collection.merge(&view(0..3), &none, 1002, false));
        assert_eq!(collection.exports().len(), 3);
    }

    /// `steadfast world forget HOST` withdraws all exports of the host.
    #[test]
    fn a_forgotten_host_exports_nothing() {
        let mut collection = Collection::default();
        let mut gone = RangeView::default();
        collection.merge(&view(0..1), &gone, 1000, false);
        let key = keys::tombstone("h0");
        let entry = Entry {
            key: key.clone(),
            value: vec![],
            create_revision: 1,
            mod_revision: 1,
            lease: None,
        };
        gone.entries.insert(key, entry);
        assert!(collection.merge(&view(0..1), &gone, 1001, false));
        assert!(collection.exports().is_empty());
    }
}
