//! The permission to change the host: the key of all permits, the lease, the windows, and the history of prior states.
//!
//! Invariant: every permit of this driver comes from here.

use super::begin_needs_lease::Lease;
use super::maintenance_windows::MaintenanceWindows;
use super::temp_cleanup::clean_up;
use super::world_permits::WorldPermits;
use super::{DriverEvent, Inbox, LocalMinute};
use crate::history::{History, Names};
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::{Host, MintKey, Permit, Recorders};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that the end of the driver waits for a cleanup; a directory may hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// The permission to change the host.
pub(super) struct ChangePermission {
    /// The only key that mints permits.
    key: Arc<MintKey>,
    /// The right to begin changes.
    pub(super) lease: Lease,
    /// The store of prior states; `None` if nothing will be changed.
    history: Option<Arc<History>>,
    /// The deadline for the cleanup of temporary files that killed runs left; `None` once the cleanup is done. The
    /// driver does not end before either.
    cleanup_until: Option<Instant>,
    /// The maintenance windows.
    pub(super) windows: MaintenanceWindows,
    /// The permits of the world.
    pub(super) world: WorldPermits,
}

impl ChangePermission {
    /// Creates the permission of a session, with an endless lease.
    pub(super) fn new(
        key: Arc<MintKey>,
        history: Option<Arc<History>>,
        clock: fn() -> LocalMinute,
    ) -> Self {
        let lease = Lease::endless();
        let windows = MaintenanceWindows::new(clock);
        let world = WorldPermits::default();
        Self { key, lease, history, cleanup_until: None, windows, world }
    }

    /// Mints a permit that records no prior states, as for a step in the overlay of a plan.
    pub(super) fn mint_unrecorded(&self, cancel: CancellationToken) -> Permit {
        self.key.mint(cancel, Recorders::None)
    }

    /// Mints the permit of a run of one resource.
    pub(super) fn mint(&self, identity: &str, cause: &str, cancel: CancellationToken) -> Permit {
        let history = self.history.as_ref();
        let recorder = history.and_then(|history| history.keeper(identity, cause));
        self.key.mint(cancel, recorder.into())
    }

    /// Mints the permit of a run of several resources, in their order.
    pub(super) fn mint_for_each<'a>(
        &self,
        identities: impl Iterator<Item = &'a str>,
        cause: &str,
        cancel: CancellationToken,
    ) -> Permit {
        let history = self.history.as_ref();
        let recorder = |identity| history.and_then(|history| history.keeper(identity, cause));
        self.key.mint(cancel, Recorders::Each(identities.map(recorder).collect()))
    }

    /// Returns the key and the history for an undo; `None` if the history is disabled.
    pub(super) fn for_undo(&self) -> Option<(Arc<MintKey>, Arc<History>)> {
        Some((Arc::clone(&self.key), Arc::clone(self.history.as_ref()?)))
    }

    /// Moves the history of renamed resources to their new identities.
    pub(super) fn rename_history(&self, names: Names) {
        if let Some(history) = &self.history {
            history.rename(names);
        }
    }

    /// Starts the cleanup of temporary files that a killed session left, on a thread of its own.
    pub(super) fn start_cleanup(&mut self, host: &Host, inbox: Inbox<DriverEvent>) {
        let history = self.history.as_ref().filter(|history| history.was_cut_off());
        let Some(history) = history.map(Arc::clone) else { return };
        let (key, host) = (Arc::clone(&self.key), host.clone());
        let thread = std::thread::Builder::new().name("strays".to_owned());
        let begun = thread.spawn(move || {
            clean_up(&key, &host, &history);
            inbox.put(DriverEvent::CleanupDone);
        });
        match begun {
            Ok(_) => self.cleanup_until = Some(Instant::now() + PATIENCE),
            Err(error) => {
                tracing::warn!(%error, "temporary files of an interrupted run were not removed");
            }
        }
    }

    /// Notes the end of the cleanup.
    pub(super) fn end_cleanup(&mut self) {
        self.cleanup_until = None;
    }

    /// Returns the time until which the end of the driver waits for the cleanup; `None` if the cleanup is done or late.
    pub(super) fn cleanup_until(&self) -> Option<Instant> {
        self.cleanup_until.filter(|until| *until > Instant::now())
    }
}
