//! The texts of files, directories and the standard input.

use crate::config::problem::code::Code;
use crate::config::problem::{Problem, Problems, Severity};
use crate::config::source_file::{Role, SourceFile, whole};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_resources::host::input_trust::{self, Reader};

/// The largest graph file, in bytes.
pub(in crate::config) const LARGEST: u64 = 64 << 20;

/// Reads all files that the paths lead to, in order; a file that is reached twice is read once.
pub(in crate::config) fn read(paths: &[PathBuf], problems: &mut Problems) -> Vec<SourceFile> {
    let mut sources = Vec::new();
    let mut reached = BTreeSet::new();
    if paths.is_empty() {
        let problem =
            Problem::new(Code::EmptyFolder, "no graph was given: expected a file or a directory");
        problems.push(
            problem.hint("give a YAML file, a directory of YAML files, or - for standard input"),
        );
    }
    for path in paths {
        if path.as_os_str() == "-" {
            sources.extend(standard_input(problems));
        } else if path.is_dir() {
            // Users with write permission in the directory can add and remove graphs.
            if let Ok(Some(doubt)) = input_trust::untrusted_writer(path) {
                problems.push(untrusted(&path.display().to_string(), &doubt));
            }
            for file in folder(path, problems) {
                sources.extend(file_once(&file, &mut reached, problems));
            }
        } else {
            sources.extend(file_once(path, &mut reached, problems));
        }
    }
    sources
}

/// Returns the graph files of a directory, in name order.
fn folder(path: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let display = path.display().to_string();
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(unreadable(&display, &error));
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if is_graph(&entry.path()) => files.push(entry.path()),
            Ok(_) => {}
            Err(error) => problems.push(unreadable(&display, &error)),
        }
    }
    files.sort();
    if files.is_empty() {
        let what = "the directory has no graph: expected at least one file named *.yaml or *.yml";
        problems.push(Problem::new(Code::EmptyFolder, what).at(Some(whole(&display))));
    }
    files
}

/// Returns true if a file is read when its directory is named.
pub fn is_graph(path: &Path) -> bool {
    let named = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    named && !hidden && !path.is_dir()
}

fn file_once(
    path: &Path,
    reached: &mut BTreeSet<PathBuf>,
    problems: &mut Problems,
) -> Option<SourceFile> {
    let display = path.display().to_string();
    match fs::canonicalize(path) {
        Ok(real) if !reached.insert(real.clone()) => return None,
        Ok(_) => {}
        Err(error) => {
            problems.push(unreadable(&display, &error));
            return None;
        }
    }
    let bytes = match steady(path, LARGEST) {
        Ok((bytes, doubt)) => {
            if let Some(doubt) = doubt {
                problems.push(untrusted(&display, &doubt));
            }
            bytes
        }
        Err(error) => {
            problems.push(unreadable(&display, &error));
            return None;
        }
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let text = text(&display, bytes, problems)?;
    Some(SourceFile::new(&display, path, base, text))
}

/// Returns the problem of one file that is too large.
pub(in crate::config) fn oversized(display: &str) -> Problem {
    let what = format!("the file is larger than {} MiB", LARGEST >> 20);
    let hint = "split the file into several files in one directory";
    Problem::new(Code::TooLarge, what).hint(hint).at(Some(whole(display)))
}

/// Reads a file that a graph file names; `None` if it does not exist. A file of more than `most` bytes is refused with
/// the problem that `too_large` returns, and is not read to its end.
pub(in crate::config) fn read_used(
    path: &Path,
    display: &str,
    (most, too_large): (u64, fn(&str) -> Problem),
) -> Result<Option<SourceFile>, Problem> {
    let (bytes, doubt) = match steady(path, most) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(display, &error)),
    };
    if let Some(problem) = doubt.map(|doubt| untrusted(display, &doubt))
        && problem.severity == Severity::Error
    {
        return Err(problem);
    }
    if bytes.len() as u64 > most {
        return Err(too_large(display));
    }
    let mut problems = Problems::default();
    let Some(text) = text(display, bytes, &mut problems) else {
        let problem = problems.list.pop();
        return Err(problem.unwrap_or_else(|| unreadable(display, &io::ErrorKind::Other.into())));
    };
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut source = SourceFile::new(display, path.to_owned(), base, text);
    source.role = Role::Used;
    Ok(Some(source))
}

/// Reads a file, or the standard input for `-`, and leaves the byte order mark in the text. A file of more than `most`
/// bytes is refused with the problem that `too_large` returns.
pub(in crate::config) fn read_with_mark(
    path: &Path,
    display: &str,
    (most, too_large): (u64, impl FnOnce(&str) -> Problem),
) -> Result<String, Problem> {
    let read = if path.as_os_str() == "-" {
        bounded(io::stdin().lock(), most)
    } else {
        steady(path, most).map(|(bytes, _)| bytes)
    };
    let bytes = read.map_err(|error| unreadable(display, &error))?;
    if bytes.len() as u64 > most {
        return Err(too_large(display));
    }
    let has_mark = bytes.starts_with("\u{feff}".as_bytes());
    let mut problems = Problems::default();
    match text(display, bytes, &mut problems) {
        Some(text) if has_mark => Ok(format!("\u{feff}{text}")),
        Some(text) => Ok(text),
        None => Err(problems.list.pop().unwrap_or_else(|| too_large(display))),
    }
}

/// Returns the paths of the files of a folder; none if it cannot be read.
pub(in crate::config) fn list_folder(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(found) if !found.is_symlink() => found.is_dir(),
        _ => entry.path().is_dir(),
    };
    entries.filter(|entry| !is_folder(entry)).map(|entry| entry.path()).collect()
}

/// Returns the names of the folders in a folder; none if it cannot be read.
pub(in crate::config) fn list_folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn standard_input(problems: &mut Problems) -> Option<SourceFile> {
    let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match bounded(io::stdin().lock(), LARGEST) {
        Ok(bytes) => {
            let text = text("-", bytes, problems)?;
            Some(SourceFile::new("-", PathBuf::from("-"), base, text))
        }
        Err(error) => {
            problems.push(unreadable("-", &error));
            None
        }
    }
}

/// The number of attempts to read a file that changes meanwhile, and the pause between them.
const AGAIN: (u32, Duration) = (50, Duration::from_millis(10));

/// Reads a file at one moment. During a write in place only the beginning may be visible, and the beginning of a graph
/// is a valid graph with fewer resources (F-20).
fn steady(path: &Path, most: u64) -> io::Result<(Vec<u8>, Option<String>)> {
    for _ in 0..AGAIN.0 {
        // Non-blocking: a pipe without a writer would block this read and all later ones.
        let waits_for_nobody = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = fs::File::options().read(true).custom_flags(waits_for_nobody).open(path)?;
        let before = file.metadata()?;
        if before.file_type().is_fifo() || before.file_type().is_socket() {
            return Err(io::ErrorKind::NotSeekable.into());
        }
        let bytes = bounded(&file, most)?;
        let after = file.metadata()?;
        // Generated files, such as those in /proc, have length 0.
        let length = bytes.len() as u64;
        let is_all = after.len() == length || after.len() == 0 || length > most;
        let is_steady = !after.is_file() || (is_all && version(&before) == version(&after));
        // A file that was replaced meanwhile is read again.
        if is_steady && leads_to(path, &after)? {
            return Ok((bytes, Reader::here().doubts_as_named(&file, path)));
        }
        std::thread::sleep(AGAIN.1);
    }
    Err(io::Error::other("the file is being written continuously"))
}

/// Reports a file that others can change: an error for root, and a warning for other users, whose rights limit the
/// damage.
fn untrusted(display: &str, doubt: &str) -> Problem {
    let problem =
        Problem::new(Code::Untrusted, format!("another user could change the file: {doubt}"))
            .hint(
                "make root the owner of the file and all parent directories, writable only by root",
            )
            .at(Some(whole(display)));
    if Reader::here().is_strict() { problem } else { problem.warning() }
}

fn leads_to(path: &Path, opened: &fs::Metadata) -> io::Result<bool> {
    let now = fs::metadata(path)?;
    Ok((now.dev(), now.ino()) == (opened.dev(), opened.ino()))
}

fn version(of: &fs::Metadata) -> (u64, (i64, i64), (i64, i64)) {
    (of.len(), (of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec()))
}

/// Reads everything, up to one byte more than the limit.
fn bounded(reader: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(display: &str, error: &io::Error) -> Problem {
    let (what, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("no such file or directory".to_owned(), None),
        io::ErrorKind::PermissionDenied => {
            ("permission denied".to_owned(), Some("check owner and mode of the file"))
        }
        io::ErrorKind::NotSeekable => (
            "the path is a pipe, not a file".to_owned(),
            Some("pipe it in: … | steadfast COMMAND -"),
        ),
        _ => (format!("the file cannot be read: {error}"), None),
    };
    Problem::new(Code::Unreadable, what).hint_if(hint).at(Some(whole(display)))
}

/// Converts the bytes of a file to a text without a byte order mark.
fn text(display: &str, bytes: Vec<u8>, problems: &mut Problems) -> Option<String> {
    let refuse =
        |code, what: &str, hint: &str| Problem::new(code, what).hint(hint).at(Some(whole(display)));
    if bytes.len() as u64 > LARGEST {
        problems.push(oversized(display));
        return None;
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let what = "expected UTF-8, found a UTF-16 byte order mark";
        problems.push(refuse(Code::Encoding, what, "save the file as UTF-8"));
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        }),
        Err(error) => {
            problems.push(not_utf8(display, &error));
            None
        }
    }
}

fn not_utf8(display: &str, error: &std::string::FromUtf8Error) -> Problem {
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes().get(at).copied().unwrap_or_default();
    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
    let source = SourceFile::new(display, PathBuf::new(), PathBuf::new(), text);
    Problem::new(Code::Encoding, format!("expected UTF-8, found the byte 0x{byte:02x}"))
        .hint("save the file as UTF-8; put binary content into a separate file (`source`)")
        .at(Some(source.place(crate::config::source_file::Span::new(at, at + 1))))
}
