//! Checks packages: the state in dpkg, and the effect of the apt call.

use super::resolve::{ResolvedPackages, operand, settle};
use super::{Declared, Want};
use crate::change::{Change, CheckResult, Difference};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::packages::{Package, Packages, State};
use crate::secrets::escape::short;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The aspect of a difference in version.
pub(super) const VERSION: &str = "version";

pub(super) async fn check(
    all: &[Arc<Declared>],
    host: &Host,
    cancel: &CancellationToken,
) -> Vec<CheckResult> {
    let packages = match host.packages().await {
        Ok(packages) => packages,
        Err(failure) => return all.iter().map(|_| CheckResult::Unknown(failure.clone())).collect(),
    };
    let wanted: Vec<usize> =
        (0..all.len()).filter(|at| operand(&all[*at], &packages).is_some()).collect();
    let age = host.lists_age().await;
    let settled = settle(all, wanted, (host, &packages), cancel).await;
    let mut each: Vec<CheckResult> = all
        .iter()
        .enumerate()
        .map(|(at, declared)| verdict(declared, &packages, (at, &settled), is_stale(declared, age)))
        .collect();
    for (at, first) in second_names(all, &packages) {
        let (own, first) = (short(&all[at].name, 30), short(&all[first].name, 30));
        let what = format!("{own} and {first} are one package, which is declared twice");
        let failure = Failure::new(what).hint("keep one of the two resources");
        if let Some(slot) = each.get_mut(at) {
            *slot = CheckResult::Unknown(failure);
        }
    }
    let reads = |(declared, verdict): (&Arc<Declared>, &CheckResult)| {
        matches!(verdict, CheckResult::Differs(_)) && is_stale(declared, age)
    };
    if all.iter().zip(&each).any(reads) {
        all.iter().zip(&mut each).for_each(|(declared, verdict)| leave_open(declared, verdict));
    }
    each
}

/// Returns the packages that are declared before under another name (`dash` and `dash:amd64`), each with the first one.
fn second_names(all: &[Arc<Declared>], packages: &Packages) -> Vec<(usize, usize)> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut second = Vec::new();
    for (at, declared) in all.iter().enumerate() {
        match first.entry(packages.short(&declared.name)) {
            Entry::Occupied(before) => second.push((at, *before.get())),
            Entry::Vacant(free) => {
                free.insert(at);
            }
        }
    }
    second
}

/// Adds a note to the version of a change if the lists will be updated first, because updated lists may have
/// another version.
fn leave_open(declared: &Declared, verdict: &mut CheckResult) {
    let (CheckResult::Differs(change), false) =
        (verdict, matches!(declared.want, Want::Version(_)))
    else {
        return;
    };
    let versions = change.differences.iter_mut().filter(|it| it.aspect == VERSION);
    versions
        .for_each(|version| version.to.push_str(", or newer after the package lists are updated"));
}

/// Returns true if the package lists are older than this package allows.
pub(super) fn is_stale(declared: &Declared, age: Option<std::time::Duration>) -> bool {
    declared.is_to_be_there()
        && declared.cache_age.is_some_and(|limit| age.is_none_or(|age| age > limit))
}

fn verdict(
    declared: &Declared,
    packages: &Packages,
    (at, settled): (usize, &ResolvedPackages),
    is_stale: bool,
) -> CheckResult {
    let refused = settled.refused.get(&at);
    if let Some(failure) = refused.filter(|_| !is_stale) {
        return CheckResult::Unknown(failure.clone());
    }
    let package = packages.get(&declared.name);
    let mut differences = differences(declared, packages, (at, settled));
    if is_stale && (refused.is_some() || declared.want == Want::Newest) {
        // Lists that are read anew may have a newer version.
        let is_open = declared.want == Want::Newest && differences.is_empty();
        if let Some(package) = package.filter(|_| is_open) {
            differences.push(difference(VERSION, &package.version, &package.version));
        }
        differences.push(difference("lists", "old", "read anew"));
    }
    if differences.is_empty() {
        return CheckResult::Same;
    }
    let goes = !declared.is_to_be_there() && package.is_some_and(|it| it.state != State::Absent);
    let creates = declared.is_to_be_there()
        && package.is_none_or(|it| matches!(it.state, State::Absent | State::Configuration));
    CheckResult::Differs(Change { destructive: goes, creates, ..Change::of(differences) })
}

/// Returns the differences of a package; empty if the package is as declared.
pub(super) fn differences(
    declared: &Declared,
    packages: &Packages,
    (at, settled): (usize, &ResolvedPackages),
) -> Vec<Difference> {
    let package = packages.get(&declared.name);
    let mut found = Vec::new();
    let version = settled.of(at).and_then(|it| it.version(packages.short(&declared.name)));
    let is_there = package.is_some_and(|package| package.state == State::Installed);
    let (now, before) = (in_words(package), package.map_or("", |package| &package.version));
    if declared.is_to_be_there() {
        let wanted = match &declared.want {
            Want::Version(wanted) => Some(wanted.as_str()),
            Want::Installed | Want::Newest | Want::Absent => version,
        };
        let is_right = is_there
            && match &declared.want {
                Want::Installed | Want::Absent => true,
                Want::Newest => version.is_none(),
                Want::Version(wanted) => wanted == before,
            };
        if !is_there {
            found.push(difference("state", &now, "installed"));
        }
        if !is_right {
            let before = if is_there { before } else { "" };
            found.extend(wanted.map(|wanted| difference(VERSION, before, wanted)));
        }
    } else if is_there || super::resolve::is_broken(package) {
        let to = if declared.purge { "purged" } else { "absent" };
        found.push(difference("state", &format!("{now} {before}"), to));
    } else if declared.purge && package.is_some_and(|it| it.state == State::Configuration) {
        found.push(difference("state", &now, "purged"));
    }
    let held = package.is_some_and(|package| package.held);
    if let Some(hold) = declared.hold.filter(|hold| *hold != held) {
        let word = |held: bool| if held { "held" } else { "not held" };
        found.push(difference("hold", word(held), word(hold)));
    }
    found
}

fn in_words(package: Option<&Package>) -> String {
    match package.map(|package| &package.state) {
        None | Some(State::Absent) => "absent".to_owned(),
        Some(State::Installed) => "installed".to_owned(),
        Some(State::Configuration) => "removed, configuration kept".to_owned(),
        Some(State::Broken(word)) => word.clone(),
    }
}

fn difference(aspect: &'static str, from: &str, to: &str) -> Difference {
    Difference { aspect, from: from.to_owned(), to: to.to_owned(), diff: None }
}
