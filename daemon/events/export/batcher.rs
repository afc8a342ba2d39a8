//! The schedule of a recorder (C-13, C-14). A batch is due at fifty events, or four seconds after the first unsent
//! event. At most three batches are under way. A failed batch is sent again after a growing delay. Pure: the time is an
//! argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The number of events in a full batch.
pub(super) const FULL: u64 = 50;

/// The time for which an event waits for others.
const WAIT: Duration = Duration::from_secs(4);

/// The delay after the first failure; each further failure doubles the delay.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_mins(1);

/// The delay after a failure at the end, when little time is left.
const LAST_DELAY: Duration = Duration::from_millis(100);

/// The number of arrivals that are recorded separately.
const ARRIVALS: usize = 128;

/// The state of a recorder's batches.
#[derive(Debug)]
pub(super) struct Batcher {
    /// The maximum number of batches under way.
    most: usize,
    /// The number of the last event that is in a batch.
    taken: u64,
    /// The number of the last recorded event.
    last_number: u64,
    /// The arrivals of events that are in no batch: the last number and the time of each.
    arrived: VecDeque<(u64, Duration)>,
    /// The unconfirmed batches by first number: the last number, and true while the batch is being sent.
    open: BTreeMap<u64, (u64, bool)>,
    failures: u32,
    not_before: Duration,
    /// True after the end of the stream: no more events arrive, and all remaining ones are sent.
    is_over: bool,
}

/// A step that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Create a batch of the events from this number on, and send the batch.
    New(u64),
    /// Send a batch again: its first and last number.
    Again(u64, u64),
}

impl Batcher {
    /// Creates a batcher from the last confirmed number and the batches begun after it.
    pub(super) fn new(most: usize, after: u64, begun: &[(u64, u64)]) -> Self {
        let taken = begun.iter().map(|(_, last)| *last).fold(after, u64::max);
        Self {
            most,
            taken,
            last_number: taken,
            arrived: VecDeque::new(),
            open: begun.iter().map(|(first, last)| (*first, (*last, false))).collect(),
            failures: 0,
            not_before: Duration::ZERO,
            is_over: false,
        }
    }

    /// Records that the events up to a number are recorded.
    pub(super) fn heard(&mut self, now: Duration, last: u64) {
        if last <= self.last_number {
            return;
        }
        self.last_number = last;
        let is_full = self.arrived.len() >= ARRIVALS;
        match self.arrived.back_mut() {
            // A later arrival takes the time of the last one: early is better than late.
            Some(latest) if is_full => latest.0 = last,
            _ => self.arrived.push_back((last, now)),
        }
    }

    /// Ends the input: all remaining events are due at once, even after a recent failure. Later failures have a short
    /// delay.
    pub(super) fn over(&mut self, now: Duration) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.not_before = self.not_before.min(now);
        }
    }

    /// Returns the next step that is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<Step> {
        if now < self.not_before {
            return None;
        }
        if let Some((first, (last, sending))) =
            self.open.iter_mut().find(|(_, (_, sending))| !*sending)
        {
            *sending = true;
            return Some(Step::Again(*first, *last));
        }
        if self.open.len() >= self.most {
            return None;
        }
        let unsent = self.last_number - self.taken;
        let is_due = unsent >= FULL || unsent > 0 && (self.is_over || self.tick() <= Some(now));
        is_due.then_some(Step::New(self.taken + 1))
    }

    /// Returns the time at which the oldest unsent event has waited long enough.
    fn tick(&self) -> Option<Duration> {
        self.arrived.front().map(|(_, at)| *at + WAIT)
    }

    /// Records that a new batch with these numbers is being sent.
    pub(super) fn begun(&mut self, first: u64, last: u64) {
        self.open.insert(first, (last, true));
        self.take(last);
    }

    /// Records that all events up to a number are in batches.
    pub(super) fn take(&mut self, last: u64) {
        self.taken = self.taken.max(last);
        self.last_number = self.last_number.max(last);
        while self.arrived.front().is_some_and(|(upto, _)| *upto <= self.taken) {
            self.arrived.pop_front();
        }
    }

    /// Records a confirmed batch; returns the number up to which all batches are confirmed.
    pub(super) fn confirmed(&mut self, first: u64) -> u64 {
        self.failures = 0;
        self.put_aside(first)
    }

    /// Gives a batch up; returns the number up to which no batch is open. The delay after failures continues.
    pub(super) fn put_aside(&mut self, first: u64) -> u64 {
        self.open.remove(&first);
        self.open.first_key_value().map_or(self.taken, |(first, _)| first - 1)
    }

    /// Records a failed batch. The batch is sent again, and nothing is sent until its delay is over.
    pub(super) fn failed(&mut self, now: Duration, first: u64) {
        if let Some((_, sending)) = self.open.get_mut(&first) {
            *sending = false;
        }
        self.start_delay(now);
    }

    /// Starts the delay after a failure.
    pub(super) fn start_delay(&mut self, now: Duration) {
        // Failures during a delay count as one.
        if now >= self.not_before {
            let delay = FIRST_DELAY * 2_u32.saturating_pow(self.failures.min(16));
            let longest = if self.is_over { LAST_DELAY } else { LONGEST_DELAY };
            self.not_before = now + delay.min(longest);
            self.failures += 1;
        }
    }

    /// Returns the time of the next possible step; `None` while the maximum number of batches is being sent.
    pub(super) fn wakeup(&self, now: Duration) -> Option<Duration> {
        let again = self.open.values().any(|(_, sending)| !sending);
        let room = self.open.len() < self.most && self.last_number > self.taken;
        let full = self.last_number - self.taken >= FULL || self.is_over;
        let at = match (again, room) {
            (true, _) => Some(now),
            (false, true) if full => Some(now),
            (false, true) => self.tick(),
            (false, false) => None,
        };
        at.map(|at| at.max(self.not_before))
    }

    /// Returns the number of unconfirmed events and the number of open batches.
    pub(super) fn unconfirmed(&self) -> (u64, usize) {
        let open: u64 = self.open.iter().map(|(first, (last, _))| last - first + 1).sum();
        (self.last_number - self.taken + open, self.open.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn take(batcher: &mut Batcher, now: Duration) -> Option<(u64, u64)> {
        let Step::New(first) = batcher.next(now)? else { panic!("no repetition") };
        let last = batcher.last_number.min(first + FULL - 1);
        batcher.begun(first, last);
        Some((first, last))
    }

    /// C-14: with 49 events nothing is sent before the tick; the fiftieth sends at once; an empty tick sends nothing.
    #[test]
    fn c14_forty_nine_wait_and_the_fiftieth_sends() {
        let mut batcher = Batcher::new(3, 0, &[]);
        batcher.heard(SECOND, 49);
        assert_eq!(take(&mut batcher, SECOND), None);
        assert_eq!(batcher.wakeup(SECOND), Some(SECOND * 5));
        assert_eq!(take(&mut batcher, Duration::from_millis(4999)), None);
        batcher.heard(SECOND * 2, 50);
        assert_eq!(take(&mut batcher, SECOND * 2), Some((1, 50)));
        assert_eq!(take(&mut batcher, SECOND * 100), None, "an empty tick sends nothing");
        assert_eq!(batcher.wakeup(SECOND * 100), None);
    }

    /// C-13: the tick is four seconds after the first unsent event, not after the last event or the last batch.
    #[test]
    fn c13_the_tick_is_that_of_the_first_unsent() {
        let mut batcher = Batcher::new(3, 0, &[]);
        batcher.heard(SECOND, 1);
        batcher.heard(SECOND * 3, 30);
        assert_eq!(batcher.wakeup(SECOND * 3), Some(SECOND * 5));
        assert_eq!(take(&mut batcher, SECOND * 5), Some((1, 30)));
        batcher.heard(SECOND * 6, 79);
        batcher.heard(SECOND * 7, 85);
        assert_eq!(take(&mut batcher, SECOND * 7), Some((31, 80)), "fifty");
        assert_eq!(batcher.wakeup(SECOND * 7), Some(SECOND * 11), "of those that came at 7");
    }

    /// C-13: at most three batches are under way, and they may be confirmed in any order.
    #[test]
    fn c13_three_are_under_way_and_end_in_any_order() {
        let mut batcher = Batcher::new(3, 0, &[]);
        batcher.heard(SECOND, 500);
        let mut sent = Vec::new();
        while let Some(range) = take(&mut batcher, SECOND) {
            sent.push(range);
        }
        assert_eq!(sent, [(1, 50), (51, 100), (101, 150)]);
        assert_eq!(batcher.confirmed(101), 0);
        assert_eq!(batcher.confirmed(51), 0);
        assert_eq!(take(&mut batcher, SECOND), Some((151, 200)));
        assert_eq!(batcher.confirmed(1), 150);
        assert_eq!(batcher.confirmed(151), 200);
    }

    /// C-12: a failed batch is sent again with the same numbers, after a growing, limited delay; a success ends the
    /// delay.
    #[test]
    fn c12_failed_batches_are_retried_with_growing_delays() {
        let mut batcher = Batcher::new(3, 0, &[]);
        batcher.heard(SECOND, 60);
        assert_eq!(take(&mut batcher, SECOND), Some((1, 50)));
        let (mut now, mut delays) = (SECOND, Vec::new());
        for _ in 0..9 {
            batcher.failed(now, 1);
            assert_eq!(batcher.next(now), None);
            let again = batcher.wakeup(now).expect("again");
            delays.push(again.saturating_sub(now).as_secs());
            assert_eq!(batcher.next(again.saturating_sub(Duration::from_millis(1))), None);
            now = again;
            assert_eq!(batcher.next(now), Some(Step::Again(1, 50)));
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(batcher.confirmed(1), 50);
        assert_eq!(take(&mut batcher, now), Some((51, 60)), "its tick is over long since");
        batcher.failed(now, 51);
        assert_eq!(batcher.wakeup(now), Some(now + FIRST_DELAY));
    }

    /// C-12: a dead-lettered batch is not sent again; the next batch waits as after any failure.
    #[test]
    fn c12_dead_lettered_batches_are_not_sent_again() {
        let mut batcher = Batcher::new(1, 0, &[]);
        batcher.heard(SECOND, 60);
        assert_eq!(take(&mut batcher, SECOND), Some((1, 50)));
        batcher.failed(SECOND, 1);
        assert_eq!(batcher.put_aside(1), 50);
        assert_eq!(take(&mut batcher, SECOND * 2), None, "its tick is at five");
        assert_eq!(take(&mut batcher, SECOND * 5), Some((51, 60)));
        batcher.failed(SECOND * 5, 51);
        assert_eq!(batcher.wakeup(SECOND * 5), Some(SECOND * 7), "the second failure in a row");
    }

    /// C-13: after a restart, begun batches are sent again unchanged, before new ones; confirmed batches are not.
    #[test]
    fn c13_a_batch_begun_before_a_restart_is_the_same_batch() {
        let mut batcher = Batcher::new(3, 10, &[(11, 60), (111, 120)]);
        batcher.heard(SECOND, 130);
        assert_eq!(batcher.next(SECOND), Some(Step::Again(11, 60)));
        assert_eq!(batcher.next(SECOND), Some(Step::Again(111, 120)));
        assert_eq!(batcher.next(SECOND * 5), Some(Step::New(121)));
        batcher.begun(121, 130);
        assert_eq!(batcher.confirmed(11), 110);
        assert_eq!(batcher.confirmed(111), 120);
    }

    /// C-15: at the end all remaining events are sent at once, including those in a delay.
    #[test]
    fn c15_the_end_waits_for_no_tick() {
        let mut batcher = Batcher::new(1, 0, &[]);
        batcher.heard(SECOND, 55);
        assert_eq!(take(&mut batcher, SECOND), Some((1, 50)));
        batcher.failed(SECOND, 1);
        batcher.over(SECOND);
        assert_eq!(batcher.next(SECOND), Some(Step::Again(1, 50)));
        assert_eq!(batcher.confirmed(1), 50);
        assert_eq!(take(&mut batcher, SECOND), Some((51, 55)));
        assert_eq!((batcher.confirmed(51), batcher.unconfirmed()), (55, (0, 0)));
    }

    /// C-15: a delivery that fails at the end is tried again after a pause, each time.
    #[test]
    fn c15_a_failure_at_the_end_has_a_pause() {
        let mut batcher = Batcher::new(1, 0, &[]);
        batcher.heard(SECOND, 5);
        batcher.over(SECOND);
        assert_eq!(take(&mut batcher, SECOND), Some((1, 5)));
        let mut now = SECOND;
        for _ in 0..5 {
            batcher.failed(now, 1);
            batcher.over(now);
            assert_eq!(batcher.next(now), None, "no pause after a failure");
            assert_eq!(batcher.wakeup(now), Some(now + LAST_DELAY));
            now += LAST_DELAY;
            assert_eq!(batcher.next(now), Some(Step::Again(1, 5)));
        }
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        /// C-12, C-13: for any order of arrivals, failures and confirmations, each event is in exactly one batch, no
        /// batch has more than fifty events, at most three are under way, none waits longer than four seconds for the
        /// first attempt if there is room, and all are confirmed in the end.
        #[test]
        fn each_event_is_in_one_batch(steps in prop::collection::vec((0_u8..5, 1_u64..40), 1..200)) {
            let (mut batcher, mut now, mut last) = (Batcher::new(3, 0, &[]), SECOND, 0);
            let (mut flying, mut covered) = (Vec::new(), 0);
            for (what, number) in steps {
                match what {
                    0 => { last += number; batcher.heard(now, last); }
                    1 => now += Duration::from_millis(number * 100),
                    2 if !flying.is_empty() => {
                        let (first, _) = flying.remove(usize::try_from(number).unwrap() % flying.len());
                        batcher.failed(now, first);
                    }
                    3 | 4 if !flying.is_empty() => {
                        let (first, _) = flying.remove(usize::try_from(number).unwrap() % flying.len());
                        let upto = batcher.confirmed(first);
                        prop_assert!(flying.iter().all(|(first, _)| upto < *first));
                    }
                    _ => {}
                }
                while let Some(step) = batcher.next(now) {
                    match step {
                        Step::New(first) => {
                            prop_assert_eq!(first, covered + 1);
                            covered = last.min(first + FULL - 1);
                            batcher.begun(first, covered);
                            flying.push((first, covered));
                        }
                        Step::Again(first, last) => flying.push((first, last)),
                    }
                    prop_assert!(flying.len() <= 3);
                }
                if let Some(at) = batcher.wakeup(now) {
                    prop_assert!(at > now, "it would spin");
                }
            }
            batcher.over(now);
            for _ in 0..1000 {
                while let Some(step) = batcher.next(now) {
                    if let Step::New(first) = step {
                        covered = last.min(first + FULL - 1);
                        batcher.begun(first, covered);
                        flying.push((first, covered));
                    } else if let Step::Again(first, last) = step {
                        flying.push((first, last));
                    }
                }
                if let Some((first, _)) = flying.pop() {
                    batcher.confirmed(first);
                }
                now += SECOND;
            }
            prop_assert_eq!((covered, batcher.unconfirmed()), (last, (0, 0)));
        }
    }
}
