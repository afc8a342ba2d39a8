//! Supervises one child process from its start until it is reaped: its pipes, its deadline and its end.

use super::detached_stdio::DetachedStdio;
use super::line_stream::{Line, Splitter};
use super::process_group::{Group, is_alive};
use super::spawner;
use super::spawner::spawn;
use super::working_directory::not_entered;
use crate::failure::Failure;
use crate::host::{Captured, Command, End, Finished};
use crate::secrets::secret_text::Secret;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// The time limit for output that another process still holds open.
const TAIL: Duration = Duration::from_millis(100);
/// The interval of checks for the end of a group after TERM.
const LOOK: Duration = Duration::from_millis(20);

/// The treatment of processes that the leader leaves behind when it ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Leftover {
    Kill,
    Spare,
}

/// A child to start.
#[derive(Debug)]
pub(in crate::host) struct Job {
    pub(in crate::host) command: Command,
    pub(in crate::host) stop: CancellationToken,
    pub(in crate::host) group: Arc<Group>,
    pub(in crate::host) leftover: Leftover,
    /// The receiver of the start.
    pub(in crate::host) started: Option<oneshot::Sender<()>>,
    /// The receiver of output lines, which are then not stored.
    pub(in crate::host) lines: Option<mpsc::Sender<Line>>,
    /// Files instead of pipes for input and output, for a child that must outlive this process.
    pub(in crate::host) detached_stdio: Option<Arc<DetachedStdio>>,
}

/// Starts a child and supervises it until it is reaped.
pub(in crate::host) async fn supervise(mut job: Job) -> Result<Finished, Failure> {
    let (command, group, stop) = (job.command.clone(), Arc::clone(&job.group), job.stop.clone());
    let kept = job.detached_stdio.clone();
    let spawn = move || spawn(&command, &group, &stop, kept.as_deref());
    let spawned = tokio::task::spawn_blocking(spawn).await;
    let spawned =
        spawned.map_err(|why| Failure::new(format!("the start of a command: {why}")))??;
    let Some(mut child) = spawned else { return Ok(Finished::never()) };
    if let Some(started) = job.started.take() {
        // A dropped receiver has abandoned the group, which is killed.
        if started.send(()).is_err() {}
    }
    let leader = Pid::from_child(&child);
    let mut output = Output::default();
    let followed = match Pipes::open(&mut child) {
        Ok(pipes) => Ok(follow(&job, leader, pipes, &mut output).await),
        Err(why) => {
            job.group.signal(Signal::KILL);
            exited(leader).await;
            Err(Failure::new(format!("the pipes of a command cannot be read: {why}")))
        }
    };
    job.group.reaped();
    let status = child
        .wait()
        .map_err(|why| Failure::new(format!("the command cannot be waited for: {why}")))?;
    let (cut_off, held) = followed?;
    if let Some(kept) = &job.detached_stdio {
        let read = kept.read();
        (output.stdout, output.stderr) =
            read.map_err(|why| Failure::new(format!("the output of the command was lost: {why}")))?;
    }
    let end = cut_off.unwrap_or_else(|| natural(status));
    if let Some(failure) = not_entered(&job.command, end, &output.stderr) {
        return Err(failure);
    }
    Ok(Finished { end, stdout: output.stdout, stderr: output.stderr, held })
}

fn natural(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Killed(signal.unwrap_or_default()),
    }
}

/// Waits for the end of the leader. Returns the reason of an early end, if any, and true if another process
/// still holds the output.
async fn follow(job: &Job, leader: Pid, pipes: Pipes, output: &mut Output) -> (Option<End>, bool) {
    let mut drained = std::pin::pin!(pipes.drain(output, job));
    let mut is_open = true;
    let deadline = job.command.timeout.map(|limit| Instant::now() + limit);
    let cut_off = loop {
        tokio::select! {
            biased;
            () = exited(leader) => break None,
            () = job.stop.cancelled() => break Some(End::Cancelled { started: true }),
            () = until(deadline) => break Some(End::TimedOut),
            () = &mut drained, if is_open => is_open = false,
        }
    };
    if cut_off.is_some() {
        let ending = terminate(&job.group, leader);
        let mut ending = std::pin::pin!(ending);
        loop {
            tokio::select! {
                () = &mut ending => break,
                () = &mut drained, if is_open => is_open = false,
            }
        }
    } else if job.leftover == Leftover::Kill {
        if is_open {
            is_open = timeout(TAIL, &mut drained).await.is_err();
        }
        job.group.signal(Signal::KILL);
    }
    if is_open {
        is_open = timeout(TAIL, &mut drained).await.is_err();
    }
    (cut_off, is_open)
}

/// Sends TERM to the group, and KILL to the remaining processes after the grace period.
async fn terminate(group: &Group, leader: Pid) {
    group.signal(Signal::TERM);
    let over = Instant::now() + GRACE;
    while Instant::now() < over {
        let is_gone = match spawner::handle() {
            Ok(handle) => {
                matches!(handle.spawn_blocking(move || is_alive(leader)).await, Ok(false))
            }
            // Without a thread for the look, the processes get the whole grace period.
            Err(_) => false,
        };
        if is_gone {
            break;
        }
        sleep(LOOK).await;
    }
    group.signal(Signal::KILL);
    exited(leader).await;
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of the leader without reaping, so that its number cannot be reused.
async fn exited(leader: Pid) {
    // Kernels before 5.3 and some containers have no pidfd, so the process is polled there.
    let pidfd = pidfd_open(leader, PidfdFlags::empty()).ok();
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; an owned descriptor is sound in both"
    )]
    let pidfd = pidfd.and_then(|pidfd| AsyncFd::new(pidfd).ok());
    while !has_exited(leader) {
        match &pidfd {
            Some(pidfd) => drop(pidfd.readable().await),
            None => sleep(LOOK).await,
        }
    }
}

fn has_exited(leader: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(leader), options), Ok(None) | Err(rustix::io::Errno::INTR))
}

#[derive(Debug, Default)]
struct Output {
    stdout: Captured,
    stderr: Captured,
}

#[derive(Debug)]
struct Pipes {
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

impl Pipes {
    fn open(child: &mut Child) -> io::Result<Self> {
        let receive = |end: Option<OwnedFd>| end.map(pipe::Receiver::from_owned_fd).transpose();
        let stdin: Option<OwnedFd> = child.stdin.take().map(Into::into);
        Ok(Self {
            stdin: stdin.map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: receive(child.stdout.take().map(Into::into))?,
            stderr: receive(child.stderr.take().map(Into::into))?,
        })
    }

    /// Reads the pipes until all writers have closed them.
    async fn drain(self, output: &mut Output, job: &Job) {
        let Output { stdout, stderr } = output;
        let feed = feed(self.stdin, job.command.stdin.as_ref().map_or("", Secret::reveal));
        let complaints = keep(self.stderr, stderr);
        match &job.lines {
            None => {
                tokio::join!(feed, complaints, keep(self.stdout, stdout));
            }
            Some(lines) => {
                tokio::join!(feed, complaints, split(self.stdout, lines));
            }
        }
    }
}

/// Writes the input; a child that does not read everything is no error.
async fn feed(stdin: Option<pipe::Sender>, text: &str) {
    let Some(stdin) = stdin else { return };
    let mut rest = text.as_bytes();
    while !rest.is_empty() && stdin.writable().await.is_ok() {
        match stdin.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

async fn keep(stream: Option<pipe::Receiver>, captured: &mut Captured) {
    let Some(stream) = stream else { return };
    while stream.readable().await.is_ok() && take(&stream, |bytes| captured.push(bytes)) {}
}

async fn split(stream: Option<pipe::Receiver>, lines: &mpsc::Sender<Line>) {
    let Some(stream) = stream else { return };
    let mut splitter = Splitter::default();
    let mut is_open = true;
    while is_open && stream.readable().await.is_ok() {
        is_open = take(&stream, |bytes| splitter.push(bytes));
        if !is_open {
            splitter.finish();
        }
        for line in splitter.ready() {
            if lines.send(line).await.is_err() {
                return;
            }
        }
    }
}

/// Reads once; returns false at the end. The buffer is on the stack, so a waiting task needs no memory for
/// one.
fn take(stream: &pipe::Receiver, mut sink: impl FnMut(&[u8])) -> bool {
    let mut buffer = [0; 16 * 1024];
    match stream.try_read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            sink(&buffer[..count]);
            true
        }
        Err(why) => matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
