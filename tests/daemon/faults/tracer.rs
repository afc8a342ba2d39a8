//! Runs a program under ptrace and stops at every system call of its threads that changes something, before it is made: to let it
//! pass, to kill the program there, or to let it fail. What the program itself starts is not traced.

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is to happen to a call.
pub(crate) enum Act {
    Pass,
    Kill,
    Fail(Errno),
}

/// A call that is about to be made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// The thread's name.
    pub(crate) thread: String,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Traced {
    /// None where it was killed.
    pub(crate) code: Option<i32>,
    /// What it printed, both streams.
    pub(crate) said: String,
    /// The calls that were made or refused, in order.
    pub(crate) calls: Vec<Call>,
}

/// What a thread is in the middle of.
#[derive(Clone, Copy)]
enum Inside {
    /// A call that goes its way.
    Call,
    /// A call that was not made, and what it is to answer.
    Refused(Errno),
}

/// Runs a command; its output goes to a file in the folder given.
pub(crate) fn run(
    command: &Command,
    folder: &Path,
    mut decide: impl FnMut(&Call) -> Act,
) -> Traced {
    let output = folder.join("traced-output");
    let file = File::create(&output).expect("an output file");
    // It stops itself, so that no call is made before it is traced.
    let mut child = Command::new("/bin/sh")
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_remove("STEADFAST_LOG")
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("the same file"))
        .stderr(file)
        .current_dir("/")
        .spawn()
        .expect("started");
    let leader = Pid::from_raw(child.id().cast_signed());
    let stopped = waitpid(leader, Some(WaitPidFlag::WUNTRACED)).expect("waited for");
    assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(leader, options).expect("traced");
    kill(leader, Signal::SIGCONT).expect("continued");
    let mut inside: HashMap<Pid, Inside> = HashMap::new();
    let mut calls = Vec::new();
    let mut begun = false;
    let code = loop {
        match waitpid(None, Some(WaitPidFlag::__WALL)).expect("waited for") {
            WaitStatus::PtraceSyscall(thread) => {
                let stop = syscall(leader, thread, begun, &mut inside, &mut |call| {
                    calls.push(call.clone());
                    decide(call)
                });
                if stop {
                    kill(leader, Signal::SIGKILL).expect("killed");
                } else {
                    go_on(thread, None);
                }
            }
            WaitStatus::PtraceEvent(thread, _, event) => {
                begun |= event == libc::PTRACE_EVENT_EXEC;
                go_on(thread, None);
            }
            WaitStatus::Stopped(thread, signal) => go_on(thread, Some(signal)),
            WaitStatus::Exited(pid, code) if pid == leader => break Some(code),
            WaitStatus::Signaled(pid, ..) if pid == leader => break None,
            _ => {}
        }
    };
    // It is reaped already; the standard library does not know.
    drop(child.try_wait());
    let said = std::fs::read_to_string(&output).unwrap_or_default();
    Traced { code, said, calls }
}

/// A thread that was killed meanwhile does not go on.
fn go_on(thread: Pid, signal: Option<Signal>) {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => panic!("{thread} does not go on: {error}"),
    }
}

/// The entry or the exit of a call; true where the program is to be killed.
fn syscall(
    leader: Pid,
    thread: Pid,
    begun: bool,
    inside: &mut HashMap<Pid, Inside>,
    decide: &mut dyn FnMut(&Call) -> Act,
) -> bool {
    let Ok(mut registers) = ptrace::getregs(thread) else { return false };
    match inside.remove(&thread) {
        Some(Inside::Call) => return false,
        Some(Inside::Refused(error)) => {
            registers.rax = u64::from_ne_bytes((-i64::from(error as i32)).to_ne_bytes());
            let set = ptrace::setregs(thread, registers);
            assert!(matches!(set, Ok(()) | Err(Errno::ESRCH)), "{set:?}");
            return false;
        }
        None => {}
    }
    inside.insert(thread, Inside::Call);
    let Some(name) = changes(leader, thread, &registers).filter(|_| begun) else { return false };
    let of = format!("/proc/{leader}/task/{thread}/comm");
    let thread_name = std::fs::read_to_string(of).unwrap_or_default().trim().to_owned();
    match decide(&Call { name, thread: thread_name }) {
        Act::Pass => false,
        Act::Kill => true,
        Act::Fail(error) => {
            registers.orig_rax = u64::MAX;
            if ptrace::setregs(thread, registers).is_ok() {
                inside.insert(thread, Inside::Refused(error));
            }
            false
        }
    }
}

/// The name of a call that changes a file system.
fn changes(leader: Pid, thread: Pid, registers: &libc::user_regs_struct) -> Option<&'static str> {
    let making = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;
    let on_a_file = || {
        let link = std::fs::read_link(format!("/proc/{leader}/fd/{}", registers.rdi));
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
