//! The properties of units, queried without loading a unit, because loading would cause an event.

use super::connection::{BusConnection, MANAGER, MANAGER_PATH};
use super::signals::{Activity, UNIT};
use super::{Bus, Seen, Systemd, drop_ins, fault::Fault};
use crate::failure::Failure;
use futures_util::future::{try_join, try_join5};
use std::path::Path;
use std::time::Duration;
use zbus::{OwnedVariant, Variant, wire::OwnedObjectPath};

/// A unit in systemd's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The object path.
    pub path: String,
    /// The primary name, which may differ from the queried one.
    pub id: String,
    /// The load state: `loaded`, `not-found`, `masked`, `bad-setting`, `error`, …
    pub load: String,
    /// The activity.
    pub activity: Activity,
    /// The files of the unit are newer than systemd's copy.
    pub stale: bool,
    /// The object path of the pending job.
    pub job: Option<String>,
}

impl Systemd {
    /// Returns a unit by any of its names; none if the unit is not in memory, and so does not run.
    pub async fn unit(&self, bus: Bus, name: &str) -> Result<Option<Unit>, Failure> {
        Ok(self.look(bus, name).await?.0)
    }

    /// Returns a unit and the position of the query: the result covers every signal before that position.
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
            let (id, load, activity, mut stale, job) = all.await?;
            if bus == Bus::System && !stale && load == "loaded" {
                stale = has_unread_drop_in(&link, (&path, &id)).await?;
            }
            let activity = Activity::read(&activity);
            Ok((Some(Unit { path: path.clone(), id, load, activity, stale, job }), seen))
        };
        match read.await {
            // The unit was removed from memory meanwhile.
            Err(fault) if ["UnknownObject", "NoSuchUnit"].contains(&Fault::name(&fault)) => {
                Ok((None, None))
            }
            other => other.map_err(|fault: Fault| fault.failure(&format!("asking for {name}"))),
        }
    }

    /// Returns the object path of a unit in memory, by any of its names.
    pub async fn find(&self, bus: Bus, name: &str) -> Result<Option<String>, Failure> {
        let link = self.link(bus).await?;
        let found = find(&link, name).await;
        found.map(|(path, _)| path).map_err(|fault| fault.failure(&format!("asking for {name}")))
    }

    /// Returns all names of a unit in memory.
    pub async fn names(&self, bus: Bus, path: &str) -> Result<Vec<String>, Failure> {
        let link = self.link(bus).await?;
        match property_of(&link, path, UNIT, "Names").await.and_then(|names| Ok(names.try_into()?))
        {
            Err(fault) if fault.name() == "UnknownObject" => Ok(Vec::new()),
            other => other.map_err(|fault: Fault| fault.failure("asking for the names of a unit")),
        }
    }

    /// Returns the state of a unit file: `enabled`, `disabled`, `static`, `masked`, `alias`, …; none if there is
    /// no file.
    pub async fn file_state(&self, bus: Bus, name: &str) -> Result<Option<String>, Failure> {
        let link = self.link(bus).await?;
        let answer = link.call(MANAGER_PATH, MANAGER, "GetUnitFileState", &name).await;
        match answer.and_then(|answer| Ok(answer.body().deserialize()?)) {
            Ok(state) => Ok(Some(state)),
            Err(fault) if ["FileNotFound", "NoSuchUnit"].contains(&Fault::name(&fault)) => Ok(None),
            Err(fault) => Err(fault.failure(&format!("asking for the file of {name}"))),
        }
    }

    /// Returns true if the first file of that name is empty: systemd takes an empty file for a mask and would
    /// delete it to unmask the unit, although somebody may be about to write its content.
    pub async fn is_empty_file(&self, bus: Bus, name: &str) -> Result<bool, Failure> {
        let found = self.in_folders(bus, name, |path| path.symlink_metadata().ok()).await?;
        Ok(found.is_some_and(|file| file.is_file() && file.len() == 0))
    }

    /// Returns the name of the file behind a name: the unit's own name if the given one is a link.
    pub async fn file_name(&self, bus: Bus, name: &str) -> Result<String, Failure> {
        let file = self.in_folders(bus, name, |path| path.canonicalize().ok()).await?;
        let found = file.and_then(|file| file.file_name()?.to_str().map(str::to_owned));
        Ok(found.unwrap_or_else(|| name.to_owned()))
    }

    /// Returns the first result from the folders of unit files.
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
            .map_err(|fault| fault.failure("asking where units lie"))?;
        let handle = crate::host::process::spawner::handle()?;
        let wanted = name.to_owned();
        let found = handle.spawn_blocking(move || {
            folders.iter().find_map(|folder| look(&Path::new(folder).join(&wanted)))
        });
        found.await.map_err(|why| Failure::new(why.to_string()))
    }

    /// Returns the reason that a started unit does not run: systemd's result, and whether the unit's conditions
    /// were met.
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
                    // A target has no result.
                    Err(Fault::Refused { .. }) => Ok(String::new()),
                    Err(fault) => Err(fault),
                }
            };
            let conditions = async {
                Ok(bool::try_from(property_of(&link, &path, UNIT, "ConditionResult").await?)?)
            };
            try_join(result, conditions).await
        };
        ask.await.map_err(|fault: Fault| fault.failure(&format!("asking why {name} ended")))
    }

    /// Returns the id of the unit's last start; none if the unit is not in memory.
    pub async fn invocation(&self, bus: Bus, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let link = self.link(bus).await?;
        let ask = async {
            let Some(path) = find(&link, name).await?.0 else { return Ok(None) };
            Ok(Some(Vec::try_from(property_of(&link, &path, UNIT, "InvocationID").await?)?))
        };
        ask.await.map_err(|fault: Fault| fault.failure(&format!("asking for the start of {name}")))
    }

    /// Returns the number of automatic restarts of a service since its last manual start; none if the service is
    /// not in memory.
    pub async fn restarts(&self, bus: Bus, name: &str) -> Result<Option<u32>, Failure> {
        const SERVICE: &str = "org.freedesktop.systemd1.Service";
        let link = self.link(bus).await?;
        let ask = async {
            let Some(path) = find(&link, name).await?.0 else { return Ok(None) };
            Ok(Some(u32::try_from(property_of(&link, &path, SERVICE, "NRestarts").await?)?))
        };
        match ask.await {
            // The unit was removed from memory meanwhile, or systemd is older than this counter.
            Err(Fault::Refused { .. }) => Ok(None),
            other => other.map_err(|fault: Fault| {
                fault.failure(&format!("asking how often {name} was restarted"))
            }),
        }
    }

    /// Returns the units that a unit starts, such as the service of a socket. systemd loads the unit for that.
    pub async fn triggered(&self, bus: Bus, name: &str) -> Result<Vec<String>, Failure> {
        let link = self.link(bus).await?;
        let ask = async {
            let loaded = link.call(MANAGER_PATH, MANAGER, "LoadUnit", &name).await?;
            let path: OwnedObjectPath = loaded.body().deserialize()?;
            match property_of(&link, path.as_str(), UNIT, "Triggers").await {
                Ok(names) => Ok(names.try_into()?),
                // systemd has already forgotten the unit.
                Err(fault) if fault.name() == "UnknownObject" => Ok(Vec::new()),
                Err(fault) => Err(fault),
            }
        };
        ask.await.map_err(|fault: Fault| fault.failure(&format!("asking what {name} starts")))
    }

    /// Returns the version of systemd, like `252.39-1~deb12u1`.
    pub async fn version(&self, bus: Bus) -> Result<String, Failure> {
        let link = self.link(bus).await?;
        let found = property_of(&link, MANAGER_PATH, MANAGER, "Version").await;
        found
            .and_then(|version| Ok(version.try_into()?))
            .map_err(|fault: Fault| fault.failure("asking for the version of systemd"))
    }

    /// Returns the watchdog interval of a service in memory; none without a watchdog.
    pub async fn watchdog(&self, bus: Bus, path: &str) -> Result<Option<Duration>, Failure> {
        const SERVICE: &str = "org.freedesktop.systemd1.Service";
        let link = self.link(bus).await?;
        let found = property_of(&link, path, SERVICE, "WatchdogUSec").await;
        let every: Result<u64, Fault> = found.and_then(|every| Ok(every.try_into()?));
        let every = every.map_err(|fault| fault.failure("asking for the watchdog of a unit"))?;
        Ok((every > 0 && every < u64::MAX).then(|| Duration::from_micros(every)))
    }

    /// Returns true if a unit can reload; false if a restart is needed to read its configuration.
    pub async fn can_reload(&self, bus: Bus, path: &str) -> Result<bool, Failure> {
        let link = self.link(bus).await?;
        match property_of(&link, path, UNIT, "CanReload").await.and_then(|can| Ok(can.try_into()?))
        {
            Ok(can) => Ok(can),
            Err(fault) => Err(fault.failure("asking whether a unit can reload")),
        }
    }
}

/// Returns true if a drop-in of a loaded unit is unknown to systemd.
async fn has_unread_drop_in(link: &BusConnection, (path, id): (&str, &str)) -> Result<bool, Fault> {
    let Ok(handle) = crate::host::process::spawner::handle() else { return Ok(false) };
    let unit = id.to_owned();
    let looked = handle.spawn_blocking(move || drop_ins::written(&unit));
    let written = looked.await.unwrap_or_default();
    if written.is_empty() {
        return Ok(false);
    }
    let read = property_of(link, path, UNIT, "DropInPaths").await?;
    Ok(!drop_ins::are_read(&written, &Vec::<String>::try_from(read)?))
}

/// Returns the interface name's part for the type of a unit: `Service` for `a.service`.
fn type_of(name: &str) -> String {
    let suffix = name.rsplit('.').next().unwrap_or_default();
    let mut letters = suffix.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

pub(super) async fn find(
    link: &BusConnection,
    name: &str,
) -> Result<(Option<String>, Option<Seen>), Fault> {
    match link.call(MANAGER_PATH, MANAGER, "GetUnit", &name).await {
        Ok(answer) => {
            let path: OwnedObjectPath = answer.body().deserialize()?;
            Ok((Some(path.to_string()), Some(Seen::at(&answer))))
        }
        Err(Fault::Refused { name, at, .. }) if name.ends_with(".NoSuchUnit") => Ok((None, at)),
        Err(fault) => Err(fault),
    }
}

/// Returns the object path of a unit's job; `(0, "/")` means that there is none.
async fn job(link: &BusConnection, path: &str) -> Result<Option<String>, Fault> {
    let job: Variant<'_> = property_of(link, path, UNIT, "Job").await?.into();
    let (number, path) = <(u32, OwnedObjectPath)>::try_from(job)?;
    Ok((number != 0).then(|| path.to_string()))
}

pub(super) async fn property_of(
    link: &BusConnection,
    path: &str,
    interface: &str,
    property: &str,
) -> Result<OwnedVariant, Fault> {
    const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
    let answer = link.call(path, PROPERTIES, "Get", &(interface, property)).await?;
    Ok(answer.body().deserialize()?)
}
