//! The outputs of workers, and the inputs that other workers read from them.

use super::Name;
use super::manifold::Need;
use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// The outputs of a worker: at most one value of each type.
#[derive(Clone, Default)]
pub struct Outputs(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Outputs {
    /// Returns no outputs: others only depend on the worker to run.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the outputs with this value added.
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

/// The reason for which an input is not available. A missing input is no defect of the worker that asks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// The name is not among the declared inputs.
    #[error("`{0}` is not a declared input")]
    Undeclared(Name),
    /// The input is declared, and does not run.
    #[error("`{0}` is not running")]
    NotRunning(Name),
    /// The input runs, and offers no value of that type.
    #[error("`{name}` offers no {wanted}")]
    NotExposed {
        /// The name of the input.
        name: Name,
        /// The requested type.
        wanted: &'static str,
    },
}

/// The outputs of all running workers.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputRegistry(Arc<Mutex<HashMap<Name, Outputs>>>);

impl OutputRegistry {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Outputs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, name: &Name, outputs: Outputs) {
        // The entry was empty: outputs are taken before a worker is started again.
        self.lock().insert(Arc::clone(name), outputs);
    }

    /// Removes and returns the outputs of a worker. The caller drops them: that is foreign code, which must run neither
    /// with the lock held nor on the loop.
    pub(super) fn take(&self, name: &Name) -> Option<Outputs> {
        self.lock().remove(name)
    }

    /// Returns the inputs of a worker with these dependencies.
    pub(super) fn inputs(&self, needs: &[(Name, Need)]) -> Inputs {
        let offered = self.lock();
        let given = needs.iter().map(|(name, need)| {
            let now = (*need != Need::Handle).then(|| offered.get(name).cloned()).flatten();
            (Arc::clone(name), (*need, now))
        });
        Inputs { given: given.collect(), board: self.clone() }
    }
}

/// The inputs of one start, as they were offered at that moment.
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

    /// Checks that an input runs, for inputs without outputs.
    ///
    /// # Errors
    ///
    /// Returns an error if the input is not declared or does not run.
    pub fn runs(&self, name: &str) -> Result<(), Missing> {
        self.outputs(name).map(drop)
    }

    /// Returns a value of an input.
    ///
    /// # Errors
    ///
    /// Returns an error if the input is not declared, does not run, or has no value of this type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Result<T, Missing> {
        let outputs = self.outputs(name)?;
        outputs.get().ok_or_else(|| not_exposed::<T>(name))
    }

    /// Returns a handle to another worker's value, which is looked up at each use.
    ///
    /// # Errors
    ///
    /// Returns an error if the input is not declared.
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

/// A late-bound input: its worker may start and stop without a restart of the handle's owner.
#[derive(Clone, Debug)]
pub struct Handle<T> {
    name: Name,
    board: OutputRegistry,
    _type: PhantomData<fn() -> T>,
}

impl<T: Clone + Send + Sync + 'static> Handle<T> {
    /// Returns the value, as long as its worker runs.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker does not run, or has no value of this type.
    pub fn get(&self) -> Result<T, Missing> {
        // Copied first: cloning the value is foreign code, which must not run with the lock held.
        let outputs = self.board.lock().get(&self.name).cloned();
        let outputs = outputs.ok_or_else(|| Missing::NotRunning(Arc::clone(&self.name)))?;
        outputs.get().ok_or_else(|| not_exposed::<T>(&self.name))
    }
}

fn not_exposed<T>(name: &str) -> Missing {
    Missing::NotExposed { name: name.into(), wanted: type_name::<T>() }
}
