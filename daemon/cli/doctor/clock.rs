//! The check of the clock: synchronized or not. Windows, ages and logs depend on the clock.

use super::{Finding, PATIENCE};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use steadfast_resources::Host;
use steadfast_resources::host::Command;
use tokio_util::sync::CancellationToken;

/// The first second of 2026; an earlier time is wrong.
const EARLIEST: u64 = 1_767_225_600;
/// The file that systemd-timesyncd creates after setting the clock.
const MARK: &str = "/run/systemd/timesync/synchronized";

pub(super) async fn look() -> Vec<Finding> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if now < Duration::from_secs(EARLIEST) {
        let advice = "set the clock (`timedatectl set-time`) or start a time service";
        return vec![Finding::problem("time", "the system clock is years behind", advice)];
    }
    let advice = "enable time synchronization: `timedatectl set-ntp true`, or another service";
    vec![match is_synchronised().await {
        Some(true) => Finding::ok("time", "synchronised"),
        Some(false) => Finding::warning("time", "the system clock is not synchronized", advice),
        None => {
            Finding::warning("time", "the synchronization of the system clock is unknown", advice)
        }
    }]
}

/// Returns the synchronization state of the kernel, as systemd reports it, for any time service.
async fn is_synchronised() -> Option<bool> {
    if std::path::Path::new(MARK).exists() {
        return Some(true);
    }
    let words = ["timedatectl", "show", "--property=NTPSynchronized", "--value"];
    let argv = words.iter().map(ToString::to_string).collect();
    let command = Command { argv, timeout: Some(PATIENCE), ..Command::default() };
    let finished = Host::default().query(&command, &CancellationToken::new()).await.ok()?;
    match finished.stdout.text().trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
