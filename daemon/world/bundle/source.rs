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
        if let Some(rest) = text.strip_prefix("https://") {
            refuse_secrets(rest, "https")?;
            if rest.contains('#') {
                let what =
                    "the address of `bundles` contains `#`, which would cut off the file names";
                return Err((
                    what,
                    "only git+ addresses name a branch: git+https://HOST/NAME.git#BRANCH",
                ));
            }
            return Ok(Self::Https(text.trim_end_matches('/').to_owned()));
        }
        if let Some(address) = text.strip_prefix("git+") {
            return parse_git(address);
        }
        let is_remote_path = text.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
        if text.contains("://") || is_remote_path {
            let what = "`bundles` should be a folder, an https:// address, or a git repository";
            return Err((
                what,
                "for example https://deploy.example.org/bundles, or git+https://git.example.org/bundles.git",
            ));
        }
        Ok(Self::Folder(base.join(text)))
    }
}

/// Refuses an address with a password or a token: messages, logs and the world show it. With ssh an account is none.
fn refuse_secrets(rest: &str, transport: &str) -> Result<(), (&'static str, &'static str)> {
    let host = rest.split('/').next().unwrap_or_default();
    let account = host.rsplit_once('@').map(|(account, _)| account);
    let is_secret = account.is_some_and(|it| transport != "ssh" || it.contains([':', '%']));
    if is_secret || rest.contains('?') {
        let what =
            "the address of `bundles` contains an account or a token, which messages would show";
        return Err((what, "use a key of ssh, or a credential helper in /etc/gitconfig"));
    }
    Ok(())
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
    let rest = repository.split_once("://").map_or("", |(_, rest)| rest);
    refuse_secrets(rest, transport)?;
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    if path.is_empty() || (transport == "file" && !rest.starts_with('/')) {
        let what = "the address of the git repository of `bundles` names no repository";
        return Err((what, "for example git+https://git.example.org/bundles.git#main"));
    }
    let is_safe = !reference.is_empty()
        && !reference.starts_with('-')
        && !reference.contains("..")
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
    fn an_account_of_ssh_is_no_secret() {
        let source = BundleSource::parse("git+ssh://git@host/b.git", "/".as_ref()).unwrap();
        let (repository, reference) = ("ssh://git@host/b.git".to_owned(), "HEAD".to_owned());
        assert_eq!(source, BundleSource::Git { repository, reference });
    }

    #[test]
    fn wrong_sources_are_refused() {
        for (text, words) in [
            ("http://a/b", "should be a folder"),
            ("git+http://a/b", "should be git+https://"),
            ("git+/srv/b.git", "should be git+https://"),
            ("git+ext::sh -c x", "should be git+https://"),
            ("git+https://u:p@a/b", "contains an account"),
            ("git+https://token@a/b", "contains an account"),
            ("git+https://a/b?private_token=x", "contains an account"),
            ("git+ssh://git%3Ap@a/b", "contains an account"),
            ("https://u:p@a/b", "contains an account"),
            ("https://a/b?token=x", "contains an account"),
            ("https://a/b#prod", "contains `#`"),
            ("git@github.com:a/b", "should be a folder"),
            ("git+https://", "names no repository"),
            ("git+https://a", "names no repository"),
            ("git+file://relative/x", "names no repository"),
            ("git+https://a/b#x..y", "no name of a branch"),
            ("git+https://a/b#--upload-pack=x", "no name of a branch"),
            ("git+https://a/b#a:b", "no name of a branch"),
            ("git+https://a/b#", "no name of a branch"),
        ] {
            let (what, _hint) = BundleSource::parse(text, "/".as_ref()).unwrap_err();
            assert!(what.contains(words), "{text}: {what}");
        }
    }
}
