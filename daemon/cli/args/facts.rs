//! Arguments of `steadfast facts`.

use clap::Args;

/// `steadfast facts`.
#[derive(Debug, Args)]
pub struct FactsArgs {
    /// Fact or group, such as `hostname` or `os` [default: all facts]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON, which `--facts FILE` of other commands reads
    #[arg(long)]
    pub json: bool,
}
