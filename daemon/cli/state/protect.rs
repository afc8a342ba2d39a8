//! `steadfast protect`, `unprotect`, `forget`: carried out by the daemon if one runs, else by this program with the
//! lock of the state directory.

use crate::cli::exit::Exit;
use crate::cli::offline::{OfflineCommand, refuse_labels};
use crate::cli::output::{error, plain, print};
use crate::cli::{args, client, settings, state_dir};
use crate::events;
use crate::nearest_name::with_nearest;
use crate::selection::{NoLabels, resolve};
use crate::store::{Effect, Entry, SqliteStore, StateCommand, Store as _, StoreError, StoredState};
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_resources::KindSet;

/// Carries out a state command, and prints what was done.
pub(in crate::cli) fn order(order: StateCommand, args: &args::Resources) -> Exit {
    let done = match client::of_state(order, args) {
        Ok(Some(lines)) => Ok(lines),
        Ok(None) => alone(order, args),
        Err(exit) => Err(exit),
    };
    match done {
        Ok(lines) => {
            for line in lines {
                print(plain(&line));
            }
            Exit::Well
        }
        Err(exit) => exit,
    }
}

/// Carries out the command without a daemon; the lock keeps a daemon from starting meanwhile.
fn alone(order: StateCommand, args: &args::Resources) -> Result<Vec<String>, Exit> {
    refuse_labels(&args.texts())?;
    let said = args.socket.state_dir.clone().or_else(|| settings::of_daemon().1);
    let directory = state_dir::directory(said.as_deref());
    if !SqliteStore::is_there(&directory) {
        let what = format!("no such resource: {}", args.texts().join(", "));
        error(what, Some("the state directory has no state; check --state-dir"));
        return Err(Exit::Usage);
    }
    let refuse = |error: StoreError| state_dir::refuse(&error);
    let alone = OfflineCommand::take(order.command(), &directory).map_err(refuse)?;
    let mut store = alone.store().map_err(refuse)?;
    let recalled = store.recall().map_err(refuse)?;
    let names = known_names(&recalled, &args.texts())?;
    let (mut entries, mut deeds, mut says) = (Vec::new(), Vec::new(), Vec::new());
    let kinds = KindSet::of_this_build();
    for name in &names {
        let owned = recalled.resources.get(&**name).and_then(|kept| kept.owned.as_deref());
        let words = match order.judge(name, owned, None) {
            Effect::Done(words) => {
                entries.push(order.entry(name, owned, &Arc::from("")));
                if order.makes_anew() && kinds.is_made_once(name) {
                    entries.push(Entry::ForgetSent(Arc::clone(name)));
                }
                deeds.push(order.audit_entry(name, words));
                words
            }
            Effect::Idle(words) => words,
            Effect::Refused(why) => {
                error(why, Some("nothing was changed"));
                return Err(Exit::Failed);
            }
        };
        says.push(format!("{name} {words}"));
    }
    store.commit(&entries).map_err(refuse)?;
    alone.record(deeds.iter().map(events::done));
    Ok(says)
}

/// Returns the recorded resources that selectors select. Labels are not recorded.
fn known_names(recalled: &StoredState, texts: &[String]) -> Result<BTreeSet<Arc<str>>, Exit> {
    let all: Vec<&str> = recalled.resources.keys().map(String::as_str).collect();
    let wrong = match resolve(texts, &all, &NoLabels) {
        Ok(names) => return Ok(names.iter().map(|name| name.as_str().into()).collect()),
        Err(wrong) => wrong,
    };
    if wrong.unknown.is_empty() {
        error(wrong.candidates().join("; "), Some("name one of them: kind[name]"));
        return Err(Exit::Usage);
    }
    let strangers = wrong.unknown.iter().map(|name| with_nearest(name, all.iter().copied()));
    let what = format!("no such resource: {}", strangers.collect::<Vec<_>>().join(", "));
    error(
        what,
        Some("the state has no record of this resource; `steadfast state show` lists all records"),
    );
    Err(Exit::Usage)
}
