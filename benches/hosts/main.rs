//! The cost of keeping a host converged, compared with bare programs that make the same system calls: whole process
//! against whole process.
//!
//! `cargo bench --bench hosts` measures everything, `-- idle cold` only these parts; `-- --check` ends with exit code
//! 1 for a missed target. docs/development/benchmarks.md explains the output.
//!
//! Nothing here writes outside its own folder. Reading order: `tree`, `process`, `report`, `baseline`, then the
//! parts: `pass`, `persistence`, `drift`, `contention`, `idle_100k`, `console`, `readers`, `recorded`, `unread`.

mod baseline;
mod console;
mod contention;
mod drift;
mod idle_100k;
mod pass;
mod persistence;
mod process;
mod readers;
mod recorded;
mod report;
mod tree;
mod unread;

use report::Report;
use std::process::ExitCode;

/// The reason that a measurement failed.
type Failure = Box<dyn std::error::Error>;

/// A part of the measurements.
type Part = fn(&Bench, &mut Report) -> Result<(), Failure>;

/// The parts, in their order.
const PARTS: [(&str, Part); 16] = [
    ("idle", pass::idle),
    ("cold", pass::cold),
    ("chain", pass::chain),
    ("beside", pass::beside),
    ("load", idle_100k::load),
    ("rest", idle_100k::rest),
    ("drift", drift::drift),
    ("contention", contention::contention),
    ("status", console::status),
    ("metrics", console::metrics),
    ("readers", readers::readers),
    ("stop", console::stop),
    ("kept", persistence::kept),
    ("recorder", recorded::recorder),
    ("log", recorded::log),
    ("unread", unread::unread),
];

/// The settings that all measurements share.
struct Bench {
    /// The folder of all measurements: each run creates its own folder inside, and all are removed at the end.
    folder: tempfile::TempDir,
    /// True for fewer rounds, to try the bench itself.
    quick: bool,
}

impl Bench {
    fn rounds(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(5) } else { full }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == "bare" => baseline::main(rest).map(|()| true),
        _ => measure(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            report::complain(&format!("cannot measure: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the requested measurements; returns false for a missed target if `--check` is given.
fn measure(arguments: &[String]) -> Result<bool, Failure> {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let asked: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    if let Some(unknown) = asked.iter().find(|a| PARTS.iter().all(|(name, _)| name != **a)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(format!("no part {unknown}: there are {}", names.join(", ")).into());
    }
    // The target folder is on a disk; a folder for temporary files may be in memory.
    let folder =
        tempfile::Builder::new().prefix("hosts-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let bench = Bench { folder, quick: has("--quick") };
    let mut report = Report::default();
    for (name, part) in PARTS {
        if asked.is_empty() || asked.iter().any(|a| *a == name) {
            part(&bench, &mut report)?;
        }
    }
    Ok(report.all_met() || !has("--check"))
}
