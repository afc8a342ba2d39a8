//! `steadfast explain MODULE_DIR`: the page of a graph module, from its declarations.

use crate::cli::exit::Exit;
use crate::cli::output::{error, plain, print, say_rejected};
use crate::config::{KindSet, ModulePage, describe_module};
use std::path::Path;

/// Returns true if a topic is the folder of a module.
pub(super) fn is_folder(topic: &str) -> bool {
    topic.contains('/') || Path::new(topic).is_dir()
}

/// Prints the page of a module.
pub(super) fn explain_module(folder: &str) -> Exit {
    if !Path::new(folder).is_dir() {
        let what = format!("there is no folder {}", plain(folder));
        error(what, Some("name the folder of a module, such as modules/site"));
        return Exit::Usage;
    }
    match describe_module(Path::new(folder), &KindSet::of_this_build()) {
        Ok(page) => {
            for line in page_lines(folder, &page) {
                print(line);
            }
            Exit::Well
        }
        Err(rejected) => {
            say_rejected(&rejected);
            Exit::Graph
        }
    }
}

fn page_lines(folder: &str, page: &ModulePage) -> Vec<String> {
    let about = page.comment.as_deref().map(|text| format!(": {}", text.trim()));
    let mut lines = vec![format!("{}{}", page.name, about.unwrap_or_default())];
    let params: Vec<(String, String)> =
        page.params.iter().map(|param| (param.name.clone(), param_text(param))).collect();
    add_table(&mut lines, "Parameters:", &params);
    add_table(&mut lines, "Exports:", &page.exports);
    let resources: Vec<(String, String)> =
        page.resources.iter().map(|it| (it.identity.clone(), it.terms.join("; "))).collect();
    add_table(&mut lines, "Resources:", &resources);
    add_table(&mut lines, "Modules used:", &page.modules);
    let files: Vec<(String, String)> =
        page.includes.iter().map(|include| (include.clone(), String::new())).collect();
    add_table(&mut lines, "Included files:", &files);
    lines.push("\nUse:".to_owned());
    lines.push("modules:".to_owned());
    lines.push(format!("  - use: {folder}"));
    lines.push("    as: NAME".to_owned());
    let required: Vec<String> =
        page.params.iter().filter(|param| param.is_required).map(example_value).collect();
    if !required.is_empty() {
        lines.push(format!("    with: {{ {} }}", required.join(", ")));
    }
    lines.iter().flat_map(|text| text.split('\n')).map(plain).collect()
}

fn add_table(lines: &mut Vec<String>, title: &str, rows: &[(String, String)]) {
    if rows.is_empty() {
        return;
    }
    lines.push(format!("\n{title}"));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    lines.extend(
        rows.iter().map(|(name, text)| format!("  {name:width$}  {text}").trim_end().to_owned()),
    );
}

/// Returns the beginning of a long value.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Describes a parameter: `int, required, 1 to 65535. The port.`
fn param_text(param: &crate::config::ModuleParam) -> String {
    let mut words = vec![param.value_type.clone()];
    match &param.default {
        Some(default) => words.push(format!("default {}", shortened(default))),
        None if param.is_required => words.push("required".to_owned()),
        None => words.push("optional".to_owned()),
    }
    words.extend(param.limits.iter().cloned());
    let doc = param.doc.as_deref().map(|doc| format!(" {}", doc.trim())).unwrap_or_default();
    format!("{}.{doc}", words.join(", "))
}

fn example_value(param: &crate::config::ModuleParam) -> String {
    let value = match &*param.value_type {
        "secret" => "{ secret: NAME }",
        "bool" => "true",
        "int" | "float" => "1",
        "map" => "{}",
        text if text.starts_with("list") => "[]",
        _ => "TEXT",
    };
    format!("{}: {value}", param.name)
}
