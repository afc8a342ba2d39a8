//! `steadfast events`: recorded events and, with `--follow`, new ones.

use super::{PATIENCE, address, asking, pieces, refuse, stranger};
use crate::api::{Data, Event, Request};
use crate::cli::args;
use crate::cli::args::Since;
use crate::cli::exit::Exit;
use crate::cli::offline::refuse_labels;
use crate::cli::output::{eprint, error, is_unread, out_json, plain, print};
use crate::cli::state;
use crate::control::{Client, Unanswered};
use crate::events::render::headline;
use crate::events::{DATABASE, PublishedEvent, Reader, Unreadable, Wanted};
use crate::selection::{NoLabels, Selector, resolve};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The default number of events.
const USUAL: usize = 200;

/// The number of events read at once.
const PAGE: usize = 1000;

/// Prints events; with `--follow` until the daemon ends or the user interrupts.
pub(in crate::cli) fn events(args: &args::Events) -> Exit {
    let wanted = wanted(args);
    asking(async {
        let Wanted { from, since, limit, details: debug, .. } = wanted.clone();
        let resources = args.selection.texts();
        let ask = Request::Events { follow: args.follow, resources, from, since, limit, debug };
        let mut client = match Client::ask(&address(&args.socket), &ask).await {
            Ok(client) => client,
            Err(why) => {
                let is_told = without_daemon(args, wanted, &why)?;
                return if is_told { Ok(Exit::Well) } else { nothing(args).await };
            }
        };
        let (mut ended, mut is_told) = (false, false);
        loop {
            let within = (!args.follow).then_some(PATIENCE);
            match client.next(within).await {
                Ok(Some(data)) => {
                    ended |= matches!(data, Data::End(_));
                    is_told = true;
                    show(args, &data);
                    if is_unread() {
                        return Ok(Exit::Well);
                    }
                }
                Ok(None) if is_told => return Ok(Exit::Well),
                Ok(None) => return nothing(args).await,
                Err(Unanswered::Broken(_)) if ended => return Ok(Exit::Well),
                // A stream that breaks off without an end is a failure (C-19).
                Err(why @ Unanswered::Broken(_)) if args.follow => {
                    eprint(format!("the event stream ended: {why}"));
                    return Ok(Exit::Failed);
                }
                Err(why) => return Err(refuse(&why)),
            }
        }
    })
}

fn wanted(args: &args::Events) -> Wanted {
    let (from, since) = match args.since {
        None => (None, None),
        Some(Since::Number(number)) => (Some(number), None),
        Some(Since::Ago(seconds)) => (None, Some(now().saturating_sub(seconds * 1000))),
        Some(Since::Time(time)) => (None, Some(time)),
    };
    let limit = args.lines.or_else(|| args.since.is_none().then_some(USUAL));
    Wanted { from, since, resources: None, limit, details: args.debug }
}

/// Reports that no events match. A misspelt resource is an error.
async fn nothing(args: &args::Events) -> Result<Exit, Exit> {
    if args.lines == Some(0) {
        return Ok(Exit::Well);
    }
    if let [resource] = &args.selection.resources[..]
        && !args.follow
        && !is_recorded(args, resource).await
        && let Some(why) = stranger(&args.socket, resource).await
    {
        error(
            why,
            Some("the resource has no recorded events; `steadfast events` shows the recent ones"),
        );
        return Err(Exit::Failed);
    }
    if !args.json {
        eprint("no recorded event matches; `steadfast events` shows the recent ones");
    }
    Ok(Exit::Well)
}

/// Returns true if there is any event of the resource.
async fn is_recorded(args: &args::Events, resource: &str) -> bool {
    let last = Request::lately(Some(resource.to_owned()), 1);
    if !pieces::<Event>(&args.socket, &last).await.is_empty() {
        return true;
    }
    let wanted = Wanted {
        resources: Some(Arc::new(BTreeSet::from([resource.to_owned()]))),
        limit: Some(1),
        details: true,
        ..Wanted::default()
    };
    let last = |reader: Reader| reader.read(reader.begin(&wanted)?, u64::MAX, 1);
    let kept = Reader::open(&directory(args)).ok().flatten().map(last);
    kept.is_some_and(|last| last.is_ok_and(|last| !last.is_empty()))
}

fn directory(args: &args::Events) -> PathBuf {
    state::directory(args.socket.state_dir.as_deref())
}

fn show(args: &args::Events, data: &Data) {
    match data {
        Data::Event(event) if args.json => out_json(event),
        Data::Event(event) => print(args.line(event)),
        Data::Missed(missed) if args.json => out_json(&json!({ "missed": missed })),
        Data::Missed(missed) => {
            print(format!("… {missed} events were lost: this reader is too slow"));
        }
        Data::End(why) if args.json => out_json(&json!({ "end": why })),
        Data::End(why) => eprint(format!("no more events: {why}")),
        _ => {}
    }
}

/// Prints recorded events without a daemon; returns true if there were any.
fn without_daemon(args: &args::Events, mut wanted: Wanted, why: &Unanswered) -> Result<bool, Exit> {
    let directory = directory(args);
    let is_there = directory.join(DATABASE).exists();
    let elsewhere = args.socket.socket.is_some() && args.socket.state_dir.is_none();
    if args.follow || elsewhere || !is_there || !matches!(why, Unanswered::NoDaemon(_)) {
        return Err(refuse(why));
    }
    let unreadable = |why: Unreadable| refuse(&Unanswered::Unavailable(why.to_string()));
    let Some(reader) = Reader::open(&directory).map_err(unreadable)? else { return Ok(false) };
    let texts = args.selection.texts();
    if !texts.is_empty() {
        let names = reader.resources().map_err(unreadable)?;
        wanted.resources = Some(Arc::new(recorded(&texts, &names)?));
    }
    show_kept(args, &wanted, &reader).map_err(unreadable)
}

/// Returns the resources with recorded events that selectors select. An identity selects itself.
fn recorded(texts: &[String], names: &[String]) -> Result<BTreeSet<String>, Exit> {
    refuse_labels(texts)?;
    let (selected, patterns): (Vec<String>, Vec<String>) =
        texts.iter().cloned().partition(|text| Selector::is_identity(text));
    let mut selected: BTreeSet<String> = selected.into_iter().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match resolve(&patterns, &names, &NoLabels) {
        Ok(found) => selected.extend(found),
        Err(wrong) if wrong.ambiguous.is_empty() => {}
        Err(wrong) => {
            error(wrong.candidates().join("; "), Some("name one of them: kind[name]"));
            return Err(Exit::Usage);
        }
    }
    Ok(selected)
}

fn show_kept(args: &args::Events, wanted: &Wanted, reader: &Reader) -> Result<bool, Unreadable> {
    let (mut from, mut is_told) = (reader.begin(wanted)?, false);
    loop {
        let page = reader.read(from, u64::MAX, PAGE)?;
        let Some(last) = page.last().and_then(|event| event.number) else {
            return Ok(is_told);
        };
        from = last + 1;
        let is_wanted = |event: &&PublishedEvent| wanted.admits(event);
        let line = |event: &PublishedEvent| {
            if args.json { event.json().to_owned() } else { args.line(event) }
        };
        // Events are printed page by page, because the log may hold a million.
        let lines: Vec<String> = page.iter().filter(is_wanted).map(line).collect();
        if !lines.is_empty() {
            is_told = true;
            print(lines.join("\n"));
            if is_unread() {
                return Ok(true);
            }
        }
    }
}

/// The indentation of further lines of an event.
const BELOW: &str = "\n          ";

impl args::Events {
    /// Describes an event in one line, with its local time or, with `--relative`, its age.
    fn line(&self, event: &Event) -> String {
        if self.relative {
            return words(event, now());
        }
        let at = i64::try_from(event.at).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::MAX);
        let at = at.to_zoned(jiff::tz::TimeZone::system());
        format!("{}  {}", at.strftime("%Y-%m-%d %H:%M:%S"), text(event))
    }
}

/// Describes an event in one line with its age. `now` is in milliseconds since 1970.
pub(in crate::cli) fn words(event: &Event, now: u64) -> String {
    let age = format!("-{}", super::span(now.saturating_sub(event.at) / 1000));
    format!("{age:>8}  {}", text(event))
}

/// Describes an event. Further lines are indented, so that they visibly belong to the event.
fn text(event: &Event) -> String {
    let lines: Vec<String> = event.message.lines().map(plain).collect();
    headline(event.kind.name(), event.resource.as_deref(), &lines.join(BELOW))
}

/// Returns the time in milliseconds since 1970.
pub(in crate::cli) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
