//! Records the prior and later values of resources, and the values that a run produces, on a thread of their own,
//! because a record waits for the disk.

use crate::failure::Failure;
use crate::host::Host;
use crate::host::process::spawner;
use crate::permit::Permit;
use crate::prior_state::{FieldValues, PriorStateRecorder};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Host {
    /// Records the prior values of packages by their position in the run, durably. Returns the numbers of the
    /// records.
    pub async fn keep_values(
        &self,
        permit: &Permit,
        each: Vec<(usize, FieldValues)>,
    ) -> Result<BTreeMap<usize, u64>, Failure> {
        let kept = |(at, values)| Some((at, permit.keeper_of(at)?, values));
        let each: Vec<(usize, Arc<dyn PriorStateRecorder>, FieldValues)> =
            each.into_iter().filter_map(kept).collect();
        if each.is_empty() {
            return Ok(BTreeMap::new());
        }
        on_thread(move || {
            let keep = |(at, keeper, values): (_, Arc<dyn PriorStateRecorder>, _)| {
                (at, keeper.keep_values(values))
            };
            each.into_iter().map(keep).collect()
        })
        .await
    }

    /// Completes the records with the present values, by position and by the number of the record.
    pub async fn settle_values(
        &self,
        permit: &Permit,
        each: Vec<(usize, u64, FieldValues)>,
    ) -> Result<(), Failure> {
        let kept = |(at, number, values)| Some((permit.keeper_of(at)?, number, values));
        let each: Vec<(Arc<dyn PriorStateRecorder>, u64, FieldValues)> =
            each.into_iter().filter_map(kept).collect();
        if each.is_empty() {
            return Ok(());
        }
        on_thread(move || {
            for (keeper, number, values) in each {
                keeper.settle_values(number, values);
            }
        })
        .await
    }
}

impl Host {
    /// Records values that a run has produced; a failure of the history is reported by the history itself.
    pub(crate) async fn note_values(&self, permit: &Permit, values: FieldValues) {
        if let Some(keeper) = permit.keeper_of(0) {
            let _reported = on_thread(move || keeper.note_values(values)).await;
        }
    }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = spawner::handle()?.spawn_blocking(work).await;
    done.map_err(|why| Failure::new(format!("what was there before is not kept: {why}")))
}
