//! The settings of a host, and the files that root trusts (S-11).

use super::Files;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::sync::Arc;
use steadfast::config::{Destination, Options, Settings, load, read_settings};

pub(crate) fn read(text: &str) -> Result<Settings, String> {
    let files = Files::new().with("steadfast.yaml", text);
    let form = |word: &str| {
        if word == "json" { Ok(()) } else { Err(format!("one of json, found `{word}`")) }
    };
    read_settings(&files.path("steadfast.yaml"), &[("log", &form)])
        .map_err(|rejected| rejected.to_string())
}

#[test]
fn settings_are_read() {
    let settings = read(
        "graph: [web.yaml, /srv/more]\nwatch: true\nlog: json\nsweep: 0\ngrace: 5\nsema: 2\n\
         state_dir: state\ndefaults: {retry: 3, sema: ['net:2']}\n",
    )
    .unwrap();
    assert!(settings.graph[0].ends_with("web.yaml") && settings.graph[0].is_absolute());
    assert_eq!(settings.graph[1], Path::new("/srv/more"));
    assert_eq!((settings.watch, settings.sweep, settings.grace), (Some(true), Some(0), Some(5)));
    assert!(settings.state_dir.unwrap().is_absolute());
    assert!(settings.noop.is_none() && settings.defaults.is_some());
    let nothing = read("").unwrap();
    assert!(nothing.graph.is_empty() && nothing.defaults.is_none());
}

/// Recorders are read with their defaults; headers are never shown.
#[test]
fn recorders_are_read() {
    let settings = read(
        "events_size: 5\nevents_days: 7\nrecorders:\n- file: {path: log.jsonl}\n- journald: {}\n- journald:\n    socket: /a\n\
         - webhook:\n    url: https://host:8443/x?token=t0ken\n    headers: {X-Token: t0ken}\n",
    );
    assert!(settings.unwrap_err().contains("the recorder `journald` is already declared"));
    let settings = read(
        "events_size: 5\nevents_days: 7\nrecorders:\n- file: {path: log.jsonl}\n- journald:\n- webhook:\n    \
         url: https://host:8443/x?token=t0ken\n    headers: {X-Token: t0ken}\n",
    )
    .unwrap();
    assert_eq!((settings.events_size, settings.events_days), (Some(5), Some(7)));
    let [file, journal, hook] = &settings.recorders[..] else { panic!("{settings:?}") };
    assert!(
        matches!(&file.destination, Destination::File { path } if path.is_absolute() && path.ends_with("log.jsonl"))
    );
    assert!(
        matches!(&journal.destination, Destination::Journald { socket } if socket.ends_with("run/systemd/journal/socket"))
    );
    assert!(
        matches!(&hook.destination, Destination::Webhook { timeout: 10, headers, .. } if headers.len() == 1)
    );
    assert!(hook.name().starts_with("webhook:https://host:8443#"), "{}", hook.name());
    assert!(!format!("{settings:?}").contains("t0ken"));
}

/// Each problem of a recorder is reported with its place.
#[test]
fn wrong_recorders_are_refused() {
    let said = read(
        "events_size: 0\nrecorders:\n- file: {}\n- fiel: {path: x}\n- webhook: {url: \"ftp://x\", timeout: 0, \
         headers: {Host: x}}\n- webhook: {url: \"http://me@host/\"}\n- file: {path: x, colour: red}\n- 3\n",
    )
    .unwrap_err();
    for words in [
        "`events_size` should be a number from 1 to",
        "the recorder `file` needs `path`",
        "steadfast.yaml:3:",
        "unknown key `fiel` in a recorder",
        "did you mean `file`?",
        "`url` should be http://HOST/",
        "`timeout` should be a number from 1 to 600",
        "`Host` is not a valid header",
        "unknown key `colour` in the recorder `file`",
        "a recorder should be a map",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = read("recorders: {file: {path: x}}\n").unwrap_err();
    assert!(
        said.contains("`recorders` should be a list") && said.contains("start each item with `- `"),
        "{said}"
    );
}

#[test]
fn the_settings_that_come_along_are_right() {
    let settings = read(&include_str!("../../systemd/steadfast.yaml").replace("human", "json"));
    assert!(settings.is_ok_and(|settings| settings.defaults.is_some() && settings.watch.is_some()));
}

/// All problems of the settings are reported at once, each with its place and a remedy.
#[test]
fn wrong_settings_are_refused() {
    let said = read(
        "graph: []\nsweeep: 3\nsema: 0\ngrace: -1\nlog: loud\nwatch: 3\n\
         defaults: {retyr: 1, limit: 2, burst: 0}\n",
    )
    .unwrap_err();
    for words in [
        "`graph` should be at least one file or directory",
        "steadfast.yaml:2:1",
        "did you mean `sweep`?",
        "`sema` should be a number from 1 to",
        "`grace` should be a number from 0 to",
        "`log` should be one of json, found `loud`",
        "`watch`",
        "did you mean `retry`?",
        "burst",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = read("graph: [").unwrap_err();
    assert!(said.contains("[C006]"), "{said}");
}

/// A field of the resource wins over the defaults; the defaults fill the missing ones.
/// Some places show the first line alone: it is an error, whatever warnings stand above it in the file.
#[test]
fn errors_come_before_warnings() {
    let said = read("sweep: 600\nwacth: true\n").unwrap_err();
    assert!(said.lines().next().unwrap().contains("wacth"), "{said}");
}

#[test]
fn defaults_hold_where_nothing_is_said() {
    let defaults = read("defaults: {retry: 7, noop: true, delay: 900}\n").unwrap().defaults;
    let files = Files::new().with(
        "graph.yaml",
        "graph: g\nresources:\n  noop:\n  - {name: a}\n  - {name: b, meta: {retry: 1, noop: false}}\n",
    );
    let options = Options { defaults, ..crate::options() };
    let loaded = load(&[files.path("graph.yaml")], &options).unwrap();
    let retries: Vec<String> =
        loaded.vertices.iter().map(|vertex| format!("{:?}", vertex.meta.retry)).collect();
    assert_eq!(loaded.vertices.iter().map(|v| v.meta.noop).collect::<Vec<_>>(), [true, false]);
    assert_ne!(retries[0], retries[1]);
    let delays: Vec<_> = loaded.vertices.iter().map(|v| v.meta.delay.as_millis()).collect();
    assert_eq!(delays, [900, 900]);
    let plain = load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    assert_eq!(
        plain.vertices[0].definition, loaded.vertices[0].definition,
        "metaparams are no part of a definition"
    );
    assert!(Arc::strong_count(&plain.vertices[0].meta) > 0);
}

/// A row of the test: mode and owner of a folder, of a folder inside, and of the graph; true if root reads the graph.
type Row = ((u32, u32), (u32, u32), (u32, u32), bool);

/// S-11: root rejects a graph that somebody else could change, with the reason. Needs root.
#[test]
fn root_reads_only_what_nobody_else_can_change() {
    assert!(rustix::process::geteuid().is_root(), "this test must run as root");
    let matrix: [Row; 12] = [
        ((0o755, 0), (0o755, 0), (0o644, 0), true),
        ((0o1777, 0), (0o755, 0), (0o644, 0), true),
        ((0o755, 0), (0o1777, 0), (0o600, 0), true),
        ((0o755, 0), (0o755, 0), (0o664, 0), true),
        ((0o755, 0), (0o755, 0), (0o666, 0), false),
        ((0o755, 0), (0o755, 0), (0o644, 1234), false),
        ((0o755, 0), (0o777, 0), (0o644, 0), false),
        ((0o777, 0), (0o755, 0), (0o644, 0), false),
        ((0o755, 1234), (0o755, 0), (0o644, 0), false),
        ((0o755, 0), (0o755, 1234), (0o644, 0), false),
        ((0o1777, 0), (0o755, 1234), (0o644, 0), false),
        ((0o1777, 0), (0o1777, 0), (0o644, 1234), false),
    ];
    for row in matrix {
        let (upper, lower, graph, believed) = row;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("upper/lower");
        std::fs::create_dir_all(&place).unwrap();
        let file = place.join("graph.yaml");
        std::fs::write(&file, "graph: g\n").unwrap();
        for (path, (mode, uid)) in
            [(place.parent().unwrap(), upper), (place.as_path(), lower), (file.as_path(), graph)]
        {
            chown(path, Some(uid), Some(0)).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let read = load(std::slice::from_ref(&file), &crate::options());
        assert_eq!(read.is_ok(), believed, "{row:?}");
        if let Err(rejected) = read {
            let said = rejected.to_string();
            assert!(said.contains("[C014]") && said.contains("another user could"), "{said}");
        }
        // A link in a safe place changes nothing: both the link's path and its target are judged.
        let link = folder.path().join("link.yaml");
        symlink(&file, &link).unwrap();
        assert_eq!(load(&[link], &crate::options()).is_ok(), believed, "{row:?}, by a link");
        let settings = read_settings(&file, &[]).map_err(|rejected| rejected.to_string());
        let said = settings.err().unwrap_or_default();
        assert_eq!(said.contains("[C014]"), !believed, "{row:?}: settings too: {said}");
    }
    // A file that a foreign group can write.
    let files = Files::new().with("graph.yaml", "graph: g\n");
    chown(files.path("graph.yaml"), Some(0), Some(1234)).unwrap();
    let mode = std::fs::Permissions::from_mode(0o664);
    std::fs::set_permissions(files.path("graph.yaml"), mode).unwrap();
    assert!(load(&[files.path("graph.yaml")], &crate::options()).is_err());
}

/// A row of the test: the changed entry, the change to another owner or mode, the path given to the program, and true
/// if root reads the graph.
type Change = (&'static str, fn(&Path), &'static str, bool);

fn of_user(path: &Path) {
    std::os::unix::fs::lchown(path, Some(1234), Some(1234)).unwrap();
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn sticky(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

/// S-11: the owner of a link, or a user who can write its directory, chooses the file behind the link. Root therefore
/// judges the path as given, for files and folders, even if nobody else can write the file. Needs root.
#[test]
fn root_reads_only_what_nobody_else_can_pick() {
    assert!(rustix::process::geteuid().is_root(), "this test must run as root");
    let ways: [Change; 14] = [
        ("links", |_| (), "links/graph.yaml", true),
        ("links", |_| (), "links", true),
        ("links", |_| (), "way/graph.yaml", true),
        ("links", |_| (), "way", true),
        ("links", |_| (), "links/../way/../links/graph.yaml", true),
        ("links/graph.yaml", of_user, "links/graph.yaml", false),
        ("links/graph.yaml", of_user, "links", false),
        ("links/graph.yaml", of_user, "way", false),
        ("way", of_user, "way/graph.yaml", false),
        ("way", of_user, "way", false),
        ("links", of_user, "links/graph.yaml", false),
        ("links", open_to_all, "links/graph.yaml", false),
        ("links", open_to_all, "way", false),
        // Entries of a sticky directory are safe, but others can add some.
        ("links", sticky, "links", false),
    ];
    for (spoilt, how, named, believed) in ways {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in ["safe", "links"] {
            std::fs::create_dir(place(name)).unwrap();
        }
        std::fs::write(place("safe/graph.yaml"), "graph: g\n").unwrap();
        symlink(place("safe/graph.yaml"), place("links/graph.yaml")).unwrap();
        symlink("links", place("way")).unwrap();
        how(&place(spoilt));
        let read = load(&[place(named)], &crate::options());
        let said = read.err().map(|rejected| rejected.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), believed, "{spoilt}, {named}: {said}");
        assert_eq!(said.contains("[C014]"), !believed, "{said}");
        if !believed {
            assert!(said.contains(spoilt.split('/').next_back().unwrap()), "it is named: {said}");
        }
        if place(named).is_file() {
            let read = read_settings(&place(named), &[]);
            let said = read.err().map(|rejected| rejected.to_string()).unwrap_or_default();
            assert_eq!(said.contains("[C014]"), !believed, "{spoilt}, {named}, settings: {said}");
        }
    }
}

/// S-11: a program or a source file that somebody else could change gives a warning with its place; a declared owner
/// of a copied source is trusted.
#[test]
fn files_open_to_others_give_warnings() {
    assert!(rustix::process::geteuid().is_root(), "this test must run as root");
    let files = Files::new().with("program", "#!/bin/sh\n").with("source", "text\n");
    for name in ["program", "source"] {
        chown(files.path(name), Some(1234), Some(1234)).unwrap();
    }
    let (program, source) = (files.path("program"), files.path("source"));
    let (program, source) = (program.display(), source.display());
    let text = format!(
        "graph: g\nresources:\n  exec:\n    - {{ name: own, args: [\"{program}\"] }}\n    \
         - {{ name: as-owner, args: [\"{program}\"], user: \"1234\" }}\n  file:\n    \
         - {{ name: /tmp/copied, source: \"{source}\" }}\n    \
         - {{ name: /tmp/given, source: \"{source}\", owner: \"1234\" }}\n"
    );
    let files = files.with("graph.yaml", &text);
    let loaded = load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let [exec, copied] = said.as_slice() else { panic!("two warnings are expected: {said:?}") };
    for (warning, line, name) in [(exec, ":4:", "program"), (copied, ":7:", "source")] {
        assert!(
            warning.contains("another user could change a file that the resource reads or runs"),
            "{warning}"
        );
        assert!(warning.contains(line) && warning.contains(name), "{warning}");
        assert!(warning.contains("belongs to uid 1234"), "{warning}");
    }
}
