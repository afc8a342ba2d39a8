//! A simulated host in memory: files, directories, links, owners, a clock, injected faults, and loss of
//! power.
//!
//! The host answers the file system calls of this crate as Linux does for root, as far as this crate depends
//! on them; `tests/simulated/matches_kernel.rs` compares it with the kernel call by call. The simulation
//! leaves out permissions (root may do everything, and the maker of a file owns it), mounts, devices, quotas
//! and locks. The clock of file stamps ticks every 4 ms, as in Linux. Nothing here may be used outside tests.
//!
//! The design follows the test file systems of `SQLite` and the simulations of `FoundationDB` and
//! `TigerBeetle`.
//!
//! Reading order: `state.rs` (nodes), `walk.rs` (paths), `primitives.rs`, `calls.rs`, `fault.rs`,
//! `durable.rs` (loss of power), `other_writers.rs`, `commands.rs`.

mod calls;
mod commands;
mod durable;
mod fault;
mod other_writers;
mod primitives;
mod state;
mod walk;

pub use commands::{Runner, Running};
pub(crate) use commands::{glance_here, run_here};
pub use durable::Power;
pub use fault::{Call, Fault, Rule};
pub use state::{Changed, Ino, Node, What};

use state::State;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// A function that runs before each call; it may change the host through [`Machine::foreign`].
pub type Hook = Box<dyn FnMut(&Machine, &Call)>;

/// A simulated host. Clones share one state.
#[derive(Clone)]
pub struct Machine(Rc<Shared>);

struct Shared {
    state: RefCell<State>,
    hook: RefCell<Option<Hook>>,
    rule: RefCell<Option<Rule>>,
    runner: RefCell<Option<Rc<Runner>>>,
    /// The number of commands so far, and the number of the command that fails.
    commands: Cell<(u64, Option<u64>)>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Default for Machine {
    /// Makes a host with an empty root, in the year 2023.
    fn default() -> Self {
        let (state, hook, rule) =
            (RefCell::new(State::new()), RefCell::new(None), RefCell::new(None));
        let (runner, commands) = (RefCell::new(None), Cell::default());
        Self(Rc::new(Shared { state, hook, rule, runner, commands }))
    }
}

/// A guard: the thread is in the host until the guard is dropped.
#[derive(Debug)]
pub struct Entered {
    before: Option<Machine>,
    /// Prevents a move to another thread: the simulated host belongs to the thread of its start.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        super::dispatch::stand(self.before.take());
    }
}

/// Returns the simulated host of the calling thread.
#[must_use]
pub fn here() -> Option<Machine> {
    super::dispatch::simulated(Machine::clone)
}

impl Machine {
    /// Puts the calling thread into this host: all later file access of this crate on the thread happens there.
    #[must_use]
    pub fn enter(&self) -> Entered {
        let before = super::dispatch::stand(Some(self.clone()));
        Entered { before, _thread: std::marker::PhantomData }
    }

    /// Runs a function as another process: without faults and hook, and without counting calls.
    pub fn foreign<T>(&self, act: impl FnOnce(&Self) -> T) -> T {
        let before = self.0.state.borrow_mut().faults.suspend(true);
        let done = act(self);
        self.0.state.borrow_mut().faults.suspend(before);
        done
    }

    /// Sets or clears the hook that runs before each call of the tested process.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.0.hook.borrow_mut() = hook;
    }

    /// Returns the wall clock time since 1970.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.0.state.borrow().wall
    }

    /// Sets the wall clock time since 1970.
    pub fn set_wall(&self, wall: Duration) {
        self.0.state.borrow_mut().wall = wall;
    }

    /// Returns the number of the present process, which grows with each restart.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.0.state.borrow().incarnation
    }

    /// Makes random bytes available, or unavailable.
    pub fn set_randomness(&self, is_there: bool) {
        self.0.state.borrow_mut().drawn = is_there.then_some(0);
    }

    /// Returns pseudo-random bytes: distinct in each call, and equal in every test run.
    pub(crate) fn random(&self, bytes: &mut [u8]) -> Result<(), rustix::io::Errno> {
        let mut state = self.0.state.borrow_mut();
        let drawn = state.drawn.as_mut().ok_or(rustix::io::Errno::NOSYS)?;
        for chunk in bytes.chunks_mut(8) {
            *drawn += 1;
            // The finalizer of splitmix64, a bijection.
            let mut number = drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^= number >> 31;
            chunk.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    /// Ends the process, as `kill -9` does: its descriptors are closed. A new process may begin.
    pub fn restart(&self) {
        let mut state = self.0.state.borrow_mut();
        state.incarnation += 1;
        state.open.clear();
        state.identity = (0, 0);
        state.faults.clear();
    }

    /// Returns the changes since the last call, as inotify would report them.
    pub fn take_changes(&self) -> Vec<Changed> {
        std::mem::take(&mut self.0.state.borrow_mut().changes)
    }

    /// Calls a function with the whole file system.
    pub fn look<T>(&self, look: impl FnOnce(&state::Tree<'_>) -> T) -> T {
        look(&state::Tree(&self.0.state.borrow()))
    }

    pub(super) fn set_identity(&self, uid: Option<u32>, gid: Option<u32>) -> (u32, u32) {
        let mut state = self.0.state.borrow_mut();
        let before = state.identity;
        state.identity = (uid.unwrap_or(before.0), gid.unwrap_or(before.1));
        before
    }
}
