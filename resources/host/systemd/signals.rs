//! The signals of systemd.

use std::collections::HashMap;
use zbus::message::Type;
use zbus::{Message, ObjectPath, Variant};

pub(super) const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// The activity of a unit: its `ActiveState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The unit runs.
    Active,
    /// The unit runs and is reloading its configuration.
    Reloading,
    /// The unit does not run.
    Inactive,
    /// The unit does not run after a failure.
    Failed,
    /// The unit is starting.
    Activating,
    /// The unit is stopping.
    Deactivating,
    /// The unit is in maintenance, or in a state newer than this program.
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

    /// Returns the word of systemd for the activity.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Reloading => "reloading",
            Self::Inactive => "inactive",
            Self::Failed => "failed",
            Self::Activating => "activating",
            Self::Deactivating => "deactivating",
            Self::Other => "other",
        }
    }
}

/// An event of systemd. Paths are object paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening<'n> {
    /// A unit has changed its state or a property.
    Unit {
        /// The object path of the unit.
        path: &'n str,
        /// The new activity, if the signal contains one.
        activity: Option<Activity>,
        /// A run is changing the unit and knows of this event, so it is no drift.
        known: bool,
    },
    /// A unit was loaded into memory.
    New {
        /// The primary name.
        name: &'n str,
        /// The object path.
        path: &'n str,
        /// A run is changing the unit and knows of this event, so it is no drift.
        known: bool,
    },
    /// A unit was removed from memory.
    Removed {
        /// The primary name.
        name: &'n str,
        /// The object path.
        path: &'n str,
    },
    /// A reload of all units begins (true) or has ended (false).
    Reloading(bool),
    /// Unit files were enabled, disabled, masked or the like; the signal does not name them.
    Files,
    /// The connection is lost, for this reason; no further event follows.
    Lost(&'n str),
}

/// A receiver of events. It must be quick, and must not call this module.
pub type Sink = Box<dyn Fn(Happening<'_>) + Send + Sync>;

/// A signal, including those for the connection itself.
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

/// Parses a signal; none for other messages.
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
