//! A system-call tracer: runs a program under ptrace and stops at every system call that changes something. The test
//! lets the call pass, kills the program there, or makes the call fail. With [`Scope::WithChildren`], children are
//! followed up to their exec.

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Pass,
    /// The program is killed before the call.
    Kill,
    /// The program is killed after the call, before it sees the result.
    KillAfter,
    Fail(Errno),
}

/// A system call before its execution.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The name of the call; empty for a call that changes nothing.
    pub(crate) name: &'static str,
    /// The name of the calling thread.
    pub(crate) thread: String,
    /// The path behind the first argument, if that is an open file.
    pub(crate) file: PathBuf,
}

/// The end of a traced program.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The exit code; none for a killed program.
    pub(crate) code: Option<i32>,
    /// The output of the program, both streams.
    pub(crate) said: String,
    /// The executed and the failed calls, in order.
    pub(crate) calls: Vec<Call>,
}

/// The calls at which the tracer stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Calls of the program that change something.
    Own,
    /// Calls of the program that change something, and those up to the exec of its children.
    WithChildren,
    /// Every call of the program.
    Everything,
}

/// The state of a thread between the entry and the exit of a call.
#[derive(Clone, Copy)]
enum Inside {
    /// A call that is executed.
    Call,
    /// A call after which the program is killed.
    Last,
    /// A call that was not executed, with the error that it returns.
    Refused(Errno),
}

/// Runs a command to its end; its output goes to a file in the given folder.
pub(crate) fn run(
    command: &Command,
    folder: &Path,
    mut decide: impl FnMut(&Call) -> Act,
) -> Traced {
    let output = folder.join("traced-output");
    let file = File::create(&output).expect("an output file");
    let both = (Stdio::from(file.try_clone().expect("the same file")), Stdio::from(file));
    let (mut child, leader) = seize(command, Scope::Own, both);
    let mut traced = Follower::new(leader, Scope::Own, &mut decide).follow();
    // The child is reaped already; the standard library does not know that.
    drop(child.try_wait());
    traced.said = std::fs::read_to_string(&output).unwrap_or_default();
    traced
}

/// A traced program that runs in parallel to its test.
pub(crate) struct Running {
    pub(crate) pid: u32,
    /// The standard error of the program.
    pub(crate) talk: Option<ChildStderr>,
    tracer: JoinHandle<Traced>,
}

impl Running {
    /// Waits for the end of the program.
    pub(crate) fn end(self) -> Traced {
        self.tracer.join().expect("the tracer does not panic")
    }
}

/// Starts a command and returns. Only the tracer, on its own thread, may wait for the process.
pub(crate) fn start(
    command: Command,
    scope: Scope,
    mut decide: impl FnMut(&Call) -> Act + Send + 'static,
) -> Running {
    let (sender, receiver) = mpsc::channel();
    let tracer = std::thread::spawn(move || {
        let (mut child, leader) = seize(&command, scope, (Stdio::null(), Stdio::piped()));
        sender.send((child.id(), child.stderr.take())).expect("somebody waits for it");
        let traced = Follower::new(leader, scope, &mut decide).follow();
        drop(child.try_wait());
        traced
    });
    let (pid, talk) = receiver.recv().expect("started");
    Running { pid, talk, tracer }
}

/// Starts a command that stops itself before its first call, and attaches to it.
fn seize(command: &Command, scope: Scope, (out, talk): (Stdio, Stdio)) -> (Child, Pid) {
    // The shell stops itself, so that the tracer misses no call.
    let child = Command::new("/bin/sh")
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_remove("STEADFAST_LOG")
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(talk)
        .current_dir("/")
        .spawn()
        .expect("started");
    let leader = Pid::from_raw(child.id().cast_signed());
    let stopped = waitpid(leader, Some(WaitPidFlag::WUNTRACED)).expect("waited for");
    assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    let mut options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    if scope == Scope::WithChildren {
        options |= Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
    }
    ptrace::seize(leader, options).expect("traced");
    kill(leader, Signal::SIGCONT).expect("continued");
    (child, leader)
}

/// The loop that handles every stop of a traced program.
struct Follower<'a> {
    leader: Pid,
    scope: Scope,
    decide: &'a mut dyn FnMut(&Call) -> Act,
    /// True once the program runs, and not the shell that starts it.
    begun: bool,
    inside: HashMap<Pid, Inside>,
    /// The children before their exec.
    children: HashSet<Pid>,
    calls: Vec<Call>,
}

impl<'a> Follower<'a> {
    fn new(leader: Pid, scope: Scope, decide: &'a mut dyn FnMut(&Call) -> Act) -> Self {
        Self {
            leader,
            scope,
            decide,
            begun: false,
            inside: HashMap::new(),
            children: HashSet::new(),
            calls: Vec::new(),
        }
    }

    fn follow(mut self) -> Traced {
        let mut code = None;
        let mut ended = false;
        // A child that is left before its exec would die with its tracer.
        while !ended || !self.children.is_empty() {
            // `__WNOTHREAD`: other threads of the test wait for their own children.
            let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
            let status = match waitpid(None, Some(flags)) {
                Err(Errno::ECHILD) if ended => break,
                status => status.expect("waited for"),
            };
            match status {
                WaitStatus::PtraceSyscall(thread) => self.syscall(thread),
                WaitStatus::PtraceEvent(thread, _, event) => self.event(thread, event),
                WaitStatus::Stopped(thread, signal) => go_on(thread, Some(signal)),
                WaitStatus::Exited(pid, found) if pid == self.leader => {
                    (ended, code) = (true, Some(found));
                }
                WaitStatus::Signaled(pid, ..) if pid == self.leader => ended = true,
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                    self.children.remove(&pid);
                }
                _ => {}
            }
        }
        Traced { code, said: String::new(), calls: self.calls }
    }

    fn event(&mut self, thread: Pid, event: i32) {
        match event {
            libc::PTRACE_EVENT_EXEC if thread == self.leader => self.begun = true,
            libc::PTRACE_EVENT_EXEC => {
                self.children.remove(&thread);
                // The child is detached before its call returns.
                if let Some(Inside::Last) = self.inside.remove(&thread) {
                    self.kill();
                }
                let left = ptrace::detach(thread, None);
                assert!(matches!(left, Ok(()) | Err(Errno::ESRCH)), "{left:?}");
                return;
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                if let Ok(child) = ptrace::getevent(thread) {
                    let child = i32::try_from(child).expect("a process number");
                    self.children.insert(Pid::from_raw(child));
                }
            }
            _ => {}
        }
        go_on(thread, None);
    }

    /// Handles the entry or the exit of a call.
    fn syscall(&mut self, thread: Pid) {
        if self.is_the_end(thread) {
            self.kill();
        }
        go_on(thread, None);
    }

    fn kill(&self) {
        let killed = kill(self.leader, Signal::SIGKILL);
        assert!(matches!(killed, Ok(()) | Err(Errno::ESRCH)), "{killed:?}");
    }

    /// Returns true if the program must be killed at this stop.
    fn is_the_end(&mut self, thread: Pid) -> bool {
        let Ok(mut registers) = ptrace::getregs(thread) else { return false };
        match self.inside.remove(&thread) {
            Some(Inside::Call) => return false,
            Some(Inside::Last) => return true,
            Some(Inside::Refused(error)) => {
                registers.rax = u64::from_ne_bytes((-i64::from(error as i32)).to_ne_bytes());
                let set = ptrace::setregs(thread, registers);
                assert!(matches!(set, Ok(()) | Err(Errno::ESRCH)), "{set:?}");
                return false;
            }
            None => {}
        }
        self.inside.insert(thread, Inside::Call);
        let Some(name) = self.name(thread, &registers).filter(|_| self.begun) else { return false };
        let of = format!("/proc/{thread}/comm");
        let thread_name = std::fs::read_to_string(of).unwrap_or_default().trim().to_owned();
        let file = std::fs::read_link(format!("/proc/{thread}/fd/{}", registers.rdi));
        let call = Call { name, thread: thread_name, file: file.unwrap_or_default() };
        let act = (self.decide)(&call);
        self.calls.push(call);
        match act {
            Act::Pass => {}
            Act::Kill => return true,
            Act::KillAfter => {
                self.inside.insert(thread, Inside::Last);
            }
            Act::Fail(error) => {
                registers.orig_rax = u64::MAX;
                if ptrace::setregs(thread, registers).is_ok() {
                    self.inside.insert(thread, Inside::Refused(error));
                }
            }
        }
        false
    }

    /// Returns the name of a call that needs a decision.
    fn name(&self, thread: Pid, registers: &libc::user_regs_struct) -> Option<&'static str> {
        match self.scope {
            Scope::Own => changes(thread, registers),
            Scope::WithChildren => changes(thread, registers).or_else(|| begins(registers)),
            Scope::Everything => Some(changes(thread, registers).unwrap_or_default()),
        }
    }
}

/// Resumes a thread; ignores a thread that was killed meanwhile.
fn go_on(thread: Pid, signal: Option<Signal>) {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => panic!("{thread} does not go on: {error}"),
    }
}

/// Returns the name of a call that starts something visible to others: a program, a socket or a lock.
fn begins(registers: &libc::user_regs_struct) -> Option<&'static str> {
    Some(match registers.orig_rax.cast_signed() {
        libc::SYS_execve => "execve",
        libc::SYS_bind => "bind",
        libc::SYS_listen => "listen",
        libc::SYS_flock => "flock",
        _ => return None,
    })
}

/// Returns the name of a call that changes a file system.
fn changes(thread: Pid, registers: &libc::user_regs_struct) -> Option<&'static str> {
    let making = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;
    let on_a_file = || {
        let link = std::fs::read_link(format!("/proc/{thread}/fd/{}", registers.rdi));
        link.is_ok_and(|path| path.is_absolute() && !path.ends_with("traced-output"))
    };
    Some(match registers.orig_rax.cast_signed() {
        libc::SYS_openat if registers.rdx & making != 0 => "openat",
        libc::SYS_openat2 => {
            let how = registers.rdx as ptrace::AddressType;
            let flags = ptrace::read(thread, how).ok()?.cast_unsigned();
            if flags & making == 0 {
                return None;
            }
            "openat2"
        }
        libc::SYS_write if on_a_file() => "write",
        libc::SYS_pwrite64 if on_a_file() => "pwrite64",
        libc::SYS_writev if on_a_file() => "writev",
        libc::SYS_ftruncate if on_a_file() => "ftruncate",
        libc::SYS_fallocate if on_a_file() => "fallocate",
        libc::SYS_copy_file_range => "copy_file_range",
        libc::SYS_fsync => "fsync",
        libc::SYS_fdatasync => "fdatasync",
        libc::SYS_syncfs => "syncfs",
        libc::SYS_mkdir | libc::SYS_mkdirat => "mkdirat",
        libc::SYS_unlink | libc::SYS_unlinkat => "unlinkat",
        libc::SYS_rmdir => "rmdir",
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => "renameat2",
        libc::SYS_linkat => "linkat",
        libc::SYS_symlinkat => "symlinkat",
        libc::SYS_fchmod | libc::SYS_fchmodat | libc::SYS_chmod => "fchmod",
        libc::SYS_fchown | libc::SYS_fchownat | libc::SYS_chown => "fchown",
        libc::SYS_fsetxattr | libc::SYS_setxattr | libc::SYS_lsetxattr => "fsetxattr",
        libc::SYS_utimensat => "utimensat",
        _ => return None,
    })
}
