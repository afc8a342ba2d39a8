//! What the daemon is doing while it is killed.

use crate::daemon::Daemon;
use crate::harness::Ground;
use crate::kill_point::{Doomed, Gate, Strike, Struck};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// Each is played from a ground of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The first start on an empty host, and a stop when all is done.
    FirstStart,
    /// A graph with a new configuration, by HUP.
    Reload,
    /// What somebody changed is repaired.
    Drift,
    /// A pause and a resume, with drift between them.
    Pause,
    /// A stop while a command runs that was owed.
    Stop,
    /// A start after a daemon that was killed when it was about to pay what it owed.
    Recovery,
    /// A graph that has lost resources that are to be removed then, by HUP.
    Removal,
    /// What was changed is put back by an operator (`undo`).
    Undo,
    /// Another state is taken in by a daemon that is paused.
    Import,
    /// A state that cannot be used is repaired by a daemon that only looks.
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

/// Ended before it was through.
struct Cut;

impl Scenario {
    /// Plays it on a new ground and kills the daemon, then each start after that, and checks what is found; how the
    /// first of them ended.
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

    /// Plays it once; it ends by the strike, or when it is through.
    pub(crate) fn strike(self, ground: &mut Ground, strike: Strike) -> Struck {
        let gate = Gate::default();
        if matches!(self, Self::FirstStart | Self::Recovery) {
            gate.open();
        }
        let doomed = Doomed::start(&ground.host, &["--sweep", "0"], strike, gate.clone());
        // Where it was cut there is nothing more to do.
        let (Ok(()) | Err(Cut)) = self.act(ground, &doomed.daemon, &gate);
        let struck = doomed.end(&ground.host);
        if ground.host.exists("hold") {
            ground.host.remove("hold");
        }
        struck
    }

    fn act(self, ground: &mut Ground, daemon: &Daemon, gate: &Gate) -> Result<(), Cut> {
        // One whose state cannot be used only looks, and never has all as declared.
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
                // Before it can be asked, its lock is in the way of whoever would do without it.
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

    /// Whether the restart must find itself paused; none where either is right.
    fn must_be_paused(self, struck: &Struck) -> Option<bool> {
        let said = |event: &str| struck.said.iter().any(|line| line.trim_end() == event);
        match self {
            Self::Pause if said("resumed") => Some(false),
            // A resume may be kept and not yet said, as soon as it is asked for, which follows the word at once.
            Self::Pause => None,
            // What is taken in while it is paused does not end the pause.
            Self::Import => said("paused").then_some(true),
            _ => Some(false),
        }
    }
}

/// An operator has something done; where the daemon dies over it, that is told him.
fn asked(ground: &Ground, words: &[&str]) -> Result<(), Cut> {
    if ground.host.ask_daemon(words).code == 0 { Ok(()) } else { Err(Cut) }
}

fn said(daemon: &Daemon, event: &str) -> Result<(), Cut> {
    daemon.line_or_end(event, |line| line.event == event).map(drop).ok_or(Cut)
}

/// It may have been killed meanwhile, and nobody else may have its number until it is waited for.
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
