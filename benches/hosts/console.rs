//! What asking costs: the status of a busy daemon, a thousand who follow its events, and its end.

use super::drift::repairs_beside;
use super::process::{Held, apply, timed};
use super::report::{Report, Sample};
use super::tree::{Graph, Tree};
use super::{Bench, Failure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The answer to a question, from before the connection to its last line.
fn asked(socket: &Path, verb: &str) -> Result<Duration, Failure> {
    let began = Instant::now();
    let lines = BufReader::new(connect(socket, verb)?).lines();
    for line in lines {
        if line? == "\"done\"" {
            return Ok(began.elapsed());
        }
    }
    Err("the answer has no end".into())
}

fn connect(socket: &Path, verb: &str) -> Result<UnixStream, Failure> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{{\"protocol\":1,\"ask\":{verb}}}")?;
    Ok(stream)
}

/// Others rewrite files, each of which the daemon puts back, as long as this lives.
struct Busy {
    end: Arc<AtomicBool>,
}

impl Busy {
    fn with(files: Vec<PathBuf>) -> Self {
        let end = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&end);
        std::thread::spawn(move || {
            for file in files.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // Gone for a moment where it is being replaced.
                drop(std::fs::write(file, "busy"));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { end }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

/// `status` while 200 files a second are put back.
pub(crate) fn status(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    for (count, most) in [(10_000, 5.0), (100_000, 30.0)] {
        let tree = Tree::new(bench, count, false)?;
        timed(apply(&tree))?;
        let mut daemon = Held::daemon(&tree)?;
        daemon.converged()?;
        let files = Graph::read(&tree.graph)?.resources.file;
        let busy = Busy::with(files.into_iter().map(|file| file.path).collect());
        let socket = tree.state.join("control.socket");
        let mut sample = Sample::default();
        for _ in 0..bench.rounds(300) {
            std::thread::sleep(Duration::from_millis(10));
            sample.add(asked(&socket, "{\"verb\":\"status\",\"most\":20}")?);
        }
        drop(busy);
        let what = format!("status of {count} resources, busy, median");
        report.figure(&what, sample.median() * 1e3, (most, "ms"), &sample.to_string());
    }
    Ok(())
}

/// A thousand follow the events, of whom half read nothing: repairs beside those of a daemon that nobody follows.
pub(crate) fn readers(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const FILES: usize = 2000;
    let (calm_tree, tree) = (Tree::new(bench, FILES, false)?, Tree::new(bench, FILES, false)?);
    timed(apply(&calm_tree))?;
    timed(apply(&tree))?;
    let (mut calm, mut followed) = (Held::daemon(&calm_tree)?, Held::daemon(&tree)?);
    calm.converged()?;
    followed.converged()?;
    let follow = "{\"verb\":\"events\",\"follow\":true,\"resource\":null,\"from\":null}";
    let socket = tree.state.join("control.socket");
    let mut stalled = Vec::new();
    for number in 0..1000 {
        let mut stream = connect(&socket, follow)?;
        if number % 2 == 0 {
            stalled.push(stream);
        } else {
            std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
            })?;
        }
    }
    let (theirs, ours) = repairs_beside(bench, (&calm_tree, &tree))?;
    report.ratio("a repair beside 1000 who follow events", &theirs, &ours, 1.2);
    Ok(())
}

/// From TERM to the end of a daemon that has nothing to do.
pub(crate) fn stop(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let tree = Tree::new(bench, 2000, false)?;
    timed(apply(&tree))?;
    let mut sample = Sample::default();
    for _ in 0..bench.rounds(20) {
        let mut daemon = Held::daemon(&tree)?;
        daemon.converged()?;
        std::thread::sleep(Duration::from_millis(300));
        sample.add(daemon.ends()?);
    }
    let what = "stop of an idle daemon, median";
    report.figure(what, sample.median() * 1e3, (30.0, "ms"), &sample.to_string());
    Ok(())
}
