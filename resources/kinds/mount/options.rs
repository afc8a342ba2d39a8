//! Mount options: the declared ones compared with those of the kernel.

use super::table::Mounted;

/// Pairs of options that exclude each other: the one that the kernel shows, and the opposite, which it does not show.
const FLAGS: [(&str, &str); 9] = [
    ("ro", "rw"),
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("noatime", "atime"),
    ("nodiratime", "diratime"),
    ("nosymfollow", "symfollow"),
    ("sync", "async"),
    ("dirsync", "nodirsync"),
];

/// The flags that are off unless declared.
const OFF: [&str; 4] = ["ro", "nosuid", "nodev", "noexec"];

/// The file systems that can only be read.
const READ_ONLY: [&str; 5] = ["iso9660", "squashfs", "erofs", "cramfs", "udf"];

/// Options as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options(Vec<String>);

impl Options {
    /// Parses options, each of which may be a list with commas. A comma within quotes separates nothing.
    pub(super) fn parse(texts: &[String]) -> Self {
        let mut all = Vec::new();
        for text in texts {
            let (mut option, mut is_quoted) = (String::new(), false);
            for letter in text.chars() {
                is_quoted ^= letter == '"';
                if letter == ',' && !is_quoted {
                    all.push(std::mem::take(&mut option));
                } else {
                    option.push(letter);
                }
            }
            all.push(option);
        }
        all.retain(|option| !option.trim().is_empty());
        Self(all.iter().map(|option| option.trim().to_owned()).collect())
    }

    /// Returns the options with commas; `defaults` for none.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() { "defaults".to_owned() } else { self.0.join(",") }
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.0.iter().any(|own| own == option)
    }

    /// Returns true if the mount shows a directory of another one.
    pub(super) fn is_bind(&self) -> bool {
        self.has("bind") || self.has("rbind")
    }

    /// Returns true if systemd mounts the file system at the first access.
    pub(super) fn is_automount(&self) -> bool {
        self.has("x-systemd.automount")
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|option| option.split_once('=').map_or(option.as_str(), |(name, _)| name))
    }

    /// Returns the options for a remount: flags that were not declared are cleared.
    pub(super) fn remount_text(&self) -> String {
        let mut all = vec!["remount"];
        if self.is_bind() {
            all.push("bind");
        }
        all.extend(["rw", "suid", "dev", "exec"]);
        let is_own = |option: &&str| !matches!(*option, "bind" | "rbind" | "defaults" | "remount");
        all.extend(self.0.iter().map(String::as_str).filter(is_own));
        all.join(",")
    }

    /// Returns true if the mount has these options, as far as the kernel shows them: the flags, and the sizes of a
    /// tmpfs. The kernel prints other options in its own words.
    pub(super) fn are_of(&self, mount: &Mounted) -> bool {
        let is_on = |flag: &str| mount.flags.split(',').any(|own| own == flag);
        let flags = FLAGS.iter().all(|(flag, opposite)| {
            let declared = self.0.iter().rev().find(|own| *own == flag || *own == opposite);
            match declared {
                Some(own) => is_on(flag) == (own == flag),
                None => !OFF.contains(flag) || !is_on(flag) || self.may_imply(flag, &mount.kind),
            }
        });
        flags && (mount.kind != "tmpfs" || self.are_sizes_of(&mount.superblock))
    }

    /// Returns true if the flag may be on although it was not declared.
    fn may_imply(&self, flag: &str, kind: &str) -> bool {
        let is_users = ["user", "users", "owner", "group"].iter().any(|option| self.has(option));
        let is_fuse = kind.starts_with("fuse");
        (flag != "ro" && (is_users || is_fuse)) || (flag == "ro" && READ_ONLY.contains(&kind))
    }

    fn are_sizes_of(&self, superblock: &str) -> bool {
        let found = |name: &str| {
            superblock.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
        };
        ["size", "nr_inodes"].iter().all(|name| {
            let own = self.0.iter().rev().find_map(|own| own.strip_prefix(name)?.strip_prefix('='));
            let (Some(own), Some(found)) = (own.and_then(bytes), found(name).and_then(bytes))
            else {
                return true;
            };
            // The kernel rounds a size up to pages, of up to 64 KiB.
            if *name == "size" { found >= own && found - own < 65536 } else { found == own }
        })
    }
}

/// Returns a number with a suffix `k`, `m`, `g` or `t`; none for a percentage.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'k') => (text.get(..at).unwrap_or_default(), 10),
        (at, 'm') => (text.get(..at).unwrap_or_default(), 20),
        (at, 'g') => (text.get(..at).unwrap_or_default(), 30),
        (at, 't') => (text.get(..at).unwrap_or_default(), 40),
        _ => (text.as_str(), 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::kinds::mount::table::Table;
    use std::path::Path;

    fn options(text: &str) -> Options {
        Options::parse(&[text.to_owned()])
    }

    #[test]
    fn options_are_compared_as_far_as_the_kernel_shows_them() {
        for (declared, kind, flags, superblock, same) in [
            ("", "ext4", "rw,relatime", "rw", true),
            ("defaults", "ext4", "ro,relatime", "ro", false),
            ("ro", "ext4", "ro,relatime", "ro", true),
            ("ro,rw", "ext4", "ro", "ro", false),
            ("noatime,nofail,x-systemd.automount", "ext4", "rw,noatime", "rw", true),
            ("noatime", "ext4", "rw,relatime", "rw", false),
            ("", "ext4", "rw,nosuid", "rw", false),
            ("user", "ext4", "rw,nosuid,nodev,noexec", "rw", true),
            ("user,exec", "ext4", "rw,noexec", "rw", false),
            ("", "fuse.sshfs", "rw,nosuid,nodev", "rw", true),
            ("", "iso9660", "ro", "ro", true),
            ("size=64m", "tmpfs", "rw", "rw,size=65536k", true),
            ("size=65m", "tmpfs", "rw", "rw,size=65536k", false),
            ("size=1000", "tmpfs", "rw", "rw,size=4k", true),
            ("size=50%", "tmpfs", "rw", "rw,size=1k", true),
            ("nr_inodes=1k", "tmpfs", "rw", "rw,nr_inodes=1024", true),
            ("nr_inodes=1k", "tmpfs", "rw", "rw,nr_inodes=5", false),
            ("data=journal", "ext4", "rw", "rw", true),
        ] {
            let line = format!("1 0 8:1 / /m {flags} - {kind} x {superblock}");
            let table = Table::parse(&line);
            let (mounted, _) = table.at(Path::new("/m")).unwrap();
            assert_eq!(options(declared).are_of(mounted), same, "{declared} {line}");
        }
    }

    #[test]
    fn options_of_a_remount_clear_what_was_not_declared() {
        assert_eq!(options("bind,ro").remount_text(), "remount,bind,rw,suid,dev,exec,ro");
        assert_eq!(options("defaults").remount_text(), "remount,rw,suid,dev,exec");
        let quoted = Options::parse(&["context=\"a,b\",ro".to_owned(), " noexec ".to_owned()]);
        assert_eq!(quoted.text(), "context=\"a,b\",ro,noexec");
        assert_eq!(quoted.names().collect::<Vec<_>>(), ["context", "ro", "noexec"]);
    }
}
