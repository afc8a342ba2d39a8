//! Advice about one resource: guards, values in clear, literal texts, templates of scripts.

use super::{File, Findings};
use crate::config::document::tree::Node;
use crate::config::hidden::names_secret;
use crate::config::problem::quoted;
use crate::config::source_file::SourceFile;
use crate::expressions::Template;
use std::sync::Arc;
use steadfast_resources::FieldMode;
use steadfast_resources::KindSet;

/// The fields that decide about a run of a command.
const GUARDS: [&str; 5] = ["creates", "ifcmd", "nifcmd", "refresh_only", "always"];

/// Adds the advice about the resources and variables of a file.
pub(super) fn advise(
    file: &File,
    kinds: &KindSet,
    sources: &[Arc<SourceFile>],
    findings: &mut Findings,
) {
    for (kind, item, name) in file.resources() {
        let identity = format!("{kind}[{}]", quoted(name.unwrap_or("…")));
        if kind == "exec" {
            advise_guard(file, item, &identity, findings);
        }
        advise_secrets(file, (item, item), findings);
        if let Some(spec) = kinds.find(kind) {
            super::scripts::advise(file, (spec, item, &identity), findings);
            for (key, value) in file.tree.entries(item) {
                let (Some(key_text), Some(text)) = (file.text_of(*key), file.text_of(*value))
                else {
                    continue;
                };
                let field = spec.fields.iter().find(|field| field.name == key_text);
                let is_literal = field.is_some_and(|field| match field.mode {
                    Some(FieldMode::Literal(_)) => true,
                    // A shell reads the text of the command.
                    Some(FieldMode::Argv(shell)) => {
                        !shell.is_empty() && file.tree.entry(item, shell).is_some()
                    }
                    _ => false,
                });
                if is_literal && text.contains("${") {
                    let what =
                        format!("`{key_text}` of {identity} is copied as it is, with its `${{`");
                    let hint =
                        "use `template:` for values; for a `${` of another language, silence this";
                    findings.add("literal-expression", (file, *key, item), what, hint);
                }
            }
        }
        advise_template(file, (item, name, &identity), sources, findings);
    }
    let vars = file.tree.root().and_then(|root| file.tree.entry(root, "vars"));
    if let Some((_, vars)) = vars {
        advise_secrets(file, (vars, vars), findings);
    }
}

fn advise_guard(file: &File, item: usize, identity: &str, findings: &mut Findings) {
    let has_guard = GUARDS.iter().any(|guard| file.tree.entry(item, guard).is_some());
    if !has_guard {
        let what = format!("{identity} has no guard: a change of its text runs it again");
        let hint = "add `creates`, `ifcmd` or `nifcmd`, or `refresh_only: true`";
        let node = file.tree.entry(item, "name").map_or(item, |(key, _)| key);
        findings.add("unguarded-exec", (file, node, item), what, hint);
    }
}

/// Looks for values in clear below a node.
fn advise_secrets(file: &File, (node, item): (usize, usize), findings: &mut Findings) {
    for (key, value) in file.tree.entries(node) {
        let name = file.text_of(*key).unwrap_or_default();
        if name == "recv" {
            // A receiver names its sender, and no value.
            continue;
        }
        match (file.tree.node(*value), file.text_of(*value)) {
            // `{secret: NAME}` names a secret.
            (_, Some(text)) if name != "secret" && looks_secret(name, text) => {
                let what = format!("`{}` is in clear and looks like a secret", quoted(name));
                let hint = "declare it below `secrets:` and write `{secret: NAME}`";
                findings.add("clear-secret", (file, *key, item), what, hint);
            }
            (Some(Node::Map(_)), _) => advise_secrets(file, (*value, item), findings),
            (Some(Node::List(items)), _) => {
                for inner in items {
                    advise_secrets(file, (*inner, item), findings);
                }
            }
            _ => {}
        }
    }
}

/// Returns true for a name of a secret with a text that is neither a path, a number, a truth value nor an expression.
fn looks_secret(name: &str, text: &str) -> bool {
    names_secret(name)
        && text.len() >= 4
        && !text.starts_with('/')
        && !text.contains("${")
        && text.parse::<f64>().is_err()
        && !["true", "false"].contains(&text)
}

/// Checks the template of a file that a shell reads.
fn advise_template(
    file: &File,
    (item, name, identity): (usize, Option<&str>, &str),
    sources: &[Arc<SourceFile>],
    findings: &mut Findings,
) {
    let Some((key, template)) = file.tree.entry(item, "template") else { return };
    let value = |field: &str| file.tree.entry(item, field).and_then(|(_, node)| file.text_of(node));
    let path = value("path").or(name).unwrap_or_default();
    let mode = value("mode").and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or(0);
    if mode & 0o111 == 0 && !path.starts_with("/etc/cron") {
        return;
    }
    let inner = file.tree.entry(template, "text").and_then(|(_, node)| file.text_of(node));
    let text = match (inner, file.text_of(template)) {
        (Some(text), _) => Some(text.to_owned()),
        (None, Some(relative)) => {
            let path = file.source.base.join(relative);
            sources.iter().find(|source| source.path == path).map(|source| source.text.clone())
        }
        _ => None,
    };
    let Some(parsed) = text.and_then(|text| Template::parse("template", &text, None).ok()) else {
        return;
    };
    // A value of `values` is known at run time: it takes no filter.
    let values = file.tree.entry(item, "values").map(|(_, values)| file.tree.entries(values));
    let is_value = |text: &str| {
        values.unwrap_or_default().iter().any(|(name, _)| file.text_of(*name) == Some(text))
    };
    let printed = parsed.printed_without_sh().into_iter();
    for printed in printed.filter(|printed| !is_value(&printed.text)).take(5) {
        let what = format!(
            "the template of {identity} prints `{}` without `sh` in line {}",
            quoted(&printed.text),
            printed.line
        );
        let hint = format!("write {{{{ {} | sh }}}}", quoted(&printed.text));
        findings.add("template-without-sh", (file, key, item), what, hint);
    }
}
