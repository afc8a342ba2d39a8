//! Received values, checked at load, with the kinds of this build.

use crate::Files;
use steadfast::config::{self, LoadedGraph, Rejected};

fn load(text: &str) -> Result<LoadedGraph, Rejected> {
    let files = Files::new().with("graph.yaml", text);
    config::load(&[files.path("graph.yaml")], &crate::options())
}

#[track_caller]
fn refused(resources: &str, words: &[&str]) {
    let text = format!("graph: g\nresources:\n{resources}");
    let said = match load(&text) {
        Ok(_) => panic!("it loads:\n{text}"),
        Err(rejected) => rejected.to_string(),
    };
    for words in words {
        assert!(said.contains(words), "`{words}` should be said:\n{said}");
    }
}

const SENDERS: &str = "  exec:\n  - {name: a, cmd: 'true'}\n  password:\n  - {name: p}\n  value:\n  - {name: v, int: 1, texts: [x]}\n";

/// All wrong receivers are reported at once, each with code, place and remedy.
#[test]
fn wrong_receivers_are_rejected_at_once() {
    let receivers = [
        ("recv: {contents: 'exec[a].output'}", "the kind has no field `contents` [C405]"),
        ("recv: {path: 'exec[a].output'}", "`path` cannot be received [C405]"),
        ("recv: {content: 'exec[b].output'}", "the graph has no resource `exec[b]` [C401]"),
        ("recv: {content: 'exec[a].outputs'}", "`exec[a]` sends no `outputs` [C405]"),
        ("recv: {content: 'value[v].text'}", "`value[v]` sends no `text` [C405]"),
        (
            "recv: {content: 'value[v].texts'}",
            "`content` should be a string, but `value[v].texts` is",
        ),
        ("recv: {content: 'output'}", "should be kind[name].key, found `output` [C405]"),
        ("content: x, recv: {content: 'exec[a].output'}", "`content` is given twice [C405]"),
        ("recv: {content.x: 'exec[a].output'}", "`content` has no parts [C405]"),
        ("recv: {content: {from: 'exec[a]'}}", "should be `from` and `key`, or `template` and"),
        (
            "recv: {content: {template: '${x}', values: {x: 'exec[a].exit', s: {secret: t}}}}",
            "`recv` takes no template for `content`: write `template` and `values` beside it [C405]",
        ),
        (
            "recv: {content: {template: '${x}', values: {x: 'exec[a].exit', s: {secret: t}}}}",
            "write: template: {text: \"… {{ x }} … {{ s }} …\"}, values: {x: \"exec[a].exit\", s: {secret: NAME}}",
        ),
        ("content: {secret: s}", "the secret that `content` names is not declared [C406]"),
        ("path: {secret: s}", "`path` cannot be received [C405]"),
    ];
    let files = receivers.iter().zip(0..).fold(String::new(), |text, ((fields, _), n)| {
        text + &format!("  - {{name: /f{n}, {fields}}}\n")
    });
    let words: Vec<&str> = receivers.iter().map(|(_, words)| *words).collect();
    refused(&format!("{SENDERS}  file:\n{files}"), &words);
    refused(
        "  exec:\n  - {name: a, cmd: id}\n  - {name: b, cmd: id, recv: {stdin: {template: '${x}', values: {y: 'exec[a].exit'}}}}\n  - {name: c, cmd: id, recv: {stdin: {template: x, values: {y: 'exec[a].exit'}}}}\n",
        &["`${x}` is not one of the values [C405]", "does not use the value `y`"],
    );
    refused(
        &format!("{SENDERS}  msg:\n  - {{name: m, recv: {{body: 'password[p].password'}}}}\n"),
        &["`body` accepts no secret, but `password[p].password` is a secret [C405]"],
    );
}

/// B4: a text in place of a list of arguments is rejected: it would be the name of a program with spaces.
#[test]
fn a_text_is_no_list_of_arguments() {
    let file = "  file:\n  - {name: /f, content: x}\n";
    refused(
        &format!("{file}  exec:\n  - {{name: a, args: touch /tmp/x}}\n"),
        &[
            "`args` of exec[a] should be a list, found a string [C",
            "hint: write each word as a list item: `args: [touch, /tmp/x]`",
        ],
    );
    refused(
        &format!("{file}  exec:\n  - {{name: a, args: \"echo 'a b', c\"}}\n"),
        &["hint: write each word as a list item: `args: [touch, /tmp/x]`"],
    );
}

/// S-18: a value inside the text of a command is a load error.
#[test]
fn values_never_go_into_the_text_of_a_command() {
    for field in ["cmd", "ifcmd", "nifcmd", "donecmd", "watchcmd", "shell", "changed_when"] {
        refused(
            &format!(
                "  exec:\n  - {{name: a, cmd: id}}\n  - {{name: b, args: [x], recv: {{{field}: 'exec[a].output'}}}}\n"
            ),
            &[
                &format!("`{field}` cannot be received [C405]"),
                "values are never inserted into the text of a command; fields that can receive: args, cwd, env, ",
            ],
        );
    }
    // A secret argument would be visible to every user.
    refused(
        "  password:\n  - {name: p}\n  exec:\n  - {name: b, args: [x], recv: {args.1: 'password[p].password'}}\n",
        &["`args` accepts no secret"],
    );
    refused(
        "  exec:\n  - {name: a, cmd: id}\n  - {name: b, args: [x], recv: {args.2: 'exec[a].exit', env.A: 'exec[a].exit', env: 'exec[a].exit'}}\n",
        &[
            "index out of range: `args.2` follows 1 elements",
            "`env` is a map: expected one entry of the map",
        ],
    );
}

/// A template is rejected, with its place, for a field that takes no text.
#[test]
fn a_template_is_refused_where_no_text_is_taken() {
    let template = "{template: 'x${a}', values: {a: 'exec[a].exit'}}";
    refused(
        &format!(
            "  exec:\n  - {{name: a, cmd: id}}\n  - {{name: b, cmd: id, recv: {{args: {template}}}}}\n"
        ),
        &[
            "exec[b]: `args` is a list, but a template produces a string [C405]",
            "graph.yaml:5:37",
            "use a field or part of type string, such as args.0",
        ],
    );
    for (field, sort) in [
        ("int", "an integer"),
        ("float", "a number"),
        ("bool", "true or false"),
        ("texts", "a list"),
    ] {
        refused(
            &format!(
                "  exec:\n  - {{name: a, cmd: id}}\n  test:\n  - {{name: t, recv: {{{field}: {template}}}}}\n"
            ),
            &[&format!("test[t]: `{field}` is {sort}, but a template produces a string [C405]")],
        );
    }
    // Fields and parts of type text accept a template.
    for (kind, field) in [
        ("exec", "args.0"),
        ("exec", "env.K"),
        ("exec", "stdin"),
        ("test", "text"),
        ("test", "map.k"),
    ] {
        let graph = format!(
            "graph: g\nresources:\n  value:\n  - {{name: v, int: 1}}\n  {kind}:\n  - {{name: b, recv: {{{field}: {{template: 'x${{a}}', values: {{a: 'value[v].int'}}}}}}}}\n"
        );
        assert!(load(&graph).is_ok(), "{kind} {field}");
    }
    // A template that consists of one value is that value.
    let alone = "graph: g\nresources:\n  exec:\n  - {name: a, cmd: id}\n  test:\n  - {name: t, recv: {int: {template: '${a}', values: {a: 'exec[a].exit'}}}}\n";
    assert!(load(alone).is_ok());
}

/// A receiver runs after its sender; an impossible order is reported as a cycle with all its edges.
#[test]
fn the_edge_is_added_or_its_cycle_told() {
    let graph = "graph: g\nresources:\n  exec:\n  - {name: b, args: [x], recv: {env.A: 'exec[a].exit'}}\n  - {name: a, cmd: id}\n";
    let loaded = load(graph).unwrap();
    assert_eq!(loaded.edges.len(), 1);
    assert_eq!((loaded.edges[0].from, loaded.edges[0].to), (1, 0));
    assert!(!loaded.edges[0].notify);
    refused(
        "  exec:\n  - {name: b, args: [x], before: 'noop[n]', recv: {env.A: 'exec[a].exit'}}\n  - {name: a, cmd: id, after: 'noop[n]'}\n  noop:\n  - {name: n}\n",
        &["dependency cycle of 3 resources", "exec[b] → noop[n] → exec[a] → exec[b]", "[C404]"],
    );
    refused(
        "  exec:\n  - {name: a, args: [x], recv: {env.A: 'exec[a].exit'}}\n",
        &["`exec[a]` would wait for itself"],
    );
}

#[test]
fn secrets_are_declared_once_and_rightly() {
    let said = |secrets: &str| {
        load(&format!("graph: g\nsecrets: {secrets}\nresources: {{}}\n")).map_err(|r| r.to_string())
    };
    for good in ["{a: {file: x}, b: {credential: y}, c: {command: pass show c}}", "{}", "~"] {
        assert!(said(good).is_ok(), "{good}");
    }
    for (wrong, words) in [
        ("{a: {}}", "the secret `a` should have one of credential, file, command [C406]"),
        ("{a: {file: x, command: y}}", "should have one of"),
        ("{a: {credential: ../x}}", "`../x` is not the name of a credential [C406]"),
        ("{a: {files: x}}", "did you mean `file`?"),
        ("{a: x}", "should be a map with credential, file or command"),
        ("{a: {command: [[x]]}}", "should have one of"),
    ] {
        let said = said(wrong).unwrap_err();
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// The sender and its field are part of the receiver's definition.
#[test]
fn another_sender_is_another_definition() {
    let graph = |recv: &str| {
        let loaded = load(&format!(
            "graph: g\nresources:\n  exec:\n  - {{name: a, cmd: id}}\n  file:\n  - {{name: /f, recv: {{content: {recv}}}}}\n"
        ));
        loaded.unwrap().vertices[1].definition
    };
    let first = graph("'exec[a].output'");
    assert_eq!(first, graph("{from: 'exec[a]', key: output}"));
    assert_ne!(first, graph("'exec[a].stdout'"));
}

/// An environment variable can be named `secret`.
#[test]
fn in_a_map_secret_is_a_key_like_any_other() {
    let loaded = load("graph: g\nresources:\n  exec:\n  - {name: a, cmd: id, env: {secret: x}}\n");
    assert!(loaded.unwrap().vertices[0].recipe.is_none());
}

/// The hash of a private file would tell its content.
#[test]
fn the_hash_of_a_private_file_is_not_sent() {
    let resources = r#"  file:
  - {name: source, path: /source, content: hello, mode: "0600", sensitive: true}
  - {name: told, path: /told, recv: {content: "file[source].hash"}}
"#;
    refused(resources, &["`file[source]` sends no `hash`", "the kind sends size, owner"]);
}

/// A value and a value below it have one writer.
#[test]
fn a_parent_key_and_its_child_key_conflict() {
    let of = |one: &str, two: &str| {
        format!(
            "  json:\n  - {{name: a, path: /x, key: {one}, value: 1}}\n  - {{name: b, path: /x, key: {two}, value: 2}}\n"
        )
    };
    for (one, two) in [("a", "a.b"), ("a.b.c", "a"), ("a.0", "a.0.b")] {
        refused(&of(one, two), &["is claimed twice", "json[a]", "json[b]"]);
    }
    let text = format!("graph: g\nresources:\n{}", of("a.b", "a.c"));
    assert!(load(&text).is_ok());
}

/// A value of a data file may be a list or a map, and means the same as its JSON.
#[test]
fn a_value_may_be_a_list_or_a_map() {
    let definition = |value: &str| {
        let text = format!(
            "graph: g\nresources:\n  yaml:\n  - {{name: a, path: /x, key: k, value: {value}}}\n"
        );
        load(&text).unwrap_or_else(|rejected| panic!("{value}: {rejected}")).vertices[0].definition
    };
    let native = definition("{b: [1, true, null, 1.5, yes it is, \"2\"], a: x}");
    let json = definition(r#"'{"a":"x","b":[1,true,null,1.5,"yes it is","2"]}'"#);
    assert_eq!(native, json);
    assert_ne!(native, definition("{b: []}"));
}

/// A duration without a unit is a warning, where the field is no field of mgmt.
#[test]
fn a_duration_without_a_unit_is_a_warning() {
    let warnings = |line: &str| {
        let text = format!("graph: g\nresources:\n{line}\n");
        let loaded = load(&text).unwrap_or_else(|rejected| panic!("{line}: {rejected}"));
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let said = warnings("  pkg:\n  - {name: apt, cache_age: 60}\n  - {name: dpkg, cache_age: 70}");
    assert!(said.contains("`cache_age` has no unit") && said.contains("write 60s"), "{said}");
    assert_eq!(warnings("  pkg:\n  - {name: apt, cache_age: 60s}"), "");
    let with = |meta: &str| warnings(&format!("  noop:\n  - {{name: a, meta: {{{meta}}}}}"));
    for (meta, field, unit) in
        [("timeout: 500", "timeout", "500ms"), ("delay_max: 700", "delay_max", "700ms")]
    {
        let said = with(meta);
        assert!(said.contains(&format!("`{field}` has no unit")) && said.contains(unit), "{said}");
    }
    let probe = "  probe:\n  - {name: a, args: [/bin/true], poll: 60}";
    assert!(warnings(probe).contains("`poll` has no unit"), "{}", warnings(probe));
    assert_eq!(with("timeout: 500ms, delay_max: 7s, delay: 100, poll: 60"), "");
    assert_eq!(with("timeout: 0, poll: -1"), "");
    assert_eq!(warnings("  timer:\n  - {name: a, interval: 60}"), "");
    assert_eq!(warnings("  exec:\n  - {name: a, args: [/bin/true], timeout: 60}"), "");
}

/// A package comes before its unit, and before files at its usual places.
#[test]
fn a_package_comes_before_its_files_and_units() {
    let text = "graph: g\nresources:\n  pkg:\n  - {name: steadfast-none}\n  svc:\n  - {name: steadfast-none, state: running}\n  \
        file:\n  - {name: /etc/steadfast-none/a.conf, content: x}\n  - {name: /etc/steadfast-nonesuch, content: x}\n  \
        line:\n  - {name: /etc/default/steadfast-none, line: a}\n";
    let loaded = load(text).unwrap_or_else(|rejected| panic!("{rejected}"));
    let name = |vertex: usize| loaded.vertices[vertex].identity.to_string();
    let mut after: Vec<String> = loaded
        .edges
        .iter()
        .filter(|edge| name(edge.from) == "pkg[steadfast-none]")
        .map(|edge| name(edge.to))
        .collect();
    after.sort();
    assert_eq!(
        after,
        [
            "file[/etc/steadfast-none/a.conf]",
            "line[/etc/default/steadfast-none]",
            "svc[steadfast-none]"
        ]
    );
}
