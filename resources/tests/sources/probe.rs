//! `probe`: commands and builtins, and their typed values.

use crate::support::{check, refused, resource, sum};
use std::fs;
use std::path::Path;
use steadfast_resources::{CheckResult, SentValue, Value};
use tempfile::tempdir;

fn sent(given: &[(&str, &str)]) -> Vec<(&'static str, Value)> {
    let probe = resource("probe", Path::new("p"), given);
    let result = check(&probe);
    assert!(matches!(result, CheckResult::Same), "{result:?}");
    let shown = |value| match value {
        SentValue::Shown(value) => value,
        other => panic!("{other:?}"),
    };
    let all = probe.sends().into_iter().map(|(key, value)| (key, shown(value)));
    let all: Vec<_> = all.collect();
    assert!(all.iter().all(|(key, _)| probe.sends_key(key)), "{all:?}");
    all
}

#[test]
fn commands_have_typed_answers() {
    let text = |text: &str| ("output", Value::Text(text.to_owned()));
    assert_eq!(sent(&[("cmd", "printf\na\\nb\\n")]), [text("a\nb")]);
    let numbers = [text("42"), ("int", Value::Int(42)), ("float", Value::Float(42.0))];
    assert_eq!(sent(&[("cmd", "echo\n42"), ("type", "int")]), numbers);
    let truth = [text("yes"), ("bool", Value::Bool(true))];
    assert_eq!(sent(&[("cmd", "echo\nyes"), ("type", "bool")]), truth);
    let json = [text("{ \"a\": 1 }"), ("json", Value::Text("{\"a\":1}".to_owned()))];
    assert_eq!(sent(&[("cmd", "echo\n{ \"a\": 1 }"), ("type", "json")]), json);
}

#[test]
fn builtins_read_the_host() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let hash = sent(&[("builtin", "file_hash"), ("of", path.to_str().unwrap())]);
    let expected = sum(b"x").replace("sha256:", "");
    assert_eq!(hash, [("output", Value::Text(expected))]);
    let memory = sent(&[("builtin", "memory"), ("type", "int")]);
    assert!(matches!(memory[1], ("int", Value::Int(bytes)) if bytes > 1 << 20), "{memory:?}");
    assert_eq!(sent(&[("builtin", "os")]).len(), 1);
    assert_eq!(sent(&[("builtin", "package_version"), ("of", "bash")]).len(), 1);
}

/// K9 of an attack: a sparse file of a user costs nothing, and takes hours to read.
#[test]
fn a_huge_file_has_no_hash() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("huge");
    fs::File::create(&path).unwrap().set_len(200 << 30).unwrap();
    let given = [("builtin", "file_hash"), ("of", path.to_str().unwrap())];
    let said = refused(&resource("probe", Path::new("p"), &given));
    assert!(said.contains("expected a file of at most 1 GiB"), "{said}");
}

#[test]
fn a_question_without_an_answer_fails() {
    for (given, expected) in [
        ([("cmd", "sh\n-c\necho no; exit 3"), ("type", "text")], "ended with code 3"),
        ([("cmd", "echo\nabc"), ("type", "int")], "expected an answer of type int, found abc"),
        ([("cmd", "sleep\n60"), ("timeout", "0.05")], "timed out"),
        ([("builtin", "os"), ("of", "NOTHING")], "expected NOTHING in /etc/os-release"),
        ([("builtin", "package_version"), ("of", "no-such-package")], "is not installed"),
        ([("builtin", "file_hash"), ("of", "/nonexistent/file")], "there is no file"),
    ] {
        let said = refused(&resource("probe", Path::new("p"), &given));
        assert!(said.contains(expected), "{said}");
    }
}
