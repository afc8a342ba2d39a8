//! The exports that the graph loader knows. A change of a collection with `splay` reaches it after a delay that differs
//! between hosts, so that services do not restart everywhere at once.
//!
//! The first exports of a session are offered at once, and so is everything with `steadfast reload --yes`.

use crate::config::CollectedExport;
use crate::world::selector::CollectionSelector;
use crate::world::splay::host_delay;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The host, module, kind and name of an export.
type Key = (String, String, String, String);

/// The exports that the graph loader knows, and the changes that wait.
#[derive(Debug, Default)]
pub(in crate::workers) struct OfferedExports {
    offered: BTreeMap<Key, CollectedExport>,
    /// The changes that wait.
    waiting: BTreeMap<Key, WaitingChange>,
    /// The collections of the last update: a changed splay counts for the changes that wait.
    selectors: Vec<CollectionSelector>,
    /// True if the graph may have been read before the last exports were offered.
    is_unread: bool,
    /// True if a view of the world was offered since the start of the daemon.
    has_begun: bool,
    /// True if a view of the world was offered since the start of the worker.
    has_session_view: bool,
}

/// A change that waits.
#[derive(Clone, Copy, Debug)]
struct WaitingChange {
    since: Instant,
    /// The time at which the change is offered.
    due: Instant,
}

/// Begins a session of the worker with the offered exports, which outlive it: its first view is compared with them.
/// Changes that wait go on to wait.
pub(super) async fn begin_session(of: &Mutex<OfferedExports>) -> MutexGuard<'_, OfferedExports> {
    let mut offered = of.lock().await;
    offered.has_session_view = false;
    offered
}

impl OfferedExports {
    /// Begins with the exports that the graph loader has known since the start of the daemon.
    pub(in crate::workers) fn new(stored: &[CollectedExport]) -> Self {
        Self { offered: by_key(stored), ..Self::default() }
    }

    /// Returns the time at which the next waiting change is offered.
    fn next(&self) -> Option<Instant> {
        self.waiting.values().map(|change| change.due).min()
    }

    /// Returns true if an update is needed although no export has changed: a waiting change is due, a collection waits
    /// for another time, or the exports are known for the first time in this session of the worker.
    pub(super) fn needs_update(&self, is_known: bool, selectors: &[CollectionSelector]) -> bool {
        let is_due = self.next().is_some_and(|at| at <= Instant::now());
        let waits_anew = !self.waiting.is_empty() && *self.selectors != *selectors;
        is_due || waits_anew || (is_known && !self.has_session_view)
    }

    /// Waits until a waiting change is due; for ever if none waits.
    pub(super) async fn due(&self) {
        match self.next() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Returns true if a view of the world was offered since the start of the worker.
    pub(super) const fn has_session_view(&self) -> bool {
        self.has_session_view
    }

    /// Returns true once if the graph must be read again for the last offered exports. Before the first graph the
    /// answer waits: a read that has begun may know the exports of before.
    pub(super) fn take_unread(&mut self, selectors: Option<&[CollectionSelector]>) -> bool {
        let Some(selectors) = selectors else { return false };
        std::mem::replace(&mut self.is_unread, false) && !selectors.is_empty()
    }

    /// Returns the number of waiting changes.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the exports to offer now, given all known ones; none if no change is due. `is_known` is true if they are
    /// those of a view of the world, and not only those of the last session. `all_at_once` ends every delay.
    pub(super) fn update(
        &mut self,
        (known, is_known): (&[CollectedExport], bool),
        (selectors, host): (&[CollectionSelector], &str),
        all_at_once: bool,
    ) -> Option<Arc<[CollectedExport]>> {
        let now = Instant::now();
        let known = by_key(known);
        let is_first = !self.has_begun;
        self.has_begun |= is_known;
        self.has_session_view |= is_known;
        let keys = self.offered.keys().chain(known.keys());
        let changed = keys.filter(|key| self.offered.get(*key) != known.get(*key));
        let mut waiting = BTreeMap::new();
        let mut has_due = false;
        for key in changed {
            let since = self.waiting.get(key).map_or(now, |change| change.since);
            let due = since + host_delay(host, splay_of(key, selectors));
            if is_first || all_at_once || due <= now {
                has_due = true;
            } else {
                waiting.insert(key.clone(), WaitingChange { since, due });
            }
        }
        self.waiting = waiting;
        self.selectors = selectors.to_vec();
        if !has_due {
            return None;
        }
        self.is_unread = true;
        let before = std::mem::take(&mut self.offered);
        let is_waiting = |key: &Key| self.waiting.contains_key(key);
        self.offered = known.into_iter().filter(|(key, _)| !is_waiting(key)).collect();
        self.offered.extend(before.into_iter().filter(|(key, _)| is_waiting(key)));
        Some(self.offered.values().cloned().collect())
    }
}

/// Returns the longest splay of the collections that select an export.
fn splay_of((host, _, kind, _): &Key, selectors: &[CollectionSelector]) -> u64 {
    let of = selectors.iter().filter(|selector| selector.selects(host, kind));
    of.map(|selector| selector.splay).max().unwrap_or_default()
}

fn by_key(exports: &[CollectedExport]) -> BTreeMap<Key, CollectedExport> {
    let key = |export: &CollectedExport| {
        let record = &export.record;
        (export.host.clone(), record.module.clone(), record.kind.clone(), record.name.clone())
    };
    exports.iter().map(|export| (key(export), export.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::records::{ExportRecord, ExportedField, SCHEMA};
    use std::time::Duration;

    fn export(host: &str, kind: &str, text: &str) -> CollectedExport {
        let fields = BTreeMap::from([("content".to_owned(), ExportedField::Text(text.to_owned()))]);
        let (module, name) = (String::new(), "x".to_owned());
        let record = ExportRecord { schema: SCHEMA, kind: kind.to_owned(), module, name, fields };
        CollectedExport { host: host.to_owned(), record, has_vanished: false }
    }

    fn selectors() -> Vec<CollectionSelector> {
        let of = |kind: &str, splay| CollectionSelector {
            kind: kind.to_owned(),
            from: vec!["*".to_owned()],
            splay,
        };
        vec![of("line", 300), of("file", 0)]
    }

    fn texts(offered: Option<Arc<[CollectedExport]>>) -> Option<Vec<String>> {
        let text = |export: &CollectedExport| match export.record.fields.get("content") {
            Some(ExportedField::Text(text)) => format!("{} {text}", export.record.kind),
            other => panic!("{other:?}"),
        };
        offered.map(|it| it.iter().map(text).collect())
    }

    /// A change of a collection with a splay waits; one without passes it, and takes nothing of it along.
    #[tokio::test(start_paused = true)]
    async fn changes_wait_for_the_splay() {
        let selectors = selectors();
        let of = (selectors.as_slice(), "web1");
        let mut offered = OfferedExports::default();
        let first = [export("a", "line", "1"), export("a", "file", "1")];
        let all = Some(vec!["file 1".to_owned(), "line 1".to_owned()]);
        assert_eq!(
            texts(offered.update((&first, true), of, false)),
            all,
            "the first ones do not wait"
        );
        let second = [export("a", "line", "2"), export("a", "file", "1")];
        assert_eq!(texts(offered.update((&second, true), of, false)), None);
        let due = offered.next().expect("a change waits");
        assert_eq!(due, Instant::now() + host_delay("web1", 300));
        let third = [export("a", "line", "2"), export("a", "file", "2")];
        let mixed = Some(vec!["file 2".to_owned(), "line 1".to_owned()]);
        assert_eq!(texts(offered.update((&third, true), of, false)), mixed);
        assert_eq!(offered.next(), Some(due), "a later change does not begin the delay again");
        tokio::time::advance(Duration::from_mins(5)).await;
        let all = Some(vec!["file 2".to_owned(), "line 2".to_owned()]);
        assert_eq!(texts(offered.update((&third, true), of, false)), all);
        assert_eq!(offered.next(), None);
    }

    /// The first exports of a session are those of its first view, also if nothing has changed since the last session;
    /// a changed splay counts for a change that waits.
    #[tokio::test(start_paused = true)]
    async fn a_session_begins_with_its_first_view() {
        let selectors = selectors();
        let of = (selectors.as_slice(), "web1");
        let first = [export("a", "line", "1")];
        let mut offered = OfferedExports::new(&first);
        assert!(!offered.needs_update(false, &selectors), "nothing is known yet");
        assert!(offered.needs_update(true, &selectors));
        assert_eq!(texts(offered.update((&first, true), of, false)), None);
        assert!(!offered.needs_update(true, &selectors));
        let second = [export("a", "line", "2")];
        assert_eq!(texts(offered.update((&second, true), of, false)), None, "the change waits");
        let none: Vec<_> =
            selectors.iter().map(|it| CollectionSelector { splay: 0, ..it.clone() }).collect();
        assert!(offered.needs_update(true, &none));
        let changed = Some(vec!["line 2".to_owned()]);
        assert_eq!(texts(offered.update((&second, true), (&none, "web1"), false)), changed);
    }

    /// An update before the first view of the world, such as that of a reload by an operator, does not count as the
    /// first one: the exports of the first view do not wait.
    #[tokio::test(start_paused = true)]
    async fn an_update_without_a_view_is_no_first_one() {
        let selectors = selectors();
        let of = (selectors.as_slice(), "web1");
        let mut offered = OfferedExports::default();
        assert_eq!(texts(offered.update((&[], false), of, true)), None);
        assert!(offered.needs_update(true, &selectors));
        let first = [export("a", "line", "1")];
        let all = Some(vec!["line 1".to_owned()]);
        assert_eq!(texts(offered.update((&first, true), of, false)), all);
    }

    /// A worker that starts again goes on with the changes that wait: they are offered at their time.
    #[tokio::test(start_paused = true)]
    async fn a_waiting_change_survives_the_worker() {
        let selectors = selectors();
        let of = (selectors.as_slice(), "web1");
        let mut offered = OfferedExports::default();
        offered.update((&[export("a", "line", "1")], true), of, false);
        let second = [export("a", "line", "2")];
        offered.update((&second, true), of, false);
        let due = offered.next().expect("a change waits");
        let offered = Mutex::new(offered);
        let mut offered = begin_session(&offered).await;
        assert!(!offered.needs_update(false, &selectors), "nothing is known yet");
        assert!(offered.needs_update(true, &selectors));
        assert_eq!(texts(offered.update((&second, true), of, false)), None);
        assert_eq!(offered.next(), Some(due));
        tokio::time::advance(Duration::from_mins(5)).await;
        let all = Some(vec!["line 2".to_owned()]);
        assert_eq!(texts(offered.update((&second, true), of, false)), all);
    }

    /// Exports that are offered while the first graph is read are not lost: the graph is read once more.
    #[tokio::test(start_paused = true)]
    async fn exports_during_the_first_read_are_not_lost() {
        let mut offered = OfferedExports::default();
        assert!(
            offered.update((&[export("a", "line", "1")], true), (&[], "web1"), false).is_some()
        );
        assert!(!offered.take_unread(None), "the first graph is being read");
        assert!(offered.take_unread(Some(&selectors())));
        assert!(!offered.take_unread(Some(&selectors())), "once");
    }

    /// A change that is taken back while it waits is none.
    #[tokio::test(start_paused = true)]
    async fn a_change_that_is_taken_back_is_forgotten() {
        let selectors = selectors();
        let of = (selectors.as_slice(), "web1");
        let mut offered = OfferedExports::default();
        let first = [export("a", "line", "1")];
        offered.update((&first, true), of, false);
        assert_eq!(texts(offered.update((&[], true), of, false)), None, "a withdrawal waits too");
        assert_eq!(texts(offered.update((&first, true), of, false)), None);
        assert_eq!(offered.next(), None);
        assert_eq!(
            texts(offered.update((&[], true), of, true)),
            Some(vec![]),
            "an operator ends it"
        );
    }
}
