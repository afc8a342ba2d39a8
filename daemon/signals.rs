//! Signals of the operator: HUP reloads, USR1 pauses, USR2 resumes, TERM and INT stop.
//!
//! The handlers of `signal-hook` set a flag and write one byte into a socket, so a signal that arrives before anybody
//! waits is found later. Repeats of HUP, and of USR1 and USR2, merge: the last of USR1 and USR2 decides. Stops are
//! counted. Two different signals that arrive at once have no order.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::low_level::{pipe, unregister};
use signal_hook::{SigId, flag};
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::net::UnixStream;

/// A request that an operator sends by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// HUP: read the graph again.
    Reload,
    /// USR1: pause.
    Pause,
    /// USR2: resume.
    Resume,
    /// TERM or INT: stop; a second one stops at once.
    Stop,
}

/// Makes a write beyond the limit of file sizes fail, where the signal would end the process. Programs that this
/// process starts have the usual action again.
///
/// # Errors
///
/// The handler cannot be installed.
pub fn survive_size_limit() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// The values of [`Flags::last`].
const NONE: usize = 0;
const PAUSE: usize = 1;
const RESUME: usize = 2;

/// A second stop ends everything at once; more of them mean nothing.
const STOPS_AT_MOST: usize = 2;

/// The signals sent to this process since [`Signals::install`].
#[derive(Debug)]
pub struct Signals {
    flags: Flags,
    /// One byte for each HUP, USR1 and USR2.
    requests: Wakeup,
    /// One byte for each TERM and INT.
    stops: Wakeup,
    waiting: VecDeque<Signal>,
    actions: Vec<SigId>,
}

/// The flags that the handlers set.
#[derive(Clone, Debug, Default)]
struct Flags {
    reload: Arc<AtomicBool>,
    /// The last of USR1 and USR2.
    last: Arc<AtomicUsize>,
    /// A stop was sent at some time, and is never reset.
    stopped: Arc<AtomicBool>,
}

impl Signals {
    /// Installs the handlers. Needs no runtime. Call it before the first thread starts.
    ///
    /// # Errors
    /// The system has no sockets left, or rejects a handler.
    pub fn install() -> io::Result<Self> {
        let ((requests, request_end), (stops, stop_end)) = (Wakeup::new()?, Wakeup::new()?);
        let flags = Flags::default();
        let waiting = VecDeque::new();
        let mut signals = Self { flags, requests, stops, waiting, actions: Vec::new() };
        // A flag is set before the byte is written: a reader that has the byte finds the flag.
        signals.add(flag::register(SIGHUP, Arc::clone(&signals.flags.reload)))?;
        for (number, value) in [(SIGUSR1, PAUSE), (SIGUSR2, RESUME)] {
            signals.add(flag::register_usize(number, Arc::clone(&signals.flags.last), value))?;
        }
        for number in [SIGTERM, SIGINT] {
            signals.add(flag::register(number, Arc::clone(&signals.flags.stopped)))?;
            signals.add(pipe::register(number, stop_end.try_clone()?))?;
        }
        for number in [SIGHUP, SIGUSR1, SIGUSR2] {
            signals.add(pipe::register(number, request_end.try_clone()?))?;
        }
        Ok(signals)
    }

    fn add(&mut self, action: io::Result<SigId>) -> io::Result<()> {
        self.actions.push(action?);
        Ok(())
    }

    /// The next signal. Cancel-safe.
    ///
    /// # Errors
    /// The runtime cannot wait for a socket.
    pub async fn next(&mut self) -> io::Result<Signal> {
        loop {
            if let Some(signal) = self.waiting.pop_front() {
                return Ok(signal);
            }
            self.fill().await?;
        }
    }

    /// Waits for a stop, and removes no signal. Cancel-safe.
    ///
    /// # Errors
    /// The runtime cannot wait for a socket.
    pub async fn asked_to_stop(&mut self) -> io::Result<()> {
        while !self.waiting.contains(&Signal::Stop) {
            self.fill().await?;
        }
        Ok(())
    }

    /// A handle that tells at any time whether a stop was sent.
    #[must_use]
    pub fn stops(&self) -> Stops {
        Stops(Arc::clone(&self.flags.stopped))
    }

    /// Waits for more signals, and appends them to those that wait.
    async fn fill(&mut self) -> io::Result<()> {
        let count = tokio::select! {
            biased;
            count = self.stops.wait() => count?,
            result = self.requests.wait() => {
                result?;
                0
            }
        };
        self.waiting.extend(std::iter::repeat_n(Signal::Stop, count.min(STOPS_AT_MOST)));
        if self.flags.reload.swap(false, Ordering::SeqCst) {
            self.waiting.push_back(Signal::Reload);
        }
        match self.flags.last.swap(NONE, Ordering::SeqCst) {
            PAUSE => self.waiting.push_back(Signal::Pause),
            RESUME => self.waiting.push_back(Signal::Resume),
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for action in self.actions.drain(..) {
            unregister(action);
        }
    }
}

/// Tells whether a stop was sent.
#[derive(Clone, Debug)]
pub struct Stops(Arc<AtomicBool>);

impl Stops {
    /// Returns true if a stop was sent since the installation, also if [`Signals::next`] has returned it.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The reading end of a socket into which handlers write a byte for each signal.
#[derive(Debug)]
struct Wakeup {
    /// None until it is registered with the runtime that first waits.
    ready: Option<UnixStream>,
    unregistered: Option<StdStream>,
}

impl Wakeup {
    fn new() -> io::Result<(Self, StdStream)> {
        let (read, write) = StdStream::pair()?;
        read.set_nonblocking(true)?;
        Ok((Self { ready: None, unregistered: Some(read) }, write))
    }

    /// Waits for bytes, and returns their number: those that a full socket did not take are not among them.
    async fn wait(&mut self) -> io::Result<usize> {
        if let Some(socket) = self.unregistered.take() {
            self.ready = Some(UnixStream::from_std(socket)?);
        }
        let Some(socket) = &self.ready else {
            return Err(io::Error::other("the socket of signals could not be registered"));
        };
        let mut bytes = [0; 512];
        loop {
            socket.readable().await?;
            let mut count = 0;
            loop {
                match socket.try_read(&mut bytes) {
                    Ok(0) => return Err(io::Error::other("the socket of signals was closed")),
                    Ok(read) => count += read,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if count > 0 {
                return Ok(count);
            }
        }
    }
}
