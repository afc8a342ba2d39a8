//! `steadfast plan`: the changes that `apply` would make. The command takes no lock, changes nothing, and can run
//! beside a daemon.

use super::plan_report;
use super::plan_text::Title;
use crate::cli::args::Plan;
use crate::cli::edges::Edges;
use crate::cli::exit::Exit;
use crate::cli::output::out_json;
use crate::cli::output::render;
use crate::cli::{args, load_graph, output, state_dir};
use crate::config::Options;
use crate::plan::{Plan as SavedPlan, StepCollector, Unusable};
use crate::store::{SqliteStore, StoredState};
use crate::workers::readers;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::KindSet;
use steadfast_resources::MintKey;
use tokio::runtime::Runtime;

/// Prints the plan.
pub(in crate::cli) fn plan(args: &Plan, key: MintKey) -> Exit {
    render::set_up(args::Log::Human, None, render::Process::Command);
    crate::cli::on_runtime(|runtime| once(args, key, runtime))
}

/// Loads the state that `apply` would load; returns the exit code if it would be refused.
fn recall(directory: &Path) -> Result<StoredState, Exit> {
    match SqliteStore::preview_load(directory, &readers(KindSet::of_this_build(), |_, _| {})) {
        Ok(recalled) => Ok(recalled),
        Err(error) if SqliteStore::is_denied(directory) => {
            // Without permission to read the state, resources that run once are shown as if they had never run.
            output::eprint(format!("warning: {error}; planning without stored state"));
            Ok(StoredState::default())
        }
        Err(error) => Err(state_dir::refuse(&error)),
    }
}

fn once(args: &Plan, key: MintKey, runtime: &Runtime) -> Exit {
    if args.out.is_some() && args.graph.graphs.iter().any(|path| path.as_os_str() == "-") {
        let hint = "write the graph to a file; `apply --plan` reads it again";
        output::error("a plan of a graph from standard input cannot be saved", Some(hint));
        return Exit::Usage;
    }
    let given = match load_graph::options(&args.graph) {
        Ok(given) => given,
        Err(exit) => return exit,
    };
    let options = Options { origins: args.explain_edges, refuse_empty: !args.allow_empty, ..given };
    let loaded = match load_graph::read(&args.graph, &options, args.json) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let recalled = match recall(&state_dir::directory(args.state.state_dir.as_deref())) {
        Ok(recalled) => recalled,
        Err(exit) => return exit,
    };
    let edges = args.explain_edges.then(|| Edges::of(&loaded));
    let whole = (loaded.clone(), &args.graph);
    let found =
        match plan_report::find(whole, recalled, (Arc::new(key), runtime), StepCollector::new) {
            Ok(found) => found,
            Err(exit) => return exit,
        };
    if args.json {
        let mut json = serde_json::to_value(found.report()).unwrap_or_default();
        if let (Some(edges), Value::Object(map)) = (edges, &mut json) {
            map.insert("edges".to_owned(), edges.to_json());
        }
        out_json(&json);
    } else {
        found.show(Title::Plan);
        if let Some(edges) = edges {
            edges.show();
        }
    }
    let (failed, differs) = (found.has_failed(), found.differs());
    if let Some(path) = &args.out {
        if failed {
            let why = "the plan was not saved: some resources could not be checked";
            output::error(why, Some("see the lines with `!` above"));
            return Exit::Failed;
        }
        let (paths, config) = (&args.graph.graphs, args.graph.config.as_deref());
        let plan = SavedPlan::new((&loaded, paths, config), &options, found.into_steps());
        if let Err(error) = plan.write(path) {
            let Unusable::File { why, .. } = &error else {
                output::error(error.to_string(), None);
                return Exit::Failed;
            };
            let (why, hint) = match why.kind() {
                ErrorKind::AlreadyExists => ("the file exists".to_owned(), "name a new file"),
                ErrorKind::NotFound => {
                    ("its directory does not exist".to_owned(), "make the directory first")
                }
                _ => (why.to_string(), "name a file in a directory that you can write"),
            };
            let path = output::plain(&path.display().to_string());
            output::error(format!("the plan was not saved to {path}: {why}"), Some(hint));
            return Exit::Failed;
        }
        output::eprint(format!(
            "saved to {0}; apply with: steadfast apply --plan {0}",
            path.display()
        ));
    }
    match () {
        () if failed => Exit::Failed,
        () if args.detailed_exitcode && differs => Exit::Changes,
        () => Exit::Well,
    }
}
