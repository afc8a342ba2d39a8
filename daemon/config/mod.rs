//! The configuration: YAML files to a checked graph, or to a list of all problems.
//!
//! One reader with positions turns each text into a document, and the document into a `ast::GraphFile`; the checks
//! follow. A graph that uses the language goes through `expand` in between. `module_test` runs the cases of modules.
//!
//! Reading order: [`load()`], the text (`source_file`, `read/files`), the document (`document`, `scalar`), its walk
//! (`read`, `read/resources`, `read/receives`), the graph file (`ast`), the language (`expand`, `template`), the checks
//! (`checks`, `graph`, `removal`, `missing_sources`), the messages (`problem`, `hidden`), and the settings of the host
//! (`settings`, `maintenance_window`). Then the inputs of a graph (`used_inputs`, `live_inputs`, `bound_inputs`,
//! `hash`), and the commands about graphs (`declared_text`, `module_test`, `lint`, `format`, `schema`).

mod ast;
mod bound_inputs;
mod checks;
mod declared_text;
mod document;
mod expand;
mod format;
mod graph;
mod hash;
mod hidden;
mod lint;
mod live_inputs;
mod load;
mod maintenance_window;
mod missing_sources;
mod module_test;
mod problem;
mod read;
mod removal;
mod scalar;
mod schema;
mod settings;
mod source_file;
mod template;
mod used_inputs;

pub use checks::collections::CollectedExport;
pub use checks::semaphores::RESERVED;
pub use declared_text::declared_lines;
pub use expand::ask::{Evaluated, Layer, evaluate_expression};
pub use expand::modules::module_page::{
    ModulePage, ModuleParam, ModuleResource, describe_module, module_folder,
};
pub use expand::words::language_words;
pub use format::{NotFormatted, format_graph, read_text_to_format};
pub use lint::{Finding, LINTS, find_advice, refresh_action};
pub(crate) use live_inputs::LiveInputs;
pub use load::{expanded_text, load, load_texts};
pub use maintenance_window::{Gate, Window};
pub use missing_sources::find_missing_sources;
pub use module_test::{CaseResult, test_module};
pub use problem::code::Code;
pub use problem::render::Rejected;
pub use problem::{Place, Problem, Severity};
pub use read::files::is_graph;
pub use read::foreign_words::{
    kind_for as kind_for_word, lines_for_word as lines_for_foreign_word,
};
pub use schema::json_schema;
pub use settings::quantities::span;
pub use settings::recorders::{Destination, Recorder, recorders};
pub use settings::world::{WorldBackend, WorldSettings, world_settings};
pub use settings::{Bounds, Defaults, Judge, Settings, parse_settings, read_settings, settings};
pub use steadfast_resources::KindSet;
pub use used_inputs::{UsedInputs, probe_answer};

use crate::expressions::Value;
use crate::world::selector::CollectionSelector;
use load::{Stored, compile, hash_of};
use serde::{Deserialize, Serialize};
use source_file::Role;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The options for loading a graph: the known kinds, and the flags of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The kinds that the graph may use.
    pub kinds: KindSet,
    /// True if every vertex is only checked (`--noop`).
    pub noop: bool,
    /// The count of a semaphore around every vertex (`--sema N`).
    pub semaphore: Option<u32>,
    /// The selected resources, each as `kind[name]` or `kind`; all if empty.
    pub only: Vec<String>,
    /// The skipped resources, each as `kind[name]` or `kind`.
    pub skip: Vec<String>,
    /// True if the origin of each edge is recorded.
    pub origins: bool,
    /// The default metaparameters.
    pub defaults: Option<Arc<Defaults>>,
    /// True if a graph without any resource is rejected (B-16).
    pub refuse_empty: bool,
    /// The resources that other hosts export, as far as this host knows them.
    pub exports: Option<Arc<[CollectedExport]>>,
    /// Variables of the command line (`--var k=v`), in order.
    pub vars: Vec<(String, String)>,
    /// Files of variables: those of the settings, then those of the command line (`--vars FILE`).
    pub vars_files: Vec<PathBuf>,
    /// The facts to use instead of those of this host (`--facts FILE`).
    pub facts: Option<Arc<Value>>,
    /// The facts of the last load, which static fields keep; `None` if they are the present ones.
    pub facts_at_load: Option<Arc<Value>>,
    /// The facts that a resource will change, each with the resource: their users are unknown until then.
    pub unknown_facts: BTreeMap<String, String>,
    /// The values of probes so far, by name.
    pub probes: Option<Arc<BTreeMap<String, Value>>>,
}

impl Options {
    /// Creates options with these kinds and without any flag.
    #[must_use]
    pub fn new(kinds: KindSet) -> Self {
        Self { kinds, ..Self::default() }
    }
}

/// A valid graph: [`steadfast_engine::Graph::new`] accepts it.
#[derive(Clone, Debug, Default)]
pub struct LoadedGraph {
    /// The name (`graph:`).
    pub name: String,
    /// The comment (`comment:`).
    pub comment: Option<String>,
    /// The vertices, in the order written.
    pub vertices: Vec<Vertex>,
    /// The inactive resources, by identity.
    pub inactive: Vec<Inactive>,
    /// The edges, sorted, each pair once.
    pub edges: Vec<Link>,
    /// The semaphores with their counts; the indexes are [`steadfast_engine::SemaphoreId`]s.
    pub semaphores: Vec<(String, u32)>,
    /// Each `when_allowed` as written, with its window; the indexes are [`steadfast_engine::WindowId`]s.
    pub windows: Vec<(String, Window)>,
    /// The parameters of resources without metaparameters.
    pub usual: Arc<steadfast_engine::Meta>,
    /// The origins of the edges, in the order of the edges; empty unless requested.
    pub origins: Vec<Origin>,
    /// Warnings, such as fields without effect.
    pub warnings: Vec<Problem>,
    /// The absolute paths of the files; `-` is the standard input.
    pub files: Vec<PathBuf>,
    /// A hash of all texts.
    pub hash: u64,
    /// The number of bytes read.
    pub text_bytes: usize,
    /// The texts that were read.
    pub texts: Vec<Text>,
    /// The collections of other hosts' resources.
    pub collections: Arc<[CollectionSelector]>,
    /// The identities of collected resources whose exports have vanished from the world. `on_remove: delete` of the
    /// collection allows their removal.
    pub vanished: HashSet<Arc<str>>,
    /// The facts and probes that expressions use.
    pub used: UsedInputs,
    /// The kinds that the graph was loaded with.
    pub kinds: KindSet,
    /// The files and folders that the expansion looked for besides the graph files, whether they exist or not.
    pub sought: Vec<PathBuf>,
}

/// The text of a graph file. It can be loaded again when the file is missing or no longer valid.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The name of the file in messages.
    display: String,
    /// The path of the file.
    path: PathBuf,
    /// The directory to which relative paths in the text refer.
    base: PathBuf,
    /// The content of the file.
    content: String,
    /// The part that the text plays in the graph.
    #[serde(default)]
    role: Role,
}

/// Omits the content, which may hold secrets.
impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Text").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Text {
    /// Returns true if this is the text of a file.
    #[must_use]
    pub fn is_of(&self, file: &std::path::Path) -> bool {
        std::path::absolute(file).is_ok_and(|file| file == self.path)
    }
}

/// A declared resource that has no vertex, because its condition is false or not known yet. Its records stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inactive {
    /// The identity.
    pub identity: Arc<str>,
    /// The condition as written.
    pub condition: Arc<str>,
    /// The names in the condition with their values.
    pub values: Arc<[(String, String)]>,
    /// The missing value, such as `probe[old_tls]`; none if the condition is false.
    pub unknown_until: Option<String>,
    /// The file and the line of the condition, such as `web.yaml:12`; none for a resource without a condition.
    pub condition_at: Option<String>,
    /// The file, as an index in [`LoadedGraph::files`], and the line of the beginning.
    pub place: (usize, u32),
}

impl std::fmt::Display for Inactive {
    /// Writes `inactive: facts.memory.total_mb (7984) < 4096`, or `unknown until probe[old_tls]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(missing) = &self.unknown_until {
            return write!(f, "unknown until {missing}");
        }
        write!(f, "inactive: {}", self.condition_with_values())
    }
}

impl Inactive {
    /// Returns the condition with the value behind each name.
    #[must_use]
    pub fn condition_with_values(&self) -> String {
        let mut text = self.condition.to_string();
        for (name, value) in self.values.iter() {
            let at = text.match_indices(name.as_str()).find(|(at, _)| {
                let rest = text.get(at + name.len()..).unwrap_or_default();
                !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
            });
            if let Some(end) = at.map(|(at, _)| at + name.len()) {
                text.insert_str(end, &format!(" ({value})"));
            }
        }
        text
    }
}

/// Former identities, each with the definition that the resource would have under it.
pub type Aliases = Box<[(Arc<str>, u64)]>;

/// One resource of a graph.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Vertex {
    /// `kind[name]`.
    pub identity: Arc<str>,
    /// The resource.
    pub resource: Arc<dyn steadfast_resources::Resource>,
    /// The deferred resource, if this one receives values. The field `resource` is then a placeholder and never runs.
    pub recipe: Option<Arc<steadfast_resources::DeferredResource>>,
    /// A hash of the definition without metaparameters; equal in every process.
    pub definition: u64,
    /// The parameters of the engine; equal ones are shared.
    pub meta: Arc<steadfast_engine::Meta>,
    /// True if a watch that failed for good is tried again.
    pub rewatch: bool,
    /// True if the resource may join an automatic group (E-19).
    pub autogroup: bool,
    /// True if the created object is deleted when the resource is removed (`on_remove: delete`).
    pub delete: bool,
    /// True if the resource must not be removed from the graph.
    pub protect: bool,
    /// True for a removal vertex, which no graph declares.
    pub removes: bool,
    /// True if a failure blocks the dependents whatever the kind says: a declared edge or a received value needs it.
    pub failure_blocks: bool,
    /// The former identities, each with the definition that the resource would have under it.
    pub aliases: Aliases,
    /// The resources before this one in the order, as far as they or their own predecessors are deleted on removal;
    /// sorted.
    pub after: Arc<[Arc<str>]>,
    /// The resources that a change of this one refreshes, if this one is deleted on removal; sorted.
    pub notifies: Arc<[Arc<str>]>,
    /// The labels (`labels:`).
    pub labels: Arc<[(String, String)]>,
    /// The file, as an index in [`LoadedGraph::files`], and the line of the beginning.
    pub place: (usize, u32),
}

/// An edge between vertices, by their indexes in [`LoadedGraph::vertices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The vertex that runs first.
    pub from: usize,
    /// The dependent vertex.
    pub to: usize,
    /// True if a change of `from` refreshes `to`.
    pub notify: bool,
}

/// The origin of an edge; two places may declare the same edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The vertex that runs first.
    pub from: usize,
    /// The dependent vertex.
    pub to: usize,
    /// The key of the declaration: `after`, `before`, `notify`, `subscribe`, or `edges`; `automatic` for an automatic
    /// edge.
    pub key: &'static str,
    /// The reason of an automatic edge.
    pub because: Option<&'static str>,
    /// The position of the declaration.
    pub place: Option<Place>,
}

/// Returns all metaparameters, as field tables.
#[must_use]
pub fn metaparams() -> &'static [steadfast_resources::FieldSpec] {
    checks::metaparams::META
}
