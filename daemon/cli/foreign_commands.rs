//! Commands of other tools: each gets a hint with the command of this program.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A command of another tool, and the command here.
const COMMANDS: &[(&str, &str)] = &[
    ("converge", "steadfast apply GRAPH.yaml"),
    ("destroy", "steadfast apply GRAPH.yaml without the resources that had `on_remove: delete`"),
    ("facter", "steadfast facts"),
    ("info", "steadfast status, or steadfast show RES"),
    ("install", "steadfast explain pkg: packages are resources of the graph"),
    ("journal", "steadfast events"),
    ("lint", "steadfast check --lint GRAPH.yaml"),
    ("list", "steadfast graph GRAPH.yaml, or steadfast top"),
    ("log", "steadfast events"),
    ("logs", "steadfast events"),
    ("ls", "steadfast graph GRAPH.yaml, or steadfast top"),
    ("preview", "steadfast plan GRAPH.yaml"),
    ("refresh", "steadfast check 'RES', or steadfast retry 'RES'"),
    ("restart", "systemctl restart steadfast.service; `steadfast reload` reads the graph again"),
    ("rollback", "steadfast undo 'RES'"),
    ("start", "systemctl start steadfast.service, or steadfast run GRAPH.yaml"),
    ("syntax", "steadfast check GRAPH.yaml"),
    ("unpause", "steadfast resume"),
    ("up", "steadfast apply GRAPH.yaml"),
    ("validate", "steadfast check GRAPH.yaml"),
    ("verify", "steadfast check GRAPH.yaml, or steadfast drift GRAPH.yaml"),
    ("version", "steadfast --version"),
];

/// A flag of another tool, and the command or flag here.
const FLAGS: &[(&str, &str)] = &[
    ("--check", "steadfast plan GRAPH.yaml"),
    ("--diff", "steadfast plan GRAPH.yaml: a plan shows the differences"),
    ("--dry-run", "steadfast plan GRAPH.yaml"),
    ("--extra-vars", "--var NAME=VALUE, or --vars FILE"),
    ("--limit", "--only 'KIND[NAME]', or -l NAME=VALUE for labels"),
    ("--tags", "-l NAME=VALUE: labels of resources; or --only 'KIND[NAME]'"),
    ("--skip-tags", "--skip 'KIND[NAME]'"),
    ("--target", "--only 'KIND[NAME]'"),
    ("--test", "steadfast plan GRAPH.yaml"),
    ("--auto-approve", "--yes"),
];

/// Returns the command here for a command of another tool that the arguments named.
pub(super) fn hint(error: &clap::Error) -> Option<&'static str> {
    let (kind, table) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, COMMANDS),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, FLAGS),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    table.iter().find(|(foreign, _)| foreign == word).map(|(_, own)| *own)
}

#[cfg(test)]
mod tests {
    use super::COMMANDS;
    use clap::CommandFactory as _;

    /// Each row is a word that this program does not have, and its hint names a command that exists.
    #[test]
    fn each_hint_names_a_command_of_this_program() {
        let program = crate::cli::args::Cli::command();
        let own: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        for (foreign, hint) in COMMANDS {
            assert!(!own.contains(foreign), "{foreign}");
            let words = hint.split("steadfast ").skip(1);
            for word in words.filter_map(|rest| rest.split([' ', ',', ':', '`']).next()) {
                assert!(word.starts_with("--") || own.contains(&word), "{hint}: {word}");
            }
        }
    }
}
