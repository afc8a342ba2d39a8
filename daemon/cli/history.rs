//! `steadfast history`, `diff`, `show RES --at N`: recorded changes and prior states.

use super::args;
use super::exit::Exit;
use super::output::{count, error, note_output, out_json, plain, print};
use super::{client, settings, state_dir};
use crate::history::{Entry, HistoryError, Listed, Reader, UNREADABLE, unkept};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use steadfast_resources::host::files::{AccountKind, account_name, denies_others, printable};
use steadfast_resources::kinds::file::unified;
use steadfast_resources::{
    After, FormerValue, Host, NotRecorded, PriorContent, PriorShape, PriorState,
};

/// The text for a value that does not exist.
const ABSENT: &str = "absent";

/// The maximum size of a compared file, in bytes.
const COMPARED: usize = 10 << 20;

/// Opens the history of the given state directory, or of that of the settings.
fn open(said: Option<&Path>) -> Result<Option<Reader>, Exit> {
    let directory = said.map(Path::to_owned).or_else(|| settings::of_daemon().1);
    Reader::open(&state_dir::directory(directory.as_deref())).map_err(|why| refuse(&why))
}

/// Reports an error of the history, and returns its exit code.
pub(super) fn refuse(why: &HistoryError) -> Exit {
    match why {
        HistoryError::Database { .. } => {
            error(why.to_string(), Some("select another state directory with --state-dir"));
            Exit::State
        }
        HistoryError::Newer { .. } | HistoryError::Gone(_) => {
            error(why.to_string(), Some(why.hint()));
            Exit::State
        }
        HistoryError::Unknown(_) => {
            error(why.to_string(), Some("`steadfast history` lists all recorded changes"));
            Exit::Usage
        }
        HistoryError::Unrestorable(_) | HistoryError::Beyond(_) => {
            error(why.to_string(), None);
            Exit::Failed
        }
    }
}

/// Returns the entry of a resource with this number, or the last one.
fn entry(reader: &Reader, resource: &str, number: Option<u64>) -> Result<Entry, Exit> {
    let found = match number {
        Some(number) => reader.entry(resource, number),
        None => reader.last_change(resource),
    };
    found.map_err(|why| refuse(&why))
}

fn required(reader: Option<Reader>, resource: &str) -> Result<Reader, Exit> {
    let nothing = || HistoryError::Unknown(format!("no recorded changes of {}", plain(resource)));
    reader.ok_or_else(|| refuse(&nothing()))
}

/// Carries out `steadfast history`.
pub(super) fn history(args: &args::History) -> Exit {
    let listed = open(args.state.state_dir.as_deref()).and_then(|reader| {
        let entries = |reader: Reader| {
            let named = args.resource.as_deref();
            let was_cut_off = named.is_some_and(|name| reader.was_cut_off(name));
            Ok((reader.entries(named, args.limit.into())?, was_cut_off))
        };
        reader.map(entries).transpose().map_err(|why| refuse(&why))
    });
    let (entries, was_cut_off) = match listed {
        Ok(listed) => listed.unwrap_or_default(),
        Err(exit) => return exit,
    };
    for listed in &entries {
        match listed {
            Listed::Entry(entry) if args.json => out_json(&to_json(entry)),
            Listed::Entry(entry) => print(line(entry)),
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
    if entries.is_empty() && args.limit > 0 { nothing(args) } else { Exit::Well }
}

/// Reports an empty history; a misspelt resource is an error.
fn nothing(args: &args::History) -> Exit {
    client::asking(async {
        let socket = args::Socket { socket: None, state_dir: args.state.state_dir.clone() };
        if let Some(resource) = &args.resource
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
/// event`.
fn line(entry: &Entry) -> String {
    let time =
        i64::try_from(entry.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let time = time.unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    let (what, cause) = (plain(&entry.what), plain(&entry.cause));
    let name = plain(&entry.resource);
    let time = time.strftime("%F %T");
    if !entry.values.is_empty() {
        let moved: Vec<String> =
            entry.values.iter().filter(|value| value.is_moved()).map(moved).collect();
        let moved = moved.join(", ");
        return format!("{:>5}  {time}  {name}  {moved}  {cause}", entry.number);
    }
    let (path, was) = (printable(&entry.path), was(entry));
    format!("{:>5}  {time}  {name}  {what}  {path} ({was})  {cause}", entry.number)
}

/// Formats a changed value: `version 1.0 -> 1.1`.
fn moved(value: &FormerValue) -> String {
    let before = value.before.as_deref().map_or_else(|| ABSENT.to_owned(), plain);
    let after = match &value.after {
        After::Unknown => "not known: the run was cut off, or goes on".to_owned(),
        After::Absent => ABSENT.to_owned(),
        After::Value(after) => plain(after),
    };
    format!("{} {before} -> {after}", plain(&value.field))
}

/// Returns the values of a resource before a change, one per line.
fn values(entry: &Entry) -> Vec<u8> {
    let line = |value: &FormerValue| {
        let before = value.before.as_deref().unwrap_or(ABSENT);
        format!("{}: {before}\n", value.field)
    };
    entry.values.iter().map(line).collect::<String>().into_bytes()
}

/// Describes the prior state of a path.
fn was(entry: &Entry) -> String {
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
    if let Some(why) = entry.unkept() {
        words.push_str(&format!("; {}", unkept(why)));
    }
    words
}

fn to_json(entry: &Entry) -> Value {
    let mut value = json!({
        "number": entry.number,
        "run": entry.run,
        "at": entry.at,
        "resource": entry.resource,
        "path": entry.path.to_string_lossy(),
        "what": entry.what,
        "cause": entry.cause,
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
        value["was"] = "values".into();
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
        value["kept"] = entry.unkept().is_none().into();
        value["why"] = entry.unkept().map(unkept).into();
    }
    value
}

/// Carries out `steadfast show RES --at N`: writes the file itself.
pub(super) fn show(args: &args::Show, number: u64) -> Exit {
    let resource = &args.of.resource;
    let found = open(args.of.socket.state_dir.as_deref())
        .and_then(|reader| required(reader, resource))
        .and_then(|reader| {
            let entry = entry(&reader, resource, Some(number))?;
            if !entry.values.is_empty() {
                let values = values(&entry);
                return Ok((entry, Ok(values)));
            }
            let former = reader.former(&entry).map_err(|why| refuse(&why))?;
            let bytes = at(&reader, &entry, &former);
            Ok((entry, bytes))
        });
    let (entry, bytes) = match found {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    match bytes {
        Ok(_) if args.of.json => out_json(&to_json(&entry)),
        Ok(bytes) => return print_bytes(&bytes),
        Err(why) => {
            error(why, None);
            return Exit::Failed;
        }
    }
    Exit::Well
}

fn print_bytes(bytes: &[u8]) -> Exit {
    let mut stdout = std::io::stdout();
    let is_plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t' | '\r');
    let is_text = std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_plain));
    if stdout.is_terminal() && !is_text {
        error(
            "the content is not plain text and could control the terminal",
            Some("redirect the output to a file"),
        );
        return Exit::Failed;
    }
    // A closed pipe is no error.
    note_output(&stdout.write_all(bytes).and_then(|()| stdout.flush()));
    Exit::Well
}

/// Returns the prior content of a file, also if the change left the content unchanged.
fn at(reader: &Reader, entry: &Entry, former: &PriorState) -> Result<Vec<u8>, String> {
    let name = printable(&entry.path);
    let PriorState::Thing(thing) = former else { return Err(format!("{name} did not exist")) };
    match &thing.shape {
        PriorShape::File(_, PriorContent::Bytes(bytes)) => Ok(bytes.clone()),
        PriorShape::File(_, PriorContent::Unkept(NotRecorded::Same)) => now(reader, entry),
        PriorShape::File(_, PriorContent::Unkept(why)) => Err(format!("{name}: {}", unkept(*why))),
        PriorShape::Link(target) => Ok(target.clone()),
        PriorShape::Directory => Err(format!("{name} was a directory")),
        PriorShape::Other => Err(format!("{name} was a socket, fifo or device")),
    }
}

/// Returns true if the present content of a file is known not to be sensitive (S-6), by the last recorded change of a
/// content. Changes that only created the file or set its mode show nothing.
fn is_open(reader: &Reader, entry: &Entry) -> bool {
    let all = reader.entries(Some(&entry.resource), u64::MAX >> 1).unwrap_or_default();
    // An unreadable entry may have been sensitive, and ends the search.
    let newest = all.into_iter().rev().map_while(Listed::entry);
    let of_path = newest.filter(|one| one.path == entry.path);
    let files = of_path.filter(|one| one.size().is_some());
    let mut told = files.filter_map(|one| match one.unkept() {
        Some(NotRecorded::Same) => None,
        Some(NotRecorded::Secret) => Some(false),
        _ => Some(true),
    });
    told.next().unwrap_or_default()
}

/// Returns the present content of a file.
fn now(reader: &Reader, entry: &Entry) -> Result<Vec<u8>, String> {
    let (host, path) = (Host::default(), &entry.path);
    let files = host.files();
    let name = printable(path);
    let trouble = |fault| files.trouble(fault, path).what;
    let Some(spot) = files.spot(path).map_err(trouble)? else {
        return Err(format!("{name} does not exist"));
    };
    let Some(seen) = spot.look().map_err(trouble)? else { return Ok(Vec::new()) };
    match seen.kind.is_file() {
        true if denies_others(seen.mode) => Err(format!("{name} is sensitive and not shown")),
        true if !is_open(reader, entry) => Err(format!("{name} may be sensitive and is not shown")),
        true => {
            let content = spot.content(&seen, COMPARED).map_err(trouble)?;
            content.ok_or_else(|| format!("{name} is too large to compare"))
        }
        false if seen.kind.is_symlink() => spot.target().map_err(trouble),
        false => Err(format!("{name} is not a file")),
    }
}

/// Carries out `steadfast diff`.
pub(super) fn diff(args: &args::Diff) -> Exit {
    compare(args).unwrap_or_else(|exit| exit)
}

fn compare(args: &args::Diff) -> Result<Exit, Exit> {
    let reader = required(open(args.state.state_dir.as_deref())?, &args.resource)?;
    let side = |number: Option<u64>| -> Result<(Entry, Vec<u8>), Exit> {
        let entry = entry(&reader, &args.resource, number)?;
        if !entry.values.is_empty() {
            let name = plain(&args.resource);
            let what = format!("{name} has values, and no content that could be compared");
            error(what, Some("`steadfast history` with its name shows each before and after"));
            return Err(Exit::Failed);
        }
        let former = reader.former(&entry).map_err(|why| refuse(&why))?;
        let bytes = match former {
            PriorState::Nothing => Ok(Vec::new()),
            PriorState::Thing(_) => at(&reader, &entry, &former),
        };
        Ok((entry, bytes.map_err(|why| failed(&why))?))
    };
    let (before, old) = side(args.from)?;
    let (path, name, new) = if let Some(to) = args.to {
        let (later, new) = side(Some(to))?;
        (later.path, format!("before {}", later.number), new)
    } else {
        let new = now(&reader, &before).map_err(|why| failed(&why))?;
        (before.path.clone(), "now".to_owned(), new)
    };
    if old == new {
        print("no difference");
        return Ok(Exit::Well);
    }
    let Some(diff) = unified(&old, &new) else {
        print(format!("the contents differ: {} and {} bytes, not shown", old.len(), new.len()));
        return Ok(Exit::Well);
    };
    let (old_path, path) = (printable(&before.path), printable(&path));
    print(format!("--- {old_path} (before {})\n+++ {path} ({name})", before.number));
    for line in diff.lines() {
        print(plain(line));
    }
    Ok(Exit::Well)
}

fn failed(why: &str) -> Exit {
    error(why, None);
    Exit::Failed
}
