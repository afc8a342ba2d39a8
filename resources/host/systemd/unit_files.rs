//! What changes unit files' standing, and lets systemd read them.

use super::connection::{MANAGER, MANAGER_PATH};
use super::{Bus, Systemd};
use crate::failure::Failure;
use crate::permit::{Permit, Revoked};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// On a large host it takes long to read all units.
const RELOAD: Duration = Duration::from_mins(3);

/// What is to become of a unit's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Its links are made: it is started at boot.
    Enable,
    /// Its links are removed, also those that last until the next boot.
    Disable,
    /// Nobody can start it.
    Mask,
    /// It can be started again.
    Unmask,
}

/// Whether something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Yes.
    Yes,
    /// The permit was revoked before.
    Revoked,
}

impl From<Revoked> for Applied {
    fn from(_: Revoked) -> Self {
        Self::Revoked
    }
}

/// Reloads that are asked for: what is asked for while one waits is one with it.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    asked: AtomicU64,
    /// The last request that a reload has covered.
    done: Mutex<u64>,
}

impl Systemd {
    /// Changes how a unit's file stands. systemd must be told to read it anew: [`Self::reload`].
    pub async fn install(
        &self,
        bus: Bus,
        install: Install,
        name: &str,
        permit: &Permit,
    ) -> Result<Applied, Failure> {
        let link = self.link(bus).await?;
        let names = [name];
        // Some last only until the next boot and lie elsewhere; both are removed.
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
                fault.trouble(&format!("{} {name}", format!("{install:?}").to_lowercase()))
            })?;
        }
        Ok(Applied::Yes)
    }

    /// Lets systemd read all unit files anew. Requests that come together are one reload.
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
            .map_err(|fault| fault.trouble("letting systemd read its units"))?;
        *done = upto;
        Ok(Applied::Yes)
    }
}
