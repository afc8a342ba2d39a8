//! The world as the kinds of this host see it: the values of the last reading, and writes.

use super::connection::{host_name, open_world};
use crate::config::WorldSettings;
use crate::metrics::WorldValues;
use crate::world::follower::{RangeView, follow_range};
use crate::world::records::{KvRecord, RequestId, SCHEMA, read_record, unix_seconds, write_record};
use crate::world::{Entry, World, WorldError, boot_time, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steadfast_resources::host::world::{NumberedPermit, SharedWorld, WorldKey, WorldValue};
use steadfast_resources::{Answer, Failure};
use tokio::sync::{Notify, watch};

/// The time that a read waits for the first view of the world.
const FIRST: Duration = Duration::from_secs(3);

/// The name of the last known values in the state directory.
const CACHE: &str = "world-values.json";

/// The ranges that a host follows.
pub(super) struct Views {
    pub(super) strings: watch::Receiver<RangeView>,
    pub(super) values: watch::Receiver<RangeView>,
    pub(super) exports: watch::Receiver<RangeView>,
    pub(super) sema: watch::Receiver<RangeView>,
    pub(super) roll: watch::Receiver<RangeView>,
    pub(super) gone: watch::Receiver<RangeView>,
    pub(super) want: watch::Receiver<RangeView>,
}

impl Views {
    fn all(&mut self) -> [&mut watch::Receiver<RangeView>; 7] {
        [
            &mut self.strings,
            &mut self.values,
            &mut self.exports,
            &mut self.sema,
            &mut self.roll,
            &mut self.gone,
            &mut self.want,
        ]
    }
}

/// Waits until any view has changed.
pub(super) async fn any_changed(views: &mut Views) {
    let changes = views.all().map(|view| Box::pin(async move { drop(view.changed().await) }));
    futures_util::future::select_all(changes).await;
}

/// The known values, by key.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    /// The name of this host at the last reading.
    host: String,
    values: BTreeMap<String, String>,
    #[serde(skip)]
    has_view: bool,
    /// The revision of each range, by prefix.
    #[serde(skip)]
    revisions: BTreeMap<&'static str, u64>,
}

impl Known {
    /// Returns the revision up to which the range of a key is known.
    fn revision_of(&self, full: &str) -> u64 {
        let of_range = self.revisions.iter().find(|(prefix, _)| full.starts_with(*prefix));
        of_range.map_or(0, |(_, revision)| *revision)
    }
}

/// The rejection of a requested bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) request: RequestId,
    pub(super) reason: String,
    /// True if the request is not tried again.
    pub(super) is_final: bool,
}

/// The connection of this host to the world.
pub(in crate::workers) struct HostWorld {
    settings: WorldSettings,
    state_directory: PathBuf,
    host: String,
    known: Mutex<Known>,
    news: Notify,
    world: Mutex<Option<Arc<dyn World>>>,
    is_used: AtomicBool,
    use_begins: Notify,
    wanted: watch::Sender<BTreeSet<NumberedPermit>>,
    stale: Mutex<Option<(String, u64)>>,
    /// The rejection of the last request.
    rejected: Mutex<Option<Rejection>>,
    sequence: Mutex<(u64, String)>,
    /// The time since boot up to which the lease is safe, in milliseconds.
    lease_safe_until: AtomicU64,
    /// True if an operator allows a collection to shrink at once.
    takes_all: AtomicBool,
}

impl std::fmt::Debug for HostWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostWorld").field("host", &self.host).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostWorld {
    /// Makes the connection of a host. Without settings the embedded world is opened at its first use.
    pub(in crate::workers) fn new(settings: Option<WorldSettings>, state_directory: &Path) -> Self {
        let is_configured = settings.is_some();
        let settings = settings.unwrap_or_default();
        let host = host_name(&settings);
        let text = std::fs::read_to_string(state_directory.join(CACHE)).unwrap_or_default();
        let known: Known = serde_json::from_str(&text).unwrap_or_default();
        let known = if known.host == host { known } else { Known::default() };
        Self {
            settings,
            state_directory: state_directory.to_owned(),
            host,
            known: Mutex::new(known),
            news: Notify::new(),
            world: Mutex::default(),
            is_used: AtomicBool::new(is_configured),
            use_begins: Notify::new(),
            wanted: watch::Sender::default(),
            stale: Mutex::default(),
            rejected: Mutex::default(),
            sequence: Mutex::default(),
            lease_safe_until: AtomicU64::new(0),
            takes_all: AtomicBool::new(false),
        }
    }

    /// Returns the name of this host.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn settings(&self) -> &WorldSettings {
        &self.settings
    }

    /// Notes that something uses the world: the worker begins.
    pub(in crate::workers) fn begin_use(&self) {
        if !self.is_used.swap(true, Ordering::SeqCst) {
            self.use_begins.notify_waiters();
        }
    }

    /// Allows the collections to shrink at once: an operator has asked for it.
    pub(in crate::workers) fn allow_all(&self) {
        self.takes_all.store(true, Ordering::SeqCst);
        self.wanted.send_modify(|_| {});
    }

    /// Takes the permission of [`Self::allow_all`] once.
    pub(super) fn take_all(&self) -> bool {
        self.takes_all.swap(false, Ordering::SeqCst)
    }

    /// Waits until the world is configured or used.
    pub(super) async fn used(&self) {
        loop {
            let begins = self.use_begins.notified();
            if self.is_used.load(Ordering::SeqCst) {
                return;
            }
            begins.await;
        }
    }

    /// Opens the world.
    pub(super) async fn connect(&self) -> Result<Arc<dyn World>, WorldError> {
        let (settings, directory) = (self.settings.clone(), self.state_directory.clone());
        let opened = tokio::task::spawn_blocking(move || open_world(&settings, &directory)).await;
        let world = opened.map_err(|error| WorldError::Unavailable(error.to_string()))??;
        *lock(&self.world) = Some(Arc::clone(&world));
        Ok(world)
    }

    /// Follows the ranges that this host needs.
    pub(super) fn follow(&self, world: &Arc<dyn World>) -> Views {
        let view = |prefix: &str| {
            let (sender, mut receiver) = watch::channel(RangeView::default());
            let range = (prefix.to_owned(), seed_of(&self.host));
            tokio::spawn(follow_range(Arc::clone(world), range, sender));
            receiver.mark_changed();
            receiver
        };
        Views {
            strings: view(keys::STRINGS),
            values: view(keys::VALUES),
            exports: view(keys::EXPORTS),
            sema: view(keys::SEMA),
            roll: view(keys::ROLL),
            gone: view(keys::GONE),
            want: view(&keys::want(&self.host)),
        }
    }

    /// Takes over the views of values and own exports, and returns the keys that have changed.
    pub(super) fn changed_keys(&self, views: &mut Views) -> Vec<WorldKey> {
        let own_exports = format!("{}{}/", keys::EXPORTS, keys::encode_name(&self.host));
        let mut values = BTreeMap::new();
        let mut revisions = BTreeMap::new();
        let mut has_view = true;
        let ranges = [
            (keys::STRINGS, &mut views.strings),
            (keys::VALUES, &mut views.values),
            (keys::EXPORTS, &mut views.exports),
        ];
        for (prefix, view) in ranges {
            let seen = view.borrow_and_update();
            has_view &= seen.revision > 0;
            revisions.insert(prefix, seen.revision);
            let is_own =
                |key: &str| !key.starts_with(keys::EXPORTS) || key.starts_with(&own_exports);
            for (key, entry) in seen.entries.iter().filter(|(key, _)| is_own(key)) {
                values.extend(value_of(entry).map(|value| (key.clone(), value)));
            }
        }
        if !has_view {
            return Vec::new();
        }
        let mut known = lock(&self.known);
        let mut changed = BTreeSet::new();
        for key in known.values.keys().chain(values.keys()) {
            if known.values.get(key) != values.get(key) {
                changed.extend(world_key(key));
            }
        }
        *known = Known { host: self.host.clone(), values, has_view, revisions };
        drop(known);
        self.news.notify_waiters();
        changed.into_iter().collect()
    }

    /// Stores the known values: a start without the world uses them.
    pub(super) fn store_values(&self, directory: &Path) {
        let text = serde_json::to_string(&*lock(&self.known)).unwrap_or_default();
        store_file(directory, CACHE, text);
    }

    /// Returns the reason and the beginning of staleness.
    pub(super) fn stale(&self, views: &Views) -> Option<(String, u64)> {
        let all = [&views.strings, &views.values, &views.exports, &views.sema, &views.roll];
        let stale = all.into_iter().find_map(|view| view.borrow().stale.clone());
        lock(&self.stale).clone_from(&stale);
        stale
    }

    /// Returns the connection as metrics show it; `None` if this host does not use a world.
    pub(in crate::workers) fn metrics(&self) -> Option<WorldValues> {
        if !self.is_used.load(Ordering::SeqCst) {
            return None;
        }
        let since = lock(&self.stale).as_ref().map(|(_, since)| *since);
        let connected = since.is_none() && lock(&self.world).is_some();
        let stale = since.map_or(0, |since| unix_seconds().saturating_sub(since));
        Some(WorldValues { connected, stale: Duration::from_secs(stale) })
    }

    /// Describes the problem of the world, if there is one: the values are stale, or a bundle was rejected.
    pub(in crate::workers) fn problem(&self) -> Option<String> {
        let stale = lock(&self.stale).clone().map(|(why, since)| {
            let age = unix_seconds().saturating_sub(since);
            format!("stale for {age} s, the last values stay in use: {why}")
        });
        let rejected =
            self.rejected().map(|it| format!("the requested bundle was rejected: {}", it.reason));
        let all: Vec<String> = stale.into_iter().chain(rejected).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns the permits that this host wants, with later changes.
    pub(super) fn wanted(&self) -> watch::Receiver<BTreeSet<NumberedPermit>> {
        self.wanted.subscribe()
    }

    /// Gives all permits of semaphores back: a new driver begins without any. The slots of rolls stay until the driver
    /// has looked.
    pub(in crate::workers) fn reset_permits(&self) {
        self.wanted.send_if_modified(|wanted| {
            let before = wanted.len();
            wanted.retain(|one| one.permit.resource.is_none());
            wanted.len() < before
        });
    }

    pub(super) fn set_rejected(&self, rejection: Option<Rejection>) {
        *lock(&self.rejected) = rejection;
    }

    pub(super) fn rejected(&self) -> Option<Rejection> {
        lock(&self.rejected).clone()
    }

    /// Notes the bundle that runs.
    pub(super) fn set_sequence(&self, sequence: u64, digest: String) {
        *lock(&self.sequence) = (sequence, digest);
    }

    pub(super) fn sequence(&self) -> (u64, String) {
        lock(&self.sequence).clone()
    }

    fn known_value(&self, key: &WorldKey) -> WorldValue {
        let known = lock(&self.known);
        let own = known.values.get(&full_key(&self.host, key)).cloned();
        let by_host = match key {
            WorldKey::Mapped(key) => {
                let suffix = keys::encode_name(key);
                let of_host = |(full, value): (&String, &String)| {
                    let (host, own) = full.strip_prefix(keys::VALUES)?.split_once('/')?;
                    (own == suffix).then_some(())?;
                    Some((keys::decode_name(host)?, value.clone()))
                };
                known.values.iter().filter_map(of_host).collect()
            }
            WorldKey::Shared(_) | WorldKey::Export(_) => Vec::new(),
        };
        WorldValue { own, by_host }
    }

    /// Waits until the values of a revision are known, or for a while.
    async fn until_known(&self, is_known: impl Fn(&Known) -> bool) -> bool {
        let waits = async {
            loop {
                let news = self.news.notified();
                if is_known(&lock(&self.known)) {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(FIRST, waits).await.is_ok()
    }
}

/// Returns a number that differs between hosts (FNV-1a of the name).
fn seed_of(host: &str) -> u64 {
    host.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Held while a file of the state directory is written.
static STORING: Mutex<()> = Mutex::new(());

/// Writes a file of the state directory on another thread, whole or not at all.
pub(super) fn store_file(directory: &Path, name: &str, text: String) {
    let (path, new) = (directory.join(name), directory.join(format!("{name}.new")));
    let write = move || std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    tokio::task::spawn_blocking(move || {
        // Two writers of one file would rename each other's new file.
        let _alone = STORING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write() {
            tracing::warn!(event = "warning", %error, "the values of the world were not stored");
        }
    });
}

/// Returns the full key of a key of the world for a host.
pub(super) fn full_key(host: &str, key: &WorldKey) -> String {
    match key {
        WorldKey::Shared(key) => keys::shared_value(key),
        WorldKey::Mapped(key) => keys::host_value(host, key),
        WorldKey::Export(identity) => keys::export(host, identity),
    }
}

/// Writes the value of a key, or deletes the key; returns the revision.
pub(super) async fn write_key(
    world: &dyn World,
    (full, key): (&str, &WorldKey),
    value: Option<&str>,
) -> Result<u64, WorldError> {
    match (value, key) {
        (None, _) => world.delete(full).await,
        (Some(text), WorldKey::Export(_)) => world.put(full, text.into(), None).await,
        (Some(text), WorldKey::Shared(_) | WorldKey::Mapped(_)) => {
            let record = KvRecord { schema: SCHEMA, value: text.to_owned() };
            world.put(full, write_record(&record), None).await
        }
    }
}

/// Returns the value of an entry: the text of a `kv`, or the record of an export as it is.
pub(super) fn value_of(entry: &Entry) -> Option<String> {
    if entry.key.starts_with(keys::EXPORTS) {
        return String::from_utf8(entry.value.clone()).ok();
    }
    if let Some(record) = read_record::<KvRecord>(entry) {
        return Some(record.value);
    }
    // A folder has plain texts, without the last line break. A record of a newer program is no text.
    let text = std::str::from_utf8(&entry.value).ok()?;
    let json = serde_json::from_str::<serde_json::Value>(text).ok();
    let text = Some(text).filter(|_| json.is_none_or(|it| it.get("schema").is_none()))?;
    Some(text.strip_suffix('\n').unwrap_or(text).to_owned())
}

/// Returns the key of the world for a full key.
fn world_key(full: &str) -> Option<WorldKey> {
    if let Some(key) = full.strip_prefix(keys::STRINGS) {
        return keys::decode_name(key).map(WorldKey::Shared);
    }
    if let Some(rest) = full.strip_prefix(keys::VALUES) {
        return keys::decode_name(rest.split_once('/')?.1).map(WorldKey::Mapped);
    }
    let rest = full.strip_prefix(keys::EXPORTS)?;
    keys::decode_name(rest.split_once('/')?.1).map(WorldKey::Export)
}

impl HostWorld {
    /// Sets the time since boot up to which the lease of this host is safe.
    pub(super) fn set_lease_safe_until(&self, safe_until: Duration) {
        let milliseconds = u64::try_from(safe_until.as_millis()).unwrap_or(u64::MAX);
        self.lease_safe_until.store(milliseconds, Ordering::SeqCst);
    }
}

impl SharedWorld for HostWorld {
    fn has_safe_lease(&self) -> bool {
        let safe_until = Duration::from_millis(self.lease_safe_until.load(Ordering::SeqCst));
        boot_time() < safe_until
    }

    fn read_value<'a>(&'a self, key: &'a WorldKey) -> Answer<'a, Result<WorldValue, Failure>> {
        Box::pin(async move {
            self.begin_use();
            if !self.until_known(|known| known.has_view).await && lock(&self.known).host.is_empty()
            {
                let why = lock(&self.stale).clone().map(|(why, _)| why).unwrap_or_default();
                let what = format!("the world has not answered yet: {why}");
                let what = what.trim_end_matches([':', ' ']).to_owned();
                let hint = "see `steadfast workers` and the setting `world`";
                return Err(Failure::new(what).hint(hint).passing());
            }
            Ok(self.known_value(key))
        })
    }

    fn write_value<'a>(
        &'a self,
        key: &'a WorldKey,
        value: Option<&'a str>,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.begin_use();
            let world = lock(&self.world).clone();
            let Some(world) = world else {
                return Err(Failure::new("the world is not connected yet").passing());
            };
            let full = full_key(&self.host, key);
            let done = write_key(world.as_ref(), (&full, key), value).await;
            match done {
                Ok(revision) => {
                    // The next check should see the own write.
                    let wanted = value.map(str::to_owned);
                    let is_seen = |known: &Known| {
                        known.revision_of(&full) >= revision
                            || known.values.get(&full) == wanted.as_ref()
                    };
                    self.until_known(is_seen).await;
                    Ok(())
                }
                Err(error @ WorldError::Unavailable(_)) => {
                    Err(Failure::new(error.to_string()).passing())
                }
                Err(error) => Err(Failure::new(error.to_string())
                    .hint("the role of this host allows its own keys; see docs/guide/many-hosts.md")
                    .passing()),
            }
        })
    }

    fn want_permits(&self, wanted: Vec<NumberedPermit>) {
        self.begin_use();
        let wanted: BTreeSet<NumberedPermit> = wanted.into_iter().collect();
        self.wanted.send_if_modified(|before| {
            let is_new = *before != wanted;
            *before = wanted;
            is_new
        });
    }
}
