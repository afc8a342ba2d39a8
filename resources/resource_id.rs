//! The identity of a resource: its instance, its kind and its name, written as `instance/kind[name]` or `kind[name]`.

use std::fmt;

/// The identity of a resource, borrowed from its text.
///
/// ```
/// use steadfast_resources::ResourceId;
///
/// let id = ResourceId::parse("file[/etc/motd]").unwrap();
/// assert_eq!((id.kind, id.name), ("file", "/etc/motd"));
/// assert_eq!(id.to_string(), "file[/etc/motd]");
///
/// let id = ResourceId::parse("shop/tls/file[key]").unwrap();
/// assert_eq!((id.instance, id.kind, id.name), ("shop/tls", "file", "key"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceId<'a> {
    /// The use of a graph module that declares the resource, such as `shop` or `shop/tls`; empty outside of modules.
    pub instance: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The name, which may contain brackets.
    pub name: &'a str,
}

impl<'a> ResourceId<'a> {
    /// Splits `instance/kind[name]` at its first bracket, and the part before at its last slash; none if the last
    /// bracket, the kind or the name is missing.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (kind, name) = text.strip_suffix(']')?.split_once('[')?;
        let (instance, kind) = match kind.rsplit_once('/') {
            Some((instance, kind)) if !instance.is_empty() => (instance, kind),
            Some(_) => return None,
            None => ("", kind),
        };
        (!kind.is_empty() && !name.is_empty()).then_some(Self { instance, kind, name })
    }
}

impl fmt::Display for ResourceId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.instance.is_empty() {
            write!(f, "{}/", self.instance)?;
        }
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
        assert_eq!(parse("file[/a/b]"), Some(("file", "/a/b")));
        for text in [
            "", "file", "file[]", "[a]", "file[a", "file]a[", "file[a]x", "]", "[", "/file[a]",
            "a/[b]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
