//! Named values of an object, compared with the declared ones, written together and verified afterwards.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::parts::on_thread;
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::resource::{ExecutorKind, Resource, Traits};
use crate::secrets::hidden_difference::hide_if;
use crate::values::sent_values::Sent;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A write that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteFailure {
    pub(crate) failure: Failure,
    /// False only where it is proven that nothing was changed.
    pub(crate) touched: bool,
}

impl WriteFailure {
    /// Makes a failure before any change.
    pub(crate) fn untouched(failure: Failure) -> Self {
        Self { failure, touched: false }
    }

    /// Makes a failure after a possible change.
    pub(crate) fn touched(failure: Failure) -> Self {
        Self { failure, touched: true }
    }

    /// Marks the failure as one after a change, if `touched` is true.
    pub(crate) fn after(self, touched: bool) -> Self {
        Self { touched: self.touched || touched, ..self }
    }
}

/// An object with named values (aspects), for example a user with shell and home directory.
///
/// [`Managed`] makes a resource of it: it compares, shows differences, records the values for history and undo,
/// writes, and reads again to verify the result.
pub(crate) trait ValueSet: Debug + Send + Sync {
    /// Returns the declared aspects in a stable order; `None` for an aspect that must be absent.
    fn wanted(&self) -> FieldValues;

    /// Reads the declared aspects, written as in [`ValueSet::wanted`]; further aspects are allowed.
    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>>;

    /// Changes the aspects that differ, named in `differing`.
    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>>;

    /// Returns everything that the resource declares about itself.
    fn footprint(&self) -> Footprint;

    /// Returns the traits that the engine needs.
    fn traits(&self) -> Traits {
        Traits::default()
    }

    /// Returns true if the found value satisfies the declared one.
    fn is_same(&self, _aspect: &str, found: &str, wanted: &str) -> bool {
        found == wanted
    }

    /// Returns the aspects with secret values, which are never shown or recorded.
    fn secrets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the aspect that stands for the existence of the object: the object is created if this aspect was
    /// absent, and destroyed if it shall be absent.
    fn existence(&self) -> Option<&'static str> {
        None
    }

    /// Returns the aspects whose former states are recorded otherwise (files): their values are not recorded for
    /// history and undo.
    fn recorded_otherwise(&self) -> &'static [&'static str] {
        &[]
    }

    /// Completes the values before a change for the history, which may need more than a comparison does.
    fn complete_record(&self, _before: &mut FieldValues) {}

    /// Returns a copy that leaves alone these paths, sorted, which other resources claim
    /// ([`Resource::with_claims`]).
    fn with_claims(&self, _claimed: Vec<PathBuf>) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the sent values, from the values of the last check or apply.
    fn sent(&self, _found: &FieldValues) -> Sent {
        Sent::new()
    }

    /// Reacts to a refresh that is owed while nothing differs; by default there is no reaction. The text names the
    /// reaction for the log.
    fn refresh<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
    ) -> Option<Answer<'a, Result<String, WriteFailure>>> {
        None
    }

    /// Returns true if a refresh has a reaction.
    fn reacts_to_refresh(&self) -> bool {
        false
    }
}

/// A resource made of a [`ValueSet`].
#[derive(Debug)]
pub(crate) struct Managed<V> {
    set: V,
    /// The values of the last check or apply, for sending.
    found: Mutex<FieldValues>,
}

/// The premise of a change: the found values, and whether only a refresh is owed.
#[derive(Debug)]
struct Premise {
    found: FieldValues,
    refresh: bool,
}

impl<V: ValueSet> Managed<V> {
    pub(crate) fn new(set: V) -> Self {
        Self { set, found: Mutex::default() }
    }

    pub(crate) fn set(&self) -> &V {
        &self.set
    }

    fn value_of<'v>(values: &'v FieldValues, aspect: &str) -> Option<&'v str> {
        values.iter().find(|(name, _)| *name == aspect).and_then(|(_, value)| value.as_deref())
    }

    /// Returns the aspects that differ.
    fn differing(&self, found: &FieldValues) -> Vec<&'static str> {
        let wanted = self.set.wanted();
        let differs = wanted.iter().filter(|(aspect, wanted)| {
            match (Self::value_of(found, aspect), wanted.as_deref()) {
                (None, None) => false,
                (Some(found), Some(wanted)) => !self.set.is_same(aspect, found, wanted),
                _ => true,
            }
        });
        differs.map(|(aspect, _)| *aspect).collect()
    }

    fn shown(&self, aspect: &str, value: Option<&str>) -> String {
        let is_hidden = self.set.secrets().contains(&aspect);
        hide_if(is_hidden, value.unwrap_or_default(), |value| {
            crate::secrets::escape::printable(value).into()
        })
    }

    fn change(&self, found: FieldValues, differing: &[&'static str], refresh: bool) -> Change {
        let wanted = self.set.wanted();
        let mut differences: Vec<Difference> = differing
            .iter()
            .map(|aspect| Difference {
                aspect,
                from: self.shown(aspect, Self::value_of(&found, aspect)),
                to: self.shown(aspect, Self::value_of(&wanted, aspect)),
                diff: None,
            })
            .collect();
        if differences.is_empty() {
            let (from, to) = (String::new(), "as notified".to_owned());
            differences.push(Difference { aspect: "refresh", from, to, diff: None });
        }
        let existed =
            |values| self.set.existence().map(|name| Self::value_of(values, name).is_some());
        let mut premise_digest = DefaultHasher::new();
        for aspect in differing {
            (aspect, Self::value_of(&found, aspect), Self::value_of(&wanted, aspect))
                .hash(&mut premise_digest);
        }
        Change {
            differences,
            destructive: existed(&found) == Some(true)
                && existed(&wanted) == Some(false)
                && differing.iter().any(|aspect| Some(*aspect) == self.set.existence()),
            premise_digest: premise_digest.finish(),
            creates: existed(&found) == Some(false) && existed(&wanted) == Some(true),
            replaces: false,
            premise: Box::new(Premise { found, refresh }),
        }
    }

    async fn make_so(&self, host: &Host, permit: &Permit, change: Change) -> Outcome {
        let never = CancellationToken::new();
        let premise = change.premise.downcast::<Premise>().ok();
        let found = match self.set.read(host, &never).await {
            Ok(found) => found,
            Err(failure) => return Outcome::Failed { failure, touched: false },
        };
        let differing = self.differing(&found);
        if differing.is_empty() {
            self.remember(found);
            return match premise.filter(|premise| premise.refresh) {
                Some(_) => self.refreshed(host, permit).await,
                None => Outcome::Unchanged,
            };
        }
        let is_same_case = premise.is_none_or(|premise| {
            let value = |values, aspect| Self::value_of(values, aspect).map(ToOwned::to_owned);
            differing.iter().all(|it| value(&premise.found, it) == value(&found, it))
        });
        if !is_same_case {
            let failure = Failure::new("the object changed since the check")
                .hint("check which other process writes the object");
            return Outcome::Failed { failure: failure.passing(), touched: false };
        }
        self.write_values(host, permit, (&found, &differing)).await
    }

    async fn write_values(
        &self,
        host: &Host,
        permit: &Permit,
        (found, differing): (&FieldValues, &[&'static str]),
    ) -> Outcome {
        if permit.check().is_err() {
            return Outcome::Interrupted;
        }
        let mut values = self.recorded(found, differing);
        self.set.complete_record(&mut values);
        let keeper = permit.keeper_of(0).filter(|_| !values.is_empty());
        // A record waits for the disk.
        let record = match keeper.clone() {
            Some(keeper) => {
                match self.record_blocking(host, move || keeper.keep_values(values)).await {
                    Ok(number) => Some(number),
                    Err(failure) => return Outcome::Failed { failure, touched: false },
                }
            }
            None => None,
        };
        let written = self.set.write(host, permit, differing).await;
        let after = self.set.read(host, &CancellationToken::new()).await;
        if let (Some(keeper), Some(number), Ok(after)) = (keeper, record, &after) {
            let values = self.recorded(after, differing);
            // Without the values after the change, the history shows those before it as unsettled.
            let settle = move || keeper.settle_values(number, values);
            drop(self.record_blocking(host, settle).await);
        }
        if let Err(WriteFailure { failure, touched }) = written {
            return match permit.check() {
                Err(_) => Outcome::Interrupted,
                Ok(()) => Outcome::Failed { failure, touched },
            };
        }
        let after = match after {
            Ok(after) => after,
            Err(failure) => return Outcome::Failed { failure, touched: true },
        };
        if let Some(aspect) = self.differing(&after).first() {
            let is = self.shown(aspect, Self::value_of(&after, aspect));
            let is = if is.is_empty() { "absent".to_owned() } else { is };
            let what = format!("{aspect} was written, and is {is} now");
            let failure = Failure::new(super::field_reader::bounded(what))
                .hint("another process or the system has changed the value again");
            return Outcome::Failed { failure, touched: true };
        }
        let done = differing.iter().map(|aspect| {
            match self.shown(aspect, Self::value_of(&after, aspect)) {
                to if to.is_empty() => format!("{aspect} removed"),
                to => format!("{aspect} {to}"),
            }
        });
        let done = done.collect();
        self.remember(after);
        Outcome::Changed(done)
    }

    /// Writes to the history. A resource that must not block its task does it on another thread.
    async fn record_blocking<T: Send + 'static>(
        &self,
        host: &Host,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        match self.set.traits().executor {
            ExecutorKind::Thread => Ok(work()),
            ExecutorKind::Command => on_thread(host, move |_| work()).await,
        }
    }

    async fn refreshed(&self, host: &Host, permit: &Permit) -> Outcome {
        let Some(reaction) = self.set.refresh(host, permit) else { return Outcome::Unchanged };
        match reaction.await {
            Ok(done) => Outcome::Changed(vec![done]),
            Err(_) if permit.check().is_err() => Outcome::Interrupted,
            Err(WriteFailure { failure, touched }) => Outcome::Failed { failure, touched },
        }
    }

    /// Returns the values for the history: the differing ones, without secrets and without those that are recorded
    /// otherwise.
    fn recorded(&self, values: &FieldValues, differing: &[&'static str]) -> FieldValues {
        let (secrets, otherwise) = (self.set.secrets(), self.set.recorded_otherwise());
        let is_recorded = |it: &&&str| !secrets.contains(*it) && !otherwise.contains(*it);
        let shown = differing.iter().filter(is_recorded);
        shown
            .map(|aspect| (*aspect, Self::value_of(values, aspect).map(ToOwned::to_owned)))
            .collect()
    }

    fn remember(&self, found: FieldValues) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

impl<V: ValueSet + 'static> Resource for Managed<V> {
    fn footprint(&self) -> Footprint {
        self.set.footprint()
    }

    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(Self::new(self.set.with_claims(claimed)?)))
    }

    fn traits(&self) -> Traits {
        self.set.traits()
    }

    fn sends(&self) -> Sent {
        self.set.sent(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let found = match self.set.read(host, &ask.cancel).await {
                Ok(found) => found,
                Err(failure) => return CheckResult::Unknown(failure),
            };
            let differing = self.differing(&found);
            let refresh = ask.refresh && self.set.reacts_to_refresh();
            if differing.is_empty() && !refresh {
                self.remember(found);
                return CheckResult::Same;
            }
            CheckResult::Differs(self.change(found, &differing, refresh))
        })
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
