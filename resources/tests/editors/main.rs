//! The law of untouched bytes on real files of Debian packages (`tests/run --slow editors`).
//!
//! Each edit changes the declared value and nothing else: the bytes before and after it stay. No test here may change
//! the fetched files. Reading order: `files.txt` (the files with their hashes), `fetch`, `keys.rs` (the keys of a
//! file), this file (the law).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the result names refused and changed files")]

mod keys;

use futures_util::FutureExt as _;
use keys::Key;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use steadfast_resources::{
    CheckRequest, CheckResult, Fields, Host, KindSet, MintKey, Outcome, Permit, Place, Recorders,
    Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// The environment variable with the folder of the unpacked packages.
const FOLDER: &str = "STEADFAST_EDITOR_FILES";

/// The greatest number of keys that are tried in one file.
const KEYS: usize = 25;

/// The value that the edits write: no file contains it.
const NEW: &str = "steadfast-editor-test";

/// One line of `files.txt`.
struct Listed {
    kind: &'static str,
    path: PathBuf,
}

fn listed(folder: &Path) -> Vec<Listed> {
    let lines = include_str!("files.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [kind, hash, package, path] = words.as_slice() else { panic!("{line}") };
            let kind = ["ini", "json", "toml", "yaml"].into_iter().find(|it| it == kind).unwrap();
            let path = folder.join(package).join(path.trim_start_matches('/'));
            let found = fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            if sum_of(&path) != *hash {
                println!("changed since it was listed: {} ({} bytes)", path.display(), found.len());
            }
            Listed { kind, path }
        })
        .collect()
}

/// Returns the SHA-256 of a file.
fn sum_of(path: &Path) -> String {
    let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap_or_default().to_owned()
}

fn permit() -> Permit {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    KEY.get_or_init(|| MintKey::take().expect("the first who asks"))
        .mint(CancellationToken::new(), Recorders::None)
}

fn build(kind: &str, path: &Path, key: &Key, value: Option<&str>) -> Arc<dyn Resource> {
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let text = |text: &str| Value::Text(text.to_owned());
    let mut fields = Fields::default();
    fields.insert("path", text(path.to_str().unwrap()));
    fields.insert("key", text(&key.name));
    if let Some(section) = &key.section {
        fields.insert("section", text(section));
    }
    match value {
        Some(value) => fields.insert("value", text(value)),
        None => fields.insert("state", text("absent")),
    }
    let place = Place { base: PathBuf::from("/") };
    spec.build_resource(path.to_str().unwrap(), fields, &place)
        .unwrap_or_else(|wrong| panic!("{}: {key:?}: {wrong:?}", path.display()))
}

/// Edits a copy of a text; none if the editor refuses the file.
fn edit(kind: &str, text: &[u8], key: &Key, value: Option<&str>) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, text).unwrap();
    let (host, resource) = (Host::default(), build(kind, &path, key, value));
    let check = |resource: &Arc<dyn Resource>| {
        resource.check(&host, CheckRequest::default()).now_or_never().unwrap()
    };
    let change = match check(&resource) {
        CheckResult::Differs(change) => change,
        CheckResult::Same => return Some(text.to_vec()),
        CheckResult::Unknown(_) => return None,
    };
    match resource.apply(&host, &permit(), change).now_or_never().unwrap() {
        Outcome::Changed(_) => {}
        other => panic!("{key:?}: {other:?}"),
    }
    assert!(matches!(check(&resource), CheckResult::Same), "{key:?}: not idempotent");
    Some(fs::read(&path).unwrap())
}

/// Returns the parts of both texts between their common start and their common end.
fn difference<'t>(old: &'t [u8], new: &'t [u8]) -> (&'t [u8], &'t [u8]) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (&old[..old.len() - end], &new[..new.len() - end])
}

/// The number of files that are edited at one time: an edit of a file that was just written waits up to a second.
const THREADS: usize = 16;

/// The results of the edits of some files.
#[derive(Default)]
struct Report {
    edited_files: usize,
    edits: usize,
    refused: Vec<String>,
    wrong: Vec<String>,
}

/// Edits up to 25 keys of a file, one after the other in its original text, and adds and removes a key.
fn edit_keys(Listed { kind, path }: &Listed, report: &mut Report) {
    let text = fs::read(path).unwrap();
    let all = keys::of(kind, &String::from_utf8_lossy(&text));
    let step = (all.len() / KEYS).max(1);
    let mut was_edited = false;
    for key in all.iter().step_by(step) {
        let Some(new) = edit(kind, &text, key, Some(NEW)) else {
            report.refused.push(format!("{}: {}", path.display(), key.name));
            break;
        };
        was_edited = true;
        report.edits += 1;
        let (from, to) = difference(&text, &new);
        let to = String::from_utf8_lossy(to);
        // The new value stands in one place, and the replaced part is the old value in one line.
        let is_one_value = NEW.contains(to.trim_matches(['"', '\'']))
            || to.trim_matches(['"', '\'', ' ']).contains(NEW);
        if !is_one_value || from.contains(&b'\n') || to.contains('\n') {
            let from = String::from_utf8_lossy(from);
            report.wrong.push(format!("{}: {key:?}: {from:?} became {to:?}", path.display()));
        }
    }
    // An added key goes again without a trace.
    let section = all.first().and_then(|key| key.section.clone());
    let added = Key { name: "steadfast_new_key".to_owned(), section };
    if was_edited && let Some(new) = edit(kind, &text, &added, Some(NEW)) {
        let back = edit(kind, &new, &added, None).expect("an own key");
        // A last line without an end gets one.
        let is_equal = back == text || back.strip_suffix(b"\n") == Some(&text);
        if !is_equal {
            let (from, to) = difference(&text, &back);
            let [from, to] = [from, to].map(String::from_utf8_lossy);
            let line = format!("{}: added and removed: {from:?} became {to:?}", path.display());
            report.wrong.push(line);
        }
    }
    report.edited_files += usize::from(was_edited);
}

#[test]
#[ignore = "needs packages of Debian: tests/run --slow editors"]
fn edits_leave_all_other_bytes_of_real_files() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("STEADFAST_EDITOR_FILES"));
    let (files, next, total) =
        (listed(&folder), AtomicUsize::new(0), Mutex::new(Report::default()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut report = Report::default();
                    edit_keys(file, &mut report);
                    let mut total = total.lock().unwrap();
                    total.edited_files += report.edited_files;
                    total.edits += report.edits;
                    total.refused.append(&mut report.refused);
                    total.wrong.append(&mut report.wrong);
                }
            });
        }
    });
    let Report { edited_files, edits, refused, wrong } = total.into_inner().unwrap();
    println!("{edits} edits of {edited_files} files; {} files refused", refused.len());
    for line in &refused {
        println!("refused: {line}");
    }
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
    assert!(edited_files >= 200, "expected 200 edited files, found {edited_files}");
}
