//! A booted machine: systemd-nspawn over the cached Debian root, in memory, removed when dropped.

use crate::control_groups::ControlGroups;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest boot; an idle machine takes a second.
const BOOT: Duration = Duration::from_secs(90);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A running systemd-nspawn with its first process.
///
/// The machine dies with the *thread* that created it (the kernel's parent-death signal), so that even a killed test
/// leaves none behind.
#[derive(Debug)]
pub(crate) struct Machine {
    name: String,
    nspawn: Child,
    leader: Option<Pid>,
    groups: ControlGroups,
    console: PathBuf,
}

impl Machine {
    /// Starts a machine with these files mounted read-only; returns once its first process is systemd.
    pub(crate) fn start(files: &[(PathBuf, &str)]) -> Self {
        let root = debian_root();
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let groups = ControlGroups::make(&name);
        let console = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{name}.console"));
        let log = File::create(&console).expect("the console's file can be made");
        let nspawn = nspawn(&root, &name, files, &groups)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("sh can be started");
        let mut machine = Self { name, nspawn, leader: None, groups, console };
        machine.await_leader();
        machine
    }

    /// Returns the process id of the machine's first process, as seen from outside.
    pub(crate) fn leader(&self) -> Pid {
        self.leader.expect("a started machine has a leader")
    }

    /// Returns the console output.
    pub(crate) fn console(&self) -> String {
        fs::read_to_string(&self.console).unwrap_or_default()
    }

    fn await_leader(&mut self) {
        let limit = Instant::now() + BOOT;
        while self.leader.is_none() {
            if let Ok(Some(status)) = self.nspawn.try_wait() {
                panic!("host {} did not boot: {status}\n{}", self.name, self.console());
            }
            assert!(Instant::now() < limit, "host {} hangs\n{}", self.name, self.console());
            sleep(Duration::from_millis(5));
            self.leader = first_process(self.nspawn.id());
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The kernel ends all processes of the machine together with the first one; nspawn then cleans up.
        if let Some(leader) = self.leader {
            let _gone_already = kill(leader, Signal::SIGKILL);
        }
        let limit = Instant::now() + Duration::from_secs(20);
        while self.leader.is_some()
            && Instant::now() < limit
            && matches!(self.nspawn.try_wait(), Ok(None))
        {
            sleep(Duration::from_millis(2));
        }
        let _gone_already = self.nspawn.kill();
        let _reaped = self.nspawn.wait();
        self.groups.remove();
        let _absent = fs::remove_file(&self.console);
    }
}

/// Returns the command that becomes nspawn: a shell enters the control groups first, so that no process is outside
/// them.
fn nspawn(root: &str, name: &str, files: &[(PathBuf, &str)], groups: &ControlGroups) -> Command {
    let mut command = Command::new("sh");
    command.args([
        "-euc",
        "while [ \"$1\" != -- ]; do echo $$ >\"$1\"; shift; done; shift; exec \"$@\"",
    ]);
    command.arg("sh").args(groups.doors()).arg("--");
    command.args(["setpriv", "--pdeathsig", "KILL", "systemd-nspawn", "--quiet", "--boot"]);
    command.args(["--directory", root, "--volatile=overlay", "--machine", &format!("sf-{name}")]);
    command.args(["--register=no", "--keep-unit", "--private-network", "--link-journal=no"]);
    for (from, to) in files {
        command.arg(format!("--bind-ro={}:{to}", from.display()));
    }
    // No gettys and no timers: a host runs only the test's programs. Arguments of the first process are its kernel
    // command line.
    command.args(["--", "systemd.unit=multi-user.target", "systemd.mask=timers.target"]);
    command.args(["systemd.mask=getty.target", "systemd.mask=console-getty.service"]);
    command
}

/// Returns the child of nspawn that runs systemd in a process namespace of its own.
fn first_process(nspawn: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).ok()?;
    let ours = fs::read_link("/proc/self/ns/pid").ok()?;
    children.split_whitespace().find_map(|child| {
        let theirs = fs::read_link(format!("/proc/{child}/ns/pid")).ok()?;
        let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        (theirs != ours && name.trim() == "systemd")
            .then(|| child.parse().map(Pid::from_raw).ok())?
    })
}

/// Returns the path of the cached Debian root; builds it if missing.
fn debian_root() -> String {
    assert!(
        nix::unistd::geteuid().is_root(),
        "expected root, found uid {}; test hosts need it: run ./tests/run",
        nix::unistd::geteuid()
    );
    for tool in ["systemd-nspawn", "setpriv", "nsenter"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_ok();
        assert!(found, "expected {tool}, found none; apt-get install systemd-container util-linux");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/make-root");
    let made = Command::new(script).stderr(Stdio::inherit()).output().expect("make-root runs");
    assert!(made.status.success(), "no Debian root for test hosts: make-root said why above");
    String::from_utf8(made.stdout).expect("a path").trim().to_owned()
}
