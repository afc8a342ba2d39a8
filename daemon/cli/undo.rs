//! `steadfast undo`: carried out by the daemon if one runs, else by this program with the lock of the state directory.

use super::exit::Exit;
use super::history_list::one_resource;
use super::offline::OfflineCommand;
use super::output::{error, plain, print};
use super::{args, client, settings, state_dir};
use crate::api::Undone;
use crate::driver::{to_undo, undo, undo_audit_entry};
use crate::events;
use crate::history::{History, Reader, Undo};
use crate::store::{Entry, PauseRecord, SqliteStore, Store as _, StoreError};
use std::time::{SystemTime, UNIX_EPOCH};
use steadfast_resources::KindSet;
use steadfast_resources::{Failure, Host, MintKey};
use tokio_util::sync::CancellationToken;

/// The reason of the pause, shown in the status.
const REASON: &str = "undone by command";

/// Undoes changes, and prints the consequences.
pub(super) fn undo_command(args: &args::Undo, key: &MintKey) -> Exit {
    match client::undo(args) {
        Ok(Some(undone)) => {
            told(&undone, args);
            Exit::Well
        }
        Ok(None) => alone(args, key).unwrap_or_else(|exit| exit),
        Err(exit) => exit,
    }
}

fn told(undone: &Undone, args: &args::Undo) {
    for line in &undone.lines {
        print(plain(line));
    }
    print("dependents were not notified: reload or restart a service yourself");
    let name = plain(&args.resource);
    if undone.paused {
        print(format!(
            "{name} is paused for {}; without the pause its graph would reverse the undo",
            client::span(args.limit)
        ));
        print(format!(
            "to keep the restored state: change the graph, then `steadfast resume '{name}'`"
        ));
    }
}

/// Undoes changes without a daemon; the lock keeps a daemon from starting meanwhile.
fn alone(args: &args::Undo, key: &MintKey) -> Result<Exit, Exit> {
    let said = args.socket.state_dir.clone().or_else(|| settings::of_daemon().1);
    let directory = state_dir::directory(said.as_deref());
    if !SqliteStore::is_there(&directory) {
        error(
            format!("no recorded changes of {}", plain(&args.resource)),
            Some("check --state-dir"),
        );
        return Err(Exit::Usage);
    }
    // A unique bare name selects its resource.
    let recorded = Reader::open(&directory).ok().flatten();
    let recorded = recorded.and_then(|reader| one_resource(&reader, &args.resource).ok());
    let resource = recorded.unwrap_or_else(|| args.resource.clone());
    let args = &args::Undo { resource, ..args.clone() };
    let refuse = |error: StoreError| state_dir::refuse(&error);
    let alone = OfflineCommand::take("undo", &directory).map_err(refuse)?;
    let mut store = alone.store().map_err(refuse)?;
    let kept = store.recall().map_err(refuse)?.resources.remove(&args.resource);
    let history = History::new(directory, args.history);
    let fail = |failure: Failure| {
        error(&failure.what, failure.hint.as_deref());
        Exit::Failed
    };
    let kinds = KindSet::of_this_build();
    // The history is checked before anything is paused.
    let what = Undo { resource: args.resource.clone(), to: args.to, partial: args.partial };
    to_undo(&history, &what, &kinds).map_err(fail)?;
    // Every recorded resource is paused, because it may be declared: a resource that is declared absent has the same
    // record as one that an `apply` has found undeclared.
    let paused = kept.is_some();
    // Ownership is recorded while a resource is declared; one that never converged may be declared without it.
    let is_declared = kept.as_ref().is_some_and(|kept| kept.owned.is_some() || kept.done.is_none());
    if paused {
        // The pause comes first: a process killed in between leaves a pause, and no undo that the next daemon would
        // revert.
        store_pause(&mut store, args, Some(pause(args))).map_err(refuse)?;
    }
    let undone = undo(key, &Host::default(), &history, (&what, CancellationToken::new()), &kinds);
    alone.record(undo_audit_entry(&args.resource, &undone).as_ref().map(events::done));
    match undone {
        Ok(lines) => {
            told(&Undone { lines, paused: paused && is_declared }, args);
            if is_declared {
                print("`steadfast apply` of the same graph reverses the undo");
            } else if paused {
                let (name, span) = (plain(&args.resource), client::span(args.limit));
                print(format!(
                    "{name} is paused for {span}: a graph that declares it would reverse the undo"
                ));
                print("`steadfast apply` of such a graph reverses the undo");
            } else {
                print(
                    "no known graph declares the resource; a graph that does would reverse the undo",
                );
            }
            Ok(Exit::Well)
        }
        Err(refused) => {
            let exit = fail(refused.failure);
            if let Some(kept) = kept.filter(|_| paused) {
                store_pause(&mut store, args, kept.pause).map_err(refuse)?;
            }
            Err(exit)
        }
    }
}

/// Creates the pause for the next daemon; a resource that no daemon managed needs none.
fn pause(args: &args::Undo) -> PauseRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let until_unix = now.saturating_add(args.limit);
    PauseRecord { reason: REASON.to_owned(), until_unix, lasts: Some(args.limit) }
}

fn store_pause(
    store: &mut SqliteStore,
    args: &args::Undo,
    pause: Option<PauseRecord>,
) -> Result<(), StoreError> {
    store.commit(&[Entry::ResourcePause { identity: args.resource.as_str().into(), pause }])
}
