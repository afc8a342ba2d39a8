//! The command line: one file for each command, and what they share.

pub mod args;
pub mod exit;

mod apply;
mod check;
mod graph;
mod log;
mod plan;
mod reload;
mod run;
mod state;
mod systemd;
mod text;

use crate::config::Loaded;
use crate::driver::{Finished, Parts};
use crate::signals::Signals;
use args::{Cli, Command};
use clap::Parser as _;
use exit::Exit;
use std::time::Duration;
use steadfast_resources::MintKey;

/// Does what the command line says. Called once, from `main`, before any thread is started.
#[must_use]
pub fn main() -> Exit {
    let Some(key) = MintKey::take() else { return Exit::Failed };
    if let Err(trouble) = steadfast_resources::host::close_inherited() {
        text::say(format!("warning: {trouble}"));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let asked = !error.use_stderr();
            drop(error.print());
            return if asked { Exit::Well } else { Exit::Usage };
        }
    };
    match cli.command {
        Command::Check(args) => check::check(&args),
        Command::Plan(args) => plan::plan(&args, key),
        // The graph is read before signals are taken over: until then ^C simply ends the program, whatever is read from.
        Command::Run(args) => match graph::read(&args.graph, false) {
            Ok(loaded) => with_signals(|signals| run::run(&args, loaded, signals, key)),
            Err(exit) => exit,
        },
        Command::Apply(args) => match graph::read(&args.graph, false) {
            Ok(loaded) => with_signals(|signals| apply::apply(&args, loaded, signals, key)),
            Err(exit) => exit,
        },
    }
}

fn with_signals(command: impl FnOnce(Signals) -> Exit) -> Exit {
    // Ours alone to read and write, whatever is made without a mode of its own.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    match Signals::install() {
        Ok(signals) => command(signals),
        Err(error) => {
            text::error(format!("cannot listen for signals: {error}"), None);
            Exit::Failed
        }
    }
}

/// Runs a graph once, on a runtime of its own.
fn once(parts: Parts, loaded: Loaded, signals: Option<Signals>) -> std::io::Result<Finished> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let finished = runtime.block_on(apply::drive(parts, loaded, signals));
    runtime.shutdown_timeout(Duration::from_millis(100));
    finished
}
