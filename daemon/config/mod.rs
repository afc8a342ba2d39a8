//! The graph file: YAML to a checked graph, or everything that is wrong with it at once.
//!
//! Two readers: a fast one (`serde_yaml`, typed by the kinds' tables) for graphs with nothing to report, and a slow one
//! that knows where everything stands and looks only when the fast one declines. Both end in the same `ast::GraphFile`,
//! and one set of checks follows. Reading order: [`load`], the text (`input`, `scan`), the fast reader (`fast`, `seed`), the
//! slow one (`tree`, `read`, `read_resources`, `read_receives`, `syntax`), the checks
//! (`check`, `claims`, `receive`, `meta`, `semaphore`, `links`, `cycle`,
//! `automatic`, `select`, `orders`), and what is said (`problem`, `render`, `code`).

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

pub(crate) use checks::edges::parts;
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

/// What the command line says about a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Check only, for every vertex (`--noop`).
    pub noop: bool,
    /// A semaphore of this count around every vertex (`--sema N`).
    pub semaphore: Option<u32>,
    /// Only these: `kind[name]` or `kind`; all where none is named.
    pub only: Vec<String>,
    /// All but these.
    pub skip: Vec<String>,
    /// Say of each edge where it comes from; takes the slow reader.
    pub origins: bool,
    /// Metaparams for all that do not say otherwise.
    pub defaults: Option<Arc<Defaults>>,
    /// A graph without a single resource is refused (B-16).
    pub refuse_empty: bool,
}

/// A graph that is valid: [`steadfast_engine::Graph::new`] takes it.
#[derive(Clone, Debug)]
pub struct LoadedGraph {
    /// Its name (`graph:`).
    pub name: String,
    /// What it is for.
    pub comment: Option<String>,
    /// Its vertices, in the order written.
    pub vertices: Vec<Vertex>,
    /// Its edges, sorted, each pair once.
    pub edges: Vec<Link>,
    /// Semaphores with their counts; their numbers are [`steadfast_engine::SemaphoreId`]s.
    pub semaphores: Vec<(String, u32)>,
    /// What stands behind each `when_allowed`, as written; their numbers are [`steadfast_engine::WindowId`]s.
    pub windows: Vec<(String, Window)>,
    /// How those are run that say nothing of it.
    pub usual: Arc<steadfast_engine::Meta>,
    /// Where the edges come from, in the order of the edges; empty unless it was asked for.
    pub origins: Vec<Origin>,
    /// What has no effect.
    pub warnings: Vec<Problem>,
    /// The files it was read from, absolute; `-` is the standard input.
    pub files: Vec<PathBuf>,
    /// A hash of all that was read; the same for the same texts.
    pub hash: u64,
    /// How many bytes were read.
    pub text_bytes: usize,
    /// All that was read.
    pub texts: Vec<Text>,
}

/// A graph file as it was read: it can be read again when it is not there any more, or not valid.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// As it was named, for messages.
    display: String,
    /// Where it lay.
    path: PathBuf,
    /// What its relative paths are relative to.
    base: PathBuf,
    /// What was in it.
    content: String,
}

/// Without the content, which may hold secrets.
impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Text").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Text {
    /// Tells whether this is the text of that file.
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
    /// The resource itself.
    pub resource: Arc<dyn steadfast_resources::Resource>,
    /// How it is made anew with what it receives, where it receives anything; then `resource` stands for it, and is never run.
    pub recipe: Option<Arc<steadfast_resources::DeferredResource>>,
    /// A hash of what is declared, metaparams aside; the same in every process.
    pub definition: u64,
    /// How it is run; equal ones are shared.
    pub meta: Arc<steadfast_engine::Meta>,
    /// A watch that failed for good is tried again.
    pub rewatch: bool,
    /// It may be grouped with others (E-19).
    pub autogroup: bool,
    /// What we made of it is deleted when it leaves the graph (`on_remove: delete`).
    pub delete: bool,
    /// It must not leave the graph.
    pub protect: bool,
    /// It is declared by no graph: it removes what one did declare.
    pub removes: bool,
    /// The identities that it had before, each with the definition that it would have under that name.
    pub aliases: Aliases,
    /// Those that it comes after, as far as any of them, or what they come after, is deleted when it leaves; sorted.
    pub after: Arc<[Arc<str>]>,
    /// The resources that a change of this one refreshes, where it is deleted when it leaves; sorted.
    pub notifies: Arc<[Arc<str>]>,
    /// The file (by number in [`LoadedGraph::files`]) and the line it begins on.
    pub place: (usize, u32),
}

/// An edge between vertices, by their numbers in [`LoadedGraph::vertices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The need.
    pub from: usize,
    /// The dependent.
    pub to: usize,
    /// Whether a change of `from` refreshes `to`.
    pub notify: bool,
}

/// Where an edge comes from; two places may ask for the same edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The need.
    pub from: usize,
    /// The dependent.
    pub to: usize,
    /// The key that asks for it: `after`, `before`, `notify`, `subscribe`, or `edges`; `automatic` where none does.
    pub key: &'static str,
    /// Why an automatic edge is there.
    pub because: Option<&'static str>,
    /// Where it is written.
    pub place: Option<Place>,
}

/// Every metaparam, as kinds declare their fields.
#[must_use]
pub fn metaparams() -> &'static [steadfast_resources::FieldSpec] {
    checks::metaparams::META
}

/// Loads a graph from files, folders and the standard input (`-`).
pub fn load(paths: &[PathBuf], options: &Options) -> Result<LoadedGraph, Rejected> {
    load_with(paths, options, &KindSet::of_this_build())
}

/// The same with other kinds.
pub fn load_with(
    paths: &[PathBuf],
    options: &Options,
    kinds: &KindSet,
) -> Result<LoadedGraph, Rejected> {
    let mut problems = Problems::default();
    let sources = read::files::read(paths, &mut problems);
    compile(sources, problems, options, kinds)
}

/// The same of what was read before.
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

/// B-16: what is meant to be emptied is said to be.
fn empty(loaded: &LoadedGraph) -> Rejected {
    let name = problem::quoted(&loaded.name);
    let problem = Problem::new(Code::Empty, format!("the graph `{name}` has no resources"));
    let hint = "to accept an empty graph, pass --allow-empty to run, apply or reload";
    Rejected { problems: vec![problem.hint(hint)], more: 0 }
}

/// The graph, if there is nothing whatever to say about it.
fn fast(sources: &[SourceFile], options: &Options, kinds: &KindSet) -> Option<LoadedGraph> {
    let files: Option<Vec<ast::GraphFile>> =
        sources.iter().map(|source| read::typed::read(source, kinds)).collect();
    let mut problems = Problems::default();
    let loaded = checks::check(files?, sources, options, checks::Whole::Yes, &mut problems)?;
    problems.is_empty().then_some(loaded)
}

/// The graph, or everything there is to say about it.
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

/// One file by the slow reader, which the other one must not contradict.
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

/// A hash of all texts, with their order.
fn hash_of(sources: &[SourceFile]) -> u64 {
    sources.iter().fold(Stable::new(), |hash, source| hash.text(&source.text)).finish()
}
