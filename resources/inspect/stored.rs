//! Inspection of objects that steadfast stores in a file of their own: repositories of apt and tables of nftables.

use super::contained::{file_names, is_converged};
use super::{Field, Inspected, Inspector, text};
use crate::failure::Failure;
use crate::host::Host;
use crate::kind::Value;
use crate::parts::text_edit::text_of;
use crate::resource::Answer;
use std::path::{Path, PathBuf};

pub(super) const REPOSITORIES: Inspector =
    Inspector { kind: "repo", one: one_repository, all: Some(all_repositories) };

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
    Box::pin(own_names(host, "repo", SOURCES))
}

fn one_repository<'a>(
    host: &'a Host,
    name: &'a str,
) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let Some(text) = own_text(host, ("repo", name), SOURCES)? else { return Ok(None) };
        let path = path_of(SOURCES, name);
        let fields = repository_fields(&text).ok_or_else(|| foreign(&path))?;
        proven(host, "repo", Inspected { name: name.to_owned(), fields }, &path).await
    })
}

/// Reads a paragraph of deb822.
fn repository_fields(paragraph: &str) -> Option<Vec<(&'static str, Field)>> {
    let mut fields = Vec::new();
    let mut lines = paragraph.lines().peekable();
    while let Some(line) = lines.next() {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        let words = || {
            let words = value.split_whitespace().map(ToOwned::to_owned).collect();
            Field::Shown(Value::Texts(words))
        };
        match key {
            "Enabled" => fields.push(("enabled", Field::Shown(Value::Bool(value != "no")))),
            "Types" if value == "deb" => {}
            "Types" => fields.push(("types", words())),
            "URIs" => fields.push(("uris", words())),
            "Suites" => fields.push(("suites", words())),
            "Components" => fields.push(("components", words())),
            "Architectures" => fields.push(("architectures", words())),
            "Trusted" => fields.push(("trusted", Field::Shown(Value::Bool(value == "yes")))),
            "Signed-By" if value.is_empty() => {
                let mut key = String::new();
                while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
                    let line = line.trim();
                    key.push_str(if line == "." { "" } else { line });
                    key.push('\n');
                }
                fields.push(text("signed_by", key));
            }
            "Signed-By" => fields.push(text("signed_by", value)),
            _ => return None,
        }
    }
    Some(fields)
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
        proven(host, "firewall", Inspected { name: name.to_owned(), fields }, &path).await
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
    use super::{repository_fields, without_deletions};

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
        let fields = repository_fields(
            "Types: deb\nURIs: https://a/b\nSuites: s\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n",
        )
        .unwrap();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["uris", "suites", "components", "signed_by"]);
        assert!(format!("{fields:?}").contains("BEGIN\\n\\nabc\\n"), "{fields:?}");
        assert!(repository_fields("Foreign: 1\n").is_none());
    }
}
