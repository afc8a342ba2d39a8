//! A host that exists in memory: files, directories, links, owners, a clock, faults on request, and the loss of power.
//!
//! It answers the system calls that this crate makes on files as Linux does for root, as far as this crate relies on them;
//! `tests/twin` compares it with the kernel call by call. Not simulated: permissions (root may do all; who makes a file owns it),
//! mounts, devices, quotas, locks. The stamps of files go by a clock that ticks every 4 ms, as those of Linux do.
//!
//! In the manner of `SQLite`'s test file systems and of the simulations of `FoundationDB` and `TigerBeetle`.

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
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Is told of each call before it is answered; may change the host meanwhile, by [`Machine::foreign`].
pub type Hook = Box<dyn FnMut(&Machine, &Call)>;

/// The host. Clones are the same one.
#[derive(Clone)]
pub struct Machine(Rc<Shared>);

struct Shared {
    state: RefCell<State>,
    hook: RefCell<Option<Hook>>,
    rule: RefCell<Option<Rule>>,
    runner: RefCell<Option<Rc<Runner>>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Default for Machine {
    /// With an empty root, in the year 2023.
    fn default() -> Self {
        let (state, hook, rule) =
            (RefCell::new(State::new()), RefCell::new(None), RefCell::new(None));
        Self(Rc::new(Shared { state, hook, rule, runner: RefCell::new(None) }))
    }
}

/// As long as it lives, the thread stands in the host.
#[derive(Debug)]
pub struct Entered {
    before: Option<Machine>,
    /// It must end on the thread on which it began.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        super::dispatch::stand(self.before.take());
    }
}

/// The host that the calling thread stands in.
#[must_use]
pub fn here() -> Option<Machine> {
    super::dispatch::simulated(Machine::clone)
}

impl Machine {
    /// Lets the calling thread stand in this host: all that this crate does with files from here on, it does there.
    #[must_use]
    pub fn enter(&self) -> Entered {
        let before = super::dispatch::stand(Some(self.clone()));
        Entered { before, _thread: std::marker::PhantomData }
    }

    /// Somebody else acts: no faults, no hook, and not counted.
    pub fn foreign<T>(&self, act: impl FnOnce(&Self) -> T) -> T {
        let before = self.0.state.borrow_mut().faults.suspend(true);
        let done = act(self);
        self.0.state.borrow_mut().faults.suspend(before);
        done
    }

    /// Is called before each call of ours is answered.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.0.hook.borrow_mut() = hook;
    }

    /// The clock on the wall, since 1970.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.0.state.borrow().wall
    }

    /// Sets the clock on the wall.
    pub fn set_wall(&self, wall: Duration) {
        self.0.state.borrow_mut().wall = wall;
    }

    /// Which process works on it: a number that grows with each restart.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.0.state.borrow().incarnation
    }

    /// From now on there is randomness, or none.
    pub fn set_randomness(&self, is_there: bool) {
        self.0.state.borrow_mut().drawn = is_there.then_some(0);
    }

    /// Bytes that nobody else is given, the same in every run.
    pub(crate) fn random(&self, bytes: &mut [u8]) -> Result<(), rustix::io::Errno> {
        let mut state = self.0.state.borrow_mut();
        let drawn = state.drawn.as_mut().ok_or(rustix::io::Errno::NOSYS)?;
        for chunk in bytes.chunks_mut(8) {
            *drawn += 1;
            // The finalizer of splitmix64: another number for each.
            let mut number = drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^= number >> 31;
            chunk.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    /// The process is gone, as by `kill -9`: its descriptors are closed, nothing else happens. Another may begin.
    pub fn restart(&self) {
        let mut state = self.0.state.borrow_mut();
        state.incarnation += 1;
        state.open.clear();
        state.identity = (0, 0);
        state.faults.clear();
    }

    /// What happened since this was last asked, as inotify would tell it.
    pub fn take_changes(&self) -> Vec<Changed> {
        std::mem::take(&mut self.0.state.borrow_mut().changes)
    }

    /// Looks at the whole.
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
