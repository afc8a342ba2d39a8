//! Examples for the `--help` and the manual page of each command.

use clap::Command;

/// A command line, and its description.
pub(super) type Example = (&'static str, &'static str);

/// The examples of each command; a test checks that every command has some.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "run",
        &[
            (
                "steadfast run /etc/steadfast/graph.yaml",
                "hold this host to that graph, until stopped",
            ),
            ("steadfast run --watch graph.yaml", "reload when the file changes"),
            ("steadfast run --noop --log json site/", "only say what would be changed, as JSON"),
        ],
    ),
    (
        "apply",
        &[
            ("steadfast apply graph.yaml", "make it so, once"),
            (
                "steadfast apply --only file --detailed-exitcode graph.yaml",
                "only the files; ends with 2 if something was changed",
            ),
        ],
    ),
    (
        "plan",
        &[
            ("steadfast plan graph.yaml", "show what apply would change"),
            ("steadfast plan --explain-edges graph.yaml", "with the reason of each edge"),
        ],
    ),
    (
        "drift",
        &[
            ("steadfast drift graph.yaml", "show what differs now"),
            ("steadfast drift --json --detailed-exitcode graph.yaml", "for a program that watches"),
        ],
    ),
    (
        "check",
        &[
            ("steadfast check graph.yaml", "report every problem of a graph"),
            ("steadfast check 'file[motd]'", "let the running daemon look at a resource again"),
        ],
    ),
    (
        "graph",
        &[
            ("steadfast graph graph.yaml", "resources, edges and where each comes from"),
            ("steadfast graph --format dot graph.yaml | dot -Tsvg > graph.svg", "a drawing"),
        ],
    ),
    (
        "history",
        &[
            ("steadfast history", "what was changed lately, when and why"),
            ("steadfast history 'file[motd]' --json", "of one resource, for a program"),
        ],
    ),
    (
        "diff",
        &[
            (
                "steadfast diff 'file[motd]'",
                "what the last change took away, against what is there",
            ),
            ("steadfast diff 'file[motd]' 12 17", "between two numbers that history shows"),
        ],
    ),
    (
        "undo",
        &[
            ("steadfast undo 'file[motd]'", "put back what was there before its last change"),
            (
                "steadfast undo 'file[motd]' --to 12 --for 1d",
                "before change 12; its graph waits a day",
            ),
        ],
    ),
    (
        "explain",
        &[
            ("steadfast explain file", "the fields of a kind"),
            ("steadfast explain meta", "what every resource takes"),
            ("steadfast explain C404", "a problem of a graph"),
        ],
    ),
    (
        "status",
        &[
            ("steadfast status", "as declared, or what stands in the way"),
            ("steadfast status --watch", "again each second"),
            ("steadfast status --json | jq .verdict", "for a program"),
        ],
    ),
    ("top", &[("steadfast top", "all resources, worst first; ? shows the keys")]),
    (
        "show",
        &[(
            "steadfast show 'file[motd]'",
            "how it stands, what it needs, what became of it lately",
        )],
    ),
    ("why", &[("steadfast why 'file[motd]'", "what stands in its way, up to the cause")]),
    (
        "events",
        &[
            ("steadfast events", "what happened lately"),
            ("steadfast events -f 'file[motd]'", "what happens to one resource, until interrupted"),
            ("steadfast events --since 2h --json", "for a program, also when no daemon runs"),
        ],
    ),
    (
        "report",
        &[("steadfast report", "the workers inside the daemon, their starts and last errors")],
    ),
    (
        "pause",
        &[(
            "steadfast pause --for 2h --reason \"upgrade of the database\"",
            "nothing is started for two hours",
        )],
    ),
    (
        "resume",
        &[
            ("steadfast resume", "show what will change, and go on"),
            ("steadfast resume --plan", "only show it"),
            ("steadfast resume 'svc[nginx]'", "of one that was paused by itself"),
        ],
    ),
    ("reload", &[("steadfast reload", "read the graph again; a broken one changes nothing")]),
    ("retry", &[("steadfast retry 'pkg[nginx]'", "run it again, also if it has failed")]),
    (
        "protect",
        &[("steadfast protect 'file[data]'", "no graph without it is taken, whatever it removes")],
    ),
    ("unprotect", &[("steadfast unprotect 'file[data]'", "that is over")]),
    (
        "forget",
        &[
            ("steadfast forget 'exec[migrate]'", "it runs once more"),
            ("steadfast forget 'file[made]'", "it is adopted: it stays when it leaves the graph"),
        ],
    ),
    ("redo", &[("steadfast redo 'exec[migrate]'", "it runs once more, also after a restart")]),
    (
        "state",
        &[
            ("steadfast state show", "all that is kept between runs"),
            ("steadfast state show 'file[motd]' --json", "of one resource, for a program"),
            ("steadfast state verify", "is any of it damaged?"),
            ("steadfast state export kept.json", "all of it as a document, without secrets"),
            ("steadfast state import kept.json", "taken in again; what is there stays beside"),
            ("steadfast state repair", "put right what can be, when the daemon only observes"),
        ],
    ),
    ("wait", &[("steadfast wait --timeout 300", "in a script: until the host is as declared")]),
    (
        "stop",
        &[("steadfast stop", "what runs may end"), ("steadfast stop --now", "cut off what runs")],
    ),
    (
        "log-level",
        &[
            ("steadfast log-level debug", "tell more"),
            ("steadfast log-level info,steadfast::driver=trace", "much more of one part"),
        ],
    ),
    (
        "doctor",
        &[
            ("steadfast doctor", "does this machine let a daemon do its work?"),
            ("steadfast doctor /etc/steadfast/graph.yaml", "may others write that graph?"),
        ],
    ),
    (
        "completions",
        &[
            ("source <(steadfast completions bash)", "in ~/.bashrc; zsh likewise in ~/.zshrc"),
            ("steadfast completions fish > ~/.config/fish/completions/steadfast.fish", "for fish"),
        ],
    ),
    (
        "man",
        &[
            ("steadfast man /usr/local/share/man/man1", "write the manual pages"),
            ("man steadfast-run", "read one"),
        ],
    ),
];

/// Adds the examples to the help of each command.
pub(super) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (verb, examples)| {
        command.mut_subcommand(*verb, |verb| verb.after_long_help(words(examples)))
    })
}

/// Returns the examples of one command.
pub(super) fn of(name: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(verb, _)| *verb == name).map_or(&[], |(_, examples)| examples)
}

fn words(examples: &[Example]) -> String {
    let each = examples.iter().map(|(line, does)| format!("  {line}\n      {does}"));
    let each: Vec<String> = each.collect();
    format!("Examples:\n{}", each.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::command;

    /// Each command shows examples, and each example is a valid command line.
    #[test]
    fn every_command_has_examples_that_parse() {
        for verb in command().get_subcommands() {
            let help = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n"), "{} has no examples", verb.get_name());
        }
        for (line, _) in super::EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let Some(line) = line.strip_prefix("steadfast ") else { continue };
            let line = line.split(['|', '>']).next().unwrap_or_default();
            let quoted = line.replace(['\'', '"'], "");
            let words = std::iter::once("steadfast").chain(quoted.split_whitespace());
            // A quoted reason is several words after splitting, so that such lines are skipped.
            if !line.contains('"') {
                let parsed = command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {parsed:?}");
            }
        }
    }
}
