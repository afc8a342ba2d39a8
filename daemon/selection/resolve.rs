//! Selectors of a command become identities.

use super::{LabelSource, Parts, Selector};
use std::collections::HashSet;

/// The selectors that select no resource, or more than a name may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unselected {
    /// Texts that select nothing.
    pub unknown: Vec<String>,
    /// Words that several resources have, each with these resources.
    pub ambiguous: Vec<(String, Vec<String>)>,
}

/// The maximum number of candidates that a message lists.
const LISTED: usize = 5;

impl Unselected {
    fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.ambiguous.is_empty()
    }

    /// Describes each ambiguous word with its candidates.
    #[must_use]
    pub fn candidates(&self) -> Vec<String> {
        let each = |(word, all): &(String, Vec<String>)| {
            let shown: Vec<&str> = all.iter().take(LISTED).map(String::as_str).collect();
            let more = all.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("`{word}` selects {} resources: {}{more}", all.len(), shown.join(", "))
        };
        self.ambiguous.iter().map(each).collect()
    }
}

/// Returns the identities that texts select, in the order of the texts and of `identities`, each once. An identity
/// selects itself, also if it contains a star.
///
/// # Errors
/// The texts that select nothing, and names that several resources have.
pub fn resolve(
    texts: &[String],
    identities: &[&str],
    labels: &dyn LabelSource,
) -> Result<Vec<String>, Unselected> {
    let known: HashSet<&str> = identities.iter().copied().collect();
    let (mut taken, mut selected) = (HashSet::new(), Vec::new());
    let mut wrong = Unselected::default();
    for text in texts {
        let found = match known.get(text.as_str()) {
            Some(identity) => vec![*identity],
            None => find_matches(text, identities, labels),
        };
        match (&Selector::parse(text), found.len()) {
            (_, 0) => wrong.unknown.push(text.clone()),
            (Selector::Word(word), 2..) if is_ambiguous(word, &found) => {
                let candidates = found.iter().map(ToString::to_string).collect();
                wrong.ambiguous.push((text.clone(), candidates));
            }
            _ => selected
                .extend(found.into_iter().filter(|one| taken.insert(*one)).map(str::to_owned)),
        }
    }
    if wrong.is_empty() { Ok(selected) } else { Err(wrong) }
}

fn find_matches<'a>(text: &str, identities: &[&'a str], labels: &dyn LabelSource) -> Vec<&'a str> {
    let selector = Selector::parse(text);
    identities.iter().copied().filter(|identity| selector.selects(identity, labels)).collect()
}

/// Returns true unless a word is the kind of all its resources.
fn is_ambiguous(word: &str, found: &[&str]) -> bool {
    !found.iter().filter_map(|identity| Parts::of(identity)).all(|parts| parts.is_of_kind(word))
}

#[cfg(test)]
mod tests {
    use super::super::NoLabels;
    use super::{Unselected, resolve};

    const ALL: &[&str] =
        &["file[a]", "file[web]", "svc[web]", "svc[db]", "file[x*]", "file[xy]", "file[svc]"];

    fn resolved(texts: &[&str]) -> Result<Vec<String>, Unselected> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        resolve(&texts, ALL, &NoLabels)
    }

    #[test]
    fn selectors_become_identities_once_each() {
        assert_eq!(
            resolved(&["svc[*]", "svc[db]", "a"]).unwrap(),
            ["svc[web]", "svc[db]", "file[a]"]
        );
        assert_eq!(resolved(&["file[x*]"]).unwrap(), ["file[x*]"], "an identity is no pattern");
        assert_eq!(resolved(&["file[x?]"]).unwrap(), ["file[x*]", "file[xy]"]);
        assert_eq!(resolved(&["file"]).unwrap().len(), 5);
    }

    #[test]
    fn words_of_several_resources_list_their_candidates() {
        let wrong = resolved(&["web", "none", "pkg[*]"]).unwrap_err();
        assert_eq!(wrong.unknown, ["none", "pkg[*]"]);
        assert_eq!(wrong.candidates(), ["`web` selects 2 resources: file[web], svc[web]"]);
        // A word that is a kind and a name at once selects neither.
        assert_eq!(resolved(&["svc"]).unwrap_err().ambiguous.len(), 1);
    }
}
