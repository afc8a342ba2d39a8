//! Shell completions: scripts for three shells call this program, which asks the running daemon for names within a
//! short time.

use super::super::args::{self, Shell};
use super::super::exit::Exit;
use crate::api::Request;
use crate::cli::client;
use crate::cli::output::{error, print};
use crate::control::{Address, Client};
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// The variable that the scripts set to request a completion.
const ASKED: &str = "STEADFAST_COMPLETE";
/// The time limit for the reply of the daemon.
const PATIENCE: Duration = Duration::from_millis(200);
/// The maximum number of names.
const MOST: usize = 1000;

/// Answers a script, if one has called the program. Must run before any thread is started.
pub(in crate::cli) fn complete() -> bool {
    let directory = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(super::command).var(ASKED);
    match asked.try_complete(std::env::args_os(), directory.as_deref()) {
        Ok(answered) => answered,
        Err(why) => {
            error(why.to_string().trim_end(), None);
            true
        }
    }
}

/// Carries out `steadfast completions`: prints the script for a shell.
pub(in crate::cli) fn completions(args: &args::Completions) -> Exit {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    let name = "steadfast";
    if let Err(why) = shell.write_registration(ASKED, name, name, name, &mut script) {
        error(why.to_string(), None);
        return Exit::Failed;
    }
    let script = String::from_utf8_lossy(&script).into_owned();
    print(match args.shell {
        // Bash would expand `file[motd]` as a pattern of file names.
        Shell::Bash => script.replacen("() {\n", "() {\n    local -; set -o noglob\n", 1),
        Shell::Zsh | Shell::Fish => script,
    });
    Exit::Well
}

/// Adds completion of the running daemon's resources to all arguments that expect a resource.
pub(super) fn with_names(command: Command) -> Command {
    let places = [
        ("show", "resource"),
        ("why", "resource"),
        ("events", "resources"),
        ("history", "resource"),
        ("diff", "resource"),
        ("undo", "resource"),
        ("retry", "resources"),
        ("protect", "resources"),
        ("unprotect", "resources"),
        ("forget", "resources"),
        ("status", "resources"),
        ("wait", "resources"),
        ("pause", "resources"),
        ("resume", "resources"),
    ];
    let command = places.into_iter().fold(command, |command, (verb, argument)| {
        command.mut_subcommand(verb, |verb| {
            verb.mut_arg(argument, |argument| argument.add(ArgValueCompleter::new(resources)))
        })
    });
    // The arguments of `check` are graphs or resources.
    let command = command.mut_subcommand("check", |verb| {
        verb.mut_arg("graphs", |graphs| graphs.add(ArgValueCompleter::new(paths_and_resources)))
    });
    command.mut_subcommand("explain", |verb| {
        verb.mut_arg("topic", |topic| {
            topic.add(ArgValueCandidates::new(|| {
                super::super::explain::topic_names().map(CompletionCandidate::new).collect()
            }))
        })
    })
}

fn paths_and_resources(begun: &OsStr) -> Vec<CompletionCandidate> {
    let directory = std::env::current_dir().unwrap_or_default();
    let mut all = PathCompleter::any().current_dir(directory).complete(begun);
    all.extend(resources(begun));
    all
}

/// Returns the resources with a prefix.
fn resources(begun: &OsStr) -> Vec<CompletionCandidate> {
    let Some(begun) = begun.to_str() else { return Vec::new() };
    // The variable that names the shell is removed before this call; this one is set only by the script for bash.
    let is_bash = std::env::var_os("_CLAP_COMPLETE_COMP_TYPE").is_some();
    // Shells show the typed text with its quotes; shells other than bash quote the candidates themselves.
    let prefix = begun.trim_start_matches(['\'', '"']).replace('\\', "");
    let quoted = |name: String| if is_bash { for_bash(&name) } else { name };
    let names = names_within(prefix, PATIENCE);
    names.into_iter().map(|name| CompletionCandidate::new(quoted(name))).collect()
}

/// Asks on a thread with a time limit; a thread that hangs ends with the process.
fn names_within(prefix: String, within: Duration) -> Vec<String> {
    let (told, names) = mpsc::sync_channel(1);
    let asking = std::thread::Builder::new().name("names".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let found = runtime.block_on(ask(prefix));
        // The receiver is dropped after the time limit.
        let _late = told.send(found);
    });
    if asking.is_err() {
        return Vec::new();
    }
    names.recv_timeout(within).unwrap_or_default()
}

async fn ask(prefix: String) -> Vec<String> {
    let address = address(std::env::args_os());
    let Ok(mut client) = Client::ask(&address, &Request::Names { prefix, limit: MOST }).await
    else {
        return Vec::new();
    };
    let answer = client.next(None).await.ok().flatten();
    answer.and_then(|names| names.try_into().ok()).unwrap_or_default()
}

/// Returns the address of the daemon that the words of the command line name.
fn address(words: impl Iterator<Item = OsString>) -> Address {
    let (mut socket, mut directory) = (None, None);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else { continue };
        for (flag, to) in [("--socket", &mut socket), ("--state-dir", &mut directory)] {
            if text == flag {
                *to = words.peek().map(PathBuf::from);
            } else if let Some(value) = text.strip_prefix(flag).and_then(|v| v.strip_prefix('=')) {
                *to = Some(PathBuf::from(value));
            }
        }
    }
    client::address(&args::Socket { socket, state_dir: directory })
}

/// Escapes a name for bash.
fn for_bash(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./@%+,".contains(letter);
    let escaped = name
        .chars()
        .map(|letter| if is_plain(letter) { letter.to_string() } else { format!("\\{letter}") });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::{address, for_bash};
    use crate::control::Address;
    use std::path::{Path, PathBuf};

    #[test]
    fn bash_gets_names_that_it_reads_as_they_are() {
        assert_eq!(for_bash("file[a b$(x)]"), "file\\[a\\ b\\$\\(x\\)\\]");
        assert_eq!(for_bash("file[/etc/motd]"), "file\\[/etc/motd\\]");
    }

    #[test]
    fn the_daemon_of_the_words_is_asked() {
        let at = |words: &[&str]| address(words.iter().map(Into::into));
        assert_eq!(at(&["show", "--socket", "/s"]), Address::at(PathBuf::from("/s")));
        assert_eq!(at(&["show", "--socket=/s"]), Address::at(PathBuf::from("/s")));
        let beside = Address::usual(Some(Path::new("/d")), Path::new("/d"));
        assert_eq!(at(&["show", "--state-dir", "/d", "file["]), beside);
    }
}
