//! A damaged state, and the checks before, during and after its repair.

use crate::daemon::Daemon;
use crate::host::Host;

/// The bytes of the damaged database.
pub(crate) struct Damage(Vec<u8>);

impl Damage {
    /// Damages the row of the whole state; all other rows stay readable.
    #[track_caller]
    pub(crate) fn do_to(host: &Host) -> Self {
        let path = host.path("state/state.db");
        rusqlite::Connection::open(&path)
            .and_then(|database| database.execute_batch("UPDATE whole SET sum = sum + 1"))
            .expect("damaged");
        assert!(!host.exists("state/state.db-wal"), "all of it is in one file");
        Self(std::fs::read(path).expect("read"))
    }

    /// Asserts that the damaged database exists, in its place or as a copy.
    #[track_caller]
    pub(crate) fn is_kept(&self, host: &Host, at: &str) {
        let names = std::fs::read_dir(host.path("state")).expect("listed").flatten();
        let is_one = |name: &str| name == "state.db" || name.starts_with("state.db.bad-");
        let mut all = names.filter(|entry| is_one(&entry.file_name().to_string_lossy()));
        let is_kept = all.any(|entry| std::fs::read(entry.path()).is_ok_and(|it| it == self.0));
        assert!(is_kept, "{at}: what was damaged is nowhere any more");
    }

    /// Asserts that the operator's repair (repeated if interrupted) gives a sound state and keeps a copy of the
    /// damaged one.
    #[track_caller]
    pub(crate) fn is_repaired(&self, host: &Host, daemon: &Daemon, at: &str) {
        let says = ["read_only", "converged"];
        let first = daemon.line_or_end("a first word", |line| says.contains(&line.event.as_str()));
        let first = first.unwrap_or_else(|| panic!("{at}: it ended: {:#?}", daemon.log()));
        // The state is either untouched or repaired; no daemon acts on anything in between.
        if first.event == "read_only" {
            self.repair(host, at);
        }
        // The store's worker restarts with the repaired state, and so does the driver.
        host.wait_until("all is as declared", || {
            host.ask_daemon(&["wait", "--timeout", "60"]).code == 0
        });
        host.ask_daemon(&["state", "verify"]).exits(0);
        self.is_kept(host, at);
    }

    #[track_caller]
    fn repair(&self, host: &Host, at: &str) {
        let repair = || host.ask_daemon(&["state", "repair"]);
        let mut repaired = repair();
        host.wait_until("it can be asked", || {
            // Before the daemon listens, its lock rejects a command that works without a daemon.
            let is_early = repaired.code == 75;
            if is_early {
                repaired = repair();
            }
            !is_early
        });
        assert_eq!(repaired.code, 0, "{at}: {repaired}");
        assert!(
            !repaired.stdout.contains("nothing to do: the state is intact"),
            "{at}: {repaired}"
        );
        self.is_kept(host, at);
    }
}
