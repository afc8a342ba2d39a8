//! `locale`: a generated locale, and the default language of the host.
//!
//! `/etc/locale.gen` lists the locales, locale-gen makes them, and `/etc/default/locale` (elsewhere
//! `/etc/locale.conf`) names the default ones.
//!
//! Reading order: this file, then `generated.rs` (the locale in the C library).

mod generated;

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::host::Host;
use crate::host::files::Fault;
use crate::kind::{KindSpec, Restoring};
use crate::parts::FieldReader;
use crate::parts::Sequence;
use crate::parts::alternative::Alternative;
use crate::parts::assignment::Assignment;
use crate::parts::field_reader::bounded;
use crate::parts::shell_words::shell_word;
use crate::parts::{Edited, Editor, Managed, Precondition, TextEdit};
use crate::prior_state::FormerValue;
use crate::removal::Removal;
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::values::sent_values::SendSpec;
use generated::Generated;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The list of the locales to make.
pub(crate) const LIST: &str = "/etc/locale.gen";

/// The files with the default language: of Debian, and of systemd elsewhere.
pub(crate) const DEFAULTS: [&str; 2] = ["/etc/default/locale", "/etc/locale.conf"];

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "locale",
    collectible: false,
    doc: "Manages a locale of the host and the default language. The name is the locale, for example de_DE.UTF-8.",
    fields: &[
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Existence of the locale.").known_at_load()
            .default("exists"),
        FieldSpec::new(
            "charset",
            FieldType::Text,
            "Character set as in /etc/locale.gen; default: the end of the name, or ISO-8859-1.",
        ).mode(FieldMode::Value)
        .example("UTF-8")
        .receives(Receives::Shown),
        FieldSpec::new(
            "default",
            FieldType::Bool,
            "Make the locale the default language (LANG) of the host. The language stays when the resource leaves the graph.",
        ).known_at_load()
        .default("false"),
        FieldSpec::new(
            "variables",
            FieldType::TextMap,
            "Further variables of the default language, for example LC_TIME: en_GB.UTF-8; others are not managed.",
        ).mode(FieldMode::Value)
        .example("{LC_TIME: en_GB.UTF-8}")
        .receives(Receives::Shown),
    ],
    sends: &[SendSpec::new("locale", FieldType::Text, "The name of the locale.")],
    example: "locale:\n  - name: de_DE.UTF-8\n    default: true\n    variables: {LC_TIME: en_GB.UTF-8}\n",
    restore: Some(restore),
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    if !is_locale(name) {
        let what = format!("expected a locale, found {}", short(name, 40));
        reader.reject(Invalid::whole(bounded(what)).hint("for example de_DE.UTF-8 or C.UTF-8"));
    }
    let is_present = reader.is_present();
    let charset = reader.text("charset");
    if charset.is_none()
        && let Some(listed) = listed_name(name).filter(|_| !is_builtin(name))
    {
        let what = format!("{}: locale-gen knows no such character set", short(name, 40));
        reader.reject(Invalid::whole(bounded(what)).hint(format!("write {listed}")));
    }
    let charset = charset.unwrap_or_else(|| usual_charset(name).to_owned());
    let is_charset = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let message = ("expected the name of a character set", "for example UTF-8 or ISO-8859-15");
    reader.require(!charset.is_empty() && charset.bytes().all(is_charset), "charset", message);
    let is_default = reader.fields.bool("default").unwrap_or_default();
    if !is_present {
        let message = ("an absent locale cannot be the default", "omit `default`");
        reader.require(!is_default, "default", message);
        reader.exclude(&["variables"], "has no effect with `state: absent`");
    }
    if is_builtin(name) {
        let message = ("the C library contains this locale: it cannot be removed", "omit `state`");
        reader.require(is_present, "state", message);
    }
    let mut assignments: Vec<(String, String)> =
        reader.fields.text_map("variables").unwrap_or_default();
    for (key, value) in &assignments {
        let is_key =
            key == "LANGUAGE" || key.strip_prefix("LC_").is_some_and(|rest| !rest.is_empty());
        let is_plain = key.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        let message =
            ("expected variables like LC_TIME or LANGUAGE", "LANG is set by `default: true`");
        reader.require(is_key && is_plain && key != "LC_ALL", "variables", message);
        let is_value =
            value.split(':').all(is_locale) || (key == "LANGUAGE" && !value.contains('\n'));
        let message =
            ("expected locales as values of `variables`", "for example LC_TIME: en_GB.UTF-8");
        reader.require(is_value, "variables", message);
    }
    if is_default {
        assignments.insert(0, ("LANG".to_owned(), name.to_owned()));
    }
    reader.finish(())?;
    let mut elements: Vec<Arc<dyn Resource>> = Vec::new();
    let mut precondition: Option<Arc<dyn Precondition>> = None;
    if !is_builtin(name) {
        elements.push(list_entry(name, charset.clone(), is_present));
        let generated = Generated { name: name.to_owned(), charset: charset.clone(), is_present };
        precondition = Some(Arc::new(generated.clone()));
        elements.push(Arc::new(Managed::new(generated)));
    }
    elements.extend(assignments.into_iter().map(|(key, value)| default_variable(&key, &value)));
    if elements.is_empty() {
        let generated = Generated { name: name.to_owned(), charset: charset.clone(), is_present };
        elements.push(Arc::new(Managed::new(generated)));
    }
    let removal = (is_present && !is_builtin(name)).then(|| {
        let text = |text: &str| Value::Text(text.to_owned());
        Removal::new().with("state", text("absent")).with("charset", text(&charset))
    });
    let sequence = Sequence::new(elements).removed_by(removal).sending("locale", name);
    Ok(Arc::new(sequence.requiring(precondition)))
}

/// Builds the resource that generates or deletes the locale as before a change.
fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let Some(value) = values.iter().find(|value| value.field == "generated") else {
        return Err(Failure::new("the former state of the locale is not recorded"));
    };
    let is_present = value.before.is_some();
    let by_hand = if is_present {
        "locale-gen --keep-existing".to_owned()
    } else {
        format!("localedef --delete-from-archive {}", shell_word(&normal(name)))
    };
    let charset = usual_charset(name).to_owned();
    let generated = Generated { name: name.to_owned(), charset, is_present };
    Ok(Restoring { resource: Arc::new(Managed::new(generated)), by_hand })
}

/// Returns the character set of a locale that declares none: the end of its name.
pub(crate) fn usual_charset(name: &str) -> &str {
    let parts = name.split('@').next().and_then(|name| name.split_once('.'));
    parts.map_or("ISO-8859-1", |(_, charset)| charset)
}

/// Returns true if the text can be the name of a locale.
fn is_locale(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-@".contains(&byte);
    let starts_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    starts_well && text.len() <= 60 && !text.contains("..") && text.bytes().all(is_sign)
}

/// Returns the name as /etc/locale.gen writes it, for a name in the form of `locale -a`; none for other names.
fn listed_name(name: &str) -> Option<String> {
    let (language, rest) = name.split_once('.')?;
    let (charset, modifier) = match rest.split_once('@') {
        Some((charset, modifier)) => (charset, format!("@{modifier}")),
        None => (rest, String::new()),
    };
    let capitals = charset.to_ascii_uppercase();
    let listed = match capitals.strip_prefix("ISO8859") {
        _ if matches!(capitals.as_str(), "UTF8" | "UTF-8") => "UTF-8".to_owned(),
        Some(part) => format!("ISO-8859-{}", part.trim_start_matches('-')),
        None => capitals,
    };
    (listed != charset).then(|| format!("{language}.{listed}{modifier}"))
}

/// Returns true for the locales of the C library, which nothing generates.
pub(crate) fn is_builtin(name: &str) -> bool {
    matches!(normal(name).as_str(), "C" | "POSIX" | "C.utf8")
}

/// Returns the name as `locale -a` writes it: the character set in small letters and without signs.
pub(crate) fn normal(name: &str) -> String {
    let (name, modifier) = match name.split_once('@') {
        Some((name, modifier)) => (name, format!("@{modifier}")),
        None => (name, String::new()),
    };
    let Some((language, charset)) = name.split_once('.') else {
        return format!("{name}{modifier}");
    };
    let charset: String = charset
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    format!("{language}.{charset}{modifier}")
}

/// Makes the entry of the list.
fn list_entry(name: &str, charset: String, is_present: bool) -> Arc<dyn Resource> {
    let editor = Arc::new(ListEntry { name: name.to_owned(), charset, is_present });
    let part = format!("locale {}", normal(name));
    let edit = TextEdit::new(PathBuf::from(LIST), part, editor);
    Arc::new(TextEdit { create: Some(0o644), ..edit })
}

/// Makes the assignment of a variable in the file that this host uses.
fn default_variable(key: &str, value: &str) -> Arc<dyn Resource> {
    let form = |path: &str| -> Arc<dyn Resource> {
        let editor = Arc::new(Assignment { key: key.to_owned(), value: Some(value.to_owned()) });
        let edit = TextEdit::new(PathBuf::from(path), key.to_owned(), editor);
        Arc::new(TextEdit { create: Some(0o644), ..edit })
    };
    let forms = DEFAULTS.iter().map(|path| form(path)).collect();
    Arc::new(Alternative::new(forms, Box::new(choose_file)))
}

/// Chooses `/etc/locale.conf` if Debian's file is a link or the only missing one of the two.
pub(crate) fn choose_file(host: &Host) -> Result<usize, Failure> {
    let files = host.files();
    let [debian, other] = DEFAULTS.map(Path::new);
    let kind_of = |path: &Path| {
        let look = || -> Result<Option<FileType>, Fault> {
            let Some(spot) = files.open_entry(path)? else { return Ok(None) };
            Ok(spot.look()?.map(|seen| seen.kind))
        };
        look().map_err(|fault| files.failure(fault, path))
    };
    Ok(match (kind_of(debian)?, kind_of(other)?) {
        (Some(FileType::Symlink), _) | (None, Some(FileType::RegularFile)) => 1,
        _ => 0,
    })
}

/// A line of `/etc/locale.gen`. An unwanted line becomes a comment, as Debian writes it.
#[derive(Debug)]
struct ListEntry {
    name: String,
    charset: String,
    is_present: bool,
}

impl ListEntry {
    /// Returns true if the words of a line are this locale with this character set.
    fn is_own(&self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        let is_same = words.next() == Some(&self.name) && words.next() == Some(&self.charset);
        is_same && words.next().is_none_or(|word| word.starts_with('#'))
    }
}

impl Editor for ListEntry {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let entry = format!("{} {}", self.name, self.charset);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let active = lines.iter().any(|line| self.is_own(line));
        let shown = |is_listed: bool| if is_listed { entry.clone() } else { String::new() };
        let (from, to) = (shown(active), shown(self.is_present));
        if active == self.is_present {
            return Ok(Edited { text: text.to_owned(), from, to });
        }
        let mut edited = String::with_capacity(text.len() + 40);
        if !self.is_present {
            for line in lines {
                edited.push_str(if self.is_own(line) { "# " } else { "" });
                edited.push_str(line);
            }
            return Ok(Edited { text: edited, from, to });
        }
        let comment = |line: &&str| line.strip_prefix('#').is_some_and(|rest| self.is_own(rest));
        let at = lines.iter().position(comment);
        for (number, line) in lines.iter().enumerate() {
            if Some(number) == at {
                edited.push_str(line.trim_start_matches(['#', ' ']));
            } else {
                edited.push_str(line);
            }
        }
        if at.is_none() {
            let is_open = !edited.is_empty() && !edited.ends_with('\n');
            edited.push_str(if is_open { "\n" } else { "" });
            edited.push_str(&format!("{entry}\n"));
        }
        Ok(Edited { text: edited, from, to })
    }

    fn aspect(&self) -> &'static str {
        "locale.gen"
    }
}

#[cfg(test)]
mod tests {
    use super::{Editor as _, ListEntry, is_builtin, is_locale, listed_name, normal};

    fn edit(text: &str, name: &str, is_present: bool) -> String {
        let (name, charset) = (name.to_owned(), "UTF-8".to_owned());
        ListEntry { name, charset, is_present }.edit(text).expect("an edit").text
    }

    #[test]
    fn names_are_compared_as_the_c_library_writes_them() {
        assert_eq!(normal("de_DE.UTF-8"), "de_DE.utf8");
        assert_eq!(normal("de_DE.ISO-8859-15@euro"), "de_DE.iso885915@euro");
        assert_eq!(normal("de_DE@euro"), "de_DE@euro");
        assert!(
            is_builtin("C.UTF-8")
                && is_builtin("C.utf8")
                && is_builtin("C")
                && !is_builtin("de_DE")
        );
        assert!(is_locale("ca_ES.UTF-8@valencia") && is_locale("C"));
        for bad in ["", "../x", "de DE", "de/DE", "_x", "a..b"] {
            assert!(!is_locale(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_of_the_c_library_is_written_as_in_the_list() {
        for (name, listed) in [
            ("de_DE.utf8", Some("de_DE.UTF-8")),
            ("ca_ES.UTF8@valencia", Some("ca_ES.UTF-8@valencia")),
            ("de_DE.iso88591", Some("de_DE.ISO-8859-1")),
            ("de_DE.iso885915@euro", Some("de_DE.ISO-8859-15@euro")),
            ("ru_RU.koi8-r", Some("ru_RU.KOI8-R")),
            ("de_DE.UTF-8", None),
            ("de_DE.ISO-8859-15@euro", None),
            ("de_DE@euro", None),
        ] {
            assert_eq!(listed_name(name).as_deref(), listed, "{name}");
        }
    }

    #[test]
    fn a_line_of_the_list_changes_and_the_rest_stays() {
        let text = "# a list\n# de_DE.UTF-8 UTF-8\n# de_DE ISO-8859-1\nen_US.UTF-8 UTF-8\nodd";
        let with = "# a list\nde_DE.UTF-8 UTF-8\n# de_DE ISO-8859-1\nen_US.UTF-8 UTF-8\nodd";
        assert_eq!(edit(text, "de_DE.UTF-8", true), with);
        assert_eq!(edit(with, "de_DE.UTF-8", true), with);
        assert_eq!(edit(with, "de_DE.UTF-8", false), text);
        assert_eq!(edit(text, "fr_FR.UTF-8", true), format!("{text}\nfr_FR.UTF-8 UTF-8\n"));
        assert_eq!(edit(text, "fr_FR.UTF-8", false), text);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn foreign_lines_survive(text in "((# ?)?(a_A|b_B|x y)( UTF-8)?\n){0,8}") {
            let foreign = |text: &str| -> Vec<String> {
                let is_own = |line: &&str| line.trim_start_matches(['#', ' ']).starts_with("a_A UTF-8");
                text.lines().filter(|line| !is_own(line)).map(ToOwned::to_owned).collect()
            };
            for is_present in [true, false] {
                let edited = edit(&text, "a_A", is_present);
                proptest::prop_assert_eq!(foreign(&edited), foreign(&text));
                proptest::prop_assert_eq!(edit(&edited, "a_A", is_present), edited);
            }
        }
    }
}
