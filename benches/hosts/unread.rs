//! Repairs of a daemon with an unread log, compared with those of a daemon with a healthy reader.

use super::drift::Repairs;
use super::process::{Held, STEADFAST, apply, timed};
use super::report::Report;
use super::tree::Tree;
use super::{Bench, Failure};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

const FILES: usize = 2000;

/// Measures a full standard error, and a hung journal.
pub(crate) fn unread(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let read_tree = held_tree(bench)?;
    let mut read = Held::daemon(&read_tree)?;
    read.converged()?;

    let (reader, full) = full_pipe()?;
    let full_tree = held_tree(bench)?;
    let mut command = run(&full_tree, "json");
    command.stderr(full);
    measure(bench, (&read_tree, &full_tree), command, |theirs, ours| {
        report.ratio("a repair beside a full standard error", theirs, ours, 1.1);
    })?;
    drop((reader, read));

    let (healthy_tree, hung_tree) = (held_tree(bench)?, held_tree(bench)?);
    let healthy = journal(&healthy_tree)?;
    std::thread::spawn(move || while healthy.recv(&mut [0; 4096]).is_ok() {});
    let mut beside = beside_journal(&healthy_tree);
    let beside = Held::of(&mut beside)?;
    wait(&healthy_tree)?;
    let hung = journal(&hung_tree)?;
    fill(&hung_tree)?;
    measure(bench, (&healthy_tree, &hung_tree), beside_journal(&hung_tree), |theirs, ours| {
        report.ratio("a repair beside a journal that hangs", theirs, ours, 1.1);
    })?;
    drop((hung, beside));
    Ok(())
}

/// Measures repairs in turn: on a tree with a running daemon, and on one with the daemon that this command starts.
fn measure(
    bench: &Bench,
    (calm, tree): (&Tree, &Tree),
    mut command: Command,
    then: impl FnOnce(&super::report::Sample, &super::report::Sample),
) -> Result<(), Failure> {
    let _daemon = Held::of(&mut command)?;
    wait(tree)?;
    let mut repairs = Repairs::new(calm, tree, 0)?;
    for _ in 0..bench.rounds(500) {
        repairs.add()?;
    }
    let (theirs, ours) = repairs.samples();
    then(theirs, ours);
    Ok(())
}

/// Creates a converged tree.
fn held_tree(bench: &Bench) -> Result<Tree, Failure> {
    let tree = Tree::new(bench, FILES, false)?;
    timed(apply(&tree))?;
    Ok(tree)
}

fn run(tree: &Tree, log: &str) -> Command {
    let mut command = Command::new(STEADFAST);
    command.arg("run").arg(&tree.graph).arg("--state-dir").arg(&tree.state);
    command.args(["--sweep", "0", "--log", log]).stdout(Stdio::null());
    command
}

/// Waits until the daemon of this tree reports convergence.
fn wait(tree: &Tree) -> Result<(), Failure> {
    let mut command = Command::new(STEADFAST);
    command.args(["wait", "--timeout", "120", "--state-dir"]).arg(&tree.state);
    timed(command).map(drop)
}

/// Creates a full pipe and returns both ends.
fn full_pipe() -> Result<(File, File), Failure> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let mut write = File::from(write);
    while write.write(&[b'\n'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&write, false)?;
    Ok((read.into(), write))
}

/// Returns the folder of the journal socket of a tree.
fn folder(tree: &Tree) -> std::path::PathBuf {
    tree.state.with_extension("journal")
}

/// Creates the socket of a simulated journal.
fn journal(tree: &Tree) -> Result<UnixDatagram, Failure> {
    std::fs::create_dir(folder(tree))?;
    bind(&folder(tree).join("socket"))
}

/// Binds a socket through /proc/self/fd, since the path can be longer than a socket address.
fn bind(path: &Path) -> Result<UnixDatagram, Failure> {
    let folder = File::open(path.parent().ok_or("no parent")?)?;
    let short = format!("/proc/self/fd/{}/socket", std::os::fd::AsRawFd::as_raw_fd(&folder));
    Ok(UnixDatagram::bind(short)?)
}

/// Sends to the journal of a tree until its socket is full.
fn fill(tree: &Tree) -> Result<(), Failure> {
    let folder = File::open(folder(tree))?;
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.connect(format!("/proc/self/fd/{}/socket", std::os::fd::AsRawFd::as_raw_fd(&folder)))?;
    while sender.send(b"MESSAGE=x\n").is_ok() {}
    Ok(())
}

/// Creates the command of a daemon with this journal, in its own mount namespace.
fn beside_journal(tree: &Tree) -> Command {
    let enter = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
                 mount --bind \"$0\" /run/systemd/journal && exec \"$@\"";
    let run = run(tree, "journald");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", enter]);
    command.arg(folder(tree)).arg(run.get_program()).args(run.get_args());
    command.stdout(Stdio::null());
    command
}
