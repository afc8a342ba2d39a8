//! `steadfast fleet`: the status of all hosts, and the holders of permits.

use super::{in_time, with_world};
use crate::cli::args::{Fleet, FleetCommand, FleetShow, FleetWait};
use crate::cli::exit::Exit;
use crate::cli::output::{error, out_json, plain, print};
use crate::world::bundle::matches_pattern;
use crate::world::host_lease::LIFETIME;
use crate::world::permits::{Ticket, judge_tickets};
use crate::world::records::{FleetHostStatus, HostMeta, Want, read_record, unix_seconds};
use crate::world::{Entry, World, WorldError, keys};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The interval of `fleet wait`.
const POLL: Duration = Duration::from_secs(1);

/// The time that a renewed lease has left at least: a host tries three times before it.
const RENEWED_ABOVE: Duration = Duration::from_secs(LIFETIME.as_secs() / 2);

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Host {
    /// True if the host has a lease: it is running and reaches the world.
    pub(super) alive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<HostMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<FleetHostStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) want: Option<Want>,
}

/// A holder or waiter of a permit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Holder {
    /// `sema/ID` or `roll/NAME`.
    permit: String,
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    holds: bool,
    /// The number of holders that all tickets allow: the smallest number that a host declares.
    size: u32,
    /// The number of holders that the graph of this host declares.
    declared: u32,
    /// Seconds since the ticket was put.
    age: u64,
    /// True if the holder has no lease: its host does not run.
    host_is_lost: bool,
    /// Seconds until the world frees the permit if its host does not renew its lease. A slot of a roll has no lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    frees_in: Option<u64>,
}

/// All hosts and permits.
#[derive(Debug, Serialize)]
struct FleetStatus {
    hosts: BTreeMap<String, Host>,
    permits: Vec<Holder>,
}

/// Runs `steadfast fleet`.
pub(in crate::cli) fn fleet(args: &Fleet) -> Exit {
    match &args.command {
        Some(FleetCommand::Wait(wait)) => wait_for(wait),
        Some(FleetCommand::Show(show)) => show_host(show),
        None => with_world(&args.world, async |world, _| {
            let hosts = read_hosts(world.as_ref()).await?;
            let permits = read_permits(world.as_ref(), &hosts).await?;
            let exit = exit_of(&hosts);
            if args.json {
                out_json(&FleetStatus { hosts, permits });
            } else {
                show_all(&hosts, &permits);
            }
            Ok(exit)
        }),
    }
}

/// Returns 0 if all hosts are converged, 1 if one failed or is lost, 2 otherwise.
fn exit_of(hosts: &BTreeMap<String, Host>) -> Exit {
    let failed = |host: &Host| {
        !host.alive
            || host
                .status
                .as_ref()
                .is_some_and(|it| number(it, "failed") > 0 || it.rejected.is_some())
    };
    let converged = |host: &Host| host.status.as_ref().is_some_and(|status| status.converged);
    if hosts.values().any(failed) {
        Exit::Failed
    } else if hosts.values().all(converged) {
        Exit::Well
    } else {
        Exit::Changes
    }
}

pub(super) fn number(status: &FleetHostStatus, name: &str) -> u64 {
    status.counts.get(name).copied().unwrap_or_default()
}

/// Reads all hosts: those that run, those that have run and were not forgotten, and those that should run a
/// generation.
pub(super) async fn read_hosts(world: &dyn World) -> Result<BTreeMap<String, Host>, WorldError> {
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for entry in in_time(world.list(keys::HOSTS)).await?.entries {
        let Some(parts) = keys::split_key(&entry.key) else { continue };
        let [_, name, what] = parts.as_slice() else { continue };
        let host = hosts.entry(name.clone()).or_default();
        host.alive |= keys::running_host(&entry.key).is_some();
        match what.as_str() {
            "meta" => host.meta = read_record(&entry),
            "status" => host.status = read_record(&entry),
            _ => {}
        }
    }
    for entry in in_time(world.list(keys::WANT)).await?.entries {
        if let Some([_, name]) = keys::split_key(&entry.key).as_deref() {
            hosts.entry(name.clone()).or_default().want = read_record(&entry);
        }
    }
    Ok(hosts)
}

/// Reads the tickets of all semaphores and rolls.
async fn read_permits(
    world: &dyn World,
    hosts: &BTreeMap<String, Host>,
) -> Result<Vec<Holder>, WorldError> {
    let mut by_permit: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for prefix in [keys::SEMA, keys::ROLL] {
        for entry in in_time(world.list(prefix)).await?.entries {
            let mut parts = entry.key.splitn(3, '/');
            let (Some(sort), Some(id)) = (parts.next(), parts.next()) else { continue };
            by_permit.entry(format!("{sort}/{id}")).or_default().push(entry);
        }
    }
    let mut all = Vec::new();
    for (permit, entries) in by_permit {
        let judged = judge_tickets(&entries);
        for entry in &entries {
            let Some(parts) = keys::split_key(&entry.key) else { continue };
            let Some(host) = parts.get(2) else { continue };
            let ticket = serde_json::from_slice::<Ticket>(&entry.value).ok();
            let since = ticket.as_ref().map_or(0, |it| it.since);
            let left = match entry.lease {
                Some(lease) => in_time(world.lease_time_left(lease)).await.ok(),
                None => None,
            };
            all.push(Holder {
                permit: keys::split_key(&permit).unwrap_or_default().join("/"),
                host: host.clone(),
                resource: parts.get(3).cloned(),
                holds: judged.token_of(&entry.key).is_some(),
                size: judged.size,
                declared: ticket.map_or(judged.size, |it| it.size),
                age: unix_seconds().saturating_sub(since),
                host_is_lost: !hosts.get(host).is_some_and(|host| host.alive),
                frees_in: left.map(|left| left.as_secs()),
            });
        }
    }
    Ok(all)
}

fn show_all(hosts: &BTreeMap<String, Host>, permits: &[Holder]) {
    let converged = hosts.values().filter(|it| it.status.as_ref().is_some_and(|s| s.converged));
    print(format!("{} of {} hosts converged", converged.count(), hosts.len()));
    for (name, host) in hosts {
        print(format!("  {}: {}", plain(name), plain(&words_of(host))));
    }
    for holder in permits {
        let doing = if holder.holds { "held by" } else { "waited for by" };
        let of = holder.resource.as_ref().map(|resource| format!(" ({resource})"));
        let line = format!(
            "  {}: {doing} {}{} for {} s, at most {} hold{}",
            holder.permit,
            holder.host,
            of.unwrap_or_default(),
            holder.age,
            holder.size,
            remarks_on(holder)
        );
        print(plain(&line));
    }
}

/// Returns the differing limit, and the end of a permit whose host does not renew it.
fn remarks_on(holder: &Holder) -> String {
    let mut remarks = String::new();
    if holder.declared != holder.size {
        remarks.push_str(&format!("; this host declares {}", holder.declared));
    }
    if let Some(seconds) = holder.frees_in.filter(|it| *it < RENEWED_ABOVE.as_secs()) {
        remarks.push_str(&format!("; not renewed, free in {seconds} s"));
    } else if holder.host_is_lost {
        let release = format!("steadfast world release {} {}", holder.permit, holder.host);
        remarks.push_str(&format!("; the host is lost: {release}"));
    }
    remarks
}

/// Describes a host in a few words.
fn words_of(host: &Host) -> String {
    let Some(status) = &host.status else {
        return if host.alive { "starting".to_owned() } else { "lost: no lease".to_owned() };
    };
    let generation: String = status.generation.chars().take(12).collect();
    let (total, settled) = (number(status, "total"), number(status, "settled"));
    let mut words = if status.converged {
        format!("converged: {total} resources")
    } else {
        format!("{settled} of {total} converged")
    };
    for (name, shown) in [("failed", "failed"), ("stuck", "stuck"), ("held", "held")] {
        if number(status, name) > 0 {
            words.push_str(&format!(", {} {shown}", number(status, name)));
        }
    }
    if status.paused {
        words.push_str(", paused");
    }
    words.push_str(&format!("; generation {generation}"));
    if let Some(want) = host.want.as_ref().filter(|want| want.manifest != status.generation) {
        let wanted: String = want.manifest.chars().take(12).collect();
        words.push_str(&format!(", wanted {wanted}"));
    }
    if let Some(why) = &status.rejected {
        words.push_str(&format!("; rejected: {why}"));
    }
    words
}

fn show_host(args: &FleetShow) -> Exit {
    with_world(&args.world, async |world, _| {
        let hosts = read_hosts(world.as_ref()).await?;
        let Some(host) = hosts.get(&args.host) else {
            let hint = "`steadfast fleet` lists the hosts";
            error(format!("no host is named `{}`", plain(&args.host)), Some(hint));
            return Ok(Exit::Failed);
        };
        if args.json {
            out_json(host);
            return Ok(Exit::Well);
        }
        print(format!("{}: {}", plain(&args.host), plain(&words_of(host))));
        if let Some(meta) = &host.meta {
            print(format!("  version {}, machine {}", plain(&meta.version), plain(&meta.machine)));
            for (name, value) in &meta.facts {
                print(format!("  {}: {}", plain(name), plain(value)));
            }
        }
        for (resource, message) in host.status.iter().flat_map(|status| &status.worst) {
            print(format!("  {}: {}", plain(resource), plain(message)));
        }
        Ok(Exit::Well)
    })
}

fn wait_for(args: &FleetWait) -> Exit {
    with_world(&args.world, async |world, _| {
        let until = Instant::now() + Duration::from_secs(args.timeout);
        loop {
            let hosts = read_hosts(world.as_ref()).await?;
            let asked = hosts.iter().filter(|(name, _)| matches_pattern(&args.hosts, name));
            let is_there = |host: &Host| {
                host.status.as_ref().is_some_and(|status| {
                    status.converged && status.generation.starts_with(&args.generation)
                })
            };
            let asked: Vec<_> = asked.collect();
            let missing: Vec<_> = asked.iter().filter(|(_, host)| !is_there(host)).collect();
            if missing.is_empty() && !asked.is_empty() {
                return Ok(Exit::Well);
            }
            if Instant::now() >= until {
                if asked.is_empty() {
                    let what = format!("no host matches `{}`", plain(&args.hosts));
                    error(what, Some("`steadfast fleet` lists the hosts"));
                }
                for (name, host) in missing {
                    print(format!("  {}: {}", plain(name), plain(&words_of(host))));
                }
                return Ok(Exit::Failed);
            }
            tokio::time::sleep(POLL).await;
        }
    })
}
