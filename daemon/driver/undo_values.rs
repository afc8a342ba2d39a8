//! Undo of values: the kind of the resource checks and applies prior values, as if a graph declared them.

use crate::driver::commands::undo::PUT_BACK;
use steadfast_resources::Restoring;
use steadfast_resources::host::systemd::Bus;
use steadfast_resources::{CheckRequest, CheckResult, Failure, Host, Outcome, Permit};
use tokio_util::sync::CancellationToken;

/// Restores prior values; returns the changes, empty if there were none. Blocks.
///
/// # Errors
///
/// A failure of the check or of the apply.
pub(super) fn put_back(
    host: &Host,
    (permit, cancel): (&Permit, CancellationToken),
    restoring: &Restoring,
) -> Result<Vec<String>, Failure> {
    let Restoring { resource, by_hand } = restoring;
    let work = async {
        let ask = CheckRequest { run: true, cancel, ..CheckRequest::default() };
        let change = match resource.check(host, ask).await {
            CheckResult::Same => return Ok(Vec::new()),
            CheckResult::Unknown(failure) => {
                let what = format!("nothing is put back: {}", failure.what);
                return Err(Failure::new(what).hint(format!("by hand: `{by_hand}`")));
            }
            CheckResult::Differs(change) => change,
        };
        match resource.apply(host, permit, change).await {
            Outcome::Unchanged => Ok(Vec::new()),
            Outcome::Changed(notes) => Ok(notes),
            Outcome::Failed { failure, touched: false } => Err(failure),
            Outcome::Failed { mut failure, touched: true } => {
                failure.what.push_str(&format!("\n{PUT_BACK} a part, before the failure"));
                Err(failure)
            }
            Outcome::Interrupted => Err(Failure::new("the undo was cancelled before it was done")),
        }
    };
    wait_for(work)
}

/// Lets systemd read its unit files after an undo has restored one of them; returns the failure as a line. Blocks.
pub(super) fn read_units(host: &Host, permit: &Permit) -> Option<String> {
    let reloaded = wait_for(async { host.systemd().reload(Bus::System, permit).await.map(drop) });
    let failure = reloaded.err()?;
    let what = failure.what.replace('\n', ": ");
    Some(format!("systemd has not read its unit files, run `systemctl daemon-reload`: {what}"))
}

fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    if let Ok(handle) = tokio::runtime::Handle::try_current() {
        return handle.block_on(work);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("no thread for an undo: {why}")))?;
    runtime.block_on(work)
}
