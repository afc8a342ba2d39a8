//! Inspection of objects with a file of their own: repositories of apt, and tables of nftables that steadfast wrote.

use super::contained::{file_names, is_converged, nearest, public_text};
use super::{ContainerInspector, Field, Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::parts::field_reader::bounded;
use crate::parts::text_edit::text_of;
use crate::secrets::escape::short;
use std::path::{Path, PathBuf};

pub(super) const REPOSITORIES: ContainerInspector = ContainerInspector {
    kind: "repo",
    container: "list",
    read: repositories,
    all: Some(all_repositories),
};

pub(super) const FIREWALL: Inspector =
    Inspector { kind: "firewall", one: one_firewall, all: Some(all_firewalls) };

/// The folders, with the ends of the names.
const SOURCES: (&str, &str) = ("/etc/apt/sources.list.d", ".sources");
const TABLES: (&str, &str) = ("/etc/nftables.d", ".nft");

fn header(kind: &str, name: &str) -> String {
    format!("# Managed by steadfast: {kind}[{name}]\n")
}

fn path_of((folder, end): (&str, &str), name: &str) -> PathBuf {
    Path::new(folder).join(format!("{name}{end}"))
}

/// Returns the text behind the header of a file of steadfast; none without the file.
///
/// # Errors
///
/// Fails for a file of another origin.
fn own_text(
    host: &Host,
    (kind, name): (&str, &str),
    place: (&str, &str),
) -> Result<Option<String>, Failure> {
    let path = path_of(place, name);
    let Some(file) = text_of(host.files(), &path)? else { return Ok(None) };
    match file.strip_prefix(&header(kind, name)) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(foreign(&path)),
    }
}

fn foreign(path: &Path) -> Failure {
    let what = format!("{} was not written by steadfast", path.display());
    Failure::new(what).hint("`steadfast inspect file` prints it as a file")
}

async fn own_names(host: &Host, kind: &str, place: (&str, &str)) -> Result<Vec<String>, Failure> {
    let mut own = Vec::new();
    for name in file_names(host, place.0, place.1).await? {
        let file = text_of(host.files(), &path_of(place, &name))?.unwrap_or_default();
        if file.starts_with(&header(kind, &name)) {
            own.push(name);
        }
    }
    Ok(own)
}

/// Returns the object if the plan of its declaration is empty.
async fn proven(
    host: &Host,
    kind: &str,
    object: Inspected,
    path: &Path,
) -> Result<Option<Inspected>, Failure> {
    if is_converged(host, kind, &object).await {
        return Ok(Some(object));
    }
    let what = format!("{kind}[{}] differs from its file {}", object.name, path.display());
    Err(Failure::new(what).hint("`steadfast inspect file` prints the file"))
}

fn all_repositories(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(file_names(host, SOURCES.0, SOURCES.1))
}

/// Reads the repositories of a list. Every paragraph is a resource: the first has the name of the list.
fn repositories<'a>(
    host: &'a Host,
    name: &'a str,
) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>> {
    Box::pin(async move {
        let path = path_of(SOURCES, name);
        let Some(text) = public_text(host, &path)? else { return Ok(None) };
        let taken = file_names(host, SOURCES.0, SOURCES.1).await?;
        let free = |number: &usize| !taken.contains(&format!("{name}-{number}"));
        let others = (2..).filter(free).map(|number| format!("{name}-{number}"));
        let names = std::iter::once(name.to_owned()).chain(others);
        let mut all = Vec::new();
        for (paragraph, name) in paragraphs(&text).into_iter().zip(names) {
            let (fields, omitted) = repository_fields(&paragraph);
            let object = Inspected::new(name, fields);
            all.push(match omitted.as_slice() {
                [] => object,
                omitted => object.noting(format!("the kind has no {}", omitted.join(", "))),
            });
        }
        if all.is_empty() {
            let what = bounded(format!("{} contains no repository", path.display()));
            return Err(Failure::new(what).hint("`steadfast inspect file` prints it as a file"));
        }
        nearest(host, ("repo", &path), all).await.map(Some)
    })
}

/// Returns the paragraphs of a deb822 file, without comments.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// Reads a paragraph of deb822: the fields of the kind, and the keys that the kind does not have.
fn repository_fields(paragraph: &str) -> (Vec<(&'static str, Field)>, Vec<String>) {
    let (mut fields, mut omitted) = (Vec::new(), Vec::new());
    let mut lines = paragraph.lines().peekable();
    while let Some(line) = lines.next() {
        let (key, first) = line.split_once(':').unwrap_or((line, ""));
        let mut value = first.trim().to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
            let more = more.trim();
            value.push('\n');
            value.push_str(if more == "." { "" } else { more });
        }
        let words = || {
            let words = value.split_whitespace().map(ToOwned::to_owned).collect();
            Field::Shown(Value::Texts(words))
        };
        let is_off = ["no", "false", "without", "off", "disable"].contains(&value.as_str());
        match key.to_ascii_lowercase().as_str() {
            "enabled" if !is_off => {}
            "enabled" => fields.push(("enabled", Field::Shown(Value::Bool(false)))),
            "types" if value == "deb" => {}
            "types" => fields.push(("types", words())),
            "uris" => fields.push(("uris", words())),
            "suites" => fields.push(("suites", words())),
            "components" => fields.push(("components", words())),
            "architectures" => fields.push(("architectures", words())),
            "trusted" if value == "yes" => {
                fields.push(("trusted", Field::Shown(Value::Bool(true))));
            }
            "signed-by" if value.starts_with('/') && !value.contains(char::is_whitespace) => {
                fields.push(text("signed_by", value));
            }
            "signed-by" if value.trim_start().starts_with("-----BEGIN") => {
                fields.push(text("signed_by", format!("{}\n", value.trim())));
            }
            _ => omitted.push(short(key, 40)),
        }
    }
    (fields, omitted)
}

fn all_firewalls(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(own_names(host, "firewall", TABLES))
}

fn one_firewall<'a>(
    host: &'a Host,
    name: &'a str,
) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let Some(script) = own_text(host, ("firewall", name), TABLES)? else { return Ok(None) };
        let path = path_of(TABLES, name);
        let (content, whole) = match script.strip_prefix("flush ruleset\n") {
            Some(content) => (content, true),
            None => (without_deletions(&script), false),
        };
        let mut fields = vec![text("content", content)];
        if whole {
            fields.push(("whole", Field::Shown(Value::Bool(true))));
        }
        proven(host, "firewall", Inspected::new(name.to_owned(), fields), &path).await
    })
}

/// Returns the content behind the pairs of lines that delete the former tables.
fn without_deletions(script: &str) -> &str {
    let mut rest = script;
    while let Some((first, second, behind)) = two_lines(rest) {
        let table = first.strip_prefix("table ").filter(|table| !table.contains('{'));
        if table.is_none() || table != second.strip_prefix("delete table ") {
            break;
        }
        rest = behind;
    }
    rest
}

fn two_lines(text: &str) -> Option<(&str, &str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    let (second, rest) = rest.split_once('\n')?;
    Some((first, second, rest))
}

#[cfg(test)]
mod tests {
    use super::{paragraphs, repository_fields, without_deletions};

    #[test]
    fn the_content_stands_behind_the_deletions() {
        let content = "table inet a {\n}\ntable ip b {\n}\n";
        let script =
            format!("table inet a\ndelete table inet a\ntable ip b\ndelete table ip b\n{content}");
        assert_eq!(without_deletions(&script), content);
        assert_eq!(without_deletions(content), content);
    }

    #[test]
    fn a_repository_is_read_with_its_key() {
        let text = "# foreign\nTypes: deb\nURIs: https://a/b\nSuites: s\n t\nComponents: main\n\
                    X-Name: 1\nSigned-By:\n -----BEGIN\n .\n abc\n\n\n\
                    types: deb\nenabled: no\nURIs: https://c\nSuites: x/\n";
        let paragraphs = paragraphs(text);
        let (fields, omitted) = repository_fields(&paragraphs[0]);
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["uris", "suites", "components", "signed_by"]);
        let shown = format!("{fields:?}");
        assert!(shown.contains("BEGIN\\n\\nabc\\n") && shown.contains("[\"s\", \"t\"]"), "{shown}");
        assert_eq!(omitted, ["X-Name"]);
        let (fields, _) = repository_fields(&paragraphs[1]);
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!((names, paragraphs.len()), (vec!["enabled", "uris", "suites"], 2));
    }
}
