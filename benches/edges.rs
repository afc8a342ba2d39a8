//! The time to compile a graph of files from text to the engine's graph, with and without automatic edges.
//!
//! `cargo bench --bench edges`: the median of seven interleaved rounds, in processor time of the thread.

mod compiled;

use compiled::for_the_engine;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use steadfast::config::{Options, load};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the processor time of this thread so far.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("since the start")
}

/// Returns a graph of directories, three deep, with files. Each hundredth file is the program of a command, which
/// watches another file.
fn graph(count: usize, meta: &str) -> String {
    let mut text = String::from("graph: bench\nresources:\n  file:\n");
    let folders = count / 100;
    for i in 0..folders {
        let (above, folder) = (i % 10, i % 100);
        let path = match i {
            0..10 => format!("/srv/{above}/"),
            10..100 => format!("/srv/{above}/{folder}/"),
            _ => format!("/srv/{above}/{folder}/{i}/"),
        };
        writeln!(text, "  - name: d{i}\n    path: {path}{meta}")
            .expect("a string takes everything");
    }
    let execs = count / 100;
    for i in 0..count - folders - execs {
        let folder = i % folders.max(1);
        let path = format!("/srv/{}/{}/{folder}/f{i}", folder % 10, folder % 100);
        writeln!(
            text,
            "  - name: f{i}\n    path: {path}\n    content: x\n    mode: \"0644\"{meta}"
        )
        .expect("a string takes everything");
    }
    text.push_str("  exec:\n");
    for i in 0..execs {
        let path = |i: usize| format!("/srv/{}/{}/{i}/f{i}", i % 10, i % 100);
        writeln!(
            text,
            "  - name: e{i}\n    cmd: {}\n    watchfiles: {}{meta}",
            path(i),
            path((i + 7) % execs)
        )
        .expect("a string takes everything");
    }
    text
}

fn round(path: &PathBuf) -> (Duration, Duration, usize) {
    let start = now();
    let loaded = load(
        std::slice::from_ref(path),
        &Options::new(steadfast::config::KindSet::of_this_build()),
    )
    .expect("a valid graph");
    let read = now().saturating_sub(start);
    let graph = for_the_engine(&loaded);
    (read, now().saturating_sub(start), graph.edges().len())
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for count in [1_000, 10_000, 100_000] {
        let kinds = [("with", ""), ("without", "\n    meta: {autoedge: false}")];
        let paths = kinds.map(|(name, meta)| {
            let path = folder.path().join(format!("{name}.yaml"));
            std::fs::write(&path, graph(count, meta)).expect("room for the graph");
            path
        });
        let (mut read, mut whole, mut edges) = ([vec![], vec![]], [vec![], vec![]], [0, 0]);
        for _ in 0..7 {
            for (which, path) in paths.iter().enumerate() {
                let (first, all, count) = round(path);
                read[which].push(first);
                whole[which].push(all);
                edges[which] = count;
            }
        }
        for (which, (name, _)) in kinds.iter().enumerate() {
            println!(
                "{count:>7} resources {name:>7} automatic edges: {:>6} edges, read and checked {:>7.2} ms, with the engine's graph {:>7.2} ms",
                edges[which],
                median(&mut read[which]),
                median(&mut whole[which]),
            );
        }
    }
}
