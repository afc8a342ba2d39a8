//! The reason for which a graph was not loaded.

use std::sync::Arc;
use steadfast_engine::GraphError;
use thiserror::Error;

/// The reason for which a graph was not loaded. The previous graph is still running.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// No graph was delivered to this driver yet.
    #[error("no graph has been loaded yet")]
    NoneYet,
    /// The files or the settings have errors; the text lists all of them, with their places.
    #[error("{0}")]
    Invalid(String),
    /// The graph leaves out resources that are protected.
    #[error("protected resources are missing from the new graph: {}\nhint: {hint}", .identities.join(", "))]
    Protected {
        /// The identities of the resources.
        identities: Vec<Arc<str>>,
        /// The steps after which the graph can be loaded.
        hint: String,
    },
    /// The engine does not accept the graph.
    #[error(transparent)]
    Engine(#[from] GraphError),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
    /// The loader ended before it loaded the graph.
    #[error("the graph loader has ended")]
    LoaderEnded,
}
