//! The inputs of an expansion: the files that it reads, and the values that the caller gives.
//!
//! An expansion from stored texts reads no file of the host: a file that is not stored does not exist.

use crate::config::expand::sources::patterns::PatternFiles;
use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::read::files;
use crate::config::source_file::{Role, SourceFile, whole};
use crate::config::{Options, Stored, UsedInputs};
use crate::expressions::Value;
use crate::nearest_name::nearest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The values that do not come from files of the graph. They are stored with the texts of a graph.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::config) struct GivenValues {
    /// The values of `--var`, in order.
    #[serde(default)]
    pub(in crate::config) vars: Vec<(String, String)>,
    /// The files of `--vars` and of the settings, lowest first.
    #[serde(default)]
    pub(in crate::config) vars_files: Vec<PathBuf>,
    /// The facts; none if the graph uses none.
    #[serde(default)]
    pub(in crate::config) facts: Option<Value>,
    /// The facts of the last load, for static fields; none if they are the present ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::config) facts_at_load: Option<Value>,
    /// The values of probes, by name.
    #[serde(default)]
    pub(in crate::config) probes: BTreeMap<String, Value>,
}

/// The maximum number of bytes of all files of a graph that uses the language: an expansion takes about five times as
/// much memory.
const MOST_TEXT: usize = 12 << 20;

/// Returns the problem of a file that makes all files together too large.
fn too_large(display: &str) -> Problem {
    let what = format!("the files of a graph with expressions exceed {} MiB", MOST_TEXT >> 20);
    Problem::new(Code::Budget, what)
        .hint("a file without expressions, includes and variables may be larger: split the graph")
        .at(Some(whole(display)))
}

/// The files and values of an expansion.
pub(in crate::config::expand) struct Inputs {
    /// All files, the graph files first.
    pub(in crate::config::expand) sources: Vec<Arc<SourceFile>>,
    /// The number of graph files.
    pub(in crate::config::expand) roots: usize,
    pub(in crate::config::expand) vars: Vec<(String, String)>,
    pub(in crate::config::expand) vars_files: Vec<PathBuf>,
    pub(in crate::config::expand) facts: Option<Value>,
    pub(in crate::config::expand) facts_at_load: Option<Value>,
    pub(in crate::config::expand) probes: Option<BTreeMap<String, Value>>,
    /// The files and folders of the host that the expansion looked for, whether they exist or not.
    pub(in crate::config::expand) sought: BTreeSet<PathBuf>,
    /// The bytes of all files.
    bytes: usize,
    /// The index of each file by its path.
    by_path: HashMap<PathBuf, usize>,
    /// The stored files, if nothing is read from the host.
    stored: Option<Vec<SourceFile>>,
    /// The files that the patterns so far name.
    patterns: PatternFiles,
}

impl Inputs {
    /// Collects the inputs of a caller, or those that were stored.
    pub(in crate::config::expand) fn new(
        roots: Vec<SourceFile>,
        stored: Option<Stored>,
        options: &Options,
    ) -> Self {
        let given = match &stored {
            Some(Stored { values: Some(values), .. }) => {
                serde_json::from_str(&values.text).unwrap_or_default()
            }
            _ => GivenValues {
                vars: options.vars.clone(),
                vars_files: options.vars_files.clone(),
                facts: None,
                facts_at_load: None,
                probes: options.probes.as_deref().cloned().unwrap_or_default(),
            },
        };
        // Values of the caller replace stored ones: a fact or a probe of the running graph has changed.
        let (facts, facts_at_load) = match &options.facts {
            Some(facts) => (Some(Value::clone(facts)), options.facts_at_load.as_deref().cloned()),
            None => (given.facts, given.facts_at_load),
        };
        let probes = options.probes.as_deref().cloned().unwrap_or(given.probes);
        let mut by_path = HashMap::new();
        for (number, source) in roots.iter().enumerate() {
            by_path.entry(source.path.clone()).or_insert(number);
        }
        Self {
            by_path,
            roots: roots.len(),
            bytes: roots.iter().map(|source| source.text.len()).sum(),
            sources: roots.into_iter().map(Arc::new).collect(),
            vars: given.vars,
            vars_files: given.vars_files,
            facts,
            facts_at_load,
            probes: Some(probes),
            sought: BTreeSet::new(),
            stored: stored.map(|stored| stored.files),
            patterns: PatternFiles::default(),
        }
    }

    /// Returns the number of bytes of all files.
    pub(in crate::config::expand) const fn text_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the problem of graph files that are too large together.
    pub(in crate::config::expand) fn refuse_large(&self) -> Option<Problem> {
        let last = self.sources.last().filter(|_| self.bytes > MOST_TEXT)?;
        Some(too_large(&last.display))
    }

    /// Returns the index of a file; the file is read at its first use. `None` means that there is no such file.
    pub(in crate::config::expand) fn read(
        &mut self,
        path: &Path,
        display: &str,
    ) -> Result<Option<usize>, Problem> {
        let path = normal(path);
        if let Some(known) = self.by_path.get(&path) {
            return Ok(Some(*known));
        }
        let source = if let Some(stored) = &mut self.stored {
            let found = stored.iter().position(|source| source.path == path);
            found.map(|at| stored.swap_remove(at))
        } else {
            self.sought.insert(path.clone());
            let room = (MOST_TEXT - self.bytes.min(MOST_TEXT)) as u64;
            files::read_used(&path, display, (room, too_large))?
        };
        if let Some(source) = &source {
            let bytes = self.bytes + source.text.len();
            if bytes > MOST_TEXT {
                return Err(too_large(&source.display));
            }
        }
        Ok(source.map(|source| {
            self.bytes += source.text.len();
            self.by_path.insert(source.path.clone(), self.sources.len());
            self.sources.push(Arc::new(source));
            self.sources.len() - 1
        }))
    }

    /// Returns the files that a pattern with `*` and `?` in its last part names, sorted, and the work of the search.
    pub(in crate::config::expand) fn matching(&mut self, pattern: &Path) -> (Arc<[PathBuf]>, u64) {
        let pattern = normal(pattern);
        let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else {
            return ([].into(), 1);
        };
        if let Some(known) = self.patterns.find(&pattern) {
            return (known, 1);
        }
        if self.stored.is_none() {
            let has_pattern = name.to_string_lossy().contains(['*', '?']);
            self.sought.insert(if has_pattern { folder.to_owned() } else { pattern.clone() });
        }
        let listed = self.patterns.folder(folder).unwrap_or_else(|| {
            let mut files: Vec<PathBuf> = match &self.stored {
                Some(stored) => stored.iter().map(|source| source.path.clone()).collect(),
                None => files::list_folder(folder),
            };
            files.extend(self.sources.iter().map(|source| source.path.clone()));
            files.retain(|path| path.parent() == Some(folder));
            files.sort();
            files.dedup();
            self.patterns.add_folder(folder, files.into())
        });
        self.patterns.search(&pattern, &listed)
    }

    /// Returns a relative path to a folder with the first missing part replaced by the most similar folder beside it;
    /// none if the folder exists, or if nothing is read from the host.
    pub(in crate::config::expand) fn nearest_folder(
        &self,
        base: &Path,
        text: &str,
    ) -> Option<String> {
        if self.stored.is_some() {
            return None;
        }
        let is_absolute = text.starts_with('/');
        let mut at = if is_absolute { PathBuf::from("/") } else { base.to_owned() };
        let mut shown: Vec<&str> = Vec::new();
        let mut parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        let missing = parts.find(|part| {
            let next = at.join(part);
            let is_missing = !next.is_dir();
            if !is_missing {
                at = next;
                shown.push(part);
            }
            is_missing
        })?;
        let beside = files::list_folders(&at);
        let near = nearest(missing, beside.iter().map(String::as_str))?;
        let start = if is_absolute { "/" } else { "" };
        let whole: Vec<&str> = shown.into_iter().chain([near]).chain(parts).collect();
        Some(format!("{start}{}", whole.join("/")))
    }

    /// Stores the values that the expansion used, as a text beside those of the files.
    pub(in crate::config::expand) fn record_values(
        &mut self,
        used: &UsedInputs,
        probes: &BTreeMap<String, Value>,
    ) {
        let values = GivenValues {
            vars: std::mem::take(&mut self.vars),
            vars_files: std::mem::take(&mut self.vars_files),
            facts: used.used_facts(used.facts.as_deref()),
            facts_at_load: used.used_facts(used.facts_at_load.as_deref()),
            probes: probes.clone(),
        };
        let Ok(text) = serde_json::to_string(&values) else { return };
        let path = PathBuf::from("-values");
        let mut source = SourceFile::new("given values", path, PathBuf::new(), text);
        source.role = Role::Values;
        self.sources.push(Arc::new(source));
    }
}

/// Returns a path without `.` and `..`, as written: links are not followed.
pub(in crate::config::expand) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// Returns the problem of a file that does not exist.
pub(in crate::config::expand) fn missing_file(display: &str) -> Problem {
    let what = format!("no such file: `{}`", crate::config::problem::quoted(display));
    Problem::new(Code::Include, what).hint("a path is relative to the file that names it")
}
