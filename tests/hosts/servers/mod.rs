//! The servers of `examples/servers`, each applied from nothing on a fresh host and judged by other programs
//! (`tests/run --slow servers`; `STEADFAST_TEST_SUITE=trixie` takes Debian 13).
//!
//! A server is judged by its own programs (`nginx -t`, `sshd -t`, …), by pytest-testinfra, by Ansible in check mode,
//! and by `puppet resource`; `tests/servers` has what they expect.

mod cookbook;
mod database;
mod hardened;
mod judges;
mod migrated;
mod opinions;
mod soak;
mod speed;
mod web;

use crate::host::{Host, within};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The wait for a whole server; packages take most of it.
const WHOLE: Duration = Duration::from_mins(2);

/// The settings of the unit: the graph is a copy of the examples.
const SETTINGS: &str = "/etc/steadfast/steadfast.yaml";

/// Runs a program of `tests/hosts` that prints a folder.
fn folder_of(program: &str, arguments: &[&str]) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(program);
    let mut command = Command::new(script);
    let made = command.args(arguments).stderr(Stdio::inherit()).output().expect("runs");
    assert!(made.status.success(), "{program} said why above");
    PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim())
}

/// Boots a host with a repository of these packages and of those of the judges. The examples are in
/// `/etc/steadfast/examples`; the service is not started.
fn boot(graph: &str, packages: &[&str]) -> Host {
    let name = Path::new(graph).file_stem().and_then(|it| it.to_str()).expect("a name");
    let all: Vec<&str> = [name].iter().chain(packages).chain(judges::PACKAGES).copied().collect();
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let host = Host::boot_with(&[
        (folder_of("make-repository", &all), "/opt/repository"),
        (folder_of("make-judges", &[]), "/opt/judges"),
        (top.join("examples"), "/opt/examples"),
        (top.join("tests/servers"), "/opt/servers"),
    ]);
    host.write(SETTINGS, &format!("graph: {graph}\n"));
    host.shell(
        "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
         echo 'deb [trusted=yes] copy:/opt/repository ./' >/etc/apt/sources.list
         apt-get -q update >/dev/null
         cp -r /opt/examples /opt/servers /etc/steadfast
         chmod -R go-w /etc/steadfast",
    );
    host
}

impl Host {
    /// Starts the service and waits until the whole graph is converged.
    fn start_whole(&self) {
        self.start();
        self.wait_whole();
    }

    /// Waits until the whole graph is converged and a plan has no step.
    fn wait_whole(&self) {
        let is_whole =
            within(WHOLE, || self.run(&["steadfast", "wait", "--timeout", "10"]).code == Some(0));
        let status = self.run(&["steadfast", "status"]);
        assert!(is_whole, "{}{}\n{}", status.stdout, status.stderr, self.report());
        let plan = self.run(&["steadfast", "plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{}{}", plan.stdout, plan.stderr);
    }

    /// Loads the graph again, also with removals, and waits until it is converged.
    fn reload_whole(&self) {
        self.shell("steadfast reload");
        self.wait_whole();
    }

    /// Lets systemd start the daemon again at once after each kill.
    fn restart_at_once(&self) {
        self.shell(
            "mkdir -p /etc/systemd/system/steadfast.service.d
             printf '[Service]\\nRestartSec=100ms\\n[Unit]\\nStartLimitIntervalSec=0\\n' \
               >/etc/systemd/system/steadfast.service.d/again.conf
             systemctl daemon-reload",
        );
    }

    /// Kills the daemon at random instants. Before each kill, this damage is done if the host is converged: no kill
    /// finds an idle daemon.
    fn kill_at_random(&self, times: u32, damage: &str) {
        let mut chance = Chance::new();
        for _ in 0..times {
            if self.run(&["steadfast", "wait", "--timeout", "0"]).code == Some(0) {
                self.shell(damage);
            }
            // The instant is the subject of the test: no state is waited for.
            std::thread::sleep(chance.pause());
            self.shell("systemctl kill --signal=KILL --kill-whom=main steadfast || true");
            self.until("the daemon to be back", || {
                self.run(&["systemctl", "is-active", "steadfast"]).code == Some(0)
            });
        }
    }
}

/// Prints a line that the runner shows with a failure.
fn note(text: &str) {
    let _unread = writeln!(std::io::stderr(), "{text}");
}

/// Random pauses of up to 900 ms. The seed is printed; `STEADFAST_KILLING_SEED` sets it.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let given = std::env::var("STEADFAST_KILLING_SEED").ok().and_then(|it| it.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish() % 1_000_000);
        note(&format!("STEADFAST_KILLING_SEED={seed}"));
        Self(seed)
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.next() % 900)
    }

    /// Returns a random index of a list of this length.
    fn below(&mut self, length: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % length
    }

    fn next(&mut self) -> u64 {
        // The generator of Knuth's MMIX; its upper bits are the random ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
