//! Local facts: values that the operator writes to files of /etc/steadfast/facts.d.
//!
//! The files are trusted as the graph is (S-11): a file that another user can change is not used by root.

use super::collect::FactTree;
use super::host_root::{HostRoot, read_bounded};
use super::value_count::{MOST_VALUES, take_values};
use crate::expressions::Value;
use std::collections::BTreeMap;
use std::path::Path;
use steadfast_resources::host::input_trust::Reader;
use steadfast_resources::printable;

/// The directory of local facts.
pub const LOCAL_FACTS: &str = "/etc/steadfast/facts.d";

/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// The maximum number of bytes of all files.
const MOST_BYTES: u64 = 8 << 20;

/// The largest number of files.
const MOST_FILES: usize = 1000;

/// Collects the local facts: the value of NAME.yaml or NAME.json is `local.NAME`.
pub(super) fn collect_local(root: &HostRoot, facts: &mut FactTree) {
    let mut values = BTreeMap::new();
    let mut allowance = Room { bytes: MOST_BYTES, values: MOST_VALUES };
    for name in root.entries(LOCAL_FACTS) {
        let Some((stem, ending)) = name.rsplit_once('.') else { continue };
        if stem.is_empty() || stem.starts_with('.') || !["yaml", "json"].contains(&ending) {
            continue;
        }
        let fact = format!("local.{}", printable(stem));
        if values.len() >= MOST_FILES {
            facts.report(fact, format!("expected at most {MOST_FILES} files in {LOCAL_FACTS}"));
            break;
        }
        if !is_name(stem) {
            facts
                .report(fact, "expected a file name of letters, digits and _, then .yaml or .json");
            continue;
        }
        if values.contains_key(stem) {
            facts.report(fact, format!("{stem}.json and {stem}.yaml both exist; remove one"));
            continue;
        }
        let path = root.path(&format!("{LOCAL_FACTS}/{name}"));
        match read_local(&path, &mut allowance) {
            Ok((value, doubt)) => {
                if let Some(doubt) = doubt {
                    facts.report(fact, doubt);
                }
                values.insert(stem.to_owned(), value);
            }
            Err(message) => facts.report(fact, message),
        }
    }
    facts.put("local", Value::Map(values.into()));
}

/// Returns true if an expression can name the fact.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The bytes and the values that the files may still have.
struct Room {
    bytes: u64,
    values: usize,
}

/// Reads one file; the second value is a warning of a user who is not root.
fn read_local(path: &Path, room: &mut Room) -> Result<(Value, Option<String>), String> {
    let reader = Reader::here();
    let doubt = reader.untrusted_on_the_way(path);
    let doubt = doubt.map(|doubt| format!("another user could change the file: {doubt}"));
    if let Some(doubt) = doubt.as_ref().filter(|_| reader.is_strict()) {
        return Err(doubt.clone());
    }
    let bytes =
        read_bounded(path, LARGEST).map_err(|error| format!("{}: {error}", path.display()))?;
    room.bytes = room
        .bytes
        .checked_sub(bytes.len() as u64)
        .ok_or_else(|| format!("the files of {LOCAL_FACTS} exceed {} MiB", MOST_BYTES >> 20))?;
    let text = String::from_utf8(bytes).map_err(|_utf8| "expected UTF-8".to_owned())?;
    Ok((parse_value(&text, &mut room.values)?, doubt))
}

/// Parses a YAML or JSON text to a value, and takes its parts from the number of values that may follow.
pub(super) fn parse_value(text: &str, room: &mut usize) -> Result<Value, String> {
    take_values(text, room)?;
    let json: serde_json::Value = serde_yaml::from_str(text)
        .map_err(|error| format!("the file is no valid YAML: {error}"))?;
    Value::from_json(json).map_err(|error| error.to_string())
}
