//! The one place where children are started, and the thread on which the tasks live that look after them.
//!
//! A umask belongs to the whole process, and the daemon's is 077 while that of commands is 022. So children are started from
//! threads that have taken a umask of their own (`unshare(CLONE_FS)`), which keeps the quick `posix_spawn`. Starting blocks
//! until the program is loaded: what hangs on a dead file system holds only its own thread.
//!
//! A session keyring belongs to a thread too, and a child gets that of the thread which starts it. So a child that becomes another
//! user is started from a thread of its own, which has left the keyring of the daemon.

use super::command_setup::{Prepared, prepare, umask};
use super::detached_stdio::Kept;
use super::process_group::Group;
use crate::escape::printable;
use crate::failure::Failure;
use crate::host::Command;
use keyutils_raw::keyctl_join_session_keyring;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::fs::Mode;
use rustix::process::Pid;
use std::io::{self, ErrorKind};
use std::process::{Child, Command as Process};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

static HANDLE: OnceLock<Result<Handle, Failure>> = OnceLock::new();

thread_local! {
    /// Whether this thread has a umask and a working directory of its own.
    static ALONE: bool = unshare(CloneFlags::CLONE_FS).is_ok();
}

/// The runtime that looks after children; it does not matter on which one the caller runs, if any.
pub(in crate::host) fn handle() -> Result<&'static Handle, Failure> {
    HANDLE.get_or_init(start).as_ref().map_err(Clone::clone)
}

fn start() -> Result<Handle, Failure> {
    let trouble = |why| Failure::new(format!("no thread for commands: {why}"));
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name("spawn")
        .thread_keep_alive(Duration::from_mins(1))
        .max_blocking_threads(64)
        .build()
        .map_err(trouble)?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("processes".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(trouble)?;
    Ok(handle)
}

/// Starts a command on the calling thread; none where nobody wants it any more.
pub(in crate::host) fn spawn(
    command: &Command,
    group: &Group,
    stop: &CancellationToken,
    kept: Option<&Kept>,
) -> Result<Option<Child>, Failure> {
    let alone = ALONE.with(|alone| *alone);
    let Prepared { mut process, switches } = prepare(command, !alone)?;
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
        Failure::new(format!("{} cannot be started: {why}", printable(name)))
    })?;
    super::core_dumps::give_back(Pid::from_child(&child));
    group.started(Pid::from_child(&child));
    Ok(Some(child))
}

/// Calls this on a new thread that has a session keyring of its own, and a umask of its own where that is asked for.
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

/// Gives this thread a new session keyring. Where the kernel has no keyrings, or a filter of system calls refuses them to us, a
/// child cannot use any either.
fn leave_keyring() -> Result<(), Failure> {
    match keyctl_join_session_keyring(None) {
        Ok(_) => Ok(()),
        Err(why) if matches!(Errno::from_raw(why.0), Errno::ENOSYS | Errno::EPERM) => Ok(()),
        Err(why) => Err(Failure::new(format!("no session keyring for another user: {why}"))),
    }
}

/// Blocks no signal meanwhile: a child inherits what is blocked.
fn with_open_ears<T>(start: impl FnOnce() -> T) -> T {
    let before = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let started = start();
    // It fails only where it is asked for something that does not exist.
    let _restored = before.and_then(|before| before.thread_set_mask());
    started
}

/// A program that was just written may be busy for a moment: a child that another thread is starting holds a copy of the
/// descriptor it was written through until its own program is loaded.
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
