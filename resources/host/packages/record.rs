//! What a transaction of packages was before it, and after it, is handed to those who keep it: on a thread, for they wait for a disk.

use crate::failure::Failure;
use crate::host::Host;
use crate::host::process::spawner;
use crate::permit::Permit;
use crate::prior_state::{FieldValues, PriorStateRecorder};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Host {
    /// Has the values of these kept, by their positions in the run; durable when it returns. Answers what is to be settled.
    pub async fn keep_values(
        &self,
        permit: &Permit,
        each: Vec<(usize, FieldValues)>,
    ) -> Result<BTreeMap<usize, u64>, Failure> {
        let kept = |(at, values)| Some((at, permit.keeper_of(at)?, values));
        let each: Vec<(usize, Arc<dyn PriorStateRecorder>, FieldValues)> =
            each.into_iter().filter_map(kept).collect();
        on_thread(move || {
            let keep = |(at, keeper, values): (_, Arc<dyn PriorStateRecorder>, _)| {
                (at, keeper.keep_values(values))
            };
            each.into_iter().map(keep).collect()
        })
        .await
    }

    /// Has the values noted that they have now, by their positions and by the numbers under which they were kept.
    pub async fn settle_values(
        &self,
        permit: &Permit,
        each: Vec<(usize, u64, FieldValues)>,
    ) -> Result<(), Failure> {
        let kept = |(at, number, values)| Some((permit.keeper_of(at)?, number, values));
        let each: Vec<(Arc<dyn PriorStateRecorder>, u64, FieldValues)> =
            each.into_iter().filter_map(kept).collect();
        on_thread(move || {
            for (keeper, number, values) in each {
                keeper.settle_values(number, values);
            }
        })
        .await
    }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = spawner::handle()?.spawn_blocking(work).await;
    done.map_err(|why| Failure::new(format!("what was there before is not kept: {why}")))
}
