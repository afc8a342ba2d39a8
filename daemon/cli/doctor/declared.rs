//! The check of the settings and the graph: a daemon that starts now must accept them.

use super::{Finding, watches};
use crate::config::{self, Options, Rejected, Settings};
use std::path::{Path, PathBuf};
use steadfast_resources::KindSet;

/// The default graph of a host.
const GRAPH: &str = "/etc/steadfast/graph.yaml";

/// Returns the graphs to check: the named ones, else those of the settings, else the default one if it exists.
pub(super) fn graphs(
    named: &[PathBuf],
    settings: Option<&Result<Settings, Rejected>>,
) -> Vec<PathBuf> {
    let declared = settings.and_then(|read| read.as_ref().ok()).map(|it| it.graph.as_slice());
    let usual: Vec<PathBuf> =
        Some(PathBuf::from(GRAPH)).filter(|path| path.exists()).into_iter().collect();
    let all = [named, declared.unwrap_or_default(), &usual];
    all.into_iter().find(|paths| !paths.is_empty()).unwrap_or_default().to_vec()
}

pub(super) fn look(
    file: &Path,
    read: Option<Result<Settings, Rejected>>,
    graphs: &[PathBuf],
) -> Vec<Finding> {
    const NAME: &str = "settings";
    let shown = file.display();
    let (finding, settings) = match read {
        None => (Finding::ok(NAME, format!("{shown} does not exist")), Settings::default()),
        Some(Ok(settings)) => (Finding::ok(NAME, format!("{shown} is valid")), settings),
        Some(Err(why)) => {
            let advice =
                "correct the file, then `steadfast reload`, or `systemctl start steadfast`";
            (Finding::problem(NAME, first_line(&why), advice), Settings::default())
        }
    };
    let mut findings = vec![finding];
    if !graphs.is_empty() {
        findings.extend(graph(graphs, &settings));
    }
    findings
}

fn graph(paths: &[PathBuf], settings: &Settings) -> Vec<Finding> {
    const NAME: &str = "graph";
    let options = Options {
        defaults: settings.defaults.clone(),
        semaphore: settings.sema,
        noop: settings.noop.unwrap_or_default(),
        ..Options::new(KindSet::of_this_build())
    };
    match config::load(paths, &options) {
        Ok(loaded) => {
            let says =
                format!("graph {} is valid: {} resources", loaded.name, loaded.vertices.len());
            let blind = watches::look(&loaded.vertices);
            std::iter::once(Finding::ok(NAME, says)).chain(blind).collect()
        }
        Err(why) => {
            let advice =
                "`steadfast check` shows every problem; correct the graph, then `steadfast reload`";
            vec![Finding::problem(NAME, first_line(&why), advice)]
        }
    }
}

fn first_line(why: &Rejected) -> String {
    why.to_string().lines().next().unwrap_or_default().to_owned()
}
