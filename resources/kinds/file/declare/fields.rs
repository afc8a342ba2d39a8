//! Builds a file resource from the fields of the graph and reports every problem at once.

use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::files::{is_protected_path, printable};
use crate::kinds::file::File;
use crate::kinds::file::OldContent;
use crate::kinds::file::Shape;
use crate::kinds::file::declare::content::Body;
use crate::kinds::file::declare::copy_fields;
use crate::kinds::file::declare::copy_fields::{Known, Origins, Thing};
use crate::kinds::file::declare::mode::Mode;
use crate::kinds::file::extended::{self, ExtendedFields};
use crate::kinds::file::hard_link;
use crate::resource::Resource;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub(in crate::kinds::file) fn build(
    name: &str,
    mut fields: Fields,
    place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    if fields.has("hardlink") {
        return hard_link::build(name, fields);
    }
    let mut wrong = Vec::new();
    let force = fields.bool("force").unwrap_or(false);
    let extended = extended::read_fields(&mut fields, force, &mut wrong);
    let path = compose(name, &mut fields, &mut wrong).and_then(|text| plain(&text, &mut wrong));
    let (path, is_directory) = path.unwrap_or_default();
    let state = state(&mut fields, &mut wrong);
    let content = fields.words("content");
    let symlink = fields.text("symlink");
    if let Some(target) = &symlink {
        check_target(target, &path, &mut wrong);
    }
    let source = Origins::source(&mut fields, place, &mut wrong);
    let fragments = Origins::fragments(&mut fields, place, &mut wrong);
    let owner = account("owner", &mut fields, &mut wrong);
    let group = account("group", &mut fields, &mut wrong);
    let mode = mode(&mut fields, &mut wrong);
    let is_secret = matches!(content, Some(MaybeSecret::Secret(_) | MaybeSecret::Sealed(_)));
    let declared_sensitive = fields.bool("sensitive");
    let sensitive = declared_sensitive.unwrap_or(false) || is_secret;
    let is_open = declared_sensitive == Some(false) && !is_secret;
    let mut given = Given { state, is_directory, content, symlink, source, fragments };
    let (mut owner, mut group, mut mode) = (owner, group, mode);
    if state == State::Absent {
        // These fields describe a later state of the file: they are validated and ignored now.
        given = Given { content: None, symlink: None, source: None, fragments: None, ..given };
        (owner, group, mode) = (None, None, None);
        fields.keep_only(&["force", "backup"]);
    }
    given.check(&mut wrong);
    let extended = if state == State::Absent { ExtendedFields::default() } else { extended };
    if extended.is_given() && given.symlink.is_some() {
        let problem = Invalid::field("symlink", "a link has no access list and no attributes");
        wrong.push(problem.hint("declare them for the target file"));
    }
    if extended.has_capabilities() && is_directory {
        let problem = Invalid::field("capabilities", "a directory has no capabilities");
        wrong.push(problem.hint("a path with a trailing / is a directory"));
    }
    let no_attributes = owner.is_none() && group.is_none() && mode.is_none();
    if mode.is_some() && given.symlink.is_some() {
        wrong.push(
            Invalid::field("mode", "a link has no mode of its own")
                .hint("omit `mode`, or declare the mode of the target file"),
        );
    }
    if !is_directory && state != State::Absent {
        check_group_program((owner.as_deref(), mode.as_ref()), &mut wrong);
    }
    let known = Known {
        path: &path,
        thing: match state {
            State::Absent => Thing::Absent,
            State::Exists if is_directory => Thing::Directory,
            State::Exists | State::Undefined => Thing::Other,
        },
        has_content: given.has_content(),
        is_copied: given.source.is_some() || given.fragments.is_some(),
        source: given.source.as_ref(),
        mode: mode.as_ref(),
        has_attributes: !no_attributes,
        old_content: if is_open { OldContent::Recorded } else { OldContent::AsModeSays },
    };
    let rare = copy_fields::rare(&mut fields, &known, &mut wrong);
    let shape = given.shape();
    if !path.as_os_str().is_empty() {
        check_protected(&path, &shape, &mut wrong);
    }
    if !wrong.is_empty() {
        let denies_others = |mode: &Mode| mode.over(0o644, false) & 0o004 == 0;
        if sensitive || mode.as_ref().is_some_and(denies_others) {
            hide_content(&mut wrong);
        }
        return Err(wrong);
    }
    let is_listed = extended.has_list();
    let file =
        File { path: path.clone(), shape, owner, group, mode, force, sensitive, is_listed, rare };
    Ok(extended.around(Arc::new(file), &path))
}

/// Rejects a program with the set-group-ID bit that belongs to a user: the user can write another program into it, and
/// gets the rights of the group.
fn check_group_program((owner, mode): (Option<&str>, Option<&Mode>), wrong: &mut Vec<Invalid>) {
    let is_roots = owner.is_none_or(|owner| matches!(owner, "root" | "0"));
    let is_program = mode.is_some_and(|mode| mode.over(0, false) & 0o2010 == 0o2010);
    if is_program && !is_roots {
        let what = "the owner could write a program of their own with the rights of the group";
        wrong.push(
            Invalid::field("mode", what).hint("owner: root, or a mode without s for the group"),
        );
    }
}

/// Hides the declared line of problems with a secret content, because a problem is shown with its line (S-6).
fn hide_content(wrong: &mut [Invalid]) {
    for invalid in wrong.iter_mut().filter(|invalid| invalid.field == Some("content")) {
        invalid.field = None;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Exists,
    Absent,
    Undefined,
}

/// The given fields that describe the object itself.
struct Given {
    state: State,
    is_directory: bool,
    content: Option<MaybeSecret>,
    symlink: Option<String>,
    source: Option<Origins>,
    fragments: Option<Vec<PathBuf>>,
}

impl Given {
    /// Returns the fields that determine the type or the content, with a flag for each given one.
    fn fields(&self) -> [(&'static str, bool); 4] {
        [
            ("content", self.content.is_some()),
            ("symlink", self.symlink.is_some()),
            ("source", self.source.is_some()),
            ("fragments", self.fragments.is_some()),
        ]
    }

    fn has_content(&self) -> bool {
        self.content.is_some() || self.source.is_some() || self.fragments.is_some()
    }

    fn check(&self, wrong: &mut Vec<Invalid>) {
        let given = self.fields();
        let mut given = given.into_iter().filter(|(_, given)| *given).map(|(field, _)| field);
        let first = given.next();
        for other in given.clone() {
            let first = first.unwrap_or_default();
            let hint = if other == "symlink" || first == "symlink" {
                "a link has no content"
            } else {
                "declare only one of the two fields"
            };
            wrong.push(
                Invalid::field(first, format!("expected {first} or {other}, found both"))
                    .hint(hint),
            );
        }
        for field in first.into_iter().chain(given) {
            self.check_one(field, wrong);
        }
    }

    fn check_one(&self, field: &'static str, wrong: &mut Vec<Invalid>) {
        if self.is_directory && field != "source" {
            wrong.push(
                Invalid::field(field, format!("a directory has no {field}"))
                    .hint("a path with a trailing / is a directory: omit the / for a file"),
            );
        }
        match self.state {
            State::Exists | State::Absent => {}
            State::Undefined => wrong.push(
                Invalid::field(field, format!("{field} needs state: exists"))
                    .hint("state: undefined manages only the attributes of an existing object"),
            ),
        }
    }

    fn shape(self) -> Shape {
        match (self.state, self.symlink) {
            (State::Absent, _) => Shape::Absent,
            (State::Undefined, _) => Shape::IfThere { is_directory: self.is_directory },
            (State::Exists, Some(target)) => Shape::Link(target),
            (State::Exists, None) if self.is_directory => {
                Shape::Directory(self.source.map(|source| source.path))
            }
            (State::Exists, None) => {
                Shape::Regular(match (self.content, self.source, self.fragments) {
                    (Some(MaybeSecret::Shown(text)), _, _) => Body::Text(text),
                    (Some(MaybeSecret::Secret(text)), _, _) => Body::Secret(text),
                    (Some(MaybeSecret::Sealed(sealed)), _, _) => Body::Sealed(sealed),
                    (None, Some(source), _) => Body::Source(source.path),
                    (None, None, Some(paths)) => Body::Fragments(paths),
                    (None, None, None) => Body::Any,
                })
            }
        }
    }
}

/// Returns the path as text: `path` or the name, with parts replaced by `dirname` and `basename`.
fn compose(
    name: &str,
    fields: &mut Fields,
    wrong: &mut Vec<Invalid>,
) -> Option<(String, &'static str)> {
    let path = fields.text("path");
    let (dirname, basename) = (fields.text("dirname"), fields.text("basename"));
    if dirname.is_none() && basename.is_none() {
        let text = path.unwrap_or_else(|| name.to_owned());
        if !text.starts_with('/') {
            wrong.push(
                Invalid::field("path", "expected an absolute path, found a relative one")
                    .hint("write path: /…, or give the resource an absolute path as its name"),
            );
            return None;
        }
        return Some((text, "path"));
    }
    let whole = path.unwrap_or_else(|| name.to_owned());
    let (above, last) = split(&whole);
    let before = wrong.len();
    let dirname = dirname.unwrap_or_else(|| above.to_owned());
    if !dirname.starts_with('/') || !dirname.ends_with('/') {
        wrong.push(
            Invalid::field("dirname", "expected an absolute path that ends in /")
                .hint("write dirname: /etc/"),
        );
    }
    let basename = basename.unwrap_or_else(|| last.to_owned());
    if basename.is_empty() || basename.starts_with('/') {
        wrong.push(
            Invalid::field("basename", "expected a name that does not start with /")
                .hint("write basename: motd, and the directory in dirname"),
        );
    }
    (wrong.len() == before).then(|| (format!("{dirname}{basename}"), "basename"))
}

/// Splits a path before its last part: `/etc/motd` into `/etc/` and `motd`, `/etc/ssh/` into `/etc/` and
/// `ssh/`.
fn split(path: &str) -> (&str, &str) {
    let body = path.trim_end_matches('/');
    let at = body.rfind('/').map_or(0, |at| at + 1);
    path.split_at_checked(at).unwrap_or(("", path))
}

/// Returns the path without doubled slashes and dots, and a flag for a directory.
fn plain(
    (text, field): &(String, &'static str),
    wrong: &mut Vec<Invalid>,
) -> Option<(PathBuf, bool)> {
    if text.contains('\0') {
        wrong.push(Invalid::field(field, "a path cannot contain a NUL character"));
        return None;
    }
    let path = Path::new(text);
    if path.components().any(|component| component == Component::ParentDir) {
        wrong.push(
            Invalid::field(field, "expected a path without .. in it")
                .hint("write the resolved path"),
        );
        return None;
    }
    if text.len() > 4095 || path.components().any(|part| part.as_os_str().len() > 255) {
        wrong.push(Invalid::field(field, "expected at most 4095 bytes, and 255 in each name"));
        return None;
    }
    // components() drops the parts that change nothing.
    Some((path.components().collect(), text.ends_with('/') || text.ends_with("/.")))
}

fn state(fields: &mut Fields, wrong: &mut Vec<Invalid>) -> State {
    match fields.text("state").as_deref() {
        None | Some("exists") => State::Exists,
        Some("absent") => State::Absent,
        Some("undefined") => State::Undefined,
        Some(other) => {
            let hint = match other {
                "directory" | "dir" => "a directory is a path that ends in /; omit `state`",
                "link" | "symlink" => "a link has `symlink: TARGET`; omit `state`",
                "hard" => "a hard link has `hardlink: PATH`; omit `state`",
                "file" | "touch" => "a file without `content` is made empty; omit `state`",
                _ => "use exists instead of present",
            };
            let what = "expected exists, absent or undefined";
            wrong.push(Invalid::field("state", what).hint(hint));
            State::Exists
        }
    }
}

fn check_target(target: &str, path: &Path, wrong: &mut Vec<Invalid>) {
    let problem = if target.is_empty() {
        "expected the target of the link, found nothing"
    } else if target.contains('\0') {
        "a path cannot contain a NUL character"
    } else if target.len() > 4095 {
        "expected at most 4095 bytes"
    } else if path.parent().is_some_and(|above| above.join(target) == path) {
        "the link would point to itself"
    } else {
        return;
    };
    wrong.push(Invalid::field("symlink", problem));
}

fn account(field: &'static str, fields: &mut Fields, wrong: &mut Vec<Invalid>) -> Option<String> {
    let text = fields.text(field)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    // The largest number means "no change" to the kernel.
    let fits = text.parse::<u32>().is_ok_and(|number| number != u32::MAX);
    let is_name = text.len() <= 64
        && !text.starts_with(['-', '+'])
        && !text.contains([':', ',', '/'])
        && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    if text.is_empty() || (is_number && !fits) || (!is_number && !is_name) {
        let both = text.split_once([':', '.']).filter(|(owner, group)| {
            let is_word = |word: &str| {
                word.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
            };
            !owner.is_empty() && !group.is_empty() && is_word(owner) && is_word(group)
        });
        let hint = match both {
            Some((owner, group)) => format!("write: owner: {owner}, group: {group}"),
            None => "for example root or 0".to_owned(),
        };
        wrong.push(Invalid::field(field, "expected a name or a number").hint(hint));
        return None;
    }
    Some(text)
}

fn mode(fields: &mut Fields, wrong: &mut Vec<Invalid>) -> Option<Mode> {
    match Mode::parse(&fields.text("mode")?) {
        Ok(mode) => Some(mode),
        Err((what, hint)) => {
            wrong.push(Invalid::field("mode", what).hint(hint));
            None
        }
    }
}

/// Rejects a declaration that would have to remove a directory that the host cannot do without (S-15).
fn check_protected(path: &Path, shape: &Shape, wrong: &mut Vec<Invalid>) {
    let removes = matches!(shape, Shape::Absent | Shape::Regular(_));
    if removes && is_protected_path(path) {
        let shown: String = printable(path).chars().take(40).collect();
        wrong.push(
            Invalid::field("path", format!("{shown} is a protected directory"))
                .hint("to manage its attributes, write the path with a trailing /"),
        );
    }
}
