//! Several resources in one: they are checked together and applied in order.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_values::{Invalid, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kinds::file::new_file;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{ExecutorKind, Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Something that must be there before a sequence writes anything.
pub(crate) trait Precondition: Debug + Send + Sync {
    /// Fails if it is missing. Called at the beginning of each apply.
    fn require<'a>(&'a self, host: &'a Host) -> Answer<'a, Result<(), Failure>>;
}

/// The declaration of a sequence that depends on the claims of other resources
/// ([`Footprint::spares_below`]).
pub(crate) trait Declaration: Debug + Send + Sync {
    /// Makes the sequence again for the paths that others claim; none if they change nothing.
    fn with_claims(&self, claimed: &[PathBuf]) -> Option<Sequence>;
}

/// A resource that consists of others, for example a file and the command that loads it.
///
/// The elements are applied in order, and each later one is checked again right before its apply, so it sees the
/// effects of the earlier ones. Elements that work on files run on threads, and the others on none: a slow command
/// occupies no thread.
#[derive(Debug)]
pub(crate) struct Sequence {
    elements: Vec<Arc<dyn Resource>>,
    removal: Option<Removal>,
    warnings: Vec<Invalid>,
    extra: Footprint,
    traits: Traits,
    sent: Sent,
    /// The values that elements read from the host, and the elements.
    read: Vec<(&'static [SendSpec], Arc<dyn Resource>)>,
    /// The elements that stand for the existence of the object.
    mains: Vec<usize>,
    /// The differences that a plan expects of an element while an earlier one is missing, by element.
    expected: Vec<(usize, Difference)>,
    precondition: Option<Arc<dyn Precondition>>,
    declaration: Option<Arc<dyn Declaration>>,
}

impl Sequence {
    /// Makes a sequence of elements.
    pub(crate) fn new(elements: Vec<Arc<dyn Resource>>) -> Self {
        let is_blocking = |it: &Arc<dyn Resource>| it.traits().executor == ExecutorKind::Thread;
        let executor = if elements.iter().all(is_blocking) {
            ExecutorKind::Thread
        } else {
            ExecutorKind::Command
        };
        // The elements run one after the other.
        let timeout = elements.iter().filter_map(|it| it.traits().timeout).reduce(|a, b| a + b);
        let failure_blocks = elements.iter().all(|it| it.traits().failure_blocks);
        let traits =
            Traits { executor, confined: true, timeout, failure_blocks, ..Traits::default() };
        let extra = Footprint { uses_only_files: true, ..Footprint::default() };
        let (warnings, sent, mains) = (Vec::new(), Sent::new(), vec![0]);
        let (read, expected) = (Vec::new(), Vec::new());
        Self {
            elements,
            removal: None,
            warnings,
            extra,
            traits,
            sent,
            read,
            mains,
            expected,
            precondition: None,
            declaration: None,
        }
    }

    /// Sets what must be there before anything is written.
    pub(crate) fn requiring(self, precondition: Option<Arc<dyn Precondition>>) -> Self {
        Self { precondition, ..self }
    }

    /// Sets the declaration, if the sequence depends on the claims of other resources.
    pub(crate) fn declared_by(self, declaration: Option<Arc<dyn Declaration>>) -> Self {
        Self { declaration, ..self }
    }

    /// Sets the difference that an element, counted from 0, will have after the apply of an earlier one. It is shown
    /// while the element cannot be checked before that.
    pub(crate) fn expecting(mut self, element: usize, aspect: &'static str, to: &str) -> Self {
        let (from, to) = (String::new(), to.to_owned());
        self.expected.push((element, Difference { aspect, from, to, diff: None }));
        self
    }

    /// Sets the content of the file that an element, counted from 0, will write after an earlier one has made its
    /// directory.
    pub(crate) fn expecting_file(mut self, element: usize, content: &str) -> Self {
        let differences = new_file(content.as_bytes()).into_iter();
        self.expected.extend(differences.map(|difference| (element, difference)));
        self
    }

    /// Sets the fields that remove the object.
    pub(crate) fn removed_by(self, removal: Option<Removal>) -> Self {
        Self { removal, ..self }
    }

    /// Adds values that an element reads from the host.
    pub(crate) fn reading(
        mut self,
        values: &'static [SendSpec],
        element: &Arc<dyn Resource>,
    ) -> Self {
        self.read.push((values, Arc::clone(element)));
        self
    }

    /// Adds warnings about the fields.
    pub(crate) fn with_warnings(self, warnings: Vec<Invalid>) -> Self {
        Self { warnings, ..self }
    }

    /// Adds claims, needs or watches that no element has.
    pub(crate) fn with_extra(self, extra: Footprint) -> Self {
        Self { extra: Footprint { uses_only_files: true, ..extra }, ..self }
    }

    /// Adds a declared value that other resources can receive, beside those of the elements.
    pub(crate) fn sending(self, key: &'static str, value: impl Into<String>) -> Self {
        let value = SentValue::Shown(Value::Text(value.into()));
        let sent = self.sent.into_iter().chain([(key, value)]).collect();
        Self { sent, ..self }
    }

    /// Sets the elements, counted from 0, that must all be created for the object to count as created; by default the
    /// first. An object of which a part existed before is adopted, and is not removed with its resource.
    pub(crate) fn created_by(self, mains: Vec<usize>) -> Self {
        Self { mains, ..self }
    }

    async fn check_element(
        &self,
        element: &Arc<dyn Resource>,
        host: &Host,
        ask: CheckRequest,
    ) -> CheckResult {
        if !self.moves_to_thread(element) {
            return element.check(host, ask).await;
        }
        let (element, host) = (Arc::clone(element), host.clone());
        let handle = tokio::runtime::Handle::current();
        let work = move || handle.block_on(async { element.check(&host, ask).await });
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(why) => CheckResult::Unknown(Failure::new(format!("the check ended: {why}"))),
        }
    }

    async fn apply_element(
        &self,
        element: &Arc<dyn Resource>,
        (host, permit): (&Host, &Permit),
        change: Change,
    ) -> Outcome {
        if !self.moves_to_thread(element) {
            return element.apply(host, permit, change).await;
        }
        let (element, host, permit) = (Arc::clone(element), host.clone(), permit.for_thread());
        let handle = tokio::runtime::Handle::current();
        let work = move || handle.block_on(async { element.apply(&host, &permit, change).await });
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome,
            Err(why) => {
                let failure = Failure::new(format!("the apply ended: {why}"));
                Outcome::Failed { failure, touched: true }
            }
        }
    }

    /// Returns true if the element blocks and the sequence must not. In a simulated host and in an overlay, which
    /// belong to a thread, everything stays on that thread.
    fn moves_to_thread(&self, element: &Arc<dyn Resource>) -> bool {
        self.traits.executor == ExecutorKind::Command
            && element.traits().executor == ExecutorKind::Thread
            && !crate::host::is_bound_to_thread()
    }

    async fn make_so(&self, host: &Host, permit: &Permit, change: Change) -> Outcome {
        let asked = change.premise.downcast::<CheckRequest>().ok();
        let ask = asked.map(|ask| *ask).unwrap_or_default();
        let mut done = Vec::new();
        if let Some(precondition) = &self.precondition
            && let Err(failure) = precondition.require(host).await
        {
            return Outcome::Failed { failure, touched: false };
        }
        for element in &self.elements {
            if permit.check().is_err() {
                return Outcome::Interrupted;
            }
            // A refresh of an element that was just changed is already satisfied by its change.
            let outcome = match self.check_element(element, host, ask.clone()).await {
                CheckResult::Same => continue,
                CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
                CheckResult::Differs(change) => {
                    self.apply_element(element, (host, permit), change).await
                }
            };
            match outcome {
                Outcome::Unchanged => {}
                Outcome::Changed(notes) => done.extend(notes),
                Outcome::Failed { failure, touched } => {
                    return Outcome::Failed { failure, touched: touched || !done.is_empty() };
                }
                Outcome::Interrupted => return Outcome::Interrupted,
            }
        }
        if done.is_empty() { Outcome::Unchanged } else { Outcome::Changed(done) }
    }

    async fn look(&self, host: &Host, ask: CheckRequest) -> CheckResult {
        let mut all: Vec<Change> = Vec::new();
        let mut expected: Vec<Difference> = Vec::new();
        let (mut made, mut has_any) = (0, false);
        for (number, element) in self.elements.iter().enumerate() {
            match self.check_element(element, host, ask.clone()).await {
                CheckResult::Same => {}
                // An earlier element that differs may be the cause, and its apply the cure.
                CheckResult::Unknown(_) if has_any => {
                    let own = self.expected.iter().filter(|(element, _)| *element == number);
                    expected.extend(own.map(|(_, difference)| difference.clone()));
                }
                CheckResult::Unknown(failure) => return CheckResult::Unknown(failure),
                CheckResult::Differs(change) => {
                    made += usize::from(self.mains.contains(&number) && change.creates);
                    has_any = true;
                    all.push(change);
                }
            }
        }
        if all.is_empty() {
            return CheckResult::Same;
        }
        let premise_digest = all.iter().fold(0_u64, |premise_digest, change| {
            premise_digest.rotate_left(7) ^ change.premise_digest
        });
        let (destructive, replaces) =
            (all.iter().any(|it| it.destructive), all.iter().any(|it| it.replaces));
        let differences: Vec<Difference> =
            all.into_iter().flat_map(|change| change.differences).chain(expected).collect();
        let ask = CheckRequest { cancel: CancellationToken::new(), ..ask };
        CheckResult::Differs(Change {
            differences,
            destructive,
            premise_digest,
            creates: made > 0 && made == self.mains.len(),
            replaces,
            premise: Box::new(ask),
        })
    }
}

impl Resource for Sequence {
    fn footprint(&self) -> Footprint {
        let mut all = self.extra.clone();
        for element in &self.elements {
            let own = element.footprint();
            all = all.and(Footprint { removal: None, grouping: None, ..own });
        }
        all.warnings.extend(self.warnings.iter().cloned());
        let uses_only_files = all.uses_only_files && self.traits.executor == ExecutorKind::Thread;
        Footprint { removal: self.removal.clone(), uses_only_files, ..all }
    }

    fn traits(&self) -> Traits {
        self.traits
    }

    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        let sequence = self.declaration.as_ref()?.with_claims(&claimed)?;
        Some(Arc::new(sequence))
    }

    fn sends(&self) -> Sent {
        let own = self.sent.iter().cloned();
        self.elements.iter().flat_map(|element| element.sends()).chain(own).collect()
    }

    fn sends_key(&self, key: &str) -> bool {
        let is_read = |(values, element): &(&'static [SendSpec], Arc<dyn Resource>)| {
            values.iter().any(|value| value.key == key) && element.sends_key(key)
        };
        self.read.is_empty()
            || self.read.iter().any(is_read)
            || self.sent.iter().any(|(own, _)| *own == key)
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        if self.read.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let mut all = self.sends();
            for (values, element) in &self.read {
                let Some(read) = element.read_sent(host, cancel) else { continue };
                let is_named = |key: &str| values.iter().any(|value| value.key == key);
                all.extend(read.await?.into_iter().filter(|(key, _)| is_named(key)));
            }
            Ok(all)
        }))
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(self.look(host, ask))
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.make_so(host, permit, change))
    }
}
