//! The topics of `explain` besides kinds, fields and problem codes: the sections of docs/language.md, and the tables of
//! the program.

use crate::expressions::all_functions;

/// The page with the words of the graph language.
const LANGUAGE: &str = include_str!("../../../docs/language.md");

/// A topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// The name.
    pub(super) name: &'static str,
    /// One line for the list.
    pub(super) about: &'static str,
    /// The content.
    pub(super) content: Content,
}

/// The content of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A section of the page about the language.
    Section(&'static str),
    /// The table of metaparams.
    Metaparams,
    /// The tables of settings and recorders.
    Settings,
    /// The table of events.
    Events,
    /// The JSON Schema of the interface.
    Api,
    /// The table of facts.
    Facts,
    /// The table of advice.
    Lint,
}

/// The topics that are tables of the program.
const TABLES: [Topic; 6] = [
    table("facts", "The facts of a host; also `facts.NAME`.", Content::Facts),
    table("lint", "The advice of `check --lint`.", Content::Lint),
    table("meta", "The metaparams of every resource.", Content::Metaparams),
    table("settings", "The settings of a host.", Content::Settings),
    table("events", "The names of all events.", Content::Events),
    table("api", "The JSON Schema of requests, replies and events.", Content::Api),
];

const fn table(name: &'static str, about: &'static str, content: Content) -> Topic {
    Topic { name, about, content }
}

/// Returns all topics: the words of the language in the order of the page, then the tables.
pub(super) fn all_topics() -> impl Iterator<Item = Topic> {
    let sections = LANGUAGE.split("\n## ").skip(1).filter_map(|section| {
        let (name, text) = section.split_once('\n')?;
        let text = text.trim();
        let about = text.lines().next().unwrap_or_default();
        Some(Topic { name, about, content: Content::Section(text) })
    });
    sections.chain(TABLES)
}

/// Words of the language without a section of their own, each with its section.
const WORDS: [(&str, &str); 25] = [
    ("with", "template"),
    ("values", "template"),
    ("use", "modules"),
    ("as", "modules"),
    ("module", "modules"),
    ("item", "for_each"),
    ("key", "for_each"),
    ("after", "edges"),
    ("before", "edges"),
    ("notify", "edges"),
    ("subscribe", "edges"),
    ("probe.NAME", "expressions"),
    ("includes", "include"),
    ("param", "params"),
    ("var", "vars"),
    ("label", "labels"),
    ("filters", "expressions"),
    ("functions", "expressions"),
    ("loop", "for_each"),
    ("condition", "when"),
    ("anchor", "anchors"),
    ("alias", "anchors"),
    ("merge", "anchors"),
    ("<<", "anchors"),
    ("sema", "roll"),
];

/// Returns the topic with a name; a word within a section gives the section.
pub(super) fn find_topic(name: &str) -> Option<Topic> {
    let section = WORDS.iter().find(|(word, _)| *word == name).map(|(_, section)| *section);
    all_topics().find(|topic| topic.name == section.unwrap_or(name))
}

/// Returns the words that have a section with another name.
pub(super) fn other_words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(word, _)| *word)
}

/// Returns the text of a word of the language.
pub(super) fn section_text(name: &str, text: &str) -> String {
    let mut text = format!("{name}: {text}\n");
    if name == "expressions" {
        text.push_str("\nFunctions:\n");
        let width = all_functions().iter().map(|function| function.usage.len()).max();
        let width = width.unwrap_or_default();
        for function in all_functions() {
            text.push_str(&format!("  {:width$}  {}\n", function.usage, function.about));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Content, all_topics, section_text};
    use std::collections::BTreeSet;

    #[test]
    fn each_topic_has_one_name_and_one_sentence_for_the_list() {
        let topics: Vec<_> = all_topics().collect();
        assert!(topics.len() >= 22, "{topics:?}");
        let mut names = BTreeSet::new();
        for topic in &topics {
            assert!(names.insert(topic.name), "{} is a topic twice", topic.name);
            assert!(topic.about.ends_with('.'), "{}: {}", topic.name, topic.about);
            assert!(topic.about.chars().count() <= 100, "{}", topic.name);
        }
        let expressions = topics.iter().find(|topic| topic.name == "expressions").expect("a topic");
        let Content::Section(text) = expressions.content else { panic!("{expressions:?}") };
        let shown = section_text(expressions.name, text);
        assert!(shown.contains("text | lower"), "{shown}");
    }
}
