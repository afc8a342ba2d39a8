//! Arguments of the commands for many hosts: `fleet`, `world`, `bundle`, `deploy`.

use crate::config;
use crate::world::splay::LONGEST_SPLAY;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The world of a command: that of the settings file.
#[derive(Clone, Debug, Args)]
pub struct WorldOf {
    /// Settings file with the setting `world` [default: /etc/steadfast/steadfast.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State directory, for the embedded world [default: as the settings say, or /var/lib/steadfast]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// `steadfast fleet`.
#[derive(Debug, Args)]
pub struct Fleet {
    /// The command.
    #[command(subcommand)]
    pub command: Option<FleetCommand>,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The commands of `steadfast fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Wait until all requested hosts run a generation and are converged
    Wait(FleetWait),
    /// Show one host
    Show(FleetShow),
}

/// `steadfast fleet wait`.
#[derive(Debug, Args)]
pub struct FleetWait {
    /// Generation: the first characters of its hash, as `fleet` shows it
    #[arg(long, value_name = "HASH")]
    pub generation: String,
    /// Hosts to wait for, such as `web*` [default: all]
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    pub hosts: String,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = config::span, default_value = "15m")]
    pub timeout: u64,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
}

/// `steadfast fleet show`.
#[derive(Debug, Args)]
pub struct FleetShow {
    /// Host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast world`.
#[derive(Debug, Args)]
pub struct World {
    /// The command.
    #[command(subcommand)]
    pub command: WorldCommand,
}

/// The commands of `steadfast world`.
#[derive(Debug, Subcommand)]
pub enum WorldCommand {
    /// Forget a host that is gone: its exports, values, tickets and slots are deleted
    Forget(WorldForget),
    /// Free the permit of a host by hand: the ticket of a semaphore, or the slot of a roll
    Release(WorldRelease),
    /// List the keys of the world with their values
    List(WorldList),
}

/// `steadfast world forget`.
#[derive(Debug, Args)]
pub struct WorldForget {
    /// Host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
}

/// `steadfast world release`.
#[derive(Debug, Args)]
pub struct WorldRelease {
    /// `sema/ID` or `roll/NAME`
    #[arg(value_name = "PERMIT")]
    pub permit: String,
    /// Host that holds the permit
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
}

/// `steadfast world list`.
#[derive(Debug, Args)]
pub struct WorldList {
    /// Beginning of the keys, such as exports/
    #[arg(value_name = "PREFIX", default_value = "")]
    pub prefix: String,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
}

/// `steadfast bundle`.
#[derive(Debug, Args)]
pub struct Bundle {
    /// Folder of the graph
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Private key (PEM, ed25519): openssl genpkey -algorithm ed25519
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Cluster that may run the bundle
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub cluster: String,
    /// Hosts that may run the bundle, such as `web*`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', default_value = "*")]
    pub hosts: Vec<String>,
    /// Number of the generation, above all before [default: seconds since 1970]
    #[arg(long, value_name = "N")]
    pub sequence: Option<u64>,
    /// Time for which hosts may start to run the bundle
    #[arg(long, value_name = "TIME", value_parser = config::span, default_value = "30d")]
    pub valid: u64,
}

/// `steadfast deploy`.
#[derive(Debug, Args)]
pub struct Deploy {
    /// Bundle, as written by `steadfast bundle`
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Hosts to deploy to, such as `web*`
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    pub hosts: String,
    /// Number of hosts in the first wave
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub canary: usize,
    /// Size of each further wave: a number of hosts, or a share such as 10%
    #[arg(long, value_name = "SIZE", default_value = "10%")]
    pub wave: String,
    /// Time within which the hosts of a wave start, each at its own moment
    #[arg(long, value_name = "TIME", value_parser = splay)]
    pub splay: Option<u64>,
    /// Time that a wave may take until all of its hosts are converged
    #[arg(long, value_name = "TIME", value_parser = config::span, default_value = "15m")]
    pub timeout: u64,
    /// The world.
    #[command(flatten)]
    pub world: WorldOf,
}

/// Reads the time over which the hosts of a wave are spread.
fn splay(text: &str) -> Result<u64, String> {
    let seconds = config::span(text)?;
    if seconds > LONGEST_SPLAY {
        return Err("expected at most 1h".to_owned());
    }
    Ok(seconds)
}
