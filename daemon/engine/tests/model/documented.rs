//! The comparison of an exploration's coverage with docs/model.md, which reveals a lost feature.

use crate::model::exploration::explorer::Found;
use std::path::Path;

/// Formats the table row of an exploration, without its time.
pub(super) fn row(name: &str, found: &Found) -> String {
    let Found { configurations, states, transitions, depth, sights } = found;
    format!("| {name} | {configurations} | {states} | {transitions} | {depth} | {} |", sights.len())
}

/// Fails if the page has other numbers. The page is updated if the exploration was changed on purpose.
pub(super) fn compare(name: &str, found: &Found) {
    if std::env::var_os("STEADFAST_BROKEN").is_some() {
        // A broken engine has other states, and must be caught by a rule that it breaks (docs/mutations.md).
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
