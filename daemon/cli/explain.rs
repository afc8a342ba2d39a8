//! `steadfast explain`: a code, a kind, or the metaparameters, from the tables that also check a graph.

use super::args::Explain;
use super::exit::Exit;
use super::output::{error, print};
use crate::config::{Code, metaparams, recorders, settings};
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
        print("Metaparams: below `meta` of any resource.\n");
        fields(metaparams());
    } else if topic == "settings" {
        print(
            "Settings of a host, in /etc/steadfast/steadfast.yaml; besides, `defaults`: metaparams for all.\n",
        );
        fields(settings());
        print(
            "\nAnd `recorders`, who are told each event that is recorded; a list, each of one sort:",
        );
        for (sort, of_sort) in recorders() {
            print(format!("\n  - {sort}:"));
            fields(of_sort);
        }
    } else {
        let known = topics().collect::<Vec<_>>().join(", ");
        error(format!("nothing is known of `{}`", super::output::plain(topic)), Some(&known));
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
        "  meta     The metaparams that every resource takes.\n  settings  The settings of a host.\n\nProblems of a graph:",
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
        print("\nIt sends (`recv: {FIELD: \"kind[name].KEY\"}` elsewhere):");
        let width = spec.sends.iter().map(|send| send.key.len()).max().unwrap_or_default();
        for send in spec.sends {
            print(format!("  {:width$}  {}. {}", send.key, takes(send.gives), send.doc));
        }
    }
    let received = spec.fields.iter().filter(|field| field.receives > Receives::Nothing);
    let received: Vec<&str> = received.map(|field| field.name).collect();
    if !received.is_empty() {
        print(format!("\nThese can be received: {}.", received.join(", ")));
        let secret = spec.fields.iter().filter(|field| field.receives >= Receives::Secrets);
        let secret: Vec<&str> = secret.map(|field| field.name).collect();
        if !secret.is_empty() {
            print(format!("These can be {{secret: NAME}} too: {}.", secret.join(", ")));
        }
    }
    print(
        "\nBesides: name, aliases, meta, recv, and the short edges after, before, notify, subscribe.",
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
            print(format!("  {name:width$}  {}. {}", takes(field.takes), field.doc));
        }
    }
}

const fn takes(takes: FieldType) -> &'static str {
    match takes {
        FieldType::Text => "Text",
        FieldType::Bool => "true or false",
        FieldType::Int => "Whole number",
        FieldType::Float => "Number",
        FieldType::Texts => "List of texts",
        FieldType::TextMap => "Map of texts",
        FieldType::Anything => "Anything",
    }
}
