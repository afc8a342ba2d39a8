//! The back end that the settings name, and the name of this host.

use crate::config::{WorldBackend, WorldSettings};
use crate::world::keys::is_host_name;
use crate::world::{EmbeddedWorld, FolderWorld, World, WorldError};
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::host::input_trust::Reader;

/// The name of the embedded world in the state directory.
const DATABASE: &str = "world.sqlite";

/// Opens the world that the settings name. etcd is connected by the first call.
///
/// # Errors
/// The failure of an embedded world.
pub(super) fn open_world(
    settings: &WorldSettings,
    state_directory: &Path,
) -> Result<Arc<dyn World>, WorldError> {
    if let WorldBackend::File(path) | WorldBackend::Folder(path) = &settings.backend {
        check_trust(path)?;
    }
    Ok(match &settings.backend {
        WorldBackend::Embedded => Arc::new(EmbeddedWorld::open(&state_directory.join(DATABASE))?),
        WorldBackend::File(path) => Arc::new(EmbeddedWorld::open_shared(path)?),
        WorldBackend::Folder(path) => Arc::new(FolderWorld::new(path.clone())),
        #[cfg(feature = "etcd")]
        WorldBackend::Etcd { endpoints, ca, cert, key, cluster } => {
            Arc::new(crate::world::EtcdWorld::new(crate::world::EtcdSettings {
                endpoints: endpoints.clone(),
                ca: ca.clone(),
                cert: cert.clone(),
                key: key.clone(),
                cluster: cluster.clone(),
            }))
        }
        #[cfg(not(feature = "etcd"))]
        WorldBackend::Etcd { .. } => {
            return Err(WorldError::Invalid("this build has no etcd".to_owned()));
        }
    })
}

/// Opens the world of some settings for a command, which must not make a world of its own.
///
/// # Errors
/// [`WorldError::Unavailable`] for a database that does not exist; another one for a world that another user can
/// change, or that cannot be opened.
pub fn open_existing_world(
    settings: &WorldSettings,
    state_directory: &Path,
) -> Result<Arc<dyn World>, WorldError> {
    let path = match &settings.backend {
        WorldBackend::Embedded => Some(state_directory.join(DATABASE)),
        WorldBackend::File(path) => Some(path.clone()),
        _ => None,
    };
    if let Some(path) = path.filter(|path| !path.exists()) {
        let what = format!("{} does not exist; a daemon makes it", path.display());
        return Err(WorldError::Unavailable(what));
    }
    open_world(settings, state_directory)
}

/// Rejects, for root, a world in which another user could write: its values become the content of files (S-11).
fn check_trust(path: &Path) -> Result<(), WorldError> {
    let reader = Reader::here();
    if !reader.is_strict() {
        return Ok(());
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The database may not exist yet: nobody else may make it first.
    let above = path.parent().and_then(|above| reader.untrusted_on_the_way(above));
    match above.or_else(|| reader.untrusted_on_the_way(&path)) {
        Some(doubt) => {
            let what = format!("another user could write the world: {doubt}");
            Err(WorldError::Denied(what))
        }
        None => Ok(()),
    }
}

/// Returns the name of this host in the world: the setting, or the host name of the machine.
#[must_use]
pub fn host_name(settings: &WorldSettings) -> String {
    if let Some(name) = &settings.host {
        return name.clone();
    }
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    if is_host_name(&name) { name } else { "localhost".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    fn open(backend: WorldBackend) -> Result<Arc<dyn World>, WorldError> {
        let settings = WorldSettings { backend, ..WorldSettings::default() };
        open_world(&settings, Path::new("/nowhere"))
    }

    /// S-11: root opens no world that another user could write, or put a link in the place of.
    #[test]
    fn a_world_of_another_user_is_refused() {
        if !Reader::here().is_strict() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("theirs");
        std::fs::create_dir(&path).expect("made");
        assert!(open(WorldBackend::File(path.join("world.db"))).is_ok(), "a directory of root");
        chown(&path, Some(1000), Some(1000)).expect("given away");
        for backend in [
            WorldBackend::File(path.join("world.db")),
            WorldBackend::File(path.join("new.db")),
            WorldBackend::Folder(path.clone()),
        ] {
            match open(backend) {
                Err(WorldError::Denied(why)) => assert!(why.contains("another user"), "{why}"),
                other => panic!("expected a refusal, found {:?}", other.err()),
            }
        }
        assert!(!path.join("new.db").exists(), "nothing is made there");
    }
}
