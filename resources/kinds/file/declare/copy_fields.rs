//! Reads the rare fields of a file: sources, trees, and the conditions of a replacement.

use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::files::{is_purgeable, printable};
use crate::kinds::file::OldContent;
use crate::kinds::file::RareFields;
use crate::kinds::file::declare::exceptions::{Claims, Pattern};
use crate::kinds::file::declare::mode::Mode;
use crate::parts::validate_command::{CANDIDATE, ValidateCommand};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The limit of fragments in a declaration; each may be a directory.
const FRAGMENTS_AT_MOST: usize = 1000;

/// The source of a copy.
pub(in crate::kinds::file) struct Origins {
    pub(in crate::kinds::file) path: PathBuf,
    /// The written path ends in a slash.
    is_directory: bool,
}

impl Origins {
    pub(in crate::kinds::file) fn source(
        fields: &mut Fields,
        place: &Place,
        wrong: &mut Vec<Invalid>,
    ) -> Option<Self> {
        let text = fields.text("source")?;
        let path = read_from("source", &text, place, wrong)?;
        Some(Self { path, is_directory: text.ends_with('/') })
    }

    pub(in crate::kinds::file) fn fragments(
        fields: &mut Fields,
        place: &Place,
        wrong: &mut Vec<Invalid>,
    ) -> Option<Vec<PathBuf>> {
        let texts = fields.texts("fragments")?;
        if texts.is_empty() || texts.len() > FRAGMENTS_AT_MOST {
            let what = format!("expected 1 to {FRAGMENTS_AT_MOST} paths, found {}", texts.len());
            wrong.push(
                Invalid::field("fragments", what).hint("a directory selects all files in it"),
            );
        }
        Some(texts.iter().filter_map(|text| read_from("fragments", text, place, wrong)).collect())
    }
}

/// Returns an absolute path without dots; relative paths start at the folder of the graph file.
fn read_from(
    field: &'static str,
    text: &str,
    place: &Place,
    wrong: &mut Vec<Invalid>,
) -> Option<PathBuf> {
    if text.is_empty() || text.contains('\0') || text.len() > 4095 {
        wrong.push(Invalid::field(field, "expected a path of 1 to 4095 bytes without NUL"));
        return None;
    }
    if text.starts_with("https://") || text.starts_with("http://") {
        let what = "expected a path of this host, found an address";
        wrong.push(Invalid::field(field, what).hint("download it with the kind `fetch`"));
        return None;
    }
    let mut plain = PathBuf::from("/");
    for component in place.base.join(text).components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(plain)
}

/// The values of the other fields.
pub(in crate::kinds::file) struct Known<'a> {
    pub(in crate::kinds::file) path: &'a Path,
    pub(in crate::kinds::file) thing: Thing,
    pub(in crate::kinds::file) has_content: bool,
    /// The file has a source or fragments.
    pub(in crate::kinds::file) is_copied: bool,
    pub(in crate::kinds::file) source: Option<&'a Origins>,
    pub(in crate::kinds::file) mode: Option<&'a Mode>,
    pub(in crate::kinds::file) has_attributes: bool,
    pub(in crate::kinds::file) old_content: OldContent,
}

/// The declared type of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) enum Thing {
    Directory,
    Absent,
    Other,
}

impl Known<'_> {
    fn is_directory(&self) -> bool {
        self.thing == Thing::Directory
    }
}

/// Reads the rare fields; none if none of them is declared.
pub(in crate::kinds::file) fn rare(
    fields: &mut Fields,
    known: &Known<'_>,
    wrong: &mut Vec<Invalid>,
) -> Option<Arc<RareFields>> {
    let recurse = fields.bool("recurse").unwrap_or(false);
    let purge = fields.bool("purge").unwrap_or(false);
    let excludes = excludes(fields, recurse || purge, wrong);
    let validate = validate(fields, known, wrong);
    let backup = backup(fields, known, recurse || purge, wrong);
    let replace = fields.bool("replace");
    if replace.is_some() && !known.has_content {
        wrong.push(
            Invalid::field("replace", "replace needs content, source or fragments")
                .hint("without content there is nothing to replace"),
        );
    }
    check_tree(known, recurse, purge, wrong);
    let warnings = find_warnings(known, recurse, purge);
    let replace = replace.unwrap_or(true);
    let old_content = known.old_content;
    let known = known.is_copied.then(Arc::default);
    let is_common = !recurse && !purge && validate.is_empty() && backup.is_none() && replace;
    let is_common = is_common && old_content == OldContent::AsModeSays;
    if is_common && excludes.is_empty() && warnings.is_empty() && known.is_none() {
        return None;
    }
    let claims = Claims::NONE;
    Some(Arc::new(RareFields {
        recurse,
        purge,
        excludes,
        validate,
        backup,
        replace,
        old_content,
        claims,
        below: None,
        warnings,
        known,
    }))
}

fn check_tree(known: &Known<'_>, recurse: bool, purge: bool, wrong: &mut Vec<Invalid>) {
    for (field, _) in [("recurse", recurse), ("purge", purge)].iter().filter(|(_, given)| *given) {
        if !known.is_directory() {
            wrong.push(
                Invalid::field(field, format!("{field} needs a directory that exists"))
                    .hint("a path with a trailing / is a directory"),
            );
            return;
        }
    }
    if let Some(source) = known.source {
        check_source(source, known, recurse, wrong);
    }
    let changes_all = purge || (recurse && known.source.is_none());
    if changes_all && !is_purgeable(known.path) {
        let shown: String = printable(known.path).chars().take(40).collect();
        wrong.push(
            Invalid::field("path", format!("{shown} is a protected directory"))
                .hint("name the subdirectories to purge or manage"),
        );
    }
}

fn check_source(source: &Origins, known: &Known<'_>, recurse: bool, wrong: &mut Vec<Invalid>) {
    if known.is_directory() && !recurse {
        wrong.push(
            Invalid::field("source", "the source of a directory needs recurse: true")
                .hint("the whole source is copied"),
        );
    }
    if source.is_directory && !known.is_directory() {
        wrong.push(
            Invalid::field("source", "expected a file, found a path with a trailing /")
                .hint("to copy a directory, end the path in / too, and set recurse: true"),
        );
    }
    let (path, target) = (&source.path, known.path);
    let within = known.is_directory() && (path.starts_with(target) || target.starts_with(path));
    if within || path == target {
        wrong.push(
            Invalid::field("source", "source and path contain each other")
                .hint("the copy would be copied again"),
        );
    }
}

fn excludes(fields: &mut Fields, is_tree: bool, wrong: &mut Vec<Invalid>) -> Vec<Pattern> {
    let Some(texts) = fields.texts("excludes") else { return Vec::new() };
    if !is_tree {
        wrong.push(Invalid::field("excludes", "excludes needs recurse or purge"));
    }
    let mut patterns = Vec::new();
    for text in &texts {
        match Pattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(what) => wrong.push(
                Invalid::field("excludes", what).hint("for example *.log, cache or cache/*.tmp"),
            ),
        }
    }
    patterns
}

fn validate(fields: &mut Fields, known: &Known<'_>, wrong: &mut Vec<Invalid>) -> ValidateCommand {
    let Some(mut argv) = fields.texts("validate") else {
        if fields.bool("in_place").unwrap_or_default() {
            let problem = Invalid::field("in_place", "there is no `validate` to run in place");
            wrong.push(problem.hint("for example validate: sshd -t"));
        }
        return ValidateCommand::NONE;
    };
    // A single text is split at white space and read by no shell.
    if let [line] = argv.as_slice() {
        argv = line.split_whitespace().map(str::to_owned).collect();
    }
    let in_place = fields.bool("in_place").unwrap_or_default();
    let mut say = |what: &str, hint: &str| {
        wrong.push(Invalid::field("validate", what).hint(hint));
    };
    if known.is_directory() || !known.has_content {
        say(
            "validate needs the content of one file",
            "validate runs before content, source or fragments are written",
        );
    }
    if argv.iter().any(|word| word.contains('\0')) {
        say("an argument cannot contain a NUL character", "omit the character");
    }
    let candidates: Vec<&String> = argv.iter().filter(|word| word.contains(CANDIDATE)).collect();
    match candidates.as_slice() {
        _ if in_place => {}
        [] => say(
            "validate needs %s: the path of the staged file",
            "for example visudo -cf %s, or [nginx, -t, -c, \"%s\"]",
        ),
        [word] if is_argument(word) => {}
        _ => say(
            "%s must be a separate argument, once, or end an argument like --config=%s",
            "in a shell script use an argument too: [sh, -c, 'visudo -cf \"$1\"', sh, \"%s\"]",
        ),
    }
    if argv.first().is_some_and(|program| program.contains(CANDIDATE)) {
        say("the staged file is not executed", "give a program, followed by %s");
    }
    ValidateCommand::new(argv, in_place)
}

/// Returns true if the path would be an argument of its own: no path is inserted into text that is read as
/// code (S-18).
fn is_argument(word: &str) -> bool {
    let Some(before) = word.strip_suffix(CANDIDATE) else { return false };
    let option = before.strip_prefix('-').and_then(|option| option.strip_suffix('='));
    let plain = |option: &str| {
        !option.is_empty()
            && option.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    before.is_empty() || option.is_some_and(plain)
}

fn backup(
    fields: &mut Fields,
    known: &Known<'_>,
    is_tree: bool,
    wrong: &mut Vec<Invalid>,
) -> Option<PathBuf> {
    let text = fields.text("backup")?;
    let path: PathBuf = Path::new(&text).components().collect();
    let plain = path.components().all(|part| part != Component::ParentDir);
    if !text.starts_with('/') || !plain || text.contains('\0') {
        wrong.push(
            Invalid::field("backup", "expected a directory, as an absolute path without ..")
                .hint("for example backup: /var/backups/steadfast, mode 0700, which must exist"),
        );
        return None;
    }
    if is_tree && path.starts_with(known.path) {
        wrong.push(
            Invalid::field("backup", "the copies would lie in the managed directory")
                .hint("use another directory, for example /var/backups/steadfast"),
        );
    }
    let replaces = known.has_content || is_tree || known.thing == Thing::Absent;
    if !replaces {
        wrong.push(
            Invalid::field("backup", "backup has no effect: nothing would be replaced or removed")
                .hint("use backup with content, source, fragments, purge or state: absent"),
        );
    }
    Some(path)
}

fn find_warnings(known: &Known<'_>, recurse: bool, purge: bool) -> Vec<Invalid> {
    let executes =
        known.mode.is_some_and(|mode| mode.is_exact() && mode.over(0, false) & 0o111 != 0);
    let mut warnings = Vec::new();
    if recurse && !purge && known.source.is_none() && !known.has_attributes {
        warnings.push(
            Invalid::field("recurse", "recurse alone manages nothing below the directory")
                .hint("add source, purge, owner, group or mode, or omit recurse"),
        );
    }
    if recurse && executes {
        warnings.push(
            Invalid::field("mode", "with recurse this makes every file below executable")
                .hint("u=rwX,go=rX sets x only on directories and executables"),
        );
    }
    warnings
}
