//! `steadfast facts`: the facts of this host, and the texts about facts for `explain`.

use super::args::FactsArgs;
use super::exit::Exit;
use super::output::{eprint, error, out_json, plain, print};
use crate::expressions::Value;
use crate::facts::{self, FactSpec, HostRoot, SCHEMA, SystemAnswers};

/// Prints one fact or all facts of this host. The command collects them itself, without the daemon.
pub(super) fn show_facts(args: &FactsArgs) -> Exit {
    let collected = facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host());
    // Only root sees the private facts: others may have the output through the group of the socket.
    let is_root = rustix::process::geteuid().is_root();
    let collected = if is_root { collected } else { collected.without_private() };
    for problem in &collected.problems {
        eprint(format!("warning: {}", plain(&problem.to_string())));
    }
    let Some(name) = args.name.as_deref() else {
        print_value("", &collected.values, args.json);
        return Exit::Well;
    };
    let name = name.strip_prefix("facts.").unwrap_or(name);
    if let Some(value) = collected.values.at_path(name) {
        print_value(name, value, args.json);
        return Exit::Well;
    }
    if facts::is_known_name(name) {
        error(format!("this host has no fact `{}`", plain(name)), None);
        return Exit::Failed;
    }
    error(
        format!("no fact is named `{}`", plain(name)),
        Some("`steadfast explain facts` lists all facts"),
    );
    Exit::Usage
}

/// Prints a value: as JSON, or each part of a map on a line of its own. A single value stands alone.
fn print_value(name: &str, value: &Value, json: bool) {
    if json {
        out_json(value);
        return;
    }
    if !matches!(value, Value::Map(_)) {
        print(plain(&shown_value(value)));
        return;
    }
    let mut lines = Vec::new();
    add_lines(name, value, &mut lines);
    let width =
        lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default().min(40);
    for (name, value) in lines {
        print(format!("{:width$}  {}", plain(&name), plain(&value)));
    }
}

/// Adds a line for each value that is no map. Maps with names of the host, such as mounts, are one line for each name.
fn add_lines(name: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    let is_entry = !name.is_empty() && !facts::is_fact_or_group(name) && !name.starts_with("local");
    match value {
        Value::Map(entries) if !is_entry => {
            for (key, value) in entries {
                let below = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                add_lines(&below, value, lines);
            }
        }
        _ => lines.push((name.to_owned(), shown_value(value))),
    }
}

/// Returns a string without quotes, and another value as JSON.
fn shown_value(value: &Value) -> String {
    value.embedded_text().unwrap_or_else(|| serde_json::to_string(value).unwrap_or_default())
}

/// Returns the lines that explain all facts, one fact or one group; `None` for another topic.
pub(super) fn explain_facts(topic: &str) -> Option<Vec<String>> {
    let name = match topic.strip_prefix("facts")? {
        "" => None,
        rest => Some(rest.strip_prefix('.')?),
    };
    let Some(name) = name else {
        let first = "Facts: typed, read-only values about this host, used in expressions as `facts.NAME`.\n";
        let mut lines = vec![first.to_owned()];
        lines.extend(table(SCHEMA.iter()));
        lines.push("\nA watched fact is evaluated again when it changes. An optional fact needs a default: `facts.NAME | default(…)`.".to_owned());
        return Some(lines);
    };
    if let Some(spec) = facts::find_fact(name) {
        return Some(describe_fact(spec));
    }
    let group = format!("{name}.");
    let mut members = SCHEMA.iter().filter(|spec| spec.name.starts_with(&group)).peekable();
    members.peek()?;
    Some(table(members))
}

fn table<'specs>(specs: impl Iterator<Item = &'specs FactSpec>) -> Vec<String> {
    let specs: Vec<&FactSpec> = specs.collect();
    let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or_default();
    let row = |spec: &&FactSpec| format!("  {:width$}  {}", spec.name, row_text(spec));
    specs.iter().map(row).collect()
}

fn row_text(spec: &FactSpec) -> String {
    let optional = if spec.optional { ", optional" } else { "" };
    let unit = spec.unit.map(|unit| format!(" in {unit}")).unwrap_or_default();
    let kind = spec.fact_type.value_type();
    format!("{kind}{unit}, {}{optional}. {}", spec.class.name(), spec.doc)
}

fn describe_fact(spec: &FactSpec) -> Vec<String> {
    let mut lines = vec![format!("facts.{}: {}\n", spec.name, spec.doc)];
    let mut row = |name: &str, text: String| lines.push(format!("  {name:8} {text}"));
    row("type", spec.fact_type.value_type().to_string());
    row("class", spec.class.name().to_owned());
    if let Some(unit) = spec.unit {
        row("unit", unit.to_owned());
    }
    if spec.optional {
        row("optional", "a host may lack the fact; write `facts.NAME | default(…)`".to_owned());
    }
    if let Some(pattern) = spec.pattern {
        row("pattern", pattern.to_owned());
    }
    let kinds = facts::kinds_that_change(spec.name);
    if !kinds.is_empty() {
        row("changed", format!("by resources of the kinds {}", kinds.join(", ")));
    }
    lines
}
