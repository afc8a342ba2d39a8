//! `steadfast state export`, `import` and `repair`: carried out by the daemon if one runs, else by this program with
//! the lock of the state directory.

use super::directory;
use crate::cli::args::{ExportKept, ImportKept, RepairKept, Socket};
use crate::cli::exit::Exit;
use crate::cli::offline::OfflineCommand;
use crate::cli::output::{count, error, plain, print};
use crate::cli::{client, state_dir};
use crate::driver::values::codec::without_secrets;
use crate::events;
use crate::store::{
    Maintenance, SqliteStore, StateLock, export_format, inbox, maintain_state, violations,
};
use crate::workers::{put_damaged_graph_aside, readers};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use steadfast_resources::KindSet;
use steadfast_resources::host::input_trust::Reader;

/// Exports the state of one moment as a document.
pub(in crate::cli) fn export(args: &ExportKept) -> Result<Exit, Exit> {
    let directory = directory(args.state.state_dir.as_deref());
    let exported = SqliteStore::export(&directory).map_err(|why| state_dir::refuse(&why))?;
    state_dir::something_in(&directory)?;
    let wrong = violations(&exported.recalled, &readers(KindSet::of_this_build(), |_, _| {}));
    if let Some(first) = wrong.first() {
        // An unsound state is not exported (B-20), so that nobody imports it.
        let many = count(wrong.len(), "problem");
        let what = format!("the state is damaged: {many}, the first: {first}");
        error(
            plain(&what),
            Some("`steadfast state verify` lists all damage, `steadfast state repair` repairs it"),
        );
        return Err(Exit::Failed);
    }
    let text = export_format::write(&exported, without_secrets);
    match &args.file {
        None => print(text),
        Some(path) => {
            write(path, &text)?;
            print(format!(
                "{} written to {}",
                count(exported.recalled.resources.len(), "resource"),
                plain(&path.display().to_string())
            ));
        }
    }
    Ok(Exit::Well)
}

/// Writes a file atomically, accessible only to its owner.
fn write(path: &Path, text: &str) -> Result<(), Exit> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let written = || {
        // An existing file is not written into: others may have it open.
        match std::fs::remove_file(new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        std::fs::rename(new, path)
    };
    written().map_err(|why| {
        error(format!("cannot write {}: {why}", plain(&path.display().to_string())), None);
        Exit::Failed
    })
}

/// Imports a document. The document is read and checked before a daemon is involved.
pub(in crate::cli) fn import(args: &ImportKept) -> Result<Exit, Exit> {
    let shown = plain(&args.file.display().to_string());
    let text = read_trusted(&args.file, &shown)?;
    if let Err(wrong) = export_format::read(&text, &readers(KindSet::of_this_build(), |_, _| {})) {
        for line in &wrong {
            print(plain(line));
        }
        error(
            format!("{shown} was not imported: {}", count(wrong.len(), "problem")),
            Some("nothing was changed"),
        );
        return Err(Exit::Failed);
    }
    let directory = directory(args.socket.state_dir.as_deref());
    if !SqliteStore::is_there(&directory) {
        let made = state_dir::judge(&directory).and_then(|()| StateLock::take(&directory));
        drop(made.map_err(|why| state_dir::refuse(&why))?);
    }
    let alone = alone_importing(&directory)?;
    // The daemon reads the document from its directory: only users who may write there can import.
    write(&inbox(&directory), &text)?;
    let done = have_done(Maintenance::Import, &args.socket, &directory);
    drop(std::fs::remove_file(inbox(&directory)));
    drop(alone);
    done
}

/// S-11: reads a document. For root, a file that others could change is rejected: the state determines what is removed
/// from this host.
fn read_trusted(path: &Path, shown: &str) -> Result<String, Exit> {
    let unreadable = |why: std::io::Error| {
        error(format!("cannot read {shown}: {why}"), None);
        Exit::Usage
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let reader = Reader::here();
    if let Some(doubt) = reader.doubts_as_named(&file, path).filter(|_| reader.is_strict()) {
        error(
            format!("{shown} was not imported: another user could change the file: {doubt}"),
            Some(
                "make root the owner of the file and all parent directories, writable only by root",
            ),
        );
        return Err(Exit::Failed);
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Locks out other imports, so that each imports its own document.
fn alone_importing(directory: &Path) -> Result<File, Exit> {
    let failed = |why: String| {
        error(
            format!("cannot import into {}: {why}", plain(&directory.display().to_string())),
            None,
        );
        Exit::State
    };
    let opened = File::open(directory).map_err(|why| failed(why.to_string()))?;
    match opened.try_lock() {
        Ok(()) => Ok(opened),
        Err(TryLockError::WouldBlock) => {
            error("another import is in progress", Some("nothing was changed"));
            Err(Exit::Busy)
        }
        Err(TryLockError::Error(why)) => Err(failed(why.to_string())),
    }
}

/// Repairs the state as far as possible.
pub(in crate::cli) fn repair(args: &RepairKept) -> Result<Exit, Exit> {
    let directory = directory(args.socket.state_dir.as_deref());
    if !SqliteStore::is_there(&directory) {
        print("the state directory has no state");
        return Ok(Exit::Well);
    }
    have_done(Maintenance::Repair, &args.socket, &directory)
}

fn have_done(what: Maintenance, socket: &Socket, directory: &Path) -> Result<Exit, Exit> {
    let lines = match client::maintain_state(what, socket)? {
        Some(lines) => lines,
        None => alone(what, directory)?,
    };
    let graph = match what {
        Maintenance::Repair => put_damaged_graph_aside(directory),
        Maintenance::Import => None,
    };
    if lines.is_empty() && graph.is_none() {
        print("nothing to do: the state is intact");
    }
    for line in lines.iter().chain(&graph) {
        print(plain(line));
    }
    Ok(Exit::Well)
}

/// Carries out the maintenance without a daemon; the lock keeps a daemon from starting meanwhile.
fn alone(what: Maintenance, directory: &Path) -> Result<Vec<String>, Exit> {
    let command = match what {
        Maintenance::Import => "state import",
        Maintenance::Repair => "state repair",
    };
    let alone = OfflineCommand::take(command, directory).map_err(|why| state_dir::refuse(&why))?;
    let done =
        maintain_state(what, directory, alone.state_lock(), alone.readers()).map_err(|why| {
            error(plain(&why), Some("nothing was changed"));
            Exit::State
        })?;
    alone.record(events::maintenance_event(what, &done));
    Ok(done)
}
