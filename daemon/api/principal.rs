//! The caller of a request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The party that makes a request, as a front end has verified it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Principal {
    /// A process of this host, as the kernel reports it for a Unix socket.
    Local {
        /// The user id.
        uid: u32,
        /// The id of the primary group.
        gid: u32,
        /// The process id; `None` for a process of another pid namespace.
        pid: Option<i32>,
    },
}
