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
                "run the daemon with this graph until stopped",
            ),
            ("steadfast run --watch graph.yaml", "reload when the file changes"),
            (
                "steadfast run --noop --log json site/",
                "log the changes that would be made, as JSON",
            ),
        ],
    ),
    (
        "apply",
        &[
            (
                "steadfast apply graph.yaml",
                "apply the graph once; on a terminal, ask before a removal",
            ),
            ("steadfast apply --yes graph.yaml", "do not ask"),
            (
                "steadfast apply --only file --detailed-exitcode graph.yaml",
                "apply only files; exit with 2 if anything was changed",
            ),
        ],
    ),
    (
        "init",
        &[
            ("steadfast init", "write /etc/steadfast/graph.yaml and the settings of this host"),
            ("steadfast init --dir ~/graph", "write both files to another folder"),
        ],
    ),
    (
        "inspect",
        &[
            ("steadfast inspect file /etc/motd", "print the file as a declaration"),
            ("steadfast inspect --all svc", "print every service that can be enabled"),
        ],
    ),
    (
        "plan",
        &[
            ("steadfast plan graph.yaml", "preview the changes of apply"),
            ("steadfast plan --explain-edges graph.yaml", "also show the origin of each edge"),
        ],
    ),
    (
        "drift",
        &[
            ("steadfast drift graph.yaml", "show the current drift"),
            ("steadfast drift --json --detailed-exitcode graph.yaml", "for monitoring"),
        ],
    ),
    (
        "check",
        &[
            ("steadfast check graph.yaml", "report every problem of a graph"),
            ("steadfast check --lint graph.yaml", "also give advice about a valid graph"),
            ("steadfast check 'file[motd]'", "check a resource again, in the running daemon"),
        ],
    ),
    (
        "graph",
        &[
            ("steadfast graph graph.yaml", "show resources and edges with their origin"),
            ("steadfast graph --format dot graph.yaml | dot -Tsvg > graph.svg", "draw the graph"),
        ],
    ),
    ("test", &[("steadfast test modules/site", "run the test cases of a module, without a host")]),
    ("test", &[("steadfast test modules/site", "run the test cases of a module, without a host")]),
    (
        "history",
        &[
            ("steadfast history", "list recent changes"),
            ("steadfast history 'file[motd]' --json", "list the changes of one resource as JSON"),
            (
                "steadfast history exec --since 2h",
                "list the commands of two hours with their output",
            ),
        ],
    ),
    (
        "diff",
        &[
            (
                "steadfast diff 'file[motd]'",
                "compare the content before the last change with the current one",
            ),
            ("steadfast diff 'file[motd]' 12 17", "compare the contents before changes 12 and 17"),
        ],
    ),
    (
        "undo",
        &[
            ("steadfast undo 'file[motd]'", "restore the state before the last change"),
            ("steadfast undo 'file[motd]' --plan", "show what would be restored"),
            (
                "steadfast undo 'file[motd]' --to 12 --for 1d",
                "restore the state before change 12; pause the resource for a day",
            ),
        ],
    ),
    (
        "eval",
        &[
            ("steadfast eval '1 + 2'", "evaluate an expression without a graph"),
            (
                "steadfast eval vars.workers graph.yaml",
                "show the value of a variable and each layer",
            ),
            (
                "steadfast eval 'facts.cpu.count * 2' --facts host.json graph.yaml",
                "evaluate with the facts of another host",
            ),
        ],
    ),
    (
        "facts",
        &[
            ("steadfast facts os", "show the distribution of this host"),
            (
                "steadfast facts --json > web-1.json",
                "save the facts, for `steadfast check --facts web-1.json`",
            ),
        ],
    ),
    (
        "schema",
        &[(
            "steadfast schema > steadfast.schema.json",
            "write the schema that the first line of a graph names for editors",
        )],
    ),
    (
        "fmt",
        &[
            ("steadfast fmt graph.yaml", "format a graph file"),
            ("steadfast fmt --check *.yaml", "exit with 1 if a file is not formatted"),
        ],
    ),
    (
        "explain",
        &[
            ("steadfast explain file", "show the fields of a kind"),
            ("steadfast explain file.mode", "explain one field"),
            ("steadfast explain meta", "show the metaparams of every resource"),
            ("steadfast explain C404", "explain a problem code"),
            ("steadfast explain modules/site", "document a module from its declarations"),
        ],
    ),
    (
        "status",
        &[
            ("steadfast status", "show whether the host is converged, and the blockers if not"),
            ("steadfast status --watch", "refresh every second"),
            ("steadfast status 'svc[*]'", "show all services"),
            ("steadfast status --json | jq .verdict", "print the verdict for a script"),
        ],
    ),
    ("top", &[("steadfast top", "show all resources, worst first; ? lists the keys")]),
    ("show", &[("steadfast show 'file[motd]'", "show the status, dependencies and recent events")]),
    ("why", &[("steadfast why 'file[motd]'", "show the chain of blockers")]),
    (
        "events",
        &[
            ("steadfast events", "show recent events"),
            (
                "steadfast events -f 'file[motd]'",
                "follow the events of one resource until interrupted",
            ),
            ("steadfast events --since 2h --json", "print JSON; works without a daemon"),
        ],
    ),
    (
        "workers",
        &[("steadfast workers", "show the workers of the daemon, their starts and last errors")],
    ),
    (
        "pause",
        &[
            (
                "steadfast pause --for 2h --reason \"upgrade of the database\"",
                "start nothing for two hours",
            ),
            ("steadfast pause 'svc[*]' --for 30m", "leave all services alone for half an hour"),
        ],
    ),
    (
        "resume",
        &[
            ("steadfast resume", "show the pending changes and resume"),
            ("steadfast resume --plan", "show the pending changes without resuming"),
            ("steadfast resume 'svc[nginx]'", "resume one individually paused resource"),
        ],
    ),
    ("reload", &[("steadfast reload", "reload the graph; an invalid graph is rejected")]),
    (
        "retry",
        &[
            ("steadfast retry 'pkg[nginx]'", "run the resource again, even if it failed"),
            ("steadfast retry --persist 'exec[migrate]'", "run it again, even after a restart"),
        ],
    ),
    ("protect", &[("steadfast protect 'file[data]'", "reject every graph without this resource")]),
    ("unprotect", &[("steadfast unprotect 'file[data]'", "end the protection")]),
    (
        "forget",
        &[
            ("steadfast forget 'exec[migrate]'", "let the command run again"),
            (
                "steadfast forget 'file[made]'",
                "adopt the file: a removal from the graph then keeps it",
            ),
        ],
    ),
    (
        "state",
        &[
            ("steadfast state show", "show the stored state"),
            ("steadfast state show 'file[motd]' --json", "show the record of one resource as JSON"),
            ("steadfast state verify", "check for damage"),
            ("steadfast state export state.json", "export the state without secrets"),
            (
                "steadfast state import state.json",
                "replace the state; the old one is kept as a backup",
            ),
            ("steadfast state repair", "repair a damaged state"),
        ],
    ),
    (
        "wait",
        &[
            ("steadfast wait --timeout 300", "wait up to 5 minutes for convergence"),
            ("steadfast wait nginx --for changed", "wait for the next change of one resource"),
        ],
    ),
    (
        "stop",
        &[
            ("steadfast stop", "stop after running commands have finished"),
            ("steadfast stop --now", "interrupt running commands and stop"),
        ],
    ),
    (
        "log-level",
        &[
            ("steadfast log-level debug", "log debug messages"),
            ("steadfast log-level info,steadfast::driver=trace", "trace one module"),
        ],
    ),
    (
        "doctor",
        &[
            ("steadfast doctor", "diagnose the host and the installation"),
            ("steadfast doctor /etc/steadfast/graph.yaml", "also check who may write this graph"),
        ],
    ),
    (
        "fleet",
        &[
            ("steadfast fleet", "show all hosts and the holders of permits"),
            ("steadfast fleet wait --generation 3f9a --hosts web*", "wait until the hosts run it"),
        ],
    ),
    (
        "world",
        &[
            ("steadfast world forget web7", "withdraw the exports of a host that is gone"),
            ("steadfast world release roll/nginx web7", "free the slot of a dead host"),
        ],
    ),
    (
        "bundle",
        &[(
            "steadfast bundle site/ --key deploy.pem --output site.tar --cluster main",
            "pack and sign a graph folder",
        )],
    ),
    (
        "deploy",
        &[
            ("steadfast deploy site.tar", "one host first, then waves of 10%"),
            (
                "steadfast deploy site.tar --hosts web* --canary 2 --wave 20% --splay 5m",
                "deploy to some hosts in larger waves",
            ),
        ],
    ),
    (
        "completions",
        &[
            ("source <(steadfast completions bash)", "in ~/.bashrc; zsh likewise in ~/.zshrc"),
            (
                "steadfast completions fish > ~/.config/fish/completions/steadfast.fish",
                "install completions for fish",
            ),
        ],
    ),
    (
        "man",
        &[
            ("steadfast man /usr/local/share/man/man1", "write the manual pages"),
            ("man steadfast-run", "read one page"),
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
