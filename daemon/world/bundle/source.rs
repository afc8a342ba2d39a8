//! The place from which a host gets its bundles.

use std::path::{Path, PathBuf};

/// The place of the bundles of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleSource {
    /// A folder of this machine.
    Folder(PathBuf),
    /// The `https://` address of a folder on a server.
    Https(String),
    /// A git repository: a bundle is a file at its top.
    Git {
        /// The address of the repository, as git reads it.
        repository: String,
        /// The branch or tag.
        reference: String,
    },
}

impl BundleSource {
    /// Reads the setting `bundles`: a folder relative to `base`, `https://ADDRESS`, or `git+URL#BRANCH` with a URL of
    /// https, ssh or file. Without a branch it is the one of the repository's HEAD.
    ///
    /// # Errors
    /// The problem, and what to do.
    ///
    /// ```
    /// # use steadfast::world::bundle::BundleSource;
    /// let source = BundleSource::parse("git+https://git.example.org/bundles.git#prod", "/etc".as_ref()).unwrap();
    /// assert_eq!(source, BundleSource::Git {
    ///     repository: "https://git.example.org/bundles.git".into(),
    ///     reference: "prod".into(),
    /// });
    /// ```
    pub fn parse(text: &str, base: &Path) -> Result<Self, (&'static str, &'static str)> {
        if text.starts_with("https://") {
            return Ok(Self::Https(text.trim_end_matches('/').to_owned()));
        }
        if let Some(address) = text.strip_prefix("git+") {
            return parse_git(address);
        }
        if text.contains("://") {
            let what = "`bundles` should be a folder, an https:// address, or a git repository";
            return Err((
                what,
                "for example https://deploy.example.org/bundles, or git+https://git.example.org/bundles.git",
            ));
        }
        Ok(Self::Folder(base.join(text)))
    }
}

/// Reads the address of a git repository with an optional branch.
fn parse_git(address: &str) -> Result<BundleSource, (&'static str, &'static str)> {
    let (repository, reference) = address.split_once('#').unwrap_or((address, "HEAD"));
    let transport = repository.split_once("://").map_or("", |(transport, _)| transport);
    if !["https", "ssh", "file"].contains(&transport) {
        let what =
            "a git repository of `bundles` should be git+https://, git+ssh:// or git+file://";
        return Err((what, "for example git+https://git.example.org/bundles.git#main"));
    }
    let host = repository.split("://").nth(1).and_then(|rest| rest.split('/').next());
    let has_password = host
        .and_then(|host| host.rsplit_once('@'))
        .is_some_and(|(account, _)| account.contains(':'));
    if has_password {
        let what = "the address of the git repository of `bundles` contains a password";
        return Err((what, "use a key of ssh, or a credential helper in /etc/gitconfig"));
    }
    let is_safe = !reference.is_empty()
        && !reference.starts_with('-')
        && !reference.contains([' ', ':', '^', '~', '*', '?', '[', '\\'])
        && !reference.chars().any(char::is_control);
    if !is_safe {
        let what = "the branch of the git repository of `bundles` is no name of a branch or tag";
        return Err((what, "for example git+https://git.example.org/bundles.git#main"));
    }
    let (repository, reference) = (repository.to_owned(), reference.to_owned());
    Ok(BundleSource::Git { repository, reference })
}

#[cfg(test)]
mod tests {
    use super::BundleSource;

    #[test]
    fn wrong_sources_are_refused() {
        for (text, words) in [
            ("http://a/b", "should be a folder"),
            ("git+http://a/b", "should be git+https://"),
            ("git+/srv/b.git", "should be git+https://"),
            ("git+ext::sh -c x", "should be git+https://"),
            ("git+https://u:p@a/b", "contains a password"),
            ("git+https://a/b#--upload-pack=x", "no name of a branch"),
            ("git+https://a/b#a:b", "no name of a branch"),
            ("git+https://a/b#", "no name of a branch"),
        ] {
            let (what, _hint) = BundleSource::parse(text, "/".as_ref()).unwrap_err();
            assert!(what.contains(words), "{text}: {what}");
        }
    }
}
