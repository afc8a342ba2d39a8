//! Arguments of the commands that explain kinds and print live objects.

use super::Graph;
use crate::cli::inspect;
use clap::Args;

/// `steadfast inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// Kind of the objects (`file`, `pkg`, `svc`)
    #[arg(value_name = "KIND", long_help = inspected_kinds())]
    pub kind: String,
    /// Names of the objects, such as /etc/motd or nginx
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Print all objects of the kind
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// Returns the help of the argument KIND of `inspect`: the kinds whose objects can be read back.
fn inspected_kinds() -> String {
    format!("Kind of the objects: {}", inspect::inspected_kinds().join(", "))
}

/// `steadfast init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Folder of the new files
    #[arg(long, value_name = "DIR", default_value = "/etc/steadfast")]
    pub dir: std::path::PathBuf,
}

/// `steadfast explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Kind (`file`), field (`file.mode`), word of the language (`when`), `facts.NAME`, problem code (`C404`), the
    /// folder of a module (`./modules/site`), or a topic such as `recv` or `events` [default: list all topics]
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}

/// `steadfast schema`.
#[derive(Debug, Args)]
pub struct Schema {}

/// `steadfast fmt`.
#[derive(Debug, Args)]
pub struct FormatFiles {
    /// Graph files and modules, or folders of them; `-` formats standard input to standard output
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<std::path::PathBuf>,
    /// Write nothing; exit with 1 if a file is not formatted
    #[arg(long)]
    pub check: bool,
}

/// `steadfast eval`.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// Expression as it stands: `facts.cpu.count * 2`
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub expression: String,
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Answer of a probe: `--probe size=4` gives `probe.size`; in a module `--probe shop/size=4`
    #[arg(long = "probe", value_name = "NAME=VALUE")]
    pub probes: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
