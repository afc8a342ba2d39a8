//! The words that a fact can have as its value: a comparison with another one never holds.

use super::check::fits_pattern;
use super::schema::find_fact;

/// A fact whose values are words.
struct Words {
    fact: &'static str,
    /// True if the fact has no other values than `known`.
    is_closed: bool,
    /// True if each value is in lower case.
    is_lower: bool,
    known: &'static [&'static str],
    /// Words of other tools that the fact never has, each with the word that it has.
    foreign: &'static [(&'static str, &'static str)],
}

/// The facts whose values are words, as the collectors write them.
const WORDS: [Words; 7] = [
    Words {
        fact: "architecture",
        is_closed: false,
        is_lower: false,
        known: &["x86_64", "aarch64", "armv7l", "i686", "ppc64le", "riscv64", "s390x"],
        foreign: &[
            ("amd64", "x86_64"),
            ("x64", "x86_64"),
            ("arm64", "aarch64"),
            ("armhf", "armv7l"),
        ],
    },
    Words {
        fact: "kernel.name",
        is_closed: true,
        is_lower: false,
        known: &["Linux"],
        foreign: &[],
    },
    Words {
        fact: "os.family",
        is_closed: false,
        is_lower: true,
        known: &["debian", "redhat", "suse", "arch", "alpine", "gentoo"],
        foreign: &[
            ("ubuntu", "debian"),
            ("rhel", "redhat"),
            ("fedora", "redhat"),
            ("centos", "redhat"),
            ("rocky", "redhat"),
            ("almalinux", "redhat"),
            ("archlinux", "arch"),
            ("opensuse", "suse"),
            ("sles", "suse"),
            ("red hat", "redhat"),
        ],
    },
    Words {
        fact: "os.id",
        is_closed: false,
        is_lower: true,
        known: &[
            "debian",
            "ubuntu",
            "fedora",
            "rhel",
            "centos",
            "rocky",
            "almalinux",
            "alpine",
            "arch",
        ],
        foreign: &[("red hat", "rhel")],
    },
    Words {
        fact: "package_manager",
        is_closed: true,
        is_lower: true,
        known: &["apt", "dnf", "yum", "zypper", "apk", "pacman", "xbps", "portage", "none"],
        foreign: &[
            ("apt-get", "apt"),
            ("dpkg", "apt"),
            ("rpm", "dnf"),
            ("dnf5", "dnf"),
            ("emerge", "portage"),
        ],
    },
    Words {
        fact: "container_engine",
        is_closed: false,
        is_lower: true,
        known: &["docker", "podman", "lxc", "systemd-nspawn"],
        foreign: &[],
    },
    Words {
        fact: "virtualisation",
        is_closed: false,
        is_lower: true,
        known: &[
            "kvm",
            "qemu",
            "vmware",
            "hyper-v",
            "xen",
            "virtualbox",
            "amazon",
            "other",
            "none",
        ],
        foreign: &[
            ("hyperv", "hyper-v"),
            ("vbox", "virtualbox"),
            ("physical", "none"),
            ("metal", "none"),
        ],
    },
];

/// A value that a fact never has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpossibleValue {
    /// The value that is surely meant: the same word in lower case, or the word for that of another tool.
    pub meant: Option<String>,
    /// The known values; empty if the fact has any.
    pub known: &'static [&'static str],
}

/// Returns the values that a fact has instead of this text; `None` if the fact may have it. `name` is the dotted name
/// without `facts.` in front.
#[must_use]
pub fn find_impossible_value(name: &str, text: &str) -> Option<ImpossibleValue> {
    let spec = find_fact(name)?;
    let words = WORDS.iter().find(|words| words.fact == name);
    let known = words.map_or(&[][..], |words| words.known);
    let lower = text.to_lowercase();
    let foreign = words.and_then(|it| it.foreign.iter().find(|(word, _)| *word == lower));
    let is_possible = |text: &str| {
        let is_word = |words: &Words| {
            (!words.is_closed || known.contains(&text))
                && (!words.is_lower || !text.chars().any(char::is_uppercase))
        };
        fits_pattern(spec, text) && words.is_none_or(is_word)
    };
    if foreign.is_none() && is_possible(text) {
        return None;
    }
    let meant = foreign.map(|(_, meant)| (*meant).to_owned());
    let is_lower_possible = lower != text && is_possible(&lower);
    let meant = meant.or_else(|| Some(lower).filter(|_| is_lower_possible));
    Some(ImpossibleValue { meant, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_no_host_has_get_the_nearest_one() {
        for (fact, text, meant) in [
            ("os.family", "Debian", Some("debian")),
            ("os.family", "RedHat", Some("redhat")),
            ("os.family", "ubuntu", Some("debian")),
            ("os.id", "Ubuntu", Some("ubuntu")),
            ("os.id", "NixOS", Some("nixos")),
            ("package_manager", "apt-get", Some("apt")),
            ("package_manager", "brew", None),
            ("architecture", "amd64", Some("x86_64")),
            ("kernel.name", "linux", None),
            ("virtualisation", "KVM", Some("kvm")),
            ("hostname", "a b", None),
        ] {
            let found = find_impossible_value(fact, text);
            let found = found.unwrap_or_else(|| panic!("{fact} {text} is possible"));
            assert_eq!(found.meant.as_deref(), meant, "{fact} {text}");
        }
        for (fact, text) in [
            ("os.family", "debian"),
            ("os.family", "void"),
            ("os.id", "nixos"),
            ("os.codename", "Core"),
            ("os.version", ""),
            ("architecture", "sparc64"),
            ("virtualisation", "parallels"),
            ("hostname", "web-1"),
            ("unknown", "x"),
        ] {
            assert_eq!(find_impossible_value(fact, text), None, "{fact} {text}");
        }
    }

    #[test]
    fn each_known_word_is_possible() {
        for words in &WORDS {
            for word in words.known {
                assert_eq!(find_impossible_value(words.fact, word), None, "{} {word}", words.fact);
            }
        }
    }
}
