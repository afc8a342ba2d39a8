//! What systemd tells without being asked.

use std::collections::HashMap;
use zbus::message::Type;
use zbus::{Message, ObjectPath, Variant};

pub(super) const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// How far a unit is: its `ActiveState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It runs.
    Active,
    /// It runs, and reads its configuration anew.
    Reloading,
    /// It does not run.
    Inactive,
    /// It does not run, and did not end well.
    Failed,
    /// It is being started.
    Activating,
    /// It is being stopped.
    Deactivating,
    /// Its files are being maintained, or something newer than this program.
    Other,
}

impl Activity {
    pub(super) fn read(word: &str) -> Self {
        match word {
            "active" => Self::Active,
            "reloading" | "refreshing" => Self::Reloading,
            "inactive" => Self::Inactive,
            "failed" => Self::Failed,
            "activating" => Self::Activating,
            "deactivating" => Self::Deactivating,
            _ => Self::Other,
        }
    }
}

/// Something that systemd tells. Paths are those of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening<'n> {
    /// A unit has moved, or one of its properties has.
    Unit {
        /// Of which unit.
        path: &'n str,
        /// How far it is now, where that was told.
        activity: Option<Activity>,
        /// A run is at work on it and knows of this: no news, but true.
        known: bool,
    },
    /// A unit was taken into memory.
    New {
        /// Its first name.
        name: &'n str,
        /// Its object.
        path: &'n str,
        /// As above.
        known: bool,
    },
    /// A unit was let go.
    Removed {
        /// Its first name.
        name: &'n str,
        /// Its object.
        path: &'n str,
    },
    /// All units are being read anew (true), or have been.
    Reloading(bool),
    /// Unit files were enabled, disabled, masked or the like; which ones is not told.
    Files,
    /// The connection is lost, for this reason: nothing more is told.
    Lost(&'n str),
}

/// Who is told. It must be quick, and must not come back to this module.
pub type Sink = Box<dyn Fn(Happening<'_>) + Send + Sync>;

/// The same, with what the connection itself must know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Unit { path: String, activity: Option<Activity> },
    New { name: String, path: String },
    Removed { name: String, path: String },
    Reloading(bool),
    Files,
    Job { path: String, unit: String, result: String },
    Left,
}

/// Reads a signal; none where it is not for us.
pub(super) fn read(message: &Message) -> Option<Signal> {
    if message.message_type() != Type::Signal {
        return None;
    }
    let header = message.header();
    let (interface, member) = (header.interface()?.as_str(), header.member()?.as_str());
    let body = message.body();
    match (interface, member) {
        ("org.freedesktop.DBus.Properties", "PropertiesChanged") => {
            let (interface, changed, _): (&str, HashMap<&str, Variant<'_>>, Vec<&str>) =
                body.deserialize().ok()?;
            let path = header.path()?.to_string();
            let activity = match changed.get("ActiveState") {
                Some(Variant::Str(word)) => Some(Activity::read(word.as_str())),
                _ => None,
            };
            (interface == UNIT).then_some(Signal::Unit { path, activity })
        }
        (super::connection::MANAGER, "UnitNew" | "UnitRemoved") => {
            let (name, path): (&str, ObjectPath<'_>) = body.deserialize().ok()?;
            let (name, path) = (name.to_owned(), path.to_string());
            Some(if member == "UnitNew" {
                Signal::New { name, path }
            } else {
                Signal::Removed { name, path }
            })
        }
        (super::connection::MANAGER, "JobRemoved") => {
            let (_, path, unit, result): (u32, ObjectPath<'_>, &str, &str) =
                body.deserialize().ok()?;
            let (path, unit) = (path.to_string(), unit.to_owned());
            Some(Signal::Job { path, unit, result: result.to_owned() })
        }
        (super::connection::MANAGER, "Reloading") => body.deserialize().ok().map(Signal::Reloading),
        (super::connection::MANAGER, "UnitFilesChanged") => Some(Signal::Files),
        ("org.freedesktop.DBus", "NameOwnerChanged") => {
            let (name, _, _): (&str, &str, &str) = body.deserialize().ok()?;
            (name == super::connection::NAME).then_some(Signal::Left)
        }
        _ => None,
    }
}
