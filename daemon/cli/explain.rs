//! `steadfast explain`: a code, a kind, or the metaparameters, from the tables that also check a graph.

use super::args::Explain;
use super::exit::Exit;
use super::output::{error, print};
use crate::config::{Code, metaparams, recorders, settings};
use std::borrow::Cow;
use steadfast_resources::{FieldSpec, FieldType, KindSpec, Receives, registry};

/// Explains a topic; lists all topics if none is given.
pub(super) fn explain(args: &Explain) -> Exit {
    let Some(topic) = &args.topic else {
        return list();
    };
    if let Some(code) = Code::ALL.iter().find(|code| code.id().eq_ignore_ascii_case(topic)) {
        print(code.explained());
    } else if let Some(spec) = registry::find(topic) {
        kind(spec);
    } else if topic == "meta" {
        print("Metaparams, set below `meta` of a resource.\n");
        fields(metaparams());
    } else if topic == "settings" {
        print(
            "Settings of a host, in /etc/steadfast/steadfast.yaml; `defaults` sets metaparams for all resources.\n",
        );
        fields(settings());
        print("\n`recorders` receive every recorded event; a list of entries of these types:");
        for (sort, of_sort) in recorders() {
            print(format!("\n  - {sort}:"));
            fields(of_sort);
        }
    } else {
        let known = topics().collect::<Vec<_>>().join(", ");
        error(format!("unknown topic `{}`", super::output::plain(topic)), Some(&known));
        return Exit::Usage;
    }
    Exit::Well
}

/// Returns all topics.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    let kinds = registry::specs().iter().map(|spec| spec.kind);
    kinds.chain(["meta", "settings"]).chain(Code::ALL.iter().map(|code| code.id()))
}

fn list() -> Exit {
    print("Kinds:");
    for spec in registry::specs() {
        print(format!("  {:8} {}", spec.kind, spec.doc));
    }
    print(
        "  meta     The metaparams of every resource.\n  settings  The settings of a host.\n\nProblems of a graph:",
    );
    for code in Code::ALL {
        print(format!("  {:8} {}", code.id(), code.about()));
    }
    Exit::Well
}

fn kind(spec: &KindSpec) {
    print(format!("{}: {}\n", spec.kind, spec.doc));
    fields(spec.fields);
    if !spec.sends.is_empty() {
        print("\nSent values (receive them with `recv: {FIELD: \"kind[name].KEY\"}`):");
        let width = spec.sends.iter().map(|send| send.key.len()).max().unwrap_or_default();
        for send in spec.sends {
            print(format!("  {:width$}  {}. {}", send.key, takes(send.gives), send.doc));
        }
    }
    let received = spec.fields.iter().filter(|field| field.receives > Receives::Nothing);
    let received: Vec<&str> = received.map(|field| field.name).collect();
    if !received.is_empty() {
        print(format!("\nFields that accept a received value: {}.", received.join(", ")));
        let secret = spec.fields.iter().filter(|field| field.receives >= Receives::Secrets);
        let secret: Vec<&str> = secret.map(|field| field.name).collect();
        if !secret.is_empty() {
            print(format!("Fields that also accept {{secret: NAME}}: {}.", secret.join(", ")));
        }
    }
    if !spec.example.is_empty() {
        print(format!("\nExample:\n{}", spec.example.trim_end()));
    }
    print(
        "\nEvery kind also accepts: name, aliases, meta, recv and the short edges after, before, notify, subscribe.",
    );
}

fn fields(fields: &[FieldSpec]) {
    let width = fields.iter().map(|field| field.name.len()).max().unwrap_or_default();
    for field in fields {
        let name = field.name;
        if field.later {
            print(format!("  {name:width$}  not in this build: {}", field.doc));
        } else if field.ignored.is_some() {
            print(format!("  {name:width$}  has no effect: {}", field.doc));
        } else {
            print(format!(
                "  {name:width$}  {}. {}{}",
                takes(field.takes),
                field.doc,
                more_of(field)
            ));
        }
    }
}

fn takes(takes: FieldType) -> Cow<'static, str> {
    let text = match takes {
        FieldType::Choice(words) => return format!("One of: {}", words.join(", ")).into(),
        FieldType::Seconds => "Seconds, or a duration such as 90s, 5m or 2h",
        FieldType::Milliseconds => "Milliseconds, or a duration such as 500ms or 5m",
        FieldType::Duration => "Duration, such as 500ms, 90s, 5m or 2h",
        FieldType::Text => "String",
        FieldType::Bool => "true or false",
        FieldType::Int => "Integer",
        FieldType::Float => "Number",
        FieldType::Texts => "List of strings",
        FieldType::TextMap => "Map of strings",
        FieldType::Anything => "Any value",
    };
    text.into()
}

/// Returns the rest of a field's row: required, the default, conflicts and an example.
fn more_of(field: &FieldSpec) -> String {
    let mut text = String::new();
    if field.required {
        text.push_str(" Required.");
    }
    if let Some(default) = field.default {
        text.push_str(&format!(" Default: {default}."));
    }
    if !field.conflicts_with.is_empty() {
        text.push_str(&format!(" Excludes: {}.", field.conflicts_with.join(", ")));
    }
    if let Some(example) = field.example {
        text.push_str(&format!(" Example: {example}"));
    }
    text
}
