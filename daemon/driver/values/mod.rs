//! Values between resources (send/recv): sent values, values received by the last successful run, and receivers of a
//! change.
//!
//! Purpose: store sent values and pass them to their receivers. Invariants: a sent value is immutable, and a new one
//! replaces it; a secret without `saved: true` outlives the process only as a keyed hash; a saved one is stored
//! encrypted.
//!
//! Reading order: this file (the store of values), `codec.rs` (stored records), `format.rs` (their JSON text),
//! `flow.rs` (the exchange during runs), `source_changes.rs` (copies whose source changes), `secret_rotation.rs`
//! (secrets that change without a run).

pub mod codec;
pub(super) mod flow;
pub(super) mod format;
pub(super) mod secret_rotation;
pub(super) mod source_changes;

use super::graph::registry::GraphRegistry;
use crate::store::StoredState;
use codec::{CopySource, Decoded, Field, ReceivedRecord, SentRecord};
use secret_rotation::SecretRotation;
use std::collections::HashMap;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::host::Supply;
use steadfast_resources::{
    BuiltResource, DeferredResource, Failure, KeyedHash, Origin, Received, ResolvedInput, Secret,
    Sent, StateKey, ValueRetention,
};
use steadfast_resources::{CopyDigest, Host, SentValue};
use tokio_util::sync::CancellationToken;

/// The keys of the values that a probe sends.
const ANSWER_KEYS: [&str; 5] = ["output", "bool", "int", "float", "json"];

/// All sent and received values of this session.
#[derive(Debug)]
pub(super) struct ValueStore {
    key: StateKey,
    /// The source of randomness for encryption.
    host: Host,
    sent: HashMap<Arc<str>, SentRecord>,
    /// Senders whose secrets were stored in clear text by an older version.
    in_clear: Vec<Arc<str>>,
    /// The received values of each receiver, as hashes.
    taken: HashMap<Arc<str>, ReceivedRecord>,
    /// Receivers of each sender in the running graph.
    receivers: HashMap<Arc<str>, Vec<VertexId>>,
    /// The schedule of secret reads.
    pub(super) rotation: SecretRotation,
}

/// The values that a resource sends, and their stored text.
#[derive(Debug)]
pub(super) struct OutgoingValues {
    snapshot: SentRecord,
    text: String,
}

/// The inputs of one run of a receiver.
#[derive(Debug)]
pub(super) struct ReceiverInputs {
    recipe: Arc<DeferredResource>,
    courses: Vec<InputSource>,
    key: StateKey,
    /// The inputs of the last successful run, by slot.
    before: HashMap<String, Field>,
    /// True if the sent values are those of the last successful run and no secret is among the inputs. Records of older
    /// versions lack hashes of single inputs; for them this flag decides.
    is_as_before: bool,
    /// A keyed hash of all sent values among the inputs.
    pub(super) origins: KeyedHash,
}

/// The source of one input.
#[derive(Debug)]
enum InputSource {
    Given(ResolvedInput),
    /// A secret that is read at the start of the run.
    Secret(Supply),
}

impl ValueStore {
    /// Creates the store from the stored state.
    pub(super) fn new(recalled: &StoredState, host: &Host) -> Self {
        let key = recalled.key.as_ref().map_or_else(|| one_time_key(host), |key| key.0);
        let (key, host) = (StateKey::new(key), host.clone());
        let (mut sent, mut taken, mut in_clear) = (HashMap::new(), HashMap::new(), Vec::new());
        // Hashes are useless without the key that made them.
        for (identity, kept) in recalled.resources.iter().filter(|_| recalled.key.is_some()) {
            let name: Arc<str> = identity.as_str().into();
            let told = kept.sent.as_ref().and_then(|it| SentRecord::parse(&it.0, identity, &key));
            if let Some(Decoded { snapshot, in_clear: is_old }) = told {
                in_clear.extend(is_old.then(|| Arc::clone(&name)));
                sent.insert(Arc::clone(&name), snapshot);
            }
            let hashes = kept.taken.as_deref().and_then(ReceivedRecord::parse);
            taken.extend(hashes.map(|hashes| (name, hashes)));
        }
        let rotation = SecretRotation::default();
        Self { key, host, sent, in_clear, taken, receivers: HashMap::new(), rotation }
    }

    /// Takes the senders whose secrets were stored in clear text; the caller stores them again, encrypted.
    pub(super) fn take_in_clear(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.in_clear)
    }

    /// Returns the text to store for the values of a sender; `None` if nothing was sent.
    pub(super) fn text(&self, identity: &str) -> Result<Option<String>, Failure> {
        let snapshot = self.sent.get(identity);
        snapshot.map(|it| it.to_text(identity, &self.key, &self.host)).transpose()
    }

    /// Rebuilds the index of receivers from the running graph.
    pub(super) fn index(&mut self, table: &GraphRegistry) {
        self.receivers.clear();
        for id in table.receivers() {
            let recipe = table.get(id).and_then(|entry| entry.recipe.as_ref());
            for by in recipe.into_iter().flat_map(|recipe| senders(recipe)) {
                let receivers = self.receivers.entry(Arc::clone(by)).or_default();
                if receivers.last() != Some(&id) {
                    receivers.push(id);
                }
            }
        }
    }

    /// Copies the values of a renamed resource to its new name (B-18). Returns true if the record changes with the name
    /// and must be stored again.
    pub(super) fn copy(&mut self, from: &Arc<str>, to: &Arc<str>, (old, new): (u64, u64)) -> bool {
        if let Some(taken) = self.taken.get(from).cloned() {
            self.taken.insert(Arc::clone(to), taken);
        }
        let Some(mut snapshot) = self.sent.get(from).cloned() else { return false };
        let is_same = snapshot.definition == old;
        if is_same {
            snapshot.definition = new;
        }
        snapshot.is_unreached = false;
        // Encrypted values are bound to the name of the sender.
        let is_other = is_same || snapshot.is_bound();
        self.sent.insert(Arc::clone(to), snapshot);
        is_other
    }

    /// Drops the sent values, so that a value that is made only once is made again.
    pub(super) fn forget_sent(&mut self, identity: &str) {
        self.sent.remove(identity);
    }

    pub(super) fn forget(&mut self, identity: &str) {
        self.sent.remove(identity);
        self.taken.remove(identity);
    }

    /// Returns the stored values of a probe that were sent under this definition, also by an earlier session.
    pub(super) fn stored_answer(&self, identity: &str, definition: u64) -> Sent {
        let snapshot = self.sent.get(identity).filter(|it| it.definition == definition);
        let value = |key: &'static str| Some((key, snapshot?.values.get(key)?.datum.clone()?));
        ANSWER_KEYS.into_iter().filter_map(value).collect()
    }

    /// Returns true if this value has been sent.
    pub(super) fn has(&self, by: &str, key: &str) -> bool {
        self.sent.get(by).is_some_and(|snapshot| snapshot.values.contains_key(key))
    }

    /// Returns the form in which the values of a resource are stored, if they were sent under this definition.
    pub(super) fn stored_value(&self, identity: &str, definition: u64) -> Option<ValueRetention> {
        let snapshot = self.sent.get(identity).filter(|s| s.definition == definition)?;
        let known = snapshot.values.values().all(|value| value.datum.is_some());
        Some(if known { ValueRetention::Known } else { ValueRetention::Sealed })
    }

    /// Returns the inputs of a run of a receiver.
    ///
    /// # Errors
    ///
    /// A failure that names a value that was not sent yet, or that is too long.
    pub(super) fn receiver_inputs(
        &self,
        identity: &str,
        recipe: &Arc<DeferredResource>,
    ) -> Result<ReceiverInputs, Failure> {
        let mut courses = Vec::new();
        for origin in &recipe.origins {
            courses.push(match origin {
                Origin::Secret(supply) => InputSource::Secret(supply.clone()),
                Origin::Sent { by, key } => {
                    let snapshot = self.sent.get(by);
                    let value = snapshot.and_then(|snapshot| snapshot.values.get(key.as_ref()));
                    let Some(value) = value else { return Err(missing((by, key), snapshot)) };
                    if value.datum == Some(SentValue::TooLong) {
                        return Err(too_long(by, key));
                    }
                    let sealed = || ResolvedInput::Sealed(value.seal.clone());
                    InputSource::Given(
                        value.datum.clone().map_or_else(sealed, ResolvedInput::Value),
                    )
                }
            });
        }
        let origins = self.fingerprint(recipe);
        let last = self.taken.get(identity);
        let is_as_before = last.is_some_and(|taken| !taken.unseen && taken.origins == origins)
            && secrets(recipe).next().is_none();
        let before = last.map(|taken| taken.fields.clone()).unwrap_or_default();
        let (recipe, key) = (Arc::clone(recipe), self.key.clone());
        Ok(ReceiverInputs { recipe, courses, key, before, is_as_before, origins })
    }

    /// Returns a keyed hash of all sent values that a recipe uses.
    pub(super) fn fingerprint(&self, recipe: &DeferredResource) -> KeyedHash {
        let mut text = String::new();
        for origin in &recipe.origins {
            if let Origin::Sent { by, key } = origin {
                let snapshot = self.sent.get(by);
                let value = snapshot.and_then(|snapshot| snapshot.values.get(key.as_ref()));
                let seal = value.map(|value| value.seal.to_hex()).unwrap_or_default();
                text.push_str(&format!("{by}.{key}={seal}\n"));
            }
        }
        self.key.seal(text.as_bytes())
    }

    /// returns true if all inputs are available and differ from those of the last successful run.
    pub(super) fn is_outdated(&self, identity: &str, recipe: &DeferredResource) -> bool {
        let is_there = |origin: &Origin| match origin {
            Origin::Sent { by, key } => self.has(by, key),
            Origin::Secret(_) => true,
        };
        let taken = self.taken.get(identity);
        taken.is_some_and(|taken| taken.origins != self.fingerprint(recipe))
            && recipe.origins.iter().all(is_there)
    }

    /// Returns true if the built resource has other inputs than the last successful run.
    pub(super) fn is_remade(&self, identity: &str, made: &BuiltResource) -> bool {
        let Some(taken) = self.taken.get(identity).filter(|taken| !taken.unseen) else {
            return false;
        };
        made.received
            .iter()
            .any(|it| taken.fields.get(&it.slot).is_none_or(|before| before.whole != it.whole))
    }

    /// Records that an interrupted receiver counts as done with the values sent so far; its inputs are marked as
    /// unseen. Returns the text to store.
    pub(super) fn take_as_done(
        &mut self,
        identity: &Arc<str>,
        recipe: &DeferredResource,
    ) -> String {
        let taken = ReceivedRecord::unseen(self.fingerprint(recipe), self.taken.get(identity));
        let text = taken.to_text();
        self.taken.insert(Arc::clone(identity), taken);
        text
    }

    /// Returns true if the receiver counts as done with inputs that were not seen yet.
    pub(super) fn is_taken_as_done(&self, identity: &str) -> bool {
        self.taken.get(identity).is_some_and(|taken| taken.unseen)
    }

    /// Returns true if the source of a copy has other content than at the last successful run.
    pub(super) fn is_copied_anew(&self, identity: &str, copied: CopyDigest) -> bool {
        let before = self.taken.get(identity).and_then(|taken| taken.copied.as_ref());
        before.is_some_and(|before| before.content != self.original(copied).content)
    }

    /// Returns the state hash of the source that the last successful run copied.
    pub(super) fn copied(&self, identity: &str) -> Option<u64> {
        Some(self.taken.get(identity)?.copied.as_ref()?.state)
    }

    fn original(&self, CopyDigest { state, content }: CopyDigest) -> CopySource {
        CopySource { state, content: self.key.seal(&content.to_le_bytes()) }
    }

    /// Records the inputs of a successful run: received values with their hash, and the copied source. Returns the text
    /// to store, if the record has changed.
    pub(super) fn note_taken(
        &mut self,
        identity: &Arc<str>,
        received: Option<(KeyedHash, &BuiltResource)>,
        copied: Option<CopyDigest>,
    ) -> Option<String> {
        let field =
            |Received { whole, pieces, .. }: Received| Field { whole, pieces: Some(pieces) };
        let (origins, fields) = match received {
            Some((origins, made)) => {
                let fields = made.received.iter().cloned().map(|it| (it.slot.clone(), field(it)));
                (origins, fields.collect())
            }
            None => (self.key.seal(b""), HashMap::new()),
        };
        let before = self.taken.get(identity);
        let copied = copied.map(|copied| self.original(copied));
        let copied = copied.or_else(|| before.and_then(|before| before.copied.clone()));
        let taken = ReceivedRecord { origins, fields, copied, unseen: false };
        if before == Some(&taken) {
            return None;
        }
        let text = taken.to_text();
        self.taken.insert(Arc::clone(identity), taken);
        Some(text)
    }

    /// Returns true if the sent values of a resource must be recorded: for receivers, or because an old record would
    /// become outdated.
    pub(super) fn is_wanted(&self, identity: &str, is_kept: bool) -> bool {
        is_kept || self.receivers.contains_key(identity) || self.sent.contains_key(identity)
    }

    /// Prepares the sent values for storage; `None` if they have not changed. `is_once` marks values that are made only
    /// once: those that are not saved are made again after a crash before the first receiver.
    ///
    /// # Errors
    ///
    /// A failure if a secret cannot be encrypted; nothing is recorded then.
    pub(super) fn pack(
        &self,
        identity: &str,
        definition: u64,
        (sent, is_once): (Sent, bool),
    ) -> Result<Option<OutgoingValues>, Failure> {
        let mut snapshot = SentRecord::new(definition, sent, &self.key);
        snapshot.is_unreached = is_once && snapshot.has_unsaved();
        if self.sent.get(identity) == Some(&snapshot) {
            return Ok(None);
        }
        let text = snapshot.to_text(identity, &self.key, &self.host)?;
        Ok(Some(OutgoingValues { snapshot, text }))
    }

    /// Records the sent values. Returns the text to store, and the receivers of changed values.
    pub(super) fn note_sent(
        &mut self,
        identity: &Arc<str>,
        OutgoingValues { snapshot, text }: OutgoingValues,
        table: &GraphRegistry,
    ) -> (String, Vec<VertexId>) {
        let before = self.sent.get(identity);
        let differs = |key: &str| {
            let old = before.and_then(|before| before.values.get(key));
            old.map(|old| &old.seal) != snapshot.values.get(key).map(|new| &new.seal)
        };
        let is_new = |origin: &Origin| match origin {
            Origin::Sent { by, key } => by == identity && differs(key),
            Origin::Secret(_) => false,
        };
        let hears = |id: &VertexId| {
            let recipe = table.get(*id).and_then(|entry| entry.recipe.as_ref());
            recipe.is_some_and(|recipe| recipe.origins.iter().any(is_new))
        };
        let receivers = self.receivers.get(identity).into_iter().flatten();
        let receivers = receivers.copied().filter(hears).collect();
        self.sent.insert(Arc::clone(identity), snapshot);
        (text, receivers)
    }
}

/// Lists the senders that a recipe names.
pub(super) fn senders(recipe: &DeferredResource) -> impl Iterator<Item = &Arc<str>> {
    recipe.origins.iter().filter_map(|origin| match origin {
        Origin::Sent { by, .. } => Some(by),
        Origin::Secret(_) => None,
    })
}

/// Lists the secrets that a recipe takes by reference.
pub(super) fn secrets(recipe: &DeferredResource) -> impl Iterator<Item = &Supply> {
    recipe.origins.iter().filter_map(|origin| match origin {
        Origin::Secret(supply) => Some(supply),
        Origin::Sent { .. } => None,
    })
}

/// Describes a value that a sender has not sent, or has not sent in its last run.
fn missing((by, key): (&str, &str), snapshot: Option<&SentRecord>) -> Failure {
    if snapshot.is_some_and(|snapshot| !snapshot.values.is_empty()) {
        let hint = if key == "hash" {
            "a file that others cannot read, or larger than 1 GiB, sends no hash: receive another value"
        } else {
            "the last run of the sender had no such value: receive another one"
        };
        return Failure::new(format!("{by} sends no {key}")).hint(hint);
    }
    Failure::new(format!("{by} has not sent {key} yet")).hint(
        "a resource sends values after a successful run; a run skipped by a guard sends nothing",
    )
}

fn too_long(by: &str, key: &str) -> Failure {
    Failure::new(format!("{by}: {key} exceeded 1 MiB and was not stored"))
        .hint("print less, or write to a file; the command is not run again for this")
}

/// Returns a random key for a process that stores nothing.
fn one_time_key(host: &Host) -> [u8; 32] {
    let mut key = [0; 32];
    // Hashes that stay in this process need no secrecy.
    if host.random(&mut key).is_err() {
        tracing::warn!("no random source: value hashes are made without a key");
    }
    key
}

impl ReceiverInputs {
    /// Builds the resource with the present content of its secrets.
    ///
    /// # Errors
    ///
    /// A failure if a secret cannot be read, or if the resource cannot be built.
    pub(super) async fn make(
        self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<BuiltResource, Failure> {
        let mut given = Vec::new();
        for course in self.courses {
            given.push(match course {
                InputSource::Given(given) => given,
                InputSource::Secret(supply) => {
                    let secret: Secret = host.secret(&supply, cancel).await?;
                    ResolvedInput::Value(SentValue::Secret { secret, saved: false })
                }
            });
        }
        self.recipe.make(&given, &self.key, &|slot, pieces| {
            let before = self.before.get(slot)?;
            let is_same = match &before.pieces {
                Some(before) => before == pieces,
                None => self.is_as_before,
            };
            is_same.then(|| before.whole.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_resources::Value;

    /// Regression test from the simulation: a receiver must not get an outdated value after a graph without receivers.
    #[test]
    fn sent_values_stay_wanted_until_forgotten() {
        let mut values = ValueStore::new(&StoredState::default(), &Host::default());
        let table = GraphRegistry::default();
        let sender: Arc<str> = "value[v]".into();
        assert!(!values.is_wanted(&sender, false), "nobody has ever received it");
        let sent = vec![("text", SentValue::Shown(Value::Text("old".to_owned())))];
        let parcel = values.pack(&sender, 1, (sent, false)).unwrap().unwrap();
        values.note_sent(&sender, parcel, &table);
        values.index(&table);
        assert!(values.is_wanted(&sender, false), "nobody receives it now");
        values.forget(&sender);
        assert!(!values.is_wanted(&sender, false), "it has left");
    }
}
