//! The interface of a daemon as data: requests, replies, status, plans and events, versioned by [`PROTOCOL`].
//!
//! The types have no logic and name no other part of the program. Every front end (the control socket, the commands,
//! the exporters of events) uses them, and `schema` describes them as JSON Schema. This folder must never read the
//! host, compute a status, or word a message.
//!
//! Reading order: `request`, `reply`, `principal` (the caller), `status`, `resource`, `drift`, `load`, `plan`,
//! `workers`, `event`, `event_data`, `schema`.

mod drift;
mod event;
pub mod event_data;
mod load;
mod plan;
mod principal;
mod reply;
mod request;
mod resource;
mod schema;
mod status;
mod workers;

pub use drift::{Differing, Inspection, Inspections};
pub use event::{Event, EventKind, Level, OldData, OldEvent};
pub use load::{GraphDiff, LoadOutcome, NameSample, Reloaded, SettingsChange};
pub use plan::{Action, FailedCheck, PlanReport, StayingObject, Step, UnknownFact};
pub use principal::Principal;
pub use reply::{Data, Delivered, LogLevelSet, Reply, ReplyLine, ReplySink};
pub use request::{PROTOCOL, Request, RequestLine};
pub use resource::{
    Ages, ChangeClass, List, Order, Ownership, PauseStatus, Phase, ResourceDetails, ResourceStatus,
    SelectedResources,
};
pub use schema::api_schema;
pub use status::{
    Changes, Checkout, Counts, GraphRejection, HostStatus, InactiveStatus, PartCondition,
    PartStatus, Reboot, SinglePause, Status, SwapStatus, Undone,
};
pub use workers::{Report, State, WorkerReport};
