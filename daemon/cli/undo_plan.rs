//! `steadfast undo --plan`: what an undo would restore, read from the history. Nothing is changed.

use super::args;
use super::exit::Exit;
use super::history::{ABSENT, at, now, open, refuse};
use super::history_list::{after_in_words, one_resource, time_of};
use super::output::{count, error, plain, print};
use crate::history::{Entry, HistoryError, Listed, Reader, Undo, UndoStep, Undoable};
use steadfast_resources::host::files::{AccountKind, account_name, printable};
use steadfast_resources::kinds::file::unified;
use steadfast_resources::{FormerValue, KindSet, PriorShape, PriorState, reverse_edits};

/// Prints the plan of an undo.
pub(super) fn undo_plan(args: &args::Undo) -> Exit {
    let found = open(args.socket.state_dir.as_deref()).and_then(|reader| {
        let nothing =
            || HistoryError::Unknown(format!("no recorded changes of {}", plain(&args.resource)));
        let reader = reader.ok_or_else(|| refuse(&nothing()))?;
        let resource = one_resource(&reader, &args.resource).map_err(|why| refuse(&why))?;
        let undo = Undo { resource: resource.clone(), to: args.to, partial: args.partial };
        let undoable = reader.undo(&undo).map_err(|why| refuse(&why))?;
        if !undoable.values.is_empty() {
            let restored = KindSet::of_this_build().restoring(&resource, &undoable.values);
            restored.map_err(|failure| {
                error(&failure.what, failure.hint.as_deref());
                Exit::Failed
            })?;
        }
        Ok((reader, resource, undoable))
    });
    match found {
        Ok((reader, resource, undoable)) => {
            show_plan(&reader, &resource, &undoable);
            Exit::Well
        }
        Err(exit) => exit,
    }
}

fn show_plan(reader: &Reader, resource: &str, undoable: &Undoable) {
    let Undoable { steps, left, .. } = undoable;
    // A record has all fields of its object; those that the undo leaves alone are no news.
    let values: Vec<&FormerValue> = undoable.values.iter().filter(|it| it.is_moved()).collect();
    let entries = reader.entries(Some(resource), u64::MAX >> 1).unwrap_or_default();
    let entries: Vec<Entry> = entries.into_iter().filter_map(Listed::entry).collect();
    let objects = count(steps.len() + values.len(), "object");
    print(format!("undo of {}: {objects} to restore", plain(resource)));
    for step in steps {
        let last = entries.iter().rev().find(|entry| entry.path == step.path);
        let present = last.and_then(|entry| now(reader, entry).ok());
        print(headline(step, present.as_deref()));
        if let Some(diff) = last.and_then(|entry| content_diff(reader, (entry, present), step)) {
            diff.lines().for_each(|line| print(format!("    {}", plain(line))));
        }
    }
    for value in values {
        print(format!("~ {}", restored_value(value)));
    }
    for why in left {
        print(format!("= {}", plain(why)));
    }
    if let Some(first) = entries.iter().find(|entry| entry.number >= undoable.first()) {
        print(format!("the state is that before change {}, of {}", first.number, time_of(first)));
    }
    print("dependents are not notified: reload or restart a service yourself");
}

/// Returns the first line of a step: a whole object, or the reversed edits of a text file.
fn headline(step: &UndoStep, present: Option<&[u8]>) -> String {
    let (path, edits) = (printable(&step.path), count(step.edits.len(), "edit"));
    match present.filter(|_| !step.edits.is_empty()) {
        None => format!("{} {path}: {}", sign(&step.former), describe(&step.former)),
        Some(present) => match reverse_edits(present, &step.edits) {
            None => format!("! {path}: others have changed the edited lines since; the undo fails"),
            Some(text) if text.is_empty() && step.former == PriorState::Nothing => {
                format!("- {path}: removed")
            }
            Some(_) => format!("~ {path}: {edits} reversed, other lines stay"),
        },
    }
}

/// Returns the sign of a step: `-` for an object that the undo removes.
const fn sign(former: &PriorState) -> char {
    match former {
        PriorState::Nothing => '-',
        PriorState::Thing(_) => '~',
    }
}

fn describe(former: &PriorState) -> String {
    let PriorState::Thing(thing) = former else { return "removed".to_owned() };
    let owner = account_name(AccountKind::User, thing.uid);
    let group = account_name(AccountKind::Group, thing.gid);
    let shape = match &thing.shape {
        PriorShape::File(size, _) => format!("a file of {size} bytes"),
        PriorShape::Directory => "a directory".to_owned(),
        PriorShape::Link(target) => {
            return format!("a link to {}", plain(&String::from_utf8_lossy(target)));
        }
        PriorShape::Other => "a socket, fifo or device".to_owned(),
    };
    format!("{shape}, {:04o} {owner}:{group}", thing.mode)
}

/// Returns the difference from the present content to the restored one; `None` if it cannot be shown.
fn content_diff(
    reader: &Reader,
    (entry, present): (&Entry, Option<Vec<u8>>),
    step: &UndoStep,
) -> Option<String> {
    let (present, former) = (present?, &step.former);
    let restored = match former {
        _ if !step.edits.is_empty() => reverse_edits(&present, &step.edits)?,
        PriorState::Nothing => return None,
        PriorState::Thing(_) => at(reader, entry, former).ok()?,
    };
    unified(&present, &restored)
}

fn restored_value(value: &FormerValue) -> String {
    let before = value.before.as_deref().map_or_else(|| ABSENT.to_owned(), plain);
    format!("{}: {} -> {before}", plain(&value.field), after_in_words(value))
}
