//! Starts all child processes, and owns the thread for the tasks that supervise them.
//!
//! A umask belongs to the whole process; the daemon's is 077 and that of commands is 022. So children are
//! started from threads with a umask of their own (`unshare(CLONE_FS)`), which preserves the quick
//! `posix_spawn`. A start blocks until the program is loaded, so a dead file system blocks only the thread of
//! one start.
//!
//! A session keyring belongs to a thread, and a child inherits that of the starting thread. So a child that
//! changes its user is started from a thread of its own, which has left the daemon's keyring.

use super::command_setup::{Prepared, prepare, umask};
use super::detached_stdio::DetachedStdio;
use super::process_group::Group;
use crate::failure::Failure;
use crate::host::Command;
use crate::secrets::escape::printable;
use keyutils_raw::keyctl_join_session_keyring;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::fs::Mode;
use rustix::process::Pid;
use std::io::{self, ErrorKind};
use std::process::{Child, Command as Process};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// The time for which an idle thread of the runtime stays.
const KEEP: Duration = Duration::from_mins(1);

/// The runtime with the time at which it surely had a thread.
static RUNTIME: Mutex<Option<(Handle, Instant)>> = Mutex::new(None);

thread_local! {
    /// True if this thread has a umask and a working directory of its own.
    static ALONE: bool = unshare(CloneFlags::CLONE_FS).is_ok();
}

/// The age from which the threads of the runtime may all have ended.
const FRESH: Duration = Duration::from_secs(30);

/// Returns the runtime that supervises children; the caller may run on any runtime or none. Tokio panics if it needs a
/// first thread and none can be started, so this function fails instead: a later call tries again.
pub(in crate::host) fn handle() -> Result<Handle, Failure> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((handle, since)) = &*runtime
        && since.elapsed() < FRESH
    {
        return Ok(handle.clone());
    }
    let handle = match &*runtime {
        Some((handle, _)) => handle.clone(),
        None => start()?,
    };
    start_thread("spawn-test", || ())?.join().unwrap_or_default();
    // This thread stays for `KEEP` after its last job.
    handle.spawn_blocking(|| ());
    *runtime = Some((handle.clone(), Instant::now()));
    Ok(handle)
}

fn start_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let failure = |why| Failure::new(format!("no thread for commands: {why}")).passing();
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(failure)
}

fn start() -> Result<Handle, Failure> {
    let (sender, started) = sync_channel(1);
    // The thread makes its runtime itself: a runtime must not be dropped where a start of the thread fails.
    start_thread("processes", move || {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("spawn")
            .thread_keep_alive(KEEP)
            .max_blocking_threads(64)
            .build();
        match runtime {
            Ok(runtime) => {
                sender.send(Ok(runtime.handle().clone())).unwrap_or_default();
                runtime.block_on(std::future::pending::<()>());
            }
            Err(why) => sender.send(Err(why)).unwrap_or_default(),
        }
    })?;
    let failure =
        |why: &dyn ToString| Failure::new(format!("no thread for commands: {}", why.to_string()));
    started.recv().map_err(|why| failure(&why))?.map_err(|why| failure(&why))
}

fn is_shortage(error: &io::Error) -> bool {
    let found = error.raw_os_error().map(Errno::from_raw);
    matches!(found, Some(Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE))
}

/// Starts a command on the calling thread; none if no caller wants the command any more.
pub(in crate::host) fn spawn(
    command: &Command,
    group: &Group,
    stop: &CancellationToken,
    kept: Option<&DetachedStdio>,
) -> Result<Option<Child>, Failure> {
    let alone = ALONE.with(|alone| *alone);
    // The open directory is needed until the start.
    let Prepared { mut process, switches, entry: _entry } = prepare(command, !alone)?;
    if let Some(kept) = kept {
        kept.attach(&mut process)
            .map_err(|why| Failure::new(format!("the output of a command: {why}")))?;
    }
    if stop.is_cancelled() || !group.is_wanted() {
        return Ok(None);
    }
    let mut start = || {
        if alone {
            rustix::process::umask(Mode::from_raw_mode(umask(command)));
        }
        with_open_ears(|| start_process(&mut process))
    };
    let started = if switches { with_own_keyring(alone, start)? } else { start() };
    let child = started.map_err(|why| {
        let name = command.argv.first().map_or("", String::as_str);
        let failure = Failure::new(format!("{} cannot be started: {why}", printable(name)));
        // A lack of tasks, memory or descriptors passes without an event.
        if is_shortage(&why) { failure.passing() } else { failure }
    })?;
    super::core_dumps::give_back(Pid::from_child(&child));
    group.started(Pid::from_child(&child));
    Ok(Some(child))
}

/// Calls a function on a new thread with its own session keyring, and with its own umask on request.
fn with_own_keyring<T: Send>(alone: bool, start: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let on_its_thread = || {
        if alone && !ALONE.with(|alone| *alone) {
            return Err(Failure::new("the start thread cannot set its own umask"));
        }
        leave_keyring()?;
        Ok(start())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("spawn-user".to_owned());
        let thread = thread
            .spawn_scoped(scope, on_its_thread)
            .map_err(|why| Failure::new(format!("no thread to start a command: {why}")))?;
        let panicked = |_| Err(Failure::new("the thread that starts a command panicked"));
        thread.join().unwrap_or_else(panicked)
    })
}

/// Gives this thread a new session keyring. If the kernel has no keyrings, or a filter of system calls
/// forbids them, a child cannot use any either.
fn leave_keyring() -> Result<(), Failure> {
    match keyctl_join_session_keyring(None) {
        Ok(_) => Ok(()),
        Err(why) if matches!(Errno::from_raw(why.0), Errno::ENOSYS | Errno::EPERM) => Ok(()),
        Err(why) => Err(Failure::new(format!("no session keyring for another user: {why}"))),
    }
}

/// Unblocks all signals during a call, because a child inherits blocked signals.
fn with_open_ears<T>(start: impl FnOnce() -> T) -> T {
    let before = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let started = start();
    // The call fails only for an invalid request.
    let _restored = before.and_then(|before| before.thread_set_mask());
    started
}

/// Starts a process, and retries if the program file is busy: another thread's new child holds a copy of the
/// descriptor that wrote the program until its own program is loaded.
fn start_process(process: &mut Process) -> io::Result<Child> {
    let mut patience = [1, 2, 4, 8, 16, 32, 64, 128].map(Duration::from_millis).into_iter();
    loop {
        match process.spawn() {
            Err(why) if why.kind() == ErrorKind::ExecutableFileBusy => match patience.next() {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(why),
            },
            result => return result,
        }
    }
}
