//! `steadfast eval`: the value, the type and the names of an expression.

use super::args::Evaluate;
use super::exit::Exit;
use super::load_graph;
use super::output::{error, out_json, plain, print};
use crate::config::{self, Evaluated};
use crate::expressions::{ExpressionError, Value};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Evaluates an expression with the variables of a graph and the facts of this host or of a file.
pub(super) fn evaluate(args: &Evaluate) -> Exit {
    let mut options = match load_graph::options(&args.graph) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    if is_unknown_option(&args.expression) {
        let what = format!("unknown option `{}`", plain(&args.expression));
        error(what, Some("an expression such as --1 stands behind `--`: steadfast eval -- --1"));
        return Exit::Usage;
    }
    match read_answers(&args.probes) {
        Ok(answers) => options.probes = (!answers.is_empty()).then(|| Arc::new(answers)),
        Err(wrong) => {
            let what = format!("--probe {}: expected NAME=VALUE", plain(wrong));
            error(what, Some("for example: --probe size=4"));
            return Exit::Usage;
        }
    }
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
            let missing = missing_probe(&problem);
            let hint = problem.hint.as_deref().or(missing.as_deref());
            error(format!("{}\n{}", plain(&problem.message), marked(args, &problem)), hint);
            Exit::Graph
        }
        Err(rejected) => load_graph::report_rejected(&rejected, args.json),
    }
}

/// Prints a result for people.
fn show(found: &Evaluated) {
    for line in value_lines(&found.value) {
        print(plain(&line));
    }
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

/// Returns a value as YAML; a string alone stands without quotes.
fn value_lines(value: &Value) -> Vec<String> {
    match value {
        Value::Text(text) => vec![text.clone()],
        Value::List(items) if items.is_empty() => vec!["[]".to_owned()],
        Value::Map(entries) if entries.is_empty() => vec!["{}".to_owned()],
        Value::List(_) | Value::Map(_) => {
            let text = serde_yaml::to_string(value).unwrap_or_default();
            // A line without an indent ends the value.
            text.trim_end().lines().map(|line| format!("  {line}")).collect()
        }
        other => vec![serde_json::to_string(other).unwrap_or_default()],
    }
}

/// Returns true for a word that can only be an option: `--jsno`, and not `--1`.
fn is_unknown_option(text: &str) -> bool {
    let name = text.strip_prefix("--");
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '=')
    })
}

/// Reads the answers of probes; fails with the wrong text.
fn read_answers(texts: &[String]) -> Result<BTreeMap<String, Value>, &str> {
    let answer = |text: &'_ String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
        let json: serde_json::Value = serde_yaml::from_str(value).ok()?;
        Some((name.to_owned(), Value::from_json(json).ok()?))
    };
    texts.iter().map(|text| answer(text).ok_or(text.as_str())).collect()
}

/// Returns the advice about a probe without an answer.
fn missing_probe(problem: &ExpressionError) -> Option<String> {
    let rest = problem.message.strip_prefix("`probe.")?;
    let name = rest.split(['`', '.']).next()?;
    Some(format!("`eval` asks no probe: give the answer by --probe {name}=VALUE"))
}

/// Returns the expression with its wrong part marked below.
fn marked(args: &Evaluate, problem: &ExpressionError) -> String {
    let text = args.expression.as_str();
    if text.contains('\n') {
        return String::new();
    }
    let before = text.get(..problem.offset).unwrap_or_default().chars().count();
    let end = problem.offset + problem.length;
    let width = text.get(problem.offset..end).unwrap_or_default().chars().count().max(1);
    format!("{text}\n{}{}", " ".repeat(before), "^".repeat(width))
}
