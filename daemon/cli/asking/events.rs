//! `steadfast events`: what happened, and what happens.

use super::super::args;
use super::super::exit::Exit;
use super::super::text::{out, out_json, plain};
use super::{PATIENCE, address, asking, refuse};
use crate::control::{Ask, Client, Unanswered};
use crate::events::Event;
use std::time::{SystemTime, UNIX_EPOCH};

/// Shows events; with `--follow` until the daemon ends, or somebody interrupts.
pub(in crate::cli) fn events(args: &args::Events) -> Exit {
    asking(async {
        let (follow, resource, from) = (args.follow, args.resource.clone(), args.from);
        let ask = Ask::Events { follow, resource, from };
        let client = Client::ask(&address(&args.socket), &ask).await;
        let mut client = client.map_err(|why| refuse(&why))?;
        loop {
            let within = (!follow).then_some(PATIENCE);
            match client.next(within).await {
                Ok(Some(value)) if args.json => out_json(&value),
                Ok(Some(value)) => match serde_json::from_value::<Event>(value.clone()) {
                    Ok(event) => out(words(&event, now())),
                    // So many were lost: this reader was too slow.
                    Err(_) => out(format!("… {value}")),
                },
                Ok(None) => return Ok(Exit::Well),
                // The daemon has ended: there is nothing more to follow.
                Err(Unanswered::Broken(_)) if follow => return Ok(Exit::Well),
                Err(why) => return Err(refuse(&why)),
            }
        }
    })
}

/// Under what happened.
const BELOW: &str = "\n          ";

/// One event in a line, as seen at this moment (in milliseconds since 1970).
pub(in crate::cli) fn words(event: &Event, now: u64) -> String {
    let resource = event.resource.as_deref().map(|name| format!(" {}", plain(name)));
    // What has more lines has them below, where they are seen to belong to it.
    let lines: Vec<String> = event.says.lines().map(plain).collect();
    let says = if lines.is_empty() { String::new() } else { format!(": {}", lines.join(BELOW)) };
    let age = format!("-{}", super::span(now.saturating_sub(event.at) / 1000));
    format!("{age:>8}  {}{}{says}", plain(&event.what), resource.unwrap_or_default())
}

/// Milliseconds since 1970.
pub(in crate::cli) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
