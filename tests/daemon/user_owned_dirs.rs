//! Directories of users in which root works. Needs root and strace.

use crate::host::{Host, is_root};
use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::process::{Command, Stdio};

const NOBODY: u32 = 65534;

const GRAPH: &str = r#"
graph: home
resources:
  file:
  - {name: made, path: $DIR/home/made, content: new, owner: nobody, group: nogroup, mode: "0600"}
  - {name: replaced, path: $DIR/home/replaced, content: new, owner: nobody, group: nogroup}
  - {name: link, path: $DIR/home/link, symlink: made, owner: nobody, group: nogroup}
  - {name: folder, path: $DIR/home/folder/, owner: nobody, group: nogroup}
  - {name: keys, path: $DIR/home/authorized_keys, content: key, owner: nobody, group: nogroup, force: true}
"#;

/// S-3: every thread creates files there with the owner's rights, and a link that the owner puts in place of a file
/// gives no access to root's files.
#[test]
fn files_in_user_directories_are_made_with_user_rights() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let home = host.path("home");
    host.make_directory("home").write("home/replaced", "old").write("canary", "root's");
    symlink(host.path("canary"), home.join("authorized_keys")).expect("linked");
    for path in [home.clone(), home.join("replaced")] {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("given");
    }
    let traced = host.path("../trace");
    let inner = host.command(&["apply"]);
    let mut strace = Command::new("strace");
    let calls = "trace=setfsuid,openat,linkat,symlinkat,mkdirat,renameat,renameat2";
    strace.args(["-f", "-qq", "-y", "-e", calls, "-o"]);
    strace.arg(&traced).arg(inner.get_program()).args(inner.get_args());
    strace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    host.finish(strace).exits(0);

    let trace = std::fs::read_to_string(&traced).expect("the trace");
    std::fs::remove_file(&traced).expect("removed");
    let mut guises: HashMap<&str, &str> = HashMap::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, rest)) = call.trim_start().split_once('(') else { continue };
        if name == "setfsuid" {
            let number = rest.split(|letter: char| !letter.is_ascii_digit()).next();
            guises.insert(thread, number.unwrap_or_default());
            continue;
        }
        let makes = name != "openat" || rest.contains("O_TMPFILE") || rest.contains("O_CREAT");
        if makes && rest.contains(&format!("{}>", home.display())) {
            assert_eq!(guises.get(thread), Some(&"65534"), "{line}");
            *seen.entry(name).or_default() += 1;
        }
    }
    for name in ["openat", "linkat", "symlinkat", "mkdirat"] {
        assert!(seen.contains_key(name), "{name} was seen: {seen:?}");
    }
    assert!(seen.keys().any(|name| name.starts_with("renameat")), "{seen:?}");

    assert_eq!(host.read("canary"), "root's");
    for name in ["made", "replaced", "link", "folder", "authorized_keys"] {
        let found = host.metadata(&format!("home/{name}"));
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{name}");
    }
    assert!(host.metadata("home/authorized_keys").is_file());
}
