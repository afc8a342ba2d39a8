//! Values between resources: what each has sent, what each has received by its last good run, and who must hear of a change.
//!
//! A value is a snapshot: it never changes, another one takes its place. Of a secret that is not to be saved only a keyed hash
//! outlives the process; one that is to be is encrypted.

pub mod codec;
pub(super) mod flow;
pub(super) mod format;
pub(super) mod secret_rotation;
pub(super) mod source_changes;

use super::graph::registry::GraphRegistry;
use crate::store::StoredState;
use codec::{CopySource, Decoded, Field, ReceivedRecord, SentRecord};
use std::collections::HashMap;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::host::Supply;
use steadfast_resources::{
    BuiltResource, DeferredResource, Failure, Kept, KeyedHash, Origin, Received, ResolvedInput,
    Secret, Sent, StateKey,
};
use steadfast_resources::{CopyDigest, Host, SentValue};
use tokio_util::sync::CancellationToken;

/// All values of this daemon.
#[derive(Debug)]
pub(super) struct ValueStore {
    key: StateKey,
    /// Its randomness encrypts.
    host: Host,
    sent: HashMap<Arc<str>, SentRecord>,
    /// Whose secrets were kept in clear, by a program of before.
    in_clear: Vec<Arc<str>>,
    taken: HashMap<Arc<str>, ReceivedRecord>,
    /// Who receives of whom, in the running graph.
    receivers: HashMap<Arc<str>, Vec<VertexId>>,
}

/// What a resource sends, and as what it is kept.
#[derive(Debug)]
pub(super) struct OutgoingValues {
    snapshot: SentRecord,
    text: String,
}

/// What one run of a receiver is made of.
#[derive(Debug)]
pub(super) struct ReceiverInputs {
    recipe: Arc<DeferredResource>,
    courses: Vec<InputSource>,
    key: StateKey,
    /// What its last good run was made of.
    before: HashMap<String, Field>,
    /// Whether what was sent is what it was then, and no secret is among it: of a program that did not keep what made a slot, this is all
    /// that is known.
    is_as_before: bool,
    /// What the values are, by their hashes.
    pub(super) origins: KeyedHash,
}

#[derive(Debug)]
enum InputSource {
    Given(ResolvedInput),
    /// It is asked for when the run is made.
    Secret(Supply),
}

impl ValueStore {
    /// With what the store told back.
    pub(super) fn new(recalled: &StoredState, host: &Host) -> Self {
        let key = recalled.key.as_ref().map_or_else(|| one_time_key(host), |key| key.0);
        let (key, host) = (StateKey::new(key), host.clone());
        let (mut sent, mut taken, mut in_clear) = (HashMap::new(), HashMap::new(), Vec::new());
        // Without the key no hash says anything.
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
        Self { key, host, sent, in_clear, taken, receivers: HashMap::new() }
    }

    /// Whose secrets were found in clear: they are to be kept anew. Told once.
    pub(super) fn take_in_clear(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.in_clear)
    }

    /// As what it is kept that somebody has sent; none where nothing was.
    pub(super) fn text(&self, identity: &str) -> Result<Option<String>, Failure> {
        let snapshot = self.sent.get(identity);
        snapshot.map(|it| it.to_text(identity, &self.key, &self.host)).transpose()
    }

    /// Takes note of who receives of whom.
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

    /// What was sent and taken under one name is there under another too (B-18). Answers whether it is called otherwise there, and is to be
    /// kept so.
    pub(super) fn copy(&mut self, from: &Arc<str>, to: &Arc<str>, (old, new): (u64, u64)) -> bool {
        if let Some(taken) = self.taken.get(from).cloned() {
            self.taken.insert(Arc::clone(to), taken);
        }
        let Some(mut snapshot) = self.sent.get(from).cloned() else { return false };
        let is_same = snapshot.definition == old;
        if is_same {
            snapshot.definition = new;
        }
        // What is encrypted is so for its name.
        let is_other = is_same || snapshot.is_bound();
        self.sent.insert(Arc::clone(to), snapshot);
        is_other
    }

    /// What is made once is made once more.
    pub(super) fn unsend(&mut self, identity: &str) {
        self.sent.remove(identity);
    }

    pub(super) fn forget(&mut self, identity: &str) {
        self.sent.remove(identity);
        self.taken.remove(identity);
    }

    /// Whether this value has been sent.
    pub(super) fn has(&self, by: &str, key: &str) -> bool {
        self.sent.get(by).is_some_and(|snapshot| snapshot.values.contains_key(key))
    }

    /// What is kept of what a resource has sent under this definition.
    pub(super) fn stored_value(&self, identity: &str, definition: u64) -> Option<Kept> {
        let snapshot = self.sent.get(identity).filter(|s| s.definition == definition)?;
        let known = snapshot.values.values().all(|value| value.datum.is_some());
        Some(if known { Kept::Known } else { Kept::Sealed })
    }

    /// What a run of a receiver is made of, or what is missing.
    pub(super) fn meal(
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
                    let Some(value) = value else { return Err(missing(by, key)) };
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

    /// A hash of all values that a recipe takes.
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

    /// whether what a receiver's last good run was made of is something else than what it would be made of now.
    pub(super) fn is_outdated(&self, identity: &str, recipe: &DeferredResource) -> bool {
        let is_there = |origin: &Origin| match origin {
            Origin::Sent { by, key } => self.has(by, key),
            Origin::Secret(_) => true,
        };
        let taken = self.taken.get(identity);
        taken.is_some_and(|taken| taken.origins != self.fingerprint(recipe))
            && recipe.origins.iter().all(is_there)
    }

    /// Whether this is made of something else than its last good run was.
    pub(super) fn is_remade(&self, identity: &str, made: &BuiltResource) -> bool {
        let Some(taken) = self.taken.get(identity).filter(|taken| !taken.unseen) else {
            return false;
        };
        made.received
            .iter()
            .any(|it| taken.fields.get(&it.slot).is_none_or(|before| before.whole != it.whole))
    }

    /// Notes that who was cut off is taken as done, with what there is: of that nothing was seen yet but what others have sent. Answers what is to be
    /// kept.
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

    /// Whether this one is taken as done, and what with was not seen yet.
    pub(super) fn is_taken_as_done(&self, identity: &str) -> bool {
        self.taken.get(identity).is_some_and(|taken| taken.unseen)
    }

    /// Whether what this copies is something else than what its last good run has copied.
    pub(super) fn is_copied_anew(&self, identity: &str, copied: CopyDigest) -> bool {
        let before = self.taken.get(identity).and_then(|taken| taken.copied.as_ref());
        before.is_some_and(|before| before.content != self.original(copied).content)
    }

    /// The state of what its last good run has copied.
    pub(super) fn copied(&self, identity: &str) -> Option<u64> {
        Some(self.taken.get(identity)?.copied.as_ref()?.state)
    }

    fn original(&self, CopyDigest { state, content }: CopyDigest) -> CopySource {
        CopySource { state, content: self.key.seal(&content.to_le_bytes()) }
    }

    /// Notes what a good run was made of: what it has received, with the hash of that, and what it has copied, if that is another thing. Answers what
    /// is to be kept, if anything is.
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

    /// Whether anybody would hear of what a resource sends, or might one day take what it has sent before for what it sends now.
    pub(super) fn is_wanted(&self, identity: &str, is_kept: bool) -> bool {
        is_kept || self.receivers.contains_key(identity) || self.sent.contains_key(identity)
    }

    /// What a resource sends now, if it is another thing than before. Fails where it cannot be kept as it must be: nothing of it is then.
    pub(super) fn pack(
        &self,
        identity: &str,
        definition: u64,
        sent: Sent,
    ) -> Result<Option<OutgoingValues>, Failure> {
        let snapshot = SentRecord::new(definition, sent, &self.key);
        if self.sent.get(identity) == Some(&snapshot) {
            return Ok(None);
        }
        let text = snapshot.to_text(identity, &self.key, &self.host)?;
        Ok(Some(OutgoingValues { snapshot, text }))
    }

    /// Notes what a resource has sent. Answers what is to be kept and who must hear of it.
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

/// The senders that a recipe names.
pub(super) fn senders(recipe: &DeferredResource) -> impl Iterator<Item = &Arc<str>> {
    recipe.origins.iter().filter_map(|origin| match origin {
        Origin::Sent { by, .. } => Some(by),
        Origin::Secret(_) => None,
    })
}

/// The secrets that it takes by reference.
pub(super) fn secrets(recipe: &DeferredResource) -> impl Iterator<Item = &Supply> {
    recipe.origins.iter().filter_map(|origin| match origin {
        Origin::Secret(supply) => Some(supply),
        Origin::Sent { .. } => None,
    })
}

fn missing(by: &str, key: &str) -> Failure {
    Failure::new(format!("{by} has not sent {key} yet")).hint(
        "a resource sends values after a successful run; a run skipped by a guard sends nothing",
    )
}

fn too_long(by: &str, key: &str) -> Failure {
    Failure::new(format!("{by}: {key} exceeded 1 MiB and was not stored"))
        .hint("print less, or write to a file; the command is not run again for this")
}

/// For a process that keeps nothing.
fn one_time_key(host: &Host) -> [u8; 32] {
    let mut key = [0; 32];
    // Hashes that outlive no process need no more than to differ.
    if host.random(&mut key).is_err() {
        tracing::warn!("no random source: value hashes are made without a key");
    }
    key
}

impl ReceiverInputs {
    /// The resource, with its secrets as they are now.
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

    /// Whoever receives a value again, after a graph in which nobody did, must not be given the one from before. (Found by the
    /// simulation.)
    #[test]
    fn what_was_sent_once_is_kept_up_to_date() {
        let mut values = ValueStore::new(&StoredState::default(), &Host::default());
        let table = GraphRegistry::default();
        let sender: Arc<str> = "value[v]".into();
        assert!(!values.is_wanted(&sender, false), "nobody has ever received it");
        let sent = vec![("text", SentValue::Shown(Value::Text("old".to_owned())))];
        let parcel = values.pack(&sender, 1, sent).unwrap().unwrap();
        values.note_sent(&sender, parcel, &table);
        values.index(&table);
        assert!(values.is_wanted(&sender, false), "nobody receives it now");
        values.forget(&sender);
        assert!(!values.is_wanted(&sender, false), "it has left");
    }
}
