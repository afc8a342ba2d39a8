//! The time to collect all facts of this host. The limit is 10 ms.
//!
//! `cargo bench --bench facts`: the median and the longest of 101 collections.

use std::time::Instant;
use steadfast::facts::{HostRoot, SystemAnswers, collect};

fn main() {
    let mut times: Vec<u128> = (0..101)
        .map(|_| {
            let began = Instant::now();
            let facts = collect(&HostRoot::default(), &SystemAnswers::of_this_host());
            let time = began.elapsed().as_micros();
            drop(facts);
            time
        })
        .collect();
    times.sort_unstable();
    #[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
    {
        println!("collect: median {} µs, longest {} µs", times[50], times[100]);
    }
}
