//! `steadfast top`: a live full-screen view of a running daemon. It must change nothing except by requests of other
//! commands.
//!
//! Reading order: `view` (the shown data and the effect of keys, as a value), `draw` and `style` (the screen), `poller`
//! (requests to the daemon), `terminal` (the terminal, which is restored at any end).

mod draw;
mod poller;
mod style;
mod terminal;
mod view;

#[cfg(test)]
mod tests;

use super::args;
use super::exit::Exit;
use super::output::colour::shows_colour;
use super::output::error;
use crate::signals::Signals;
use poller::Feed;
use std::io::IsTerminal as _;
use std::time::Duration;
use terminal::Screen;
use view::{Next, View};

/// The interval of requests to the daemon.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the view until the user leaves.
pub(super) fn top(args: &args::Top, signals: Signals) -> Exit {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb" || term.is_empty());
    if is_dumb || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let hint = "`steadfast status --watch` works everywhere";
        error("expected a terminal that can be drawn on, found none", Some(hint));
        return Exit::Usage;
    }
    let colour = shows_colour();
    super::on_runtime(|runtime| {
        runtime.block_on(async {
            let screen = match Screen::open() {
                Ok(screen) => screen,
                Err(why) => {
                    error(format!("cannot draw on this terminal: {why}"), None);
                    return Exit::Failed;
                }
            };
            let exit = watch(args, signals, screen, View::new(colour)).await;
            exit.unwrap_or_else(|why| {
                error(format!("the terminal is gone: {why}"), None);
                Exit::Failed
            })
        })
    })
}

async fn watch(
    args: &args::Top,
    mut signals: Signals,
    mut screen: Screen,
    mut view: View,
) -> std::io::Result<Exit> {
    let mut feed = Feed::new(super::client::address(&args.socket));
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        screen.draw(|frame| draw::draw(frame, &mut view))?;
        let next = tokio::select! {
            _ = tick.tick() => Next::Ask,
            told = feed.next() => {
                view.hear(told);
                Next::Nothing
            }
            event = screen.event() => match event {
                Some(event) => view.react(&event),
                None => Next::Leave,
            },
            // A signal also restores the terminal.
            _ = signals.next() => Next::Leave,
        };
        match next {
            Next::Nothing => {}
            Next::Leave => return Ok(Exit::Well),
            Next::Ask => feed.ask_all(view.questions()),
            Next::Order(order) => feed.order(order),
        }
    }
}
