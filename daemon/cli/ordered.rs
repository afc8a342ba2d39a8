//! `steadfast protect`, `unprotect`, `forget`: by the daemon where one runs, else by this program, which then holds the state directory.

use super::alone::Alone;
use super::exit::Exit;
use super::text::{error, out, plain};
use super::{args, asking, settings, state};
use crate::config::with_nearest;
use crate::events;
use crate::store::{Entry, Order, Owned, Recalled, SqliteStore, Store as _, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Has it done, and says what was done.
pub(super) fn order(order: Order, args: &args::Resources) -> Exit {
    let done = match asking::of_state(order, args) {
        Ok(Some(lines)) => Ok(lines),
        Ok(None) => alone(order, args),
        Err(exit) => Err(exit),
    };
    match done {
        Ok(lines) => {
            for line in lines {
                out(plain(&line));
            }
            Exit::Well
        }
        Err(exit) => exit,
    }
}

/// No daemon runs, and none can while this goes on.
fn alone(order: Order, args: &args::Resources) -> Result<Vec<String>, Exit> {
    let said = args.socket.state_dir.clone().or_else(|| settings::of_daemon().1);
    let directory = state::directory(said.as_deref());
    if !SqliteStore::is_there(&directory) {
        let what = format!("no such resource: {}", args.resources.join(", "));
        error(what, Some("nothing is kept here; is it this --state-dir?"));
        return Err(Exit::Usage);
    }
    let refuse = |error: StoreError| state::refuse(&error);
    let alone = Alone::take(order.command(), &directory).map_err(refuse)?;
    let mut store = alone.store().map_err(refuse)?;
    let recalled = store.recall().map_err(refuse)?;
    is_known(&recalled, &args.resources)?;
    let names: BTreeSet<Arc<str>> =
        args.resources.iter().map(|name| name.as_str().into()).collect();
    let (mut entries, mut deeds, mut says) = (Vec::new(), Vec::new(), Vec::new());
    for name in &names {
        let owned = recalled.resources.get(&**name).and_then(|kept| kept.owned.as_deref());
        match carry_out(order, name, owned) {
            Ok((entry, words)) => {
                deeds.extend(entry.is_some().then(|| order.deed(name, words)));
                entries.extend(entry);
                says.push(format!("{name} {words}"));
            }
            Err(why) => {
                error(why, Some("nothing was changed"));
                return Err(Exit::Failed);
            }
        }
    }
    store.commit(&entries).map_err(refuse)?;
    alone.tell(deeds.iter().map(events::done));
    Ok(says)
}

fn is_known(recalled: &Recalled, names: &[String]) -> Result<(), Exit> {
    let all = || recalled.resources.keys().map(String::as_str);
    let strangers = names.iter().filter(|name| !recalled.resources.contains_key(*name));
    let strangers: Vec<String> = strangers.map(|name| with_nearest(name, all())).collect();
    if strangers.is_empty() {
        return Ok(());
    }
    let what = format!("no such resource: {}", strangers.join(", "));
    error(what, Some("nothing is kept of it; `steadfast state show` lists what is kept"));
    Err(Exit::Usage)
}

/// What is to be recorded, if anything, and what is to be said; or why nothing is done.
fn carry_out(
    order: Order,
    name: &Arc<str>,
    before: Option<&Owned>,
) -> Result<(Option<Entry>, &'static str), String> {
    let is_declared = before.is_some_and(|owned| owned.protect);
    let says = match (order, before) {
        (Order::Protect, None) => {
            return Err(format!(
                "nothing is kept of whose {name} is: say `protect: true` in its graph"
            ));
        }
        (Order::Protect, Some(owned)) if owned.pinned => {
            return Ok((None, Order::ALREADY));
        }
        (Order::Unprotect, owned) if !owned.is_some_and(Owned::is_protected) => {
            return Ok((None, Order::NEVER));
        }
        (Order::Protect, Some(_)) => "is protected: a graph without it is refused",
        (Order::Unprotect, _) if is_declared => {
            "is not protected any more, until a graph that says `protect: true` is loaded"
        }
        (Order::Unprotect, _) => "is not protected any more",
        (Order::Redo, _) => "is run again when it is declared next",
        (Order::Forget, _) => {
            "is forgotten: whoever declares it next processes it anew, adopts what is there, and runs what runs once"
        }
    };
    Ok((Some(order.entry(name, before, &Arc::from(""))), says))
}
