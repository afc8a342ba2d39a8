//! Reads the fields of a pkg and reports every problem at once.

use super::name::{is_name, is_version};
use super::{Answers, Conffiles, Declared, Pkg, Together, Want};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::resource::Resource;
use crate::secrets::escape::short;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The default time to wait for another package manager.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
/// The limit of spans in seconds: ten years.
const LONGEST: i64 = 315_360_000;

pub(super) fn build(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut problems = Vec::new();
    if !is_name(name) {
        let what = format!("expected the name of a package, found `{}`", short(name, 40));
        let pinned = name.split_once('=').map(|(name, version)| (name, version.trim_matches('=')));
        let hint = match pinned.filter(|(name, version)| is_name(name) && is_version(version)) {
            Some((name, version)) => format!("write: name: {name}, state: \"{version}\""),
            None => {
                "use lower case letters, digits and +-. , and :ARCHITECTURE for a foreign package"
                    .to_owned()
            }
        };
        problems.push(Invalid::whole(what).hint(hint));
    }
    let purge = fields.bool("purge");
    let declared = Declared {
        name: name.to_owned(),
        want: want(&mut fields, &mut problems),
        hold: fields.bool("hold"),
        purge: purge.unwrap_or_default(),
        recommends: fields.bool("recommends"),
        conffiles: conffiles(&mut fields, &mut problems),
        cache_age: seconds("cache_age", &mut fields, &mut problems),
        debconf: answers(&mut fields, &mut problems),
        lock_wait: seconds("lock_wait", &mut fields, &mut problems).unwrap_or(PATIENCE),
    };
    if declared.cache_age == Some(Duration::ZERO) {
        let what = "with `cache_age: 0` each check would read the package lists again";
        problems.push(Invalid::field("cache_age", what).hint("for example cache_age: 1h"));
    }
    if declared.purge && declared.is_to_be_there() {
        let what = "`purge` needs `state: absent`";
        problems.push(Invalid::field("purge", what).hint("set `state: absent`, or omit `purge`"));
    }
    if declared.hold == Some(true) && declared.want == Want::Newest {
        let what = "a held package does not change: `state: newest` contradicts `hold: true`";
        problems.push(Invalid::field("hold", what).hint("omit one of the two fields"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let declared = Arc::new(declared);
    let alone = Together(vec![Arc::clone(&declared)]);
    Ok(Arc::new(Pkg { alone, declared, provided: OnceLock::new() }))
}

fn want(fields: &mut Fields, problems: &mut Vec<Invalid>) -> Want {
    let text = fields.text("state").unwrap_or_default();
    match text.as_str() {
        "" | "installed" => Want::Installed,
        "newest" => Want::Newest,
        // Graphs of mgmt use these words.
        "absent" | "uninstalled" => Want::Absent,
        version if is_version(version) => Want::Version(version.to_owned()),
        other => {
            let what = format!(
                "expected installed, newest, absent or a version, found `{}`",
                short(other, 30)
            );
            let hint = match other {
                "latest" => "say `newest`",
                "present" => "say `installed`",
                "removed" | "purged" => {
                    "use `absent`; `purge: true` also removes the configuration"
                }
                _ => "a version starts with a digit, as shown by `apt-cache policy`",
            };
            problems.push(Invalid::field("state", what).hint(hint));
            Want::Installed
        }
    }
}

fn conffiles(fields: &mut Fields, problems: &mut Vec<Invalid>) -> Conffiles {
    match fields.text("conffiles").as_deref() {
        None | Some("keep") => Conffiles::Keep,
        Some("replace") => Conffiles::Replace,
        Some(other) => {
            let what = format!("expected keep or replace, found `{}`", short(other, 30));
            problems.push(Invalid::field("conffiles", what).hint("dpkg runs non-interactively"));
            Conffiles::Keep
        }
    }
}

fn seconds(
    field: &'static str,
    fields: &mut Fields,
    problems: &mut Vec<Invalid>,
) -> Option<Duration> {
    let given = fields.int(field)?;
    if let Some(given) = u64::try_from(given).ok().filter(|_| given <= LONGEST) {
        return Some(Duration::from_secs(given));
    }
    let what = format!("expected seconds from 0 to {LONGEST}, found {given}");
    problems.push(Invalid::field(field, what).hint("omit the field for the default"));
    None
}

fn answers(fields: &mut Fields, problems: &mut Vec<Invalid>) -> Answers {
    let given = fields.text_map("debconf").unwrap_or_default();
    let types = ["string", "password", "boolean", "select", "multiselect", "note", "text"];
    for (question, answer) in &given {
        let is_word = |byte: u8| byte.is_ascii_graphic();
        let (kind, _) = answer.split_once(' ').unwrap_or((answer, ""));
        let plain = !answer.chars().any(char::is_control);
        if question.is_empty() || !question.bytes().all(is_word) || !types.contains(&kind) || !plain
        {
            let what =
                format!("expected QUESTION: TYPE VALUE on one line at `{}`", short(question, 30));
            let hint = format!("TYPE is one of {}", types.join(", "));
            problems.push(Invalid::field("debconf", what).hint(hint));
        }
    }
    Answers(given)
}
