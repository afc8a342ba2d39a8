//! A file of facts for `--facts FILE`: a graph is judged for a host that this one is not.

use super::check::check_fact;
use super::collect::nest_values;
use super::host_root::read_bounded;
use super::local::parse_value;
use super::schema::find_fact;
use super::table::SCHEMA;
use super::value_count::MOST_VALUES;
use crate::expressions::Value;
use std::collections::BTreeMap;
use std::path::Path;
use steadfast_resources::host::input_trust::Reader;

/// A file of facts cannot be used. The message has one line for each problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FactsFileError(String);

/// The largest file, in bytes.
const LARGEST: u64 = 16 << 20;

/// Reads a file of facts, in the form that `steadfast facts --json` prints. Facts that the file lacks are absent.
///
/// # Errors
/// [`FactsFileError`] if the file cannot be read, or has unknown facts or values that the schema refuses.
pub fn read_facts_file(path: &Path) -> Result<Value, FactsFileError> {
    let display = path.display();
    let reader = Reader::here();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if reader.is_strict()
        && let Some(doubt) = reader.untrusted_on_the_way(&absolute)
    {
        let why = format!("the facts file {display} can be changed by another user: {doubt}");
        return Err(FactsFileError(why));
    }
    let bytes = read_bounded(path, LARGEST).map_err(|error| {
        FactsFileError(format!("the facts file {display} cannot be read: {error}"))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    read_facts(&text).map_err(|problems| {
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("facts file {display}: {problem}")).collect();
        FactsFileError(lines.join("\n"))
    })
}

fn read_facts(text: &str) -> Result<Value, Vec<String>> {
    let top = match parse_value(text, &mut MOST_VALUES.clone()) {
        Ok(Value::Map(top)) => top,
        Ok(other) => {
            return Err(vec![format!("expected a map of facts, found {}", other.value_type())]);
        }
        Err(message) => return Err(vec![message]),
    };
    check_facts(top.into_inner())
}

/// Checks a map of facts against the schema. Facts that the map lacks are absent.
///
/// # Errors
/// One message for each unknown fact and for each value that the schema refuses.
pub fn check_facts(top: BTreeMap<String, Value>) -> Result<Value, Vec<String>> {
    let mut problems = Vec::new();
    let mut values = Vec::new();
    for (name, value) in top {
        if find_fact(&name).is_some() {
            values.push((name, value));
            continue;
        }
        match value {
            Value::Map(entries) if is_group(&name) => {
                let dotted = |(key, value)| (format!("{name}.{key}"), value);
                values.extend(entries.into_inner().into_iter().map(dotted));
            }
            value if is_group(&name) => {
                problems.push(format!("fact {name}: expected a map, found {}", value.value_type()));
            }
            _ => problems.push(unknown_fact(&name)),
        }
    }
    for (name, value) in &values {
        if find_fact(name).is_none() {
            problems.push(unknown_fact(name));
        } else if let Err(problem) = check_fact(name, value) {
            problems.push(problem.to_string());
        }
    }
    if problems.is_empty() { Ok(nest_values(values.into_iter())) } else { Err(problems) }
}

fn is_group(name: &str) -> bool {
    SCHEMA.iter().any(|spec| spec.name.split_once('.').is_some_and(|(group, _)| group == name))
}

fn unknown_fact(name: &str) -> String {
    let near = SCHEMA.iter().map(|spec| (strsim::damerau_levenshtein(spec.name, name), spec.name));
    let near = near.min().filter(|(distance, _)| *distance <= 3);
    let hint = near.map(|(_, near)| format!("; nearest: `{near}`")).unwrap_or_default();
    format!("no fact `{}`{hint}", steadfast_resources::printable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_and_checked() {
        let facts = read_facts("hostname: web\nos: {id: debian}\nlocal: {rack: {row: 3}}\n");
        let facts = facts.expect("facts");
        assert_eq!(facts.at_path("os.id"), Some(&Value::Text("debian".to_owned())));
        assert_eq!(facts.at_path("local.rack.row"), Some(&Value::Int(3)));
        let problems = read_facts("hostnam: web\nos: {idd: x}\ncpu: 2\nmemory: {total_mb: many}\n");
        assert_eq!(
            problems.expect_err("problems"),
            [
                "fact cpu: expected a map, found int",
                "no fact `hostnam`; nearest: `hostname`",
                "fact memory.total_mb: expected int, found string",
                "no fact `os.idd`; nearest: `os.id`",
            ]
        );
        assert!(read_facts("- 1").is_err() && read_facts("a: [").is_err());
    }
}
