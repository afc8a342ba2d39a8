//! One pass over a graph: converged, cold, and as a chain.

use super::process::{apply, bare, syncs, timed};
use super::report::{Report, Sample, say};
use super::tree::Tree;
use super::{Bench, Failure};

/// Measures a pass over 10 000 converged files.
pub(crate) fn idle(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let tree = Tree::new(bench, 10_000, false)?;
    timed(apply(&tree))?;
    let (mut theirs, mut ours) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds(21) {
        theirs.add(timed(bare("look", &tree, 0)?)?);
        ours.add(timed(apply(&tree))?);
    }
    report.ratio("apply, nothing to do, 10 000 files", &theirs, &ours, 1.7);
    Ok(())
}

/// Measures a pass that creates 10 000 files.
pub(crate) fn cold(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    from_nothing(bench, report, "apply, cold, 10 000 files", ("make", 10_000, 9))
}

/// Measures a pass that creates 200 files in a chain of edges.
pub(crate) fn chain(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    from_nothing(bench, report, "apply, cold, a chain of 200", ("chain", 200, 15))
}

/// Compares with a bare program that makes as many syncs: of each file, its directory, and the journal.
fn from_nothing(
    bench: &Bench,
    report: &mut Report,
    what: &str,
    (program, count, rounds): (&str, usize, usize),
) -> Result<(), Failure> {
    let chain = program == "chain";
    let tree = Tree::new(bench, count, chain)?;
    let ours = syncs(&apply(&tree), &tree.graph.with_file_name("trace"))?;
    let commits = ours.map_or(0, |ours| ours.saturating_sub(2 * count));
    let tree = Tree::new(bench, count, chain)?;
    let theirs = syncs(&bare(program, &tree, commits)?, &tree.graph.with_file_name("trace"))?;
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => {
            say(&format!("{what}: syncs: bare {theirs}, steadfast {ours}"));
        }
        _ => say(&format!("{what}: syncs not counted, for want of strace")),
    }
    let (mut theirs, mut ours) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds(rounds) {
        let tree = Tree::new(bench, count, chain)?;
        theirs.add(timed(bare(program, &tree, commits)?)?);
        ours.add(timed(apply(&Tree::new(bench, count, chain)?))?);
    }
    report.ratio(what, &theirs, &ours, 1.7);
    Ok(())
}

/// Measures 5000 files, to compare with the published times of other programs on a similar machine (issue 2), which
/// do not sync.
pub(crate) fn beside(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let (mut cold, mut idle) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds(5) {
        let tree = Tree::new(bench, 5000, false)?;
        cold.add(timed(apply(&tree))?);
        for _ in 0..3 {
            idle.add(timed(apply(&tree))?);
        }
    }
    let others = "comtrya 0.24, CFEngine 1.0, Salt 5.0, Puppet 7.7";
    report.figure("5000 files, nothing to do", idle.median(), (0.24, "s"), others);
    let others = "comtrya 1.2, CFEngine 1.5, Salt 10.6, Puppet 12.8";
    report.figure("5000 files, cold", cold.median(), (1.2, "s"), others);
    Ok(())
}
