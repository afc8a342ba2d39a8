//! Reading the graph that a command names.

use super::args::Graph;
use super::exit::Exit;
use super::text;
use crate::config::{self, Loaded, Options};

/// What the flags say of how to read it. `noop` is what the command wants besides.
#[must_use]
pub(super) fn options(graph: &Graph, noop: bool) -> Options {
    Options {
        noop: noop || graph.noop,
        semaphore: graph.sema,
        only: graph.only.clone(),
        skip: graph.skip.clone(),
    }
}

/// Reads it; problems and warnings go to standard error.
pub(super) fn read(graph: &Graph, noop: bool) -> Result<Loaded, Exit> {
    match config::load(&graph.graphs, &options(graph, noop)) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                text::say(warning.to_string());
            }
            Ok(loaded)
        }
        Err(rejected) => {
            text::say(rejected.to_string());
            Err(Exit::Graph)
        }
    }
}
