//! The collected exports of this host: read and stored in the state directory, and updated from the views of the world.

use super::host_world::{HostWorld, store_file};
use crate::config::CollectedExport;
use crate::store::retention_clock::{boot_id, since_boot};
use crate::world::collection::{Collection, HostClocks, USUAL_GONE_AFTER};
use crate::world::follower::RangeView;
use crate::world::records::{ExportRecord, unix_seconds};
use crate::world::selector::CollectionSelector;
use std::path::Path;
use std::sync::Arc;

/// The name of the known exports in the state directory.
const FILE: &str = "world-exports.json";

/// Reads the known exports of the last session, for the first load of the graph.
#[must_use]
pub fn stored_exports(directory: &Path) -> Arc<[CollectedExport]> {
    exports(&read(directory))
}

/// Reads the collection of the last session.
pub(super) fn read(directory: &Path) -> Collection {
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Stores a collection.
pub(super) fn store(collection: &Collection, directory: &Path) {
    store_file(directory, FILE, serde_json::to_string(collection).unwrap_or_default());
}

/// Returns the exports for the graph, and those that have vanished lately.
pub(super) fn exports(collection: &Collection) -> Arc<[CollectedExport]> {
    let export = |has_vanished| {
        move |(host, record): (String, &ExportRecord)| CollectedExport {
            host,
            record: record.clone(),
            has_vanished,
        }
    };
    let known = collection.exports().map(export(false));
    known.chain(collection.former_exports().map(export(true))).collect()
}

/// Updates a collection from the views of exports and of forgotten hosts, and from the selections of the graph;
/// `takes_all` lets all withdrawn exports vanish. Returns true if the known exports have changed.
pub(super) fn update(
    collection: &mut Collection,
    selectors: Option<Arc<[CollectionSelector]>>,
    (host, seen, gone): (&HostWorld, &RangeView, &RangeView),
    takes_all: bool,
) -> bool {
    collection.set_selectors(selectors);
    // A view that was never read says nothing; a stale one says nothing new.
    if !seen.is_believed() {
        return false;
    }
    let gone_after = host.settings().gone_after.unwrap_or(USUAL_GONE_AFTER);
    let before = collection.oversized().clone();
    let has_changed = collection.update((seen, gone), (&clocks(), gone_after), takes_all);
    if *collection.oversized() != before && !collection.oversized().is_empty() {
        let hosts: Vec<&str> = collection.oversized().iter().map(String::as_str).collect();
        let hosts = hosts.join(", ");
        tracing::warn!(event = "warning", %hosts, "exports beyond 1 MiB of one host are left out");
    }
    has_changed
}

/// Reads the clocks of this host.
pub(super) fn clocks() -> HostClocks {
    HostClocks { unix: unix_seconds(), boot: boot_id(), since_boot: since_boot().as_secs() }
}
