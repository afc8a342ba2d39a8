//! `pkg`: a package of the host, present, in a certain version, or absent.
//!
//! Packages share one apt transaction where possible. The kind must never start a transaction that removes
//! undeclared packages: apt simulates each call first. If apt cannot do a transaction, the culprits are left
//! out. A refresh has no meaning for a package.
//!
//! Reading order: `declare.rs` (the fields), `name.rs` (names and versions), `check.rs`, `resolve.rs`
//! (simulations), `apply.rs`, `outcome.rs`, `former.rs` (prior values and undo), `provided.rs` (what the
//! package brings).

mod apply;
mod check;
mod declare;
mod former;
mod name;
mod outcome;
mod provided;
mod resolve;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::Value;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::packages::{LISTS, STATUS, State};
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{ExecutorKind, Resource, Traits};
use crate::transaction::{Grouping, Member, Transaction};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "pkg",
    collectible: false,
    doc: "Manages a package of apt and dpkg. The name is the package name, with :ARCHITECTURE for a foreign architecture.",
    fields: &[
        FieldSpec::new(
            "state",
            FieldType::Text,
            "installed, newest, absent, or a version; default: installed, any version.",
        ).mode(FieldMode::Value).receives(Receives::Shown).example("installed"),
        FieldSpec::new(
            "hold",
            FieldType::Bool,
            "Hold the version (apt-mark hold); default: not managed.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "purge",
            FieldType::Bool,
            "With `state: absent`, also remove the configuration; default: false.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "recommends",
            FieldType::Bool,
            "Install recommended packages too; default: configuration of apt.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "conffiles",
            FieldType::Choice(&["keep", "replace"]),
            "Treatment of locally changed configuration files: keep, or replace by the version of the package; default: keep.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "cache_age",
            FieldType::Seconds,
            "Maximum age of the package lists in seconds; older lists are updated before the installation; default: never.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "debconf",
            FieldType::TextMap,
            "Debconf answers set before the installation, each QUESTION: TYPE VALUE.",
        ).mode(FieldMode::Value).receives(Receives::Shown),
        FieldSpec::new(
            "lock_wait",
            FieldType::Seconds,
            "Seconds to wait for another package manager; default: 120.",
        ).receives(Receives::Shown),
        FieldSpec::ignored("allowuntrusted", "packages are never installed from untrusted places"),
        FieldSpec::ignored("allownonfree", "the repositories determine the available packages"),
        FieldSpec::ignored("allowunsupported", "the repositories determine the available packages"),
    ],
    sends: &[
        SendSpec::new("version", FieldType::Text, "The installed version."),
        SendSpec::new("hold", FieldType::Bool, "True if the version is on hold."),
    ],
    example: "pkg:\n  - name: nginx\n    state: installed\n",
    restore: Some(former::restoring),
    build: declare::build,
};

/// A package as declared.
#[derive(Debug)]
struct Declared {
    name: String,
    want: Want,
    hold: Option<bool>,
    purge: bool,
    recommends: Option<bool>,
    conffiles: Conffiles,
    cache_age: Option<Duration>,
    debconf: Answers,
    lock_wait: Duration,
}

/// The declared state.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Want {
    Installed,
    Newest,
    Version(String),
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conffiles {
    Keep,
    Replace,
}

/// The debconf questions with types and values, which may be secret.
struct Answers(Vec<(String, String)>);

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answers({})", self.0.len())
    }
}

impl Declared {
    fn is_to_be_there(&self) -> bool {
        self.want != Want::Absent
    }
}

/// A resource of one package.
#[derive(Debug)]
struct Pkg {
    declared: Arc<Declared>,
    alone: Together,
    /// The objects that the package provides, read once: the list of an installed package is long.
    provided: OnceLock<Vec<HostObject>>,
}

/// Several packages in one transaction.
#[derive(Debug)]
struct Together(Vec<Arc<Declared>>);

fn unite(parts: Vec<Member>) -> Arc<dyn Transaction> {
    let declared = parts.into_iter().filter_map(|part| part.downcast::<Declared>().ok());
    Arc::new(Together(declared.collect()))
}

impl Pkg {
    fn watched(&self) -> Vec<WatchSource> {
        let mut sources = vec![WatchSource::Path { path: STATUS.into(), below: false }];
        if self.declared.want == Want::Newest {
            sources.push(WatchSource::Path { path: LISTS.into(), below: true });
        }
        sources
    }
}

impl Resource for Pkg {
    /// Claims the package of every architecture: removing one of them may require removing the others. Several
    /// resources may share the claim. A removal leaves the configuration in place, as apt does, unless the package
    /// is to be purged.
    fn footprint(&self) -> Footprint {
        let Declared { recommends, conffiles, name, .. } = &*self.declared;
        let (name, _) = name.split_once(':').unwrap_or((name, ""));
        let creates = self.declared.is_to_be_there();
        let absent = || {
            let absent = Removal::new().with("state", Value::Text("absent".to_owned()));
            // apt refuses to remove a package that is on hold.
            let is_held = self.declared.hold == Some(true);
            if is_held { absent.with("hold", Value::Bool(false)) } else { absent }
        };
        Footprint {
            claims: vec![Claim::shared(HostObject::Package(name.to_owned())).creating(creates)],
            provides: self
                .provided
                .get_or_init(|| provided::provided_objects(&self.declared))
                .clone(),
            removal: creates.then(absent),
            requires: if creates {
                vec![Need::repositories("provides packages")]
            } else {
                Vec::new()
            },
            watch: self.watched(),
            grouping: Some(Grouping {
                key: format!("pkg recommends {recommends:?} conffiles {conffiles:?}"),
                part: Arc::<Declared>::clone(&self.declared),
                unite,
            }),
            ..Footprint::default()
        }
    }

    fn sends_key(&self, _key: &str) -> bool {
        self.declared.is_to_be_there()
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        Some(Box::pin(async move {
            let packages = host.packages().await?;
            let package = packages.get(&self.declared.name);
            let installed = package.filter(|package| package.state == State::Installed);
            let all = installed.map(|package| {
                let version = ("version", Value::Text(package.version.clone()));
                [version, ("hold", Value::Bool(package.held))]
            });
            let all = all.into_iter().flatten();
            Ok(all.map(|(key, value)| (key, SentValue::Shown(value))).collect())
        }))
    }

    fn traits(&self) -> Traits {
        Traits { executor: ExecutorKind::Command, cancellable: false, ..Traits::default() }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let verdicts = check::check(&self.alone.0, host, &ask.cancel).await;
            let nothing = || CheckResult::Unknown(Failure::new("the check has no result"));
            verdicts.into_iter().next().unwrap_or_else(nothing)
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let outcomes = apply::apply(&self.alone.0, host, permit, vec![Some(change)]).await;
            outcomes.into_iter().next().unwrap_or(Outcome::Unchanged)
        })
    }
}

impl Transaction for Together {
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, Vec<CheckResult>> {
        Box::pin(async move { check::check(&self.0, host, &ask.cancel).await })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>> {
        Box::pin(apply::apply(&self.0, host, permit, changes))
    }
}
