//! The world of the settings: its answer, its version, and a certificate that is readable.

use super::Finding;
use crate::config::{Rejected, Settings, WorldBackend};
use crate::workers::{host_name, open_world};
use std::path::Path;
use std::time::Duration;

/// The name of the check.
const NAME: &str = "world";

/// The time that the world has for an answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// Asks the world for a key. Without the setting there is nothing to find.
pub(super) async fn look(
    read: Option<&Result<Settings, Rejected>>,
    state_directory: &Path,
) -> Vec<Finding> {
    let Some(Ok(settings)) = read else { return Vec::new() };
    let Some(world_settings) = &settings.world else { return Vec::new() };
    let mut findings = Vec::new();
    if let WorldBackend::Etcd { endpoints, cert, .. } = &world_settings.backend {
        if endpoints.iter().any(|endpoint| endpoint.starts_with("http://")) {
            let what = "etcd without TLS: each program on the network can change the world";
            findings.push(Finding::warning(NAME, what, "use https:// with ca, cert and key"));
        } else if cert.is_none() {
            let what = "etcd without a certificate of this host";
            findings.push(Finding::warning(
                NAME,
                what,
                "set cert and key; see docs/guide/many-hosts.md",
            ));
        }
        let old = "etcd 3.4 before 3.4.26 (Debian 12 has 3.4.23) shows names of keys to every user";
        findings.push(Finding::ok(NAME, old));
    }
    let host = host_name(world_settings);
    let found = match open_world(world_settings, state_directory) {
        Ok(world) => {
            let key = crate::world::keys::host_status(&host);
            match tokio::time::timeout(PATIENCE, world.get(&key)).await {
                Ok(Ok(_)) => {
                    Finding::ok(NAME, format!("{} answers; this host is {host}", world.backend()))
                }
                Ok(Err(error)) => problem(&error.to_string()),
                Err(_) => problem("no answer within 4 s"),
            }
        }
        Err(error) => problem(&error.to_string()),
    };
    findings.push(found);
    findings
}

fn problem(why: &str) -> Finding {
    let advice = "the daemon goes on with its last graph and values; check `world` in the settings";
    Finding::warning(NAME, why, advice)
}
