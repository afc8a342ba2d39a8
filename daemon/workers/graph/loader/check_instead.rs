//! The check of a graph in another folder, before it takes the place of the running one: a bundle is judged first.

use super::{GraphLoader, lock};
use crate::config;
use crate::driver::LoadError;
use std::path::{Path, PathBuf};

impl GraphLoader {
    /// Reads the graph with other files in place of those below a path, without running it.
    ///
    /// # Errors
    /// [`LoadError::Invalid`] with the problems of the graph.
    pub(in crate::workers) async fn check_instead(
        &self,
        below: &Path,
        instead: &Path,
    ) -> Result<(), LoadError> {
        let this = &self.0;
        let mut graph = this.graph();
        let moved = |path: PathBuf| match path.strip_prefix(below) {
            Ok(rest) if rest.as_os_str().is_empty() => instead.to_owned(),
            Ok(rest) => instead.join(rest),
            Err(_) => path,
        };
        graph.paths = graph.paths.into_iter().map(moved).collect();
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
