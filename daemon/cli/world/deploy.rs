//! `steadfast deploy`: requests a bundle on hosts, wave by wave, and stops at the first failure.
//!
//! A deploy holds the lease of the cluster. Each record carries its token, and no wave starts after the lease is lost.

use super::fleet::{Host, number, read_hosts};
use super::{in_time, operator_name, with_world};
use crate::cli::args::Deploy;
use crate::cli::exit::Exit;
use crate::cli::output::{error, plain, print};
use crate::config::WorldSettings;
use crate::world::bundle::{BundleSource, Manifest, matches_pattern, peek_manifest};
use crate::world::records::{DeployLease, SCHEMA, Want, read_record, unix_seconds, write_record};
use crate::world::{Compare, LeaseId, Operation, Transaction, World, WorldError, keys};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The lifetime of the lease of a deploy.
const LIFETIME: Duration = Duration::from_mins(5);

/// The interval of looks at the hosts of a wave.
const POLL: Duration = Duration::from_secs(1);

/// The number of hosts that one transaction requests.
const CHUNK: usize = 50;

/// A running deploy.
struct Session<'a> {
    world: &'a dyn World,
    lease: LeaseId,
    /// The create revision of the lease's key.
    token: u64,
    renewed: Instant,
}

/// Runs `steadfast deploy`.
pub(in crate::cli) fn deploy(args: &Deploy) -> Exit {
    with_world(&args.world, async |world, settings| {
        let bytes = match std::fs::read(&args.bundle) {
            Ok(bytes) => bytes,
            Err(why) => {
                error(format!("{}: {why}", plain(&args.bundle.display().to_string())), None);
                return Ok(Exit::Failed);
            }
        };
        let (manifest, digest) = match peek_manifest(&bytes) {
            Ok(found) => found,
            Err(why) => {
                error(plain(&why.to_string()), Some("`steadfast bundle` makes bundles"));
                return Ok(Exit::Failed);
            }
        };
        if manifest.cluster != settings.cluster() {
            let (of, here) = (plain(&manifest.cluster), plain(settings.cluster()));
            error(format!("the bundle is for the cluster `{of}`, and this is `{here}`"), None);
            return Ok(Exit::Failed);
        }
        let file = match publish_file(&args.bundle, &bytes, &settings) {
            Ok(file) => file,
            Err(why) => {
                error(plain(&why), None);
                return Ok(Exit::Failed);
            }
        };
        run_waves(world.as_ref(), args, (&manifest, digest, file)).await
    })
}

/// Copies the bundle into the folder of bundles, if the settings name one. Returns the name of the file.
fn publish_file(path: &Path, bytes: &[u8], settings: &WorldSettings) -> Result<String, String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or("expected a bundle with a name in UTF-8")?.to_owned();
    if let Some(BundleSource::Folder(folder)) = &settings.bundles {
        let to = folder.join(&name);
        if std::fs::read(&to).ok().as_deref() != Some(bytes) {
            let new = folder.join(format!(".{name}.new"));
            let written = std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &to));
            written.map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    Ok(name)
}

/// Returns the size of a wave: a number, or a share of all hosts.
fn wave_size(text: &str, all: usize) -> Option<usize> {
    let size = match text.strip_suffix('%') {
        Some(share) => {
            let share: usize = share.parse().ok().filter(|share| (1..=100).contains(share))?;
            (all * share).div_ceil(100)
        }
        None => text.parse().ok()?,
    };
    (size > 0).then_some(size)
}

async fn run_waves(
    world: &dyn World,
    args: &Deploy,
    (manifest, digest, file): (&Manifest, String, String),
) -> Result<Exit, WorldError> {
    let known = read_hosts(world).await?;
    let is_asked = |name: &String| {
        matches_pattern(&args.hosts, name)
            && manifest.hosts.iter().any(|pattern| matches_pattern(pattern, name))
    };
    let hosts: Vec<String> = known
        .iter()
        .filter(|(name, host)| host.alive && is_asked(name))
        .map(|it| it.0.clone())
        .collect();
    let lost = known.iter().filter(|(name, host)| !host.alive && is_asked(name));
    let lost: Vec<String> = lost.map(|it| it.0.clone()).collect();
    for name in &lost {
        print(format!("  {}: lost, requested after the last wave", plain(name)));
    }
    let Some(size) = wave_size(&args.wave, hosts.len()) else {
        error(format!("expected a wave such as 5 or 10%, found `{}`", plain(&args.wave)), None);
        return Ok(Exit::Usage);
    };
    if hosts.is_empty() {
        error("no running host matches", Some("`steadfast fleet` lists the hosts"));
        return Ok(Exit::Failed);
    }
    let mut session = match begin_session(world).await? {
        Ok(session) => session,
        Err(holder) => {
            let what = format!("another deploy is running: {}", plain(&holder.by));
            error(
                what,
                Some("wait for its end; its lease ends 5 minutes after its last sign of life"),
            );
            return Ok(Exit::Busy);
        }
    };
    let want = Want {
        schema: SCHEMA,
        manifest: digest,
        sequence: manifest.sequence,
        file,
        splay: args.splay.unwrap_or_default(),
        by: operator_name(),
        token: session.token,
    };
    let canary = args.canary.min(hosts.len());
    let (first, rest) = hosts.split_at(canary);
    let waves = std::iter::once(first).filter(|wave| !wave.is_empty()).chain(rest.chunks(size));
    let mut exit = Exit::Well;
    let mut requested = Vec::new();
    for (number, wave) in waves.enumerate() {
        print(format!("wave {}: {}", number + 1, plain(&wave.join(", "))));
        requested.extend_from_slice(wave);
        if !session.request(wave, &want).await? {
            error("the lease of the deploy is lost: no further wave starts", None);
            exit = Exit::Failed;
            break;
        }
        let patience = Duration::from_secs(args.timeout + args.splay.unwrap_or_default());
        if let Err(why) = session.wait_for_wave(wave, &want.manifest, patience).await? {
            let hint = "the other hosts keep their generation; deploy the old content with a higher sequence to roll back";
            error(plain(&why), Some(hint));
            exit = Exit::Failed;
            break;
        }
    }
    if exit != Exit::Well {
        session.take_back((&requested, &known), &want).await;
    }
    // A lost host runs the bundle when it returns: all waves have proved it by then.
    if exit == Exit::Well && !session.request(&lost, &want).await? {
        error("the lease of the deploy is lost: no lost host is requested", None);
        exit = Exit::Failed;
    }
    in_time(world.revoke_lease(session.lease)).await?;
    if exit == Exit::Well {
        print(format!("{} hosts run sequence {}", hosts.len(), manifest.sequence));
    }
    Ok(exit)
}

/// Takes the lease of deploys, or returns its holder.
async fn begin_session(world: &dyn World) -> Result<Result<Session<'_>, DeployLease>, WorldError> {
    let lease = in_time(world.grant_lease(LIFETIME)).await?;
    let own = DeployLease { schema: SCHEMA, by: operator_name(), since: unix_seconds() };
    let key = keys::DEPLOY_LEASE.to_owned();
    let take = Transaction {
        conditions: vec![Compare::CreateRevision(key.clone(), 0)],
        operations: vec![Operation::Put(key, write_record(&own), Some(lease))],
    };
    let taken = in_time(world.transact(take)).await?;
    if taken.succeeded {
        return Ok(Ok(Session { world, lease, token: taken.revision, renewed: Instant::now() }));
    }
    let holder = in_time(world.get(keys::DEPLOY_LEASE)).await?;
    in_time(world.revoke_lease(lease)).await?;
    let unknown = DeployLease { schema: SCHEMA, by: "unknown".to_owned(), since: 0 };
    Ok(Err(holder.and_then(|entry| read_record(&entry)).unwrap_or(unknown)))
}

impl Session<'_> {
    /// Renews the lease at half of its lifetime. Returns false if it is lost.
    async fn renew(&mut self) -> Result<bool, WorldError> {
        if self.renewed.elapsed() < LIFETIME / 2 {
            return Ok(true);
        }
        let sent = Instant::now();
        match in_time(self.world.keep_alive(self.lease)).await {
            Ok(()) => {
                self.renewed = sent;
                Ok(true)
            }
            Err(WorldError::LeaseEnded) => Ok(false),
            Err(WorldError::Unavailable(_)) => Ok(self.renewed.elapsed() < LIFETIME),
            Err(other) => Err(other),
        }
    }

    /// Requests the bundle on the hosts of a wave. Returns false if the lease is lost.
    async fn request(&mut self, wave: &[String], want: &Want) -> Result<bool, WorldError> {
        for hosts in wave.chunks(CHUNK) {
            if !self.renew().await? {
                return Ok(false);
            }
            let put = |host: &String| Operation::Put(keys::want(host), write_record(want), None);
            let request = Transaction {
                conditions: vec![Compare::CreateRevision(
                    keys::DEPLOY_LEASE.to_owned(),
                    self.token,
                )],
                operations: hosts.iter().map(put).collect(),
            };
            if !in_time(self.world.transact(request)).await?.succeeded {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes back the requests of hosts that have not begun, and reports them: such a host would run the bundle later,
    /// outside of all waves. An earlier request that is not fulfilled stands again. The hosts of one transaction lose
    /// their requests at once. `known` are the hosts before the deploy.
    async fn take_back(&self, of: (&[String], &BTreeMap<String, Host>), want: &Want) {
        if let Err(why) = self.try_take_back(of, want).await {
            error(format!("the requests are not taken back: {}", plain(&why.to_string())), None);
        }
    }

    async fn try_take_back(
        &self,
        (requested, known): (&[String], &BTreeMap<String, Host>),
        want: &Want,
    ) -> Result<(), WorldError> {
        let hosts = read_hosts(self.world).await?;
        let is_open = |name: &&String| {
            let Some(host) = hosts.get(*name) else { return false };
            let has_decided = host.status.as_ref().is_some_and(|status| {
                let is_final =
                    status.is_rejection_final && status.rejected_token == Some(want.token);
                status.generation == want.manifest || is_final
            });
            host.want.as_ref().is_some_and(|it| it.id() == want.id()) && !has_decided
        };
        let open: Vec<&String> = requested.iter().filter(is_open).collect();
        for chunk in open.chunks(CHUNK) {
            let undo = |name: &&String| {
                let key = keys::want(name);
                let before = known.get(*name).and_then(|host| {
                    let runs = host.status.as_ref().map(|status| status.generation.as_str());
                    let before = host.want.as_ref()?;
                    let is_done =
                        runs == Some(&*before.manifest) || before.manifest == want.manifest;
                    (!is_done).then_some(before)
                });
                match before {
                    Some(before) => Operation::Put(key, write_record(before), None),
                    None => Operation::Delete(key),
                }
            };
            let lease = Compare::CreateRevision(keys::DEPLOY_LEASE.to_owned(), self.token);
            let undo = Transaction {
                conditions: vec![lease],
                operations: chunk.iter().map(undo).collect(),
            };
            let is_undone = in_time(self.world.transact(undo)).await?.succeeded;
            for name in chunk {
                let words = if is_undone { "is taken back" } else { "stays: the lease is lost" };
                print(format!("  {}: the request {words}", plain(name)));
            }
        }
        Ok(())
    }

    /// Waits until all hosts of a wave run the manifest and are converged; the error names the first failure.
    async fn wait_for_wave(
        &mut self,
        wave: &[String],
        manifest: &str,
        patience: Duration,
    ) -> Result<Result<(), String>, WorldError> {
        let until = Instant::now() + patience;
        loop {
            if !self.renew().await? {
                return Ok(Err("the lease of the deploy is lost".to_owned()));
            }
            // A world that does not answer for a moment is no failure of a host.
            let hosts = match read_hosts(self.world).await {
                Ok(hosts) => hosts,
                Err(WorldError::Unavailable(_)) if Instant::now() < until => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                Err(other) => return Err(other),
            };
            let mut waits = Vec::new();
            for name in wave {
                let status = hosts.get(name).and_then(|host| host.status.as_ref());
                let Some(status) = status else {
                    waits.push(name.as_str());
                    continue;
                };
                // The rejection of an earlier deploy says nothing about this one.
                let is_of_this = status.rejected_manifest == manifest
                    && status.rejected_token.is_none_or(|token| token == self.token);
                if let Some(why) = status.rejected.as_ref().filter(|_| is_of_this) {
                    return Ok(Err(format!("{name} rejected the bundle: {why}")));
                }
                let runs_it = status.generation == manifest;
                if runs_it && number(status, "failed") + number(status, "stuck") > 0 {
                    let worst = status.worst.first().map(|(who, why)| format!(": {who}: {why}"));
                    return Ok(Err(format!("{name} has failed{}", worst.unwrap_or_default())));
                }
                if !(runs_it && status.converged) {
                    waits.push(name.as_str());
                }
            }
            if waits.is_empty() {
                return Ok(Ok(()));
            }
            if Instant::now() >= until {
                return Ok(Err(format!("not converged in time: {}", waits.join(", "))));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wave_size;

    #[test]
    fn waves_are_numbers_or_shares() {
        assert_eq!(wave_size("5", 100), Some(5));
        assert_eq!(wave_size("10%", 100), Some(10));
        assert_eq!(wave_size("10%", 3), Some(1));
        for wrong in ["0", "0%", "101%", "x", "-1", ""] {
            assert_eq!(wave_size(wrong, 10), None, "{wrong}");
        }
    }
}
