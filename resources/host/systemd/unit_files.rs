//! Changes the state of unit files, and reloads systemd.

use super::connection::{MANAGER, MANAGER_PATH};
use super::{Bus, Systemd};
use crate::failure::Failure;
use crate::permit::{Permit, Revoked};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// The time limit of a reload: reading all units takes long on a large host.
const RELOAD: Duration = Duration::from_mins(3);

/// A change of a unit file's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Makes the links, so that the unit starts at boot.
    Enable,
    /// Removes the links, including those that last until the next boot.
    Disable,
    /// Prevents every start of the unit.
    Mask,
    /// Allows starts of the unit again.
    Unmask,
}

/// The result of a step with a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The step was done.
    Yes,
    /// The permit was revoked before the step.
    Revoked,
}

impl From<Revoked> for Applied {
    fn from(_: Revoked) -> Self {
        Self::Revoked
    }
}

/// The requests for reloads: a reload covers every request that waits at its start.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    asked: AtomicU64,
    /// The last request that a reload has covered.
    done: Mutex<u64>,
}

impl Systemd {
    /// Changes the state of a unit file. systemd must then read the file again: [`Self::reload`].
    pub async fn install(
        &self,
        bus: Bus,
        install: Install,
        name: &str,
        permit: &Permit,
    ) -> Result<Applied, Failure> {
        let link = self.link(bus).await?;
        let names = [name];
        // Some links last only until the next boot and are elsewhere; both types are removed.
        let runtimes: &[bool] = match install {
            Install::Enable | Install::Mask => &[false],
            Install::Disable | Install::Unmask => &[true, false],
        };
        for runtime in runtimes {
            if permit.check().is_err() {
                return Ok(Applied::Revoked);
            }
            let answer = match install {
                Install::Enable => {
                    let body = (&names[..], runtime, false);
                    link.call(MANAGER_PATH, MANAGER, "EnableUnitFiles", &body).await
                }
                Install::Mask => {
                    let body = (&names[..], runtime, false);
                    link.call(MANAGER_PATH, MANAGER, "MaskUnitFiles", &body).await
                }
                Install::Disable => {
                    let body = (&names[..], runtime);
                    link.call(MANAGER_PATH, MANAGER, "DisableUnitFiles", &body).await
                }
                Install::Unmask => {
                    let body = (&names[..], runtime);
                    link.call(MANAGER_PATH, MANAGER, "UnmaskUnitFiles", &body).await
                }
            };
            answer.map_err(|fault| {
                fault.failure(&format!("{} {name}", format!("{install:?}").to_lowercase()))
            })?;
        }
        Ok(Applied::Yes)
    }

    /// Reloads all unit files. Simultaneous requests share one reload.
    pub async fn reload(&self, bus: Bus, permit: &Permit) -> Result<Applied, Failure> {
        let reloads = self.reloads(bus);
        let ticket = reloads.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let link = self.link(bus).await?;
        let mut done = reloads.done.lock().await;
        if *done >= ticket {
            return Ok(Applied::Yes);
        }
        if permit.check().is_err() {
            return Ok(Applied::Revoked);
        }
        let upto = reloads.asked.load(Ordering::SeqCst);
        link.call_within(RELOAD, (MANAGER_PATH, MANAGER, "Reload"), &())
            .await
            .map_err(|fault| fault.failure("letting systemd read its units"))?;
        *done = upto;
        Ok(Applied::Yes)
    }
}
