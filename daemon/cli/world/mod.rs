//! Commands for many hosts. They use the world of the settings directly, without a daemon.
//!
//! Reading order: this file (the connection), `fleet`, `operator` (`world forget`, `release`, `list`), `bundle`,
//! `deploy`.

pub(super) mod bundle;
pub(super) mod deploy;
pub(super) mod fleet;
pub(super) mod operator;

use super::args::WorldOf;
use super::exit::Exit;
use super::{output, settings, state_dir};
use crate::config::WorldSettings;
use crate::workers::open_existing_world;
use crate::world::{World, WorldError};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of one call; a command waits longer only where it says so.
const PATIENCE: Duration = Duration::from_secs(15);

/// Opens the world of the settings, and runs a command with it.
pub(super) fn with_world<F>(
    of: &WorldOf,
    command: impl FnOnce(Arc<dyn World>, WorldSettings) -> F,
) -> Exit
where
    F: Future<Output = Result<Exit, WorldError>>,
{
    let (path, read) = settings::of_host(of.config.as_deref());
    let settings = match read {
        Some(Err(rejected)) => {
            output::say_rejected(&rejected);
            return Exit::Graph;
        }
        Some(Ok(settings)) => settings,
        None => crate::config::Settings::default(),
    };
    let directory = of.state_dir.clone().or(settings.state_dir);
    let directory = state_dir::directory(directory.as_deref());
    let world_settings = settings.world.unwrap_or_default();
    super::on_runtime(|runtime| {
        let opened = open_existing_world(&world_settings, &directory);
        let done = match opened {
            Ok(world) => runtime.block_on(command(world, world_settings)),
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| {
            let shown = path.display();
            let hint = format!("the setting `world` of {shown} names the world");
            output::error(output::plain(&error.to_string()), Some(&hint));
            match error {
                WorldError::Denied(_) => Exit::Permission,
                WorldError::Unavailable(_) => Exit::NoDaemon,
                _ => Exit::Failed,
            }
        })
    })
}

/// Limits the time of one call.
pub(super) async fn in_time<T>(
    call: impl Future<Output = Result<T, WorldError>>,
) -> Result<T, WorldError> {
    let late = |_| Err(WorldError::Unavailable("no answer within 15 s".to_owned()));
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(late)
}

/// Returns the name of the operator: user and host.
pub(super) fn operator_name() -> String {
    let user = std::env::var("SUDO_USER").or_else(|_| std::env::var("USER"));
    let system = rustix::system::uname();
    format!(
        "{}@{}",
        user.unwrap_or_else(|_| "root".to_owned()),
        system.nodename().to_string_lossy()
    )
}
