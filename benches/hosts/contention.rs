//! An adversary rewrites one file: the cost for the daemon, the number of repairs, and the effect on other repairs.

use super::drift::{Dice, restored_after};
use super::process::{Held, apply, bare, timed};
use super::report::{Report, Sample};
use super::tree::{File, Graph, Tree};
use super::{Bench, Failure};
use rustix::fs::inotify;
use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The number of files of each daemon, in 20 directories.
const FILES: usize = 2000;

/// Measures repairs of other files in turn on a calm daemon and on one in contention.
pub(crate) fn contention(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    for rate in [1, 10, 100, 1000, 10_000] {
        at(bench, report, rate)?;
    }
    Ok(())
}

fn at(bench: &Bench, report: &mut Report, rate: usize) -> Result<(), Failure> {
    let (calm_tree, tree) = (Tree::new(bench, FILES, false)?, Tree::new(bench, FILES, false)?);
    timed(apply(&calm_tree))?;
    timed(apply(&tree))?;
    let (mut calm, mut contended) = (Held::daemon(&calm_tree)?, Held::daemon(&tree)?);
    calm.converged()?;
    contended.converged()?;
    let (calm_files, files) =
        (Graph::read(&calm_tree.graph)?.resources.file, Graph::read(&tree.graph)?.resources.file);
    let victim = files.first().ok_or("no files")?;
    let (began, repairs) = (Instant::now(), Repairs::watch(&victim.path)?);
    let mut command = bare("rewrite", &tree, rate)?;
    let adversary = Held::of(&mut command)?;
    contended.says("\"event\":\"contended\"")?;
    std::thread::sleep(Duration::from_secs(1));

    let (before, seconds) = (contended.ran()?, if bench.quick { 4 } else { 20 });
    let measured = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let share = contended.ran()?.saturating_sub(before).as_secs_f64()
        / measured.elapsed().as_secs_f64()
        * 100.0;
    let what = format!("rewritten at {rate} Hz, processor");
    report.figure(&what, share, (3.0, "% of a core"), &format!("over {seconds} s"));

    for (where_, same) in [("another directory", false), ("the same directory", true)] {
        let directory = |file: &File| file.path.parent() == victim.path.parent();
        let chosen = |all: &[File]| -> Vec<usize> {
            (1..all.len())
                .filter(|at| files.get(*at).is_some_and(|f| directory(f) == same))
                .collect()
        };
        let (mut theirs, mut ours) = (Sample::default(), Sample::default());
        let (numbers, mut dice) = (chosen(&files), Dice(88_172_645_463_325_252));
        for _ in 0..bench.rounds(if same { 200 } else { 500 }) {
            let at = usize::try_from(dice.below(numbers.len() as u64))?;
            let number = *numbers.get(at).ok_or("no neighbours")?;
            for (all, sample) in [(&calm_files, &mut theirs), (&files, &mut ours)] {
                std::thread::sleep(Duration::from_micros(10_000 + dice.below(20_000)));
                sample.add(restored_after(all.get(number).ok_or("no such file")?)?);
            }
        }
        let what = format!("… a repair in {where_}");
        report.ratio(&what, &theirs, &ours, 1.5);
    }
    drop(adversary);
    let lasted = began.elapsed().as_secs_f64();
    let repairs = repairs.count();
    // Five repairs before contention is recognised; then each back-off is twice the previous one, less up to a
    // quarter.
    let most = 5.0 + (lasted / 0.75 + 1.0).log2().ceil();
    report.figure(&format!("… repairs in {lasted:.0} s"), repairs, (most, "repairs"), "");
    Ok(())
}

/// The adversary: rewrites the first file of the graph this many times a second, without end.
pub(crate) fn rewrite(path: &Path, rate: usize) -> Result<(), Failure> {
    let (began, mut written) = (Instant::now(), 0_u32);
    loop {
        // The file is missing for a moment during its repair.
        if let Ok(mut file) = fs::OpenOptions::new().write(true).open(path) {
            file.write_all(format!("wrong {}", written % 10).as_bytes())?;
        }
        written += 1;
        let due = Duration::from_secs(1) * written / u32::try_from(rate)?;
        if let Some(early) = due.checked_sub(began.elapsed()) {
            std::thread::sleep(early);
        }
    }
}

/// A counter of replacements of a file, read as they happen, since the kernel merges equal events.
struct Repairs(Arc<AtomicU32>);

impl Repairs {
    fn watch(path: &Path) -> Result<Self, Failure> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let directory = path.parent().ok_or("no parent")?;
        inotify::add_watch(&inotify, directory, inotify::WatchFlags::MOVED_TO)?;
        let name = path.file_name().ok_or("a path without a name")?.as_encoded_bytes().to_vec();
        let count = Arc::<AtomicU32>::default();
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            let mut buffer = [const { MaybeUninit::uninit() }; 4096];
            let mut events = inotify::Reader::new(&inotify, &mut buffer);
            while let Ok(event) = events.next() {
                let mine = event.file_name().is_some_and(|n| n.to_bytes() == name);
                counted.fetch_add(u32::from(mine), Ordering::Relaxed);
            }
        });
        Ok(Self(count))
    }

    fn count(&self) -> f64 {
        f64::from(self.0.load(Ordering::Relaxed))
    }
}
