//! The commands of docs/guide, run as they are printed there on a booted Debian.
//!
//! A block of `sh` is run, and the block of output that follows it is compared: each of its lines must be a part of a
//! line of the output, where all numbers are equal. A block that starts `steadfast run` goes on in the background.

use crate::host::{Answer, Host, PATIENCE, within};
use crate::service::{GRAPH, ONE_FILE};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the pages.
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide");

/// Blocks of other pages, by their first words, each with the test that runs its commands.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("install.md", "sha256sum --check", "tests/packages/run installs the deb, without the sums"),
    ("install.md", "curl -O", "tests/packages/run, with a repository in a folder"),
    ("install.md", "tar -xzf", "tests/packages/run, as printed"),
    ("install.md", "steadfast --version", "operating.md: the doctor"),
    ("many-hosts.md", "etcd --name", "tests/world/etcd/cluster.rs, with addresses of the test"),
    ("many-hosts.md", "P=/steadfast", "tests/world/etcd/security.rs"),
    ("many-hosts.md", "openssl genpkey", "tests/world/hosts/deploys.rs"),
    ("many-hosts.md", "install -d -m 0700", "tests/world/hosts/deploys.rs"),
];

/// Pages that another test runs as a whole, each with the test.
const WHOLE: &[(&str, &str)] = &[("secrets-in-git.md", "tests/hosts/secrets_in_git.rs")];

/// Pages whose commands this file runs.
const HERE: [&str; 4] = ["first-success.md", "tutorial.md", "operating.md", "metrics.md"];

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The language: `sh`, `yaml`, `text` or nothing.
    pub(crate) language: String,
    /// The lines.
    pub(crate) text: String,
}

/// Returns the blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(Path::new(GUIDE).join(page)).expect("a page of the guide");
    let parts: Vec<&str> = text.split("```").collect();
    let inner = parts.iter().skip(1).step_by(2).filter_map(|part| part.split_once('\n'));
    inner
        .map(|(language, text)| Block { language: language.to_owned(), text: text.to_owned() })
        .collect()
}

/// Each block of commands is run here or elsewhere, so that a new page or block cannot be forgotten.
#[test]
fn each_page_with_commands_is_run() {
    let mut known = 0;
    for entry in std::fs::read_dir(GUIDE).expect("docs/guide") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let commands = blocks(&name).into_iter().filter(|block| block.language == "sh");
        let is_run = HERE.contains(&&*name) || WHOLE.iter().any(|(page, _)| *page == name);
        for block in commands.filter(|_| !is_run) {
            let is_known = |(page, start, _): &&(&str, &str, &str)| {
                *page == name && block.text.starts_with(start)
            };
            let rows = ELSEWHERE.iter().filter(is_known).count();
            assert_eq!(rows, 1, "{name}: expected a test of the commands {}", block.text);
            known += rows;
        }
    }
    assert_eq!(known, ELSEWHERE.len(), "a row of ELSEWHERE has no block");
    let pages = HERE.iter().copied().chain(WHOLE.iter().map(|(page, _)| *page));
    for page in pages {
        assert!(blocks(page).iter().any(|block| block.language == "sh"), "{page}: no commands");
    }
}

/// Replaces each number by one digit: times, sizes and process ids differ.
fn masked(line: &str) -> String {
    let mut text = String::new();
    for letter in line.trim().chars() {
        let is_more = letter.is_ascii_digit() && text.ends_with('0');
        if !is_more {
            text.push(if letter.is_ascii_digit() { '0' } else { letter });
        }
    }
    text
}

/// Returns the lines of the expected output that the output lacks.
fn missing_lines(expected: &str, output: &str) -> Vec<String> {
    let found: Vec<String> = output.lines().map(masked).collect();
    let is_missing = |line: &&str| !found.iter().any(|found| found.contains(&masked(line)));
    expected.lines().filter(is_missing).map(str::to_owned).collect()
}

/// Runs the blocks of a page in order. `run` runs a script; `between` is called before each block.
fn run_page(
    page: &str,
    run: &dyn Fn(&str) -> Answer,
    between: &dyn Fn(&Block),
    background: &dyn Fn() -> String,
) {
    let all = blocks(page);
    for (at, block) in all.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        between(block);
        let output_block = all.get(at + 1).filter(|next| ["", "text"].contains(&&*next.language));
        let expected = output_block.map_or("", |next| &next.text);
        if block.text.starts_with("steadfast run") {
            let script = format!("({}) </dev/null >/tmp/daemon.log 2>&1 &", block.text.trim());
            run(&script);
            let is_there = within(PATIENCE, || missing_lines(expected, &background()).is_empty());
            let missing = missing_lines(expected, &background());
            assert!(is_there, "{page}: {block:?} lacks {missing:?} in\n{}", background());
            continue;
        }
        let answer = run(&block.text);
        let output = format!("{}{}", answer.stdout, answer.stderr);
        assert_eq!(answer.code, Some(0), "{page}: {block:?}\n{output}");
        let is_refused = answer.stderr.lines().any(|line| line.starts_with("error"));
        assert!(!is_refused && !output.contains("not found"), "{page}: {block:?}\n{output}");
        let missing = missing_lines(expected, &output);
        assert!(missing.is_empty(), "{page}: {block:?} lacks {missing:?} in\n{output}");
    }
}

/// The tutorial, as a user without rights.
#[test]
fn the_tutorial_can_be_followed() {
    let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"));
    let host = Host::boot_with(&[(examples, "/opt/steadfast/examples")]);
    host.shell("useradd --create-home ada");
    let run = |script: &str| {
        let script = format!(
            "cd /opt/steadfast; [ ! -d ~/steadfast-tutorial ] || cd ~/steadfast-tutorial\n{script}"
        );
        host.run(&["runuser", "-u", "ada", "--", "env", "HOME=/home/ada", "sh", "-uc", &script])
    };
    let between = |block: &Block| {
        // A reader is slower than a repair. A paused resource does not converge.
        if ["history", "show", "reload"].iter().any(|verb| block.text.contains(verb)) {
            run("steadfast wait --state-dir state --timeout 60");
        }
        if block.text.contains("reload") {
            run("sed -i 's/Welcome/Hello/' graph.yaml");
        }
    };
    let background = || host.read("/tmp/daemon.log").unwrap_or_default();
    run_page("tutorial.md", &run, &between, &background);
    host.until("the daemon to have stopped", || {
        !host.processes().iter().any(|line| line.contains("steadfast run"))
    });
    let events = run("steadfast events --state-dir state").stdout;
    for class in ["corrective", "changed file[motd]: content"] {
        assert!(events.contains(class), "{class}: {events}");
    }
}

/// A first success, as root on a host without a graph.
#[test]
fn the_first_success_can_be_followed() {
    let host = Host::boot();
    let run = |script: &str| host.run(&["sh", "-uc", script]);
    run_page("first-success.md", &run, &|_| {}, &String::new);
    assert!(host.read("/etc/passwd").unwrap_or_default().contains("ada:x:"), "the user exists");
    let events = host.run(&["steadfast", "events"]).stdout;
    assert!(events.matches("corrective").count() >= 2, "{events}");
}

/// The commands of the page about metrics. A test host has no curl, so the one of this machine reads the host's socket.
#[test]
fn the_commands_of_metrics_work() {
    let host = Host::holding(ONE_FILE);
    host.until("the host to be converged", || host.run(&["steadfast", "status"]).code == Some(0));
    let run = |script: &str| {
        let script = script.replace("/run/", &format!("/proc/{}/root/run/", host.leader()));
        let output = Command::new("sh").args(["-uc", &script]).output().expect("sh can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Answer { code: output.status.code(), stdout, stderr }
    };
    run_page("metrics.md", &run, &|_| {}, &String::new);
}

/// The commands of the page about daily work, as root.
#[test]
fn the_commands_of_operating_work() {
    // The content of a file that all may read stands in the history.
    let host = Host::holding(&ONE_FILE.replace("0640", "0644"));
    host.write("/usr/local/bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
    host.write("/etc/steadfast/steadfast.yaml", &format!("graph: {GRAPH}\n"));
    host.shell("chmod 0755 /usr/local/bin/sudo; useradd --groups adm ada");
    let run = |script: &str| host.run(&["sh", "-uc", script]);
    run_page("operating.md", &run, &|_| {}, &String::new);
    host.until("a member of the group to read the status", || {
        host.run(&["runuser", "-u", "ada", "--", "steadfast", "status"]).code == Some(0)
    });
    host.shell("useradd bob");
    let said = host.run(&["runuser", "-u", "bob", "--", "steadfast", "status"]);
    assert_ne!(said.code, Some(0), "{}", said.stdout);
}
