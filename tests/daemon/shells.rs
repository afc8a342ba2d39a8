//! Completions in a real shell with a running daemon, and manual pages.

use crate::host::{Host, is_root};
use crate::terminal::Terminal;
use std::os::unix::fs::{lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const GRAPH: &str = r#"
graph: shells
resources:
  noop:
  - {name: apple}
  - {name: apricot}
  - {name: "two words"}
  print:
  - {name: pear, msg: x}
"#;

/// Returns a search path with the program's folder first.
fn path() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_steadfast")).parent().expect("a folder");
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// Starts a bash with completions in a terminal.
fn bash(host: &Host) -> Terminal {
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.env("PATH", path()).env("PS1", "$ ").env("TERM", "xterm").env("HISTFILE", "");
    command.env("INPUTRC", "/dev/null").env("LC_ALL", "C.UTF-8");
    let terminal = Terminal::start(&command, 24, 300);
    terminal.type_in(&format!("cd {}\n", host.path("").display()));
    terminal.type_in("source <(steadfast completions bash) && echo lo''aded\n").wait_for("loaded");
    terminal
}

/// Bash completes resource names from the running daemon, quoted as needed, and verbs and flags from the program.
#[test]
fn bash_completes_names_from_the_daemon() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("the daemon listens", || host.exists("state/control.socket"));
    // As a pattern, `noop[apple]` would match this file.
    host.write("noopa", "").write("noop[apple]x", "");
    let state = host.path("state");
    let terminal = bash(&host);
    let line = format!("echo steadfast show --state-dir {} ", state.display());
    let line = line.trim_start_matches("echo ");
    terminal.type_in(&format!("{line}noop\t"));
    terminal.wait_for("noop\\[");
    terminal.type_in("appl\t").wait_for("noop\\[apple\\] ");
    terminal.type_in("\n").wait_for("noop[apple]: converged");
    terminal.type_in(&format!("{line}noop\\[tw\t")).wait_for("noop\\[two\\ words\\] ");
    terminal.type_in("\n").wait_for("noop[two words]: converged");
    // Both resources and graph files are offered.
    host.write("site.yaml", "");
    let check = line.replace("steadfast show", "steadfast check");
    terminal.type_in(&format!("{check}sit\t")).wait_for("site.yaml");
    terminal.type_in(&format!("\u{15}{check}noop\\[appl\t")).wait_for("check").type_in("\u{15}");
    terminal.type_in("steadfast log-l\t").wait_for("steadfast log-level ");
    terminal.type_in("\u{15}steadfast explain C40\t\t").wait_for("C404");
}

/// Starts a zsh or fish with completions in a terminal, without the user's own configuration.
fn other_shell(host: &Host, shell: &str) -> Terminal {
    let mut command = Command::new(shell);
    let load = if shell == "zsh" {
        command.args(["-f", "-i"]).env("PS1", "$ ");
        "autoload -Uz compinit; compinit -u -D; source <(steadfast completions zsh)"
    } else {
        command.args(["--no-config", "-i"]);
        "steadfast completions fish | source"
    };
    let home = host.path("");
    command.env("HOME", &home).env("XDG_DATA_HOME", &home).env("XDG_CONFIG_HOME", &home);
    command.env("PATH", path()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    let terminal = Terminal::start(&command, 24, 200);
    terminal.type_in(&format!("{load}; echo lo''aded\n")).wait_for("loaded");
    terminal
}

/// Zsh and fish complete resource names, also after an opening quote that the shell has added.
#[test]
fn zsh_and_fish_complete_names_from_the_daemon() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("the daemon listens", || host.exists("state/control.socket"));
    let state = host.path("state");
    let line = format!("steadfast show --state-dir {} ", state.display());
    for shell in ["zsh", "fish"] {
        let terminal = other_shell(&host, shell);
        terminal.type_in(&format!("{line}noop\t"));
        terminal.wait_for("noop\\[");
        terminal.type_in("appl\t").wait_for("noop\\[apple");
        terminal.type_in("\n").wait_for("noop[apple]: converged");
        terminal.type_in(&format!("{line}noop\\[tw\t")).wait_for("two\\ words");
        terminal.type_in("\n").wait_for("noop[two words]: converged");
        terminal.type_in("steadfast log-l\t").wait_for("steadfast log-level");
        terminal.type_in("\u{15}");
    }
}

/// A completion does not wait for an unresponsive daemon; without a daemon there is none.
#[test]
fn completions_do_not_hang() {
    let host = Host::with(GRAPH);
    host.make_directory("state").chmod("state", 0o700);
    let complete = || {
        let mut command = host.bare(&["--", "steadfast", "show", "--state-dir"]);
        command.arg(host.path("state")).arg("noop").stdin(Stdio::null());
        command.env("STEADFAST_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "4");
        let began = Instant::now();
        let output = host.finish(command);
        (output.exits(0).stdout.clone(), began.elapsed())
    };
    assert_eq!(complete().0, "");
    let _silent = UnixListener::bind(host.path("state/control.socket")).expect("bound");
    let (names, took) = complete();
    assert_eq!(names, "");
    // The completion waits for 200 ms; the rest is the start of a process on a busy machine.
    assert!(took.as_secs() < 4, "{took:?}");
}

/// The scripts for zsh and fish are complete.
#[test]
fn other_shells_get_their_scripts() {
    let host = Host::with(GRAPH);
    for (shell, words) in [("zsh", "#compdef steadfast"), ("fish", "complete --keep-order")] {
        let output = host.finish(host.bare(&["completions", shell]));
        output.exits(0).prints(words).prints("STEADFAST_COMPLETE");
    }
    host.finish(host.bare(&["completions", "csh"])).exits(64).says("possible values: bash");
}

/// Each command has a page with examples that groff formats without a warning.
#[test]
fn manual_pages_are_set_without_a_warning() {
    let host = Host::with(GRAPH);
    host.finish(host.bare(&["man", "$DIR/man/man1"])).exits(0).prints("pages in $DIR/man/man1");
    let pages: Vec<_> =
        std::fs::read_dir(host.path("man/man1")).expect("pages").flatten().collect();
    let help = host.finish(host.bare(&["help"]));
    let commands = help.stdout.lines().filter(|line| {
        line.strip_prefix("  ").is_some_and(|l| l.starts_with(|c: char| c.is_ascii_lowercase()))
    });
    // One page for the program itself, and none for `help`.
    assert_eq!(pages.len(), commands.count());
    let mut groff = Command::new("groff");
    groff.args(["-man", "-ww", "-Tutf8", "-P-cbou"]);
    groff.args(pages.iter().map(std::fs::DirEntry::path));
    groff.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = host.finish(groff);
    output.exits(0).prints("steadfast pause --for 2h").prints("EXAMPLES");
    assert_eq!(output.stderr, "", "groff warns");
}

/// A page is not written through a link, nor below a link that another user made.
#[test]
fn manual_pages_follow_no_planted_link() {
    let host = Host::with(GRAPH);
    host.make_directory("man").write("canary", "kept");
    symlink(host.path("canary"), host.path("man/steadfast.1")).expect("linked");
    std::fs::hard_link(host.path("canary"), host.path("man/steadfast-apply.1")).expect("linked");
    let man = |place: &str| host.finish(host.bare(&["man", place]));
    man("$DIR/man").exits(0);
    assert_eq!(host.read("canary"), "kept");
    assert!(host.read("man/steadfast.1").contains(".TH"));
    if is_root() {
        symlink(host.path("man"), host.path("link")).expect("linked");
        man("$DIR/link/man1").exits(0);
        lchown(host.path("link"), Some(65534), None).expect("given away");
        man("$DIR/link/man2").exits(1).says("belongs to uid 65534");
        assert!(!host.exists("man/man2"));
    }
}
