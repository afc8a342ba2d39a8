//! What workers offer, and how others take it.

use super::Name;
use super::manifold::Need;
use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// What a worker offers to those that need it: at most one value of each type.
#[derive(Clone, Default)]
pub struct Outputs(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Outputs {
    /// Nothing but that it runs.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// With this value as well.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }
}

impl std::fmt::Debug for Outputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outputs({})", self.0.len())
    }
}

/// Why an input cannot be had. Not a fault of who asks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// It is not among the declared inputs.
    #[error("`{0}` is not a declared input")]
    Undeclared(Name),
    /// It is declared, and does not run.
    #[error("`{0}` is not running")]
    NotRunning(Name),
    /// It runs, and offers nothing of that type.
    #[error("`{name}` offers no {wanted}")]
    NotExposed {
        /// Which.
        name: Name,
        /// The type that was asked for.
        wanted: &'static str,
    },
}

/// Whatever is offered at the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputRegistry(Arc<Mutex<HashMap<Name, Outputs>>>);

impl OutputRegistry {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Outputs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, name: &Name, outputs: Outputs) {
        // Nothing was there: a worker's offer is taken before it is started again.
        self.lock().insert(Arc::clone(name), outputs);
    }

    /// Returned, since dropping it is foreign code, which must run neither with the lock held nor on the loop.
    pub(super) fn take(&self, name: &Name) -> Option<Outputs> {
        self.lock().remove(name)
    }

    /// What a worker with these inputs is given.
    pub(super) fn inputs(&self, needs: &[(Name, Need)]) -> Inputs {
        let offered = self.lock();
        let given = needs.iter().map(|(name, need)| {
            let now = (*need != Need::Handle).then(|| offered.get(name).cloned()).flatten();
            (Arc::clone(name), (*need, now))
        });
        Inputs { given: given.collect(), board: self.clone() }
    }
}

/// The inputs of one start: what was offered at that moment.
#[derive(Clone, Debug)]
pub struct Inputs {
    given: BTreeMap<Name, (Need, Option<Outputs>)>,
    board: OutputRegistry,
}

impl Inputs {
    fn outputs(&self, name: &str) -> Result<&Outputs, Missing> {
        match self.given.get(name) {
            None | Some((Need::Handle, _)) => Err(Missing::Undeclared(name.into())),
            Some((_, None)) => Err(Missing::NotRunning(name.into())),
            Some((_, Some(outputs))) => Ok(outputs),
        }
    }

    /// Whether an input runs; for those that offer nothing else.
    pub fn runs(&self, name: &str) -> Result<(), Missing> {
        self.outputs(name).map(drop)
    }

    /// A value of an input.
    pub fn get<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Result<T, Missing> {
        let outputs = self.outputs(name)?;
        outputs.get().ok_or_else(|| not_exposed::<T>(name))
    }

    /// Another worker's value, whatever becomes of that worker: asked for anew each time.
    pub fn handle<T: Clone + Send + Sync + 'static>(
        &self,
        name: &str,
    ) -> Result<Handle<T>, Missing> {
        if !self.given.contains_key(name) {
            return Err(Missing::Undeclared(name.into()));
        }
        Ok(Handle { name: name.into(), board: self.board.clone(), _type: PhantomData })
    }
}

/// A late-bound input: it may come and go without its holder being restarted.
#[derive(Clone, Debug)]
pub struct Handle<T> {
    name: Name,
    board: OutputRegistry,
    _type: PhantomData<fn() -> T>,
}

impl<T: Clone + Send + Sync + 'static> Handle<T> {
    /// The value, as long as its worker runs.
    pub fn get(&self) -> Result<T, Missing> {
        // A copy, since cloning the value is foreign code, which must not run with the lock held.
        let outputs = self.board.lock().get(&self.name).cloned();
        let outputs = outputs.ok_or_else(|| Missing::NotRunning(Arc::clone(&self.name)))?;
        outputs.get().ok_or_else(|| not_exposed::<T>(&self.name))
    }
}

fn not_exposed<T>(name: &str) -> Missing {
    Missing::NotExposed { name: name.into(), wanted: type_name::<T>() }
}
