//! Selectors: texts that select resources of a graph, such as `svc[*]`, `motd`, `shop/*` or `label:tier=web`.
//!
//! Every command that takes resources uses this module, so a text selects the same resources everywhere. The module is
//! pure: it must never ask a daemon, a file or a graph. Reading order: this file (the forms of a selector), `resolve`
//! (texts to identities), `glob` (patterns of text).

mod glob;
mod resolve;

pub use resolve::{Unselected, resolve};

pub(crate) use glob::matches_glob;

use std::sync::Arc;

/// The prefix of a selector of labels; `-l tier=web` is short for `label:tier=web`.
pub const LABEL: &str = "label:";

/// The labels of resources.
pub trait LabelSource {
    /// Returns the value of a label of a resource; `None` without this label.
    fn label(&self, identity: &str, key: &str) -> Option<&str>;
}

/// A declared resource, as selectors see it.
#[derive(Clone, Debug)]
pub struct Selectable {
    /// The identity.
    pub identity: Arc<str>,
    /// The labels.
    pub labels: Arc<[(String, String)]>,
}

/// The labels of resources that are sorted by identity.
impl LabelSource for Vec<Selectable> {
    fn label(&self, identity: &str, key: &str) -> Option<&str> {
        let at = self.binary_search_by(|one| one.identity.as_ref().cmp(identity)).ok()?;
        label_in(&self.get(at)?.labels, key)
    }
}

/// Returns the value of a label in a list of labels.
#[must_use]
pub fn label_in<'a>(labels: &'a [(String, String)], key: &str) -> Option<&'a str> {
    labels.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
}

/// The source for records, which have no labels.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLabels;

impl LabelSource for NoLabels {
    fn label(&self, _identity: &str, _key: &str) -> Option<&str> {
        None
    }
}

/// A parsed selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A kind, or the name of one resource: `svc`, `motd`, `/etc/motd`, `shop/vhost`.
    Word(String),
    /// All resources of an instance of a module, and of its nested instances: `shop/*`.
    Instance(String),
    /// A pattern of names in any kind: `/etc/*`.
    Name(String),
    /// Patterns of the part before the bracket and of the name: `svc[*]`, `shop/file[/etc/*]`.
    Kind(String, String),
    /// All of these labels: `label:tier=web,stage!=test`.
    Labels(Vec<Requirement>),
}

/// A condition for one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    /// The value, and true if the label must have it; `None` if any value will do.
    value: Option<(String, bool)>,
}

impl Requirement {
    fn parse(text: &str) -> Self {
        let of = |key: &str, value: &str, is_wanted| Self {
            key: key.trim().to_owned(),
            value: Some((value.trim().to_owned(), is_wanted)),
        };
        match (text.split_once("!="), text.split_once('=')) {
            (Some((key, value)), _) => of(key, value, false),
            (None, Some((key, value))) => of(key, value.trim_start_matches('='), true),
            (None, None) => Self { key: text.trim().to_owned(), value: None },
        }
    }

    fn holds(&self, found: Option<&str>) -> bool {
        match &self.value {
            None => found.is_some(),
            Some((value, true)) => found.is_some_and(|found| matches_glob(value, found)),
            Some((value, false)) => found.is_none_or(|found| !matches_glob(value, found)),
        }
    }
}

impl Selector {
    /// Parses a selector. Every text is one: a text without a pattern is a word.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Some(labels) = text.strip_prefix(LABEL) {
            return Self::Labels(labels.split(',').map(Requirement::parse).collect());
        }
        if let Some((kind, name)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            return Self::Kind(kind.to_owned(), name.to_owned());
        }
        match text.strip_suffix("/*") {
            Some(instance) if is_instance(instance) => Self::Instance(instance.to_owned()),
            _ if text.contains(['*', '?']) => Self::Name(text.to_owned()),
            _ => Self::Word(text.to_owned()),
        }
    }

    /// Returns true if a text can only be the identity of one resource.
    #[must_use]
    pub fn is_identity(text: &str) -> bool {
        matches!(Self::parse(text), Self::Kind(kind, name)
            if !kind.is_empty() && !kind.contains('*') && !name.is_empty() && !name.contains(['*', '?']))
    }

    /// Returns true if the selector selects a resource.
    #[must_use]
    pub fn selects(&self, identity: &str, labels: &dyn LabelSource) -> bool {
        if let Self::Labels(all) = self {
            return all.iter().all(|one| one.holds(labels.label(identity, &one.key)));
        }
        let Some(parts) = Parts::of(identity) else { return false };
        match self {
            Self::Word(word) => parts.is_of_kind(word) || parts.is_named(word),
            Self::Instance(instance) => {
                let below = |found: &str| found.starts_with(&format!("{instance}/"));
                parts.instance.is_some_and(|found| found == instance || below(found))
            }
            Self::Name(pattern) => matches_glob(pattern, parts.name),
            Self::Kind(kind, name) => {
                matches_glob(kind, parts.before) && matches_glob(name, parts.name)
            }
            Self::Labels(_) => false,
        }
    }
}

/// Returns true if a text can be the name of an instance, not the begin of a path.
fn is_instance(text: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    !text.is_empty() && text.split('/').all(is_name)
}

/// The parts of an identity: `shop/file[vhost]`.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    /// The part before the bracket: `shop/file`.
    before: &'a str,
    instance: Option<&'a str>,
    kind: &'a str,
    name: &'a str,
}

impl<'a> Parts<'a> {
    fn of(identity: &'a str) -> Option<Self> {
        let (before, name) = identity.strip_suffix(']')?.split_once('[')?;
        let (instance, kind) = match before.rsplit_once('/') {
            Some((instance, kind)) => (Some(instance), kind),
            None => (None, before),
        };
        Some(Self { before, instance, kind, name })
    }

    fn is_of_kind(self, word: &str) -> bool {
        self.kind == word || self.before == word
    }

    /// Returns true if a word is the name, with or without the instance.
    fn is_named(self, word: &str) -> bool {
        let whole =
            self.instance.and_then(|instance| word.strip_prefix(instance)?.strip_prefix('/'));
        self.name == word || whole == Some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::{LabelSource, NoLabels, Selector};

    struct Fixed;

    impl LabelSource for Fixed {
        fn label(&self, identity: &str, key: &str) -> Option<&str> {
            (identity == "svc[web]" && key == "tier").then_some("web")
        }
    }

    const ALL: &[&str] = &[
        "file[/etc/motd]",
        "file[/etc/a/b]",
        "svc[web]",
        "exec[x[1]]",
        "shop/file[vhost]",
        "shop/tls/file[key]",
    ];

    fn selected(text: &str) -> Vec<&'static str> {
        let selector = Selector::parse(text);
        ALL.iter().copied().filter(|name| selector.selects(name, &Fixed)).collect()
    }

    #[test]
    fn each_form_selects_its_resources() {
        assert_eq!(selected("/etc/motd"), ["file[/etc/motd]"]);
        assert_eq!(selected("svc"), ["svc[web]"]);
        assert_eq!(selected("svc[*]"), ["svc[web]"]);
        assert_eq!(selected("file[/etc/*]"), ["file[/etc/motd]", "file[/etc/a/b]"]);
        assert_eq!(selected("/etc/*"), ["file[/etc/motd]", "file[/etc/a/b]"]);
        assert_eq!(selected("shop/*"), ["shop/file[vhost]", "shop/tls/file[key]"]);
        assert_eq!(selected("shop/tls/*"), ["shop/tls/file[key]"]);
        assert_eq!(selected("shop/file[*]"), ["shop/file[vhost]"]);
        assert_eq!(selected("shop/vhost"), ["shop/file[vhost]"]);
        assert_eq!(selected("exec[x[1]]"), ["exec[x[1]]"]);
        assert_eq!(selected("*[web]"), ["svc[web]"]);
        assert_eq!(selected("sho/*"), [""; 0]);
    }

    #[test]
    fn labels_select_by_value_presence_and_absence() {
        assert_eq!(selected("label:tier=web"), ["svc[web]"]);
        assert_eq!(selected("label:tier"), ["svc[web]"]);
        assert_eq!(selected("label:tier=db"), [""; 0]);
        assert_eq!(selected("label:tier=w*,tier!=x"), ["svc[web]"]);
        assert_eq!(selected("label:tier!=web").len(), ALL.len() - 1);
        assert!(!Selector::parse("label:tier=web").selects("svc[web]", &NoLabels));
    }

    #[test]
    fn an_identity_is_told_from_a_pattern() {
        assert!(Selector::is_identity("file[/etc/motd]") && Selector::is_identity("exec[x[1]]"));
        for text in ["svc", "svc[*]", "*[a]", "shop/*", "label:a=b", "svc[]", "[a]", ""] {
            assert!(!Selector::is_identity(text), "{text}");
        }
    }
}
