//! `steadfast run`: the daemon, in the foreground.

use super::args::{Run, Socket};
use super::desk::Clerk;
use super::exit::Exit;
use super::inside::Inside;
use super::log::{Journal, LogFilter};
use super::reload::Reloader;
use super::{asking, log, read, state, systemd, text};
use crate::driver::{Audience, Driver, Inbox, Input, News, Parts, Settings, local_minute};
use crate::events::{self, Pump, Stream, Teller};
use crate::signals::{Signal, Signals};
use std::time::Duration;
use steadfast_engine::Slots;
use steadfast_resources::{Host, MintKey};
use tokio::sync::watch;

/// Runs until it is stopped.
pub(super) fn run(args: &Run, signals: Signals, key: MintKey) -> Exit {
    let filter = log::set_up(args.log);
    let directory = state::directory(args.state.state_dir.as_deref());
    let opened = state::open(&directory);
    let (store, recalled) = match opened {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let (converged, seen) = watch::channel(false);
    let (teller, events, pump) = events::stream();
    let audience = Box::new(Crier {
        journal: Journal::new(args.log),
        notifier: systemd::Notifier::new(),
        converged,
        teller,
    });
    let parts =
        Parts { host: Host::default(), key: key.into(), store: Some(store), recalled, audience };
    let desk = Desk { events, pump, filter };
    super::on_runtime(|runtime| runtime.block_on(hold(args, signals, parts, (seen, desk))))
}

/// What the control socket needs besides the driver.
struct Desk {
    events: Stream,
    pump: Pump,
    filter: LogFilter,
}

async fn hold(
    args: &Run,
    mut signals: Signals,
    parts: Parts,
    (seen, desk): (watch::Receiver<bool>, Desk),
) -> Exit {
    let whole = args.graph.only.is_empty() && args.graph.skip.is_empty();
    let settings = Settings {
        one_shot: false,
        slots: Slots::default(),
        sweep: (args.sweep > 0).then(|| Duration::from_secs(args.sweep)),
        pause_limit: Duration::from_secs(args.pause_limit),
        whole,
        brake: (args.brake > 0).then_some(args.brake),
        clock: local_minute,
    };
    let driver = match Driver::new(settings, parts) {
        Ok(driver) => driver,
        Err(error) => {
            text::error(format!("cannot start: {error}"), None);
            return Exit::Failed;
        }
    };
    let inbox = driver.inbox();
    let reloader = Reloader::new(args.graph.clone(), inbox.clone());
    let turn = reloader.turn().await;
    let _watch = if args.watch { Some(reloader.watch().await) } else { None };
    match read::read_unless_stopped(&args.graph, &mut signals, false).await {
        Ok(Some(first)) => {
            inbox.put(Input::Graph { graph: Ok(Box::new(first)), operator: true });
        }
        Ok(None) => return Exit::Well,
        Err(exit) => return exit,
    }
    drop(turn);
    let grace = Duration::from_secs(args.grace);
    let inside = attend(args, desk, inbox.clone(), reloader.clone());
    tokio::spawn(obey(signals, inbox.clone(), reloader, grace));
    tokio::spawn(systemd::feed_watchdog(inbox.clone()));
    if let Some(seconds) = args.converged_timeout {
        tokio::spawn(end_when_converged(seen, Duration::from_secs(seconds), inbox, grace));
    }
    driver.run().await;
    systemd::stopping();
    if let Some(inside) = inside {
        inside.stop();
    }
    Exit::Well
}

/// Lets the daemon be asked. Where that cannot be, it does its work all the same.
fn attend(args: &Run, desk: Desk, inbox: Inbox<Input>, reloader: Reloader) -> Option<Inside> {
    let inside = Inside::start().inspect_err(|error| {
        tracing::error!(event = "control", %error, "commands cannot reach this daemon");
    });
    let inside = inside.ok()?;
    let clerk = Clerk {
        inbox,
        events: desk.events,
        reloader,
        supervisor: inside.supervisor.clone(),
        log: desk.filter,
        grace: Duration::from_secs(args.grace),
    };
    let socket = Socket { socket: args.socket.clone(), state_dir: args.state.state_dir.clone() };
    inside.install(desk.pump, clerk, (asking::address(&socket), args.socket_group));
    Some(inside)
}

/// Turns signals into requests, in the order in which they were sent.
async fn obey(mut signals: Signals, inbox: Inbox<Input>, reloader: Reloader, grace: Duration) {
    let mut stops = 0;
    loop {
        match signals.next().await {
            Ok(Signal::Reload) => reloader.reload(true),
            Ok(Signal::Pause) => {
                let reason = "signal USR1".to_owned();
                inbox.put(Input::Pause { reason, limit: None });
            }
            Ok(Signal::Resume) => inbox.put(Input::Resume),
            Ok(Signal::Stop) => {
                stops += 1;
                inbox.put(Input::Stop(if stops > 1 { Duration::ZERO } else { grace }));
            }
            Err(error) => {
                tracing::error!(%error, "signals cannot be read any more: stopping");
                inbox.put(Input::Stop(grace));
                return;
            }
        }
    }
}

/// Ends the daemon when all has been as declared for long enough (`--converged-timeout`).
async fn end_when_converged(
    mut seen: watch::Receiver<bool>,
    long: Duration,
    inbox: Inbox<Input>,
    grace: Duration,
) {
    loop {
        if seen.wait_for(|converged| *converged).await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(long) => {
                inbox.put(Input::Stop(grace));
                return;
            }
            changed = seen.wait_for(|converged| !*converged) => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// Who hears the news of a daemon: its log, systemd, and whoever waits for convergence.
struct Crier {
    journal: Journal,
    notifier: systemd::Notifier,
    converged: watch::Sender<bool>,
    teller: Teller,
}

impl Crier {
    fn tell_converged(&self, converged: bool) {
        self.converged.send_if_modified(|last| std::mem::replace(last, converged) != converged);
    }
}

impl Audience for Crier {
    fn hear(&mut self, news: &News<'_>) {
        match news {
            News::Converged(_) => self.tell_converged(true),
            News::Diverged(_) | News::Loaded { .. } | News::Pausing(_) | News::Paused => {
                self.tell_converged(false);
            }
            _ => {}
        }
        self.journal.hear(news);
        self.notifier.hear(news);
        if let Some(happening) = log::happening(news) {
            self.teller.tell(happening);
        }
    }
}
