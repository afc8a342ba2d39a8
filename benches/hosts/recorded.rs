//! The cost of recording: repairs with failing recorders, events written a second, a million events read.

use super::drift::Repairs;
use super::process::{Held, STEADFAST, apply, timed};
use super::report::{Report, Sample};
use super::tree::Tree;
use super::{Bench, Failure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use steadfast::api::event_data::{AspectChange, Changed, RunInfo};
use steadfast::api::{ChangeClass, EventKind, Level};
use steadfast::events::{Log, NewEvent, Retention};

/// The condition of a recorder.
enum Fares {
    /// The server never answers.
    Stalls,
    /// The server rejects every request.
    IsRefused,
    /// The recorder ends right after each start and is restarted; there are many such recorders.
    Dies,
}

/// Compares repairs with and without failing recorders, for each condition.
pub(crate) fn recorder(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const FILES: usize = 2000;
    let calm_tree = Tree::new(bench, FILES, false)?;
    timed(apply(&calm_tree))?;
    let mut calm = Held::daemon(&calm_tree)?;
    calm.converged()?;
    let sorts = [
        (Fares::Stalls, "a repair beside a recorder that stalls"),
        (Fares::IsRefused, "a repair beside a recorder that is refused"),
        (Fares::Dies, "a repair beside 20 recorders that die"),
    ];
    for (number, (fares, what)) in sorts.into_iter().enumerate() {
        let tree = Tree::new(bench, FILES, false)?;
        timed(apply(&tree))?;
        let mut repairs = Repairs::new(&calm_tree, &tree, number * FILES / 3)?;
        beside(bench, &tree, &fares, &mut repairs)?;
        let (theirs, ours) = repairs.samples();
        report.ratio(what, theirs, ours, 1.1);
    }
    Ok(())
}

/// Measures repairs with recorders in this condition, and checks the condition itself.
fn beside(bench: &Bench, tree: &Tree, fares: &Fares, repairs: &mut Repairs) -> Result<(), Failure> {
    const DYING: usize = 20;
    let server = TcpListener::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    let refused = Arc::new(AtomicUsize::new(0));
    let mut command = Command::new(STEADFAST);
    let webhooks = match fares {
        // The kernel accepts the connections, and no server answers.
        Fares::Stalls => format!("- webhook: {{url: \"http://{address}/\", timeout: 2}}\n"),
        Fares::IsRefused => {
            refuse(server.try_clone()?, &refused);
            format!("- webhook: {{url: \"http://{address}/\", timeout: 2}}\n")
        }
        Fares::Dies => {
            // Without trusted certificates no recorder can start.
            command.env("SSL_CERT_FILE", tree.state.join("none")).env_remove("SSL_CERT_DIR");
            let one = |n| format!("- webhook: {{url: \"https://{address}/{n}\", timeout: 2}}\n");
            (0..DYING).map(one).collect()
        }
    };
    let settings = tree.state.join("steadfast.yaml");
    std::fs::write(&settings, format!("recorders:\n{webhooks}"))?;
    let settings = settings.display().to_string();
    let mut recorded = Held::daemon_by(command, tree, &["--config", &settings])?;
    recorded.converged()?;
    for _ in 0..bench.rounds(500) {
        repairs.add()?;
    }
    match fares {
        Fares::Stalls => {}
        Fares::IsRefused if refused.load(Ordering::SeqCst) == 0 => {
            return Err("nothing was refused".into());
        }
        Fares::IsRefused => {}
        Fares::Dies => {
            let mut status = Command::new(STEADFAST);
            let said = status.arg("status").arg("--state-dir").arg(&tree.state).output()?.stdout;
            if !String::from_utf8_lossy(&said).contains("no trusted certificates") {
                return Err("the recorders run".into());
            }
        }
    }
    Ok(())
}

/// Starts a server that rejects and counts each request.
fn refuse(server: TcpListener, refused: &Arc<AtomicUsize>) {
    let refused = Arc::clone(refused);
    std::thread::spawn(move || {
        for stream in server.incoming().flatten() {
            let refused = Arc::clone(&refused);
            std::thread::spawn(move || refuse_all(stream, &refused));
        }
    });
}

/// Rejects every request on this connection until it is closed.
fn refuse_all(stream: TcpStream, refused: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line)? > 2 {
            let header = line.to_ascii_lowercase();
            let given = header.strip_prefix("content-length:");
            length = given.and_then(|given| given.trim().parse().ok()).unwrap_or(length);
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        refused.fetch_add(1, Ordering::SeqCst);
        let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer)?;
    }
}

/// Measures events written one by one and in batches, and a million events shown.
pub(crate) fn log(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    const MILLION: u64 = 1_000_000;
    const TOGETHER: u64 = 1000;
    let folder = bench.folder.path().join("log");
    std::fs::create_dir(&folder)?;
    let retention = Retention { bytes: 1 << 32, ..Retention::default() };
    let mut log = Log::open(&folder, retention, None)?;
    let event = |number: u64| {
        let resource = format!("file[/etc/some/directory/{}]", number % 1000);
        let mode = |from: &str, to: &str| AspectChange {
            aspect: "mode".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let changed = Changed {
            class: ChangeClass::Corrective,
            differences: vec![mode("0600", "0644")],
            omitted: 0,
            notes: Vec::new(),
            took: 3,
            run: RunInfo { number, cause: "drift".to_owned() },
        };
        let told = NewEvent::of(resource, EventKind::Changed(changed), Level::Info);
        (1_790_000_000_000 + number, told)
    };
    let mut sample = Sample::default();
    for number in 0..bench.rounds(500) as u64 {
        let began = Instant::now();
        log.append(&[event(number)], &[])?;
        sample.add(began.elapsed());
    }
    let shown = sample.to_string();
    report.figure("one event made durable, median", sample.median() * 1e3, (5.0, "ms"), &shown);
    let (began, first) = (Instant::now(), log.last_number());
    while log.last_number() < MILLION {
        let last = log.last_number();
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
