//! The command line: one file or folder for each command, and their common parts.
//!
//! A command must print foreign text only in escaped form. Reading order: `args`, `since` (points in time), `exit`
//! (exit codes), `settings`, `load_graph`, `state_dir`, `output`, `foreign_commands`; the daemon (`run`), one-shot
//! commands (`one_shot`, `offline`), clients of a daemon (`client`, `top`), `state`, `history_list`, `history`,
//! `undo_plan`, `undo`, and the remaining commands: `init`, `inspect`, `check`, `graph`, `edges`, `module_test`,
//! `eval`, `explain`, `facts`, `schema`, `format`, `doctor`, `world` (many hosts), `shell`.

pub mod args;
mod client;
pub mod exit;
mod load_graph;
mod offline;
mod one_shot;
mod output;
mod since;
mod state;
mod state_dir;

mod check;
mod doctor;
mod edges;
mod eval;
mod explain;
mod facts;
mod foreign_commands;
mod format;
mod graph;
mod history;
mod history_list;
mod init;
mod inspect;
mod module_test;
mod run;
mod schema;
mod settings;
mod shell;
mod top;
mod undo;
mod undo_plan;
mod world;

use crate::signals::Signals;
use crate::store::StateCommand;
use args::{Cli, Command};
use clap::FromArgMatches as _;
use exit::Exit;
use std::time::Duration;
use steadfast_resources::{MintKey, host};
use tokio::runtime::Runtime;

/// Runs the command line. The function `main` calls it once, before any thread is started.
#[must_use]
pub fn main() -> Exit {
    let _finish_log = output::log_queue::FinishLog;
    match run_command() {
        Exit::Well | Exit::Changes if output::has_failed_output() => Exit::Failed,
        exit => exit,
    }
}

fn run_command() -> Exit {
    if shell::complete() {
        return Exit::Well;
    }
    let Some(key) = MintKey::take() else { return Exit::Failed };
    let prepared = [host::close_inherited(), host::leave_no_core()];
    if let Err(error) = crate::signals::survive_size_limit() {
        output::eprint(format!(
            "warning: a file that exceeds its limit ends this process: {error}"
        ));
    }
    for problem in prepared.into_iter().filter_map(Result::err) {
        output::eprint(format!("warning: {problem}"));
    }
    match parse_arguments() {
        Ok(command) => dispatch(command, key),
        Err(exit) => exit,
    }
}

/// Parses the arguments and completes them by the settings. Help and usage errors are printed here.
fn parse_arguments() -> Result<Command, Exit> {
    let mut command = shell::command();
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|mut matches| {
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    let mut cli = parsed.map_err(|mut error| {
        let asked = !error.use_stderr();
        let words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
        let hint = foreign_commands::hint(&mut error, &shell::command(), words);
        let printed = error.print();
        if let Some(hint) = hint {
            output::eprint(format!("hint: {hint}"));
        }
        if asked {
            output::note_output(&printed);
        }
        if asked { Exit::Well } else { Exit::Usage }
    })?;
    output::colour::choose_colour(cli.color);
    settings::complete(&mut cli.command)?;
    Ok(cli.command)
}

fn dispatch(command: Command, key: MintKey) -> Exit {
    match command {
        Command::Check(args) => check::check(&args),
        Command::Status(args) => client::status(&args),
        Command::Show(args) => match args.at {
            Some(number) => history::show(&args, number),
            None => client::show(&args.of),
        },
        Command::History(args) => history_list::history(&args),
        Command::Diff(args) => history::diff(&args),
        Command::Undo(args) if args.plan => undo_plan::undo_plan(&args),
        Command::Undo(args) => with_signals(|_| undo::undo_command(&args, &key)),
        Command::Why(args) => client::why(&args),
        Command::Events(args) => client::events(&args),
        Command::Workers(args) => client::workers(&args),
        Command::Pause(args) => client::pause(&args),
        Command::Resume(args) => client::resume(&args),
        Command::Reload(args) => client::reload(&args),
        Command::Retry(args) if args.persist => {
            with_signals(|_| state::protect::order(StateCommand::Retry, &args.of))
        }
        Command::Retry(args) => client::retry(&args.of),
        Command::Protect(args) => {
            with_signals(|_| state::protect::order(StateCommand::Protect, &args))
        }
        Command::Unprotect(args) => {
            with_signals(|_| state::protect::order(StateCommand::Unprotect, &args))
        }
        Command::Forget(args) => {
            with_signals(|_| state::protect::order(StateCommand::Forget, &args))
        }
        Command::State(args) => with_signals(|_| state::of_kept(&args)),
        Command::Wait(args) => client::wait(&args),
        Command::Stop(args) => client::stop(&args),
        Command::LogLevel(args) => client::log_level(&args),
        Command::Top(args) => with_signals(|signals| top::top(&args, signals)),
        Command::Fleet(args) => world::fleet::fleet(&args),
        Command::World(args) => world::operator::world(&args),
        Command::Bundle(args) => world::bundle::bundle(&args),
        Command::Deploy(args) => world::deploy::deploy(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Test(args) => module_test::test_module(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Eval(args) => eval::evaluate(&args),
        Command::Schema(args) => schema::print_schema(&args),
        Command::Fmt(args) => format::format_files(&args),
        Command::Facts(args) => facts::show_facts(&args),
        Command::Init(args) => init::init(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Plan(args) => one_shot::plan::plan(&args, key),
        Command::Drift(args) => client::drift::drift(&args, key),
        Command::Run(args) => with_signals(|signals| run::run(&args, signals, key)),
        Command::Apply(args) => with_signals(|signals| one_shot::apply::apply(&args, signals, key)),
    }
}

fn with_signals(command: impl FnOnce(Signals) -> Exit) -> Exit {
    // Files created without an explicit mode are accessible only to their owner.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    match Signals::install() {
        Ok(signals) => command(signals),
        Err(error) => {
            output::error(format!("cannot listen for signals: {error}"), None);
            Exit::Failed
        }
    }
}

/// Runs work on a runtime of its own. Remaining tasks and their child processes end with the runtime.
fn on_runtime(work: impl FnOnce(&Runtime) -> Exit) -> Exit {
    let runtime = match start_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let hint =
                "raise the limit of tasks (TasksMax=, pids.max, ulimit -u), or try again later";
            output::error(format!("cannot start: {error}"), Some(hint));
            return Exit::Failed;
        }
    };
    let exit = work(&runtime);
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Makes a runtime with a first thread for blocking work: tokio panics where it needs the first one and none can be
/// started.
fn start_runtime() -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().thread_keep_alive(Duration::from_mins(10)).build()?;
    let trial = std::thread::Builder::new().name("trial".to_owned()).spawn(|| ());
    let trial = trial.map_err(|error| {
        std::io::Error::new(error.kind(), format!("no thread can be started: {error}"))
    });
    match trial {
        Ok(thread) => thread.join().unwrap_or_default(),
        Err(error) => {
            runtime.shutdown_background();
            return Err(error);
        }
    }
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}
