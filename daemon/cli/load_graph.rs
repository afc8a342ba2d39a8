//! Loading of the graph that a command names.

use super::args::Graph;
use super::exit::Exit;
use super::output;
use crate::config::{self, LoadedGraph, Options};
use crate::facts::read_facts_file;
use crate::signals::Signals;
use std::sync::Arc;
use steadfast_resources::KindSet;

/// Returns the options for loading a graph, from the flags.
///
/// # Errors
/// The exit code, after a message about a file of facts that cannot be used.
pub(super) fn options(graph: &Graph) -> Result<Options, Exit> {
    let facts = match graph.facts.as_deref().map(read_facts_file) {
        None => None,
        Some(Ok(facts)) => Some(Arc::new(facts)),
        Some(Err(problem)) => {
            output::error(problem.to_string(), None);
            return Err(Exit::Usage);
        }
    };
    Ok(Options {
        kinds: KindSet::of_this_build(),
        exports: graph.exports.clone(),
        noop: graph.noop,
        semaphore: graph.sema,
        only: super::args::selectors(&graph.only, graph.labels.as_deref()),
        skip: graph.skip.clone(),
        origins: false,
        defaults: graph.defaults.clone(),
        refuse_empty: false,
        vars: graph.vars.clone(),
        vars_files: graph.vars_files.clone(),
        facts,
        ..Options::default()
    })
}

/// Loads a graph. Warnings and problems go to standard error; with `json`, problems go to standard output as data.
pub(super) fn read(graph: &Graph, options: &Options, json: bool) -> Result<LoadedGraph, Exit> {
    match config::load(&graph.graphs, options) {
        Ok(loaded) => {
            output::say_warnings(&loaded.warnings);
            Ok(loaded)
        }
        Err(rejected) => Err(report_rejected(&rejected, json)),
    }
}

/// Reports the problems of a graph: on standard error, or as data on standard output. Returns the exit code.
pub(super) fn report_rejected(rejected: &config::Rejected, json: bool) -> Exit {
    if json {
        output::out_json(&rejected.to_json());
    } else {
        output::say_rejected(rejected);
    }
    Exit::Graph
}

/// Loads a graph while signals are watched: a stop ends the wait for a graph that never arrives, with `None`.
pub(super) async fn read_unless_stopped(
    graph: &Graph,
    signals: &mut Signals,
    (json, allow_empty): (bool, bool),
) -> Result<Option<LoadedGraph>, Exit> {
    let graph = graph.clone();
    let options = Options { refuse_empty: !allow_empty, ..options(&graph)? };
    let reading = tokio::task::spawn_blocking(move || read(&graph, &options, json));
    let read = tokio::select! {
        biased;
        _ = signals.asked_to_stop() => return Ok(None),
        read = reading => read,
    };
    if signals.stops().is_asked() {
        return Ok(None);
    }
    match read {
        Ok(read) => read.map(Some),
        Err(panic) => {
            output::error(format!("reading the graph panicked: {panic}"), None);
            Err(Exit::Failed)
        }
    }
}
