//! A stand-in of nft: the tables of the kernel are a file, one table after the other.

use super::{Ended, done, text};
use steadfast_resources::host::simulated::Machine;

/// The tables of the kernel.
pub(crate) const TABLES: &str = "/proc/net/tables";

/// A table: family, name and text.
type Table = (String, String, String);

/// Runs nft, or a script of it.
pub(crate) fn run(machine: &Machine, argv: &[&str], input: &str) -> Option<Ended> {
    let live = || tables(&text(machine, TABLES));
    Some(match argv {
        ["sh", "-c", script] if script.contains("unshare --net") => Ok(listed(&tables(input))),
        ["sh", "-c", script, "sh", names @ ..] if script.contains("nft list tables") => {
            let each = names.chunks(2).map(|pair| {
                let is_named = |table: &Table| table.0 == pair[0] && table.1 == pair[1];
                let found: Vec<Table> = live().into_iter().filter(is_named).collect();
                if found.is_empty() { "\0\0".to_owned() } else { listed(&found) + "\0" }
            });
            Ok(each.collect())
        }
        ["sh", "-c", script, "sh"] if script.contains("list ruleset") => Ok(listed(&live()) + "\0"),
        ["nft", "-c", "-f", "-"] => Ok(String::new()),
        ["nft", "-f", "-"] => load(machine, input),
        _ => return None,
    })
}

/// Carries out a transaction.
fn load(machine: &Machine, script: &str) -> Ended {
    let mut all = tables(&text(machine, TABLES));
    if script.starts_with("flush ruleset") {
        all.clear();
    }
    let deleted = script.lines().filter_map(|line| line.strip_prefix("delete table "));
    for name in deleted {
        all.retain(|(family, own, _)| format!("{family} {own}") != name);
    }
    all.extend(tables(script));
    let text: String = all.into_iter().map(|(_, _, text)| text).collect();
    done(machine.write(TABLES, text))
}

/// Returns the tables of a text; each begins with `table FAMILY NAME {` and ends with a brace in a line of its own.
fn tables(text: &str) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["table", family, name, "{"] = words.as_slice() {
            is_open = true;
            all.push(((*family).to_owned(), (*name).to_owned(), String::new()));
        }
        if let (true, Some((_, _, text))) = (is_open, all.last_mut()) {
            *text += &format!("{line}\n");
        }
        is_open &= line != "}";
    }
    all
}

/// Lists tables as JSON and as text.
fn listed(tables: &[Table]) -> String {
    let object = |(family, name, text): &Table| {
        let table = format!("{{\"table\":{{\"family\":\"{family}\",\"name\":\"{name}\"}}}}");
        let rules = text.escape_default();
        let rule = format!("\"family\":\"{family}\",\"table\":\"{name}\",\"expr\":[\"{rules}\"]");
        format!("{table},{{\"rule\":{{{rule}}}}}")
    };
    let objects: Vec<String> = tables.iter().map(object).collect();
    let text: String = tables.iter().map(|(_, _, text)| text.as_str()).collect();
    format!("{{\"nftables\":[{}]}}\0{text}", objects.join(","))
}
