//! Measures the number of commands per second, for a comparison with plain `posix_spawn` of `/bin/true`.

use crate::support::{command, host, runtime, wait};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Prints the rate. Run by hand: `cargo test --release --test processes speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a measurement is for reading")]
fn commands_a_second() {
    for (width, count) in [(1_u32, 2000_u32), (2, 4000), (8, 4000)] {
        let start = Instant::now();
        let tasks: Vec<_> = (0..width)
            .map(|_| {
                runtime().spawn(async move {
                    let cancel = CancellationToken::new();
                    for _ in 0..count / width {
                        let one = command(&["/bin/true"]);
                        assert!(host().query(&one, &cancel).await.unwrap().is_success());
                    }
                })
            })
            .collect();
        for task in tasks {
            wait(task).unwrap();
        }
        let rate = f64::from(count) / start.elapsed().as_secs_f64();
        println!("{width} at once: {rate:.0} commands a second");
    }
}
