//! `steadfast state`: the stored state and its integrity. The read-only commands take no lock and must not change
//! anything.
//!
//! Reading order: this file (`show`, `verify`), `transfer` (`export`, `import`, `repair`), `protect` (`protect`,
//! `unprotect`, `forget`).

pub(super) mod protect;
pub(super) mod transfer;

use super::args;
use super::args::StateCommand;
use super::exit::Exit;
use super::output::{count, error, out_json, plain, print};
use super::{settings, state_dir};
use crate::driver::values::codec::sorts;
use crate::nearest_name::with_nearest;
use crate::store::{
    Origin, Overview, Ownership, PauseRecord, ResourceRecord, SqliteStore, StoredState, Verb,
    violations,
};
use crate::workers::{damage_of_last_good_graph, generation, readers};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use steadfast_resources::KindSet;

/// Carries out `steadfast state`.
pub(super) fn of_kept(args: &args::StateArgs) -> Exit {
    let done = match &args.what {
        StateCommand::Show(args) => show(args),
        StateCommand::Verify(args) => verify(args),
        StateCommand::Export(args) => transfer::export(args),
        StateCommand::Import(args) => transfer::import(args),
        StateCommand::Repair(args) => transfer::repair(args),
    };
    done.unwrap_or_else(|exit| exit)
}

pub(super) fn directory(said: Option<&Path>) -> PathBuf {
    let said = said.map(Path::to_owned).or_else(|| settings::of_daemon().1);
    state_dir::directory(said.as_deref())
}

/// Prints the state of one moment: all that was durable together (B-25).
fn show(args: &args::ShowKept) -> Result<Exit, Exit> {
    let directory = directory(args.state.state_dir.as_deref());
    state_dir::something_in(&directory)?;
    let overview = SqliteStore::overview(&directory).map_err(|why| state_dir::refuse(&why))?;
    let Overview { mut recalled, in_progress, program, written_at } = overview;
    if let Some(name) = &args.resource {
        let Some(kept) = recalled.resources.remove(name) else {
            let known = recalled.resources.keys().map(String::as_str);
            let what = format!("the state has no record of {}", with_nearest(name, known));
            error(what, Some("`steadfast state show` shows all records"));
            return Err(Exit::Usage);
        };
        recalled.resources = [(name.clone(), kept)].into();
    }
    let generation = generation(&directory);
    if args.json {
        let mut all = to_json(&recalled, &in_progress);
        all["program"] = json!(program);
        all["written_at"] = json!(written_at);
        all["generation"] = json!(generation.map(|(it, at)| json!({
            "number": it.number, "graph": it.graph, "hash": it.hash, "kinds": it.kinds,
            "program": it.program, "since": at,
        })));
        out_json(&all);
        return Ok(Exit::Well);
    }
    if let Some((it, at)) = generation.filter(|_| args.resource.is_none()) {
        let kinds: Vec<String> = it.kinds.iter().map(|kind| plain(kind)).collect();
        let (graph, kinds, since) = (plain(&it.graph), kinds.join(", "), time(at));
        print(format!(
            "generation {}: graph `{graph}` ({}) of {kinds}, since {since}",
            it.number,
            plain(&it.hash)
        ));
    }
    if let Some(pause) = &recalled.pause {
        print(format!("paused until {}: {}", time(pause.until_unix), plain(&pause.reason)));
    }
    for (identity, kept) in &recalled.resources {
        print(plain(identity));
        for line in lines(kept, in_progress.contains(identity)) {
            print(format!("  {}", plain(&line)));
        }
    }
    if args.resource.is_none() {
        let resources = count(recalled.resources.len(), "resource");
        let by = program.zip(written_at).map(|(program, at)| {
            format!("; taken over by steadfast {} at {}", plain(&program), time(at))
        });
        let by = by.unwrap_or_default();
        print(format!("{resources} in {}{by}", plain(&directory.display().to_string())));
    }
    Ok(Exit::Well)
}

/// Describes the record of one resource. Sent values may be secret, so that only their existence is shown.
fn lines(kept: &ResourceRecord, is_in_progress: bool) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(kept.done.map(|definition| format!("succeeded (definition {definition:016x})")));
    if kept.interrupted.is_some() {
        let what = kept.cut.map_or("its run", Verb::words);
        lines.push(if is_in_progress {
            format!("{what} is in progress")
        } else {
            format!("{what} was interrupted")
        });
    }
    lines.extend(kept.owed.as_ref().map(|(_, cause)| format!("owed a refresh by {cause}")));
    lines.extend(
        kept.pause
            .as_ref()
            .map(|it| format!("paused until {}: {}", time(it.until_unix), it.reason)),
    );
    if kept.sent.is_some() {
        lines.push("has sent values".to_owned());
    }
    let (received, copied) = kept.taken.as_deref().map(sorts).unwrap_or_default();
    if received {
        lines.push("has received values".to_owned());
    }
    if copied {
        lines.push("has copied files".to_owned());
    }
    lines.extend(kept.owned.iter().flat_map(|owned| of_owned(owned)));
    lines
}

fn of_owned(owned: &Ownership) -> Vec<String> {
    let whose = owned.origin.map(|origin| match origin {
        Origin::Created => format!("created by steadfast, in graph `{}`", owned.graph),
        Origin::Adopted => format!("adopted, in graph `{}`", owned.graph),
    });
    let leaves =
        owned.delete.then(|| "deleted when undeclared, if created by steadfast".to_owned());
    let protected = owned.protect.then(|| "protected by its graph".to_owned());
    let pinned = owned.pinned.then(|| "protected by the operator".to_owned());
    let after =
        (!owned.after.is_empty()).then(|| format!("ordered after {}", owned.after.join(", ")));
    [whose, leaves, protected, pinned, after].into_iter().flatten().collect()
}

/// Formats a time given in seconds since 1970.
fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.map_or_else(|| "an invalid time".to_owned(), |time| time.to_string())
}

fn to_json(recalled: &StoredState, in_progress: &BTreeSet<String>) -> Value {
    let each = recalled.resources.iter().map(|(identity, kept)| {
        let mut all = one(kept);
        all["in_progress"] = json!(in_progress.contains(identity));
        (identity.clone(), all)
    });
    let resources: Map<String, Value> = each.collect();
    json!({"stamp": recalled.stamp, "pause": pause(recalled.pause.as_ref()), "resources": resources})
}

fn pause(pause: Option<&PauseRecord>) -> Value {
    pause.map_or(Value::Null, |it| json!({"reason": it.reason, "until": it.until_unix}))
}

fn one(kept: &ResourceRecord) -> Value {
    let definition = |definition: u64| format!("{definition:016x}");
    let owned = kept.owned.as_ref().map(|owned| {
        json!({
            "origin": owned.origin.map(|origin| match origin {
                Origin::Created => "created",
                Origin::Adopted => "adopted",
            }),
            "graph": *owned.graph,
            "on_remove": if owned.delete { "delete" } else { "forget" },
            "protected_by_graph": owned.protect,
            "protected_by_operator": owned.pinned,
            "after": owned.after.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        })
    });
    let (received, copied) = kept.taken.as_deref().map(sorts).unwrap_or_default();
    json!({
        "done": kept.done.map(definition),
        "interrupted": kept.interrupted.map(definition),
        "cut": kept.cut.map(Verb::word),
        "owed": kept.owed.as_ref().map(|(stamp, cause)| json!({"stamp": stamp, "by": cause})),
        "sent": kept.sent.is_some(),
        "received": received,
        "copied": copied,
        "pause": pause(kept.pause.as_ref()),
        "owned": owned,
    })
}

/// Verifies the database, the checksums of the rows and of the whole, and the meaning of the records.
fn verify(args: &args::VerifyKept) -> Result<Exit, Exit> {
    let directory = directory(args.state.state_dir.as_deref());
    let verified = SqliteStore::verify(&directory).map_err(|why| state_dir::refuse(&why))?;
    state_dir::something_in(&directory)?;
    let mut wrong = verified.damage;
    let readers = readers(KindSet::of_this_build(), |_, _| {});
    let strangers = verified.recalled.resources.keys();
    for (name, why) in strangers.filter_map(|name| Some((name, (readers.kind)(name)?))) {
        print(plain(&format!("{name}: {why}; the record stays unchanged")));
    }
    let found = violations(&verified.recalled, &readers);
    wrong.extend(found.iter().map(ToString::to_string));
    wrong.extend(damage_of_last_good_graph(&directory));
    for line in &wrong {
        print(plain(line));
    }
    let place = plain(&directory.display().to_string());
    if wrong.is_empty() {
        let resources = count(verified.recalled.resources.len(), "resource");
        print(format!("intact: {resources} in {place}"));
        return Ok(Exit::Well);
    }
    let hint = "nothing was changed; `steadfast state repair` repairs the state and keeps a backup";
    error(format!("{} in {place}", count(wrong.len(), "problem")), Some(hint));
    Ok(Exit::Failed)
}
