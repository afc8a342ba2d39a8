//! A plan that is kept: which graph it is of, as read, and every step.

use super::guard::{moved, names};
use super::{Action, Step};
use crate::config::{LoadedGraph, Options};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use steadfast_resources::host::path_trust::Reader;
use thiserror::Error;

/// The form of the file.
const FORM: u32 = 1;

/// No file that is longer is read.
const LONGEST: u64 = 256 << 20;

/// A plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    form: u32,
    /// What has made it: another version may look at the same thing otherwise.
    program: String,
    /// The name of the graph.
    pub graph: String,
    /// Where it was read from, absolute.
    pub paths: Vec<PathBuf>,
    /// Which part of it.
    pub only: Vec<String>,
    /// See `only`.
    pub skip: Vec<String>,
    /// `--sema`.
    pub sema: Option<u32>,
    /// `--config`: whose defaults of metaparams count.
    pub config: Option<PathBuf>,
    /// What each resource was declared as.
    definitions: BTreeMap<String, String>,
    /// What is to be done, in order.
    steps: Vec<Step>,
    /// The steps by name.
    #[serde(skip)]
    index: BTreeMap<String, usize>,
}

/// Why a plan cannot be used.
#[derive(Debug, Error)]
pub enum Unusable {
    /// The file cannot be read or written.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        why: std::io::Error,
    },
    /// It is no plan.
    #[error("{path} is not a plan of this steadfast: {why}")]
    Strange {
        /// Which.
        path: String,
        /// What was found.
        why: String,
    },
    /// Graph or host are not as they were. Each with the resource and what moved.
    #[error("not as planned: {}", .0.first().map_or("", String::as_str))]
    Moved(Vec<String>),
}

impl Plan {
    /// Of this graph, read with these options, with what was found.
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

    /// Of nothing but these steps.
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
            config: None,
            definitions: BTreeMap::new(),
            steps,
            index: BTreeMap::new(),
        };
        plan.indexed()
    }

    /// What is to be done with one.
    pub(super) fn step(&self, identity: &str) -> Option<&Step> {
        self.steps.get(*self.index.get(identity)?)
    }

    /// Writes it to a file of its own: one that is there is not replaced, and nobody else may read it.
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

    /// Reads one that [`Plan::write`] has written, as a command line names it; refused where somebody else could have changed it, or
    /// could change which file that is.
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

    /// Whether a graph is still the one that was planned.
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

    /// Whether what a look finds now is what was planned.
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

    /// How many steps remove something.
    pub(super) fn removals(&self) -> usize {
        self.steps.iter().filter(|step| step.is_removal()).count()
    }

    /// Those that would be left as they are, or cannot be told.
    #[must_use]
    pub fn actions(&self) -> BTreeMap<&str, Action> {
        self.steps.iter().map(|step| (step.resource.as_str(), step.action)).collect()
    }
}

impl Step {
    /// What is to be done.
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

    /// In what another step differs from this one; none where they are the same.
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
    // How it is run counts too, where it decides whether anything is done.
    let of = |vertex: &crate::config::Vertex| {
        let meta = &vertex.meta;
        let held = (meta.noop && !meta.planned, meta.window);
        format!("{:016x} {held:?}", vertex.definition)
    };
    loaded.vertices.iter().map(|vertex| (vertex.identity.to_string(), of(vertex))).collect()
}
