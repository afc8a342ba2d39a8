//! The time to load a graph file, and the memory that the graph occupies, compared with plain `serde_yaml` structs.
//!
//! `cargo bench --bench config`: medians of interleaved rounds.

use serde::Deserialize;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use steadfast::config::{KindSet, Options, load};
use steadfast_resources::{
    Answer, Change, CheckRequest, CheckResult, FieldSpec, FieldType, Host, Invalid, KindSpec,
    Outcome, Permit, Resource,
};

/// The system's allocator with a count of the allocated bytes.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator that counts cannot be written without")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The smallest data structure for the same text.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only the time to fill it counts")]
struct Bare {
    graph: String,
    resources: BTreeMap<String, Vec<BareFile>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the time to fill it counts")]
struct BareFile {
    name: String,
    path: String,
    content: String,
    state: String,
    mode: String,
    owner: Option<String>,
}

static FILE: KindSpec = KindSpec {
    kind: "file",
    collectible: false,
    doc: "as many fields as the real one",
    fields: &[
        FieldSpec::new("path", FieldType::Text, ""),
        FieldSpec::new("dirname", FieldType::Text, ""),
        FieldSpec::new("basename", FieldType::Text, ""),
        FieldSpec::new("state", FieldType::Text, ""),
        FieldSpec::new("content", FieldType::Text, ""),
        FieldSpec::new("source", FieldType::Text, ""),
        FieldSpec::new("fragments", FieldType::Texts, ""),
        FieldSpec::new("symlink", FieldType::Text, ""),
        FieldSpec::new("owner", FieldType::Text, ""),
        FieldSpec::new("group", FieldType::Text, ""),
        FieldSpec::new("mode", FieldType::Text, ""),
        FieldSpec::new("recurse", FieldType::Bool, ""),
        FieldSpec::new("force", FieldType::Bool, ""),
        FieldSpec::new("purge", FieldType::Bool, ""),
        FieldSpec::new("backup", FieldType::Bool, ""),
        FieldSpec::new("replace", FieldType::Bool, ""),
    ],
    sends: &[],
    example: "",
    restore: None,
    build: |_, mut fields, _| -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        Ok(Arc::new(ParsedFields(
            ["path", "content", "state", "mode"].map(|name| fields.text(name)),
        )))
    },
};

#[derive(Debug)]
#[expect(dead_code, reason = "only the memory it holds counts")]
struct ParsedFields([Option<String>; 4]);

impl Resource for ParsedFields {
    fn check<'a>(&'a self, _: &'a Host, _: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async { CheckResult::Same })
    }

    fn apply<'a>(&'a self, _: &'a Host, _: &'a Permit, _: Change) -> Answer<'a, Outcome> {
        Box::pin(async { Outcome::Unchanged })
    }
}

fn graph(count: usize) -> String {
    let mut text = String::from("graph: bench\nresources:\n  file:\n");
    for i in 0..count {
        let line = format!("file-{i:06} {:016x}{:016x} {:016}", i * 7919, i * 104_729, i ^ 0x5a5a);
        writeln!(
            text,
            "    - name: f{i:05}\n      path: /srv/d{:02}/f{i:05}\n      content: |\n        {line}\n      \
             state: exists\n      mode: \"0644\"",
            i % 100
        )
        .expect("a string takes everything");
    }
    text
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (count, rounds) in [(1_000, 31), (10_000, 21), (100_000, 9)] {
        let text = graph(count);
        let path: PathBuf = folder.path().join("graph.yaml");
        std::fs::write(&path, &text).expect("room for the graph");
        let paths = [path];
        let options = Options::new(KindSet::new(vec![&FILE], Vec::new()));
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare.push(timed(|| {
                let text = std::fs::read_to_string(&paths[0]).expect("the graph just written");
                drop(black_box(serde_yaml::from_str::<Bare>(&text).expect("a valid graph")));
            }));
            ours.push(timed(|| {
                drop(black_box(load(&paths, &options).expect("a valid graph")));
            }));
        }
        let before = HELD.load(Ordering::Relaxed);
        let loaded = load(&paths, &options).expect("a valid graph");
        let held = HELD.load(Ordering::Relaxed) - before;
        let quickest = |times: &[Duration]| times.iter().min().map_or(0.0, Duration::as_secs_f64);
        let best = quickest(&ours) / quickest(&bare);
        let (bare, ours) = (median(bare), median(ours));
        println!(
            "{count:>7} files, {:>8} bytes: bare {:>7.2} ms, loaded {:>7.2} ms, ratio {:.2}, of the quickest {:.2}; kept {} bytes each",
            text.len(),
            bare.as_secs_f64() * 1e3,
            ours.as_secs_f64() * 1e3,
            ours.as_secs_f64() / bare.as_secs_f64(),
            best,
            held / loaded.vertices.len(),
        );
    }
}
