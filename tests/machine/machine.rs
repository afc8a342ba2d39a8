//! A virtual machine: qemu with Debian's kernel, which writes over a root that it never changes; killed when dropped.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest boot. An emulated machine takes a minute on a busy host.
const BOOT: Duration = Duration::from_mins(10);

/// The longest wait for a state; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_mins(3);

/// A booted machine with `/usr/bin/steadfast` and its unit, not started, and an empty disk `/dev/vdb` of 64 MiB.
#[derive(Debug)]
pub(crate) struct Machine {
    qemu: Child,
    agent: BufReader<UnixStream>,
    files: MachineFiles,
}

/// The files of a machine on this host.
#[derive(Debug)]
struct MachineFiles {
    /// The kernel, the RAM disk and the root, which are never written.
    base: PathBuf,
    folder: TempDir,
    /// Folders of this host that the machine can read, each with the name of its mount.
    shares: Vec<(&'static str, PathBuf)>,
}

/// The result of a command on the machine.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exit code.
    pub(crate) code: i32,
    /// The standard output.
    pub(crate) stdout: String,
    /// The standard error.
    pub(crate) stderr: String,
}

impl Machine {
    /// Boots a machine; returns once the agent answers.
    pub(crate) fn boot() -> Self {
        Self::boot_with(Vec::new())
    }

    /// Boots a machine that can mount these folders: [`Self::mount_shares`].
    pub(crate) fn boot_with(shares: Vec<(&'static str, PathBuf)>) -> Self {
        let files = MachineFiles::new(shares);
        let (qemu, agent) = files.start();
        let mut machine = Self { qemu, agent, files };
        machine.expect_ready();
        machine.shell(
            "install -m 0755 /opt/steadfast/steadfast /usr/bin/steadfast
             install -m 0644 /opt/steadfast/steadfast.service /usr/lib/systemd/system/steadfast.service
             systemctl daemon-reload",
        );
        machine
    }

    /// Mounts each shared folder read-only as `/opt/NAME`. A restart ends the mounts.
    pub(crate) fn mount_shares(&mut self) {
        for (name, _) in self.files.shares.clone() {
            self.shell(&format!(
                "mkdir -p /opt/{name}
                 mount -t 9p -o trans=virtio,ro,version=9p2000.L,msize=262144 {name} /opt/{name}"
            ));
        }
    }

    /// Ends the machine as a loss of power does and starts another with the same disks.
    pub(crate) fn cut_power(&mut self) {
        self.shell("sync");
        let _gone_already = self.qemu.kill();
        let _reaped = self.qemu.wait();
        (self.qemu, self.agent) = self.files.start();
        self.expect_ready();
    }

    /// Runs a shell script as root and waits for its end.
    pub(crate) fn run(&mut self, script: &str) -> Answer {
        let line = format!("{}\n", encode(script.as_bytes()));
        self.agent.get_mut().write_all(line.as_bytes()).expect("the agent reads");
        let answer = self.read_line();
        let mut parts = answer.trim_end().split(' ');
        let code = parts.next().and_then(|code| code.parse().ok()).expect("an exit code");
        let mut text = || {
            let part = parts.next().expect("a part of the answer").trim_end_matches('.');
            String::from_utf8_lossy(&decode(part)).into_owned()
        };
        Answer { code, stdout: text(), stderr: text() }
    }

    /// Runs a shell script that must succeed; returns its output.
    pub(crate) fn shell(&mut self, script: &str) -> String {
        let answer = self.run(&format!("set -eu\n{script}"));
        let journal = if answer.code == 0 { String::new() } else { self.report() };
        assert_eq!(answer.code, 0, "{script}\n{}{}\n{journal}", answer.stdout, answer.stderr);
        answer.stdout
    }

    /// Writes a file.
    pub(crate) fn write(&mut self, path: &str, content: &str) {
        let encoded = encode(content.as_bytes());
        self.shell(&format!(
            "mkdir -p \"$(dirname '{path}')\"; base64 -d <<<'{encoded}' >'{path}'"
        ));
    }

    /// Waits until a script ends with 0 and prints exactly this text.
    pub(crate) fn until(&mut self, script: &str, expected: &str) {
        self.until_within(PATIENCE, script, expected);
    }

    /// Waits for a state as [`Self::until`], at most this long.
    pub(crate) fn until_within(&mut self, patience: Duration, script: &str, expected: &str) {
        let limit = Instant::now() + patience;
        loop {
            let answer = self.run(script);
            if answer.code == 0 && answer.stdout == expected {
                return;
            }
            if Instant::now() > limit {
                let journal = self.report();
                panic!("{script}\nexpected:\n{expected}\nfound:\n{answer:?}\n{journal}");
            }
            sleep(Duration::from_millis(200));
        }
    }

    /// Shuts the machine down and starts another with the same disks; returns once the agent answers.
    ///
    /// An emulated processor that is reset by a restart can stall for minutes, so the new machine is a process of its
    /// own.
    pub(crate) fn reboot(&mut self) {
        let line = format!("{}\n", encode(b"systemctl reboot"));
        self.agent.get_mut().write_all(line.as_bytes()).expect("the agent reads");
        let limit = Instant::now() + PATIENCE;
        while self.qemu.try_wait().expect("a child").is_none() {
            assert!(Instant::now() < limit, "the machine does not end\n{}", self.files.console());
            sleep(Duration::from_millis(50));
        }
        (self.qemu, self.agent) = self.files.start();
        self.expect_ready();
    }

    fn expect_ready(&mut self) {
        let ready = self.read_line();
        assert_eq!(ready.trim(), "ready", "{}", self.files.console());
    }

    /// Returns the log of the service for the message of a failure.
    fn report(&mut self) -> String {
        let script =
            "journalctl --no-pager -n 60 -o short-precise -u steadfast; dmesg | tail -n 10";
        self.run(script).stdout
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        if let Err(error) = self.agent.read_line(&mut line) {
            panic!("the machine does not answer: {error}\n{}", self.files.console());
        }
        assert!(!line.is_empty(), "the machine ended\n{}", self.files.console());
        line
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _gone_already = self.qemu.kill();
        let _reaped = self.qemu.wait();
    }
}

/// Makes kernel, RAM disk and root if they are missing; returns their folder.
fn make_machine() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/make-machine");
    let made = Command::new(script).stderr(Stdio::inherit()).output().expect("make-machine runs");
    assert!(made.status.success(), "make-machine said why above");
    PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim())
}

/// Fills the folder that the machine sees as `/opt/steadfast`.
/// The program has no debug information: the folder is slow.
fn provide_programs(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(folder.join("steadfast"))
        .arg(env!("CARGO_BIN_EXE_steadfast"))
        .status();
    assert!(stripped.is_ok_and(|status| status.success()), "strip of binutils failed");
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/steadfast.service");
    fs::copy(unit, folder.join("steadfast.service")).expect("the unit");
}

impl MachineFiles {
    fn new(shares: Vec<(&'static str, PathBuf)>) -> Self {
        let base = make_machine();
        let folder = TempDir::new().expect("a folder");
        let files = Self { base, folder, shares };
        provide_programs(&files.path("programs"));
        fs::File::create(files.path("disk.img"))
            .and_then(|file| file.set_len(64 << 20))
            .expect("a disk");
        // The root of this machine: what it writes over the common one.
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(files.base.join("root.img"))
            .arg(files.path("root.qcow2"))
            .status();
        assert!(made.is_ok_and(|status| status.success()), "qemu-img of qemu-utils failed");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn console(&self) -> String {
        fs::read_to_string(self.path("console")).unwrap_or_default()
    }

    /// Starts qemu and connects with the agent's port.
    fn start(&self) -> (Child, BufReader<UnixStream>) {
        let _none_yet = fs::remove_file(self.path("agent"));
        let mut qemu = self.start_qemu();
        let agent = connect(&self.path("agent"), &mut qemu);
        (qemu, agent)
    }

    fn start_qemu(&self) -> Child {
        let accelerator = if has_virtualisation() { "q35,accel=kvm:tcg" } else { "q35,accel=tcg" };
        let log = fs::File::create(self.path("qemu")).expect("a log");
        let drive = |name: &str, format: &str| {
            let file = self.path(name);
            format!("file={},format={format},if=virtio,cache=unsafe", file.display())
        };
        let agent = self.path("agent");
        let programs = self.path("programs");
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64", "-machine", accelerator])
            .args(["-cpu", "max", "-m", "768", "-smp", "1", "-nodefaults", "-display", "none"])
            .arg("-no-reboot")
            .arg("-kernel")
            .arg(self.base.join("vmlinuz"))
            .arg("-initrd")
            .arg(self.base.join("ram.gz"))
            .args([
                "-append",
                "console=ttyS0 quiet panic=-1 mitigations=off systemd.mask=timers.target",
            ])
            .arg("-serial")
            .arg(format!("file:{}", self.path("console").display()))
            .args(["-drive", &drive("root.qcow2", "qcow2"), "-drive", &drive("disk.img", "raw")])
            .args(["-device", "virtio-serial"])
            .args(["-device", "virtserialport,chardev=agent,name=agent"])
            .arg("-chardev")
            .arg(format!("socket,path={},server=on,wait=off,id=agent", agent.display()))
            .args(share("programs", &programs))
            .args(self.shares.iter().flat_map(|(name, folder)| share(name, folder)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("setpriv of util-linux can be started")
    }
}

/// Returns the arguments that let a machine mount a folder read-only by this name.
fn share(name: &str, folder: &Path) -> [String; 2] {
    let folder = folder.display();
    [
        "-virtfs".to_owned(),
        format!("local,path={folder},mount_tag={name},security_model=none,readonly=on"),
    ]
}

/// Returns true if the processor can run virtual machines. The device alone says nothing: on some hosts of this sort a
/// machine that uses it hangs.
fn has_virtualisation() -> bool {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Path::new("/dev/kvm").exists()
        && processor.split_whitespace().any(|flag| ["vmx", "svm"].contains(&flag))
}

/// Connects with the agent's port, which qemu makes.
fn connect(socket: &Path, qemu: &mut Child) -> BufReader<UnixStream> {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(stream) = UnixStream::connect(socket) {
            stream.set_read_timeout(Some(BOOT)).expect("a time limit");
            return BufReader::new(stream);
        }
        if let Ok(Some(status)) = qemu.try_wait() {
            let log = socket.with_file_name("qemu");
            panic!("qemu ended: {status}: {}", fs::read_to_string(log).unwrap_or_default());
        }
        assert!(Instant::now() < limit, "qemu makes no port");
        sleep(Duration::from_millis(20));
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes in base64.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for index in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * index) & 63) as usize];
            text.push(if index > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// Reads base64.
fn decode(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|digit| u32::try_from(digit).expect("a digit"))
        .collect();
    let mut bytes = Vec::new();
    for chunk in digits.chunks(4) {
        let number = chunk.iter().fold(0, |sum, digit| sum << 6 | digit) << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&number.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}

#[test]
fn base64_of_all_lengths_returns() {
    for length in 0..20_u8 {
        let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(91)).collect();
        assert_eq!(decode(&encode(&bytes)), bytes);
    }
    assert_eq!(encode(b"steadfast"), "c3RlYWRmYXN0");
}
