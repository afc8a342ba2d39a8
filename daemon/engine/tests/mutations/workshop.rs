//! Where the engine is broken: a copy in a folder of its own, built and tested with what the copy has.

use crate::Breakage;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suites, cheapest first, and what is given to the test binary for each.
const SUITES: [(&str, &[&str]); 3] = [
    ("named tests", &["--skip", "model::", "--skip", "properties::"]),
    ("random schedules", &["properties::"]),
    ("model", &["model::"]),
];

/// No suite may take longer: a breakage may make it endless.
const SECONDS: &str = "400";
/// Nor more memory, in kilobytes.
const MEMORY: &str = "8000000";

pub(crate) struct Workshop {
    folder: PathBuf,
    /// Whether all suites are asked, also when one has caught it.
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
        // Of the sources as they are now: whoever works on them meanwhile does not disturb.
        mirror(engine, &this.folder.join("original"));
        this.restore();
        tell("| breakage | breaks | what is broken | named tests | random schedules | model |");
        tell("|---|---|---|---|---|---|");
        this
    }

    /// Makes the copy as the original is; what is equal is left alone, so that little is built anew.
    fn restore(&self) {
        mirror(&self.folder.join("original"), &self.folder.join("daemon/engine"));
    }

    /// Whether somebody catches it; the line of the table is told.
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
        tell(&format!("| {name} | {rules} | {what} | {} |", cells.join(" | ")));
        !caught.is_empty()
    }

    /// Which suites fail, each with the first test that does.
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
            // What a broken engine covers is not compared with docs/model.md: a rule is to catch it.
            .env("STEADFAST_BROKEN", "1")
            .output()
            .expect("bash, timeout and cargo are there")
    }
}

/// The manifest on top without the program: a workspace of the engine alone.
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
    // A schedule that a broken engine left behind is none of ours.
    for entry in fs::read_dir(to).expect("the copy").flatten() {
        if !there.contains(&entry.file_name()) && entry.path().is_file() {
            fs::remove_file(entry.path()).expect("a file of the copy");
        }
    }
}

/// The first test that failed; a suite that was ended, or died, has none.
fn first_failed(said: &str) -> String {
    let failed = said.lines().find_map(|line| line.strip_suffix(" ... FAILED"));
    match failed.and_then(|line| line.rsplit("::").next()) {
        Some(name) => format!("`{name}`"),
        None => "does not end".to_owned(),
    }
}

#[expect(clippy::print_stdout, reason = "the table is for whoever started this by hand")]
fn tell(line: &str) {
    println!("{line}");
}
