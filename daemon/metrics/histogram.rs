//! A histogram of durations in seconds.

use std::time::Duration;

/// The upper bounds of the buckets, in seconds. A last bucket has no bound.
const BOUNDS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0,
];

/// The number of durations in each bucket, and their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Histogram {
    /// Adds one duration.
    pub fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.sum += seconds;
    }

    /// Returns the sum of all durations, in seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the buckets: upper bound in seconds, and the durations within this bucket alone.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        BOUNDS.into_iter().chain([f64::INFINITY]).zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use std::time::Duration;

    #[test]
    fn a_duration_is_counted_up_to_the_bound_of_its_bucket() {
        let mut histogram = Histogram::default();
        for milliseconds in [1, 2, 1000, 1001, 3_600_000] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let found: Vec<_> =
            histogram.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [(0.001, 1), (0.0025, 1), (1.0, 1), (2.5, 1), (f64::INFINITY, 1)]);
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum() - 3602.004).abs() < 1e-9);
    }
}
