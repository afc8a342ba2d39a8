//! The exports of all hosts as one host uses them. They vanish slowly: a lost host keeps its exports for a while, and
//! at most a tenth of a collection vanishes within an hour, unless an operator reloads. A collection is one selection
//! of the graph: a kind, and patterns of hosts. All times are of [`RunningTime`], which a step of the system clock does
//! not change.

use super::follower::RangeView;
use super::records::{ExportRecord, read_record};
use super::selector::CollectionSelector;
use super::{Range, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The time in which at most a tenth of a collection vanishes, in seconds.
const HOUR: u64 = 3600;

/// The time for which a vanished export is remembered, in seconds: a collection with `on_remove: delete` removes it.
const REMEMBERED: u64 = 7 * 24 * 3600;

/// The default of the setting `gone_after`: 7 days, in seconds.
pub const USUAL_GONE_AFTER: u64 = 7 * 24 * 3600;

/// The bytes of exports that one host may add: the exports beyond are left out.
const MOST_OF_HOST: usize = 1 << 20;

/// The bytes of exports of all hosts together.
const MOST_OF_ALL: usize = 64 << 20;

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
    /// The times at which exports of a collection have vanished, for the limit of an hour; by the label of the
    /// collection.
    vanished: BTreeMap<String, Vec<u64>>,
    /// The exports that have vanished lately, with the time of that.
    former: BTreeMap<String, (ExportRecord, u64)>,
    /// The clock of all these times.
    clock: RunningTime,
    /// The collections of the graph; none before the first graph.
    #[serde(skip)]
    selectors: Option<Arc<[CollectionSelector]>>,
    /// The revision of the last view that was merged, in any session: an older one is not believed.
    revision: u64,
    #[serde(skip)]
    is_begun: bool,
    /// The hosts with exports beyond the limits.
    #[serde(skip)]
    oversized: BTreeSet<String>,
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
        self.exports.iter().filter_map(|(key, known)| Some((host_of(key)?, &known.record)))
    }

    /// Returns the exports that have vanished within the last week, each with its host.
    pub fn former_exports(&self) -> impl Iterator<Item = (String, &ExportRecord)> {
        self.former.iter().filter_map(|(key, (record, _))| Some((host_of(key)?, record)))
    }

    /// Returns the hosts whose exports exceed the limits, so that some are left out.
    #[must_use]
    pub const fn oversized(&self) -> &BTreeSet<String> {
        &self.oversized
    }

    /// Takes over the collections of the graph, each of which shrinks slowly. Before the first graph nothing vanishes.
    pub fn set_selectors(&mut self, selectors: Option<Arc<[CollectionSelector]>>) {
        if self.selectors != selectors {
            self.selectors = selectors;
            // The next update judges again.
            self.is_begun = false;
        }
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
        // An emptied or restored world begins with a lower revision: only an operator lets exports vanish with it.
        if seen.revision < self.revision && !takes_all {
            return false;
        }
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
        let present: BTreeSet<&str> =
            hosts.entries.iter().filter_map(|entry| keys::running_host(&entry.key)).collect();
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
        let (mut of_hosts, mut of_all) = (BTreeMap::<&str, usize>::new(), 0);
        self.oversized.clear();
        for (full, entry) in &seen.entries {
            let Some(key) = full.strip_prefix(keys::EXPORTS) else { continue };
            let host = key.split_once('/').map(|(host, _)| host).unwrap_or_default();
            let of_host = of_hosts.entry(host).or_default();
            let (with_host, with_all) = (*of_host + entry.value.len(), of_all + entry.value.len());
            if with_host > MOST_OF_HOST || with_all > MOST_OF_ALL {
                self.oversized.insert(host.to_owned());
                continue;
            }
            (*of_host, of_all) = (with_host, with_all);
            let is_lost = self.lost.get(host).is_some_and(|since| since + gone_after < now);
            // What a host exports after it was forgotten counts: the host has returned.
            let tombstone = gone.entries.get(&format!("{}{host}", keys::GONE));
            let is_forgotten = tombstone.is_some_and(|it| entry.mod_revision < it.mod_revision);
            if is_lost || is_forgotten {
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

    /// Removes withdrawn exports: at most a tenth of each collection (at least one) within an hour. Exports that no
    /// collection selects are removed at once.
    fn remove_withdrawn(&mut self, now: u64, takes_all: bool) -> bool {
        let Some(selectors) = self.selectors.clone() else { return false };
        self.waits_until = None;
        self.former
            .retain(|key, (_, at)| *at + REMEMBERED > now && !self.exports.contains_key(key));
        for times in self.vanished.values_mut() {
            times.retain(|at| at + HOUR > now);
        }
        self.vanished.retain(|_, times| !times.is_empty());
        let withdrawn = self.exports.iter().filter_map(|(key, it)| Some((it.withdrawn?, key)));
        let mut withdrawn: Vec<(u64, String)> =
            withdrawn.map(|(since, key)| (since, key.clone())).collect();
        if withdrawn.is_empty() {
            return false;
        }
        withdrawn.sort();
        let mut rooms: Vec<(&CollectionSelector, usize)> =
            selectors.iter().map(|selector| (selector, self.room(selector))).collect();
        let mut changed = false;
        for (_, key) in withdrawn {
            let Some(known) = self.exports.get(&key) else { continue };
            let is_of = |(selector, _): &&mut (&CollectionSelector, usize)| {
                known.is_selected(&key, selector)
            };
            let of: Vec<_> = rooms.iter_mut().filter(is_of).collect();
            if let Some((full, _)) = of.iter().find(|(_, room)| !takes_all && *room == 0) {
                let times = self.vanished.get(&full.label());
                let next = times.and_then(|it| it.first()).map_or(now + 60, |it| it + HOUR);
                self.waits_until = Some(self.waits_until.map_or(next, |before| before.min(next)));
                continue;
            }
            for (selector, room) in of {
                *room = room.saturating_sub(1);
                self.vanished.entry(selector.label()).or_default().push(now);
            }
            if let Some(known) = self.exports.remove(&key) {
                self.former.insert(key, (known.record, now));
            }
            changed = true;
        }
        changed
    }

    /// Returns the number of exports of a collection that may vanish now. What has vanished within the hour counts as
    /// part of the collection.
    fn room(&self, selector: &CollectionSelector) -> usize {
        let all = self.exports.iter().filter(|(key, it)| it.is_selected(key, selector)).count();
        let times = self.vanished.get(&selector.label()).map_or(0, Vec::len);
        ((all + times) / 10).max(1).saturating_sub(times)
    }
}

/// Returns the host of an export; none if it cannot be a part of identities.
fn host_of(key: &str) -> Option<String> {
    let host = keys::decode_name(key.split_once('/')?.0)?;
    keys::is_host_name(&host).then_some(host)
}

impl KnownExport {
    /// Returns true if a collection selects the export with this key.
    fn is_selected(&self, key: &str, selector: &CollectionSelector) -> bool {
        let host = key.split_once('/').and_then(|(host, _)| keys::decode_name(host));
        host.is_some_and(|host| selector.selects(&host, &self.record.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Entry;
    use crate::world::records::{SCHEMA, write_record};

    const WEEK: u64 = USUAL_GONE_AFTER;

    /// Returns an empty store of exports, for collections of `noop` with these patterns of hosts.
    fn store(patterns: &[&str]) -> Collection {
        let selector = |it: &&str| CollectionSelector {
            kind: "noop".to_owned(),
            from: vec![(*it).to_owned()],
            splay: 0,
        };
        let mut collection = Collection::default();
        collection.set_selectors(Some(patterns.iter().map(selector).collect()));
        collection
    }

    /// The exports of a host beyond a MiB are left out, and those of other hosts stay.
    #[test]
    fn a_host_adds_a_bounded_number_of_bytes() {
        let mut large = view(1..3);
        let text = "x".repeat(90_000);
        for number in 0..20 {
            let key = keys::export("h1", &format!("noop[{number:02}]"));
            let record = ExportRecord {
                schema: SCHEMA,
                kind: "noop".to_owned(),
                module: String::new(),
                name: text.clone(),
                fields: BTreeMap::new(),
            };
            let value = write_record(&record);
            let (create_revision, mod_revision, lease) = (5, 5, None);
            let entry = Entry { key: key.clone(), value, create_revision, mod_revision, lease };
            large.entries.insert(key, entry);
        }
        let mut collection = store(&["*"]);
        let clocks = HostClocks { unix: 10, boot: "b".to_owned(), since_boot: 1 };
        assert!(collection.update((&large, &RangeView::default()), (&clocks, WEEK), false));
        let of = |name: &str| collection.exports().filter(|(host, _)| host == name).count();
        assert_eq!((of("h1"), of("h2")), (12, 1));
        assert_eq!(collection.oversized().iter().collect::<Vec<_>>(), ["h1"]);
    }

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

    /// A world that was emptied while this host was off has a lower revision: nothing vanishes without an operator.
    #[test]
    fn an_emptied_world_is_not_believed() {
        let mut collection = store(&["*"]);
        let clocks = HostClocks { unix: 10, boot: "b".to_owned(), since_boot: 1 };
        assert!(collection.update((&view(0..30), &RangeView::default()), (&clocks, WEEK), false));
        let text = serde_json::to_string(&collection).unwrap();
        let mut collection: Collection = serde_json::from_str(&text).unwrap();
        collection.set_selectors(store(&["*"]).selectors);
        let emptied = RangeView { revision: 1, ..RangeView::default() };
        assert!(!collection.update((&emptied, &RangeView::default()), (&clocks, WEEK), false));
        assert_eq!(collection.exports().count(), 30);
        assert!(collection.update((&emptied, &RangeView::default()), (&clocks, WEEK), true));
        assert_eq!(collection.exports().count(), 0, "an operator allows it");
    }

    /// A stale read, a wrong deployment or an emptied world removes at most a tenth in an hour.
    #[test]
    fn a_collection_shrinks_slowly() {
        let (mut collection, none) = (store(&["*"]), RangeView::default());
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
        let (mut collection, none) = (store(&["*"]), RangeView::default());
        collection.merge((&view(0..3), &none), (1000, WEEK), false);
        assert!(collection.merge((&view(1..3), &none), (1001, WEEK), false));
        assert_eq!(collection.exports().count(), 2);
        assert!(collection.merge((&view(0..3), &none), (1002, WEEK), false));
        assert_eq!(collection.exports().count(), 3);
    }

    /// A small collection beside a large one shrinks as slowly as a collection alone. Exports that nobody collects go
    /// at once.
    #[test]
    fn each_collection_has_a_limit_of_its_own() {
        // h1, h10 to h19: 11 hosts. h2, h20 to h29: 11 hosts. All: 30.
        let (mut collection, none) = (store(&["*", "h2*"]), RangeView::default());
        collection.merge((&view(0..30), &none), (1000, WEEK), false);
        let mut seen = view(0..30);
        for host in 20..24 {
            seen.entries.remove(&keys::export(&format!("h{host}"), "noop[x]"));
        }
        collection.merge((&seen, &none), (1001, WEEK), false);
        assert_eq!(collection.exports().count(), 29, "a tenth of the 11 of h2*, not of all");
        assert_eq!(collection.waits_until, Some(1001 + HOUR));
        collection.set_selectors(Some(Arc::new([])));
        collection.merge((&view(0..0), &none), (1002, WEEK), false);
        assert_eq!(collection.exports().count(), 0);
    }

    /// Before the graph is known, nobody knows what is collected.
    #[test]
    fn nothing_vanishes_before_the_first_graph() {
        let (mut collection, none) = (Collection::default(), RangeView::default());
        collection.merge((&view(0..3), &none), (1000, WEEK), false);
        assert!(!collection.merge((&view(0..0), &none), (1001, WEEK), false));
        assert_eq!(collection.exports().count(), 3);
    }

    /// `steadfast world forget HOST` withdraws all exports of the host, until the host exports again.
    #[test]
    fn a_forgotten_host_exports_nothing_until_it_returns() {
        let mut collection = store(&["*"]);
        let mut gone = RangeView::default();
        let mut seen = view(0..1);
        collection.merge((&seen, &gone), (1000, WEEK), false);
        let key = keys::tombstone("h0");
        let entry = Entry {
            key: key.clone(),
            value: vec![],
            create_revision: 7,
            mod_revision: 7,
            lease: None,
        };
        gone.entries.insert(key, entry);
        assert!(collection.merge((&seen, &gone), (1001, WEEK), false));
        assert!(collection.exports().next().is_none());
        seen.entries.values_mut().for_each(|it| it.mod_revision = 8);
        assert!(collection.merge((&seen, &gone), (1002, WEEK), false));
        assert_eq!(collection.exports().count(), 1);
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
