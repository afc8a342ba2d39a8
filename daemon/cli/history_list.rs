//! `steadfast history`: the list of recorded changes.

use super::args::{self, Since};
use super::client;
use super::exit::Exit;
use super::history::{ABSENT, open, refuse};
use super::output::{count, error, out_json, plain, print};
use super::state_dir;
use crate::history::{
    Entry, HistoryError, Listed, PRODUCED, Reader, Selected, UNREADABLE, describe_missing_content,
};
use crate::selection::{NoLabels, Selector, resolve};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use steadfast_resources::host::files::{AccountKind, account_name, printable};
use steadfast_resources::{After, EDITED_TOGETHER, FormerValue, PriorShape, PriorState};

/// The default number of listed changes.
const USUAL: usize = 50;

/// The number of lines of each output of a command in a list of several resources.
const LINES: usize = 5;

/// The indentation of the lines below an entry.
const BELOW: &str = "         ";

/// The list, and true if the last undo of the one named resource was interrupted.
type List = (Vec<Listed>, bool);

/// Carries out `steadfast history`.
pub(super) fn history(args: &args::History) -> Exit {
    let listed = open(args.state.state_dir.as_deref()).and_then(|reader| {
        let list = |reader: Reader| read_list(args, &reader);
        reader.map(list).transpose().map_err(|why| refuse(&why))
    });
    let (entries, was_cut_off) = match listed {
        Ok(listed) => listed.unwrap_or_default(),
        Err(exit) => return exit,
    };
    let is_one = args.resource.as_deref().is_some_and(Selector::is_identity);
    for listed in &entries {
        match listed {
            Listed::Entry(entry) if args.json => out_json(&to_json(entry)),
            Listed::Entry(entry) => {
                print(line(entry, args.relative));
                let limit = if is_one { usize::MAX } else { LINES };
                for line in output_lines(entry, limit) {
                    print(format!("{BELOW}{line}"));
                }
            }
            Listed::Unreadable(number) if args.json => {
                out_json(&json!({"number": number, "unreadable": UNREADABLE}));
            }
            Listed::Unreadable(number) => print(format!("{number:>5}  unreadable: {UNREADABLE}")),
        }
    }
    if let Some(name) = args.resource.as_ref().filter(|_| was_cut_off && !args.json) {
        let name = plain(name);
        print(format!(
            "the last undo of {name} was interrupted: `steadfast undo '{name}'` completes it"
        ));
    }
    if entries.is_empty() && args.limit != Some(0) { nothing(args) } else { Exit::Well }
}

fn read_list(args: &args::History, reader: &Reader) -> Result<List, HistoryError> {
    let (from, since) = match args.since {
        None => (0, 0),
        Some(Since::Number(number)) => (number, 0),
        Some(Since::Ago(seconds)) => (0, client::now().saturating_sub(seconds * 1000)),
        Some(Since::Time(time)) => (0, time),
    };
    let limit = args.limit.or_else(|| args.since.is_none().then_some(USUAL));
    let resources = match &args.resource {
        None => None,
        Some(text) => Some(selected_names(reader, text)?),
    };
    let was_cut_off = args.resource.as_ref().is_some_and(|name| reader.was_cut_off(name));
    let entries = reader.select(&Selected { resources, from, since, limit })?;
    Ok((entries, was_cut_off))
}

/// Returns the resources with recorded changes that a selector selects.
pub(super) fn selected_names(
    reader: &Reader,
    text: &str,
) -> Result<BTreeSet<String>, HistoryError> {
    if Selector::is_identity(text) {
        return Ok(BTreeSet::from([text.to_owned()]));
    }
    let names = reader.names()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match resolve(&[text.to_owned()], &names, &NoLabels) {
        Ok(selected) => Ok(selected.into_iter().collect()),
        Err(wrong) if wrong.ambiguous.is_empty() => Ok(BTreeSet::new()),
        Err(wrong) => Err(HistoryError::Unknown(wrong.candidates().join("; "))),
    }
}

/// Returns the one resource of the history that a selector selects.
pub(super) fn one_resource(reader: &Reader, text: &str) -> Result<String, HistoryError> {
    let names = selected_names(reader, text)?;
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(HistoryError::Unknown(format!("no recorded changes of {}", plain(text)))),
        (Some(one), Some(other)) => Err(HistoryError::Unknown(format!(
            "`{text}` selects several resources: {one}, {other}, …; name one of them"
        ))),
    }
}

/// Reports an empty history; a misspelt resource is an error, and so is the missing state of a user beside root's
/// daemon.
fn nothing(args: &args::History) -> Exit {
    let is_unused = || !state_dir::directory(None).exists();
    if args.state.state_dir.is_none() && client::is_beside_root() && is_unused() {
        let hint = "a daemon of root runs on this host: use sudo to read its changes";
        error("this user has run no steadfast, so that no changes are recorded", Some(hint));
        return Exit::Permission;
    }
    client::asking(async {
        let socket = args::Socket { socket: None, state_dir: args.state.state_dir.clone() };
        if let Some(resource) = args.resource.as_ref().filter(|_| args.since.is_none())
            && let Some(why) = client::stranger(&socket, resource).await
        {
            error(why, Some("no recorded changes of this resource; `steadfast history` lists all"));
            return Err(Exit::Failed);
        }
        if !args.json {
            print("no changes are recorded");
        }
        Ok(Exit::Well)
    })
}

/// Formats an entry: `12  2026-11-21 14:03:22  file[motd]  content, mode  /etc/motd (was 0644 root:root, 12 bytes)
/// event, corrective`.
fn line(entry: &Entry, is_relative: bool) -> String {
    let time = if is_relative { age_of(entry) } else { time_of(entry) };
    let (what, cause) = (plain(&entry.what), plain(&cause_in_words(entry)));
    let (number, name) = (entry.number, plain(&entry.resource));
    if entry.what == PRODUCED {
        let value = |field: &str| {
            entry.values.iter().find(|value| value.field == field).map(after_in_words)
        };
        let says = match value(EDITED_TOGETHER) {
            Some(text) => format!("edited {text}"),
            None => format!("ran: {}", value("ended").unwrap_or_default()),
        };
        return format!("{number:>5}  {time}  {name}  {says}  {cause}");
    }
    if !entry.values.is_empty() {
        let moved: Vec<String> =
            entry.values.iter().filter(|value| value.is_moved()).map(moved).collect();
        let moved = moved.join(", ");
        return format!("{number:>5}  {time}  {name}  {moved}  {cause}");
    }
    let (path, was) = (printable(&entry.path), was(entry));
    format!("{number:>5}  {time}  {name}  {what}  {path} ({was})  {cause}")
}

/// Returns the local time of an entry.
pub(super) fn time_of(entry: &Entry) -> String {
    let time =
        i64::try_from(entry.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let time = time.unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    time.strftime("%F %T").to_string()
}

fn age_of(entry: &Entry) -> String {
    let age = client::now().saturating_sub(entry.at) / 1000;
    format!("{:>11} ago", client::span(age))
}

/// Returns the cause of an entry and its class; older entries have no class.
fn cause_and_class(entry: &Entry) -> (&str, Option<&str>) {
    match entry.cause.split_once(", ") {
        Some((cause, class)) => (cause, Some(class)),
        None => (&entry.cause, None),
    }
}

/// Describes the cause; the class is said unless the graph or the operator asked for the change.
fn cause_in_words(entry: &Entry) -> String {
    match cause_and_class(entry) {
        (cause, Some("intentional") | None) => cause.to_owned(),
        (cause, Some(class)) => format!("{cause}, {class}"),
    }
}

/// Returns the last lines of each output of a command.
pub(super) fn output_lines(entry: &Entry, limit: usize) -> Vec<String> {
    if entry.what != PRODUCED {
        return Vec::new();
    }
    let is_output = |field: &str| !["ended", EDITED_TOGETHER].contains(&field);
    let outputs = entry.values.iter().filter(|value| is_output(&value.field));
    let of_stream = |value: &FormerValue| {
        let After::Value(text) = &value.after else { return Vec::new() };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let from = lines.len().saturating_sub(limit);
        let name = plain(&value.field);
        let line = |line: &&str| format!("{name}: {}", plain(line));
        lines.get(from..).unwrap_or_default().iter().map(line).collect()
    };
    outputs.flat_map(of_stream).collect()
}

/// Describes a value after a change.
pub(super) fn after_in_words(value: &FormerValue) -> String {
    match &value.after {
        After::Unknown => "not known: the run failed, was cut off, or goes on".to_owned(),
        After::Absent => ABSENT.to_owned(),
        After::Value(after) => plain(after),
    }
}

/// Formats a changed value: `version 1.0 -> 1.1`.
pub(super) fn moved(value: &FormerValue) -> String {
    let before = value.before.as_deref().map_or_else(|| ABSENT.to_owned(), plain);
    let after = after_in_words(value);
    format!("{} {before} -> {after}", plain(&value.field))
}

/// Describes the prior state of a path.
pub(super) fn was(entry: &Entry) -> String {
    let PriorState::Thing(thing) = &entry.former else { return "did not exist".to_owned() };
    let owner = account_name(AccountKind::User, thing.uid);
    let group = account_name(AccountKind::Group, thing.gid);
    let mut words = format!("was {:04o} {owner}:{group}", thing.mode);
    match &thing.shape {
        PriorShape::File(size, _) => {
            let size = usize::try_from(*size).unwrap_or(usize::MAX);
            words.push_str(&format!(", {}", count(size, "byte")));
        }
        PriorShape::Directory => words.push_str(", a directory"),
        PriorShape::Link(target) => {
            words = format!("was a link to {}", plain(&String::from_utf8_lossy(target)));
        }
        PriorShape::Other => words.push_str(", a socket, fifo or device"),
    }
    if let Some(why) = entry.missing_content() {
        words.push_str(&format!("; {}", describe_missing_content(why)));
    }
    words
}

pub(super) fn to_json(entry: &Entry) -> Value {
    let mut value = json!({
        "number": entry.number,
        "run": entry.run,
        "at": entry.at,
        "resource": entry.resource,
        "path": entry.path.to_string_lossy(),
        "what": entry.what,
        "cause": cause_and_class(entry).0,
        "class": cause_and_class(entry).1,
        "was": "absent",
    });
    if !entry.values.is_empty() {
        let one = |value: &FormerValue| {
            let after = match &value.after {
                After::Value(after) => Some(after),
                After::Absent | After::Unknown => None,
            };
            let is_known = value.after != After::Unknown;
            json!({"field": value.field, "before": value.before, "after": after, "after_known": is_known})
        };
        value["path"] = Value::Null;
        value["was"] = if entry.what == PRODUCED { PRODUCED } else { "values" }.into();
        value["values"] = entry.values.iter().map(one).collect();
        return value;
    }
    let PriorState::Thing(thing) = &entry.former else { return value };
    value["was"] = match &thing.shape {
        PriorShape::File(..) => "file",
        PriorShape::Directory => "directory",
        PriorShape::Link(_) => "symlink",
        PriorShape::Other => "other",
    }
    .into();
    value["mode"] = format!("{:04o}", thing.mode).into();
    value["uid"] = thing.uid.into();
    value["gid"] = thing.gid.into();
    if let PriorShape::Link(target) = &thing.shape {
        value["target"] = String::from_utf8_lossy(target).into();
    }
    if let Some(size) = entry.size() {
        value["size"] = size.into();
        value["kept"] = entry.missing_content().is_none().into();
        value["missing_content"] = entry.missing_content().map(describe_missing_content).into();
    }
    value
}
