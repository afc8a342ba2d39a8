//! The cost of requests: the status of a busy daemon, and its stop.

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

/// Sends a request and returns the time from the connection to the last reply line.
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

/// Opens a connection and sends this request.
pub(super) fn connect(socket: &Path, verb: &str) -> Result<UnixStream, Failure> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{{\"protocol\":1,\"request\":{verb}}}")?;
    Ok(stream)
}

/// A thread that rewrites files, each of which the daemon repairs, until it is dropped.
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
                // The file is missing for a moment during its repair.
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

/// Scrapes the metrics of a daemon, and returns the time from the connection to the end of the reply.
fn scrape(socket: &Path) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut stream = UnixStream::connect(socket)?;
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    if reply.ends_with("# EOF\n") { Ok(began.elapsed()) } else { Err(reply.into()) }
}

/// Measures a scrape of the metrics of 100 000 resources, while 200 files a second are repaired.
pub(crate) fn metrics(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let tree = Tree::new(bench, 100_000, false)?;
    timed(apply(&tree))?;
    let mut daemon = Held::daemon(&tree)?;
    daemon.converged()?;
    let files = Graph::read(&tree.graph)?.resources.file;
    let busy = Busy::with(files.into_iter().map(|file| file.path).collect());
    let (socket, mut took) = (tree.state.join("metrics.sock"), Sample::default());
    for _ in 0..bench.rounds(200) {
        took.add(scrape(&socket)?);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(busy);
    let detail = format!("at 99 % {:.1} ms", took.at(0.99) * 1000.0);
    report.figure(
        "scrape of 100 000 resources, busy",
        took.median() * 1000.0,
        (5.0, "ms"),
        &detail,
    );
    Ok(())
}

/// Measures `status` while 200 files a second are repaired.
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
            sample.add(asked(&socket, "{\"verb\":\"status\",\"limit\":20}")?);
        }
        drop(busy);
        let what = format!("status of {count} resources, busy, median");
        report.figure(&what, sample.median() * 1e3, (most, "ms"), &sample.to_string());
    }
    Ok(())
}

/// Measures the time from TERM to the end of an idle daemon.
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
