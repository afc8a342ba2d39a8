//! The task that runs requested bundles. It is apart from the other work of the world: a slow server of bundles, or a
//! slow reload, must delay neither the lease of this host nor its values and permits.

use super::WorldParts;
use super::generation::{BundleFailure, Generation, Requests};
use super::git_fetch::remove_leftover;
use super::host_world::Rejection;
use super::unpacked_bundles::FOLDER;
use crate::api::event_data::Reason;
use crate::api::{EventKind, Level};
use crate::events::NewEvent;
use crate::world::follower::RangeView;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval of looks at the requested bundle.
const LOOK: Duration = Duration::from_secs(1);

/// Runs each bundle that is requested for this host, until the view of the requests ends.
pub(super) async fn run_bundles(parts: Arc<WorldParts>, mut want: watch::Receiver<RangeView>) {
    let scratch = parts.state_directory.join(FOLDER);
    drop(tokio::task::spawn_blocking(move || remove_leftover(&scratch)).await);
    let mut generation = Generation::new(&parts.state_directory);
    loop {
        run_due_bundle(&parts, &mut generation, &want).await;
        tokio::select! {
            changed = want.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Runs a requested bundle if one is due, and reports a rejection.
async fn run_due_bundle(parts: &Arc<WorldParts>, generation: &mut Generation, want: &Requests) {
    let host = parts.world.as_ref();
    if let Err(why) = generation.follow_swap(parts, host).await {
        report_rejection(parts, &why);
    }
    let Some(due) = generation.look(host, want).await else { return };
    let request = due.request.clone();
    let ran = match due.verified() {
        Ok(bundle) => generation.run_bundle((parts, host), (&request, bundle), want).await,
        Err(why) => Err(why),
    };
    if let Err(why) = ran {
        report_rejection(parts, &why);
        let is_final = matches!(why, BundleFailure::Graph(_));
        host.set_rejected(Some(Rejection { request, reason: why.to_string(), is_final }));
    }
}

fn report_rejection(parts: &WorldParts, why: &BundleFailure) {
    let reason = why.to_string();
    tracing::error!(event = "bundle", "the bundle was rejected: {reason}");
    let event = EventKind::Bundle(Reason { reason });
    parts.publisher.publish(NewEvent::new(event, Level::Error));
}
