//! What recording costs: repairs beside a recorder whose server never answers, events written a second, a million read.

use super::drift::Repairs;
use super::process::{Held, STEADFAST, apply, timed};
use super::report::{Report, Sample};
use super::tree::Tree;
use super::{Bench, Failure};
use std::net::TcpListener;
use std::process::Command;
use std::time::Instant;
use steadfast::events::{Happening, Level, Log, Retention};

/// Repairs of a daemon with a recorder that stalls, beside those of one without.
pub(crate) fn recorder(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const FILES: usize = 2000;
    let (calm_tree, tree) = (Tree::new(bench, FILES, false)?, Tree::new(bench, FILES, false)?);
    timed(apply(&calm_tree))?;
    timed(apply(&tree))?;
    // Connections are taken by the kernel, and nobody ever answers.
    let server = TcpListener::bind("127.0.0.1:0")?;
    let settings = tree.state.join("steadfast.yaml");
    let url = format!("http://{}/", server.local_addr()?);
    std::fs::write(&settings, format!("recorders:\n- webhook: {{url: \"{url}\", timeout: 2}}\n"))?;
    let settings = settings.display().to_string();
    let (mut calm, mut recorded) =
        (Held::daemon(&calm_tree)?, Held::daemon_with(&tree, &["--config", &settings])?);
    calm.converged()?;
    recorded.converged()?;
    let mut repairs = Repairs::new(&calm_tree, &tree)?;
    for _ in 0..bench.rounds(500) {
        repairs.add()?;
    }
    let (theirs, ours) = repairs.samples();
    report.ratio("a repair beside a recorder that stalls", theirs, ours, 1.1);
    Ok(())
}

/// Events written, one by one and together; and a million of them shown.
pub(crate) fn log(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const MILLION: u64 = 1_000_000;
    const TOGETHER: u64 = 1000;
    let folder = bench.folder.path().join("log");
    std::fs::create_dir(&folder)?;
    let retention = Retention { bytes: 1 << 32, ..Retention::default() };
    let mut log = Log::open(&folder, retention, None)?;
    let event = |number: u64| {
        let resource = Some(format!("file[/etc/some/directory/{}]", number % 1000));
        let says = "content, mode (3.2 ms, corrective)";
        let told = Happening::new("changed", says, Level::Info);
        (1_790_000_000_000 + number, Happening { resource, class: Some("corrective"), ..told })
    };
    let mut sample = Sample::default();
    for number in 0..bench.rounds(500) as u64 {
        let began = Instant::now();
        log.append(&[event(number)], &[])?;
        sample.add(began.elapsed());
    }
    let shown = sample.to_string();
    report.figure("one event made durable, median", sample.median() * 1e3, (5.0, "ms"), &shown);
    let (began, first) = (Instant::now(), log.last());
    while log.last() < MILLION {
        let last = log.last();
        let events: Vec<_> = (last..MILLION.min(last + TOGETHER)).map(event).collect();
        log.append(&events, &[])?;
    }
    let each = began.elapsed().div_f64(f64::from(u32::try_from(MILLION - first)?));
    report.figure(
        "an event among a thousand written together",
        each.as_secs_f64() * 1e6,
        (20.0, "µs"),
        "",
    );
    drop(log);
    let mut sample = Sample::default();
    for _ in 0..bench.rounds(5) {
        let mut show = Command::new(STEADFAST);
        show.args(["events", "--since", "1", "--json", "--state-dir"]).arg(&folder);
        sample.add(timed(show)?);
    }
    let shown = sample.to_string();
    report.figure("a million events shown, median", sample.median(), (2.0, "s"), &shown);
    Ok(())
}
