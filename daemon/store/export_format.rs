//! The exported state, as a document for people and other programs (B-24). Secrets are included only as keyed hashes.
//!
//! Definitions and object hashes have 64 bits, written as 16 hexadecimal digits. Times are in seconds since 1970.

use super::integrity::{RecordReaders, violations};
use super::{
    Imported, OpaqueText, Origin, Ownership, PauseRecord, ResourceRecord, StoredState, Verb,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of `format` in every document.
const FORMAT: &str = "steadfast state";

/// The largest stamp accepted. Real stamps never reach it, and later ones must have room.
const LARGEST_STAMP: u64 = 1 << 60;

/// The version of the document format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    version: u32,
    /// The machine on which the state was stored; absent in older documents.
    machine: Option<String>,
    stamp: u64,
    pause: Option<Pause>,
    resources: BTreeMap<String, One>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    reason: String,
    until: u64,
    /// The duration in seconds; absent in older documents.
    lasts: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    done: Option<String>,
    interrupted: Option<String>,
    /// The operation that was cut off; absent in older documents.
    cut: Option<String>,
    /// The refreshes that this run did, up to this stamp; absent in older documents.
    #[serde(default)]
    cut_pays: Option<u64>,
    owed: Option<Owed>,
    sent: Option<String>,
    received: Option<String>,
    pause: Option<Pause>,
    owned: Option<Whose>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owed {
    stamp: u64,
    by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whose {
    origin: Option<Maker>,
    graph: String,
    delete: bool,
    protected_by_graph: bool,
    protected_by_operator: bool,
    thing: String,
    removal: Option<String>,
    after: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Maker {
    Created,
    Adopted,
}

/// Writes a state as a document. `hide` returns sent values without their secrets.
#[must_use]
pub fn write(exported: &Imported, hide: impl Fn(&OpaqueText) -> Option<OpaqueText>) -> String {
    let Imported { recalled, machine } = exported;
    let one = |kept: &ResourceRecord| One {
        done: kept.done.map(hex),
        interrupted: kept.interrupted.map(hex),
        cut: kept.cut.map(|verb| verb.word().to_owned()),
        cut_pays: kept.cut_pays,
        owed: kept.owed.clone().map(|(stamp, by)| Owed { stamp, by }),
        sent: kept.sent.as_ref().and_then(&hide).map(|OpaqueText(text)| text.to_string()),
        received: kept.taken.as_ref().map(ToString::to_string),
        pause: kept.pause.as_ref().map(pause),
        owned: kept.owned.as_deref().map(ownership_entry),
    };
    let each = recalled.resources.iter();
    let document = Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        machine: machine.clone(),
        stamp: recalled.stamp,
        pause: recalled.pause.as_ref().map(pause),
        resources: each.map(|(name, kept)| (name.clone(), one(kept))).collect(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

/// Reads a document made by `write`.
///
/// # Errors
///
/// Returns all problems of the document, a line each.
pub fn read(text: &str, readers: &RecordReaders) -> Result<Imported, Vec<String>> {
    let wrong = |why: String| vec![why];
    let document: Document = serde_json::from_str(text)
        .map_err(|error| wrong(format!("not an exported state: {error}")))?;
    if document.format != FORMAT {
        return Err(wrong(format!("expected the format `{FORMAT}`, found `{}`", document.format)));
    }
    if document.version != VERSION {
        let found = document.version;
        return Err(wrong(format!("expected version {VERSION} of the format, found {found}")));
    }
    let (mut found, mut resources) = (Vec::new(), BTreeMap::new());
    for (identity, one) in document.resources {
        match remembered(one) {
            Ok(kept) => drop(resources.insert(identity, kept)),
            Err(why) => found.push(format!("{identity}: {why}")),
        }
    }
    let (stamp, pause) = (document.stamp, document.pause.map(pause_record));
    if stamp > LARGEST_STAMP {
        found.push(format!("stamp: expected at most {LARGEST_STAMP}, found {stamp}"));
    }
    let recalled = StoredState { resources, pause, stamp, key: None };
    found.extend(violations(&recalled, readers).iter().map(ToString::to_string));
    let imported = Imported { recalled, machine: document.machine };
    if found.is_empty() { Ok(imported) } else { Err(found) }
}

fn remembered(one: One) -> Result<ResourceRecord, String> {
    let owned = one.owned.map(owned).transpose()?;
    if let Some(Owed { stamp, .. }) = one.owed.as_ref().filter(|it| it.stamp > LARGEST_STAMP) {
        return Err(format!("owed.stamp: expected at most {LARGEST_STAMP}, found {stamp}"));
    }
    Ok(ResourceRecord {
        done: one.done.as_deref().map(number).transpose()?,
        owed: one.owed.map(|owed| (owed.stamp, owed.by)),
        interrupted: one.interrupted.as_deref().map(number).transpose()?,
        cut: one.cut.as_deref().filter(|_| one.interrupted.is_some()).map(verb).transpose()?,
        cut_pays: one.cut_pays.filter(|_| one.interrupted.is_some()),
        sent: one.sent.map(|text| OpaqueText(text.into())),
        taken: one.received.map(Into::into),
        pause: one.pause.map(pause_record),
        owned: owned.map(Into::into),
    })
}

fn ownership_entry(owned: &Ownership) -> Whose {
    Whose {
        origin: owned.origin.map(|origin| match origin {
            Origin::Created => Maker::Created,
            Origin::Adopted => Maker::Adopted,
        }),
        graph: owned.graph.to_string(),
        delete: owned.delete,
        protected_by_graph: owned.protect,
        protected_by_operator: owned.pinned,
        thing: hex(owned.thing),
        removal: owned.removal.as_ref().map(ToString::to_string),
        after: owned.after.iter().map(ToString::to_string).collect(),
    }
}

fn owned(whose: Whose) -> Result<Ownership, String> {
    Ok(Ownership {
        origin: whose.origin.map(|origin| match origin {
            Maker::Created => Origin::Created,
            Maker::Adopted => Origin::Adopted,
        }),
        graph: whose.graph.into(),
        delete: whose.delete,
        protect: whose.protected_by_graph,
        pinned: whose.protected_by_operator,
        thing: number(&whose.thing)?,
        removal: whose.removal.map(Into::into),
        after: whose.after.into_iter().map(Into::into).collect(),
    })
}

fn pause(pause: &PauseRecord) -> Pause {
    Pause { reason: pause.reason.clone(), until: pause.until_unix, lasts: pause.lasts }
}

fn pause_record(pause: Pause) -> PauseRecord {
    PauseRecord { reason: pause.reason, until_unix: pause.until, lasts: pause.lasts }
}

fn verb(word: &str) -> Result<Verb, String> {
    Verb::of(word)
        .ok_or_else(|| format!("expected create, update, delete, refresh or run, found `{word}`"))
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

fn number(text: &str) -> Result<u64, String> {
    let number = u64::from_str_radix(text, 16).ok();
    number.ok_or_else(|| format!("expected 16 hexadecimal digits, found `{text}`"))
}
