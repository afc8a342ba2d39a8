//! `steadfast explain`: codes, kinds, topics and modules, from the tables and declarations that also check a graph.
//!
//! Reading order: this file (the lookup, kinds and fields), `topics`, `words` (keys and functions), `field_keys`
//! (`meta.limit` and the like), `module` (the page of a module).

mod field_keys;
mod module;
mod topics;
mod words;

use super::args::Explain;
use super::exit::Exit;
use super::output::{error, print};
use crate::api::{EventKind, api_schema};
use crate::config::{self, Code, LINTS, metaparams, recorders, settings, world_settings};
use crate::nearest_name::hint_with_pointer;
use field_keys::{explain_field_key, template_topic};
use std::borrow::Cow;
use steadfast_resources::{FieldSpec, FieldType, KindSet, KindSpec, Receives};
use topics::{Content, Topic, all_topics, find_topic, other_words, section_text};

/// Explains a topic or a module; lists all topics if none is given.
pub(super) fn explain(args: &Explain) -> Exit {
    let Some(topic) = &args.topic else {
        return list();
    };
    if let Some(code) = Code::ALL.iter().find(|code| code.id().eq_ignore_ascii_case(topic)) {
        print(code.explained());
    } else if let Some(spec) = KindSet::of_this_build().find(topic) {
        kind(spec);
    } else if let Some((spec, field)) = field_of(topic) {
        print(format!(
            "{}.{}: {}. {}{}",
            spec.kind,
            field.name,
            takes(field.takes),
            field.doc,
            more_of(field)
        ));
        print(receives(field));
    } else if let Some(found) = find_topic(topic).or_else(|| template_topic(topic)) {
        print_topic(&found);
    } else if let Some(lines) = explain_field_key(topic) {
        print(lines.join("\n"));
    } else if let Some(lines) = super::facts::explain_facts(topic) {
        print(lines.join("\n"));
    } else if let Some(lines) = explain_any_word(topic) {
        print(lines.join("\n"));
    } else if let Some(lines) = super::facts::explain_facts(&format!("facts.{topic}")) {
        print(lines.join("\n"));
    } else if module::is_folder(topic) {
        return module::explain_module(topic);
    } else {
        error(
            format!("unknown topic `{}`", super::output::plain(topic)),
            Some(&similar_topics(topic)),
        );
        return Exit::Usage;
    }
    Exit::Well
}

/// Returns the lines of a word of the language, after those of the word in other tools.
fn explain_any_word(word: &str) -> Option<Vec<String>> {
    // `KIND.WORD` of a kind here is no name of another tool.
    let is_own =
        word.split_once('.').is_some_and(|(kind, _)| KindSet::of_this_build().find(kind).is_some());
    let mut lines = if is_own { Vec::new() } else { config::lines_for_foreign_word(word) };
    lines.extend(words::explain_word(word).unwrap_or_default());
    (!lines.is_empty()).then_some(lines)
}

/// Returns the names of all topics.
pub(super) fn topic_names() -> impl Iterator<Item = &'static str> {
    let kinds: Vec<_> = KindSet::of_this_build().names().collect();
    let topics = all_topics().map(|topic| topic.name);
    let topics = topics.chain(other_words()).chain(words::word_names());
    kinds.into_iter().chain(topics).chain(Code::ALL.iter().map(|code| code.id()))
}

fn list() -> Exit {
    print("Kinds:");
    for spec in KindSet::of_this_build().specs() {
        print(format!("  {:8} {}", spec.kind, spec.doc));
    }
    let is_word = |topic: &Topic| matches!(topic.content, Content::Section(_));
    let (words, tables): (Vec<Topic>, Vec<Topic>) = all_topics().partition(is_word);
    for (title, topics) in [("\nThe graph language:", words), ("\nTables:", tables)] {
        print(title);
        for topic in topics {
            print(format!("  {:11} {}", topic.name, topic.about));
        }
    }
    print("\nProblems of a graph:");
    for code in Code::ALL {
        print(format!("  {:8} {}", code.id(), code.about()));
    }
    Exit::Well
}

/// Returns the hint for an unknown topic: the fields of the kind for `KIND.FIELD`, else the similar topics.
fn similar_topics(topic: &str) -> String {
    let pointer = ("topics", "steadfast explain");
    let Some((spec, field)) = topic
        .split_once('.')
        .and_then(|(kind, field)| Some((KindSet::of_this_build().find(kind)?, field)))
    else {
        return hint_with_pointer(topic, &topic_names().collect::<Vec<_>>(), pointer);
    };
    let known: Vec<&str> = spec.fields.iter().map(|field| field.name).collect();
    let command = format!("steadfast explain {}", spec.kind);
    hint_with_pointer(field, &known, ("fields", &command))
}

/// Returns the field that `KIND.FIELD` names.
fn field_of(topic: &str) -> Option<(&'static KindSpec, &'static FieldSpec)> {
    let (kind, name) = topic.split_once('.')?;
    let spec = KindSet::of_this_build().find(kind)?;
    Some((spec, spec.fields.iter().find(|field| field.name == name)?))
}

/// Describes the values that a field can receive.
fn receives(field: &FieldSpec) -> &'static str {
    match field.receives {
        Receives::Nothing => "The field accepts no received value.",
        received if received >= Receives::Secrets => {
            "The field accepts a received value (`recv`) and {secret: NAME}."
        }
        _ => "The field accepts a received value (`recv`).",
    }
}

/// Prints a topic.
fn print_topic(topic: &Topic) {
    match topic.content {
        Content::Section(text) => print(section_text(topic.name, text)),
        Content::Facts => {
            print(super::facts::explain_facts(topic.name).unwrap_or_default().join("\n"));
        }
        Content::Lint => {
            print(
                "Advice of `steadfast check --lint`. `# lint: allow NAME: REASON` silences it in place.\n",
            );
            for (name, about) in LINTS {
                print(format!("  {name:23} {about}"));
            }
        }
        Content::Metaparams => {
            print("Metaparams, set below `meta` of a resource.\n");
            fields(metaparams());
        }
        Content::Settings => {
            print(
                "Settings of a host, in /etc/steadfast/steadfast.yaml; `defaults` sets metaparams for all resources.\n",
            );
            fields(settings());
            print("\n`recorders` receive every recorded event; a list of entries of these types:");
            for (sort, of_sort) in recorders() {
                print(format!("\n  - {sort}:"));
                fields(of_sort);
            }
            print(
                "\n`world` is the store that hosts share; by default a database in the state directory:",
            );
            fields(world_settings());
        }
        Content::Events => events(),
        Content::Api => print(serde_json::to_string_pretty(&api_schema()).unwrap_or_default()),
    }
}

/// Prints the names of all events.
fn events() {
    print(
        "Events, each with its levels and its meaning; `steadfast explain api` describes the data.\n",
    );
    for (name, levels, meaning) in EventKind::TABLE {
        print(format!("  {name:21}{levels}:{meaning}"));
    }
}

fn kind(spec: &KindSpec) {
    print(format!("{}: {}\n", spec.kind, spec.doc));
    fields(spec.fields);
    if let Some(field) = spec.template_field() {
        let name = field.name;
        let keys = "`template`, `with` and `values` make the";
        print(format!("\n{keys} {name}: `steadfast explain template`."));
    }
    print(match config::refresh_action(spec.kind) {
        Some(action) => format!("\nA refresh (`notify`) {action}."),
        None => "\nA refresh (`notify`) has no effect.".to_owned(),
    });
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
    let takes_template =
        |field: &FieldSpec| field.name == "content" && field.takes == FieldType::Text;
    if spec.fields.iter().any(takes_template) {
        print(
            "\n`template`, `with` and `values` fill `content` from a template: `steadfast explain template`.",
        );
    }
    print(
        "\nEvery kind also accepts: name, when, for_each, labels, aliases, meta, recv and the short edges after, before, notify, subscribe.",
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
    if let Some((least, most)) = field.range {
        text.push_str(&format!(" From {least} to {most}."));
    }
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
        // An example of several lines stands in one, as a quoted scalar of YAML.
        let example = match example.trim_end() {
            several if several.contains('\n') => format!("{several:?}"),
            single => single.to_owned(),
        };
        text.push_str(&format!(" Example: {example}"));
    }
    text
}
