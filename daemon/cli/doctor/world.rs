//! The world of the settings: its answer, its version, and a certificate that is readable.

use super::Finding;
use crate::config::{Rejected, Settings, WorldBackend};
use crate::workers::{host_name, open_existing_world};
use crate::world::World;
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
            findings.push(Finding::warning(
                NAME,
                what,
                "use https:// with ca, cert and key: `steadfast explain settings`",
            ));
        } else if cert.is_none() {
            let what = "etcd without a certificate of this host";
            findings.push(Finding::warning(
                NAME,
                what,
                "set cert and key: `steadfast explain settings`; docs/guide/many-hosts.md",
            ));
        }
    }
    let host = host_name(world_settings);
    let found = match open_existing_world(world_settings, state_directory) {
        Ok(world) => {
            let key = crate::world::keys::host_status(&host);
            match tokio::time::timeout(PATIENCE, world.get(&key)).await {
                Ok(Ok(_)) => {
                    findings.extend(old_server(world.as_ref()).await);
                    let is_file = matches!(world_settings.backend, WorldBackend::File(_));
                    let name = if is_file { "file" } else { world.backend() };
                    Finding::ok(NAME, format!("{name} answers; this host is {host}"))
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

/// Returns a warning about a server of etcd that shows the names of keys with a lease to every user.
async fn old_server(world: &dyn World) -> Option<Finding> {
    let version = tokio::time::timeout(PATIENCE, world.server_version()).await.ok()?.ok()??;
    let what = format!("etcd {version} shows the names of keys with a lease to every user");
    let hint = "install etcd 3.4.26 or newer: `apt-get install etcd-server`; secrets are never in the world";
    shows_names(&version).then(|| Finding::warning(NAME, what, hint))
}

/// Returns true for a version before 3.4.26, and before 3.5.9 of the next line.
fn shows_names(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
    let mut next = || parts.next().unwrap_or_default();
    match (next(), next(), next()) {
        (3, 5, patch) => patch < 9,
        (3, 4, patch) => patch < 26,
        (major, minor, _) => (major, minor) < (3, 4),
    }
}

fn problem(why: &str) -> Finding {
    let advice = "the daemon goes on with its last values; ask by hand: `steadfast world list`";
    Finding::warning(NAME, why, advice)
}

#[cfg(test)]
mod tests {
    use super::shows_names;

    #[test]
    fn servers_that_show_names_are_known() {
        for old in ["3.4.23", "3.4.25", "3.5.8", "3.3.27", "2.3.8"] {
            assert!(shows_names(old), "{old}");
        }
        for new in ["3.4.26", "3.4.30", "3.5.9", "3.5.16", "3.6.0", "4.0.0"] {
            assert!(!shows_names(new), "{new}");
        }
    }
}
