//! Replay of all stored schedules: those that once failed, and those written by hand.

use crate::schedule::Schedule;
use std::path::Path;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedules")
}

#[test]
fn kept_schedules_break_no_rule() {
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .expect("tests/schedules is there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    names.sort();
    assert!(names.len() >= 5, "the schedules that were kept are gone");
    let mut broken = Vec::new();
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a readable schedule");
        let world = Schedule::parse(&text).play();
        if !world.oracle.books.violations.is_empty() {
            let violations = world.oracle.books.violations.join("\n");
            broken.push(format!("{}\n{}\n{violations}", path.display(), world.log.join("\n")));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// A schedule is unchanged after it was written and read back.
#[test]
fn a_schedule_survives_its_file() {
    let numbers: Vec<u16> =
        (0..400_u32).map(|n| u16::try_from(n * n * 7919 % 65_521).unwrap()).collect();
    let (schedule, _) = crate::generate::play(&numbers);
    assert!(schedule.steps.len() > 20);
    assert_eq!(Schedule::parse(&schedule.to_text()), schedule);
}
