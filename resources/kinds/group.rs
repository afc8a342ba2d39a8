//! `group`: a group of `/etc/group`, changed by groupadd, groupmod, gpasswd and groupdel.
//!
//! The kind must not examine undeclared aspects: without `members`, the members belong to others.

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::own_gid;
use crate::host::tables::AccountTables;
use crate::kind::{KindSpec, Restoring};
use crate::parts::FieldReader;
use crate::parts::account_tools::{name_problem, run_tool, words};
use crate::parts::field_reader::bounded;
use crate::parts::shell_words::{shell_word, single_quoted};
use crate::parts::{Managed, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The largest number of a group: the one above means "none" for the kernel.
const LARGEST_ID: i64 = 4_294_967_294;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "group",
    collectible: false,
    doc: "Manages a local group and its members. The name is the name of the group.",
    fields: &[
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Existence of the group.").known_at_load()
            .default("exists"),
        FieldSpec::new(
            "gid",
            FieldType::Int,
            "Number of the group; default: the next free one at creation. A change also changes the primary group of its users, and no files.",
        )
        .range(0, LARGEST_ID)
        .example("2000")
        .receives(Receives::Shown),
        FieldSpec::new(
            "system",
            FieldType::Bool,
            "Take a number for system groups at creation; an existing group is not changed.",
        )
        .default("false").receives(Receives::Shown),
        FieldSpec::new(
            "members",
            FieldType::Texts,
            "All users with this supplementary group; others are taken out. Default: not managed.",
        ).mode(FieldMode::Value)
        .example("[eve, bob]")
        .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("gid", FieldType::Int, "The number of the group."),
        SendSpec::new("members", FieldType::Texts, "The members of the group, sorted."),
    ],
    example: "group:\n  - name: web\n    gid: 2000\n    members: [www-data]\n",
    restore: Some(restore),
    build,
};

/// A group as declared.
#[derive(Debug)]
struct Group {
    name: String,
    is_present: bool,
    gid: Option<u32>,
    system: bool,
    /// The members, sorted.
    members: Option<Vec<String>>,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    if let Some(problem) = name_problem(name) {
        reader.reject(Invalid::whole(problem).hint("for example web or ssl-cert"));
    }
    let is_present = reader.is_present();
    if !is_present && name == "root" {
        reader.reject(Invalid::field("state", "the group root must not be removed"));
    }
    let gid = reader.fields.int("gid").and_then(|gid| u32::try_from(gid).ok());
    if name == "root" && gid.is_some_and(|gid| gid != 0) {
        reader.reject(Invalid::field("gid", "the gid of the group root is 0"));
    }
    let system = reader.fields.bool("system").unwrap_or_default();
    let members = reader.fields.texts("members").map(|members| sorted(members, &mut reader));
    reader.finish(()).map(|()| {
        let group = Group { name: name.to_owned(), is_present, gid, system, members };
        Arc::new(Managed::new(group)) as Arc<dyn Resource>
    })
}

fn sorted(mut members: Vec<String>, reader: &mut FieldReader) -> Vec<String> {
    members.sort();
    members.dedup();
    for member in &members {
        if let Some(problem) = name_problem(member) {
            reader.reject(Invalid::field("members", problem).hint("list the names of users"));
        }
    }
    members
}

/// Builds the group that restores the values from before a change.
fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    if let Some(problem) = name_problem(name) {
        return Err(Failure::new(problem));
    }
    let moved = |field: &str| values.iter().find(|it| it.field == field && it.is_moved());
    let word = shell_word(name);
    let mut group =
        Group { name: name.to_owned(), is_present: true, gid: None, system: false, members: None };
    if moved("state").is_some_and(|state| state.before.is_none()) {
        group.is_present = false;
        let resource = Arc::new(Managed::new(group));
        return Ok(Restoring { resource, by_hand: format!("groupdel {word}") });
    }
    let mut by_hand = Vec::new();
    if moved("state").is_some() {
        by_hand.push(format!("groupadd {word}"));
    }
    if let Some(gid) = moved("gid").and_then(|gid| gid.before.as_deref()) {
        group.gid = gid.parse().ok();
        by_hand.push(format!("groupmod --gid {} {word}", shell_word(gid)));
    }
    if let Some(members) = moved("members").and_then(|members| members.before.as_deref()) {
        let list = members.split(',').filter(|member| !member.is_empty());
        group.members = Some(list.map(ToOwned::to_owned).collect());
        by_hand.push(format!("gpasswd --members {} {word}", single_quoted(members)));
    }
    let resource = Arc::new(Managed::new(group));
    Ok(Restoring { resource, by_hand: by_hand.join(" && ") })
}

impl Group {
    async fn change(
        &self,
        host: &Host,
        permit: &Permit,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        let tables = host.account_tables(false).await.map_err(WriteFailure::untouched)?;
        let differs = |aspect: &str| differing.contains(&aspect);
        let name = self.name.as_str();
        if !self.is_present {
            self.guard(&tables).map_err(WriteFailure::untouched)?;
            return run_tool(host, permit, words(&["groupdel", name]), None).await;
        }
        if differs("gid") {
            self.guard_number(&tables).map_err(WriteFailure::untouched)?;
        }
        let gid = self.gid.map(|gid| gid.to_string());
        let mut touched = false;
        if differs("state") {
            let mut argv = words(&["groupadd"]);
            argv.extend(self.system.then(|| "--system".to_owned()));
            argv.extend(gid.iter().flat_map(|gid| words(&["--gid", gid])));
            argv.push(name.to_owned());
            run_tool(host, permit, argv, None).await?;
            touched = true;
        } else if differs("gid")
            && let Some(gid) = &gid
        {
            run_tool(host, permit, words(&["groupmod", "--gid", gid, name]), None).await?;
            touched = true;
        }
        let is_filled = self.members.as_ref().is_some_and(|it| !it.is_empty());
        if differs("members") && (is_filled || !differs("state")) {
            self.change_members(&tables, host, permit).await.map_err(|it| it.after(touched))?;
        }
        Ok(())
    }

    async fn change_members(
        &self,
        tables: &AccountTables,
        host: &Host,
        permit: &Permit,
    ) -> Result<(), WriteFailure> {
        let members = self.members.as_deref().unwrap_or_default();
        if let Some(member) = members.iter().find(|member| tables.passwd.get(member).is_none()) {
            let what = bounded(format!("the user {member} of `members` does not exist"));
            let hint = tables.broken_lines().unwrap_or_else(|| {
                "declare the user; a user whose primary group this is needs no membership"
                    .to_owned()
            });
            return Err(WriteFailure::untouched(Failure::new(what).hint(hint)));
        }
        let list = members.join(",");
        run_tool(host, permit, words(&["gpasswd", "--members", &list, &self.name]), None).await
    }

    /// Refuses the removal of a group that the host or this process cannot do without.
    fn guard(&self, tables: &AccountTables) -> Result<(), Failure> {
        let Some(row) = tables.group.get(&self.name) else { return Ok(()) };
        if row.gid == 0 || row.gid == own_gid() {
            let what =
                bounded(format!("the group {} must not be removed: it is in use", self.name));
            let hint = "root's group and the group of this process are never removed";
            return Err(Failure::new(what).hint(hint));
        }
        if let Some(user) = tables.passwd.with_group(row.gid) {
            let what =
                bounded(format!("the group {} is the primary group of {}", self.name, user.name));
            return Err(Failure::new(what).hint("remove the user or change its group first"));
        }
        Ok(())
    }

    fn guard_number(&self, tables: &AccountTables) -> Result<(), Failure> {
        let owner = self.gid.and_then(|gid| tables.group.by_gid(gid));
        match owner.filter(|owner| owner.name != self.name) {
            Some(owner) => {
                let what =
                    bounded(format!("the gid {} belongs to the group {}", owner.gid, owner.name));
                Err(Failure::new(what)
                    .hint("choose another `gid`, or change the other group first"))
            }
            None => Ok(()),
        }
    }
}

impl ValueSet for Group {
    fn wanted(&self) -> FieldValues {
        if !self.is_present {
            return vec![("state", None)];
        }
        let mut values = vec![("state", Some("exists".to_owned()))];
        values.extend(self.gid.map(|gid| ("gid", Some(gid.to_string()))));
        values.extend(self.members.as_ref().map(|members| ("members", Some(members.join(",")))));
        values
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let tables = host.account_tables(false).await?;
            let Some(row) = tables.group.get(&self.name) else {
                return Ok(vec![("state", None), ("gid", None), ("members", None)]);
            };
            let mut members = row.members.clone();
            members.sort();
            Ok(vec![
                ("state", Some("exists".to_owned())),
                ("gid", Some(row.gid.to_string())),
                ("members", Some(members.join(","))),
            ])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(self.change(host, permit, differing))
    }

    fn footprint(&self) -> Footprint {
        let own = HostObject::Group(self.name.clone());
        let path = |path| WatchSource::Path { path: PathBuf::from(path), below: false };
        let watch = ["/etc/group", "/etc/passwd"].map(path);
        let mut claims = vec![Claim::exclusive(own.clone()).creating(self.is_present)];
        let mut requires = Vec::new();
        if let Some(members) = self.members.as_ref().filter(|_| self.is_present) {
            claims.push(Claim::exclusive(HostObject::MembersOf(self.name.clone())));
            claims.extend(members.iter().map(|user| {
                let (group, user) = (self.name.clone(), user.clone());
                Claim::exclusive(HostObject::Member { group, user })
            }));
            requires.extend(members.iter().filter_map(|name| Need::user(name, "is a member")));
        }
        if !self.is_present {
            let because = "is removed before the groups";
            requires.push(Need::exact(HostObject::removed_users(), because));
        }
        Footprint {
            claims,
            provides: if self.is_present { vec![own] } else { Vec::new() },
            requires,
            watch: watch.into(),
            reads: vec![PathBuf::from("/etc/group")],
            removal: (self.is_present && self.name != "root")
                .then(|| Removal::new().with("state", Value::Text("absent".to_owned()))),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn existence(&self) -> Option<&'static str> {
        Some("state")
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let value = |aspect: &str| {
            let pair = found.iter().find(|(name, _)| *name == aspect);
            pair.and_then(|(_, value)| value.as_deref())
        };
        let names = |text: &str| {
            text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let all = [
            ("gid", value("gid").and_then(|gid| gid.parse().ok()).map(Value::Int)),
            ("members", value("members").map(|text| Value::Texts(names(text)))),
        ];
        let known = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
        known.map(|(key, value)| (key, SentValue::Shown(value))).collect()
    }
}
