//! Commands of other tools: each gets a hint with the command of this program.

use crate::nearest_name::hint_with_pointer;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A command of another tool, and the command here.
const COMMANDS: &[(&str, &str)] = &[
    ("agent", "steadfast run GRAPH.yaml, or steadfast apply GRAPH.yaml for one time"),
    ("backup", "steadfast state export FILE; files have `steadfast history`"),
    ("config", "steadfast explain settings; the file is /etc/steadfast/steadfast.yaml"),
    ("converge", "steadfast apply GRAPH.yaml"),
    ("create", "declare the object in the graph, then steadfast reload"),
    ("delete", "declare `state: absent` in the graph, then steadfast reload"),
    ("describe", "steadfast show RES"),
    ("destroy", "steadfast apply GRAPH.yaml without the resources that had `on_remove: delete`"),
    ("disable", "systemctl disable steadfast.service"),
    ("enable", "systemctl enable --now steadfast.service"),
    ("exec", "steadfast explain exec: commands are resources of the graph"),
    ("facter", "steadfast facts"),
    ("get", "steadfast status RES, or steadfast show RES"),
    ("health", "steadfast doctor, or steadfast status"),
    ("import", "steadfast inspect KIND NAME prints a live object; steadfast state import FILE"),
    ("info", "steadfast status, or steadfast show RES"),
    ("install", "steadfast explain pkg: packages are resources of the graph"),
    ("journal", "steadfast events"),
    ("kill", "steadfast stop, or steadfast stop --now"),
    ("lint", "steadfast check --lint GRAPH.yaml"),
    ("list", "steadfast graph GRAPH.yaml, or steadfast top"),
    ("log", "steadfast events"),
    ("logs", "steadfast events"),
    ("ls", "steadfast graph GRAPH.yaml, or steadfast top"),
    ("metrics", "curl --unix-socket /run/steadfast/metrics.sock http://localhost/metrics"),
    ("monitor", "steadfast top, or steadfast events --follow"),
    ("noop", "steadfast plan GRAPH.yaml"),
    ("parser", "steadfast check GRAPH.yaml"),
    ("playbook", "steadfast apply GRAPH.yaml"),
    ("preview", "steadfast plan GRAPH.yaml"),
    ("ps", "steadfast status, or steadfast workers"),
    ("reboot", "systemctl reboot; `steadfast status` tells if the host needs one"),
    ("refresh", "steadfast check 'RES', or steadfast retry 'RES'"),
    ("remove", "declare `state: absent` in the graph, then steadfast reload"),
    ("resource", "steadfast inspect KIND NAME"),
    ("restart", "systemctl restart steadfast.service; `steadfast reload` reads the graph again"),
    ("restore", "steadfast undo 'RES', or steadfast state import FILE"),
    ("revert", "steadfast undo 'RES'"),
    ("rollback", "steadfast undo 'RES'"),
    ("secret", "steadfast explain secrets"),
    ("secrets", "steadfast explain secrets"),
    ("service", "systemctl start steadfast.service; services are resources: steadfast explain svc"),
    ("settings", "steadfast explain settings; the file is /etc/steadfast/steadfast.yaml"),
    ("setup", "steadfast facts, or steadfast init for a first graph"),
    ("start", "systemctl start steadfast.service, or steadfast run GRAPH.yaml"),
    ("sync", "steadfast reload, or steadfast apply GRAPH.yaml"),
    ("syntax", "steadfast check GRAPH.yaml"),
    ("tail", "steadfast events --follow"),
    ("unpause", "steadfast resume"),
    ("up", "steadfast apply GRAPH.yaml"),
    ("update", "steadfast reload reads the graph again; a package has `state: newest`"),
    ("upgrade", "install the new program, then systemctl restart steadfast.service"),
    ("validate", "steadfast check GRAPH.yaml"),
    ("vault", "steadfast explain secrets"),
    ("verify", "steadfast check GRAPH.yaml, or steadfast drift GRAPH.yaml"),
    ("version", "steadfast --version"),
    ("watch", "steadfast top, or steadfast events --follow; steadfast run --watch GRAPH.yaml"),
];

/// A flag of another tool, and the command or flag here.
const FLAGS: &[(&str, &str)] = &[
    ("--ask-become-pass", "run the command as root, for example with sudo"),
    ("--auto-approve", "--yes"),
    ("--become", "run the command as root, for example with sudo"),
    ("--check", "steadfast plan GRAPH.yaml"),
    ("--diff", "steadfast plan GRAPH.yaml: a plan shows the differences"),
    ("--dry-run", "steadfast plan GRAPH.yaml"),
    ("--environment", "--vars FILE, or a folder for each environment"),
    ("--extra-vars", "--var NAME=VALUE, or --vars FILE"),
    ("--fix", "steadfast doctor prints a command for each problem"),
    ("--forks", "a semaphore bounds the runs at the same time: steadfast explain meta.sema"),
    ("--format", "--json"),
    ("--interval", "the setting `sweep: SECONDS`, or meta: {poll: SECONDS} of a resource"),
    ("--inventory", "steadfast runs on each host; docs/guide/many-hosts.md"),
    ("--limit", "--only 'KIND[NAME]', or -l NAME=VALUE for labels"),
    ("--output", "--json"),
    ("--quiet", "the output to /dev/null; the exit code has the result"),
    ("--runinterval", "the setting `sweep: SECONDS`, or meta: {poll: SECONDS} of a resource"),
    ("--selector", "-l NAME=VALUE"),
    ("--skip-tags", "--skip 'KIND[NAME]'"),
    ("--syntax-check", "steadfast check GRAPH.yaml"),
    ("--tags", "-l NAME=VALUE: labels of resources; or --only 'KIND[NAME]'"),
    ("--tail", "-n NUMBER"),
    ("--target", "--only 'KIND[NAME]'"),
    ("--test", "steadfast plan GRAPH.yaml"),
    ("--unit", "the resource without a flag, for example 'svc[nginx]'"),
    ("--until", "--for TIME, or --since TIME"),
    ("--var-file", "--vars FILE"),
    ("--verbose", "steadfast log-level debug, or steadfast events --debug"),
    ("-b", "run the command as root, for example with sudo"),
    ("-e", "--var NAME=VALUE, or --vars FILE"),
    ("-i", "steadfast runs on each host; docs/guide/many-hosts.md"),
    ("-o", "--json"),
    ("-t", "-l NAME=VALUE: labels of resources; or --only 'KIND[NAME]'"),
    ("-u", "the resource without a flag, for example 'svc[nginx]'"),
    ("-v", "steadfast log-level debug, or steadfast events --debug"),
    ("-y", "--yes"),
];

/// Returns the hint for an unknown command or flag: the command here for one of another tool, else the similar words of
/// this program and a pointer to all. The suggestions of the parser are removed from the error, because they guess.
pub(super) fn hint(
    error: &mut clap::Error,
    program: &clap::Command,
    arguments: impl IntoIterator<Item = String>,
) -> Option<String> {
    let (kind, table) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, COMMANDS),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, FLAGS),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    let word = word.clone();
    for guess in
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::Suggested]
    {
        error.remove(guess);
    }
    // A flag of the form `--until=2h` is reported as it is written.
    let name = word.split('=').next().unwrap_or_default();
    if let Some((_, own)) = table.iter().find(|(foreign, _)| *foreign == name) {
        return Some((*own).to_owned());
    }
    let (path, command) = addressed(program, arguments);
    let help = format!("{path} --help");
    if kind == ContextKind::InvalidSubcommand {
        let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        return Some(hint_with_pointer(&word, &known, ("commands", &help)));
    }
    if !name.starts_with("--") {
        return Some(format!("`{help}` lists all options"));
    }
    let options = command.get_arguments().filter(|option| !option.is_hide_set());
    let known: Vec<String> =
        options.filter_map(|it| it.get_long()).map(|long| format!("--{long}")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Some(hint_with_pointer(name, &known, ("options", &help)))
}

/// Returns the command that the arguments select, with its words.
fn addressed(
    program: &clap::Command,
    arguments: impl IntoIterator<Item = String>,
) -> (String, &clap::Command) {
    let (mut path, mut command) = (program.get_name().to_owned(), program);
    for word in arguments {
        if let Some(next) = command.find_subcommand(&word) {
            path.push_str(&format!(" {word}"));
            command = next;
        }
    }
    (path, command)
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, FLAGS, hint};
    use clap::CommandFactory as _;

    fn hint_of(words: &str) -> Option<String> {
        let program = crate::cli::shell::command();
        let words: Vec<String> = words.split(' ').map(ToOwned::to_owned).collect();
        let mut error = program.clone().try_get_matches_from(&words).expect_err("an error");
        let hint = hint(&mut error, &program, words.into_iter().skip(1));
        assert!(!error.to_string().contains("tip:"), "{error}");
        hint
    }

    /// An unknown word gets the word that is meant, else up to three similar ones and a pointer.
    #[test]
    fn unknown_words_get_similar_ones_and_a_pointer() {
        for (words, expected) in [
            ("steadfast stauts", "did you mean `status`?"),
            ("steadfast plann", "did you mean `plan`?"),
            (
                "steadfast reset",
                "similar commands: `resume`, `test`, `fleet`; `steadfast --help` lists all",
            ),
            ("steadfast zzz", "`steadfast --help` lists all commands"),
            ("steadfast state foo", "`steadfast state --help` lists all commands"),
            ("steadfast events --sinc 2h", "did you mean `--since`?"),
            ("steadfast apply --noopp g.yaml", "did you mean `--noop`?"),
            ("steadfast events --zzz", "`steadfast events --help` lists all options"),
            ("steadfast events -z", "`steadfast events --help` lists all options"),
            ("steadfast events --tail 20", "-n NUMBER"),
            ("steadfast pause --until=2h", "--for TIME, or --since TIME"),
            ("steadfast get pods", "steadfast status RES, or steadfast show RES"),
        ] {
            assert_eq!(hint_of(words).as_deref(), Some(expected), "{words}");
        }
    }

    /// Each option that a hint for a flag names is one of this program.
    #[test]
    fn each_hint_for_a_flag_names_options_of_this_program() {
        let program = crate::cli::args::Cli::command();
        let options = |command: &clap::Command| -> Vec<String> {
            let longs = command.get_arguments().filter_map(|it| it.get_long());
            longs.map(|long| format!("--{long}")).collect()
        };
        let own: Vec<String> = program.get_subcommands().flat_map(options).collect();
        for (flag, hint) in FLAGS {
            for word in hint.split([' ', ',', ';', ':', '`']).filter(|it| it.starts_with("--")) {
                assert!(own.iter().any(|own| own == word), "{flag}: {hint}");
            }
        }
    }

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
