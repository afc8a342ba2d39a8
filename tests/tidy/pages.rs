//! Pages that repeat a number of the sources: the number is the same in both.

use std::path::Path;

/// The page on versions names the schema of the state that the store writes.
#[test]
fn the_page_on_versions_names_the_schema_of_the_state() {
    let read = |path: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
    };
    let source = read("daemon/store/sqlite/mod.rs");
    let schema =
        source.split("const SCHEMA: i64 = ").nth(1).and_then(|rest| rest.split(';').next());
    let row = format!("| state schema | {} |", schema.expect("a schema"));
    assert!(read("docs/versions.md").contains(&row), "docs/versions.md should have: {row}");
}
