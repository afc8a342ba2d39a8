//! `steadfast check`: all problems of a graph at once.

use super::args::{Check, selectors};
use super::exit::Exit;
use super::load_graph::{self, options};
use super::output::{count, eprint, error, out_json, plain, print, say_warnings};
use crate::config::{self, Options};
use crate::selection::Selector;
use serde_json::json;
use std::path::Path;

/// Checks a graph, or makes a running daemon check resources again.
pub(super) fn check(args: &Check) -> Exit {
    // Arguments of these forms are resources of a running daemon; a path that exists is a graph.
    let named = args.graph.graphs.iter().map(|path| path.to_str());
    let resources: Option<Vec<String>> =
        named.map(|text| text.filter(|t| is_resource(t)).map(str::to_owned)).collect();
    if let Some(resources) = resources {
        let selectors = selectors(&resources, args.graph.labels.as_deref());
        return super::client::check(&args.socket, selectors);
    }
    if let [path] = args.graph.graphs.as_slice()
        && let Some(folder) = config::module_folder(path)
    {
        return check_module(args, &folder);
    }
    let options = match options(&args.graph) {
        Ok(options) => Options { refuse_empty: !args.allow_empty, ..options },
        Err(exit) => return exit,
    };
    if args.lint && args.graph.graphs.iter().any(|path| path.as_os_str() == "-") {
        let hint = "write the graph to a file, and name the file";
        error(
            "`--lint` reads the graph twice, and cannot do that with the standard input",
            Some(hint),
        );
        return Exit::Usage;
    }
    match config::load(&args.graph.graphs, &options) {
        Ok(mut loaded) => {
            loaded.warnings.extend(config::find_missing_sources(&loaded));
            let advice = if args.lint {
                config::find_advice(&args.graph.graphs, &options)
            } else {
                Vec::new()
            };
            if args.json {
                let warnings: Vec<_> =
                    loaded.warnings.iter().map(config::Problem::to_json).collect();
                let found: Vec<_> = advice.iter().map(config::Finding::to_json).collect();
                if args.lint {
                    out_json(&json!({"graph": loaded.name, "problems": warnings, "advice": found}));
                } else {
                    out_json(&json!({"graph": loaded.name, "problems": warnings}));
                }
            } else {
                say_warnings(&loaded.warnings);
                advice.iter().for_each(say_advice);
                let (vertices, edges) = (loaded.vertices.len(), loaded.edges.len());
                let words = format!("{}, {}", count(vertices, "resource"), count(edges, "edge"));
                print(format!("valid: {}: {words}", plain(&loaded.name)));
            }
            if advice.is_empty() { Exit::Well } else { Exit::Failed }
        }
        Err(rejected) => load_graph::report_rejected(&rejected, args.json),
    }
}

/// Checks the declarations of a module, and runs its cases if it has some.
fn check_module(args: &Check, folder: &Path) -> Exit {
    let kinds = config::KindSet::of_this_build();
    let page = match config::describe_module(folder, &kinds) {
        Ok(page) => page,
        Err(rejected) => return load_graph::report_rejected(&rejected, args.json),
    };
    let has_cases = folder.join("cases").is_dir();
    let cases = if has_cases { config::test_module(folder, &kinds) } else { Ok(Vec::new()) };
    let cases = match cases {
        Ok(cases) => cases,
        Err(problem) => {
            error(problem.to_string().trim_end(), None);
            return Exit::Graph;
        }
    };
    let failed: Vec<_> = cases.iter().filter(|it| !it.differences.is_empty()).collect();
    let (params, resources) = (page.params.len(), page.resources.len());
    if args.json {
        out_json(
            &json!({"module": page.name, "problems": [], "cases": cases.len(), "failed": failed.len()}),
        );
    } else {
        for case in &failed {
            eprint(format!(
                "FAIL: {}: see `steadfast test`",
                plain(&case.file.display().to_string())
            ));
        }
        let words = format!("{}, {}", count(params, "parameter"), count(resources, "resource"));
        let tested = format!("{}, {} failed", count(cases.len(), "case"), failed.len());
        print(format!("valid: module {}: {words}; {tested}", plain(&page.name)));
    }
    if failed.is_empty() { Exit::Well } else { Exit::Failed }
}

/// Prints one piece of advice.
fn say_advice(finding: &config::Finding) {
    let place = &finding.place;
    let at = format!("{}:{}:{}", plain(&place.file), place.line, place.column);
    eprint(format!("{at}: advice[{}]: {}", finding.lint, plain(&finding.message)));
    eprint(format!("  hint: {}", plain(&finding.hint)));
}

/// Returns true if an argument selects resources of a running daemon: `kind[name]`, `instance/*` or `label:…`.
fn is_resource(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "_:/.-*".contains(c);
    let is_form = match Selector::parse(text) {
        Selector::Kind(kind, name) => {
            !kind.is_empty() && !name.is_empty() && kind.chars().all(letter)
        }
        Selector::Instance(_) | Selector::Labels(_) => true,
        Selector::Word(_) | Selector::Name(_) => false,
    };
    is_form && !Path::new(text).exists()
}
