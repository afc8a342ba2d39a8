//! Names and versions of packages by Debian's policy: no other text ever reaches a command line.

/// Returns true if the text is the name of a package, with or without an architecture.
pub(super) fn is_name(text: &str) -> bool {
    let (name, architecture) = text.split_once(':').unwrap_or((text, "any"));
    let begins = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (2..=100).contains(&name.len())
        && begins(name)
        && name.bytes().all(|byte| small(byte) || b"+-.".contains(&byte))
        // apt would read a trailing `-` as a request to remove the package.
        && !name.ends_with('-')
        && begins(architecture)
        && architecture.bytes().all(|byte| small(byte) || byte == b'-')
        && architecture.len() <= 30
}

/// Returns true if the text is a version.
pub(super) fn is_version(text: &str) -> bool {
    let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
    !epoch.is_empty()
        && epoch.bytes().all(|byte| byte.is_ascii_digit())
        && rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-~".contains(&byte))
        && text.len() <= 200
}

#[cfg(test)]
mod tests {
    use super::{is_name, is_version};

    /// S-8: options, requests and other texts that are not names are rejected.
    #[test]
    fn names_are_those_of_the_policy() {
        for name in
            ["nginx", "g++", "libc6:i386", "0ad", "libstdc++6", "a2", "python3.11", "xy:all"]
        {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(101);
        for name in [
            "",
            "a",
            "-o",
            "--purge",
            "a b",
            "a;b",
            "$(x)",
            "../x",
            "a/b",
            "a=1",
            "a_",
            "a*",
            "A",
            "ä",
            "ab-",
            "ab:",
            ":i386",
            "ab:-x",
            "ab:i386:x",
            "a\nb",
            "ab:a,b",
            ".ab",
            &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn versions_are_those_of_the_policy() {
        for version in ["1", "1.0-1", "1:2.3~rc1-4+deb12u6", "20230101", "0.9.8zh-1"] {
            assert!(is_version(version), "{version}");
        }
        for version in
            ["", "newest", "-1", "1 2", "1;2", "$(x)", "a:1", ":1", "1:", "1/2", "1_2", "~1"]
        {
            assert!(!is_version(version), "{version}");
        }
    }
}
