//! `steadfast run`: the daemon, in the foreground.

use super::args::{Log, Run};
use super::exit::Exit;
use super::output::log_queue;
use super::output::render;
use super::output::render::LogObserver;
use super::{client, load_graph, output, settings, state_dir};
use crate::config::Options;
use crate::control::Address;
use crate::driver::{Notification, Observer, Settings, local_minute};
use crate::events::{self, Publisher};
use crate::lease::LocalLease;
use crate::signals::Signals;
use crate::store::StoreError;
use crate::supervisor::Ended;
use crate::workers;
use crate::workers::{
    FirstRefused, GraphSource, HostSettings, ReadSettings, SettingsRejected, Setup, sd_notify,
};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::Slots;
use steadfast_resources::MintKey;
use tokio::sync::watch;

/// Runs the daemon until it is stopped.
pub(super) fn run(args: &Run, signals: Signals, key: MintKey) -> Exit {
    let form = args.log.unwrap_or(Log::Human);
    let filter = render::set_up(form, args.log_level.as_deref(), render::Process::Daemon);
    let state_directory = state_dir::directory(args.state.state_dir.as_deref());
    if let Err(why) = state_dir::judge(&state_directory) {
        return state_dir::refuse(&why);
    }
    let options = match load_graph::options(&args.graph) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let (converged, seen) = watch::channel(false);
    let (publisher, stream) = events::stream();
    let own = publisher.clone();
    let address = match &args.socket {
        Some(path) => Address::at(path.clone()),
        None => Address::usual(args.state.state_dir.as_deref(), &state_dir::directory(None)),
    };
    warn_of_other(&address);
    let setup = Setup {
        host: host_settings(args, options),
        read_settings: args.given.as_deref().map(reader),
        settings_file: args.given.as_deref().map(settings::file),
        settings_instead: args.settings_instead.clone(),
        key,
        state_directory,
        lease: Box::new(|epoch| Box::new(LocalLease::new(epoch))),
        signals,
        observer: Box::new(move || {
            Box::new(DaemonObserver {
                journal: LogObserver::new(form),
                notifier: sd_notify::Notifier::new(),
                converged: converged.clone(),
                publisher: publisher.clone(),
            })
        }),
        events: (own, stream),
        retention: args.state.retention,
        set_log: Box::new(move |words| filter.set(words)),
        log_problem: log_queue::problem,
        dropped_lines: log_queue::dropped_lines,
        socket: (address, args.socket_group),
        until_converged: args.converged_timeout.map(|s| (seen, Duration::from_secs(s))),
    };
    super::on_runtime(|runtime| match runtime.block_on(workers::run_daemon(setup)) {
        Ok(ended) => verdict(&ended),
        Err(why) => {
            output::error(format!("cannot start: {why}"), None);
            Exit::Failed
        }
    })
}

/// Warns root of another daemon of root with another state: the two undo each other's changes.
fn warn_of_other(own: &Address) {
    let shared = Path::new(client::SHARED_SOCKET);
    let is_other = rustix::process::geteuid().is_root() && own.path() != shared;
    if is_other && UnixStream::connect(shared).is_ok() {
        tracing::warn!(
            event = "warning",
            "another daemon of root runs on this host ({}): declare no object in both graphs",
            shared.display()
        );
    }
}

/// Joins the command line and the settings.
fn host_settings(args: &Run, options: Options) -> HostSettings {
    let (state, retention) = (&args.state, args.state.retention);
    let state_directory = state_dir::directory(state.state_dir.as_deref());
    let is_filtered = std::env::var("STEADFAST_LOG").is_ok_and(|words| !words.is_empty());
    HostSettings {
        graph: GraphSource {
            paths: args.graph.graphs.clone(),
            options: Options { refuse_empty: !args.allow_empty, ..options },
            watch: args.watch,
            by_settings: args.given.as_ref().is_some_and(|given| given.graph.graphs.is_empty()),
            bundle_link: workers::bundle_link(&state_directory),
            kept_in: (!args.no_last_good_graph).then_some(state_directory),
        },
        driver: driver_settings(args),
        history: state.history,
        recorders: args.recorders.clone(),
        metrics: args.metrics.clone(),
        grace: Duration::from_secs(args.grace.unwrap_or(30)),
        log_level: args.log_level.clone().filter(|_| !is_filtered),
        fixed: vec![
            ("state_dir", format!("{:?}", state.state_dir)),
            ("socket", format!("{:?}", args.socket)),
            ("socket_group", format!("{:?}", args.socket_group)),
            ("log", format!("{:?}", args.log)),
            ("events_size", retention.bytes.to_string()),
            ("events_days", retention.age.as_secs().to_string()),
            ("metrics_listen", format!("{:?}", args.metrics.listen)),
            ("metrics_file", format!("{:?}", args.metrics.file)),
            ("metrics_resources", args.metrics.resources.to_string()),
            ("world", format!("{:?}", args.world)),
        ],
        world: args.world.as_deref().cloned(),
        text: args.settings_text.as_deref().cloned(),
    }
}

/// Returns a function that reads the settings again for this command line.
fn reader(given: &Run) -> ReadSettings {
    let given = given.clone();
    Arc::new(move || {
        let complete =
            settings::completed(&given).map_err(|unusable| SettingsRejected(unusable.to_string()));
        complete.and_then(|run| {
            let unusable =
                |_: Exit| SettingsRejected("the file of --facts cannot be used".to_owned());
            let options = load_graph::options(&run.graph).map_err(unusable)?;
            Ok(host_settings(&run, options))
        })
    })
}

fn driver_settings(args: &Run) -> Settings {
    Settings {
        one_shot: false,
        slots: Slots::default(),
        sweep: Some(args.sweep.unwrap_or(600)).filter(|s| *s > 0).map(Duration::from_secs),
        pause_limit: Duration::from_secs(args.pause_limit.unwrap_or(28_800)),
        whole: !args.graph.is_selected(),
        removes: !args.graph.is_selected(),
        repair_limit: Some(args.max_repairs_per_minute.unwrap_or(600)).filter(|limit| *limit > 0),
        clock: local_minute,
        guard: None,
    }
}

/// Returns the exit code of a daemon that has ended: success, unless a failure was fatal.
fn verdict(ended: &Ended) -> Exit {
    if !ended.late.is_empty() {
        let late: Vec<&str> = ended.late.iter().map(AsRef::as_ref).collect();
        tracing::error!(
            event = "stop_timeout",
            "these workers did not stop in time and were abandoned: {}",
            late.join(", ")
        );
    }
    let Some((worker, failure)) = &ended.fatal else { return Exit::Well };
    if let Some(refused) = failure.error.downcast_ref::<FirstRefused>() {
        output::eprint(&refused.0);
        return Exit::Graph;
    }
    if let Some(error) = failure.error.downcast_ref::<StoreError>() {
        return state_dir::refuse(error);
    }
    output::error(format!("worker `{worker}` failed permanently: {failure}"), None);
    Exit::Failed
}

/// The observer of a daemon: its log, systemd, and `--converged-timeout`.
struct DaemonObserver {
    journal: LogObserver,
    notifier: sd_notify::Notifier,
    converged: watch::Sender<bool>,
    publisher: Publisher,
}

impl DaemonObserver {
    fn set_converged(&self, converged: bool) {
        self.converged.send_if_modified(|last| std::mem::replace(last, converged) != converged);
    }
}

impl Observer for DaemonObserver {
    fn hear(&mut self, news: &Notification<'_>) {
        match news {
            Notification::Converged { .. } => self.set_converged(true),
            Notification::Diverged { .. }
            | Notification::Loaded { .. }
            | Notification::Pausing(_)
            | Notification::Paused { .. } => {
                self.set_converged(false);
            }
            _ => {}
        }
        self.notifier.hear(news);
        if let Some(event) = news.to_event() {
            self.journal.log_event(news, &event);
            self.publisher.publish(event);
        }
    }
}
