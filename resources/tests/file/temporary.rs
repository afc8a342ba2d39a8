//! Tests of temporary names: nobody can guess one, and nobody can hide an object behind one (M2).

use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::{CheckResult, Host, Resource};

const NOBODY: u32 = 65534;

/// Returns the middle part of a temporary name for a process: its number and its start time.
fn process(number: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
    let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    format!("{number}-{began}")
}

fn purged(top: &Path) -> Arc<dyn Resource> {
    let given = [("owner", "root"), ("mode", "u=rwX,go=rX"), ("recurse", "true")];
    file(
        format!("{}/", top.display()),
        &[&given[..], &[("purge", "true"), ("force", "true")]].concat(),
    )
}

/// A user who takes the next names in the directory does not prevent the repair of a file.
#[test]
fn taken_names_do_not_stop_a_repair() {
    let (host, dir) = (Host::default(), scratch());
    let held = file(dir.path().join("a"), &[("content", "declared\n")]);
    made(&host, &held);
    for number in 0..300 {
        let name = format!(".steadfast-{}-{number}.dpkg-tmp", process(std::process::id()));
        fs::write(dir.path().join(name), "").unwrap();
    }
    fs::write(dir.path().join("a"), "changed\n").unwrap();
    made(&host, &held);
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "declared\n");
}

/// An object with the form of a temporary name does not escape a purge, whichever process the name contains.
#[test]
fn a_purge_takes_what_only_bears_a_temporary_name() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    let makers = ["1-2".to_owned(), process(1), process(std::process::id())];
    for maker in &makers {
        let hidden = top.join(format!(".steadfast-{maker}-2.dpkg-tmp"));
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("shell.php"), "theirs").unwrap();
        for path in [&hidden.join("shell.php"), &hidden] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        chmod(&hidden, 0o777);
    }
    made(&host, &purged(&top));
    assert_eq!(names(&top), [""; 0]);
}

/// Such an object gets the attributes of its tree, too.
#[test]
fn recursion_holds_what_only_bears_a_temporary_name() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("top");
    let hidden = top.join(format!(".steadfast-{}-2.dpkg-tmp", process(1)));
    fs::create_dir_all(&hidden).unwrap();
    fs::write(hidden.join("shell.php"), "theirs").unwrap();
    chown(&hidden, Some(NOBODY), None).unwrap();
    chmod(hidden.join("shell.php"), 0o666);
    let given = [("owner", "root"), ("mode", "u=rwX,go=rX"), ("recurse", "true")];
    made(&host, &file(format!("{}/", top.display()), &given));
    assert_eq!((owner(&hidden).0, mode(hidden.join("shell.php"))), (0, 0o644));
}

/// A file that another living process of the same user is writing is left alone.
#[test]
fn a_temporary_file_of_a_living_process_of_ours_stays() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    let name = format!(".steadfast-{}-00ff.dpkg-tmp", process(1));
    fs::write(top.join(&name), "half").unwrap();
    chmod(top.join(&name), 0o600);
    assert!(matches!(check(&host, &purged(&top)), CheckResult::Same));
    assert_eq!(names(&top), [name]);
}
