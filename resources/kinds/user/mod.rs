//! `user`: a user of `/etc/passwd`, changed by useradd, usermod, chpasswd, gpasswd and userdel.
//!
//! The kind must not examine undeclared aspects, and must pass a password hash on the standard input of chpasswd
//! alone.
//!
//! Reading order: `declare.rs` (the fields), `values.rs` (the aspects of a user), `change.rs` (the tools),
//! `restore.rs` and `home.rs` (undo), `expiry.rs` (dates).

mod change;
mod declare;
mod expiry;
mod home;
mod restore;
mod values;

pub(crate) use expiry::date_of;

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::Value;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::KindSpec;
use crate::parts::field_reader::normal_path;
use crate::parts::{ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::removal::Removal;
use crate::resource::Traits;
use crate::secrets::secret_text::Secret;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "user",
    collectible: false,
    doc: "Manages a local user. The name is the login name. Fields that are not given are not managed.",
    fields: &[
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Existence of the user.").known_at_load()
            .default("exists"),
        FieldSpec::new(
            "uid",
            FieldType::Int,
            "Number of the user; default: the next free one at creation. A change gives the files of the home directory to the new number.",
        )
        .range(0, declare::LARGEST_ID)
        .example("2000")
        .receives(Receives::Shown),
        FieldSpec::new("allowduplicateuid", FieldType::Bool, "Accept a `uid` that another user has.").receives(Receives::Shown)
            .default("false"),
        FieldSpec::new(
            "gid",
            FieldType::Int,
            "Primary group by number, as in graphs of mgmt; `group` is the name for both.",
        )
        .range(0, declare::LARGEST_ID)
        .example("2000")
        .conflicts_with(&["group"])
        .receives(Receives::Shown),
        FieldSpec::new(
            "group",
            FieldType::Text,
            "Primary group, by name or number; default at creation: the group with the name of the user, made if missing.",
        ).mode(FieldMode::Value)
        .example("web")
        .receives(Receives::Shown),
        FieldSpec::new(
            "groups",
            FieldType::Texts,
            "Supplementary groups, by name. Without `append`, the user leaves all others.",
        ).mode(FieldMode::Value)
        .example("[adm, ssl-cert]")
        .receives(Receives::Shown),
        FieldSpec::new(
            "append",
            FieldType::Bool,
            "Add the user to `groups`, and leave the other groups of the user alone.",
        ).known_at_load()
        .default("false"),
        FieldSpec::new("shell", FieldType::Text, "Login shell, an absolute path.").mode(FieldMode::Value)
            .example("/bin/bash")
            .receives(Receives::Shown),
        FieldSpec::new(
            "homedir",
            FieldType::Text,
            "Home directory, an absolute path. A change moves the directory only with `manage_home`.",
        ).mode(FieldMode::Value)
        .example("/home/eve")
        .receives(Receives::Shown),
        FieldSpec::new(
            "manage_home",
            FieldType::Bool,
            "Make the home directory from /etc/skel if it is missing, and move it when `homedir` changes.",
        )
        .default("false").receives(Receives::Shown),
        FieldSpec::new(
            "remove_home",
            FieldType::Bool,
            "Delete the home directory and the mail of the user together with the user; needs `manage_home`.",
        ).receives(Receives::Shown)
        .default("false"),
        FieldSpec::new("comment", FieldType::Text, "Full name and contact data (GECOS).").listable().mode(FieldMode::Value)
            .example("Eve Example")
            .receives(Receives::Shown),
        FieldSpec::new(
            "system",
            FieldType::Bool,
            "Take a number for system users at creation; an existing user is not changed.",
        )
        .default("false").receives(Receives::Shown),
        FieldSpec::new(
            "password",
            FieldType::Text,
            "Password hash in the form of crypt(5), or `*` for no password; passed to chpasswd on its standard input and never shown.",
        ).mode(FieldMode::Value)
        .example("$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7")
        .receives(Receives::Secrets),
        FieldSpec::new(
            "lock",
            FieldType::Bool,
            "Lock (true) or unlock (false) the password. Keys of ssh still work: see `expiry`.",
        )
        .receives(Receives::Shown),
        FieldSpec::new(
            "expiry",
            FieldType::Text,
            "Day from which nobody can log in as this user, YYYY-MM-DD, or `never`.",
        ).mode(FieldMode::Value)
        .example("2030-12-31")
        .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("uid", FieldType::Int, "The number of the user."),
        SendSpec::new("gid", FieldType::Int, "The number of the primary group."),
        SendSpec::new("home", FieldType::Text, "The home directory."),
        SendSpec::new("shell", FieldType::Text, "The login shell."),
        SendSpec::new("comment", FieldType::Text, "The comment (GECOS)."),
        SendSpec::new("groups", FieldType::Texts, "The supplementary groups, sorted."),
    ],
    example: "user:\n  - name: deploy\n    groups: [adm]\n    append: true\n    shell: /bin/bash\n    manage_home: true\n",
    restore: Some(restore::restore),
    build: declare::build,
};

/// A user as declared; `None` stands for an aspect that is not managed.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of a declaration")]
struct User {
    name: String,
    is_present: bool,
    uid: Option<u32>,
    shares_uid: bool,
    /// The primary group, by name or number.
    group: Option<String>,
    /// The supplementary groups, sorted.
    groups: Option<Vec<String>>,
    append: bool,
    /// Groups that the user must not be in, for undo.
    left_groups: Vec<String>,
    shell: Option<String>,
    home: Option<String>,
    manages_home: bool,
    removes_home: bool,
    comment: Option<String>,
    system: bool,
    password: Option<Secret>,
    is_locked: Option<bool>,
    expiry: Option<String>,
}

impl User {
    /// Returns true if an aspect is in `/etc/shadow`.
    fn needs_shadow(&self) -> bool {
        self.is_present
            && (self.password.is_some() || self.is_locked.is_some() || self.expiry.is_some())
    }

    /// Returns the declared home directory, or the usual one.
    fn likely_home(&self) -> PathBuf {
        let usual = || Path::new("/home").join(&self.name);
        self.home.as_ref().map_or_else(usual, PathBuf::from)
    }

    fn removal(&self) -> Option<Removal> {
        if !self.is_present || self.name == "root" {
            return None;
        }
        let removal = Removal::new().with("state", Value::Text("absent".to_owned()));
        Some(if self.manages_home && self.removes_home {
            removal.with("manage_home", Value::Bool(true)).with("remove_home", Value::Bool(true))
        } else {
            removal
        })
    }

    fn required(&self) -> Vec<Need> {
        if !self.is_present {
            return Vec::new();
        }
        let primary = self.group.as_deref().unwrap_or(&self.name);
        let mut needs: Vec<Need> =
            Need::group(primary, "is the primary group").into_iter().collect();
        for group in self.groups.iter().flatten() {
            needs.extend(Need::group(group, "is a supplementary group"));
        }
        if let Some(shell) = &self.shell {
            needs.push(Need::path(shell, "is the login shell"));
        }
        if self.manages_home
            && let Some(parent) = self.likely_home().parent()
        {
            needs.push(Need::path(parent, "contains the home directory"));
        }
        needs
    }

    fn claims(&self) -> Vec<Claim> {
        let own = HostObject::User(self.name.clone());
        let mut claims = vec![Claim::exclusive(own).creating(self.is_present)];
        if let Some(groups) = self.groups.as_ref().filter(|_| self.is_present) {
            if !self.append {
                claims.push(Claim::exclusive(HostObject::GroupsOf(self.name.clone())));
            }
            claims.extend(groups.iter().map(|group| {
                let (group, user) = (group.clone(), self.name.clone());
                Claim::exclusive(HostObject::Member { group, user })
            }));
        }
        claims
    }

    fn watched(&self) -> Vec<WatchSource> {
        let mut paths = vec![PathBuf::from("/etc/passwd")];
        // The groups of the user are sent, also undeclared ones.
        if self.is_present {
            paths.push(PathBuf::from("/etc/group"));
        }
        if self.needs_shadow() {
            paths.push(PathBuf::from("/etc/shadow"));
        }
        if self.is_present && self.manages_home {
            paths.push(self.likely_home());
        }
        paths.into_iter().map(|path| WatchSource::Path { path, below: false }).collect()
    }
}

impl ValueSet for User {
    fn wanted(&self) -> FieldValues {
        self.wanted_values()
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(self.read_values(host))
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
        let mut provides = Vec::new();
        if self.is_present {
            provides.push(HostObject::User(self.name.clone()));
            // useradd makes the group of the same name.
            if self.group.is_none() {
                provides.push(HostObject::Group(self.name.clone()));
            }
            let home = self.likely_home();
            if self.manages_home && home.parent().is_some() {
                provides.push(HostObject::Brought(home));
            }
        } else {
            provides.push(HostObject::removed_users());
        }
        Footprint {
            claims: self.claims(),
            provides,
            requires: self.required(),
            watch: self.watched(),
            reads: vec![PathBuf::from("/etc/passwd"), PathBuf::from("/etc/group")],
            removal: self.removal(),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    /// A home directory is the same with a slash at its end.
    fn is_same(&self, aspect: &str, found: &str, wanted: &str) -> bool {
        let is_path = aspect == "homedir";
        found == wanted || (is_path && normal_path(found).as_deref() == Some(Path::new(wanted)))
    }

    fn existence(&self) -> Option<&'static str> {
        Some("state")
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let value = |aspect: &str| {
            let pair = found.iter().find(|(name, _)| *name == aspect);
            pair.and_then(|(_, value)| value.as_deref())
        };
        let number = |aspect| value(aspect)?.parse().ok().map(Value::Int);
        let text = |aspect| value(aspect).map(|text| Value::Text(text.to_owned()));
        let names = |text: &str| {
            let names = text.split(',').filter(|name| !name.is_empty());
            Value::Texts(names.map(str::to_owned).collect())
        };
        let all = [
            ("uid", number("uid")),
            ("gid", number("gid")),
            ("home", text("homedir")),
            ("shell", text("shell")),
            ("comment", text("comment")),
            ("groups", value(values::ALL_GROUPS).map(names)),
        ];
        let known = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
        known.map(|(key, value)| (key, SentValue::Shown(value))).collect()
    }
}
