//! Names of kernel parameters, and the line of a parameter in a file of /etc/sysctl.d.

use crate::failure::Failure;
use crate::parts::{Edited, Editor};
use std::path::PathBuf;

/// The parameters of modules, by the beginnings of their paths.
const MODULES: &[(&str, &str)] = &[
    ("net/bridge", "br_netfilter"),
    ("net/netfilter", "nf_conntrack"),
    ("net/nf_conntrack_max", "nf_conntrack"),
    ("net/ipv4/vs", "ip_vs"),
    ("net/mpls", "mpls_router"),
    ("net/sctp", "sctp"),
    ("net/rds", "rds"),
    ("fs/nfs", "lockd"),
    ("sunrpc", "sunrpc"),
];

/// The name of a kernel parameter: its path below /proc/sys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Parses a name as sysctl(8) does: if the first separator is a dot, then `.` separates and `/` stands for a dot;
    /// otherwise `/` separates and dots belong to the names.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let swaps = text.find(['.', '/']).is_some_and(|at| text.as_bytes().get(at) == Some(&b'.'));
        let swap = |letter| match letter {
            '.' if swaps => '/',
            '/' if swaps => '.',
            other => other,
        };
        let path: String = text.chars().map(swap).collect();
        let is_name = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "._-:@+".contains(letter))
        };
        let is_valid = path.contains('/') && path.split('/').all(is_name);
        is_valid.then_some(Self(path))
    }

    /// Returns the file of the parameter.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from("/proc/sys").join(&self.0)
    }

    /// Returns the module that has the parameter, for modules that are loaded on demand.
    pub(super) fn usual_module(&self) -> Option<&'static str> {
        let is_below = |(start, _): &&(&str, &str)| {
            self.0.strip_prefix(*start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        MODULES.iter().find(is_below).map(|(_, module)| *module)
    }

    /// Returns the name for files and messages: with dots, or with slashes if a part contains a dot.
    pub(super) fn text(&self) -> String {
        if self.0.contains('.') { self.0.clone() } else { self.0.replace('/', ".") }
    }
}

/// An editor of the line `name = value`.
#[derive(Clone, Debug)]
pub(super) struct LineEditor {
    pub(super) key: Key,
    /// The declared value; none to remove the line.
    pub(super) value: Option<String>,
}

impl LineEditor {
    /// Returns the value of a line of this parameter. A `-` before the name ignores failures.
    fn value_of<'l>(&self, line: &'l str) -> Option<&'l str> {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.strip_prefix('-').unwrap_or(line).split_once('=')?;
        (Key::parse(name.trim()).as_ref() == Some(&self.key)).then(|| value.trim())
    }
}

impl Editor for LineEditor {
    /// Keeps the last line of the parameter, which is the one that counts, and removes the others.
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let last = lines.iter().rposition(|line| self.value_of(line).is_some());
        let from = last.and_then(|at| lines.get(at)).map_or("", |line| line.trim());
        let Some(value) = &self.value else {
            let foreign = lines.iter().filter(|line| self.value_of(line).is_none());
            let text = foreign.copied().collect();
            return Ok(Edited { text, from: from.to_owned(), to: String::new() });
        };
        let own = format!("{} = {value}", self.key.text());
        let mut new = String::with_capacity(text.len() + own.len());
        let mut to = own.clone();
        for (at, line) in lines.iter().enumerate() {
            match self.value_of(line) {
                None => new.push_str(line),
                Some(present) if Some(at) == last => {
                    if is_same_value(present, value) {
                        new.push_str(line);
                        from.clone_into(&mut to);
                    } else {
                        new.push_str(&own);
                        new.push_str(line.get(line.trim_end().len()..).unwrap_or_default());
                    }
                }
                Some(_) => {}
            }
        }
        if last.is_none() {
            if !new.is_empty() && !new.ends_with('\n') {
                new.push('\n');
            }
            new.push_str(&own);
            new.push('\n');
        }
        Ok(Edited { text: new, from: from.to_owned(), to })
    }

    fn aspect(&self) -> &'static str {
        "line"
    }
}

/// Returns true if the values are equal word by word: the kernel prints lists with tabs.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::{Key, LineEditor};
    use crate::parts::Editor as _;
    use proptest::prelude::*;

    fn editor(value: Option<&str>) -> LineEditor {
        let key = Key::parse("net.ipv4.ip_forward").unwrap();
        LineEditor { key, value: value.map(ToOwned::to_owned) }
    }

    #[test]
    fn names_with_dots_and_with_slashes_are_one() {
        for (name, path, text) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            ("net/ipv4/ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            (
                "net.ipv4.conf.eth0/100.rp_filter",
                "net/ipv4/conf/eth0.100/rp_filter",
                "net/ipv4/conf/eth0.100/rp_filter",
            ),
            (
                "net/ipv4/conf/eth0.100/rp_filter",
                "net/ipv4/conf/eth0.100/rp_filter",
                "net/ipv4/conf/eth0.100/rp_filter",
            ),
        ] {
            let key = Key::parse(name).unwrap();
            assert_eq!(key.path(), std::path::Path::new("/proc/sys").join(path), "{name}");
            assert_eq!(key.text(), text);
            assert_eq!(Key::parse(&key.text()), Some(key));
        }
        for wrong in
            ["", "kernel", "/proc/sys/kernel/panic", "net..ipv4", "net/../x", "a.*", "a b.c"]
        {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_is_added_kept_replaced_and_removed() {
        let edit = editor(Some("1"));
        let text = "# net.ipv4.ip_forward = 1\n-kernel.panic=10";
        let added = edit.edit(text).unwrap();
        assert_eq!(added.text, format!("{text}\nnet.ipv4.ip_forward = 1\n"));
        for same in ["-net/ipv4/ip_forward=1", "  net.ipv4.ip_forward =   1  \n"] {
            assert_eq!(edit.edit(same).unwrap().text, same);
        }
        let twice = "net.ipv4.ip_forward=1\n; a\nnet/ipv4/ip_forward = 0\r\nb=1\n";
        let edited = edit.edit(twice).unwrap();
        assert_eq!(edited.text, "; a\nnet.ipv4.ip_forward = 1\r\nb=1\n");
        assert_eq!(
            (edited.from.as_str(), edited.to.as_str()),
            ("net/ipv4/ip_forward = 0", "net.ipv4.ip_forward = 1")
        );
        assert_eq!(editor(None).edit(twice).unwrap().text, "; a\nb=1\n");
        assert_eq!(editor(None).edit("").unwrap().text, "");
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn foreign_lines_survive_byte_for_byte(
            before in "([ -~]{0,20}\n){0,5}",
            after in "([ -~]{0,20}\n){0,5}",
            value in "[0-9]{1,3}",
        ) {
            let edit = editor(Some(&value));
            prop_assume!(before.lines().chain(after.lines()).all(|line| edit.value_of(line).is_none()));
            let edited = edit.edit(&format!("{before}net.ipv4.ip_forward=x\n{after}")).unwrap().text;
            prop_assert_eq!(&edited, &format!("{before}net.ipv4.ip_forward = {value}\n{after}"));
            prop_assert_eq!(&edit.edit(&edited).unwrap().text, &edited);
            prop_assert_eq!(editor(None).edit(&edited).unwrap().text, before + &after);
        }
    }
}
