//! The expression modes of fields (rule 3 of the graph language): each field of each kind.

use super::Files;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeSet;
use steadfast::config::{Options, load};
use steadfast_resources::{Claim, FieldMode, FieldSpec, FieldType, KindSet, KindSpec, Receives};

fn fields() -> impl Iterator<Item = (&'static KindSpec, &'static FieldSpec)> {
    let live = |field: &&FieldSpec| !field.later && field.ignored.is_none();
    let kinds: Vec<_> = KindSet::of_this_build().specs().collect();
    kinds
        .into_iter()
        .flat_map(move |spec| spec.fields.iter().filter(live).map(move |field| (spec, field)))
}

/// A text, a list or a map has a mode; a number, a truth value and a word of a list are values unless they say more.
#[test]
fn each_text_has_a_mode() {
    let undecided: Vec<String> = fields()
        .filter(|(_, field)| {
            matches!(field.takes, FieldType::Text | FieldType::Texts | FieldType::TextMap)
        })
        .filter(|(_, field)| field.mode.is_none())
        .map(|(spec, field)| format!("{}.{}", spec.kind, field.name))
        .collect();
    assert!(undecided.is_empty(), "expected a mode: {}", undecided.join(", "));
}

/// A value that must be known at load cannot be received later.
#[test]
fn a_static_field_receives_nothing() {
    let wrong: Vec<String> = fields()
        .filter(|(_, field)| field.mode == Some(FieldMode::Static))
        .filter(|(_, field)| field.receives > Receives::Nothing)
        .map(|(spec, field)| format!("{}.{}", spec.kind, field.name))
        .collect();
    assert!(wrong.is_empty(), "static fields that receive: {}", wrong.join(", "));
}

/// A command is an argument vector: one expression is one argument.
#[test]
fn commands_are_argument_vectors() {
    for (spec, field) in fields() {
        let is_command = ["cmd", "args", "validate"].contains(&field.name)
            || field.name.ends_with("cmd") && spec.kind == "exec";
        if is_command {
            let is_argv = matches!(field.mode, Some(FieldMode::Argv(_)));
            assert!(is_argv, "{}.{}: {:?}", spec.kind, field.name, field.mode);
        }
        let is_shell = field.name.ends_with("shell") && spec.kind == "exec";
        assert!(!is_shell || field.mode == Some(FieldMode::Static), "{}", field.name);
    }
}

/// Returns values of a field that may all be valid.
fn samples(field: &FieldSpec) -> Vec<Value> {
    let read = |text: &str| serde_yaml::from_str(text).unwrap_or_else(|_| Value::from(text));
    let given = field.example.into_iter().chain(field.default).map(read);
    let more: Vec<Value> = match field.takes {
        FieldType::Bool => vec![true.into(), false.into()],
        FieldType::Int | FieldType::Float | FieldType::Seconds => vec![1.into(), 2.into()],
        FieldType::Milliseconds | FieldType::Duration => vec!["1m".into(), "2m".into()],
        FieldType::Choice(words) => words.iter().map(|word| Value::from(*word)).collect(),
        FieldType::Texts => {
            vec![vec![Value::from("one")].into(), vec![Value::from("/two/three")].into()]
        }
        FieldType::TextMap => Vec::new(),
        FieldType::Text | FieldType::Anything => {
            ["one", "two", "/one/two", "/three/four", "10.0.0.1", "1"].map(Value::from).to_vec()
        }
    };
    given.chain(more).collect()
}

/// Returns the claims of a kind's example with this field; `None` if the graph is not valid.
fn claims(spec: &KindSpec, field: &FieldSpec, value: &Value) -> Option<BTreeSet<String>> {
    let example: Mapping = serde_yaml::from_str(spec.example).expect("YAML");
    let mut item = example.get(spec.kind)?.as_sequence()?.first()?.clone();
    let map = item.as_mapping_mut()?;
    let excluded = spec.fields.iter().filter(|it| it.conflicts_with.contains(&field.name));
    for other in excluded.map(|it| it.name).chain(field.conflicts_with.iter().copied()) {
        map.remove(other);
    }
    map.insert(field.name.into(), value.clone());
    let mut resources = Mapping::new();
    resources.insert(spec.kind.into(), Value::Sequence(vec![item]));
    let mut graph = Mapping::new();
    graph.insert("graph".into(), "modes".into());
    graph.insert("resources".into(), Value::Mapping(resources));
    let files = Files::new().with("graph.yaml", serde_yaml::to_string(&graph).expect("written"));
    let loaded = load(&[files.path("graph.yaml")], &Options::new(KindSet::of_this_build())).ok()?;
    let vertex = loaded.vertices.first()?;
    let objects = vertex.resource.footprint().claims;
    Some(
        objects
            .iter()
            .map(|claim: &Claim| format!("{:?} {:?}", claim.object, claim.mode))
            .collect(),
    )
}

/// Fields that change the claims and are no static fields, with the reason.
const VALUES: &[(&str, &str, &str)] = &[
    ("file", "replace", "without it the content is not claimed: a part of the claims"),
    ("group", "members", "may be received; a member is an attribute of the group"),
    ("user", "groups", "may be received; a membership is an attribute of the user"),
    ("swap", "persist", "may be received; the row in /etc/fstab is a part of the swap"),
];

/// A fact alone removes nothing: a state that removes is computed at a load.
#[test]
fn states_that_remove_are_static() {
    for (spec, field) in fields() {
        if let FieldType::Choice(words) = field.takes
            && words.contains(&"absent")
        {
            assert_eq!(field.mode, Some(FieldMode::Static), "{}.{}", spec.kind, field.name);
        }
    }
}

/// Claims must be known at load, so every field that changes them is static.
#[test]
fn fields_that_change_the_claims_are_static() {
    let mut wrong = Vec::new();
    for (spec, field) in fields().filter(|(_, field)| field.mode != Some(FieldMode::Static)) {
        let found: BTreeSet<BTreeSet<String>> =
            samples(field).iter().filter_map(|value| claims(spec, field, value)).collect();
        let has_reason =
            VALUES.iter().any(|(kind, name, _)| *kind == spec.kind && *name == field.name);
        assert!(!has_reason || found.len() > 1, "{}.{} needs no reason", spec.kind, field.name);
        if found.len() > 1 && !has_reason {
            wrong.push(format!("{}.{}: {found:?}", spec.kind, field.name));
        }
    }
    assert!(wrong.is_empty(), "expected static fields:\n{}", wrong.join("\n"));
}

/// The fields with values that no other resource can send, and the reasons.
const NOT_RECEIVED: &[(&str, &str, &str)] = &[
    ("block", "marker", "the markers identify the block"),
    ("exec", "always", "the engine must know at the load when the command runs"),
    ("exec", "changed_when", "the output is judged as the graph says"),
    ("exec", "cmd", "values are never inserted into the text of a command"),
    ("exec", "creates", "watches are made at the load"),
    ("exec", "donecmd", "values are never inserted into the text of a command"),
    ("exec", "donecwd", "the command of the end is declared as a whole"),
    ("exec", "ifcmd", "values are never inserted into the text of a command"),
    ("exec", "ifcwd", "the guard is checked before values arrive"),
    ("exec", "mtimes", "watches are made at the load"),
    ("exec", "nifcmd", "values are never inserted into the text of a command"),
    ("exec", "nifcwd", "the guard is checked before values arrive"),
    ("exec", "on_interrupt", "the engine must know the answer before the next start"),
    ("exec", "refresh_only", "the engine must know at the load when the command runs"),
    ("exec", "watchcmd", "values are never inserted into the text of a command"),
    ("exec", "watchcwd", "watches are made at the load"),
    ("exec", "watchfiles", "watches are made at the load"),
    ("export", "identity", "the identity of the exported resource"),
    ("export", "record", "the expansion of the graph writes the record"),
    ("file", "backup", "the edge to the directory of backups is made at the load"),
    ("file", "fragments", "the edges to the fragments are made at the load"),
    ("file", "source", "the edge to the source is made at the load"),
    ("kv", "mapped", "the form of the value in the world is that of the key"),
    ("kv", "skipcmpstyle", "a word of mgmt for one comparison"),
    ("kv", "skiplessthan", "a word of mgmt for one comparison"),
    ("password", "saved", "the policy for a secret is declared in the graph"),
    ("probe", "builtin", "watches are made at the load"),
    ("probe", "poll", "watches are made at the load"),
    ("probe", "type", "the expressions that use the answer are checked at the load"),
    ("probe", "value", "the expressions that use the answer are checked at the load"),
    ("sysctl", "module", "the edge to the module is made at the load"),
    ("timer", "interval", "watches are made at the load"),
];

/// Each field that is a value and no part of the identity receives, or has a reason.
#[test]
fn each_value_is_received_or_has_a_reason() {
    let mut wrong = Vec::new();
    for (spec, field) in fields().filter(|(_, field)| field.mode != Some(FieldMode::Static)) {
        let has_reason = NOT_RECEIVED.iter().any(|(kind, name, reason)| {
            *kind == spec.kind && *name == field.name && !reason.is_empty()
        });
        if (field.receives > Receives::Nothing) == has_reason {
            wrong.push(format!("{}.{}", spec.kind, field.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "expected either `.receives(…)` or a reason in NOT_RECEIVED: {}",
        wrong.join(", ")
    );
}

/// Rule 3 and S-18: a command that is taken from `name` has no expressions, also not through a loop.
#[test]
fn a_command_from_the_name_has_no_expressions() {
    use crate::language::{Tree, accepted, with_facts};
    let graph = |execs: &str| {
        format!(
            "graph: g\nvars: {{x: \"a; rm -rf /\", all: [a, b], none: \"\"}}\nresources:\n  exec:\n{execs}"
        )
    };
    let of_name = "a command that is taken from `name` has no expressions";
    let of_item = "the item would be the command: exec in a loop needs `cmd` or `args`";
    for (execs, message) in [
        ("  - {name: \"echo ${vars.x}\", shell: /bin/sh}\n", of_name),
        ("  - {name: \"echo ${vars.x}\"}\n", of_name),
        ("  - \"echo ${vars.x}\"\n", of_name),
        ("  - {for_each: vars.all, name: \"echo ${item}\", shell: /bin/sh}\n", of_name),
        ("  - {for_each: vars.all, shell: /bin/sh}\n", of_item),
        ("  - {for_each: vars.all, cmd: '', args: []}\n", of_item),
        ("  - {name: a, cmd: \"${vars.none}\"}\n", "the command of `cmd` would be empty"),
    ] {
        let problems = Tree::new(&[("web.yaml", &graph(execs))]).problems(&with_facts());
        assert!(problems.contains(message), "{execs}: {problems}");
    }
    for execs in [
        "  - {name: \"say-${vars.all | join(\\\",\\\")}\", cmd: /bin/true}\n",
        "  - {for_each: vars.all, args: [/bin/echo, \"${item}\"]}\n",
        "  - {name: \"echo $${HOME}\", shell: /bin/sh, when: vars.x != \"\"}\n",
        "  - \"echo $${HOME}\"\n",
    ] {
        accepted(&[("web.yaml", &graph(execs))]);
    }
}
