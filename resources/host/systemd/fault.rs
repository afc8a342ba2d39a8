//! The failures of calls to systemd.

use super::{Bus, Seen};
use crate::failure::Failure;
use crate::secrets::escape::short;
use std::time::Duration;
use zbus::DBusError as _;

/// The failure of a call to systemd.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// systemd or the bus returned an error.
    Refused {
        /// The name of the error, like `org.freedesktop.systemd1.NoSuchUnit`.
        name: String,
        /// The message.
        words: String,
        /// The position of the error message on the connection.
        at: Option<Seen>,
    },
    /// There is no connection.
    Lost(String),
    /// No reply came within this time.
    Silent(Duration),
}

impl From<zbus::Error> for Fault {
    fn from(error: zbus::Error) -> Self {
        match error {
            zbus::Error::MethodError(name, words, message) => Self::Refused {
                name: name.to_string(),
                words: words.unwrap_or_default(),
                at: Some(Seen::at(&message)),
            },
            zbus::Error::FDO(error) => Self::Refused {
                name: error.name().to_string(),
                words: error.description().unwrap_or_default().to_owned(),
                at: None,
            },
            other => Self::Lost(other.to_string()),
        }
    }
}

impl Fault {
    /// Returns the last part of the error's name, or an empty text.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Refused { name, .. } => name.rsplit('.').next().unwrap_or_default(),
            Self::Lost(_) | Self::Silent(_) => "",
        }
    }

    /// Describes the failure; `what` names the failed action.
    pub(super) fn failure(&self, what: &str) -> Failure {
        match self {
            Self::Refused { words, .. } => {
                let failure = Failure::new(format!("{what}: {}", short(words, 100)));
                match self.name() {
                    "TransactionIsDestructive" => {
                        failure.hint("an irreversible job is queued, for example a shutdown")
                    }
                    "AccessDenied" | "InteractiveAuthorizationRequired" => failure
                        .hint("systemd accepts changes only from root; user units need `session`"),
                    _ => failure,
                }
            }
            Self::Lost(why) => {
                Failure::new(format!("{what}: the D-Bus connection was lost: {}", short(why, 60)))
                    .passing()
            }
            Self::Silent(limit) => {
                Failure::new(format!("{what}: systemd did not respond within {limit:?}"))
                    .hint("systemd may be busy or hang: check that `systemctl status` responds")
                    .passing()
            }
        }
    }

    /// Describes a failed connection.
    pub(super) fn unreachable(&self, bus: Bus) -> Failure {
        let (name, hint) = match bus {
            Bus::System => {
                ("system", "check that systemd runs this machine and dbus.socket is active")
            }
            Bus::Session => (
                "user's",
                "a user without a login needs `loginctl enable-linger`, and dbus-user-session",
            ),
        };
        let why = match self {
            Self::Refused { words, .. } => words.clone(),
            Self::Lost(why) => why.clone(),
            Self::Silent(limit) => format!("no response within {limit:?}"),
        };
        let why = short(&why, 60);
        Failure::new(format!("systemd on the {name} bus cannot be reached: {why}"))
            .hint(hint)
            .passing()
    }
}
