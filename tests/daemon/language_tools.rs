//! The tools for people who write graphs, through the real program: eval, schema, fmt, explain, check --lint.

use std::path::Path;
use std::process::{Command, Output};

fn steadfast(folder: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_steadfast");
    Command::new(program).args(args).current_dir(folder).output().expect("the program runs")
}

fn stdout_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn eval_shows_value_type_names_and_layers() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = "graph: a\nvars:\n  workers: 2\n  sites: [a, b]\n";
    std::fs::write(folder.path().join("graph.yaml"), graph).expect("written");
    let output = steadfast(folder.path(), &["eval", "1 + 2 * 3"]);
    assert_eq!(stdout_of(&output), "7\ntype: int\n");
    let output =
        steadfast(folder.path(), &["eval", "vars.workers", "graph.yaml", "--var", "workers=4"]);
    let shown = stdout_of(&output);
    assert!(shown.starts_with("4\ntype: int\nuses: vars.workers\nlayers"), "{shown}");
    assert!(shown.contains("graph.yaml:3:12: 2") && shown.contains("--var: 4"), "{shown}");
    let output = steadfast(folder.path(), &["eval", "vars.wrokers * 2", "graph.yaml"]);
    assert_eq!(output.status.code(), Some(65));
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(shown.contains("no variable `wrokers`; nearest: `workers`"), "{shown}");
    assert!(shown.contains("^^^^^^^^^^^^"), "{shown}");
    let facts = r#"{"cpu": {"count": 8}}"#;
    std::fs::write(folder.path().join("facts.json"), facts).expect("written");
    let args =
        ["eval", "facts.cpu.count * vars.workers", "graph.yaml", "--facts", "facts.json", "--json"];
    let output = steadfast(folder.path(), &args);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&found["value"], &found["type"]), (&16.into(), &"int".into()));
}

#[test]
fn fmt_formats_and_check_compares() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("graph.yaml");
    std::fs::write(&path, "graph: a   \nresources:\n file:\n - name: /tmp/b # note\n")
        .expect("written");
    let output = steadfast(folder.path(), &["fmt", "--check", "graph.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let output = steadfast(folder.path(), &["fmt", "graph.yaml"]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&path).expect("a text");
    assert_eq!(text, "graph: a\nresources:\n  file:\n    - name: /tmp/b # note\n");
    assert!(steadfast(folder.path(), &["fmt", "--check", "graph.yaml"]).status.success());
}

#[test]
fn explain_and_schema_know_the_language() {
    let folder = tempfile::tempdir().expect("a folder");
    for (topic, part) in [
        ("when", "inactive"),
        ("for_each", "item.key"),
        ("expressions", "text | lower"),
        ("file.mode", "file.mode: "),
        ("exit-codes", "65"),
        ("lint", "unguarded-exec"),
    ] {
        let output = steadfast(folder.path(), &["explain", topic]);
        assert!(stdout_of(&output).contains(part), "{topic}: {output:?}");
    }
    let output = steadfast(folder.path(), &["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
}

#[test]
fn lint_gives_advice_about_a_valid_graph() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = "graph: a\nresources:\n  exec:\n    - {name: a, cmd: echo a}\n";
    std::fs::write(folder.path().join("graph.yaml"), graph).expect("written");
    let output = steadfast(folder.path(), &["check", "--lint", "graph.yaml"]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("graph.yaml:4:8: advice[unguarded-exec]: exec[a] has no guard"),
        "{shown}"
    );
    let output = steadfast(folder.path(), &["check", "--lint", "--json", "graph.yaml"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["advice"][0]["lint"], "unguarded-exec");
}
