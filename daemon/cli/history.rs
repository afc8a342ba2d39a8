//! `steadfast diff` and `show RES --at N`: recorded prior states.

use super::args;
use super::exit::Exit;
use super::history_list::{one_resource, to_json};
use super::output::{error, note_output, out_json, plain, print};
use super::{settings, state_dir};
use crate::history::{Entry, HistoryError, Listed, Reader, describe_missing_content};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use steadfast_resources::host::files::{denies_others, printable};
use steadfast_resources::kinds::file::unified;
use steadfast_resources::{FormerValue, Host, NotRecorded, PriorContent, PriorShape, PriorState};

/// The text for a value that does not exist.
pub(super) const ABSENT: &str = "absent";

/// The maximum size of a compared file, in bytes.
const COMPARED: usize = 10 << 20;

/// Opens the history of the given state directory, or of that of the settings.
pub(super) fn open(said: Option<&Path>) -> Result<Option<Reader>, Exit> {
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

/// Returns the values of a resource before a change, one per line.
fn values(entry: &Entry) -> Vec<u8> {
    let line = |value: &FormerValue| {
        let before = value.before.as_deref().unwrap_or(ABSENT);
        format!("{}: {before}\n", value.field)
    };
    entry.values.iter().map(line).collect::<String>().into_bytes()
}

/// Carries out `steadfast show RES --at N`: writes the file itself.
pub(super) fn show(args: &args::Show, number: u64) -> Exit {
    let resource = &args.of.resource;
    let found = open(args.of.socket.state_dir.as_deref())
        .and_then(|reader| required(reader, resource))
        .and_then(|reader| {
            let resource = one_resource(&reader, resource).map_err(|why| refuse(&why))?;
            let entry = entry(&reader, &resource, Some(number))?;
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
pub(super) fn at(reader: &Reader, entry: &Entry, former: &PriorState) -> Result<Vec<u8>, String> {
    let name = printable(&entry.path);
    let PriorState::Thing(thing) = former else { return Err(format!("{name} did not exist")) };
    match &thing.shape {
        PriorShape::File(_, PriorContent::Bytes(bytes)) => Ok(bytes.clone()),
        PriorShape::File(_, PriorContent::NotRecorded(NotRecorded::Same)) => now(reader, entry),
        PriorShape::File(_, PriorContent::NotRecorded(why)) => {
            Err(format!("{name}: {}", describe_missing_content(*why)))
        }
        PriorShape::Link(target) => Ok(target.clone()),
        PriorShape::Directory => Err(format!("{name} was a directory")),
        PriorShape::Other => Err(format!("{name} was a socket, fifo or device")),
    }
}

/// Returns true if the present content of a file is known not to be sensitive (S-6), by the last recorded change of a
/// content. Changes that only created the file or set its mode show nothing. A file that denies access to others is
/// open if its content was recorded although it denied access then: it is declared with `sensitive: false`.
fn is_open(reader: &Reader, entry: &Entry, is_closed: bool) -> bool {
    let all = reader.entries(Some(&entry.resource), u64::MAX >> 1).unwrap_or_default();
    // An unreadable entry may have been sensitive, and ends the search.
    let newest = all.into_iter().rev().map_while(Listed::entry);
    let of_path = newest.filter(|one| one.path == entry.path);
    let files = of_path.filter(|one| one.size().is_some());
    let mut told = files.filter_map(|one| match one.missing_content() {
        Some(NotRecorded::Same) => None,
        Some(NotRecorded::Secret) => Some(false),
        _ if is_closed => Some(was_closed(reader, &one)),
        _ => Some(true),
    });
    told.next().unwrap_or_default()
}

/// Returns true if the file denied access to others before a change.
fn was_closed(reader: &Reader, entry: &Entry) -> bool {
    match reader.former(entry) {
        Ok(PriorState::Thing(thing)) => denies_others(thing.mode),
        _ => false,
    }
}

/// Returns the present content of a file.
pub(super) fn now(reader: &Reader, entry: &Entry) -> Result<Vec<u8>, String> {
    let (host, path) = (Host::default(), &entry.path);
    let files = host.files();
    let name = printable(path);
    let failure = |fault| files.failure(fault, path).what;
    let Some(spot) = files.open_entry(path).map_err(failure)? else {
        return Err(format!("{name} does not exist"));
    };
    let Some(seen) = spot.look().map_err(failure)? else { return Ok(Vec::new()) };
    match seen.kind.is_file() {
        true if !is_open(reader, entry, denies_others(seen.mode)) => {
            Err(format!("{name} may be sensitive and is not shown"))
        }
        true => {
            let content = spot.content(&seen, COMPARED).map_err(failure)?;
            content.ok_or_else(|| format!("{name} is too large to compare"))
        }
        false if seen.kind.is_symlink() => spot.target().map_err(failure),
        false => Err(format!("{name} is not a file")),
    }
}

/// Carries out `steadfast diff`.
pub(super) fn diff(args: &args::Diff) -> Exit {
    compare(args).unwrap_or_else(|exit| exit)
}

fn compare(args: &args::Diff) -> Result<Exit, Exit> {
    let reader = required(open(args.state.state_dir.as_deref())?, &args.resource)?;
    let resource = one_resource(&reader, &args.resource).map_err(|why| refuse(&why))?;
    let side = |number: Option<u64>| -> Result<(Entry, Vec<u8>), Exit> {
        let entry = entry(&reader, &resource, number)?;
        if !entry.values.is_empty() {
            let name = plain(&resource);
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
