//! The identity of a resource: its kind and its name, written as `kind[name]`.

use std::fmt;

/// The identity of a resource, borrowed from its text.
///
/// ```
/// use steadfast_resources::ResourceId;
///
/// let id = ResourceId::parse("file[/etc/motd]").unwrap();
/// assert_eq!((id.kind, id.name), ("file", "/etc/motd"));
/// assert_eq!(id.to_string(), "file[/etc/motd]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceId<'a> {
    /// The kind.
    pub kind: &'a str,
    /// The name, which may contain brackets.
    pub name: &'a str,
}

impl<'a> ResourceId<'a> {
    /// Splits `kind[name]` at its first bracket; none if the last bracket, the kind or the name is missing.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (kind, name) = text.strip_suffix(']')?.split_once('[')?;
        (!kind.is_empty() && !name.is_empty()).then_some(Self { kind, name })
    }
}

impl fmt::Display for ResourceId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceId;

    #[test]
    fn identities_are_split_at_the_first_bracket() {
        let parse = |text| ResourceId::parse(text).map(|id| (id.kind, id.name));
        assert_eq!(parse("file[a]"), Some(("file", "a")));
        assert_eq!(parse("exec[echo [x]]"), Some(("exec", "echo [x]")));
        assert_eq!(parse("file[[]"), Some(("file", "[")));
        for text in ["", "file", "file[]", "[a]", "file[a", "file]a[", "file[a]x", "]", "["] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
