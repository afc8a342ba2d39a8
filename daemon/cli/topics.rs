//! The topics of `explain` about the graph language: the sections of docs/language.md.

use crate::expressions::all_functions;

/// All words of the language.
const LANGUAGE: &str = include_str!("../../docs/language.md");

/// A word of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// The word.
    pub(super) name: &'static str,
    /// The first line of its text.
    pub(super) about: &'static str,
    /// The whole text.
    text: &'static str,
}

/// Returns the topics in the order of the page.
pub(super) fn language_topics() -> impl Iterator<Item = Topic> {
    LANGUAGE.split("\n## ").skip(1).filter_map(|section| {
        let (name, text) = section.split_once('\n')?;
        let text = text.trim();
        Some(Topic { name, about: text.lines().next().unwrap_or_default(), text })
    })
}

/// Returns the text about a word of the language.
pub(super) fn explain_word(word: &str) -> Option<String> {
    let topic = language_topics().find(|topic| topic.name == word)?;
    let mut text = format!("{}: {}\n", topic.name, topic.text);
    if topic.name == "expressions" {
        text.push_str("\nFunctions:\n");
        let width = all_functions().iter().map(|function| function.usage.len()).max();
        let width = width.unwrap_or_default();
        for function in all_functions() {
            text.push_str(&format!("  {:width$}  {}\n", function.usage, function.about));
        }
    }
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{explain_word, language_topics};

    #[test]
    fn each_word_has_one_sentence_for_the_list() {
        let topics: Vec<_> = language_topics().collect();
        assert!(topics.len() >= 16, "{topics:?}");
        for topic in topics {
            assert!(topic.about.ends_with('.'), "{}: {}", topic.name, topic.about);
            assert!(topic.about.chars().count() <= 100, "{}", topic.name);
            assert!(explain_word(topic.name).is_some(), "{}", topic.name);
        }
        let functions = explain_word("expressions").expect("a topic");
        assert!(functions.contains("text | lower"), "{functions}");
        assert_eq!(explain_word("nothing"), None);
    }
}
