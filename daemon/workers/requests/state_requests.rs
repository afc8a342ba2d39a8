//! Requests that change what is recorded of resources: protect, unprotect, forget, and a stored retry.

use super::handler::DaemonRequestHandler;
use crate::api::{Reply, ReplySink};
use crate::driver::Query;
use crate::driver::commands::state_commands::Rejection;
use crate::nearest_name::with_nearest;
use crate::store::StateCommand;

impl DaemonRequestHandler {
    /// Runs resources again; a stored request is a state command.
    pub(super) async fn retry(
        &self,
        resources: Vec<String>,
        persist: bool,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        if persist {
            return self.change_state(StateCommand::Retry, resources, replies).await;
        }
        self.order(resources, Query::Retry).await
    }

    /// Carries out a state command, and replies with its lines.
    pub(super) async fn change_state(
        &self,
        command: StateCommand,
        resources: Vec<String>,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        replies.send_data(self.of_state(command, resources).await?).await;
        Ok(())
    }

    /// Carries out a state command; the reply means that it is durable.
    async fn of_state(
        &self,
        order: StateCommand,
        resources: Vec<String>,
    ) -> Result<Vec<String>, Reply> {
        let ordered = self.of_driver(|to| Query::StateCommand(order, resources, to)).await?;
        ordered.map_err(|declined| match declined {
            Rejection::Unknown { names, known } => {
                let all = || known.iter().map(String::as_str);
                Reply::Unknown(names.iter().map(|name| with_nearest(name, all())).collect())
            }
            Rejection::Later(why) => Reply::Unavailable(why),
            Rejection::Refused(why) => Reply::Refused(why),
        })
    }
}
