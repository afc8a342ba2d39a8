//! A loop over the agenda for tests that step one life of the daemon by hand.

use crate::environment::{Shared, lock};
use crate::life::Life;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use steadfast::driver::DriverExit;

/// Executes events of the agenda until the condition is true or the driver has ended.
pub(crate) async fn until(
    life: &mut Life,
    stage: &Shared,
    mut is_so: impl FnMut() -> bool,
) -> Option<DriverExit> {
    let mut sleep = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    poll_fn(|context| {
        loop {
            lock(stage).waker = None;
            if let Poll::Ready(finished) = life.driver.as_mut().poll(context) {
                return Poll::Ready(Some(finished));
            }
            if is_so() {
                return Poll::Ready(None);
            }
            life.plan(stage);
            let mut agenda = lock(stage);
            let due = agenda.due();
            if due.is_some_and(|due| due <= agenda.now()) {
                let event = agenda.take().expect("it is due");
                drop(agenda);
                life.act(event, stage);
                continue;
            }
            agenda.waker = Some(context.waker().clone());
            let Some(due) = due else { return Poll::Pending };
            sleep.as_mut().reset(agenda.moment(due));
            drop(agenda);
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
