//! Rows of /etc/fstab, the encoding of words that fstab and the kernel's tables share, and names of devices.

use super::text_edit::{Edited, Editor};
use crate::failure::Failure;
use crate::host::files::{Fault, Files};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The path of the table.
pub(crate) const FSTAB: &str = "/etc/fstab";

/// One row of the table, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) device: String,
    pub(crate) point: String,
    pub(crate) kind: String,
    pub(crate) options: String,
    pub(crate) freq: i64,
    pub(crate) passno: i64,
}

impl Row {
    /// Parses a line; none for a comment, an empty line, and a line with fewer than three words.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty()).map(decode);
        let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
        let options = words.next().unwrap_or_else(|| "defaults".to_owned());
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        let (freq, passno) = (number(), number());
        Some(Self { device, point, kind, options, freq, passno })
    }

    /// Returns the line of the row, without a line break.
    pub(crate) fn line(&self) -> String {
        let Self { device, point, kind, options, freq, passno } = self;
        let [device, point] = [device, point].map(|word| encode(word));
        let [kind, options] = [kind, options].map(|word| encode(word));
        format!("{device} {point} {kind} {options} {freq} {passno}")
    }

    /// Returns true if the row mounts at a path or, for swap space, names the device.
    fn is_of(&self, key: &Key) -> bool {
        match key {
            Key::Point(point) => {
                self.kind != "swap" && plain_path(&self.point) == plain_path(point)
            }
            Key::Swap(device) => self.kind == "swap" && self.device == *device,
        }
    }
}

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The mount point of a file system.
    Point(String),
    /// The device of swap space.
    Swap(String),
}

/// An editor of the row with a key.
#[derive(Clone, Debug)]
pub(crate) struct RowEditor {
    pub(crate) key: Key,
    /// The declared row; none to remove each row with the key.
    pub(crate) row: Option<Row>,
}

impl Editor for RowEditor {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let is_own =
            |line: &&str| Row::parse(without_end(line)).is_some_and(|row| row.is_of(&self.key));
        let own: Vec<&str> = text.split_inclusive('\n').filter(is_own).collect();
        let from = own.iter().map(|line| without_end(line)).collect::<Vec<_>>().join("\n");
        let Some(row) = &self.row else {
            let text = text.split_inclusive('\n').filter(|line| !is_own(line)).collect();
            return Ok(Edited { text, from, to: String::new() });
        };
        let line = match own.as_slice() {
            [] => {
                let mut text = text.to_owned();
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&row.line());
                text.push('\n');
                return Ok(Edited { text, from, to: row.line() });
            }
            [line] => *line,
            several => {
                let what = format!("expected one row of the table, found {}", several.len());
                return Err(Failure::new(what).hint(format!("keep one of these rows:\n{from}")));
            }
        };
        if Row::parse(without_end(line)).as_ref() == Some(row) {
            return Ok(Edited { text: text.to_owned(), to: from.clone(), from });
        }
        let end = line.get(without_end(line).len()..).unwrap_or_default();
        let replaced = |each: &str| {
            if is_own(&each) { format!("{}{end}", row.line()) } else { each.to_owned() }
        };
        let text = text.split_inclusive('\n').map(replaced).collect();
        Ok(Edited { text, from, to: row.line() })
    }

    fn aspect(&self) -> &'static str {
        "fstab"
    }
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the path without trailing slashes.
pub(crate) fn plain_path(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.starts_with('/') => "/",
        plain => plain,
    }
}

/// Decodes a word of fstab or of a table of the kernel, in which separators are `\` and three octal digits.
pub(crate) fn decode(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let octal = escape.get(1..4).filter(|digits| digits.bytes().all(|it| it.is_ascii_digit()));
        let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let byte = byte.filter(u8::is_ascii);
        text.push(byte.map_or('\\', char::from));
        rest = escape.get(if byte.is_some() { 4.. } else { 1.. }).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// Encodes a word for fstab. An empty word becomes `none`.
pub(crate) fn encode(word: &str) -> String {
    if word.is_empty() {
        return "none".to_owned();
    }
    let mut text = String::with_capacity(word.len());
    for (at, letter) in word.char_indices() {
        match letter {
            ' ' => text.push_str("\\040"),
            '\t' => text.push_str("\\011"),
            '\n' => text.push_str("\\012"),
            '\\' => text.push_str("\\134"),
            '#' if at == 0 => text.push_str("\\043"),
            other => text.push(other),
        }
    }
    text
}

/// The limit of links between the names of a device.
const LINKS: usize = 8;

/// Returns the final name below /dev of a device, given by path or by `UUID=`, `LABEL=`, `PARTUUID=` and the like.
/// Returns `None` if the word names no device that exists.
pub(crate) fn device_path(files: &Files, word: &str) -> Option<PathBuf> {
    let mut path = match word.split_once('=') {
        Some((tag, value)) if !word.starts_with('/') => {
            let folder = match tag {
                "UUID" => "by-uuid",
                "LABEL" => "by-label",
                "PARTUUID" => "by-partuuid",
                "PARTLABEL" => "by-partlabel",
                "ID" => "by-id",
                _ => return None,
            };
            Path::new("/dev/disk").join(folder).join(udev_name(value.trim_matches('"')))
        }
        _ if word.starts_with('/') => PathBuf::from(word),
        _ => return None,
    };
    for _ in 0..LINKS {
        let spot = files.open_entry(&path).ok()??;
        if spot.look().ok()??.kind != FileType::Symlink {
            return Some(path);
        }
        let target = spot.target().ok()?;
        let joined = path.parent()?.join(OsStr::from_bytes(&target));
        path = lexical(&joined);
    }
    None
}

/// Returns the path with `..` resolved by name.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Encodes a label as udev does in names of links.
fn udev_name(label: &str) -> String {
    let is_kept = |letter: char| {
        letter.is_ascii_alphanumeric() || "#+-.:=@_".contains(letter) || !letter.is_ascii()
    };
    let piece = |letter: char| {
        if is_kept(letter) { letter.to_string() } else { format!("\\x{:02x}", u32::from(letter)) }
    };
    label.chars().map(piece).collect()
}

/// Fails if a part of the path is a symbolic link: the kernel's tables have the final path only.
///
/// # Errors
///
/// Fails for a link, and if a directory cannot be examined.
pub(crate) fn refuse_links(files: &Files, path: &Path) -> Result<(), Failure> {
    for part in path.ancestors().filter(|part| part.parent().is_some()) {
        let look = || -> Result<bool, Fault> {
            let Some(spot) = files.open_entry(part)? else { return Ok(false) };
            Ok(spot.look()?.is_some_and(|seen| seen.kind == FileType::Symlink))
        };
        if look().map_err(|fault| files.failure(fault, part))? {
            return Err(crate::host::files::said("use", part, "a symbolic link")
                .hint("declare the path with all links resolved (realpath)"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Key, Row, RowEditor, decode, encode, udev_name};
    use crate::parts::Editor as _;
    use proptest::prelude::*;

    fn row(device: &str, point: &str) -> Row {
        Row {
            device: device.to_owned(),
            point: point.to_owned(),
            kind: "ext4".to_owned(),
            options: "noatime".to_owned(),
            freq: 0,
            passno: 2,
        }
    }

    fn editor(row: Row) -> RowEditor {
        RowEditor { key: Key::Point(row.point.clone()), row: Some(row) }
    }

    const FOREIGN: &str = "# /etc/fstab\n\nUUID=1 / ext4 errors=remount-ro 0 1\n\
        broken\n  proc\t/proc  proc   defaults\nLABEL=s none swap sw 0 0\n";

    #[test]
    fn rows_are_added_replaced_and_removed() {
        let edit = editor(row("/dev/sdb1", "/srv/a b"));
        let added = edit.edit(FOREIGN).unwrap();
        assert_eq!(added.text, format!("{FOREIGN}/dev/sdb1 /srv/a\\040b ext4 noatime 0 2\n"));
        assert_eq!(
            (added.from.as_str(), added.to.as_str()),
            ("", added.text.lines().last().unwrap())
        );
        let spaced = added.text.replace("/dev/sdb1 ", "  /dev/sdb1\t\t");
        assert_eq!(edit.edit(&spaced).unwrap().text, spaced, "blanks do not matter");
        let other = added.text.replace("noatime", "ro") + "# the end";
        let repaired = edit.edit(&other).unwrap();
        assert_eq!(repaired.text, format!("{}# the end", added.text));
        let gone = RowEditor { row: None, ..edit }.edit(&repaired.text).unwrap();
        assert_eq!((gone.text, gone.to), (format!("{FOREIGN}# the end"), String::new()));
    }

    #[test]
    fn a_slash_at_the_end_and_missing_numbers_are_the_same_row() {
        let wanted = Row { passno: 0, ..row("/dev/sdb1", "/srv") };
        let text = "/dev/sdb1 /srv/ ext4 noatime";
        let edited = editor(wanted.clone()).edit(text).unwrap();
        assert_eq!(edited.text, "/dev/sdb1 /srv ext4 noatime 0 0", "the written path is plain");
        assert_eq!(editor(wanted).edit(&edited.text).unwrap().text, edited.text);
    }

    #[test]
    fn two_rows_for_one_path_are_refused() {
        let text = "/dev/a /srv ext4 ro\n/dev/b /srv/ ext4 ro\n";
        let failure = editor(row("/dev/a", "/srv")).edit(text).unwrap_err();
        assert_eq!(failure.what, "expected one row of the table, found 2");
        let none = RowEditor { key: Key::Point("/srv".into()), row: None };
        assert_eq!(none.edit(text).unwrap().text, "");
    }

    #[test]
    fn swap_is_found_by_its_device() {
        let swap = Row { point: "none".into(), kind: "swap".into(), ..row("LABEL=s", "") };
        let edit = RowEditor { key: Key::Swap("LABEL=s".into()), row: Some(swap) };
        let edited = edit.edit(FOREIGN).unwrap();
        assert_eq!(edited.from, "LABEL=s none swap sw 0 0");
        assert_eq!(edited.to, "LABEL=s none swap noatime 0 2");
    }

    #[test]
    fn labels_are_encoded_as_udev_does() {
        assert_eq!(udev_name("EFI system/ü"), "EFI\\x20system\\x2fü");
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn words_survive(word in "\\PC+") {
            let encoded = encode(&word);
            prop_assert!(!encoded.contains([' ', '\t', '\n']) && !encoded.starts_with('#'));
            prop_assert_eq!(decode(&encoded), word);
        }

        #[test]
        fn foreign_lines_survive_byte_for_byte(
            before in prop::collection::vec("[ \t#a-z/=0-9\\\\-]{0,30}", 0..6),
            after in prop::collection::vec("[ \t#a-z/=0-9\\\\-]{0,30}", 0..6),
            ends in any::<bool>(),
        ) {
            let is_foreign = |line: &String| {
                Row::parse(line).is_none_or(|row| row.point.trim_end_matches('/') != "/mnt/Own")
            };
            prop_assume!(before.iter().chain(&after).all(is_foreign));
            let edit = editor(row("/dev/sdb1", "/mnt/Own"));
            let mut old = before.clone();
            old.push("/dev/old /mnt/Own xfs ro".to_owned());
            old.extend(after.clone());
            let end = if ends { "\n" } else { "" };
            let edited = edit.edit(&(old.join("\n") + end)).unwrap().text;
            old[before.len()] = edit.row.as_ref().unwrap().line();
            prop_assert_eq!(&edited, &(old.join("\n") + end));
            prop_assert_eq!(&edit.edit(&edited).unwrap().text, &edited);
            let foreign = [before, after].concat().join("\n") + end;
            let added = edit.edit(&foreign).unwrap().text;
            prop_assert!(added.starts_with(&foreign));
            let gone = RowEditor { row: None, ..edit }.edit(&added).unwrap().text;
            prop_assert_eq!(gone.strip_suffix('\n').unwrap_or(&gone), foreign.strip_suffix('\n').unwrap_or(&foreign));
        }
    }
}
