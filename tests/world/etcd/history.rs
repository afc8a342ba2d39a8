//! A recorded history of appends and reads of one list, and its checker.
//!
//! Every append is a transaction on the revision that its process has read. Revisions order all acknowledged
//! operations, so that the history is judged exactly: no search for an order is needed.

use std::time::Duration;

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The append took effect at this revision.
    Appended(u64),
    /// The append was refused: another process had appended.
    Refused,
    /// The read saw this list at this revision.
    Seen(u64, Vec<u64>),
    /// Nobody knows: there was no answer.
    Unknown,
}

/// One operation; `number` is the appended number, and 0 for a read.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
}

/// Checks a history against the list at its end. Returns the first violation.
pub(crate) fn find_violation(history: &[Record], last: &[u64]) -> Option<String> {
    check_appends(history, last)
        .or_else(|| check_reads(history, last))
        .or_else(|| check_real_time(history))
}

/// Each acknowledged append is in the list once, in the order of its revision; no refused one is.
fn check_appends(history: &[Record], last: &[u64]) -> Option<String> {
    let place = |number: u64| last.iter().position(|other| *other == number);
    let mut acknowledged = Vec::new();
    for record in history.iter().filter(|record| record.number > 0) {
        let times = last.iter().filter(|other| **other == record.number).count();
        match (&record.outcome, times) {
            (Outcome::Appended(revision), 1) => acknowledged.push((*revision, record.number)),
            (Outcome::Appended(_), 0) => return Some(format!("lost write: {record:?}")),
            (Outcome::Refused, 1..) => return Some(format!("refused, and there: {record:?}")),
            (_, 2..) => return Some(format!("written twice: {record:?}")),
            _ => {}
        }
    }
    acknowledged.sort_unstable();
    let wrong = acknowledged
        .windows(2)
        .find(|pair| pair[0].0 == pair[1].0 || place(pair[0].1) >= place(pair[1].1));
    wrong.map(|pair| format!("the order of the list is not that of the revisions: {pair:?}"))
}

/// Each read sees a beginning of the list with all appends up to its revision and none after.
fn check_reads(history: &[Record], last: &[u64]) -> Option<String> {
    for record in history {
        let Outcome::Seen(revision, seen) = &record.outcome else { continue };
        if !last.starts_with(seen) {
            return Some(format!("a read saw what was never there: {record:?}"));
        }
        for other in history {
            let Outcome::Appended(at) = other.outcome else { continue };
            if seen.contains(&other.number) != (at <= *revision) {
                return Some(format!("the read {record:?} contradicts {other:?}"));
            }
        }
    }
    None
}

/// An operation that begins after the end of another one has no lower revision; an append has a higher one.
fn check_real_time(history: &[Record]) -> Option<String> {
    let revision_of = |record: &Record| match record.outcome {
        Outcome::Appended(revision) | Outcome::Seen(revision, _) => Some(revision),
        Outcome::Refused | Outcome::Unknown => None,
    };
    for after in history {
        let Some(own) = revision_of(after) else { continue };
        let is_append = matches!(after.outcome, Outcome::Appended(_));
        let earlier = history.iter().filter(|before| before.ended < after.began);
        for (before, revision) in earlier.filter_map(|it| Some((it, revision_of(it)?))) {
            if own < revision || (is_append && own == revision) {
                return Some(format!("the revision goes back: {before:?}, then {after:?}"));
            }
        }
    }
    None
}

#[test]
fn the_checker_finds_each_kind_of_violation() {
    let record = |began: u64, number, outcome| Record {
        began: Duration::from_secs(began),
        ended: Duration::from_secs(began + 1),
        number,
        outcome,
    };
    let good = [
        record(0, 1, Outcome::Appended(5)),
        record(2, 2, Outcome::Refused),
        record(2, 3, Outcome::Unknown),
        record(4, 4, Outcome::Appended(9)),
        record(6, 0, Outcome::Seen(9, vec![1, 3, 4])),
        record(8, 0, Outcome::Seen(11, vec![1, 3, 4])),
    ];
    assert_eq!(find_violation(&good, &[1, 3, 4]), None);
    let with = |at: usize, other: Record| {
        let mut history = good.to_vec();
        history[at] = other;
        history
    };
    let violations = [
        (good.to_vec(), vec![3, 4], "lost write"),
        (good.to_vec(), vec![1, 2, 4], "refused, and there"),
        (good.to_vec(), vec![1, 3, 4, 3], "written twice"),
        (good.to_vec(), vec![4, 3, 1], "order of the list"),
        (with(5, record(8, 0, Outcome::Seen(11, vec![1, 4]))), vec![1, 3, 4], "never there"),
        (with(5, record(8, 0, Outcome::Seen(11, vec![1]))), vec![1, 3, 4], "contradicts"),
        (with(5, record(8, 0, Outcome::Seen(8, vec![1, 3]))), vec![1, 3, 4], "goes back"),
        (
            vec![record(0, 1, Outcome::Appended(5)), record(4, 4, Outcome::Appended(4))],
            vec![4, 1],
            "goes back",
        ),
    ];
    for (history, last, words) in violations {
        let found = find_violation(&history, &last);
        assert!(found.as_ref().is_some_and(|it| it.contains(words)), "{words}: {found:?}");
    }
}
