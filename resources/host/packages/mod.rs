//! Packages of Debian and its kin: dpkg's status file is read, everything else is done by `apt-get` and `dpkg`.
//!
//! One transaction at a time on a host. A command that may be changing packages is never ended by us, whatever becomes of its
//! run or of this process; what is waited for is only the lock of another package manager.

mod apt_constraints;
mod lock;
mod scope;
mod simulate;
mod status;
mod transaction_lock;

pub use apt_constraints::removing_only;
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

/// Where dpkg keeps what it knows.
pub const STATUS: &str = "/var/lib/dpkg/status";
/// Where apt keeps its lists.
pub const LISTS: &str = "/var/lib/apt/lists";
/// Where dpkg notes what it has not written to its status file; what lies there after it was cut off.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// What all runs share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Held by the one transaction of this host.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// What was read last, of which file.
    read: Mutex<Option<(Seen, Arc<Packages>)>>,
    /// When we have read the lists of the repositories ourselves: their files need not have changed by that.
    updated: Mutex<Option<Instant>>,
}

/// Which state of the file: device, inode, size, time of change.
type Seen = (u64, u64, u64, i64, i64);

impl Host {
    /// What dpkg knows. Read once for each state of its file, whoever asks.
    pub async fn packages(&self) -> Result<Arc<Packages>, Failure> {
        let shared = Arc::clone(&self.packages);
        let read = spawner::handle()?.spawn_blocking(move || shared.read()).await;
        read.map_err(|why| Failure::new(format!("the status of packages: {why}")))?
    }

    /// How old the lists of the repositories are; none where there are none.
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

    /// Whether dpkg was cut off, so that it does nothing before it was told to go on.
    pub async fn is_dpkg_cut_off(&self) -> bool {
        let Ok(handle) = spawner::handle() else { return false };
        let found = handle.spawn_blocking(|| {
            std::fs::read_dir(UPDATES).is_ok_and(|mut entries| entries.next().is_some())
        });
        found.await.unwrap_or_default()
    }

    /// What apt would do: operands as for `apt-get install`. It needs no rights, takes no lock and writes nothing.
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

    /// The lists of the repositories were read just now.
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
        // Looked at before it is read: what changes in between is read again.
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

/// `apt-get` with what holds for each of its calls.
#[must_use]
pub fn apt(words: &[&str]) -> Vec<String> {
    let fixed = [
        "apt-get",
        "-y",
        "-q",
        // We wait ourselves, so that a wait can be cancelled.
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

/// What a command said that failed.
#[must_use]
pub fn complaint(finished: &Finished) -> Failure {
    let text = finished.stderr.text();
    let errors: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("E: ").or_else(|| line.strip_prefix("dpkg: error: ")))
        .collect();
    if errors.is_empty() {
        let said = finished.stderr.last_lines(2).join("; ");
        return Failure::new(format!("the package manager failed ({:?}): {said}", finished.end));
    }
    Failure::new(crate::escape::short(&errors.join("; "), 400))
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
    fn what_apt_complains_of_is_told() {
        let said = "W: a\nE: Unable to locate package x\nE: Unable to locate package y\n";
        let told = complaint(&failed(said)).what;
        assert_eq!(told, "Unable to locate package x; Unable to locate package y");
        assert!(complaint(&failed("odd\n")).what.contains("odd"));
    }
}
