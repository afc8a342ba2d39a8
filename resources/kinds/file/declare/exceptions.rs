//! The exceptions of a managed tree: paths that other resources declare, and excluded names.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The paths that other resources claim below a directory.
#[derive(Clone, Debug, Default)]
pub(in crate::kinds::file) struct Claims(BTreeSet<PathBuf>);

impl Claims {
    pub(in crate::kinds::file) const NONE: Self = Self(BTreeSet::new());

    pub(in crate::kinds::file) fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// Returns true if another resource declares this path: the path and everything below belong to that
    /// resource.
    pub(in crate::kinds::file) fn hold(&self, path: &Path) -> bool {
        self.0.contains(path)
    }

    /// Returns true if another resource declares something below this path, so the path must stay.
    pub(in crate::kinds::file) fn are_below(&self, path: &Path) -> bool {
        let below = (Bound::Excluded(path), Bound::Unbounded);
        // Paths are ordered by their parts, so everything below a path follows the path directly.
        self.0.range::<Path, _>(below).next().is_some_and(|next| next.starts_with(path))
    }
}

/// A pattern for a name, or for a path below the directory, with `*` for any characters and `?` for one;
/// neither matches a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) struct Pattern {
    text: String,
    /// The pattern applies to the whole path, not to the last name.
    of_path: bool,
}

impl Pattern {
    pub(in crate::kinds::file) fn parse(text: &str) -> Result<Self, &'static str> {
        let plain = text.trim_end_matches('/');
        if plain.is_empty() {
            return Err("expected a name or a path, found nothing");
        }
        if plain.starts_with('/') {
            return Err("expected a path below the directory, found an absolute one");
        }
        if plain.contains('\0') || plain.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("expected a path without empty parts, . and ..");
        }
        Ok(Self { text: plain.to_owned(), of_path: plain.contains('/') })
    }

    /// Returns true if the pattern matches this path below the directory.
    pub(in crate::kinds::file) fn means(&self, below: &Path) -> bool {
        let text = if self.of_path { Some(below.as_os_str()) } else { below.file_name() };
        text.is_some_and(|text| matches(self.text.as_bytes(), text.as_bytes()))
    }
}

/// Matches a pattern. The function goes back to the last star only, so the time is at most the product of
/// both lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some(b'?') if *byte != b'/' => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            Some(wanted) if wanted == byte => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            Some(_) | None => {}
        }
        match star {
            Some((at, from)) if text.get(from).is_some_and(|byte| *byte != b'/') => {
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
            Some(_) | None => return false,
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::{Claims, Pattern};
    use std::path::Path;

    #[test]
    fn claims_hold_themselves_and_what_leads_to_them() {
        let claims = Claims::new(vec!["/d/a".into(), "/d/b/c".into(), "/d/b.x".into()]);
        assert!(claims.hold(Path::new("/d/a")) && !claims.hold(Path::new("/d/b")));
        assert!(claims.are_below(Path::new("/d/b")) && !claims.are_below(Path::new("/d/a")));
        assert!(!claims.are_below(Path::new("/d/b/c")) && !claims.are_below(Path::new("/d/bb")));
    }

    #[test]
    fn patterns() {
        for (pattern, path, means) in [
            ("*.log", "a.log", true),
            ("*.log", "deep/er/a.log", true),
            ("*.log", "a.log.1", false),
            ("cache", "x/cache", true),
            ("cache/", "cache", true),
            ("x/*", "x/y", true),
            ("x/*", "x/y/z", false),
            ("x/*", "y/x/z", false),
            ("?", "ü", false),
            ("a?c", "abc", true),
            ("a*b*c", "axxbxxbxxc", true),
            ("a*b*c", "axxbxxbxx", false),
            ("*", "anything", true),
            ("*/*", "a/b", true),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().means(Path::new(path)), means, "{pattern}");
        }
        for wrong in ["", "/", "/a", "a//b", "../a", "a/./b", "."] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
