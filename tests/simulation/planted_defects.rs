//! Planted defects: each mutation of the code around the engine still applies to the sources, and a run catches each.
//!
//! Every run of the tests checks that the mutations apply. The check that they are caught takes half an hour: `cargo
//! test --test simulation planted -- --ignored --nocapture` copies the repository, plants one defect after the other
//! in the copy, plays runs until one fails, and prints the table of docs/simulation.md.
//! `STEADFAST_PLANTED=hub,journal` selects the defects whose names begin with these words.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A defect: `old`, which occurs once in the file, is replaced by `new`.
struct Planted {
    name: &'static str,
    what: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

const ALL: &[Planted] = &[
    Planted {
        name: "keeper-begins-what-is-refused",
        what: "a begin that could not be kept counts as kept",
        file: "daemon/driver/journal/client.rs",
        old: "                Some(Event::Refused(run))\n            }",
        new: "                Some(Event::Begun(run))\n            }",
    },
    Planted {
        name: "keeper-forgets-an-end",
        what: "an end that could not be kept is told as durable, and not tried again",
        file: "daemon/driver/journal/client.rs",
        old: "                self.stall(ticket, entry.clone(), JournalQuery::End(run, entry));\n                None",
        new: "                drop(entry);\n                Some(Event::Durable(run))",
    },
    Planted {
        name: "keeper-never-tries-again",
        what: "what could not be kept waits for ever",
        file: "daemon/driver/journal/client.rs",
        old: "        self.retry_at = Some(Instant::now() + AGAIN);",
        new: "",
    },
    Planted {
        name: "journal-passes-the-refused",
        what: "what waits behind a refused batch is kept before it",
        file: "daemon/store/journal.rs",
        old: "            tickets.extend(queue.waiting.drain(..).map(|w| (w.writer, w.ticket)));\n            queue.urgent = 0;",
        new: "",
    },
    Planted {
        name: "store-pays-too-much",
        what: "a run pays what came while it ran, too",
        file: "daemon/store/replay.rs",
        old: "paid.is_some_and(|paid| *owed <= paid);",
        new: "paid.is_some_and(|paid| *owed <= paid || true);",
    },
    Planted {
        name: "driver-begins-at-leisure",
        what: "a begin that owes need not be durable before the apply",
        file: "daemon/driver/runs/record_begin.rs",
        old: "            || self.graph.is_given_something(intent.vertex);",
        new: "            || self.graph.is_given_something(intent.vertex);\n        let urgent = urgent && false;",
    },
    Planted {
        name: "driver-drops-echoes",
        what: "an event that may be our own doing is not even looked into",
        file: "daemon/driver/watches/signals.rs",
        old: "Signal::Changed(id) if self.runs.echo.covers(id) && !self.graph.is_deed(id) => {\n                    self.note_watch_event(id);\n                    Event::Look(id)\n",
        new: "Signal::Changed(id) if self.runs.echo.covers(id) && !self.graph.is_deed(id) => {\n                    self.note_watch_event(id);\n                    continue\n",
    },
    Planted {
        name: "driver-ignores-suspicion",
        what: "what may have been missed is not looked for",
        file: "daemon/driver/watches/signals.rs",
        old: "                    self.suspect_secrets(id);\n                    Event::Suspect(id)\n                }\n            };",
        new: "                    self.suspect_secrets(id);\n                    continue;\n                }\n            };",
    },
    Planted {
        name: "driver-forgets-what-settles",
        what: "events of files that a command runs for are dropped",
        file: "daemon/driver/watches/signals.rs",
        old: "                    self.watches.debounce.put(id, Instant::now());\n",
        new: "",
    },
    Planted {
        name: "driver-recalls-no-debt",
        what: "a refresh that is owed does not outlive the daemon",
        file: "daemon/driver/graph/registry.rs",
        old: "Some((id, RestoredState { owed, interrupted, pays, done: r.done }))",
        new: "let owed = owed.filter(|_| false);
                Some((id, RestoredState { owed, interrupted, pays, done: r.done }))",
    },
    Planted {
        name: "driver-keeps-values-to-itself",
        what: "who receives a value is not told that it is another",
        file: "daemon/driver/values/flow.rs",
        old: "            self.turn(Event::Received(id));",
        new: "            let _ = id;",
    },
    Planted {
        name: "hub-ignores-the-overflow",
        what: "a queue that ran over is no reason to look",
        file: "daemon/watch/index/watch_index.rs",
        old: "                self.work.overflow = true;\n",
        new: "",
    },
    Planted {
        name: "hub-keeps-dead-watches",
        what: "a directory that is gone is believed to be watched",
        file: "daemon/watch/index/watch_index.rs",
        old: "                    self.work.lost.insert(directory);\n",
        new: "                    let _ = directory;\n",
    },
    Planted {
        name: "hub-walks-without-a-word",
        what: "a way that leads elsewhere is followed, and nobody told",
        file: "daemon/watch/worker.rs",
        old: "            if differs || reason > Reason::Verify {",
        new: "            if differs && reason > Reason::Changed {",
    },
    Planted {
        name: "hub-looks-before-it-watches",
        what: "an entry is noted only where it is there",
        file: "daemon/watch/path_walk.rs",
        old: "            if !self.step(&place, &name, walked)? {",
        new: "            let there = self.ground.look(&place.held, &name).is_ok();\n            if there && !self.step(&place, &name, walked)? {",
    },
];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns true if a table row names a number of runs and a culprit.
fn says_who(row: &str) -> bool {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let [_, _, _, runs, by, _] = cells.as_slice() else { return false };
    runs.parse().is_ok_and(|runs: u64| runs > 0) && !by.is_empty() && *by != "nobody"
}

#[test]
fn a_line_that_names_nobody_is_refused() {
    assert!(says_who("| a | what | 40 | file[f0]: holds nothing |"));
    let rows =
        ["| a | what | not asked yet | |", "| a | what | 0 | nobody |", "| a | what | 3 | |"];
    assert_eq!(rows.map(says_who), [false; 3]);
}

/// Each planted defect still applies to the sources and has a row in docs/simulation.md.
#[test]
fn every_planted_bug_still_applies() {
    let page = fs::read_to_string(top().join("docs/simulation.md")).expect("docs/simulation.md");
    let mut wrong = Vec::new();
    for planted in ALL {
        let text = fs::read_to_string(top().join(planted.file)).expect(planted.file);
        let found = text.matches(planted.old).count();
        if found != 1 {
            wrong.push(format!("{}: {found} places in {}", planted.name, planted.file));
        }
        let row = page.lines().find(|line| line.starts_with(&format!("| {} |", planted.name)));
        match row {
            None => wrong.push(format!("{}: no line in docs/simulation.md", planted.name)),
            Some(row) if !says_who(row) => {
                wrong.push(format!("{}: nobody is said to have caught it", planted.name));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "expected one place, and a line, for each:\n{}", wrong.join("\n"));
}

/// A run catches each planted defect; the printed row has the number of runs.
#[test]
#[ignore = "takes half an hour: cargo test --test simulation planted -- --ignored --nocapture"]
fn every_planted_bug_is_caught() {
    let wanted = std::env::var("STEADFAST_PLANTED").unwrap_or_default();
    let is_wanted = |planted: &&Planted| wanted.split(',').any(|w| planted.name.starts_with(w));
    let workshop = Workshop::new();
    let mut survivors = Vec::new();
    print_line("| bug | what is broken | runs until it is caught | by |");
    print_line("|---|---|---|---|");
    for planted in ALL.iter().filter(is_wanted) {
        let Planted { name, what, .. } = planted;
        let caught = workshop.catch(planted);
        if caught.is_none() {
            survivors.push(*name);
        }
        let (runs, by) = caught.unwrap_or_else(|| (0, "nobody".to_owned()));
        print_line(&format!("| {name} | {what} | {runs} | {by} |"));
    }
    assert!(survivors.is_empty(), "nobody caught {survivors:?}");
}

/// The copy of the repository in which defects are planted.
struct Workshop(PathBuf);

impl Workshop {
    fn new() -> Self {
        let this = Self(std::env::temp_dir().join("steadfast-planted"));
        let files = Command::new("git").args(["ls-files", "-z"]).current_dir(top()).output();
        let files = files.expect("git knows the files").stdout;
        for name in files.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            this.restore(std::str::from_utf8(name).expect("UTF-8"));
        }
        this
    }

    /// Restores a file of the copy from the repository. An equal file is not rewritten, so that less is rebuilt.
    fn restore(&self, name: &str) {
        let Ok(bytes) = fs::read(top().join(name)) else { return };
        let copy = self.0.join(name);
        fs::create_dir_all(copy.parent().expect("below the copy")).expect("a folder");
        if fs::read(&copy).ok().as_ref() != Some(&bytes) {
            fs::write(&copy, bytes).expect("a copied file");
        }
    }

    /// Plants a defect and plays runs; returns the number of runs and the first complaint.
    fn catch(&self, planted: &Planted) -> Option<(u64, String)> {
        let path = self.0.join(planted.file);
        let text = fs::read_to_string(&path).expect("a copied source");
        fs::write(&path, text.replace(planted.old, planted.new)).expect("the broken source");
        let build = self.cargo(&["--no-run"], (0, 1));
        let said = String::from_utf8_lossy(&build.stderr).into_owned();
        assert!(build.status.success(), "{} does not build:\n{said}", planted.name);
        let mut caught = None;
        for (first, count) in [(0, 50), (50, 450), (500, 2_500), (3_000, 7_000)] {
            let run = self.cargo(&["one_seed"], (first, count));
            if !run.status.success() {
                caught = Some(first_failure(&String::from_utf8_lossy(&run.stdout), first));
                break;
            }
        }
        self.restore(planted.file);
        caught
    }

    fn cargo(&self, arguments: &[&str], (first, count): (u64, u64)) -> std::process::Output {
        Command::new("timeout")
            .args(["3600", "nice", "cargo", "test", "--offline", "--test", "simulation"])
            .args(arguments)
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .env("STEADFAST_SEED", first.to_string())
            .env("STEADFAST_SEEDS", count.to_string())
            .output()
            .expect("timeout, nice and cargo are there")
    }
}

/// Returns the number of runs up to the first failed seed, and the first complaint about that seed.
fn first_failure(said: &str, first: u64) -> (u64, String) {
    let found = said.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(": "));
    match found {
        Some((seed, what)) => {
            let seed: u64 = seed.parse().expect("a seed is a number");
            (seed + 1, what.chars().take(70).collect::<String>().replace('|', "/"))
        }
        // An interrupted or otherwise broken run proves nothing.
        None => panic!("from seed {first} on no seed is told:\n{said}"),
    }
}

#[expect(clippy::print_stdout, reason = "the table is for whoever started this by hand")]
fn print_line(line: &str) {
    println!("{line}");
}
