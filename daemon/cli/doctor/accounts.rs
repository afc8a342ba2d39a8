//! The check of the sources of users and groups: a static program reads `/etc/passwd` and `/etc/group` alone.

use super::Finding;

/// Sources of users that a static program reads.
const READ: [&str; 2] = ["files", "compat"];

/// Returns a warning if this program is static and the host has other users than those of `/etc/passwd`.
pub(super) fn look() -> Vec<Finding> {
    if !cfg!(target_feature = "crt-static") {
        return Vec::new();
    }
    let text = std::fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
    let others = other_sources(&text);
    if others.is_empty() {
        return vec![Finding::ok("users", "this static program reads /etc/passwd and /etc/group")];
    }
    let says = format!(
        "this static program reads /etc/passwd alone; /etc/nsswitch.conf also names {}",
        others.join(", ")
    );
    vec![Finding::warning(
        "users",
        says,
        "install the package instead: `apt-get install steadfast`",
    )]
}

/// Returns the sources of users and groups besides the files.
fn other_sources(nsswitch: &str) -> Vec<&str> {
    let mut others = Vec::new();
    for line in nsswitch.lines() {
        let Some(sources) = line.strip_prefix("passwd:").or_else(|| line.strip_prefix("group:"))
        else {
            continue;
        };
        let named = sources.split_whitespace().take_while(|word| !word.starts_with('#'));
        // Words in brackets are actions.
        for source in named.filter(|word| !word.starts_with('[') && !word.ends_with(']')) {
            if !READ.contains(&source) && !others.contains(&source) {
                others.push(source);
            }
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::other_sources;

    #[test]
    fn other_sources_than_files_are_named() {
        let text = "passwd: files systemd sss # local\ngroup: files [SUCCESS=merge] systemd\nhosts: files dns\n";
        assert_eq!(other_sources(text), ["systemd", "sss"]);
        assert!(other_sources("passwd: compat\n").is_empty());
    }
}
