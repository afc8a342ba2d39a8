//! The world of a one-shot command: each read and write goes to the back end, which is opened at the first one.
//! Permits are not granted: a change that needs one is held.

use super::connection::{host_name, open_world};
use super::host_world::{full_key, value_of, write_key};
use crate::config::WorldSettings;
use crate::world::{Entry, World, WorldError, keys};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::host::world::{NumberedPermit, SharedWorld, WorldKey, WorldValue};
use steadfast_resources::{Answer, Failure, Host};
use tokio::sync::OnceCell;

/// The connection of a one-shot command.
#[derive(Debug)]
struct DirectWorld {
    settings: WorldSettings,
    state_directory: PathBuf,
    host: String,
    world: OnceCell<Arc<dyn World>>,
}

/// Connects the host of a one-shot command to the world of the settings.
#[must_use]
pub fn with_direct_world(
    host: Host,
    settings: Option<&WorldSettings>,
    state_directory: &Path,
) -> Host {
    let settings = settings.cloned().unwrap_or_default();
    host.with_world(Arc::new(DirectWorld {
        host: host_name(&settings),
        settings,
        state_directory: state_directory.to_owned(),
        world: OnceCell::new(),
    }))
}

impl DirectWorld {
    async fn world(&self) -> Result<&Arc<dyn World>, Failure> {
        let (settings, directory) = (self.settings.clone(), self.state_directory.clone());
        let open = async move {
            let opened = tokio::task::spawn_blocking(move || open_world(&settings, &directory));
            opened.await.map_err(|error| WorldError::Unavailable(error.to_string()))?
        };
        self.world.get_or_try_init(|| open).await.map_err(|error| failure_of(&error))
    }
}

/// Returns host and value of an entry that maps hosts to values for the key.
fn host_value(entry: &Entry, key: &str) -> Option<(String, String)> {
    let parts = keys::split_key(&entry.key)?;
    let [_, host, _] = parts.as_slice() else { return None };
    let value = value_of(entry).filter(|_| parts.last().is_some_and(|name| name == key))?;
    Some((host.clone(), value))
}

fn failure_of(error: &WorldError) -> Failure {
    Failure::new(error.to_string()).hint("see the setting `world`").passing()
}

impl SharedWorld for DirectWorld {
    fn read_value<'a>(&'a self, key: &'a WorldKey) -> Answer<'a, Result<WorldValue, Failure>> {
        Box::pin(async move {
            let world = self.world().await?;
            let found = world.get(&full_key(&self.host, key)).await;
            let own = found.map_err(|error| failure_of(&error))?.and_then(|entry| value_of(&entry));
            let mut by_host = Vec::new();
            if let WorldKey::Mapped(key) = key {
                let all = world.list(keys::VALUES).await.map_err(|error| failure_of(&error))?;
                by_host.extend(all.entries.iter().filter_map(|entry| host_value(entry, key)));
            }
            Ok(WorldValue { own, by_host })
        })
    }

    fn write_value<'a>(
        &'a self,
        key: &'a WorldKey,
        value: Option<&'a str>,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            let world = self.world().await?;
            let full = full_key(&self.host, key);
            let written = write_key(world.as_ref(), (&full, key), value).await;
            written.map(drop).map_err(|error| failure_of(&error))
        })
    }

    fn want_permits(&self, wanted: Vec<NumberedPermit>) {
        drop(wanted);
    }
}
