//! `steadfast eval`: the value, the type and the names of an expression.

use super::args::Evaluate;
use super::exit::Exit;
use super::load_graph;
use super::output::{error, out_json, plain, print};
use crate::config::{self, Evaluated};
use serde_json::json;

/// Evaluates an expression with the variables of a graph and the facts of this host or of a file.
pub(super) fn evaluate(args: &Evaluate) -> Exit {
    let options = match load_graph::options(&args.graph) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    match config::evaluate_expression(&args.graph.graphs, &options, &args.expression) {
        Ok(Ok(found)) => {
            if args.json {
                out_json(&json!({
                    "value": found.value,
                    "type": found.value_type.to_string(),
                    "names": found.names,
                    "layers": found.layers.iter().map(|layer| json!({
                        "place": layer.place, "written": layer.written,
                    })).collect::<Vec<_>>(),
                }));
            } else {
                show(&found);
            }
            Exit::Well
        }
        Ok(Err(problem)) => {
            let hint = problem.hint.as_deref();
            error(format!("{}\n{}", plain(&problem.message), marked(args, &problem)), hint);
            Exit::Graph
        }
        Err(rejected) => load_graph::report_rejected(&rejected, args.json),
    }
}

/// Prints a result for people.
fn show(found: &Evaluated) {
    let value = match &found.value {
        crate::expressions::Value::Text(text) => plain(text),
        value => plain(&serde_json::to_string(value).unwrap_or_default()),
    };
    print(value);
    print(format!("type: {}", plain(&found.value_type.to_string())));
    if !found.names.is_empty() {
        let names: Vec<String> = found.names.iter().map(|name| plain(name)).collect();
        print(format!("uses: {}", names.join(", ")));
    }
    if !found.layers.is_empty() {
        print("layers, the last one wins:");
        for layer in &found.layers {
            print(format!("  {}: {}", plain(&layer.place), plain(&layer.written)));
        }
    }
}

/// Returns the expression with its wrong part marked below.
fn marked(args: &Evaluate, problem: &crate::expressions::ExpressionError) -> String {
    let text = args.expression.as_str();
    if text.contains('\n') {
        return String::new();
    }
    let before = text.get(..problem.offset).unwrap_or_default().chars().count();
    let end = problem.offset + problem.length;
    let width = text.get(problem.offset..end).unwrap_or_default().chars().count().max(1);
    format!("{text}\n{}{}", " ".repeat(before), "^".repeat(width))
}
