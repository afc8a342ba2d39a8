//! The configuration: YAML files to a checked graph, or to a list of all problems.
//!
//! There are two readers. The fast one (`serde_yaml`, typed by the kinds' tables) handles graphs without problems. The
//! slow one knows the position of every part, and runs only when the fast one declines. Both produce the same
//! `ast::GraphFile`, and the same checks follow. A reader must never accept a text that the other one reads
//! differently.
//!
//! Reading order: [`load`], the text (`source_file`, `read/files`, `read/prescan`), the fast reader (`read/typed`,
//! `read/deserialize`), the slow one (`read/yaml_tree`, `read`, `read/resources`, `read/receives`), the checks
//! (`checks`, `graph`, `removal`), the messages (`problem`), and the settings of the host (`settings`).

mod ast;
mod checks;
mod graph;
mod hash;
mod hidden;
mod kinds;
mod maintenance_window;
mod problem;
mod read;
mod removal;
mod scalar;
mod settings;
mod source_file;
mod template;

pub use checks::semaphores::RESERVED;
pub use kinds::KindSet;
pub use maintenance_window::Window;
pub use problem::code::Code;
pub use problem::render::Rejected;
pub(crate) use problem::suggestion::with_nearest;
pub use problem::{Place, Problem, Severity};
pub use read::files::is_graph;
pub use settings::quantities::span;
pub use settings::recorders::{Recorder, recorders};
pub use settings::{Bounds, Defaults, Judge, Settings, parse_settings, read_settings, settings};

use hash::Stable;
use problem::Problems;
use serde::{Deserialize, Serialize};
use source_file::{SourceFile, Span};
use std::path::PathBuf;
use std::sync::Arc;

/// The options of the command line for loading a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True if every vertex is only checked (`--noop`).
    pub noop: bool,
    /// The count of a semaphore around every vertex (`--sema N`).
    pub semaphore: Option<u32>,
    /// The selected resources, each as `kind[name]` or `kind`; all if empty.
    pub only: Vec<String>,
    /// The skipped resources, each as `kind[name]` or `kind`.
    pub skip: Vec<String>,
    /// True if the origin of each edge is recorded; this uses the slow reader.
    pub origins: bool,
    /// The default metaparameters.
    pub defaults: Option<Arc<Defaults>>,
    /// True if a graph without any resource is rejected (B-16).
    pub refuse_empty: bool,
}

/// A valid graph: [`steadfast_engine::Graph::new`] accepts it.
#[derive(Clone, Debug)]
pub struct LoadedGraph {
    /// The name (`graph:`).
    pub name: String,
    /// The comment (`comment:`).
    pub comment: Option<String>,
    /// The vertices, in the order written.
    pub vertices: Vec<Vertex>,
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
    /// The former identities, each with the definition that the resource would have under it.
    pub aliases: Aliases,
    /// The resources before this one in the order, as far as they or their own predecessors are deleted on removal;
    /// sorted.
    pub after: Arc<[Arc<str>]>,
    /// The resources that a change of this one refreshes, if this one is deleted on removal; sorted.
    pub notifies: Arc<[Arc<str>]>,
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

/// Loads a graph from files, directories and the standard input (`-`).
///
/// # Errors
/// [`Rejected`] with all problems of the graph.
pub fn load(paths: &[PathBuf], options: &Options) -> Result<LoadedGraph, Rejected> {
    load_with(paths, options, &KindSet::of_this_build())
}

/// Loads a graph with a given set of kinds.
///
/// # Errors
/// [`Rejected`] with all problems of the graph.
pub fn load_with(
    paths: &[PathBuf],
    options: &Options,
    kinds: &KindSet,
) -> Result<LoadedGraph, Rejected> {
    let mut problems = Problems::default();
    let sources = read::files::read(paths, &mut problems);
    compile(sources, problems, options, kinds)
}

/// Loads a graph from texts that were read before.
///
/// # Errors
/// [`Rejected`] with all problems of the graph.
pub fn load_texts(texts: Vec<Text>, options: &Options) -> Result<LoadedGraph, Rejected> {
    let source = |it: Text| SourceFile::new(&it.display, it.path, it.base, it.content);
    let sources = texts.into_iter().map(source).collect();
    compile(sources, Problems::default(), options, &KindSet::of_this_build())
}

fn compile(
    sources: Vec<SourceFile>,
    problems: Problems,
    options: &Options,
    kinds: &KindSet,
) -> Result<LoadedGraph, Rejected> {
    let scans: Vec<read::prescan::Scan> =
        sources.iter().map(|source| read::prescan::scan(&source.text)).collect();
    let loaded = if problems.is_empty()
        && !options.origins
        && scans.iter().all(|scan| !scan.careful && scan.bad.is_empty())
        && let Some(loaded) = fast(&sources, options, kinds)
    {
        loaded
    } else {
        slow(&sources, &scans, problems, options, kinds)?
    };
    if options.refuse_empty && loaded.vertices.is_empty() {
        return Err(empty(&loaded));
    }
    let text = |it: SourceFile| Text {
        display: it.display,
        path: it.path,
        base: it.base,
        content: it.text,
    };
    Ok(LoadedGraph { texts: sources.into_iter().map(text).collect(), ..loaded })
}

/// B-16: creates the rejection of an empty graph.
fn empty(loaded: &LoadedGraph) -> Rejected {
    let name = problem::quoted(&loaded.name);
    let problem = Problem::new(Code::Empty, format!("the graph `{name}` has no resources"));
    let hint = "to accept an empty graph, pass --allow-empty to run, apply or reload";
    Rejected { problems: vec![problem.hint(hint)], more: 0 }
}

/// Loads a graph with the fast reader; returns `None` if there is anything to report.
fn fast(sources: &[SourceFile], options: &Options, kinds: &KindSet) -> Option<LoadedGraph> {
    let files: Option<Vec<ast::GraphFile>> =
        sources.iter().map(|source| read::typed::read(source, kinds)).collect();
    let mut problems = Problems::default();
    let loaded = checks::check(files?, sources, options, checks::Whole::Yes, &mut problems)?;
    problems.is_empty().then_some(loaded)
}

/// Loads a graph with the slow reader, and reports all problems.
fn slow(
    sources: &[SourceFile],
    scans: &[read::prescan::Scan],
    mut problems: Problems,
    options: &Options,
    kinds: &KindSet,
) -> Result<LoadedGraph, Rejected> {
    let mut files = Vec::new();
    let mut whole = if problems.is_empty() { checks::Whole::Yes } else { checks::Whole::No };
    for (source, scan) in sources.iter().zip(scans) {
        let file = if scan.bad.is_empty() { slow_file(source, kinds, &mut problems) } else { None };
        refuse_characters(source, scan, &mut problems);
        if file.as_ref().is_none_or(|file| file.unread) {
            whole = checks::Whole::No;
        }
        files.push(file.unwrap_or_default());
    }
    let loaded = checks::check(files, sources, options, whole, &mut problems);
    let displays: Vec<String> = sources.iter().map(|source| source.display.clone()).collect();
    let errors = problems.errors();
    let problems = problems.sorted(&displays);
    match loaded {
        Some(loaded) if errors == 0 => Ok(LoadedGraph { warnings: problems.list, ..loaded }),
        _ => Err(Rejected { problems: problems.list, more: problems.more }),
    }
}

/// Reads one file with the slow reader; reports a text that the fast reader rejects as YAML or reads differently.
fn slow_file(
    source: &SourceFile,
    kinds: &KindSet,
    problems: &mut Problems,
) -> Option<ast::GraphFile> {
    let errors = problems.errors();
    let mut file = read::read(source, kinds, problems)?;
    if problems.errors() > errors {
        return Some(file);
    }
    let spots = file.spots.take();
    match read::typed::read(source, kinds) {
        Some(other) if file != other => {
            let problem =
                Problem::new(Code::Readers, "YAML parsers interpret this file differently");
            let hint = "simplify the YAML: quote strings, and put one key on each line";
            problems.push(problem.hint(hint).at(Some(source.whole())));
        }
        Some(_) => {}
        None => {
            if let Err(error) = read::typed::accepts(source) {
                problems.push(read::syntax_errors::disagreement(source, &error));
            }
        }
    }
    file.spots = spots;
    Some(file)
}

fn refuse_characters(source: &SourceFile, scan: &read::prescan::Scan, problems: &mut Problems) {
    for (at, length) in &scan.bad {
        let character = source.text.get(*at..at + length).and_then(|text| text.chars().next());
        let number = character.map_or(0, u32::from);
        let what = format!("the character U+{number:04X} is not allowed here");
        let hint = format!("write the character as \"\\u{number:04x}\" in double quotes");
        let place = source.place(Span::new(*at, at + length));
        problems.push(Problem::new(Code::Character, what).hint(hint).at(Some(place)));
    }
}

/// Returns a hash of all texts in their order.
fn hash_of(sources: &[SourceFile]) -> u64 {
    sources.iter().fold(Stable::new(), |hash, source| hash.text(&source.text)).finish()
}
