//! Simulates the apt calls, and finds the packages that apt cannot handle.

use super::{Conffiles, Declared, Want};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::packages::{Package, Packages, Simulation, State};
use crate::secrets::escape::short;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The apt calls for the wanted packages.
#[derive(Debug, Default)]
pub(super) struct ResolvedPackages {
    /// The packages of each call, by position, with the simulation of the call. There is one call unless apt
    /// needs several.
    pub(super) batches: Vec<(Vec<usize>, Simulation)>,
    /// The packages that apt cannot handle, by position.
    pub(super) refused: BTreeMap<usize, Failure>,
}

impl ResolvedPackages {
    /// Returns the simulation of the call that includes one package.
    pub(super) fn of(&self, at: usize) -> Option<&Simulation> {
        self.batches.iter().find(|(members, _)| members.contains(&at)).map(|(_, found)| found)
    }
}

/// Returns apt's operand for a package; none if apt has nothing to do.
pub(super) fn operand(declared: &Declared, packages: &Packages) -> Option<String> {
    let (name, package) = (&declared.name, packages.get(&declared.name));
    let is_there = package.is_some_and(|package| package.state == State::Installed);
    match &declared.want {
        Want::Installed => (!is_there).then(|| name.clone()),
        Want::Newest => Some(name.clone()),
        Want::Version(version) => {
            let is_right = is_there && package.is_some_and(|package| package.version == *version);
            (!is_right).then(|| format!("{name}={version}"))
        }
        Want::Absent => (is_there || is_broken(package)).then(|| format!("{name}-")),
    }
}

pub(super) fn is_broken(package: Option<&Package>) -> bool {
    package.is_some_and(|package| matches!(package.state, State::Broken(_)))
}

/// Returns the options of a call for these packages.
pub(super) fn options(members: &[&Declared], packages: &Packages) -> Vec<&'static str> {
    let mut options = vec!["-o", "Dpkg::Options::=--force-confdef"];
    let first = members.first();
    options.extend(match first.map(|first| first.conffiles) {
        Some(Conffiles::Replace) => ["-o", "Dpkg::Options::=--force-confnew"],
        Some(Conffiles::Keep) | None => ["-o", "Dpkg::Options::=--force-confold"],
    });
    if options.last() == Some(&"Dpkg::Options::=--force-confnew") {
        options.drain(..2);
    }
    match first.and_then(|first| first.recommends) {
        Some(true) => options.extend(["-o", "APT::Install-Recommends=true"]),
        Some(false) => options.extend(["-o", "APT::Install-Recommends=false"]),
        None => {}
    }
    if members.iter().any(|declared| matches!(declared.want, Want::Version(_))) {
        options.push("--allow-downgrades");
    }
    if members.iter().any(|declared| packages.get(&declared.name).is_some_and(|it| it.held)) {
        options.push("--allow-change-held-packages");
    }
    options
}

/// Simulates one call for all packages. If that fails, sets aside the packages that fail alone and simulates
/// the others again; packages that only conflict with each other go into separate calls.
pub(super) async fn settle(
    all: &[Arc<Declared>],
    wanted: Vec<usize>,
    (host, packages): (&Host, &Packages),
    cancel: &CancellationToken,
) -> ResolvedPackages {
    let mut settled = ResolvedPackages::default();
    let mut left = vec![wanted];
    while let Some(members) = left.pop().filter(|_| !cancel.is_cancelled()) {
        if members.is_empty() {
            continue;
        }
        match simulate(all, &members, (host, packages), cancel).await {
            Ok(found) => settled.batches.push((members, found)),
            Err(failure) if members.len() == 1 => {
                settled.refused.extend(members.first().map(|at| (*at, failure)));
            }
            Err(_) => {
                let (head, tail) = members.split_at(members.len() / 2);
                left.extend([tail.to_vec(), head.to_vec()]);
            }
        }
    }
    if settled.batches.len() > 1 {
        let mut together: Vec<usize> =
            settled.batches.iter().flat_map(|(members, _)| members.iter().copied()).collect();
        together.sort_unstable();
        if let Ok(found) = simulate(all, &together, (host, packages), cancel).await {
            settled.batches = vec![(together, found)];
        }
    }
    settled
}

async fn simulate(
    all: &[Arc<Declared>],
    members: &[usize],
    (host, packages): (&Host, &Packages),
    cancel: &CancellationToken,
) -> Result<Simulation, Failure> {
    let members: Vec<&Declared> = members.iter().map(|at| &*all[*at]).collect();
    let operands: Vec<String> =
        members.iter().filter_map(|declared| operand(declared, packages)).collect();
    let found = host.simulate(&options(&members, packages), &operands, cancel).await?;
    members.iter().try_for_each(|declared| accept(declared, packages, &found))?;
    match contradiction(all, &members, (packages, &found)) {
        Some(failure) => Err(failure),
        None => Ok(found),
    }
}

/// Returns the failure of a call that installs a package that is declared absent, or removes one that no member
/// removes.
fn contradiction(
    all: &[Arc<Declared>],
    members: &[&Declared],
    (packages, found): (&Packages, &Simulation),
) -> Option<Failure> {
    let absent = all.iter().filter(|it| !it.is_to_be_there());
    let mut installed = absent.map(|it| packages.short(&it.name));
    if let Some(name) = installed.find(|name| found.version(name).is_some()) {
        let name = short(name, 30);
        let what = format!("the transaction would install {name}, which is declared absent");
        return Some(Failure::new(what).hint(format!("declare {name} installed, or omit it")));
    }
    let is_asked = |name: &&String| {
        members.iter().any(|it| !it.is_to_be_there() && packages.short(&it.name) == *name)
    };
    let others: Vec<&String> = found.removes.iter().filter(|name| !is_asked(name)).collect();
    let is_declared = |name: &&&String| {
        all.iter().any(|it| it.is_to_be_there() && packages.short(&it.name) == **name)
    };
    if let Some(name) = others.iter().find(is_declared) {
        let name = short(name, 30);
        let what = format!("the transaction would remove {name}, which is declared installed");
        return Some(Failure::new(what).hint("two packages contradict each other: omit one"));
    }
    if others.is_empty() {
        return None;
    }
    let names: Vec<&str> = others.into_iter().map(String::as_str).collect();
    let what = format!("the transaction would remove undeclared packages: {}", names.join(", "));
    let hint = "declare these packages `state: absent` if they may be removed";
    Some(Failure::new(short(&what, 300)).hint(hint))
}

/// Rejects a simulation that does not do the declared change under exactly this name: apt reads some words as
/// patterns or as names of other packages.
fn accept(declared: &Declared, packages: &Packages, found: &Simulation) -> Result<(), Failure> {
    let name = packages.short(&declared.name);
    let package = packages.get(&declared.name);
    let version = found.version(name);
    if package.is_some_and(|it| it.held) && declared.hold.is_none() {
        let changes = version.is_some() || found.removes.iter().any(|removed| removed == name);
        if changes {
            return Err(Failure::new("the package is held: its version must not change")
                .hint("set `hold: true` or `hold: false` in the graph"));
        }
    }
    let is_there = package.is_some_and(|package| package.state == State::Installed);
    let is_done = match &declared.want {
        Want::Installed | Want::Newest => is_there || version.is_some() || is_broken(package),
        Want::Version(wanted) => version == Some(wanted) || is_broken(package),
        Want::Absent => found.removes.iter().any(|removed| removed == name),
    };
    if is_done {
        return Ok(());
    }
    Err(Failure::new(format!("apt has no package named {name}"))
        .hint(format!("if `{name}` is a virtual package, name one of its providers")))
}
