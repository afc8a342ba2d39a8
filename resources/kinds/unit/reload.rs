//! The step after a change of unit files: systemd reads them again.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::systemd::{Applied, Bus};
use crate::parts::on_thread;
use crate::permit::Permit;
use crate::resource::{Resource, Traits};
use futures_util::FutureExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A resource that lets systemd read its files if its copy of the unit is older than the files, or if a refresh is
/// owed.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) unit: String,
    /// The resource defines the unit, so systemd must know it afterwards.
    pub(super) defines: bool,
    /// The file of a template, for which systemd does not report old copies.
    pub(super) template: Option<Arc<dyn Resource>>,
    /// The file of the template differed in the last check.
    pub(super) pending: AtomicBool,
}

impl Reload {
    /// Returns true if systemd's copy of the unit is older than the files.
    async fn is_stale(&self, host: &Host) -> Result<bool, Failure> {
        let Some(file) = &self.template else {
            let unit = host.systemd().unit(Bus::System, &self.unit).await?;
            let is_unknown = |load: &str| self.defines && load == "not-found";
            return Ok(unit.is_some_and(|unit| unit.stale || is_unknown(&unit.load)));
        };
        let file = Arc::clone(file);
        // A check of a file never waits.
        let differs = on_thread(host, move |host| {
            let check = file.check(host, CheckRequest::default());
            matches!(check.now_or_never(), Some(CheckResult::Differs(_)))
        });
        if differs.await? {
            self.pending.store(true, Ordering::SeqCst);
        }
        Ok(self.pending.load(Ordering::SeqCst))
    }
}

impl Resource for Reload {
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    fn traits(&self) -> Traits {
        let timeout = Some(super::PATIENCE);
        Traits { timeout, ..Traits::confined_command() }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let (from, to) = match self.is_stale(host).await {
                Ok(true) => ("older than the files", "read again"),
                Ok(false) if ask.refresh => ("", "as notified"),
                Ok(false) => return CheckResult::Same,
                Err(failure) => return CheckResult::Unknown(failure),
            };
            let (from, to) = (from.to_owned(), to.to_owned());
            CheckResult::Differs(Change::of(vec![Difference {
                aspect: "daemon-reload",
                from,
                to,
                diff: None,
            }]))
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match host.systemd().reload(Bus::System, permit).await {
                Ok(Applied::Yes) => {
                    self.pending.store(false, Ordering::SeqCst);
                    Outcome::Changed(vec!["daemon-reload".to_owned()])
                }
                Ok(Applied::Revoked) => Outcome::Interrupted,
                Err(failure) => Outcome::Failed { failure, touched: true },
            }
        })
    }
}
