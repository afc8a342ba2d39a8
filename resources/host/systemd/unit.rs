//! What a unit is: asked without loading it, which would be an event by itself.

use super::connection::{BusConnection, MANAGER, MANAGER_PATH};
use super::signals::{Activity, UNIT};
use super::{Bus, Seen, Systemd, fault::Fault};
use crate::failure::Failure;
use futures_util::future::{try_join, try_join5};
use std::path::Path;
use std::time::Duration;
use zbus::{OwnedVariant, Variant, wire::OwnedObjectPath};

/// A unit that systemd has in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its object.
    pub path: String,
    /// Its first name; it may have been asked for by another.
    pub id: String,
    /// `loaded`, `not-found`, `masked`, `bad-setting`, `error`, …
    pub load: String,
    /// How far it is.
    pub activity: Activity,
    /// Its files are newer than what systemd has read.
    pub stale: bool,
    /// The job that is to be done with it.
    pub job: Option<String>,
}

impl Systemd {
    /// A unit, by any of its names; none where it is not in memory, which means that it does not run.
    pub async fn unit(&self, bus: Bus, name: &str) -> Result<Option<Unit>, Failure> {
        Ok(self.look(bus, name).await?.0)
    }

    /// The same, with the moment of the look: what systemd said before it is known then.
    pub async fn look(
        &self,
        bus: Bus,
        name: &str,
    ) -> Result<(Option<Unit>, Option<Seen>), Failure> {
        let link = self.link(bus).await?;
        let read = async {
            let (path, seen) = find(&link, name).await?;
            let Some(path) = path else { return Ok((None, seen)) };
            let text = async |property| -> Result<String, Fault> {
                Ok(String::try_from(property_of(&link, &path, UNIT, property).await?)?)
            };
            let stale = async {
                Ok(bool::try_from(property_of(&link, &path, UNIT, "NeedDaemonReload").await?)?)
            };
            let all = try_join5(
                text("Id"),
                text("LoadState"),
                text("ActiveState"),
                stale,
                job(&link, &path),
            );
            let (id, load, activity, stale, job) = all.await?;
            let activity = Activity::read(&activity);
            Ok((Some(Unit { path: path.clone(), id, load, activity, stale, job }), seen))
        };
        match read.await {
            // It was let go meanwhile.
            Err(fault) if ["UnknownObject", "NoSuchUnit"].contains(&Fault::name(&fault)) => {
                Ok((None, None))
            }
            other => other.map_err(|fault: Fault| fault.trouble(&format!("asking for {name}"))),
        }
    }

    /// The object of a unit that is in memory, by any of its names.
    pub async fn find(&self, bus: Bus, name: &str) -> Result<Option<String>, Failure> {
        let link = self.link(bus).await?;
        let found = find(&link, name).await;
        found.map(|(path, _)| path).map_err(|fault| fault.trouble(&format!("asking for {name}")))
    }

    /// All names of a unit that is in memory.
    pub async fn names(&self, bus: Bus, path: &str) -> Result<Vec<String>, Failure> {
        let link = self.link(bus).await?;
        match property_of(&link, path, UNIT, "Names").await.and_then(|names| Ok(names.try_into()?))
        {
            Err(fault) if fault.name() == "UnknownObject" => Ok(Vec::new()),
            other => other.map_err(|fault: Fault| fault.trouble("asking for the names of a unit")),
        }
    }

    /// How a unit's file stands: `enabled`, `disabled`, `static`, `masked`, `alias`, …; none where there is no such file.
    pub async fn file_state(&self, bus: Bus, name: &str) -> Result<Option<String>, Failure> {
        let link = self.link(bus).await?;
        let answer = link.call(MANAGER_PATH, MANAGER, "GetUnitFileState", &name).await;
        match answer.and_then(|answer| Ok(answer.body().deserialize()?)) {
            Ok(state) => Ok(Some(state)),
            Err(fault) if ["FileNotFound", "NoSuchUnit"].contains(&Fault::name(&fault)) => Ok(None),
            Err(fault) => Err(fault.trouble(&format!("asking for the file of {name}"))),
        }
    }

    /// Whether the first file of that name is an empty one: systemd takes that for a mask, and would remove it to unmask the unit.
    /// It may be one that somebody is about to write.
    pub async fn is_empty_file(&self, bus: Bus, name: &str) -> Result<bool, Failure> {
        let found = self.in_folders(bus, name, |path| path.symlink_metadata().ok()).await?;
        Ok(found.is_some_and(|file| file.is_file() && file.len() == 0))
    }

    /// The name of the file behind a name: that of the unit itself where the name is a link to it.
    pub async fn file_name(&self, bus: Bus, name: &str) -> Result<String, Failure> {
        let file = self.in_folders(bus, name, |path| path.canonicalize().ok()).await?;
        let found = file.and_then(|file| file.file_name()?.to_str().map(str::to_owned));
        Ok(found.unwrap_or_else(|| name.to_owned()))
    }

    /// What is found first in the folders where units lie.
    async fn in_folders<T: Send + 'static>(
        &self,
        bus: Bus,
        name: &str,
        look: fn(&Path) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let link = self.link(bus).await?;
        let folders = property_of(&link, MANAGER_PATH, MANAGER, "UnitPath").await;
        let folders: Vec<String> = folders
            .and_then(|folders| Ok(folders.try_into()?))
            .map_err(|fault| fault.trouble("asking where units lie"))?;
        let handle = crate::host::process::spawner::handle()?;
        let wanted = name.to_owned();
        let found = handle.spawn_blocking(move || {
            folders.iter().find_map(|folder| look(&Path::new(folder).join(&wanted)))
        });
        found.await.map_err(|why| Failure::new(why.to_string()))
    }

    /// Why a unit does not run although it was started: a word of systemd's, and whether its conditions were met.
    pub async fn result(&self, bus: Bus, name: &str) -> Result<(String, bool), Failure> {
        let link = self.link(bus).await?;
        let ask = async {
            let Some(path) = find(&link, name).await?.0 else {
                return Ok((String::new(), true));
            };
            let interface = format!("org.freedesktop.systemd1.{}", type_of(name));
            let result = async {
                match property_of(&link, &path, &interface, "Result").await {
                    Ok(word) => Ok(String::try_from(word)?),
                    // A target has none.
                    Err(Fault::Refused { .. }) => Ok(String::new()),
                    Err(fault) => Err(fault),
                }
            };
            let conditions = async {
                Ok(bool::try_from(property_of(&link, &path, UNIT, "ConditionResult").await?)?)
            };
            try_join(result, conditions).await
        };
        ask.await.map_err(|fault: Fault| fault.trouble(&format!("asking why {name} ended")))
    }

    /// What tells one start of a unit from the next; none where it is not in memory.
    pub async fn invocation(&self, bus: Bus, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let link = self.link(bus).await?;
        let ask = async {
            let Some(path) = find(&link, name).await?.0 else { return Ok(None) };
            Ok(Some(Vec::try_from(property_of(&link, &path, UNIT, "InvocationID").await?)?))
        };
        ask.await.map_err(|fault: Fault| fault.trouble(&format!("asking for the start of {name}")))
    }

    /// The number of times that systemd has restarted a service by itself since somebody started it; none where it is not in memory.
    pub async fn restarts(&self, bus: Bus, name: &str) -> Result<Option<u32>, Failure> {
        const SERVICE: &str = "org.freedesktop.systemd1.Service";
        let link = self.link(bus).await?;
        let ask = async {
            let Some(path) = find(&link, name).await?.0 else { return Ok(None) };
            Ok(Some(u32::try_from(property_of(&link, &path, SERVICE, "NRestarts").await?)?))
        };
        match ask.await {
            // It was let go meanwhile, or is older than this counter.
            Err(Fault::Refused { .. }) => Ok(None),
            other => other.map_err(|fault: Fault| {
                fault.trouble(&format!("asking how often {name} was restarted"))
            }),
        }
    }

    /// The version of systemd itself: `252.39-1~deb12u1`.
    pub async fn version(&self, bus: Bus) -> Result<String, Failure> {
        let link = self.link(bus).await?;
        let found = property_of(&link, MANAGER_PATH, MANAGER, "Version").await;
        found
            .and_then(|version| Ok(version.try_into()?))
            .map_err(|fault: Fault| fault.trouble("asking for the version of systemd"))
    }

    /// How often a service that is in memory must say that it is alive; none where it need not.
    pub async fn watchdog(&self, bus: Bus, path: &str) -> Result<Option<Duration>, Failure> {
        const SERVICE: &str = "org.freedesktop.systemd1.Service";
        let link = self.link(bus).await?;
        let found = property_of(&link, path, SERVICE, "WatchdogUSec").await;
        let every: Result<u64, Fault> = found.and_then(|every| Ok(every.try_into()?));
        let every = every.map_err(|fault| fault.trouble("asking for the watchdog of a unit"))?;
        Ok((every > 0 && every < u64::MAX).then(|| Duration::from_micros(every)))
    }

    /// Whether a unit can reload; false where it must be restarted to read its configuration.
    pub async fn can_reload(&self, bus: Bus, path: &str) -> Result<bool, Failure> {
        let link = self.link(bus).await?;
        match property_of(&link, path, UNIT, "CanReload").await.and_then(|can| Ok(can.try_into()?))
        {
            Ok(can) => Ok(can),
            Err(fault) => Err(fault.trouble("asking whether a unit can reload")),
        }
    }
}

/// The part of the interface's name for the type of a unit: `Service` for `a.service`.
fn type_of(name: &str) -> String {
    let suffix = name.rsplit('.').next().unwrap_or_default();
    let mut letters = suffix.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

async fn find(link: &BusConnection, name: &str) -> Result<(Option<String>, Option<Seen>), Fault> {
    match link.call(MANAGER_PATH, MANAGER, "GetUnit", &name).await {
        Ok(answer) => {
            let path: OwnedObjectPath = answer.body().deserialize()?;
            Ok((Some(path.to_string()), Some(Seen::at(&answer))))
        }
        Err(Fault::Refused { name, at, .. }) if name.ends_with(".NoSuchUnit") => Ok((None, at)),
        Err(fault) => Err(fault),
    }
}

/// The path of a unit's job; `(0, "/")` means that there is none.
async fn job(link: &BusConnection, path: &str) -> Result<Option<String>, Fault> {
    let job: Variant<'_> = property_of(link, path, UNIT, "Job").await?.into();
    let (number, path) = <(u32, OwnedObjectPath)>::try_from(job)?;
    Ok((number != 0).then(|| path.to_string()))
}

async fn property_of(
    link: &BusConnection,
    path: &str,
    interface: &str,
    property: &str,
) -> Result<OwnedVariant, Fault> {
    const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
    let answer = link.call(path, PROPERTIES, "Get", &(interface, property)).await?;
    Ok(answer.body().deserialize()?)
}
