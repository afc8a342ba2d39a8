//! Arguments of the commands that explain kinds and print live objects.

use clap::Args;

/// `steadfast inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// Kind of the objects (`file`, `pkg`, `svc`)
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// Names of the objects, such as /etc/motd or nginx
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Print all objects of the kind
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// `steadfast explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Kind (`file`), `meta`, `settings` or problem code (`C404`) [default: list all topics]
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}
