//! The task that runs requested bundles. It is apart from the other work of the world: a slow server of bundles, or a
//! slow reload, must delay neither the lease of this host nor its values and permits.

use super::WorldParts;
use super::generation::Generation;
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
    let mut generation = Generation::new(&parts.state_directory);
    loop {
        run_due_bundle(&parts, &mut generation, &want).await;
        tokio::select! {
            changed = want.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Runs a requested bundle if one is due, or reports its rejection.
async fn run_due_bundle(
    parts: &Arc<WorldParts>,
    generation: &mut Generation,
    want: &watch::Receiver<RangeView>,
) {
    let Some(bundle) = generation.look(&parts.world, want).await else { return };
    if let Err(why) = generation.run_bundle(parts, &parts.world, bundle).await {
        let why = why.to_string();
        tracing::error!(event = "bundle", "the bundle was rejected: {why}");
        parts.publisher.publish(NewEvent::new(
            EventKind::Bundle(Reason { reason: why.clone() }),
            Level::Error,
        ));
        parts.world.set_rejected(Some((generation.tried_manifest(), why)));
    }
}
