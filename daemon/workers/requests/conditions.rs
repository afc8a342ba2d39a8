//! The conditions of the running graph in replies: inactive resources, and inputs that do not apply.

use crate::api::{Ages, InactiveStatus, Phase, ResourceDetails, ResourceStatus, Status};
use crate::workers::graph::loader::GraphLoader;

/// Adds the inactive resources, at most this number, and the reports of inputs.
pub(super) fn add_conditions(graph: &GraphLoader, limit: usize, status: &mut Status) {
    let conditions = graph.conditions();
    status.inactive_omitted = conditions.inactive.len().saturating_sub(limit);
    let shown = conditions.inactive.iter().take(limit).map(|inactive| InactiveStatus {
        resource: inactive.identity.to_string(),
        message: inactive.to_string(),
    });
    status.inactive = shown.collect();
    status.input_reports = conditions.lines;
}

/// Returns the details of an inactive resource, by its identity or its bare name; none for other resources.
pub(super) fn inactive_details(graph: &GraphLoader, resource: &str) -> Option<ResourceDetails> {
    let conditions = graph.conditions();
    let bare = format!("[{resource}]");
    let exact = conditions.inactive.iter().find(|it| &*it.identity == resource);
    let found = exact.or_else(|| {
        let mut named = conditions.inactive.iter().filter(|it| it.identity.ends_with(&bare));
        named.next().filter(|_| named.next().is_none())
    })?;
    let (file, line) = found.place;
    let file = conditions.files.get(file).map(|file| file.display().to_string());
    let at = found.condition_at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
    Some(ResourceDetails {
        status: ResourceStatus {
            resource: found.identity.to_string(),
            phase: Phase::Inactive,
            message: format!("{found}{at}"),
            waits_for: Vec::new(),
            next_try_in: None,
            running_for: None,
            awaiting_operator_for: None,
            error: None,
            ages: Ages::default(),
            repairs: 0,
            last_change: None,
            pause: None,
            pending_removal: false,
        },
        needs: Vec::new(),
        needed_by: Vec::new(),
        waited_for_by: Vec::new(),
        watch: "none: an inactive resource is not checked".to_owned(),
        declared_at: file.map(|file| (file, line)),
        owned: None,
        condition_at: found.condition_at.clone(),
    })
}
