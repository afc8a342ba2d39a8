//! The workshop of the breakages: a copy of the engine in a folder of its own, built and tested there.

use crate::Breakage;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suites, cheapest first, with the arguments of the test binary for each.
const SUITES: [(&str, &[&str]); 3] = [
    ("named tests", &["--skip", "model::", "--skip", "properties::"]),
    ("random schedules", &["properties::"]),
    ("model", &["model::"]),
];

/// The time limit of a suite in seconds: a breakage may make it endless.
const SECONDS: &str = "400";
/// The memory limit of a suite in kilobytes.
const MEMORY: &str = "8000000";

pub(crate) struct Workshop {
    folder: PathBuf,
    /// True if all suites run, even after one has caught the breakage.
    thorough: bool,
}

impl Workshop {
    pub(crate) fn new(engine: &Path, thorough: bool) -> Self {
        let folder = std::env::temp_dir().join("steadfast-mutations");
        let this = Self { folder, thorough };
        fs::create_dir_all(&this.folder).expect("a folder for the copy");
        let top = engine.join("../..");
        let manifest = fs::read_to_string(top.join("Cargo.toml")).expect("the manifest on top");
        fs::write(this.folder.join("Cargo.toml"), alone(&manifest)).expect("its copy");
        fs::copy(top.join("Cargo.lock"), this.folder.join("Cargo.lock")).expect("the lock");
        // A copy of the present sources: later edits do not disturb the tests.
        mirror(engine, &this.folder.join("original"));
        this.restore();
        print_line(
            "| breakage | breaks | what is broken | named tests | random schedules | model |",
        );
        print_line("|---|---|---|---|---|---|");
        this
    }

    /// Restores the copy from the original. Equal files are not touched, so that little is rebuilt.
    fn restore(&self) {
        mirror(&self.folder.join("original"), &self.folder.join("daemon/engine"));
    }

    /// Returns true if a suite catches the breakage, and prints its line of the table.
    pub(crate) fn catches(&mut self, breakage: &Breakage) -> bool {
        self.restore();
        let path = self.folder.join("daemon/engine").join(breakage.file);
        let text = fs::read_to_string(&path).expect("a copied source");
        assert_eq!(text.matches(breakage.old).count(), 1, "{} does not apply", breakage.name);
        fs::write(&path, text.replace(breakage.old, breakage.new)).expect("the broken source");
        let caught = match self.test() {
            Ok(caught) => caught,
            Err(reason) => panic!("{} does not build:\n{reason}", breakage.name),
        };
        let mut open = true;
        let mut cells = Vec::new();
        for (suite, _) in SUITES {
            let found = caught.iter().find(|(who, _)| who == suite);
            let silent = if open { "no" } else { "not asked" };
            cells.push(found.map_or(silent, |(_, name)| name.as_str()));
            open &= found.is_none() || self.thorough;
        }
        let Breakage { name, rules, what, .. } = breakage;
        print_line(&format!("| {name} | {rules} | {what} | {} |", cells.join(" | ")));
        !caught.is_empty()
    }

    /// Returns the suites that fail, each with its first failed test.
    ///
    /// # Errors
    ///
    /// Returns the output of the compiler if the breakage does not build.
    pub(crate) fn test(&self) -> Result<Vec<(String, String)>, String> {
        let build = self.cargo(&["--no-run"]);
        if !build.status.success() {
            return Err(String::from_utf8_lossy(&build.stderr).into_owned());
        }
        let mut caught = Vec::new();
        for (suite, arguments) in SUITES {
            let run = self.cargo(&[&["--", "--test-threads", "2"], arguments].concat());
            if !run.status.success() {
                let said = String::from_utf8_lossy(&run.stdout);
                caught.push((suite.to_owned(), first_failed(&said)));
                if !self.thorough {
                    break;
                }
            }
        }
        Ok(caught)
    }

    fn cargo(&self, arguments: &[&str]) -> std::process::Output {
        let limited = "ulimit -v \"$1\"; shift; exec timeout -k 5 \"$@\"";
        Command::new("bash")
            .args(["-c", limited, "bash", MEMORY, SECONDS, "nice", "-n", "10"])
            .args(["cargo", "test", "--offline", "-p", "steadfast-engine", "--test", "engine"])
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_TERM_COLOR", "never")
            // A broken engine must be caught by a rule, so its coverage is not compared with docs/model.md.
            .env("STEADFAST_BROKEN", "1")
            .output()
            .expect("bash, timeout and cargo are there")
    }
}

/// Returns the top manifest without the program: a workspace of the engine alone.
fn alone(manifest: &str) -> String {
    let mut kept = String::new();
    let mut wanted = true;
    for line in manifest.lines() {
        if line.starts_with('[') {
            wanted = line.starts_with("[workspace")
                || line == "[profile.dev]"
                || line == "[profile.dev.package.steadfast-engine]";
        }
        if wanted && !line.starts_with("members") {
            kept.push_str(line);
            kept.push('\n');
        } else if wanted {
            kept.push_str("members = [\"daemon/engine\"]\n");
        }
    }
    kept
}

fn mirror(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(from).expect("a folder of sources").flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let copy = to.join(&name);
        if path.is_dir() {
            mirror(&path, &copy);
        } else {
            let text = fs::read(&path).expect("a source");
            if fs::read(&copy).ok().as_ref() != Some(&text) {
                fs::write(&copy, text).expect("a copy");
            }
        }
        there.insert(name);
    }
    // A schedule that a broken engine left behind is removed.
    for entry in fs::read_dir(to).expect("the copy").flatten() {
        if !there.contains(&entry.file_name()) && entry.path().is_file() {
            fs::remove_file(entry.path()).expect("a file of the copy");
        }
    }
}

/// Returns the first failed test; a suite that was killed has none.
fn first_failed(said: &str) -> String {
    let failed = said.lines().find_map(|line| line.strip_suffix(" ... FAILED"));
    match failed.and_then(|line| line.rsplit("::").next()) {
        Some(name) => format!("`{name}`"),
        None => "does not end".to_owned(),
    }
}

#[expect(clippy::print_stdout, reason = "the table is for whoever started this by hand")]
fn print_line(line: &str) {
    println!("{line}");
}
