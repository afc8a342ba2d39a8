//! The time to load graphs of the graph language: modules in loops, conditions, and a change of one fact.
//!
//! `cargo bench --bench language`: medians. The targets are 2 s for 100 000 resources of 1000 modules, 20 ms for 1000
//! resources of 10 modules, and 50 ms for `steadfast check` of these as a whole process.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use steadfast::config::{KindSet, Options, load};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A module with one loop, a condition, a variable of the instance and expressions in three fields.
const MODULE: &str = r#"module: site
params:
  domain: {type: string}
  port: {type: int, min: 1, max: 65535}
  pages: {type: list of string}
resources:
  file:
    - for_each: params.pages
      name: "page-${item}"
      path: "/srv/${params.domain}/${item}.conf"
      content: "page\n"
      group: "${'adm' if params.port > 8100 else 'root'}"
      mode: "0644"
      when: params.port > 0
"#;

/// Writes a graph that uses the module `uses` times, with `pages` resources each.
fn write_graph(folder: &Path, uses: usize, pages: usize) -> PathBuf {
    let modules = folder.join("modules/site");
    std::fs::create_dir_all(&modules).expect("room for the module");
    std::fs::write(modules.join("module.yaml"), MODULE).expect("room for the module");
    let names: Vec<String> = (0..pages).map(|page| format!("p{page:03}")).collect();
    let mut text = format!("graph: bench\nvars:\n  pages: [{}]\n  sites:\n", names.join(", "));
    for site in 0..uses {
        writeln!(text, "    s{site:04}: {{port: {}}}", 8000 + site).expect("a string");
    }
    text.push_str(
        "modules:\n  - use: modules/site\n    for_each: vars.sites\n    as: ${item.key}\n    with: {domain: \
         \"${item.key}.example.org\", port: \"${item.value.port}\", pages: \"${vars.pages}\"}\n",
    );
    let path = folder.join("graph.yaml");
    std::fs::write(&path, text).expect("room for the graph");
    path
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..rounds).map(|_| timed(&mut work)).collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let options = Options::new(KindSet::of_this_build());
    for (uses, pages, rounds, limit) in [(1000, 100, 7, 2000.0), (10, 100, 31, 20.0)] {
        let paths = [write_graph(folder.path(), uses, pages)];
        let loaded = load(&paths, &options).expect("a valid graph");
        assert_eq!(loaded.vertices.len(), uses * pages);
        let time =
            median(rounds, || drop(black_box(load(&paths, &options).expect("a valid graph"))));
        let verdict = if time < limit { "met" } else { "MISSED" };
        println!(
            "{:>7} resources of {uses:>4} modules: loaded in {time:>8.2} ms, limit {limit} ms: {verdict}",
            uses * pages
        );
    }
    let graph = folder.path().join("graph.yaml");
    let time = median(31, || {
        let check = Command::new(env!("CARGO_BIN_EXE_steadfast")).arg("check").arg(&graph).output();
        assert!(check.expect("the program").status.success());
    });
    let verdict = if time < 50.0 { "met" } else { "MISSED" };
    println!("   1000 resources: `steadfast check` takes {time:>8.2} ms, limit 50 ms: {verdict}");
}
