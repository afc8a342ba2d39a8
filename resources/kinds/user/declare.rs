//! Reads the fields of a user and reports every problem at once.

use super::{User, expiry};
use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::files::is_protected_path;
use crate::parts::FieldReader;
use crate::parts::Managed;
use crate::parts::account_tools::name_problem;
use crate::parts::field_reader::{bounded, normal_path};
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::secrets::secret_text::Secret;
use std::path::Path;
use std::sync::Arc;

/// The largest number of an account: the one above means "none" for the kernel.
pub(super) const LARGEST_ID: i64 = 4_294_967_294;

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    if let Some(problem) = name_problem(name) {
        reader.reject(Invalid::whole(problem).hint("for example eve or www-data"));
    }
    let is_present = reader.is_present();
    let number = |number: i64| u32::try_from(number).ok();
    let flag = |reader: &mut FieldReader, field| reader.fields.bool(field).unwrap_or_default();
    let gid = reader.fields.int("gid").map(|gid| gid.to_string());
    let user = User {
        name: name.to_owned(),
        is_present,
        uid: reader.fields.int("uid").and_then(number),
        shares_uid: flag(&mut reader, "allowduplicateuid"),
        group: primary_group(&mut reader).or(gid),
        append: flag(&mut reader, "append"),
        groups: supplementary_groups(&mut reader),
        left_groups: Vec::new(),
        shell: path_text("shell", &mut reader),
        home: path_text("homedir", &mut reader),
        manages_home: flag(&mut reader, "manage_home"),
        removes_home: flag(&mut reader, "remove_home"),
        comment: comment(&mut reader),
        system: flag(&mut reader, "system"),
        password: reader
            .maybe_secret("password")
            .and_then(|it| password(it, is_present, &mut reader)),
        is_locked: reader.fields.bool("lock"),
        expiry: expiry_date(&mut reader),
    };
    contradictions(&user, &mut reader);
    reader.finish(()).map(|()| Arc::new(Managed::new(user)) as Arc<dyn Resource>)
}

fn contradictions(user: &User, reader: &mut FieldReader) {
    if user.name == "root" {
        let message = ("the user root must not be removed", "omit `state`");
        reader.require(user.is_present, "state", message);
        let message = ("the uid of root is 0", "omit `uid`");
        reader.require(user.uid.is_none_or(|uid| uid == 0), "uid", message);
    }
    let message = ("`append` has no effect without `groups`", "list the groups in `groups`");
    reader.require(!user.append || user.groups.is_some(), "append", message);
    let message = ("`allowduplicateuid` has no effect without `uid`", "set `uid`");
    reader.require(!user.shares_uid || user.uid.is_some(), "allowduplicateuid", message);
    let message = ("`remove_home` needs `manage_home: true`", "set both, or omit `remove_home`");
    reader.require(!user.removes_home || user.manages_home, "remove_home", message);
    let is_protected = user.home.as_ref().is_some_and(|home| is_protected_path(Path::new(home)));
    let message =
        ("the home directory is a protected path, which is never removed", "omit `remove_home`");
    reader.require(!user.removes_home || !is_protected, "remove_home", message);
}

fn primary_group(reader: &mut FieldReader) -> Option<String> {
    let group = reader.text("group")?;
    if group.parse::<u32>().is_ok_and(|gid| i64::from(gid) <= LARGEST_ID) {
        return Some(group);
    }
    if let Some(problem) = name_problem(&group) {
        reader.reject(Invalid::field("group", problem).hint("name a group, or give its number"));
    }
    Some(group)
}

fn supplementary_groups(reader: &mut FieldReader) -> Option<Vec<String>> {
    let mut groups = reader.fields.texts("groups")?;
    groups.sort();
    groups.dedup();
    for group in &groups {
        if let Some(problem) = name_problem(group) {
            reader.reject(Invalid::field("groups", problem).hint("list the names of groups"));
        }
    }
    Some(groups)
}

/// Returns an absolute path that a row of the table can contain.
fn path_text(field: &'static str, reader: &mut FieldReader) -> Option<String> {
    let text = reader.text(field)?;
    if let Some(path) = normal_path(&text).filter(|_| !text.contains(':')) {
        path.to_str().map(ToOwned::to_owned)
    } else {
        let what = format!("expected an absolute path without colons, found {}", short(&text, 30));
        reader
            .reject(Invalid::field(field, bounded(what)).hint("for example /bin/sh or /home/eve"));
        None
    }
}

fn comment(reader: &mut FieldReader) -> Option<String> {
    let comment = reader.text("comment")?;
    let is_row = !comment.contains([':', '\t']);
    let message =
        ("a comment must not contain colons and tabs", "they separate the columns of /etc/passwd");
    reader.require(is_row, "comment", message);
    Some(comment)
}

fn expiry_date(reader: &mut FieldReader) -> Option<String> {
    let text = reader.text("expiry")?;
    let date = expiry::normal(&text);
    if date.is_none() {
        let what = format!("expected a date YYYY-MM-DD or never, found {}", short(&text, 30));
        reader.reject(Invalid::field("expiry", bounded(what)).hint("for example 2030-12-31"));
    }
    date
}

/// Returns a password hash. The text of a rejected one is never shown: it may be the password itself.
fn password(text: MaybeSecret, is_present: bool, reader: &mut FieldReader) -> Option<Secret> {
    let secret = match text {
        MaybeSecret::Shown(text) => Secret::from(text),
        MaybeSecret::Secret(secret) => secret,
        MaybeSecret::Sealed(_) => return None,
    };
    // A file that holds a hash ends with a line end.
    let secret = match secret.reveal().strip_suffix('\n') {
        Some(line) => Secret::from(line.to_owned()),
        None => secret,
    };
    let is_hash = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        let crypt = text.strip_prefix('$').is_some_and(|rest| rest.contains('$'));
        is_plain && (text == "*" || text == "!" || crypt)
    };
    if is_present && !is_hash(secret.reveal()) {
        let what = "expected a password hash like $y$… or $6$…, found another text";
        let hint = "`mkpasswd` and `openssl passwd -6` make a hash of a password";
        reader.reject(Invalid::field("password", what).hint(hint));
        return None;
    }
    Some(secret)
}
