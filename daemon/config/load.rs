//! The load of a graph: texts to documents, documents to files, and files to a checked graph.

use super::hash::Stable;
use super::problem::code::Code;
use super::problem::location::DocumentInfo;
use super::problem::render::Rejected;
use super::problem::{Problem, Problems};
use super::source_file::{Role, SourceFile};
use super::{LoadedGraph, Options, Text, checks, expand, problem, read};
use std::path::PathBuf;
use std::sync::Arc;

/// Loads a graph from files, directories and the standard input (`-`).
///
/// # Errors
/// [`Rejected`] with all problems of the graph.
pub fn load(paths: &[PathBuf], options: &Options) -> Result<LoadedGraph, Rejected> {
    let mut problems = Problems::default();
    let sources = read::files::read(paths, &mut problems);
    compile((sources, None), problems, options)
}

/// Loads a graph from texts that were read before.
///
/// # Errors
/// [`Rejected`] with all problems of the graph.
pub fn load_texts(texts: Vec<Text>, options: &Options) -> Result<LoadedGraph, Rejected> {
    let source = |it: Text| {
        let mut source = SourceFile::new(&it.display, it.path, it.base, it.content);
        source.role = it.role;
        source
    };
    let mut stored = Stored::default();
    let mut sources = Vec::new();
    for source in texts.into_iter().map(source) {
        match source.role {
            Role::Graph => sources.push(source),
            Role::Used => stored.files.push(source),
            Role::Values => stored.values = Some(source),
        }
    }
    compile((sources, Some(stored)), Problems::default(), options)
}

/// The texts of an earlier load besides the graph files: nothing is read from the host then.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) files: Vec<SourceFile>,
    pub(super) values: Option<SourceFile>,
}

/// Returns the expanded graph as YAML, with the origin of each part in comments.
///
/// # Errors
/// [`Rejected`] with all problems of the expansion.
pub fn expanded_text(paths: &[PathBuf], options: &Options) -> Result<String, Rejected> {
    let mut problems = Problems::default();
    let sources = read::files::read(paths, &mut problems);
    let expansion = expand::expand(sources, None, (options, &options.kinds), &mut problems);
    if problems.errors() > 0 {
        return Err(Rejected::of(problems));
    }
    Ok(expand::print::print_expansion(&expansion))
}

pub(super) fn compile(
    (sources, stored): (Vec<SourceFile>, Option<Stored>),
    problems: Problems,
    options: &Options,
) -> Result<LoadedGraph, Rejected> {
    let _limit = crate::nearest_name::Limit::start();
    if sources.iter().any(|source| expand::printed::is_expanded(&source.text)) {
        return read_printed(sources, problems, options);
    }
    // Given variables are checked also where nothing uses them.
    let has_given = !options.vars.is_empty() || !options.vars_files.is_empty();
    if has_given || sources.iter().any(|source| expand::detect::uses_language(&source.text)) {
        return expanded((sources, stored), problems, options);
    }
    let sources: Vec<Arc<SourceFile>> = sources.into_iter().map(Arc::new).collect();
    let loaded = read_plain(&sources, problems, options)?;
    with_texts(loaded, sources, options)
}

/// Adds the texts to a graph; rejects an empty graph if the options say so.
fn with_texts(
    loaded: LoadedGraph,
    sources: Vec<Arc<SourceFile>>,
    options: &Options,
) -> Result<LoadedGraph, Rejected> {
    if options.refuse_empty && loaded.vertices.is_empty() && loaded.inactive.is_empty() {
        return Err(empty(&loaded));
    }
    let text = |it: Arc<SourceFile>| match Arc::try_unwrap(it) {
        Ok(it) => Text {
            display: it.display,
            path: it.path,
            base: it.base,
            content: it.text,
            role: it.role,
        },
        Err(it) => Text {
            display: it.display.clone(),
            path: it.path.clone(),
            base: it.base.clone(),
            content: it.text.clone(),
            role: it.role,
        },
    };
    Ok(LoadedGraph { texts: sources.into_iter().map(text).collect(), ..loaded })
}

/// Loads a graph that uses the language: it is expanded, and its documents are read.
fn expanded(
    (sources, stored): (Vec<SourceFile>, Option<Stored>),
    mut problems: Problems,
    options: &Options,
) -> Result<LoadedGraph, Rejected> {
    let kinds = &options.kinds;
    let is_read = problems.is_empty();
    let expansion = expand::expand(sources, stored, (options, kinds), &mut problems);
    // The documents of an expansion that grew too far are too many to read.
    if problems.list.iter().any(|problem| problem.code == Code::Budget) {
        let rejected = finish_load(None, &expansion.sources, problems);
        return rejected.map_err(|why| Rejected { sought: expansion.sought, ..why });
    }
    let mut whole = is_read && expansion.complete;
    let (mut files, mut infos) = (Vec::new(), Vec::new());
    for document in &expansion.documents {
        let Some(source) = expansion.sources.get(document.source) else { continue };
        let file = read::read_document((source, document), kinds, &mut problems);
        whole &= !file.unread;
        files.push(file);
        infos.push(DocumentInfo::of(document));
    }
    let whole = if whole { checks::Whole::Yes } else { checks::Whole::No };
    let input = (expansion.sources.as_slice(), infos.as_slice());
    let loaded = checks::check(files, input, options, whole, &mut problems);
    let loaded = finish_load(loaded, &expansion.sources, problems).and_then(|loaded| {
        let (used, sought) = (expansion.used, expansion.sought.clone());
        with_texts(LoadedGraph { used, sought, ..loaded }, expansion.sources, options)
    });
    loaded.map_err(|rejected| Rejected { sought: expansion.sought, ..rejected })
}

/// Loads an expanded graph, as `graph --expanded` prints it.
fn read_printed(
    sources: Vec<SourceFile>,
    mut problems: Problems,
    options: &Options,
) -> Result<LoadedGraph, Rejected> {
    let mut all: Vec<Arc<SourceFile>> = sources.into_iter().map(Arc::new).collect();
    let given = all.len();
    let (mut files, mut infos) = (Vec::new(), Vec::new());
    let mut whole = if problems.is_empty() { checks::Whole::Yes } else { checks::Whole::No };
    if given > 1 {
        let what = "an expanded graph cannot be loaded together with other files";
        problems.push(Problem::new(Code::Type, what).hint("load it alone"));
        whole = checks::Whole::No;
    }
    let documents = all.first().map(Arc::clone).map_or_else(Vec::new, |first| {
        expand::printed::read_expanded(&first, &mut problems).unwrap_or_default()
    });
    for (base, mut document) in documents {
        // The relative paths of a module refer to its folder.
        let known = all.iter().position(|source| source.base == base);
        document.source = known.unwrap_or(all.len());
        if let (None, Some(first)) = (known, all.first()) {
            let (path, text) = (first.path.clone(), first.text.clone());
            all.push(Arc::new(SourceFile::new(&first.display, path, base, text)));
        }
        let Some(source) = all.get(document.source) else { continue };
        let file = read::read_document((source, &document), &options.kinds, &mut problems);
        if file.unread {
            whole = checks::Whole::No;
        }
        files.push(file);
        infos.push(DocumentInfo::of(&document));
    }
    let loaded = checks::check(files, (&all, &infos), options, whole, &mut problems);
    let loaded = finish_load(loaded, &all, problems)?;
    all.truncate(given);
    with_texts(loaded, all, options)
}

/// Returns the graph with its warnings, or all problems.
fn finish_load(
    loaded: Option<LoadedGraph>,
    sources: &[Arc<SourceFile>],
    problems: Problems,
) -> Result<LoadedGraph, Rejected> {
    let displays: Vec<String> = sources.iter().map(|source| source.display.clone()).collect();
    let errors = problems.errors();
    let problems = problems.sorted(&displays);
    match loaded {
        Some(loaded) if errors == 0 => Ok(LoadedGraph { warnings: problems.list, ..loaded }),
        _ => Err(Rejected::of(problems)),
    }
}

/// Returns the documents of files that are read as they are.
fn plain_documents(sources: &[Arc<SourceFile>]) -> Vec<DocumentInfo> {
    (0..sources.len()).map(|source| DocumentInfo { source, ..DocumentInfo::default() }).collect()
}

/// B-16: creates the rejection of an empty graph.
fn empty(loaded: &LoadedGraph) -> Rejected {
    let name = problem::quoted(&loaded.name);
    let problem = Problem::new(Code::Empty, format!("the graph `{name}` has no resources"));
    let hint = "to accept an empty graph, pass --allow-empty to check, run, apply or reload";
    Rejected { problems: vec![problem.hint(hint)], ..Rejected::default() }
}

/// Loads a graph that uses no expressions: its files are read as they are.
fn read_plain(
    sources: &[Arc<SourceFile>],
    mut problems: Problems,
    options: &Options,
) -> Result<LoadedGraph, Rejected> {
    let mut files = Vec::new();
    let mut whole = if problems.is_empty() { checks::Whole::Yes } else { checks::Whole::No };
    for source in sources {
        let is_text = read::refused_characters::check_characters(source, &mut problems);
        let file = is_text.then(|| read::read(source, &options.kinds, &mut problems)).flatten();
        if file.as_ref().is_none_or(|file| file.unread) {
            whole = checks::Whole::No;
        }
        files.push(file.unwrap_or_default());
    }
    let documents = plain_documents(sources);
    let input = (sources, documents.as_slice());
    let loaded = checks::check(files, input, options, whole, &mut problems);
    finish_load(loaded, sources, problems)
}

/// Returns a hash of all texts in their order.
pub(super) fn hash_of(sources: &[Arc<SourceFile>]) -> u64 {
    sources.iter().fold(Stable::new(), |hash, source| hash.text(&source.text)).finish()
}
