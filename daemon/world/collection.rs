//! The exports of all hosts as one host uses them. They vanish slowly: a lost host keeps its exports for a while, and
//! at most a tenth of a collection vanishes within an hour, unless an operator reloads. All times are of
//! [`RunningTime`], which a step of the system clock does not change.

use super::follower::RangeView;
use super::records::{ExportRecord, read_record};
use super::{Range, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The time in which at most a tenth of a collection vanishes, in seconds.
const HOUR: u64 = 3600;

/// The default of the setting `gone_after`: 7 days, in seconds.
pub const USUAL_GONE_AFTER: u64 = 7 * 24 * 3600;

/// An export that this host knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownExport {
    record: ExportRecord,
    /// The time since which the export is withdrawn, in seconds.
    #[serde(default)]
    withdrawn: Option<u64>,
}

/// The exports of all hosts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Collection {
    /// By host and identity.
    exports: BTreeMap<String, KnownExport>,
    /// The time since which an exporting host is lost.
    lost: BTreeMap<String, u64>,
    /// The times at which exports of a kind have vanished, for the limit of an hour.
    vanished: BTreeMap<String, Vec<u64>>,
    /// The clock of all these times.
    clock: RunningTime,
    /// The revision of the last view that was merged.
    #[serde(skip)]
    revision: u64,
    #[serde(skip)]
    is_begun: bool,
    /// The time at which the next withdrawn exports may vanish, if any wait for the limit.
    #[serde(skip)]
    waits_until: Option<u64>,
}

/// The time that passes while this host runs, in seconds. It starts at the system clock and does not follow its steps;
/// the time while the host is off does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunningTime {
    time: u64,
    boot: String,
    since_boot: u64,
}

/// The clocks of a host at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClocks {
    /// The system clock, in seconds since 1970.
    pub unix: u64,
    /// The identity of the boot.
    pub boot: String,
    /// The seconds since that boot, with all suspends.
    pub since_boot: u64,
}

impl RunningTime {
    /// Returns the running time at a moment. The first call starts it at the system clock.
    pub fn read(&mut self, clocks: &HostClocks) -> u64 {
        if self.time == 0 {
            self.time = clocks.unix;
        } else {
            let before = if self.boot == clocks.boot { self.since_boot } else { 0 };
            self.time += clocks.since_boot.saturating_sub(before);
        }
        self.boot.clone_from(&clocks.boot);
        self.since_boot = clocks.since_boot;
        self.time
    }
}

impl Collection {
    /// Returns the exports for the graph, each with its host.
    pub fn exports(&self) -> impl Iterator<Item = (String, &ExportRecord)> {
        self.exports.iter().filter_map(|(key, known)| {
            // The host becomes a part of identities.
            let host = keys::decode_name(key.split_once('/')?.0)?;
            keys::is_host_name(&host).then_some((host, &known.record))
        })
    }

    /// Takes over the views of exports and of forgotten hosts; `takes_all` lets everything that is withdrawn vanish at
    /// once. Exports of a host that is lost for `gone_after` seconds are withdrawn. Returns true if the exports for the
    /// graph have changed.
    pub fn update(
        &mut self,
        (seen, gone): (&RangeView, &RangeView),
        (clocks, gone_after): (&HostClocks, u64),
        takes_all: bool,
    ) -> bool {
        let now = self.clock.read(clocks);
        let is_due = self.waits_until.is_some_and(|until| until <= now);
        if self.is_begun && seen.revision == self.revision && !is_due && !takes_all {
            return false;
        }
        (self.revision, self.is_begun) = (seen.revision, true);
        self.merge((seen, gone), (now, gone_after), takes_all)
    }

    /// Returns true if this host knows exports of others, or has dropped those of a lost host, so that the hosts
    /// matter.
    #[must_use]
    pub fn needs_hosts(&self) -> bool {
        !self.exports.is_empty() || !self.lost.is_empty()
    }

    /// Notes which exporting hosts are there: each host that runs has a key under its lease.
    pub fn note_hosts(&mut self, hosts: &Range, clocks: &HostClocks) {
        let now = self.clock.read(clocks);
        let present: BTreeSet<&str> = hosts
            .entries
            .iter()
            .filter_map(|entry| entry.key.strip_prefix(keys::HOSTS)?.split('/').next())
            .collect();
        for key in self.exports.keys() {
            let host = key.split('/').next().unwrap_or_default();
            if !present.contains(host) {
                self.lost.entry(host.to_owned()).or_insert(now);
            }
        }
        // Also a host whose exports have all vanished returns.
        self.lost.retain(|host, _| !present.contains(host.as_str()));
        // The next update judges again.
        self.is_begun = false;
    }

    /// Adds new exports at once, and removes withdrawn ones within the limit.
    fn merge(
        &mut self,
        (seen, gone): (&RangeView, &RangeView),
        (now, gone_after): (u64, u64),
        takes_all: bool,
    ) -> bool {
        let mut changed = false;
        let mut present = BTreeSet::new();
        for (full, entry) in &seen.entries {
            let Some(key) = full.strip_prefix(keys::EXPORTS) else { continue };
            let host = key.split_once('/').map(|(host, _)| host).unwrap_or_default();
            let is_lost = self.lost.get(host).is_some_and(|since| since + gone_after < now);
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

    const WEEK: u64 = USUAL_GONE_AFTER;

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
        assert!(collection.merge((&view(0..30), &none), (1000, WEEK), false));
        assert_eq!(collection.exports().count(), 30);
        assert!(!collection.merge((&view(0..30), &none), (1001, WEEK), false), "nothing is new");
        assert!(collection.merge((&view(0..0), &none), (1002, WEEK), false));
        assert_eq!(collection.exports().count(), 27);
        for now in [1003, 2000, 1001 + HOUR] {
            assert!(!collection.merge((&view(0..0), &none), (now, WEEK), false), "{now}");
        }
        assert_eq!(collection.waits_until, Some(1002 + HOUR));
        assert!(collection.merge((&view(0..0), &none), (1002 + HOUR, WEEK), false));
        assert_eq!(collection.exports().count(), 25, "a tenth of 27");
        assert!(
            collection.merge((&view(0..25), &none), (1003 + HOUR, WEEK), false)
                || collection.exports().count() >= 25
        );
        assert!(
            collection.merge((&view(0..0), &none), (1004 + HOUR, WEEK), true),
            "an operator allows all"
        );
        assert_eq!(collection.exports().count(), 0);
    }

    #[test]
    fn a_single_export_vanishes_and_returns_at_once() {
        let (mut collection, none) = (Collection::default(), RangeView::default());
        collection.merge((&view(0..3), &none), (1000, WEEK), false);
        assert!(collection.merge((&view(1..3), &none), (1001, WEEK), false));
        assert_eq!(collection.exports().count(), 2);
        assert!(collection.merge((&view(0..3), &none), (1002, WEEK), false));
        assert_eq!(collection.exports().count(), 3);
    }

    /// `steadfast world forget HOST` withdraws all exports of the host.
    #[test]
    fn a_forgotten_host_exports_nothing() {
        let mut collection = Collection::default();
        let mut gone = RangeView::default();
        collection.merge((&view(0..1), &gone), (1000, WEEK), false);
        let key = keys::tombstone("h0");
        let entry = Entry {
            key: key.clone(),
            value: vec![],
            create_revision: 1,
            mod_revision: 1,
            lease: None,
        };
        gone.entries.insert(key, entry);
        assert!(collection.merge((&view(0..1), &gone), (1001, WEEK), false));
        assert!(collection.exports().next().is_none());
    }

    fn clocks(unix: u64, boot: &str, since_boot: u64) -> HostClocks {
        HostClocks { unix, boot: boot.to_owned(), since_boot }
    }

    /// Steps of the system clock neither speed up nor stop the running time.
    #[test]
    fn the_running_time_follows_no_step() {
        let mut clock = RunningTime::default();
        assert_eq!(clock.read(&clocks(1000, "a", 50)), 1000);
        assert_eq!(clock.read(&clocks(9_000_000, "a", 60)), 1010, "a step ahead");
        assert_eq!(clock.read(&clocks(3, "a", 90)), 1040, "a step back");
        assert_eq!(clock.read(&clocks(5000, "b", 20)), 1060, "another boot");
        let text = serde_json::to_string(&clock).unwrap();
        let mut stored: RunningTime = serde_json::from_str(&text).unwrap();
        assert_eq!(stored.read(&clocks(5000, "b", 25)), 1065, "another process");
    }
}
