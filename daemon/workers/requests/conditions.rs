//! The conditions of the running graph in replies: inactive resources, and inputs that do not apply.

use crate::api::Reply;
use crate::api::{InactiveStatus, Status};
use crate::workers::graph::loader::GraphLoader;

/// Adds the inactive resources, at most this number, and the reports of inputs.
pub(super) fn add_conditions(graph: &GraphLoader, most: usize, status: &mut Status) {
    let conditions = graph.conditions();
    status.inactive_omitted = conditions.inactive.len().saturating_sub(most);
    let shown = conditions.inactive.iter().take(most).map(|inactive| InactiveStatus {
        resource: inactive.identity.to_string(),
        message: inactive.to_string(),
    });
    status.inactive = shown.collect();
    status.input_reports = conditions.lines;
}

/// Returns the reply about an inactive resource; none for other resources.
pub(super) fn inactive_reply(graph: &GraphLoader, resource: &str) -> Option<Reply> {
    let conditions = graph.conditions();
    let inactive = conditions.inactive.iter().find(|it| &*it.identity == resource)?;
    Some(Reply::Refused(format!("{resource} is {inactive}")))
}
