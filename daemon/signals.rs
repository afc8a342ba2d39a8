//! Signals in the order in which they were sent: HUP reloads, USR1 pauses, USR2 resumes, TERM and INT stop.
//!
//! The signals are blocked in all threads, and one thread reads them with a signalfd, so that their order is not lost
//! between threads. The thread writes one byte for each signal into a pipe: unlike a set of flags, a pipe preserves
//! order and repetitions, and stores signals until somebody reads. Signals that are pending in the kernel at the same
//! moment come in the order of their numbers (HUP, INT, USR1, USR2, TERM), the only order that the kernel has. A thread
//! that starts a child unblocks signals for that moment, since the child inherits the mask; then a handler writes the
//! byte.

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// A request of the operator by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// HUP: reload the graph.
    Reload,
    /// USR1: pause.
    Pause,
    /// USR2: resume.
    Resume,
    /// TERM or INT: stop; a second one stops at once.
    Stop,
}

const MEANINGS: [(i32, Signal); 5] = [
    (SIGHUP, Signal::Reload),
    (SIGUSR1, Signal::Pause),
    (SIGUSR2, Signal::Resume),
    (SIGTERM, Signal::Stop),
    (SIGINT, Signal::Stop),
];

/// The signals sent to this process since [`Signals::install`].
#[derive(Debug)]
pub struct Signals {
    /// None until the pipe is registered with the runtime of the first wait.
    ready: Option<Receiver>,
    unregistered: Option<OwnedFd>,
    spilled: Arc<Spill>,
    waiting: VecDeque<Signal>,
    actions: Vec<SigId>,
    taker: Option<Arc<Taker>>,
}

impl Signals {
    /// Takes over the signals. The call must come before any thread is started, so that no signal triggers its default
    /// action. No runtime is needed.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if a signal or the thread cannot be set up.
    pub fn install() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let spilled = Arc::new(Spill::default());
        let write = Arc::new(write);
        let mut signals = Self {
            ready: None,
            unregistered: Some(read),
            spilled: Arc::clone(&spilled),
            waiting: VecDeque::new(),
            actions: Vec::new(),
            taker: None,
        };
        // The signals are blocked in this thread and all later ones. During the registration this prevents the loss of
        // a signal for which the kernel has a handler, but the handler has no action yet.
        known().thread_block()?;
        signals.register_all(&write, &spilled)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let queue = SignalFd::with_flags(&known(), flags)?;
        let (alone, ended, taken) = (Mutex::default(), AtomicBool::new(true), AtomicU64::new(0));
        signals.taker = Some(Arc::new(Taker { queue, alone, ended, taken, pipe: write, spilled }));
        signals.go_on()?;
        Ok(signals)
    }

    /// Starts the thread that reads signals, if it has ended; the kernel holds signals meanwhile. The caller must have
    /// the signals blocked, as all threads of this program have.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the thread cannot be started.
    pub fn go_on(&mut self) -> io::Result<()> {
        let Some(taker) = self.taker.as_ref().filter(|taker| taker.has_ended()) else {
            return Ok(());
        };
        let own = Arc::clone(taker);
        taker.ended.store(false, Ordering::SeqCst);
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let thread = thread.spawn(move || {
            let ends = Ends(&own);
            ends.0.run();
        });
        if let Err(error) = thread {
            taker.ended.store(true, Ordering::SeqCst);
            return Err(error);
        }
        Ok(())
    }

    /// Returns true if the thread that reads signals has ended: no signal arrives until [`Signals::go_on`].
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.taker.as_ref().is_some_and(|taker| taker.has_ended())
    }

    /// Returns true if a signal stays pending in the kernel for the time `apart` and the thread reads none. The thread
    /// is then given up, as if it had ended. Cancel-safe.
    pub async fn hangs(&self, apart: Duration) -> bool {
        let Some(taker) = &self.taker else { return false };
        let before = taker.taken.load(Ordering::SeqCst);
        if !taker.holds() {
            return false;
        }
        tokio::time::sleep(apart).await;
        let hangs = taker.holds() && taker.taken.load(Ordering::SeqCst) == before;
        if hangs {
            taker.ended.store(true, Ordering::SeqCst);
        }
        hangs
    }

    fn register_all(&mut self, write: &Arc<OwnedFd>, spilled: &Arc<Spill>) -> io::Result<()> {
        for (number, meaning) in MEANINGS {
            let pass_on = (Arc::clone(write), Arc::clone(spilled));
            self.actions.push(register(number, move || pass(meaning, &pass_on.0, &pass_on.1))?);
        }
        Ok(())
    }

    /// Returns the next signal, in the order sent. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread that reads signals has ended, or if the runtime cannot wait for a pipe.
    pub async fn next(&mut self) -> io::Result<Signal> {
        loop {
            if let Some(signal) = self.waiting.pop_front() {
                return Ok(signal);
            }
            self.fill().await?;
        }
    }

    /// Waits until a stop is among the pending signals, without removing any of them. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Signals::next`].
    pub async fn asked_to_stop(&mut self) -> io::Result<()> {
        while !self.waiting.contains(&Signal::Stop) {
            self.fill().await?;
        }
        Ok(())
    }

    /// Returns a value that detects stops without reading signals.
    #[must_use]
    pub fn stops(&self) -> Stops {
        Stops { taker: self.taker.clone(), spilled: Arc::clone(&self.spilled) }
    }

    /// Waits for signals, and appends them to the pending ones.
    async fn fill(&mut self) -> io::Result<()> {
        if let Some(pipe) = self.unregistered.take() {
            self.ready = Some(Receiver::from_owned_fd(pipe)?);
        }
        let Some(pipe) = &self.ready else {
            return Err(io::Error::other("the pipe of signals could not be registered"));
        };
        pipe.readable().await?;
        let mut bytes = [0; 512];
        match pipe.try_read(&mut bytes) {
            Ok(count) => {
                let known = bytes.iter().take(count).filter_map(|byte| meaning(*byte));
                self.waiting.extend(known);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if self.waiting.is_empty() && self.has_ended() {
            return Err(io::Error::other("the thread that takes signals has ended"));
        }
        // A pipe that is not empty may contain a byte that was sent before the spilled signals.
        if rustix::io::ioctl_fionread(pipe)? == 0 {
            self.waiting.extend(self.spilled.take());
        }
        Ok(())
    }
}

/// A detector of stop signals.
#[derive(Clone, Debug)]
pub struct Stops {
    taker: Option<Arc<Taker>>,
    spilled: Arc<Spill>,
}

impl Stops {
    /// Returns true if a stop was sent up to now, even if it was read already.
    ///
    /// # Errors
    ///
    /// Returns an error if the pending signals cannot be read.
    pub fn is_asked(&self) -> io::Result<bool> {
        if let Some(taker) = &self.taker {
            taker.take_all()?;
        }
        Ok(self.spilled.stopped.load(Ordering::SeqCst))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for action in self.actions.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }
}

/// Signals that did not fit into the pipe, which holds 65 536 unread ones. Their order is lost, their effect is not.
#[derive(Debug, Default)]
struct Spill {
    reload: AtomicU8,
    stop: AtomicU8,
    /// The last of pause and resume.
    last: AtomicU8,
    /// True after the first stop, spilled or not.
    stopped: AtomicBool,
}

impl Spill {
    fn put(&self, signal: Signal) {
        let (slot, value) = match signal {
            Signal::Reload => (&self.reload, 1),
            Signal::Stop => (&self.stop, 1),
            Signal::Pause => (&self.last, 1),
            Signal::Resume => (&self.last, 2),
        };
        slot.store(value, Ordering::SeqCst);
    }

    fn take(&self) -> impl Iterator<Item = Signal> + use<> {
        let last = match self.last.swap(0, Ordering::SeqCst) {
            1 => Some(Signal::Pause),
            2 => Some(Signal::Resume),
            _ => None,
        };
        let reload = (self.reload.swap(0, Ordering::SeqCst) == 1).then_some(Signal::Reload);
        let stop = (self.stop.swap(0, Ordering::SeqCst) == 1).then_some(Signal::Stop);
        [reload, last, stop].into_iter().flatten()
    }
}

/// Returns the signals that have a meaning.
fn known() -> SigSet {
    MEANINGS
        .iter()
        .filter_map(|(number, _)| nix::sys::signal::Signal::try_from(*number).ok())
        .collect()
}

fn meaning(byte: u8) -> Option<Signal> {
    [Signal::Reload, Signal::Pause, Signal::Resume, Signal::Stop].get(usize::from(byte)).copied()
}

/// Reads pending signals from the kernel, and writes them into the pipe.
#[derive(Debug)]
struct Taker {
    queue: SignalFd,
    /// Locked while signals are read: when it is free, all of them are in the pipe.
    alone: Mutex<()>,
    /// True if no thread reads signals.
    ended: AtomicBool,
    /// The number of reads.
    taken: AtomicU64,
    pipe: Arc<OwnedFd>,
    spilled: Arc<Spill>,
}

impl Taker {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Returns true if a signal is pending in the kernel.
    fn holds(&self) -> bool {
        let mut ready = [PollFd::new(&self.queue, PollFlags::IN)];
        // A failed poll counts as no signal.
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Reads signals for ever.
    fn run(&self) {
        loop {
            let mut ready = [PollFd::new(&self.queue, PollFlags::IN)];
            let polled = poll(&mut ready, None);
            #[cfg(debug_assertions)]
            if crate::fault_injection::take("signals").is_some() {
                std::panic::panic_any("a fault was put into it");
            }
            let taken = match polled {
                Ok(_) => self.take_all(),
                Err(Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = taken {
                // The handlers take over, on this thread.
                tracing::error!(%error, "cannot wait for signals");
                let _handlers = known().thread_unblock();
                loop {
                    std::thread::park();
                }
            }
        }
    }

    fn take_all(&self) -> io::Result<()> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        self.taken.fetch_add(1, Ordering::SeqCst);
        while let Some(taken) = self.queue.read_signal()? {
            let meaning =
                MEANINGS.iter().find(|(number, _)| u32::try_from(*number) == Ok(taken.ssi_signo));
            if let Some((_, meaning)) = meaning {
                pass(*meaning, &self.pipe, &self.spilled);
            }
        }
        Ok(())
    }
}

/// A guard of the thread that reads signals: its end, also by a panic, wakes the reader of the pipe.
struct Ends<'t>(&'t Taker);

/// A byte without a signal.
const NONE: u8 = u8::MAX;

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        // A full pipe wakes the reader all the same.
        let _woken = rustix::io::write(&self.0.pipe, &[NONE]);
    }
}

/// Passes a signal on. The function also runs inside a signal handler: one `write` and atomic stores; no lock, no
/// allocation, no panic.
fn pass(signal: Signal, pipe: &OwnedFd, spilled: &Spill) {
    if signal == Signal::Stop {
        spilled.stopped.store(true, Ordering::SeqCst);
    }
    if rustix::io::write(pipe, &[signal as u8]).is_err() {
        spilled.put(signal);
    }
}

/// Registers a signal handler, with the only unsafe call of the program (docs/decisions/0007-one-unsafe-call.md).
#[expect(unsafe_code, reason = "safe signal crates merge repeats and lose the order of signals")]
fn register(number: i32, action: impl Fn() + Send + Sync + 'static) -> io::Result<SigId> {
    // SAFETY: the action only calls `pass`: a raw write system call (rustix leaves errno untouched) on a descriptor
    // that the action owns, and atomic stores. Both are async-signal-safe; neither allocates, locks or panics.
    unsafe { signal_hook::low_level::register(number, action) }
}
