//! An overlay in memory over the host: writes go into the overlay, and reads come from the overlay or, for
//! unchanged objects, from the host.
//!
//! A plan checks and applies its steps in one overlay, so that each step finds the result of the steps before
//! (`docs/decisions/0053`). A thread is in the overlay while a future is polled ([`Overlay::check`],
//! [`Overlay::apply`]), and the overlay answers all its calls on files. An overlay must never write to the
//! host: its only calls on the host are those of [`below`], which read.
//!
//! Reading order: `state.rs` (the nodes), `walk.rs` (paths to nodes), `below.rs`, `reads.rs`, `writes.rs`,
//! `forget.rs` (bounded memory).

mod below;
mod forget;
mod reads;
mod state;
mod walk;
mod writes;

pub use state::Limits;

use super::dispatch::Inside;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use state::{State, Stop};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// An overlay over the host. Clones share one state.
#[derive(Clone, Debug)]
pub struct Overlay(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    limits: Limits,
    /// The base of descriptors for objects that the host does not have: nothing can be read or written through
    /// this one.
    nothing: OwnedFd,
}

impl Overlay {
    /// Makes an empty overlay over the host.
    ///
    /// # Errors
    ///
    /// Fails if the root of the host cannot be examined or `/dev/null` cannot be opened.
    pub fn new(limits: Limits) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let nothing = rustix::fs::open("/dev/null", flags, Mode::empty())?;
        let state = Mutex::new(State::new(below::stat(b"/")?, limits));
        Ok(Self(Arc::new(Shared { state, limits, nothing })))
    }

    /// Returns true if a write exceeded the limits and was rejected.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// Polls a check with the polling thread in this overlay. The commands of the check run on the host.
    pub fn check<F: Future + Unpin>(&self, check: F) -> impl Future<Output = F::Output> {
        let inside = Inside { overlay: self.clone(), runs_commands: true };
        Within { inside, future: check }
    }

    /// Polls an apply with the polling thread in this overlay: nothing of the host is changed, and no command is
    /// started.
    pub fn apply<F: Future + Unpin>(&self, apply: F) -> impl Future<Output = F::Output> {
        let inside = Inside { overlay: self.clone(), runs_commands: false };
        Within { inside, future: apply }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nothing(&self) -> &OwnedFd {
        &self.0.nothing
    }

    /// Runs an operation on the nodes and reads the needed facts from the host. The host is read without the
    /// lock, because the host may hang.
    fn ask<T>(&self, mut act: impl FnMut(&mut State) -> state::Result<T>) -> Result<T, Errno> {
        self.lock().forget_some();
        loop {
            let done = act(&mut self.lock());
            let fact = match done {
                Ok(done) => return Ok(done),
                Err(Stop::Failed(errno)) => return Err(errno),
                Err(Stop::Missing(fact)) => fact,
            };
            let learned = below::learn(&fact, self.0.limits.bytes);
            if matches!((&fact, &learned), (state::Fact::Content { .. }, Err(Errno::NOSPC))) {
                self.lock().is_full = true;
            }
            let learned = learned?;
            match self.lock().learn(fact, learned) {
                Err(Stop::Failed(errno)) => return Err(errno),
                Ok(()) | Err(Stop::Missing(_)) => {}
            }
        }
    }
}

struct Within<F> {
    inside: Inside,
    future: F,
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _entered = super::dispatch::enter(Some(self.inside.clone()));
        Pin::new(&mut self.future).poll(context)
    }
}
