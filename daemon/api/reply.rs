//! The replies: a closed list, and the data that each request is answered with.

use super::drift::Inspections;
use super::event::Event;
use super::load::Reloaded;
use super::request::PROTOCOL;
use super::resource::{List, ResourceDetails, ResourceStatus, SelectedResources};
use super::status::{Status, Undone};
use super::workers::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::pin::Pin;

/// The line of a reply, with the version of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyLine<R = Reply> {
    /// The version of the protocol: [`PROTOCOL`].
    pub protocol: u32,
    /// The reply, or a part of it.
    pub reply: R,
}

impl<R> ReplyLine<R> {
    /// Adds the version of the protocol to a reply.
    pub const fn new(reply: R) -> Self {
        Self { protocol: PROTOCOL, reply }
    }
}

/// A reply, or a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The requested data, or a part of them.
    Data(Box<Data>),
    /// The end of the reply.
    Done,
    /// No resources have these names.
    Unknown(Vec<String>),
    /// Several resources have a name that must be unique; each text names it with its resources.
    Ambiguous(Vec<String>),
    /// The request cannot be carried out now; the text says what to do.
    Unavailable(String),
    /// The request is refused for good.
    Refused(String),
    /// The graph or the settings are invalid.
    Rejected(String),
    /// The caller may not make this request.
    Denied(String),
}

/// The data of a reply, by the request that they answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// `status`: the status of the host.
    Status(Box<Status>),
    /// `show`: one resource.
    Resource(Box<ResourceDetails>),
    /// `list`: a page of the list of resources.
    Resources(List),
    /// `select`: the status of selected resources.
    Selected(SelectedResources),
    /// `names`: identities of resources.
    Names(Vec<String>),
    /// `why`: the chain from a resource to the cause that blocks it.
    Blockers(Vec<ResourceStatus>),
    /// `diff`: the differences that a check found now.
    Drift(Inspections),
    /// `workers`: the workers of the daemon.
    Workers(Report),
    /// `reload`: the loaded graph and the changed settings.
    Reload(Reloaded),
    /// `undo`: the restored paths.
    Undo(Undone),
    /// A state command or maintenance: one line for each change. A pause: a warning, if there is one.
    Lines(Vec<String>),
    /// `log-level`: the level that holds now.
    LogLevel(LogLevelSet),
    /// `events`: one event.
    Event(Box<Event>),
    /// `events`: so many events were lost, because the client was too slow.
    Missed(u64),
    /// `events`: the stream ends, for this reason.
    End(String),
}

/// The level of the log after a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLevelSet {
    /// The level, or the filter.
    pub level: String,
    /// The time for which the level holds, in words.
    pub until: String,
}

/// The result of a send: true if the receiver is still there.
pub type Delivered<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// A receiver of the lines of a reply: a connection of the control socket, or another front end.
pub trait ReplySink: Send {
    /// Sends one line.
    fn send<'a>(&'a mut self, reply: &'a Reply) -> Delivered<'a>;

    /// Sends complete lines that are already the JSON of [`ReplyLine`], each with its newline.
    fn send_lines<'a>(&'a mut self, lines: &'a str) -> Delivered<'a>;
}

impl dyn ReplySink + '_ {
    /// Sends data as one line; returns false if the receiver is gone.
    pub async fn send_data(&mut self, data: impl Into<Data>) -> bool {
        self.send(&Reply::Data(Box::new(data.into()))).await
    }
}

/// Implements the conversions between a variant of [`Data`] and its content, which may be boxed.
macro_rules! data_of {
    (boxed $content:ty: $variant:ident) => {
        impl From<$content> for Data {
            fn from(content: $content) -> Self {
                Self::$variant(Box::new(content))
            }
        }

        impl TryFrom<Data> for $content {
            type Error = Data;

            fn try_from(data: Data) -> Result<Self, Data> {
                match data {
                    Data::$variant(content) => Ok(*content),
                    other => Err(other),
                }
            }
        }
    };
    ($content:ty: $variant:ident $(| $other:ident)*) => {
        impl From<$content> for Data {
            fn from(content: $content) -> Self {
                Self::$variant(content)
            }
        }

        impl TryFrom<Data> for $content {
            type Error = Data;

            fn try_from(data: Data) -> Result<Self, Data> {
                match data {
                    Data::$variant(content) $(| Data::$other(content))* => Ok(content),
                    other => Err(other),
                }
            }
        }
    };
}

data_of!(boxed Status: Status);
data_of!(boxed ResourceDetails: Resource);
data_of!(boxed Event: Event);
data_of!(List: Resources);
data_of!(SelectedResources: Selected);
data_of!(Vec<String>: Lines | Names);
data_of!(Vec<ResourceStatus>: Blockers);
data_of!(Inspections: Drift);
data_of!(Report: Workers);
data_of!(Reloaded: Reload);
data_of!(Undone: Undo);
data_of!(LogLevelSet: LogLevel);
