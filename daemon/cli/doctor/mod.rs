//! `steadfast doctor`: checks of the machine before and while a daemon runs. They must change nothing.
//!
//! Reading order: this file (findings and their output), then one file per area: `service`, `daemon`, `permissions`,
//! `declared`, `facts`, `watches`, `files`, `limits`, `clock`, `packages`, `accounts`, `world`.

mod accounts;
mod clock;
mod daemon;
mod declared;
mod facts;
mod files;
mod limits;
mod packages;
mod permissions;
mod service;
mod watches;
mod world;

use super::args;
use super::client::address;
use super::exit::Exit;
use super::output::{count, out_json, plain, print};
use super::settings;
use serde::Serialize;
use std::time::Duration;

/// The time limit of one check: a file system or a bus may hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// The grade of a finding, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    /// No problem.
    Ok,
    /// The daemon works, but not always or not for all resources.
    Warning,
    /// A daemon cannot work.
    Problem,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    area: &'static str,
    name: &'static str,
    grade: Grade,
    /// The observation.
    found: String,
    /// Advice, if the grade is not ok.
    advice: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { area: "", name, grade: Grade::Ok, found: found.into(), advice: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { grade: Grade::Warning, advice: Some(advice.into()), ..Self::ok(name, found) }
    }

    fn problem(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { grade: Grade::Problem, ..Self::warning(name, found, advice) }
    }
}

/// All findings and their worst grade.
#[derive(Debug, Serialize)]
struct Diagnosis {
    verdict: Grade,
    findings: Vec<Finding>,
}

/// Runs all checks. The exit code is 0 if all is ok, 1 with a problem, 2 with warnings only.
pub(super) fn doctor(args: &args::Doctor) -> Exit {
    super::on_runtime(|runtime| {
        let diagnosis = runtime.block_on(diagnose(args));
        if args.json {
            out_json(&diagnosis);
        } else {
            show(&diagnosis);
        }
        match diagnosis.verdict {
            Grade::Ok => Exit::Well,
            Grade::Warning => Exit::Changes,
            Grade::Problem => Exit::Failed,
        }
    })
}

async fn diagnose(args: &args::Doctor) -> Diagnosis {
    let directory = super::state_dir::directory(args.socket.state_dir.as_deref());
    let address = address(&args.socket);
    let (mut daemon, pid) = daemon::look(&args.socket).await;
    let socket = address.path().to_owned();
    let config = args.config.clone();
    let read = tokio::task::spawn_blocking(move || settings::of_host(config.as_deref()));
    let read = tokio::time::timeout(PATIENCE, read).await;
    let (file, read) = read.ok().and_then(Result::ok).unwrap_or_default();
    let graphs = declared::graphs(&args.graphs, read.as_ref());
    let world = world::look(read.as_ref(), &directory).await;
    let (state, named, own) = (directory.clone(), graphs.clone(), file.clone());
    let limits = on_thread(move || limits::look(pid));
    let permissions = on_thread(move || permissions::look(&state, &socket, (&own, &named)));
    let files = on_thread(move || files::look(&directory));
    let packages = on_thread(packages::look);
    let accounts = on_thread(accounts::look);
    let facts = on_thread(facts::look);
    let declared = on_thread(move || declared::look(&file, read, &graphs));
    let (limits, permissions, files, packages, facts, declared, accounts) =
        tokio::join!(limits, permissions, files, packages, facts, declared, accounts);
    let (service, clock) = tokio::join!(service::look(), clock::look());
    let mut findings = Vec::new();
    for (area, found) in [
        ("limits", limits),
        ("permissions", permissions),
        ("settings", declared),
        ("file systems", files),
        ("systemd", service),
        ("clock", clock),
        ("packages", packages),
        ("accounts", accounts),
        ("world", world),
        ("facts", facts),
        ("daemon", std::mem::take(&mut daemon)),
    ] {
        findings.extend(found.into_iter().map(|finding| Finding { area, ..finding }));
    }
    let verdict = findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Ok);
    Diagnosis { verdict, findings }
}

/// Runs a check on a thread with a time limit; a thread that hangs is abandoned.
async fn on_thread(look: impl FnOnce() -> Vec<Finding> + Send + 'static) -> Vec<Finding> {
    let looking = tokio::task::spawn_blocking(look);
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(findings)) => findings,
        Ok(Err(panicked)) => {
            vec![Finding::problem("look", panicked.to_string(), "report this bug of steadfast")]
        }
        Err(_elapsed) => vec![Finding::problem(
            "look",
            format!("a file system did not respond within {} s", PATIENCE.as_secs()),
            "find the hanging file system: `findmnt`, and processes in state D",
        )],
    }
}

fn show(diagnosis: &Diagnosis) {
    let mut area = "";
    for finding in &diagnosis.findings {
        if finding.area != area {
            area = finding.area;
            print(area);
        }
        let grade = match finding.grade {
            Grade::Ok => "ok",
            Grade::Warning => "warning",
            Grade::Problem => "problem",
        };
        print(format!("  {grade:<8} {}: {}", finding.name, plain(&finding.found)));
        if let Some(advice) = &finding.advice {
            print(format!("           -> {}", plain(advice)));
        }
    }
    let of = |grade| diagnosis.findings.iter().filter(|finding| finding.grade == grade).count();
    let (problems, warnings) = (of(Grade::Problem), of(Grade::Warning));
    let (problems, warnings) = (count(problems, "problem"), count(warnings, "warning"));
    print(format!("{problems}, {warnings}, {} ok", of(Grade::Ok)));
}

/// Reads a file with a single number.
fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
