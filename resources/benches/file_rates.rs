//! Measures the files that are made and checked per second: `file_rates ROOT N THREADS`. The contents and
//! paths are fixed, so that a program that makes the same files without this crate can be compared.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use futures_util::FutureExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast_resources::{
    CheckRequest, CheckResult, Fields, Host, KindSet, MintKey, Outcome, Permit, Place, Recorders,
    Resource, Value,
};
use tokio_util::sync::CancellationToken;

fn content(number: usize) -> String {
    let (a, b, c) = (number * 7919, number * 104_729, number ^ 0x5a5a);
    format!("file-{number:06} {a:016x}{b:016x}{c:016x}{number:016x} {number:022x}\n")
}

fn file(path: &str, content: String) -> Arc<dyn Resource> {
    let spec = KindSet::of_this_build().find("file").unwrap();
    let mut fields = Fields::default();
    fields.insert("content", Value::Text(content));
    fields.insert("mode", Value::Text("0644".into()));
    (spec.build)(path, fields, &Place { base: PathBuf::from("/") }).unwrap()
}

fn check(host: &Host, held: &Arc<dyn Resource>) -> CheckResult {
    let ask = CheckRequest::default();
    held.check(host, ask).now_or_never().unwrap()
}

fn hold(host: &Host, permit: &Permit, held: &Arc<dyn Resource>) -> Outcome {
    match check(host, held) {
        CheckResult::Differs(change) => held.apply(host, permit, change).now_or_never().unwrap(),
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
    }
}

fn in_parallel(
    threads: usize,
    held: &[Arc<dyn Resource>],
    work: impl Fn(&Arc<dyn Resource>) + Sync,
) -> Duration {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for part in held.chunks(held.len().div_ceil(threads)) {
            scope.spawn(|| part.iter().for_each(&work));
        }
    });
    begun.elapsed()
}

#[expect(clippy::print_stdout, reason = "its output is its result")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, root, count, threads] = arguments.as_slice() else {
        panic!("usage: file_rates ROOT N THREADS")
    };
    let (count, threads): (usize, usize) = (count.parse().unwrap(), threads.parse().unwrap());
    let held: Vec<_> = (0..count)
        .map(|number| {
            let path = format!("{root}/d{:02}/f{number:05}", number % 100);
            file(&path, content(number))
        })
        .collect();
    for number in 0..100 {
        std::fs::create_dir_all(format!("{root}/d{number:02}")).unwrap();
    }
    let host = Host::default();
    let permit = MintKey::take().unwrap().mint(CancellationToken::new(), Recorders::None);
    let cold = in_parallel(threads, &held, |held| {
        let outcome = hold(&host, &permit, held);
        assert!(matches!(outcome, Outcome::Changed(_) | Outcome::Unchanged), "{outcome:?}");
    });
    let mut checks: Vec<Duration> = (0..7)
        .map(|_| {
            in_parallel(2, &held, |held| assert!(matches!(check(&host, held), CheckResult::Same)))
        })
        .collect();
    checks.sort();
    println!("apply {count} {threads} {}", cold.as_micros());
    println!("check {count} 2 {} (median of 7)", checks[3].as_micros());
}
