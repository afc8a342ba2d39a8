//! The daemon with 100 000 files: time to the first convergence, activity at rest, and memory.

use super::process::{Held, apply, bare, timed};
use super::report::{Report, Sample};
use super::tree::Tree;
use super::{Bench, Failure};
use std::time::{Duration, Instant};

const COUNT: usize = 100_000;

/// Measures load and first check, compared with a bare program.
pub(crate) fn load(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let tree = Tree::new(bench, COUNT, false)?;
    timed(apply(&tree))?;
    let (mut theirs, mut ours) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds(7) {
        theirs.add(timed(bare("look", &tree, 0)?)?);
        let began = Instant::now();
        let mut daemon = Held::daemon(&tree)?;
        daemon.converged()?;
        ours.add(began.elapsed());
    }
    report.ratio("daemon, 100 000 files, loaded and checked", &theirs, &ours, 3.0);
    Ok(())
}

/// Measures the daemon at rest: its share of a core, and its memory compared with a daemon of one file.
pub(crate) fn rest(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let small = Tree::new(bench, 1, false)?;
    let mut empty = Held::daemon(&small)?;
    empty.converged()?;
    let tree = Tree::new(bench, COUNT, false)?;
    timed(apply(&tree))?;
    let mut full = Held::daemon(&tree)?;
    full.converged()?;
    // After this time the work that follows a load is done, and its threads have ended.
    std::thread::sleep(Duration::from_secs(10));
    let (before, long) = (full.ran()?, if bench.quick { 5 } else { 30 });
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(long));
    let share =
        full.ran()?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    let what = "daemon, 100 000 files, at rest";
    report.figure(what, share, (0.02, "% of a core"), &format!("over {long} s"));
    let (full, empty) = (full.memory()?, empty.memory()?);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let each = (full - empty) / COUNT as f64 / 1024.0;
    let mib = |bytes: f64| bytes / 1024.0 / 1024.0;
    let detail = format!("{:.1} MiB, with one file {:.1} MiB", mib(full), mib(empty));
    report.figure("daemon, memory of a resource", each, (3.0, "KiB"), &detail);
    Ok(())
}
