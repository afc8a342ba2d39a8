//! Random changes of a small tree: a change without a later report is a defect.

use crate::listener::Ears;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("small")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const DIRECTORIES: [&str; 9] = ["a", "a/c", "a/d", "b", "b/c", "b/d", "l", "a/l", "spare"];
const NAMES: [&str; 3] = ["x", "y", "z"];
const WATCHED: [&str; 11] = [
    "a/c/x",
    "a/d/y",
    "b/c/x",
    "b/d/z",
    "l/x",
    "l/c/x",
    "a/l/y",
    "a/l/d/x",
    "a/c",
    "spare/c/x",
    "l",
];
const TARGETS: [&str; 8] = ["a", "b", "../b", "a/c", "c", "../a/d", "d", "nowhere"];

/// Makes one random change; fails if earlier changes make it impossible.
fn change(root: &Path, dice: &mut Dice) -> std::io::Result<()> {
    let directory = root.join(dice.one(&DIRECTORIES));
    let file = directory.join(dice.one(&NAMES));
    match dice.roll(14) {
        0 | 1 => fs::write(&file, dice.roll(1000).to_string()),
        2 => fs::OpenOptions::new()
            .append(true)
            .open(&file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"more")),
        3 => {
            fs::set_permissions(&file, Permissions::from_mode(0o600 + u32::from(dice.roll(2) == 0)))
        }
        4 => fs::remove_file(&file),
        5 => {
            let new = root.join("new");
            fs::write(&new, dice.roll(1000).to_string())?;
            fs::rename(&new, &file)
        }
        6 | 7 => fs::rename(&directory, root.join(dice.one(&DIRECTORIES))),
        8 => fs::remove_dir_all(&directory),
        9 | 10 => fs::create_dir_all(&directory),
        11 => {
            let new = root.join("new-link");
            symlink(dice.one(&TARGETS), &new)?;
            fs::rename(&new, &directory)
        }
        12 => {
            let new = root.join("new-link");
            symlink(dice.one(&["x", "y", "../c/x", "../../b/c/x", "../../l/x"]), &new)?;
            fs::rename(&new, &file)
        }
        _ => {
            let from = root.join(dice.one(&DIRECTORIES)).join(dice.one(&NAMES));
            fs::rename(from, &file)
        }
    }
}

/// Returns everything that a check of this path could see.
fn state(path: &Path) -> String {
    let attributes = |found: std::io::Result<fs::Metadata>| {
        found.map(|found| (found.ino(), found.mode(), found.uid())).ok()
    };
    let own = attributes(fs::symlink_metadata(path));
    let through = attributes(fs::metadata(path));
    let content = fs::read_to_string(path).ok();
    let target = fs::read_link(path).ok();
    format!("{own:?} {through:?} {target:?} {content:?}")
}

fn run(seed: u64) {
    let ears = if seed.is_multiple_of(4) { Ears::through_notify() } else { Ears::new() };
    let root = ears.directory.path().to_owned();
    let paths: Vec<PathBuf> = WATCHED.iter().map(|path| root.join(path)).collect();
    let mut dice = Dice(seed);
    for _ in 0..30 {
        change(&root, &mut dice).unwrap_or_default();
    }
    for (vertex, path) in (0..).zip(&paths) {
        ears.watch(vertex, path);
    }
    let checked = |seen: &mut BTreeMap<u32, (usize, String)>| {
        // The engine starts one check after each event, so the state is read after the signal.
        for (vertex, path) in (0..).zip(&paths) {
            let news = ears.heard(vertex).news();
            if seen.get(&vertex).is_none_or(|(before, _)| *before != news) {
                seen.insert(vertex, (news, state(path)));
            }
        }
    };
    let mut checks = BTreeMap::new();
    checked(&mut checks);
    for round in 0..30 {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..=dice.roll(40) {
                    change(&root, &mut dice).unwrap_or_default();
                    std::thread::sleep(Duration::from_micros(
                        [0, 0, 0, dice.0 % 300][dice.roll(4)],
                    ));
                }
                done.store(true, Ordering::SeqCst);
            });
            while !done.load(Ordering::SeqCst) {
                checked(&mut checks);
            }
        });
        ears.settle();
        checked(&mut checks);
        for (vertex, path) in (0..).zip(&paths) {
            let now = state(path);
            let (news, then) = &checks[&vertex];
            assert_eq!(
                *then,
                now,
                "seed {seed}, round {round}: {} changed after the last of {news} signals",
                path.display()
            );
        }
    }
}

/// F-7: after random changes at any speed, every difference to the last check has been reported.
#[test]
fn every_change_was_reported() {
    let seeds = match std::env::var("WATCH_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=12).map(|seed: u64| seed * 7_919_777 + 13).collect(),
    };
    for seed in seeds {
        run(seed);
    }
}

/// F-7 with 400 seeds, run on request; `WATCH_SEED` repeats one.
#[test]
#[ignore = "takes minutes"]
fn every_change_was_reported_for_long() {
    for seed in 1..400 {
        run(seed * 7_919 + 13);
    }
}
