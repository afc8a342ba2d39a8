//! Signals in the order in which they were sent: HUP reloads, USR1 pauses, USR2 resumes, TERM and INT stop.
//!
//! They are blocked in all threads, and one thread takes them: one after the other, and none by a thread that was quicker than
//! another. What it takes, it writes into a pipe, one byte each: unlike a set of flags, a pipe keeps order and
//! repeats, and what is sent before anybody listens waits in it. Signals that the kernel holds pending at one and the same moment
//! come in the order of their numbers (HUP, INT, USR1, USR2, TERM): it knows no other. A thread that starts a child lets
//! signals through for that moment, since the child inherits what is blocked: then a handler writes the byte.

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

/// What an operator can ask of the daemon by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// HUP: read the graph again.
    Reload,
    /// USR1: come to rest.
    Pause,
    /// USR2: go on.
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
    /// None until it is registered with the runtime that first waits.
    ready: Option<Receiver>,
    unregistered: Option<OwnedFd>,
    spilled: Arc<Spill>,
    waiting: VecDeque<Signal>,
    actions: Vec<SigId>,
    taker: Option<Arc<Taker>>,
}

impl Signals {
    /// Takes the signals over. To be called before any thread is started, so that none of them is met by its default action;
    /// needs no runtime.
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
        // Held back here and in every thread that is started from now on: also between the system's knowing of a handler and the
        // handler's knowing what to do, when a signal would be lost.
        known().thread_block()?;
        signals.register_all(&write, &spilled)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let queue = SignalFd::with_flags(&known(), flags)?;
        let (alone, ended, taken) = (Mutex::default(), AtomicBool::new(true), AtomicU64::new(0));
        signals.taker = Some(Arc::new(Taker { queue, alone, ended, taken, pipe: write, spilled }));
        signals.go_on()?;
        Ok(signals)
    }

    /// Starts the thread that takes them, where it has ended: meanwhile the system has held what was sent. To be called where signals are
    /// blocked, as they are in all threads but of this program's making.
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

    /// The thread that takes them has ended: no signal comes until [`Signals::go_on`].
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.taker.as_ref().is_some_and(|taker| taker.has_ended())
    }

    /// Whether the system holds a signal that the thread does not take: looked at twice, so long apart. Then that thread is given up, as if it had
    /// ended. Cancel-safe.
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

    /// The next signal, in the order sent. Cancel-safe. Fails where the thread that takes them has ended, and where the runtime cannot
    /// wait for a pipe.
    pub async fn next(&mut self) -> io::Result<Signal> {
        loop {
            if let Some(signal) = self.waiting.pop_front() {
                return Ok(signal);
            }
            self.fill().await?;
        }
    }

    /// Waits until a stop is among those that wait, and takes none of them. Cancel-safe.
    pub async fn asked_to_stop(&mut self) -> io::Result<()> {
        while !self.waiting.contains(&Signal::Stop) {
            self.fill().await?;
        }
        Ok(())
    }

    /// Whoever asks this need not read signals himself.
    #[must_use]
    pub fn stops(&self) -> Stops {
        Stops { taker: self.taker.clone(), spilled: Arc::clone(&self.spilled) }
    }

    /// Waits for more, and puts it to those that wait.
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
        // A pipe that is not empty may hold a byte that was sent before what spilled.
        if rustix::io::ioctl_fionread(pipe)? == 0 {
            self.waiting.extend(self.spilled.take());
        }
        Ok(())
    }
}

/// Whether a stop was sent.
#[derive(Clone, Debug)]
pub struct Stops {
    taker: Option<Arc<Taker>>,
    spilled: Arc<Spill>,
}

impl Stops {
    /// Whether one was sent up to now; taken by somebody or not.
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

/// What did not fit into the pipe: 65 536 signals that nobody has read. Their order is lost, their end is not.
#[derive(Debug, Default)]
struct Spill {
    reload: AtomicU8,
    stop: AtomicU8,
    /// The last of pause and resume.
    last: AtomicU8,
    /// A stop was sent at some time, spilled or not.
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

/// The signals that mean something.
fn known() -> SigSet {
    MEANINGS
        .iter()
        .filter_map(|(number, _)| nix::sys::signal::Signal::try_from(*number).ok())
        .collect()
}

fn meaning(byte: u8) -> Option<Signal> {
    [Signal::Reload, Signal::Pause, Signal::Resume, Signal::Stop].get(usize::from(byte)).copied()
}

/// Takes what the kernel holds for us, and writes it into the pipe.
#[derive(Debug)]
struct Taker {
    queue: SignalFd,
    /// What was taken stands in the pipe when this is free.
    alone: Mutex<()>,
    /// No thread takes any.
    ended: AtomicBool,
    /// How often some were taken.
    taken: AtomicU64,
    pipe: Arc<OwnedFd>,
    spilled: Arc<Spill>,
}

impl Taker {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether there is one to be taken.
    fn holds(&self) -> bool {
        let mut ready = [PollFd::new(&self.queue, PollFlags::IN)];
        // Where that cannot be asked, nothing is known.
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Takes one signal after the other, for ever.
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

/// The thread that takes signals. However it ends, who waits for one is woken.
struct Ends<'t>(&'t Taker);

/// A byte that means no signal.
const NONE: u8 = u8::MAX;

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        // A pipe that is full wakes who waits all the same.
        let _woken = rustix::io::write(&self.0.pipe, &[NONE]);
    }
}

/// Runs also inside a signal handler: one `write`, and stores of atomics; no lock, no memory, no panic.
fn pass(signal: Signal, pipe: &OwnedFd, spilled: &Spill) {
    if signal == Signal::Stop {
        spilled.stopped.store(true, Ordering::SeqCst);
    }
    if rustix::io::write(pipe, &[signal as u8]).is_err() {
        spilled.put(signal);
    }
}

/// The one unsafe call of the program (docs/decisions/0007-one-unsafe-call.md).
#[expect(unsafe_code, reason = "safe signal crates merge repeats and lose the order of signals")]
fn register(number: i32, action: impl Fn() + Send + Sync + 'static) -> io::Result<SigId> {
    // SAFETY: the action only calls `pass`: a raw write system call (rustix keeps errno untouched) on a descriptor that the action
    // owns, and atomic stores. Both are async-signal-safe, neither allocates, locks or panics.
    unsafe { signal_hook::low_level::register(number, action) }
}
