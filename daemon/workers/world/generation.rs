//! The requested generation of this host: a signed bundle is fetched, verified, unpacked, and run by a reload.
//!
//! The world names only the hash and the sequence of a bundle. The signature decides: who can write to the world cannot
//! run anything here.

use super::bundle_source::{FetchError, fetch_bundle};
use super::host_world::HostWorld;
use crate::driver::LoadError;
use crate::workers::graph::loader::ReloadCause;
use crate::workers::world::WorldParts;
use crate::world::bundle::{self, Bundle, BundleError, BundleSource, Expected};
use crate::world::follower::RangeView;
use crate::world::keys;
use crate::world::records::{Want, read_record, unix_seconds};
use crate::world::splay::host_delay;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::Instant;

/// The folder of unpacked bundles in the state directory; `current` leads to the one that runs.
const FOLDER: &str = "bundles";
/// The file with the last sequence that ran.
const STATE: &str = "bundle.json";
/// The default folder of trusted keys.
const TRUSTED: &str = "/etc/steadfast/trusted";
/// The first pause before an unreachable bundle is tried again.
const AGAIN: Duration = Duration::from_mins(1);
/// The longest pause between two tries of a bundle.
const LONGEST_PAUSE: Duration = Duration::from_mins(16);

/// The bundle that ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LastRun {
    /// The highest sequence that was tried: it does not run again.
    sequence: u64,
    /// The manifest of that sequence.
    digest: String,
    /// The reason for which the graph of that manifest was rejected.
    #[serde(default)]
    rejected: Option<String>,
    /// The sequence and the manifest that run.
    #[serde(default)]
    running: Option<(u64, String)>,
}

/// The last try of a requested bundle.
struct LastTry {
    manifest: String,
    /// The pause before the next try.
    pause: Duration,
    /// The time of the next try.
    next: Instant,
}

/// The state of the requested generation.
pub(super) struct Generation {
    state_directory: PathBuf,
    last: LastRun,
    /// The reason for which the record of the last run cannot be read: no older bundle may run.
    damage: Option<String>,
    /// The last try.
    tried: Option<LastTry>,
    /// The time at which a requested manifest starts.
    starts: Option<(String, Instant)>,
}

/// The reason for which a bundle does not run.
#[derive(Debug, Error)]
pub(super) enum BundleFailure {
    /// The settings name no place of bundles.
    #[error(
        "a bundle is requested, and the setting `world` has no `bundles`: set it to their place"
    )]
    NoSource,
    /// The bundle was not fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another user could change a trusted key.
    #[error("{}: another user could change the key: {why}", path.display())]
    UntrustedKey {
        /// The path of the key.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The bundle is not valid for this host.
    #[error(transparent)]
    Invalid(#[from] BundleError),
    /// The bundle, or its record, cannot be stored.
    #[error("{0}")]
    State(#[from] io::Error),
    /// The record of the last bundle cannot be read.
    #[error("{}: {why}; restore it: without this record an older bundle could run", path.display())]
    Damaged {
        /// The path of the record.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// The daemon has another graph than that of the bundles.
    #[error("the setting `graph` should be {}: the bundle would not run", expected.display())]
    OtherGraph {
        /// The folder of the running bundle.
        expected: PathBuf,
    },
    /// The graph of the bundle was rejected.
    #[error(transparent)]
    Graph(#[from] LoadError),
    /// A thread of the bundle panicked.
    #[error("{0}")]
    Panicked(JoinError),
}

impl LastRun {
    /// Returns the record as it is true for the bundle that `current` leads to: the last session may have ended between
    /// the record and the switch, or before it knew that the bundle runs.
    fn after_interruption(mut self, state_directory: &Path) -> Self {
        if self.digest.is_empty() || self.rejected.is_some() {
            return self;
        }
        let link = std::fs::read_link(state_directory.join(FOLDER).join("current"));
        let is_current = link.is_ok_and(|link| link == Path::new(&self.folder()));
        if is_current {
            self.running = Some((self.sequence, self.digest.clone()));
        } else {
            // The same bundle runs again.
            self.sequence = self.sequence.saturating_sub(1);
            self.digest.clear();
        }
        self
    }

    /// Returns the name of the folder of the bundle.
    fn folder(&self) -> String {
        folder_of(self.sequence, &self.digest)
    }
}

/// Returns the name of the folder of a bundle.
fn folder_of(sequence: u64, digest: &str) -> String {
    format!("{sequence}-{}", digest.get(..12).unwrap_or("x"))
}

/// Reads the record of the last run; a missing one is that of a host without a bundle.
fn read_last(directory: &Path) -> io::Result<LastRun> {
    match std::fs::read_to_string(directory.join(STATE)) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LastRun::default()),
        Err(error) => Err(error),
    }
}

impl Generation {
    pub(super) fn new(state_directory: &Path) -> Self {
        let (last, damage) = match read_last(state_directory) {
            Ok(last) => (last.after_interruption(state_directory), None),
            Err(error) => (LastRun::default(), Some(error.to_string())),
        };
        let state_directory = state_directory.to_owned();
        Self { state_directory, last, damage, tried: None, starts: None }
    }

    /// Returns the verified bundle to run now, or the reason for its rejection; none if nothing is due.
    pub(super) async fn look(
        &mut self,
        host: &HostWorld,
        requests: &watch::Receiver<RangeView>,
    ) -> Option<Result<Bundle, BundleFailure>> {
        if let Some((sequence, digest)) = self.last.running.clone() {
            host.set_sequence(sequence, digest);
        }
        // The view has the keys of all hosts whose names begin like the name of this host.
        let key = keys::want(host.host());
        let want = requests.borrow().entries.get(&key).and_then(read_record::<Want>)?;
        if want.manifest == self.last.digest {
            let rejected = self.last.rejected.clone();
            host.set_rejected(rejected.map(|why| (want.manifest.clone(), why)));
            return None;
        }
        let is_told = self.tried.as_ref().is_some_and(|tried| tried.manifest == want.manifest);
        if let Some(why) = self.damage.clone() {
            let path = self.state_directory.join(STATE);
            self.note_try(&want.manifest);
            return (!is_told).then(|| Err(BundleFailure::Damaged { path, why }));
        }
        let Some(from) = host.settings().bundles.clone() else {
            self.note_try(&want.manifest);
            return (!is_told).then_some(Err(BundleFailure::NoSource));
        };
        let now = Instant::now();
        if is_told && self.tried.as_ref().is_some_and(|tried| now < tried.next) {
            return None;
        }
        let starts = match &self.starts {
            Some((manifest, at)) if *manifest == want.manifest => *at,
            _ => {
                let at = now + host_delay(host.host(), want.splay);
                self.starts = Some((want.manifest.clone(), at));
                at
            }
        };
        if now < starts {
            return None;
        }
        let manifest = want.manifest.clone();
        let verified = self.fetch_and_verify(host, &from, want).await;
        // The pause begins at the end of the try.
        self.note_try(&manifest);
        Some(verified)
    }

    /// Fetches the requested bundle and verifies it for this host.
    async fn fetch_and_verify(
        &self,
        host: &HostWorld,
        from: &BundleSource,
        want: Want,
    ) -> Result<Bundle, BundleFailure> {
        let trusted = host.settings().trusted.clone().unwrap_or_else(|| TRUSTED.into());
        let (name, cluster) = (host.host().to_owned(), host.settings().cluster().to_owned());
        let last_sequence = self.last.sequence;
        let scratch = self.state_directory.join(FOLDER);
        let bytes = fetch_bundle(from, &want.file, &scratch).await?;
        let verified = tokio::task::spawn_blocking(move || {
            let keys = trusted_keys(&trusted)?;
            let expected = Expected {
                cluster: &cluster,
                host: &name,
                now: unix_seconds(),
                last_sequence,
                digest: Some(&want.manifest),
            };
            Ok(bundle::verify_bundle(&bytes, &keys, &expected)?)
        });
        verified.await.map_err(BundleFailure::Panicked)?
    }

    /// Notes the end of a try: the pause before the next one doubles with each try of the same manifest.
    fn note_try(&mut self, manifest: &str) {
        let before = self.tried.take().filter(|tried| tried.manifest == manifest);
        let pause = before.map_or(AGAIN, |tried| (tried.pause * 2).min(LONGEST_PAUSE));
        let next = Instant::now() + pause;
        self.tried = Some(LastTry { manifest: manifest.to_owned(), pause, next });
    }

    /// Unpacks a bundle and reloads the graph. A rejected graph changes nothing: the last one continues.
    pub(super) async fn run_bundle(
        &mut self,
        parts: &Arc<WorldParts>,
        host: &HostWorld,
        bundle: Result<Bundle, BundleFailure>,
    ) -> Result<(), BundleFailure> {
        let bundle = bundle?;
        let expected = self.state_directory.join(FOLDER).join("current");
        if !parts.graph.leads_through(&expected) {
            return Err(BundleFailure::OtherGraph { expected });
        }
        let run = LastRun {
            sequence: bundle.manifest.sequence,
            digest: bundle.digest.clone(),
            rejected: None,
            running: self.last.running.clone(),
        };
        let folder = self.state_directory.join(FOLDER);
        let before = std::fs::read_link(&expected).ok();
        let name = folder_of(run.sequence, &run.digest);
        let place = folder.join(&name);
        let unpacked = tokio::task::spawn_blocking(move || unpack(&bundle, &place));
        unpacked.await.map_err(BundleFailure::Panicked)??;
        // The running graph reads its sources through the link, which leads on to them for a graph that is rejected.
        if let Err(why) = parts.graph.check_instead(&expected, &folder.join(&name)).await {
            self.last = LastRun { rejected: Some(why.to_string()), ..run };
            self.store_last().await?;
            self.remove_old().await;
            return Err(why.into());
        }
        let (directory, stored) = (self.state_directory.clone(), run.clone());
        let place = tokio::task::spawn_blocking(move || {
            store_last(&directory, &stored)?;
            switch_link(&directory.join(FOLDER), Path::new(&name))
        });
        place.await.map_err(BundleFailure::Panicked)??;
        // The sequence counts from here on: an interrupted start must not run the bundle twice.
        self.last = run;
        let (to, answer) = tokio::sync::oneshot::channel();
        parts.graph.ask(ReloadCause::Operator, Some(to));
        let taken = answer.await.unwrap_or(Err(LoadError::LoaderEnded));
        match taken {
            Ok(_) => {
                host.set_rejected(None);
                host.set_sequence(self.last.sequence, self.last.digest.clone());
                self.last.running = Some((self.last.sequence, self.last.digest.clone()));
                self.store_last().await?;
                self.remove_old().await;
                tracing::info!(event = "bundle", "the bundle {} runs", self.last.sequence);
                Ok(())
            }
            Err(why) => {
                if let Some(before) = before {
                    // A later restart loads the last good graph again.
                    switch_link(&self.state_directory.join(FOLDER), &before)?;
                }
                self.last.rejected = Some(why.to_string());
                self.store_last().await?;
                Err(why.into())
            }
        }
    }
}

impl Generation {
    /// Returns the manifest that was tried last.
    pub(super) fn tried_manifest(&self) -> String {
        self.tried.as_ref().map(|tried| tried.manifest.clone()).unwrap_or_default()
    }

    /// Removes old unpacked bundles.
    async fn remove_old(&self) {
        let folder = self.state_directory.join(FOLDER);
        let running =
            self.last.running.as_ref().map(|(sequence, digest)| folder_of(*sequence, digest));
        let removed = tokio::task::spawn_blocking(move || remove_old(&folder, running.as_deref()));
        drop(removed.await);
    }

    /// Stores the last run: a restart must not run a bundle twice.
    async fn store_last(&self) -> Result<(), BundleFailure> {
        let (directory, last) = (self.state_directory.clone(), self.last.clone());
        let stored = tokio::task::spawn_blocking(move || store_last(&directory, &last)).await;
        Ok(stored.map_err(BundleFailure::Panicked)??)
    }
}

/// Writes the last run to the state directory, whole or not at all.
fn store_last(directory: &Path, last: &LastRun) -> io::Result<()> {
    let new = directory.join(format!("{STATE}.new"));
    std::fs::write(&new, serde_json::to_string(last).unwrap_or_default())?;
    std::fs::File::open(&new)?.sync_all()?;
    std::fs::rename(&new, directory.join(STATE))
}

/// Reads the public keys of a folder.
fn trusted_keys(folder: &Path) -> Result<Vec<[u8; 32]>, BundleFailure> {
    let failed = |error| BundleFailure::File { path: folder.to_owned(), error };
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "pub") {
            let untrusted_paths =
                steadfast_resources::host::input_trust::Reader::here().untrusted_on_the_way(&path);
            if let Some(why) = untrusted_paths {
                return Err(BundleFailure::UntrustedKey { path, why });
            }
            texts.push(std::fs::read_to_string(&path).map_err(failed)?);
        }
    }
    Ok(bundle::read_public_keys(texts.iter().map(String::as_str)))
}

/// Unpacks a bundle at a place, anew.
fn unpack(bundle: &Bundle, place: &Path) -> io::Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    bundle::unpack_bundle(bundle, place)
}

/// Makes `current` lead to a folder, in one step.
fn switch_link(folder: &Path, to: &Path) -> io::Result<()> {
    let new = folder.join("current.new");
    drop(std::fs::remove_file(&new));
    std::os::unix::fs::symlink(to, &new)?;
    std::fs::rename(&new, folder.join("current"))
}

/// Removes all unpacked bundles except the last two, the running one, and the one to which `current` leads.
fn remove_old(folder: &Path, running: Option<&str>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let target = std::fs::read_link(folder.join("current")).unwrap_or_default();
    let is_used = |name: &str| running == Some(name) || target == Path::new(name);
    let sequence = |name: &str| name.split('-').next().and_then(|text| text.parse::<u64>().ok());
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| sequence(name).is_some() && !is_used(name))
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(sequence(name)));
    for name in names.into_iter().skip(2) {
        if let Err(error) = std::fs::remove_dir_all(folder.join(&name)) {
            tracing::debug!(%error, name, "an old bundle was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FOLDER, Generation, LastRun, STATE, folder_of, store_last};

    fn run(sequence: u64) -> LastRun {
        LastRun { sequence, digest: "d".repeat(64), rejected: None, running: None }
    }

    /// A session that ends between the record and the switch runs the bundle at its next start.
    #[test]
    fn an_interrupted_bundle_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
        store_last(folder.path(), &run(7)).unwrap();
        let last = Generation::new(folder.path()).last;
        assert_eq!((last.sequence, last.digest.as_str(), last.running), (6, "", None));
        let link = folder.path().join(FOLDER).join("current");
        std::os::unix::fs::symlink(folder_of(7, &run(7).digest), link).unwrap();
        let last = Generation::new(folder.path()).last;
        assert_eq!(last.running, Some((7, run(7).digest)), "it was switched, and not recorded");
        store_last(folder.path(), &LastRun { rejected: Some("x".to_owned()), ..run(8) }).unwrap();
        assert_eq!(Generation::new(folder.path()).last.sequence, 8, "a rejected one stays so");
    }

    #[test]
    fn a_damaged_record_is_no_first_run() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Generation::new(folder.path()).damage, None);
        std::fs::write(folder.path().join(STATE), "{").unwrap();
        assert!(Generation::new(folder.path()).damage.is_some());
    }
}
