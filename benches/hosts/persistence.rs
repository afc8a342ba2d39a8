//! The cost of persistence: a cold apply with and without stored state.

use super::process::{apply, bare, timed};
use super::report::{Report, Sample};
use super::tree::Tree;
use super::{Bench, Failure};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast::config::{Options, load};
use steadfast::driver::{
    Driver, DriverDeps, DriverEvent, Notification, Observer, Settings, local_minute,
};
use steadfast::store::{Journal, MemoryStore, StoredState};
use steadfast_engine::Slots;
use steadfast_resources::{Host, MintKey};

/// Compares a cold apply with the same driver on a store in memory and without a history.
pub(crate) fn kept(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const FILES: usize = 10_000;
    let (mut without, mut with) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds(9) {
        without.add(timed(bare("without_state", &Tree::new(bench, FILES, false)?, 0)?)?);
        with.add(timed(apply(&Tree::new(bench, FILES, false)?))?);
    }
    report.ratio("apply, cold, 10 000 files, kept", &without, &with, 1.3);
    Ok(())
}

struct Silent;

impl Observer for Silent {
    fn hear(&mut self, _: &Notification<'_>) {}
}

/// The bare program: one pass of the driver with a store in memory and without a history.
pub(crate) fn without_state(graph: &Path) -> Result<(), Failure> {
    let loaded =
        load(&[graph.to_owned()], &Options::new(steadfast::config::KindSet::of_this_build()))
            .map_err(|report| format!("{report:?}"))?;
    let key = Arc::new(MintKey::take().ok_or("the key was taken")?);
    let settings = Settings {
        one_shot: true,
        slots: Slots::default(),
        sweep: None,
        pause_limit: Duration::from_hours(8),
        whole: false,
        removes: true,
        repair_limit: None,
        clock: local_minute,
        guard: None,
    };
    let parts = DriverDeps {
        host: Host::default(),
        key,
        journal: Some(Journal::spawn(Box::new(MemoryStore::default()))?),
        recalled: StoredState::default(),
        history: None,
        read_only: None,
        kinds: steadfast::config::KindSet::of_this_build(),
        observer: Box::new(Silent),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let finished = runtime.block_on(async {
        let driver = Driver::new(settings, parts);
        driver.inbox().put(DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true });
        driver.run().await
    });
    if finished.converged { Ok(()) } else { Err("not as declared".into()) }
}
