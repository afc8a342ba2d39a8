//! Undo: builds the user with the values from before a change.

use super::User;
use super::home::remove_unused_home;
use crate::failure::Failure;
use crate::kind::Restoring;
use crate::parts::account_tools::name_problem;
use crate::parts::field_reader::normal_path;
use crate::parts::shell_words::{shell_word, single_quoted};
use crate::parts::{Managed, Sequence};
use crate::prior_state::{After, FormerValue};
use crate::resource::Resource;
use std::sync::Arc;

/// Builds the user that has its values from before a change.
///
/// # Errors
///
/// Returns the reason if the user cannot have these values again.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    if let Some(problem) = name_problem(name) {
        return Err(Failure::new(problem));
    }
    let moved = |field: &str| values.iter().find(|it| it.field == field && it.is_moved());
    let before = |field: &str| moved(field).and_then(|value| value.before.clone());
    if let Some(state) = moved("state") {
        return if state.before.is_none() {
            let user = User { name: name.to_owned(), ..User::default() };
            let likely_home = user.likely_home();
            let resource: Arc<dyn Resource> = Arc::new(Managed::new(user));
            let by_hand = format!("userdel {}", shell_word(name));
            if moved("home").is_none() {
                return Ok(Restoring { resource, by_hand });
            }
            let home = values.iter().find(|it| it.field == "homedir");
            let home = home.and_then(|it| match &it.after {
                After::Value(home) => normal_path(home),
                After::Unknown | After::Absent => None,
            });
            let home = remove_unused_home(name, &home.unwrap_or(likely_home))?;
            let resource = Arc::new(Sequence::new(vec![home, resource]));
            Ok(Restoring { resource, by_hand: by_hand.replace("userdel", "userdel --remove") })
        } else {
            let what = "the user was removed, and the history has no password and no groups";
            Err(Failure::new(what).hint("declare the user again, or use a backup of /etc"))
        };
    }
    let mut user = User { name: name.to_owned(), is_present: true, ..User::default() };
    user.uid = before("uid").and_then(|uid| uid.parse().ok());
    user.group = before("group");
    user.shell = before("shell");
    user.home = before("homedir");
    user.comment = before("comment");
    user.expiry = before("expiry");
    user.is_locked = before("lock").map(|lock| lock == "locked");
    user.groups = before("groups").map(|groups| list(&groups));
    if let Some(value) = moved("memberships") {
        let former = list(value.before.as_deref().unwrap_or_default());
        if let After::Value(after) = &value.after {
            user.left_groups = list(after).into_iter().filter(|it| !former.contains(it)).collect();
        }
        (user.groups, user.append) = (Some(former), true);
    }
    let options = [
        ("--uid", before("uid")),
        ("--gid", before("group")),
        ("--groups", before("groups")),
        ("--shell", before("shell")),
        ("--home", before("homedir")),
        ("--comment", before("comment")),
        ("--expiredate", before("expiry").map(|date| date.replace("never", ""))),
    ];
    let mut by_hand = "usermod".to_owned();
    for (option, value) in options.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        by_hand.push_str(&format!(" {option} {}", single_quoted(&value)));
    }
    if let Some(is_locked) = user.is_locked {
        by_hand.push_str(if is_locked { " --lock" } else { " --unlock" });
    }
    by_hand.push_str(&format!(" {}", shell_word(name)));
    if !user.left_groups.is_empty() {
        let leave =
            |group: &String| format!("gpasswd --delete {} {}", shell_word(name), shell_word(group));
        let leaving: Vec<String> = user.left_groups.iter().map(leave).collect();
        by_hand = leaving.join(" && ");
    }
    Ok(Restoring { resource: Arc::new(Managed::new(user)), by_hand })
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
}
