//! The requested generation of this host: a signed bundle is fetched, verified, unpacked, and run by a reload.
//!
//! The world names only the hash and the sequence of a bundle. The signature decides: who can write to the world cannot
//! run anything here.

use super::bundle_record::{BundleRecord, STATE};
use super::bundle_source::{FetchError, fetch_bundle};
use super::host_world::{HostWorld, Rejection};
use super::publisher::ask_status;
use super::unpacked_bundles::{FOLDER, bundle_link, folder_of, remove_old, switch_link, unpack};
use crate::api::HostStatus;
use crate::driver::LoadError;
use crate::workers::graph::loader::ReloadCause;
use crate::workers::world::WorldParts;
use crate::world::bundle::{self, Bundle, BundleError, BundleSource, Expected};
use crate::world::follower::RangeView;
use crate::world::keys;
use crate::world::records::{RequestId, Want, read_record, unix_seconds};
use crate::world::splay::host_delay;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::Instant;

/// The default folder of trusted keys.
const TRUSTED: &str = "/etc/steadfast/trusted";
/// The first pause before an unreachable bundle is tried again.
const AGAIN: Duration = Duration::from_mins(1);
/// The longest pause between two tries of a bundle.
const LONGEST_PAUSE: Duration = Duration::from_mins(16);

/// The last try of a request.
struct LastTry {
    request: RequestId,
    /// The pause before the next try.
    pause: Duration,
    /// The time of the next try.
    next: Instant,
}

/// The state of the requested generation.
pub(super) struct Generation {
    state_directory: PathBuf,
    last: BundleRecord,
    /// The reason for which the record of the last run cannot be read: no older bundle may run.
    damage: Option<String>,
    /// The last try.
    tried: Option<LastTry>,
    /// The time at which a request starts.
    starts: Option<(RequestId, Instant)>,
    /// True if this session has requested the reload of the bundle to which `current` leads.
    has_reloaded: bool,
}

/// The requests of this host and of hosts whose names begin like its name.
pub(super) type Requests = watch::Receiver<RangeView>;

/// A request that is due, with its verified bundle or the reason for its rejection.
pub(super) struct DueBundle {
    pub(super) request: RequestId,
    bundle: Result<Bundle, BundleFailure>,
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

/// Returns the pause after a try, given the one before, and the wait of a host for its next try: the pause and up to
/// half of it.
fn pauses_after(before: Option<Duration>, host: &str) -> (Duration, Duration) {
    let pause = before.map_or(AGAIN, |before| (before * 2).min(LONGEST_PAUSE));
    (pause, pause + host_delay(host, pause.as_secs() / 2))
}

/// Returns the request of a host.
fn request_of(host: &str, requests: &Requests) -> Option<Want> {
    // The view has the keys of all hosts whose names begin like the name of this host.
    requests.borrow().entries.get(&keys::want(host)).and_then(read_record::<Want>)
}

/// Returns true if a request of a host was not replaced.
fn is_requested(request: &RequestId, host: &str, requests: &Requests) -> bool {
    request_of(host, requests).is_some_and(|want| want.id() == *request)
}

/// Waits until a request of a host is replaced or withdrawn, or until the view of the requests ends.
async fn replaced(request: &RequestId, host: &str, mut requests: Requests) {
    while is_requested(request, host, &requests) {
        if requests.changed().await.is_err() {
            return;
        }
    }
}

impl Generation {
    pub(super) fn new(state_directory: &Path) -> Self {
        let (last, damage) = match BundleRecord::read(state_directory) {
            Ok(last) => (last, None),
            Err(error) => (BundleRecord::default(), Some(error.to_string())),
        };
        let state_directory = state_directory.to_owned();
        let (tried, starts, has_reloaded) = (None, None, false);
        Self { state_directory, last, damage, tried, starts, has_reloaded }
    }

    /// Returns the request that is due now; none if there is no such request.
    pub(super) async fn look(
        &mut self,
        host: &HostWorld,
        requests: &Requests,
    ) -> Option<DueBundle> {
        if let Some((sequence, digest)) = self.last.running.clone() {
            host.set_sequence(sequence, digest);
        }
        let want = request_of(host.host(), requests);
        let request = want.as_ref().map(Want::id);
        if host.rejected().is_some_and(|it| request.as_ref() != Some(&it.request)) {
            // The rejection of another request says nothing about this one.
            host.set_rejected(None);
        }
        let (want, request) = (want?, request?);
        if self.last.runs(&want.manifest) {
            self.complete_manifest(&want.manifest).await;
            host.set_rejected(None);
            return None;
        }
        if self.last.waits_for_swap(&want.manifest) {
            return None;
        }
        if let Some(why) = self.last.rejection_of(&want.manifest, want.token) {
            let reason = why.to_owned();
            host.set_rejected(Some(Rejection { request, reason, is_final: true }));
            return None;
        }
        let is_told = self.tried.as_ref().is_some_and(|tried| tried.request == request);
        let failure = if let Some(why) = self.damage.clone() {
            let path = self.state_directory.join(STATE);
            Some(BundleFailure::Damaged { path, why })
        } else if host.settings().bundles.is_none() {
            Some(BundleFailure::NoSource)
        } else {
            None
        };
        if let Some(failure) = failure {
            self.note_try(host, &request);
            return (!is_told).then_some(DueBundle { request, bundle: Err(failure) });
        }
        let from = host.settings().bundles.clone()?;
        let now = Instant::now();
        if is_told && self.tried.as_ref().is_some_and(|tried| now < tried.next) {
            return None;
        }
        let starts = match &self.starts {
            Some((of, at)) if *of == request => *at,
            _ => {
                let at = now + host_delay(host.host(), want.splay);
                self.starts = Some((request.clone(), at));
                at
            }
        };
        if now < starts {
            return None;
        }
        let bundle = tokio::select! {
            biased;
            () = replaced(&request, host.host(), requests.clone()) => return None,
            bundle = self.fetch_and_verify(host, &from, want) => bundle,
        };
        // The pause begins at the end of the try.
        self.note_try(host, &request);
        Some(DueBundle { request, bundle })
    }

    /// Completes the manifest of the running bundle, of which a lost record has left a part.
    async fn complete_manifest(&mut self, manifest: &str) {
        let Some((_, digest)) = self.last.running.as_mut() else { return };
        if digest != manifest {
            manifest.clone_into(digest);
            if let Err(error) = self.store_last().await {
                tracing::warn!(event = "warning", "the running bundle was not recorded: {error}");
            }
        }
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
        let last_sequence = self.last.floor(&want.manifest);
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

    /// Notes the end of a try: the pause before the next one doubles with each try of the same request. A part of the
    /// pause depends on the name of the host: not all hosts try at once.
    fn note_try(&mut self, host: &HostWorld, request: &RequestId) {
        let before = self.tried.take().filter(|tried| tried.request == *request);
        let (pause, wait) = pauses_after(before.map(|tried| tried.pause), host.host());
        let next = Instant::now() + wait;
        self.tried = Some(LastTry { request: request.clone(), pause, next });
    }

    /// Unpacks a bundle and reloads the graph. A rejected graph changes nothing: the last one continues.
    pub(super) async fn run_bundle(
        &mut self,
        (parts, host): (&Arc<WorldParts>, &HostWorld),
        (request, bundle): (&RequestId, Bundle),
        requests: &Requests,
    ) -> Result<(), BundleFailure> {
        let folder = self.state_directory.join(FOLDER);
        let current = bundle_link(&self.state_directory);
        if !parts.graph.leads_through(&current) {
            return Err(BundleFailure::OtherGraph { expected: current });
        }
        let switched = (bundle.manifest.sequence, bundle.digest.clone());
        let run = BundleRecord {
            sequence: switched.0,
            digest: switched.1.clone(),
            rejected: None,
            token: Some(request.token),
            switched: self.last.switched.clone(),
            running: self.last.running.clone(),
        };
        let name = folder_of(run.sequence, &run.digest);
        let place = folder.join(&name);
        let unpacked = tokio::task::spawn_blocking(move || unpack(&bundle, &place));
        unpacked.await.map_err(BundleFailure::Panicked)??;
        let checked = parts.graph.check_instead(&current, Path::new(&name)).await;
        if !is_requested(request, host.host(), requests) {
            return Ok(());
        }
        if let Err(why) = checked {
            self.last = BundleRecord { rejected: Some(why.to_string()), ..run };
            self.store_last().await?;
            self.remove_old().await;
            return Err(why.into());
        }
        let before = (std::fs::read_link(&current).ok(), self.last.switched.clone());
        let (directory, run) =
            (self.state_directory.clone(), BundleRecord { switched: Some(switched), ..run });
        let stored = run.clone();
        let place = tokio::task::spawn_blocking(move || {
            stored.store(&directory)?;
            switch_link(&directory.join(FOLDER), Path::new(&name))
        });
        place.await.map_err(BundleFailure::Panicked)??;
        // The sequence counts from here on: an interrupted start must not run the bundle twice.
        self.last = run;
        self.reload(parts, before).await?;
        host.set_rejected(None);
        self.follow_swap(parts, host).await
    }

    /// Reloads the graph of the bundle to which `current` leads. If the graph is rejected, `current` leads again to
    /// the target before.
    async fn reload(
        &mut self,
        parts: &Arc<WorldParts>,
        (before, switched): (Option<PathBuf>, Option<(u64, String)>),
    ) -> Result<(), BundleFailure> {
        self.has_reloaded = true;
        let (to, answer) = tokio::sync::oneshot::channel();
        // The request is that of an operator: the deployer has signed the removals.
        parts.graph.ask(ReloadCause::Operator, Some(to));
        match answer.await.unwrap_or(Err(LoadError::LoaderEnded)) {
            Ok(_) => Ok(()),
            Err(LoadError::LoaderEnded) => {
                // Nobody has judged the graph: the next look asks again.
                self.has_reloaded = false;
                Ok(())
            }
            Err(why) => {
                if let Some(before) = before {
                    // A later restart loads the last good graph again.
                    switch_link(&self.state_directory.join(FOLDER), &before)?;
                }
                self.last.switched = switched;
                self.last.rejected = Some(why.to_string());
                self.store_last().await?;
                Err(why.into())
            }
        }
    }

    /// Records the bundle to which `current` leads as the running one, as soon as the driver has taken over its graph:
    /// runs of the former graph may delay that. A session that begins before asks for the graph once more, because a
    /// start removes nothing.
    pub(super) async fn follow_swap(
        &mut self,
        parts: &Arc<WorldParts>,
        host: &HostWorld,
    ) -> Result<(), BundleFailure> {
        if self.last.switched.is_none() {
            return Ok(());
        }
        if !self.has_reloaded && !parts.graph.leads_through(&bundle_link(&self.state_directory)) {
            // The setting names another graph, whose removals nobody has signed.
            self.last.forget_switch();
            return Ok(());
        }
        if !self.has_reloaded {
            let folder = self.state_directory.join(FOLDER);
            let running = self.last.running.as_ref();
            let before =
                running.map(|(sequence, digest)| PathBuf::from(folder_of(*sequence, digest)));
            let before = before.filter(|name| folder.join(name).exists());
            self.reload(parts, (before, None)).await?;
        }
        let Some(known) = ask_status(parts).await.filter(|_| self.has_reloaded) else {
            return Ok(());
        };
        if known.status.swap.is_some() || known.status.verdict == HostStatus::Starting {
            return Ok(());
        }
        let Some((sequence, digest)) = self.last.switched.take() else { return Ok(()) };
        self.last.running = Some((sequence, digest.clone()));
        self.store_last().await?;
        host.set_sequence(sequence, digest);
        self.remove_old().await;
        tracing::info!(event = "bundle", "the bundle {sequence} runs");
        Ok(())
    }
}

impl DueBundle {
    /// Returns the verified bundle, or the reason for its rejection.
    pub(super) fn verified(self) -> Result<Bundle, BundleFailure> {
        self.bundle
    }
}

impl Generation {
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
        let stored = tokio::task::spawn_blocking(move || last.store(&directory)).await;
        Ok(stored.map_err(BundleFailure::Panicked)??)
    }
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

#[cfg(test)]
mod tests {
    use super::{AGAIN, LONGEST_PAUSE, pauses_after};

    /// Each pause is twice the last one, up to a limit, and hosts wait for different times.
    #[test]
    fn pauses_double_and_differ_between_hosts() {
        let (first, web1) = pauses_after(None, "web1");
        assert_eq!(first, AGAIN);
        assert_ne!(web1, pauses_after(None, "web2").1);
        assert!(web1 >= first && web1 < first * 3 / 2, "{web1:?}");
        assert_eq!(pauses_after(Some(first), "web1").0, AGAIN * 2);
        assert_eq!(pauses_after(Some(LONGEST_PAUSE), "web1").0, LONGEST_PAUSE);
    }
}
