//! `steadfast fmt`: formats graph files.

use super::args::FormatFiles;
use super::exit::Exit;
use super::output::{error, plain, print};
use crate::config::{format_graph, is_graph, read_text_to_format};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Formats files in place, or standard input to standard output.
pub(super) fn format_files(args: &FormatFiles) -> Exit {
    let mut exit = Exit::Well;
    let files = match all_files(&args.files) {
        Ok(files) => files,
        Err((path, problem)) => {
            error(format!("{}: {problem}", plain(&path.display().to_string())), None);
            return Exit::Failed;
        }
    };
    for path in &files {
        let shown = plain(&path.display().to_string());
        match format_file(path, args.check) {
            Ok(Outcome::Same) => {}
            Ok(Outcome::Written) => print(format!("formatted: {shown}")),
            Ok(Outcome::Differs) => {
                print(format!("not formatted: {shown}"));
                exit = Exit::Failed;
            }
            Err(problem) => {
                error(format!("{shown}: {problem}"), None);
                exit = Exit::Failed;
            }
        }
    }
    exit
}

/// Returns the files to format: a folder stands for the YAML files in it and below, hidden ones left out.
fn all_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, std::io::Error)> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut below = Vec::new();
        let mut open = vec![path.clone()];
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|error| (folder.clone(), error))?;
            for entry in entries {
                let entry = entry.map_err(|error| (folder.clone(), error))?;
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                // A link could lead out of the folder.
                let kind = entry.file_type().map_err(|error| (entry.path(), error))?;
                if kind.is_dir() && !is_hidden {
                    open.push(entry.path());
                } else if kind.is_file() && !is_hidden && is_graph(&entry.path()) {
                    below.push(entry.path());
                }
            }
        }
        below.sort();
        files.extend(below);
    }
    Ok(files)
}

enum Outcome {
    Same,
    Written,
    Differs,
}

fn format_file(path: &Path, is_check: bool) -> Result<Outcome, String> {
    let is_stream = path == Path::new("-");
    let text = read_text_to_format(path)?;
    let formatted = format_graph(&text).map_err(|problem| problem.to_string())?;
    let is_same = formatted == text;
    if is_stream && !is_check {
        let mut output = std::io::stdout().lock();
        output.write_all(formatted.as_bytes()).map_err(|error| error.to_string())?;
        return Ok(Outcome::Same);
    }
    match (is_same, is_check) {
        (true, _) => Ok(Outcome::Same),
        (false, true) => Ok(Outcome::Differs),
        (false, false) => {
            replace_file(path, &formatted).map_err(|error| error.to_string())?;
            Ok(Outcome::Written)
        }
    }
}

/// Returns a link on the path that another user than root or that of this process has made: it could lead to any file.
fn foreign_link(path: &Path) -> std::io::Result<Option<PathBuf>> {
    let own = rustix::process::geteuid().as_raw();
    let path = std::path::absolute(path)?;
    for part in path.ancestors() {
        let found = std::fs::symlink_metadata(part)?;
        if found.is_symlink() && found.uid() != 0 && found.uid() != own {
            return Ok(Some(part.to_owned()));
        }
    }
    Ok(None)
}

/// Replaces a file by a new one with the same owner, group and mode, so that a crash leaves the old or the new text.
fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(link) = foreign_link(path)? {
        let why = format!("the link {} belongs to another user", link.display());
        return Err(std::io::Error::other(why));
    }
    let target = std::fs::canonicalize(path)?;
    let found = std::fs::metadata(&target)?;
    let (owner, mode) = ((found.uid(), found.gid()), found.permissions());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".steadfast-fmt");
    let beside = target.with_file_name(name);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let born = file.metadata()?;
    let own = if owner == (born.uid(), born.gid()) {
        Ok(())
    } else {
        std::os::unix::fs::fchown(&file, Some(owner.0), Some(owner.1))
    };
    let written = own
        .and_then(|()| file.set_permissions(mode))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        std::fs::remove_file(&beside)?;
    }
    written
}
