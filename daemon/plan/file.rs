//! The file of a plan: the graph and the options it was made with, and every step.

use super::planned_changes::{moved, names};
use super::{Action, Step};
use crate::config::{LoadedGraph, Options};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use steadfast_resources::host::input_trust::Reader;
use thiserror::Error;

/// The version of the file format.
const FORM: u32 = 1;

/// The largest plan file that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// A plan: the identity of the graph it was made for, and the steps that an apply takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    form: u32,
    /// The version of steadfast that made the plan. Another version may find other differences on the same host.
    program: String,
    /// The name of the graph.
    pub graph: String,
    /// The absolute paths that the graph was read from.
    pub paths: Vec<PathBuf>,
    /// The selection `--only` of the graph; empty for the whole graph.
    pub only: Vec<String>,
    /// The selection `--skip` of the graph.
    pub skip: Vec<String>,
    /// The value of `--sema`.
    pub sema: Option<u32>,
    /// The values of `--var`.
    #[serde(default)]
    pub vars: Vec<(String, String)>,
    /// The absolute paths of the files of variables.
    #[serde(default)]
    pub vars_files: Vec<PathBuf>,
    /// The settings file of `--config`: the source of the default metaparameters.
    pub config: Option<PathBuf>,
    /// A digest of the definition of each resource, by identity.
    definitions: BTreeMap<String, String>,
    /// The steps, in order.
    steps: Vec<Step>,
    /// The position of each step in `steps`, by resource.
    #[serde(skip)]
    index: BTreeMap<String, usize>,
}

/// An error that prevents the use of a plan.
#[derive(Debug, Error)]
pub enum Unusable {
    /// The file cannot be read or written.
    #[error("{path}: {why}")]
    File {
        /// The path of the plan file.
        path: String,
        /// The error of the system call.
        why: std::io::Error,
    },
    /// The file is not a plan, or not one that this program may trust.
    #[error("{path} is not a plan of this steadfast: {why}")]
    Strange {
        /// The path of the plan file.
        path: String,
        /// The reason.
        why: String,
    },
    /// The graph or the host differs from the plan. Each entry names a resource and the difference.
    #[error("not as planned: {}", .0.first().map_or("", String::as_str))]
    Moved(Vec<String>),
}

impl Plan {
    /// Creates a plan of a loaded graph, the options it was read with, and the steps that a driver found.
    #[must_use]
    pub fn new(
        (loaded, paths, config): (&LoadedGraph, &[PathBuf], Option<&Path>),
        options: &Options,
        steps: Vec<Step>,
    ) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let plan = Self {
            form: FORM,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            graph: loaded.name.clone(),
            paths: paths.iter().map(absolute).collect(),
            only: options.only.clone(),
            skip: options.skip.clone(),
            sema: options.semaphore,
            vars: options.vars.clone(),
            vars_files: options.vars_files.iter().map(absolute).collect(),
            config: config.map(|path| absolute(&path.to_owned())),
            definitions: definitions(loaded),
            steps,
            index: BTreeMap::new(),
        };
        plan.indexed()
    }

    fn indexed(mut self) -> Self {
        let names = self.steps.iter().map(|step| step.resource.clone());
        self.index = names.zip(0..).collect();
        self
    }

    /// Creates a plan that has steps and no graph.
    #[cfg(test)]
    pub(super) fn with(steps: Vec<Step>) -> Self {
        let plan = Self {
            form: FORM,
            program: String::new(),
            graph: String::new(),
            paths: Vec::new(),
            only: Vec::new(),
            skip: Vec::new(),
            sema: None,
            vars: Vec::new(),
            vars_files: Vec::new(),
            config: None,
            definitions: BTreeMap::new(),
            steps,
            index: BTreeMap::new(),
        };
        plan.indexed()
    }

    /// Returns the step of a resource.
    pub(super) fn step(&self, identity: &str) -> Option<&Step> {
        self.steps.get(*self.index.get(identity)?)
    }

    /// Writes the plan to a new file with mode 0600.
    ///
    /// # Errors
    /// [`Unusable::File`] if the file exists already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Unusable> {
        let failed = |why| Unusable::File { path: path.display().to_string(), why };
        let text = serde_json::to_vec(self).map_err(|why| failed(why.into()))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
    }

    /// Reads a plan file that a command line names.
    ///
    /// # Errors
    /// [`Unusable`] if the file cannot be read, is not a plan, or if another user could have changed or replaced the
    /// file.
    pub fn named(path: &str) -> Result<Self, Unusable> {
        let path = Path::new(path);
        let display = || path.display().to_string();
        let failed = |why| Unusable::File { path: display(), why };
        let strange = |why: String| Unusable::Strange { path: display(), why };
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        if let Some(doubt) = Reader::here().doubts_as_named(&file, path) {
            return Err(strange(doubt));
        }
        let length = file.take(LONGEST + 1).read_to_end(&mut text).map_err(failed)?;
        if length as u64 > LONGEST {
            return Err(strange(format!("the file is longer than {LONGEST} bytes")));
        }
        let plan: Self = serde_json::from_slice(&text).map_err(|why| strange(why.to_string()))?;
        let own = env!("CARGO_PKG_VERSION");
        if plan.form != FORM || plan.program != own {
            return Err(strange(format!(
                "the plan was made by {}, but this is {own}",
                plan.program
            )));
        }
        Ok(plan.indexed())
    }

    /// Checks that a graph is still the graph that was planned.
    ///
    /// # Errors
    /// [`Unusable::Moved`] with each resource that was added, removed or declared differently.
    pub fn is_of(&self, loaded: &LoadedGraph) -> Result<(), Unusable> {
        let now = definitions(loaded);
        let mut moved = Vec::new();
        for (name, definition) in &self.definitions {
            match now.get(name) {
                None => moved.push(format!("{name}: no longer in the graph")),
                Some(other) if other != definition => {
                    moved.push(format!("{name}: the declaration has changed"));
                }
                Some(_) => {}
            }
        }
        let new = now.keys().filter(|name| !self.definitions.contains_key(*name));
        moved.extend(new.map(|name| format!("{name}: new in the graph")));
        if moved.is_empty() { Ok(()) } else { Err(Unusable::Moved(moved)) }
    }

    /// Checks that the steps found now are the steps of the plan.
    ///
    /// # Errors
    /// [`Unusable::Moved`] with each resource whose step differs.
    pub fn is_still(&self, found: &[Step]) -> Result<(), Unusable> {
        let mut moved = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for step in found {
            seen.insert(step.resource.as_str());
            let what = match self.step(&step.resource) {
                None => {
                    Some(format!("it was converged, but differs now: {}", names(&step.differences)))
                }
                Some(planned) => planned.unlike(step),
            };
            moved.extend(what.map(|what| format!("{}: {what}", step.resource)));
        }
        let done = self.steps.iter().filter(|step| !seen.contains(step.resource.as_str()));
        moved.extend(done.map(|step| {
            let now = if step.is_removal() { "no longer to be removed" } else { "now converged" };
            format!("{}: {now}", step.resource)
        }));
        if moved.is_empty() { Ok(()) } else { Err(Unusable::Moved(moved)) }
    }

    /// Returns the number of steps that remove something.
    pub(super) fn removals(&self) -> usize {
        self.steps.iter().filter(|step| step.is_removal()).count()
    }

    /// Returns the action of each resource that has a step.
    #[must_use]
    pub fn actions(&self) -> BTreeMap<&str, Action> {
        self.steps.iter().map(|step| (step.resource.as_str(), step.action)).collect()
    }
}

impl Step {
    /// Describes the step in words.
    fn in_words(&self) -> String {
        let until = |words: &str| match &self.until {
            Some(until) => format!("{words} ({until})"),
            None => words.to_owned(),
        };
        match self.action {
            Action::Change if self.removes => "a change that removes something".to_owned(),
            Action::Change => "a change".to_owned(),
            Action::Refresh => "a refresh".to_owned(),
            Action::Remove => "a removal".to_owned(),
            Action::Unknown => until("unknown until another resource is changed"),
            Action::Held => until("held"),
        }
    }

    /// Returns the first difference between this step and a step found now; `None` if they are equal.
    fn unlike(&self, other: &Self) -> Option<String> {
        for planned in &self.differences {
            match other.differences.iter().find(|one| one.aspect == planned.aspect) {
                _ if other.differences.contains(planned) => {}
                Some(one) => return Some(moved(planned, one)),
                None => return Some(format!("{}: now converged", planned.aspect)),
            }
        }
        if let Some(new) = other.differences.iter().find(|one| !self.differences.contains(one)) {
            return Some(format!("{}: was converged, but differs now", new.aspect));
        }
        if self.seal != other.seal {
            return Some("content: changed since the plan".to_owned());
        }
        let is_same = self.action == other.action && self.removes == other.removes;
        (!is_same || self.until != other.until)
            .then(|| format!("planned: {}; found: {}", self.in_words(), other.in_words()))
    }
}

fn definitions(loaded: &LoadedGraph) -> BTreeMap<String, String> {
    // Noop and the maintenance window count too: they decide if a change is made at all.
    let of = |vertex: &crate::config::Vertex| {
        let meta = &vertex.meta;
        let held = (meta.noop && !meta.planned, meta.window);
        format!("{:016x} {held:?}", vertex.definition)
    };
    loaded.vertices.iter().map(|vertex| (vertex.identity.to_string(), of(vertex))).collect()
}
