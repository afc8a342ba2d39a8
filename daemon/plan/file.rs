//! The file of a plan: the graph and the options it was made with, and every step.

use super::still_fits::definitions;
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
const FORM: u32 = 2;

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
    /// Each file that was read, each used fact and each used answer of a probe, with a digest or the value.
    pub(super) inputs: BTreeMap<String, String>,
    /// A digest of the definition of each resource, by identity.
    pub(super) definitions: BTreeMap<String, String>,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
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
            inputs: loaded.bound_inputs(),
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
            inputs: BTreeMap::new(),
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
        // A FIFO must not block the command.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
        let file = file.map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(strange("expected a regular file".to_owned()));
        }
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
