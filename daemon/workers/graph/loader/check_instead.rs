//! The check of a graph in another folder, before it takes the place of the running one: a bundle is judged first.

use super::bundle_link::replace_link;
use super::{GraphLoader, lock};
use crate::config;
use crate::driver::LoadError;
use std::path::Path;

impl GraphLoader {
    /// Reads the graph with another target of a link through which its paths lead, without running the graph.
    ///
    /// # Errors
    /// [`LoadError::Invalid`] with the problems of the graph, or if no path leads through the link.
    pub(in crate::workers) async fn check_instead(
        &self,
        link: &Path,
        instead: &Path,
    ) -> Result<(), LoadError> {
        let this = &self.0;
        let mut graph = this.graph();
        let Some(paths) = replace_link(&graph.paths, link, instead) else {
            let what = format!("no path of the graph leads through {}", link.display());
            return Err(LoadError::Invalid(what));
        };
        graph.paths = paths;
        graph.options.exports.clone_from(&lock(&this.exports));
        graph.options = this.live.reload_options(graph.options);
        let read = tokio::task::spawn_blocking(move || config::load(&graph.paths, &graph.options));
        match read.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(rejected)) => Err(LoadError::Invalid(rejected.without_values())),
            Err(panic) => Err(LoadError::Invalid(format!("the load panicked: {panic}"))),
        }
    }
}
