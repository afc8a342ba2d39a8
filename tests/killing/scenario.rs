//! The scenarios: the daemon's activity at the time of the kill.

use crate::daemon::Daemon;
use crate::harness::Ground;
use crate::kill_point::{Doomed, Gate, Strike, Struck};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// A scenario; each starts from its own host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The first start on an empty host, and a stop once it is converged.
    FirstStart,
    /// A reload with a new configuration, by HUP.
    Reload,
    /// A repair of drift.
    Drift,
    /// A pause and a resume, with drift in between.
    Pause,
    /// A stop during a command that delivers an owed refresh.
    Stop,
    /// A start after a kill with a refresh still owed.
    Recovery,
    /// A reload, by HUP, that removes resources with `on_remove: delete`.
    Removal,
    /// An undo by the operator.
    Undo,
    /// An import of another state by a paused daemon.
    Import,
    /// A repair of a damaged state by a read-only daemon.
    Repair,
}

pub(crate) const ALL: [Scenario; 10] = [
    Scenario::FirstStart,
    Scenario::Reload,
    Scenario::Drift,
    Scenario::Pause,
    Scenario::Stop,
    Scenario::Recovery,
    Scenario::Removal,
    Scenario::Undo,
    Scenario::Import,
    Scenario::Repair,
];

/// The scenario ended early, by the kill.
struct Cut;

impl Scenario {
    /// Plays the scenario on a new host, kills the daemon and each following start, and checks the recovery. Returns
    /// the end of the first daemon.
    #[track_caller]
    pub(crate) fn play(self, strikes: &[Strike], label: &str) -> Struck {
        let (first, rest) = strikes.split_first().expect("a strike");
        let mut ground = match self {
            Self::Removal => Ground::with_what_leaves(),
            Self::Repair => Ground::with_damage(),
            _ => Ground::empty(),
        };
        if self == Self::Recovery {
            let before = Strike { name: Some("execve"), ..Strike::at(2) };
            let struck = Self::Reload.strike(&mut ground, before);
            assert!(struck.call.is_some(), "{label}: {struck:?}");
            ground.after_the_kill(label);
        }
        let struck = self.strike(&mut ground, *first);
        let mut at = format!("{label}: {self:?}, {first:?}, {:?}, {:?}", struck.call, struck.said);
        ground.after_the_kill(&at);
        for strike in rest {
            let struck = Self::Recovery.strike(&mut ground, *strike);
            at = format!("{at}; then {strike:?}, {:?}, {:?}", struck.call, struck.said);
            ground.after_the_kill(&at);
        }
        ground.recovers(self.must_be_paused(&struck), &at);
        struck
    }

    /// Plays the scenario once, up to the kill point or to its end.
    pub(crate) fn strike(self, ground: &mut Ground, strike: Strike) -> Struck {
        let gate = Gate::default();
        if matches!(self, Self::FirstStart | Self::Recovery) {
            gate.open();
        }
        let doomed = Doomed::start(&ground.host, &["--sweep", "0"], strike, gate.clone());
        // A scenario that was cut short needs nothing more.
        let (Ok(()) | Err(Cut)) = self.act(ground, &doomed.daemon, &gate);
        let struck = doomed.end(&ground.host);
        if ground.host.exists("hold") {
            ground.host.remove("hold");
        }
        struck
    }

    fn act(self, ground: &mut Ground, daemon: &Daemon, gate: &Gate) -> Result<(), Cut> {
        // A daemon with a damaged state is read-only and never reports converged.
        let first = ["converged", "paused", "read_only"];
        daemon.line_or_end("converged", |line| first.contains(&line.event.as_str())).ok_or(Cut)?;
        match self {
            Self::FirstStart => {
                send(daemon, Signal::SIGTERM);
                ended(daemon)
            }
            Self::Recovery => Ok(()),
            Self::Removal => {
                ground.leave();
                gate.open();
                send(daemon, Signal::SIGHUP);
                settled(ground, daemon)
            }
            Self::Undo => {
                ground.undoes = true;
                gate.open();
                asked(ground, &["undo", "file[edited]"])
            }
            Self::Import => {
                asked(ground, &["state", "export", "$DIR/kept.json"])?;
                send(daemon, Signal::SIGUSR1);
                said(daemon, "paused")?;
                gate.open();
                asked(ground, &["state", "import", "$DIR/kept.json"])?;
                said(daemon, "loaded")
            }
            Self::Repair => {
                // Before the daemon replies, its lock rejects a command that works without a daemon.
                until(daemon, || ground.host.ask_daemon(&["status"]).code == 73)?;
                gate.open();
                asked(ground, &["state", "repair"])?;
                said(daemon, "converged")
            }
            Self::Reload => {
                ground.declare("two");
                gate.open();
                send(daemon, Signal::SIGHUP);
                settled(ground, daemon)
            }
            Self::Drift => {
                gate.open();
                ground.drift();
                settled(ground, daemon)
            }
            Self::Pause => {
                gate.open();
                send(daemon, Signal::SIGUSR1);
                said(daemon, "paused").inspect_err(|_| ground.drift())?;
                ground.drift();
                send(daemon, Signal::SIGUSR2);
                said(daemon, "resumed")?;
                settled(ground, daemon)
            }
            Self::Stop => {
                ground.host.write("hold", "");
                let before = ground.host.lines("began").len();
                ground.drift();
                until(daemon, || ground.host.lines("began").len() > before)?;
                gate.open();
                send(daemon, Signal::SIGTERM);
                said(daemon, "stopping")?;
                ground.host.remove("hold");
                ended(daemon)
            }
        }
    }

    /// Returns the required pause state after the restart; none if both are right.
    fn must_be_paused(self, struck: &Struck) -> Option<bool> {
        let said = |event: &str| struck.said.iter().any(|line| line.trim_end() == event);
        match self {
            Self::Pause if said("resumed") => Some(false),
            // A resume may be recorded before it is reported.
            Self::Pause => None,
            // An import during a pause does not end the pause.
            Self::Import => said("paused").then_some(true),
            _ => Some(false),
        }
    }
}

/// Runs a command of the operator; fails if the daemon dies during the command.
fn asked(ground: &Ground, words: &[&str]) -> Result<(), Cut> {
    if ground.host.ask_daemon(words).code == 0 { Ok(()) } else { Err(Cut) }
}

fn said(daemon: &Daemon, event: &str) -> Result<(), Cut> {
    daemon.line_or_end(event, |line| line.event == event).map(drop).ok_or(Cut)
}

/// Sends a signal. The daemon may be dead already; its process number stays reserved until it is waited for.
fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a process number"));
    if kill(pid, signal).is_err() {}
}

fn ended(daemon: &Daemon) -> Result<(), Cut> {
    daemon.line_or_end("its end", |_| false).map(drop).ok_or(Cut)
}

fn settled(ground: &Ground, daemon: &Daemon) -> Result<(), Cut> {
    until(daemon, || ground.is_settled())
}

fn until(daemon: &Daemon, is_so: impl Fn() -> bool) -> Result<(), Cut> {
    let end = Instant::now() + crate::host::LIMIT;
    while !is_so() {
        if daemon.has_ended() {
            return Err(Cut);
        }
        assert!(Instant::now() < end, "after a minute it is still not so: {:#?}", daemon.log());
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
