//! The request to pause the daemon or single resources.

use super::handler::{DaemonRequestHandler, span};
use crate::api::{Reply, ReplySink};
use crate::driver::{DriverEvent, Query};
use std::time::Duration;

/// The time for which a reply waits until the pause is durable.
const SAVED: Duration = Duration::from_secs(2);

impl DaemonRequestHandler {
    /// Pauses the daemon, or these resources. Replies with a warning if the pause is in effect and cannot be stored
    /// now.
    pub(super) async fn pause(
        &self,
        (seconds, reason, drain): (Option<u64>, String, bool),
        resources: Vec<String>,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        let limit = seconds.map(span).transpose()?;
        if resources.is_empty() {
            self.of_next_driver(DriverEvent::Pause { reason, limit, drain })?;
        } else if drain {
            let why =
                "only the whole daemon can drain; single resources pause after their current run";
            return Err(Reply::Refused(why.to_owned()));
        } else {
            let pause_of = |names, to| Query::PauseResources { names, limit, reason, to };
            self.order(resources, pause_of).await?;
        }
        // Without a driver, the next one stores the pause.
        let saved = self.of_driver_in(SAVED, Query::PauseSaved).await.unwrap_or_default();
        if let Some(why) = saved {
            let warning = format!(
                "the pause cannot be stored now, and is lost if the daemon is killed: {}",
                why.replace('\n', "; ")
            );
            replies.send_data(vec![warning]).await;
        }
        Ok(())
    }
}
