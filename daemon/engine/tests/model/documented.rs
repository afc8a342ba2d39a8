//! What an exploration has covered is what docs/model.md says of it: a feature that is lost on the way shows.

use super::explorer::Found;
use std::path::Path;

/// The row of that name, without its time.
pub(super) fn row(name: &str, found: &Found) -> String {
    let Found { configurations, states, transitions, depth, sights } = found;
    format!("| {name} | {configurations} | {states} | {transitions} | {depth} | {} |", sights.len())
}

/// Fails where the page has other numbers: they are to be renewed where more or less is explored on purpose.
pub(super) fn compare(name: &str, found: &Found) {
    if std::env::var_os("STEADFAST_BROKEN").is_some() {
        // A broken engine has other states, and is to be caught by a rule that it breaks (docs/mutations.md).
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md");
    let page = std::fs::read_to_string(page).expect("docs/model.md is there");
    let row = row(name, found);
    let begin = format!("| {name} |");
    let said: Vec<&str> = page.lines().filter(|line| line.starts_with(&begin)).collect();
    let same = matches!(said.as_slice(), [line] if line.starts_with(&row));
    assert!(same, "docs/model.md: expected one row that begins\n{row}\nfound {said:#?}");
}
