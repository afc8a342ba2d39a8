//! Medians and spreads, and one output line for each figure.

use std::time::Duration;

/// The results so far.
#[derive(Default)]
pub(crate) struct Report {
    missed: usize,
}

impl Report {
    pub(crate) fn all_met(&self) -> bool {
        self.missed == 0
    }

    /// Reports a ratio of medians with its target.
    pub(crate) fn ratio(&mut self, what: &str, bare: &Sample, ours: &Sample, target: f64) {
        let detail = format!("bare {bare}, steadfast {ours}");
        self.compare(what, (bare.median(), ours.median()), target, &detail);
    }

    /// Reports a ratio of the 99th percentiles with its target.
    pub(crate) fn ratio_at_99(&mut self, what: &str, bare: &Sample, ours: &Sample, target: f64) {
        let (bare, ours) = (bare.at(0.99), ours.at(0.99));
        let detail = format!("bare {:.2} ms, steadfast {:.2} ms", bare * 1e3, ours * 1e3);
        self.compare(what, (bare, ours), target, &detail);
    }

    fn compare(&mut self, what: &str, (bare, ours): (f64, f64), target: f64, detail: &str) {
        let ratio = ours / bare;
        let value = format!("{ratio:.2}x");
        self.line(what, (&value, &format!("<= {target}x"), ratio <= target), detail);
    }

    /// Reports a figure with its upper limit.
    pub(crate) fn figure(&mut self, what: &str, value: f64, (most, unit): (f64, &str), more: &str) {
        let digits = if most < 0.1 { 4 } else { 2 };
        let (value_text, target) =
            (format!("{value:.digits$} {unit}"), format!("<= {most} {unit}"));
        self.line(what, (&value_text, &target, value <= most), more);
    }

    fn line(&mut self, what: &str, (value, target, met): (&str, &str, bool), detail: &str) {
        self.missed += usize::from(!met);
        let verdict = if met { "met" } else { "MISSED" };
        say(&format!("{what:<44} {value:>12}  target {target:<14} {verdict:<6}  {detail}"));
    }
}

/// The durations of several runs, in seconds.
#[derive(Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64());
        self.0.sort_by(f64::total_cmp);
    }

    /// Returns the quantile of this share.
    pub(crate) fn at(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a small count"
        )]
        let index = (self.0.len().saturating_sub(1) as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }
}

impl std::fmt::Display for Sample {
    /// Formats the median and the quartiles.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| self.at(share));
        if middle < 0.1 {
            let [low, middle, high] = [low, middle, high].map(|seconds| seconds * 1e3);
            write!(f, "{middle:.2} ms [{low:.2}..{high:.2}]")
        } else {
            write!(f, "{middle:.3} s [{low:.3}..{high:.3}]")
        }
    }
}

/// Prints a result.
#[expect(clippy::print_stdout, reason = "the measurement is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Prints a message that is no result.
#[expect(clippy::print_stderr, reason = "there is no log here")]
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
