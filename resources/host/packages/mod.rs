//! Packages of Debian and its derivatives: dpkg's status file is read directly, and `apt-get` and `dpkg` do
//! everything else.
//!
//! A host runs one transaction at a time. A command that may be changing packages must never be killed by
//! this program, even if its run or this process ends. The only wait is for the lock of another package
//! manager.
//!
//! Reading order: `status.rs` and `listed_files.rs` (dpkg's data), `simulate.rs`, `apt_constraints.rs`, `lock.rs`,
//! `transaction_lock.rs` (running a transaction), `scope.rs` (surviving the daemon's unit), `record.rs`
//! (prior values), `simulated.rs` (the simulated host).

mod apt_constraints;
mod listed_files;
mod lock;
mod record;
mod scope;
mod simulate;
#[cfg(feature = "simulated-host")]
mod simulated;
mod status;
mod transaction_lock;

pub use apt_constraints::removing_only;
pub use listed_files::PackagedFiles;
pub use simulate::Simulation;
pub use status::{Package, Packages, State};
pub use transaction_lock::{Access, Ran, Turn};

use super::process::spawner;
use super::{Command, Finished, Host, PathInfo, wall};
use crate::failure::Failure;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The status file of dpkg.
pub const STATUS: &str = "/var/lib/dpkg/status";
/// The folder of apt's lists.
pub const LISTS: &str = "/var/lib/apt/lists";
/// The folder of dpkg's pending updates to the status file; files remain there after an interruption.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// The shared state of all runs.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The lock of the one transaction of this host.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The last parsed status file, with the state of that file.
    read: Mutex<Option<(Seen, Arc<Packages>)>>,
    /// The last time this process updated the lists: an update need not change their files.
    updated: Mutex<Option<Instant>>,
}

/// The identity of a file state: device, inode, size, time of change.
type Seen = (u64, u64, u64, i64, i64);

impl Host {
    /// Returns the packages known to dpkg. Each state of the status file is parsed once for all callers.
    ///
    /// # Errors
    ///
    /// Fails if the status file cannot be read.
    pub async fn packages(&self) -> Result<Arc<Packages>, Failure> {
        #[cfg(feature = "simulated-host")]
        if let Some(packages) = simulated::packages_here(&self.files) {
            return packages;
        }
        let shared = Arc::clone(&self.packages);
        let read = spawner::handle()?.spawn_blocking(move || shared.read()).await;
        read.map_err(|why| Failure::new(format!("the status of packages: {why}")))?
    }

    /// Returns the age of the repository lists; none if there are none.
    pub async fn lists_age(&self) -> Option<Duration> {
        let read = *self.packages.updated.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ages: Vec<Duration> = read.map(|at| at.elapsed()).into_iter().collect();
        for path in [LISTS, "/var/lib/apt/lists/partial"] {
            let age = |found: PathInfo| {
                let at = Duration::from_secs(found.modified.0.try_into().unwrap_or_default());
                wall().saturating_sub(at)
            };
            ages.extend(self.look(Path::new(path)).await.ok().map(age));
        }
        ages.into_iter().min()
    }

    /// Returns true if dpkg was interrupted and does nothing before a recovery.
    pub async fn is_dpkg_cut_off(&self) -> bool {
        #[cfg(feature = "simulated-host")]
        if simulated::is_here() {
            return self.look(&Path::new(UPDATES).join("0001")).await.is_ok();
        }
        let Ok(handle) = spawner::handle() else { return false };
        let found = handle.spawn_blocking(|| {
            std::fs::read_dir(UPDATES).is_ok_and(|mut entries| entries.next().is_some())
        });
        found.await.unwrap_or_default()
    }

    /// Simulates an apt call; the operands are those of `apt-get install`. The simulation needs no rights, takes
    /// no lock and writes nothing.
    ///
    /// # Errors
    ///
    /// Returns apt's message if apt cannot do the transaction.
    pub async fn simulate(
        &self,
        options: &[&str],
        operands: &[String],
        cancel: &CancellationToken,
    ) -> Result<Simulation, Failure> {
        let mut argv = apt(&["-s", "install"]);
        argv.extend(options.iter().map(ToString::to_string));
        argv.push("--".to_owned());
        argv.extend_from_slice(operands);
        let finished = self.query(&command(argv, None), cancel).await?;
        if finished.is_success() {
            return Ok(Simulation::parse(&finished.stdout.text()));
        }
        Err(complaint(&finished))
    }

    /// Records that the repository lists were updated just now.
    pub fn lists_were_read(&self) {
        let mut updated = self.packages.updated.lock().unwrap_or_else(PoisonError::into_inner);
        *updated = Some(Instant::now());
    }
}

impl Shared {
    fn read(&self) -> Result<Arc<Packages>, Failure> {
        let refuse = |why: std::io::Error| {
            Failure::new(format!("expected the status of packages in {STATUS}: {why}"))
                .hint("`pkg` needs a host with dpkg and apt")
        };
        // The metadata is read before the content, so that a change in between is read again.
        let found = std::fs::metadata(STATUS).map_err(refuse)?;
        let seen = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
        let last = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, packages)) = last.filter(|(before, _)| *before == seen) {
            return Ok(packages);
        }
        let text = std::fs::read(STATUS).map_err(refuse)?;
        let packages = Arc::new(Packages::parse(&String::from_utf8_lossy(&text)));
        let kept = Some((seen, Arc::clone(&packages)));
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(packages)
    }
}

/// Returns an `apt-get` command with the options for every call.
#[must_use]
pub fn apt(words: &[&str]) -> Vec<String> {
    let fixed = [
        "apt-get",
        "-y",
        "-q",
        // This program waits for the lock itself, so that a wait can be cancelled.
        "-o",
        "DPkg::Lock::Timeout=0",
        "-o",
        "Dpkg::Use-Pty=0",
        "-o",
        "APT::Get::AutomaticRemove=false",
    ];
    fixed.iter().chain(words).map(ToString::to_string).collect()
}

fn command(argv: Vec<String>, stdin: Option<String>) -> Command {
    let fixed = [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("DEBCONF_NONINTERACTIVE_SEEN", "true"),
        ("APT_LISTCHANGES_FRONTEND", "none"),
        ("NEEDRESTART_MODE", "l"),
        ("LC_ALL", "C.UTF-8"),
    ];
    let env = fixed
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned().into()))
        .collect();
    Command { argv, env, stdin: stdin.map(Into::into), ..Command::default() }
}

/// Returns the first unmet dependencies that apt has printed: its error says only that there are some.
fn unmet(printed: &str) -> impl Iterator<Item = &str> {
    const HEAD: &str = "The following packages have unmet dependencies:\n";
    let list = printed.split_once(HEAD).map_or("", |(_, list)| list);
    list.lines().take_while(|line| line.starts_with(' ')).map(str::trim).take(3)
}

/// Describes the failure of a command by its error output.
#[must_use]
pub fn complaint(finished: &Finished) -> Failure {
    let text = finished.stderr.text();
    let mut errors: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("E: ").or_else(|| line.strip_prefix("dpkg: error: ")))
        .collect();
    if errors.is_empty() {
        let said = finished.stderr.last_lines(2).join("; ");
        let what = format!("the package manager failed ({:?}): {said}", finished.end);
        return Failure::new(what).passing_if_named();
    }
    let printed = finished.stdout.text();
    errors.extend(unmet(&printed));
    let failure =
        Failure::new(crate::secrets::escape::short(&errors.join("; "), 400)).passing_if_named();
    // Another `apt-get update` can bring the package, which gives no event.
    let unknown = ["Unable to locate package", "has no installation candidate"];
    if unknown.iter().any(|words| text.contains(words)) {
        return failure.passing();
    }
    if text.contains("are you root?") {
        return failure.hint("steadfast must run as root to change packages");
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::complaint;
    use crate::host::{Captured, End, Finished};

    fn failed(stderr: &str) -> Finished {
        let mut captured = Captured::default();
        captured.push(stderr.as_bytes());
        let stdout = Captured::default();
        Finished { end: End::Exited(100), stdout, stderr: captured, held: false }
    }

    #[test]
    fn complaints_of_apt_are_reported() {
        let said = "W: a\nE: Unable to locate package x\nE: Unable to locate package y\n";
        let told = complaint(&failed(said)).what;
        assert_eq!(told, "Unable to locate package x; Unable to locate package y");
        assert!(complaint(&failed("odd\n")).what.contains("odd"));
    }
}
