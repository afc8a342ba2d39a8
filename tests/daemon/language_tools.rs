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

/// Lists and maps are printed as YAML, an expression may begin with a minus, and probes have given answers.
#[test]
fn eval_prints_lists_and_takes_answers_of_probes() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = "graph: a\nvars: {sites: {shop: {port: 1, tags: [x, y]}}, none: []}\nresources:\n  probe: [{name: size, cmd: [/bin/true], type: int}]\n";
    std::fs::write(folder.path().join("graph.yaml"), graph).expect("written");
    let eval = |words: &[&str]| {
        let output = steadfast(folder.path(), &[&["eval"], words].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
    };
    let (code, shown) = eval(&["vars.sites", "graph.yaml"]);
    let value = "  shop:\n    port: 1\n    tags:\n    - x\n    - y\ntype: map {";
    assert!(code == Some(0) && shown.starts_with(value), "{shown}");
    assert!(eval(&["vars.none", "graph.yaml"]).1.starts_with("[]\n"));
    for text in ["-1 + 2", "- 1 + 2", "-(1) + 2"] {
        assert_eq!(eval(&[text]).1, "1\ntype: int\n", "{text}");
    }
    assert_eq!(eval(&["--jsn", "1"]).0, Some(64));
    let (code, shown) = eval(&["probe.size + 1", "graph.yaml", "--probe", "size=4"]);
    assert_eq!((code, shown.as_str()), (Some(0), "5\ntype: int\nuses: probe.size\n"));
    let (code, shown) = eval(&["probe.size + 1", "graph.yaml"]);
    assert_eq!(code, Some(65), "{shown}");
    assert!(shown.contains("`probe.size` has no value yet"), "{shown}");
    assert!(shown.contains("give the answer by --probe size=VALUE"), "{shown}");
}

/// Without a graph in the command, the graph and the variables of the settings count; an expression needs neither.
#[test]
fn eval_uses_the_graph_and_the_variables_of_the_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    write("graph.yaml", "graph: a\nvars: {workers: 2, port: 80}\n");
    write("vars.yaml", "workers: 3\n");
    write("settings.yaml", "graph: graph.yaml\nvars_files: [vars.yaml]\n");
    write("empty.yaml", "noop: true\n");
    let eval = |words: &[&str]| stdout_of(&steadfast(folder.path(), &[&["eval"], words].concat()));
    let shown = eval(&["vars.workers + vars.port", "--config", "settings.yaml"]);
    assert!(shown.starts_with("83\n"), "{shown}");
    let shown = eval(&["vars.workers", "--config", "settings.yaml"]);
    assert!(shown.contains("vars.yaml:1:10: 3"), "{shown}");
    let shown = eval(&["vars.workers", "--config", "settings.yaml", "--var", "workers=9"]);
    assert!(shown.starts_with("9\n"), "{shown}");
    assert!(eval(&["1 + 1", "--config", "empty.yaml"]).starts_with("2\n"));
}

/// The keys below a word, the keys of templates, and anchors have topics.
#[test]
fn explain_knows_the_keys_of_each_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for (topic, expected) in [
        ("meta.limit", "meta.limit: "),
        ("settings.graph", "settings.graph: "),
        ("modules.use", "modules.use: "),
        ("for_each.item", "for_each.item: "),
        ("params.pattern", "params.pattern: "),
        ("file.template", "template: "),
        ("file.with", "template: "),
        ("file.values", "template: "),
        ("anchors", "anchors: "),
        ("merge", "anchors: "),
        ("<<", "anchors: "),
    ] {
        let output = steadfast(folder.path(), &["explain", topic]);
        let shown = stdout_of(&output);
        assert!(output.status.success() && shown.starts_with(expected), "{topic}: {output:?}");
    }
    for topic in ["meta.limti", "modules.usee", "noop.template", "nothing.at"] {
        let output = steadfast(folder.path(), &["explain", topic]);
        assert_eq!(output.status.code(), Some(64), "{topic}");
    }
}

/// A module is checked by its folder or its file; a folder is formatted with everything below it.
#[test]
fn modules_are_checked_and_folders_are_formatted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for module in ["modules/site", "modules/site/module.yaml"] {
        let output = steadfast(&examples, &["check", module]);
        let shown = stdout_of(&output);
        assert!(output.status.success(), "{output:?}");
        assert!(
            shown.starts_with("valid: module site: ") && shown.contains(", 0 failed"),
            "{shown}"
        );
    }
    let output = steadfast(&examples, &["fmt", "--check", "fleet"]);
    assert!(output.status.success(), "{output:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("m/module.yaml", "module: m\nparams: {a: {type: nothing}}\n");
    write("m/deep/more.yaml", "graph: g   \n");
    write("m/.hidden/more.yaml", "graph: g   \n");
    let output = steadfast(folder.path(), &["check", "m"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    let output = steadfast(folder.path(), &["fmt", "--check", "m"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout_of(&output);
    assert!(shown.contains("not formatted: m/deep/more.yaml"), "{shown}");
    assert!(!shown.contains("hidden"), "{shown}");
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

/// A file of another user stays that user's, and a link of another user leads to no file of root's. Needs root.
#[test]
fn fmt_keeps_the_owner_and_follows_no_foreign_link() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "graph: a   \n").expect("written");
        path
    };
    let theirs = write("theirs.yaml");
    assert_eq!(std::fs::metadata(&theirs).expect("there").uid(), 0, "this test must run as root");
    chown(&theirs, Some(65534), Some(65534)).expect("given");
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o600)).expect("closed");
    assert!(steadfast(folder.path(), &["fmt", "theirs.yaml"]).status.success());
    let found = std::fs::metadata(&theirs).expect("there");
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (65534, 65534, 0o600));
    let (own, link) = (write("own.yaml"), folder.path().join("link.yaml"));
    symlink(&own, &link).expect("a link");
    assert!(steadfast(folder.path(), &["fmt", "link.yaml"]).status.success(), "a link of root's");
    write("own.yaml");
    lchown(&link, Some(65534), Some(65534)).expect("given");
    assert_eq!(steadfast(folder.path(), &["fmt", "link.yaml"]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&own).expect("a text"), "graph: a   \n");
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
        ("with", "template"),
        ("values", "template"),
        ("as", "instance"),
        ("use", "instance"),
        ("module", "instance"),
        ("item", "item.key"),
        ("after", "edges"),
        ("notify", "edges"),
        ("subscribe", "edges"),
    ] {
        let output = steadfast(folder.path(), &["explain", topic]);
        assert!(stdout_of(&output).contains(part), "{topic}: {output:?}");
    }
    let output = steadfast(folder.path(), &["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
}

/// A module is documented from its declarations; a module that cannot be used is reported with the place.
#[test]
fn explain_documents_a_module() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("site")).expect("made");
    let module = r#"module: site
comment: A web site.
params:
  domain: { type: string, pattern: '[a-z.]+', doc: The name of the site. }
  port: { type: int, min: 1, max: 65535, default: 80 }
  key: { type: secret, required: false }
  level: { type: string, choices: [low, high] }
resources:
  pkg: [nginx]
  file:
    - { name: vhost, path: "/etc/${params.domain}.conf", when: params.port > 80 }
    - { for_each: [a, b], path: "/srv/${item}" }
modules:
  - { use: ../other, as: tls, when: 'params.port == 443' }
exports: { conf: "file[vhost]" }
"#;
    std::fs::write(folder.path().join("site/module.yaml"), module).expect("written");
    let output = steadfast(folder.path(), &["explain", "site"]);
    let expected = r#"site: A web site.

Parameters:
  domain  string, required, pattern [a-z.]+. The name of the site.
  key     secret, optional.
  level   string, required, one of "low", "high".
  port    int, default 80, 1 to 65535.

Exports:
  conf  file[vhost]

Resources:
  pkg[nginx]
  file[vhost]         when params.port > 80
  file[/srv/${item}]  for each of [a, b]

Modules used:
  tls  ../other, when params.port == 443

Use:
modules:
  - use: site
    as: NAME
    with: { domain: TEXT, level: TEXT }
"#;
    assert_eq!(stdout_of(&output), expected, "{output:?}");
    let wrong = module.replace("type: int", "type: integer");
    std::fs::write(folder.path().join("site/module.yaml"), wrong).expect("written");
    let output = steadfast(folder.path(), &["explain", "./site"]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(65), "{shown}");
    assert!(shown.contains("`integer` is no type of a parameter"), "{shown}");
    assert!(shown.contains("site/module.yaml:5:17"), "{shown}");
    let output = steadfast(folder.path(), &["explain", "modules/none"]);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(shown.contains("there is no folder modules/none"), "{shown}");
}

/// Issue 17, point 7: `explain` knows each word that the parser accepts, each filter and test, and each fact.
#[test]
fn each_word_of_the_language_can_be_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts = steadfast::facts::SCHEMA.iter().map(|spec| format!("facts.{}", spec.name));
    let names = |table: &[(&'static str, &str)]| -> Vec<String> {
        table.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    let words = steadfast::config::language_words().into_iter().map(str::to_owned).chain(facts);
    let others = names(steadfast::expressions::TEMPLATE_FILTERS);
    let words = words.chain(others).chain(names(steadfast::expressions::TEMPLATE_TESTS));
    let words: Vec<String> = words.chain(["includes".to_owned(), "os.id".to_owned()]).collect();
    assert!(words.len() > 150, "{words:?}");
    for word in words {
        let output = steadfast(folder.path(), &["explain", &word]);
        assert!(output.status.success() && output.stdout.len() > 15, "{word}: {output:?}");
    }
    for (word, part) in [
        ("pattern", "(a parameter, or an item of a loop): A regular expression"),
        ("optional", "an entry of vars_files"),
        ("required", "False makes the value optional"),
        ("ip_in", "a function"),
        ("defined", "a test of templates"),
        ("default", "(a function): params.x | default(value)"),
        ("mode", "file.mode"),
    ] {
        let output = steadfast(folder.path(), &["explain", word]);
        assert!(stdout_of(&output).contains(part), "{word}: {output:?}");
    }
}

/// Each word of the list can be explained, and the list names the tables once.
#[test]
fn each_listed_topic_can_be_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = stdout_of(&steadfast(folder.path(), &["explain"]));
    let mut names: Vec<&str> = list
        .lines()
        .filter(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"selectors") && names.contains(&"settings"), "{list}");
    for name in &names {
        let output = steadfast(folder.path(), &["explain", name]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{name}: {output:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a topic is listed twice: {list}");
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
