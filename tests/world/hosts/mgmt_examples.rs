//! The examples of mgmt for several hosts, rewritten from their description and played on three hosts: files for all
//! (etcd1), own and exported files (graph3), an empty pattern (graph4), and keys of the world (kv).

use super::site::Site;

const HOSTS: [&str; 3] = ["a", "b", "c"];

fn start_all(site: &mut Site, graph: impl Fn(&str) -> String) {
    for host in HOSTS {
        site.graph(host, &graph(host));
        std::fs::create_dir_all(site.path(&format!("{host}/shared"))).unwrap();
        site.start(host);
    }
}

/// Returns the names of the files in a folder of a host.
fn names(site: &Site, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(site.path(folder)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// etcd1: each host offers one file and collects the files of all; its own one comes back the same way.
pub(crate) fn play_one_file_for_all(site: &mut Site) {
    start_all(site, |host| {
        format!(
            "graph: one\nresources:\n  file:\n  - {{name: \"@@from-{host}\", path: /nowhere/from-{host}, content: \"of {host}\\n\", state: exists}}\n\
             collect:\n- {{kind: file, pattern: $DIR/shared/}}\nedges: []\n"
        )
    });
    for host in HOSTS {
        for other in HOSTS {
            site.wait_for_file(&format!("{host}/shared/from-{other}"), &format!("of {other}\n"));
        }
        assert_eq!(names(site, &format!("{host}/shared")), ["from-a", "from-b", "from-c"]);
    }
    // Drift of a collected file is repaired on the host of the collector.
    std::fs::remove_file(site.path("b/shared/from-a")).unwrap();
    site.wait_for_file("b/shared/from-a", "of a\n");
    assert!(!std::path::Path::new("/nowhere").exists());
}

/// graph3: each host has two files of its own and offers two; each ends with eight files.
pub(crate) fn play_own_and_offered_files(site: &mut Site) {
    start_all(site, |host| {
        let file = |name: &str, content: &str| {
            format!(
                "  - {{name: \"{name}\", path: $DIR/shared/{}, content: \"{content}\\n\"}}\n",
                &name.replace("@@", "")
            )
        };
        let own = ["one", "two"].map(|part| file(&format!("{part}-{host}"), part)).concat();
        let offered =
            ["three", "four"].map(|part| file(&format!("@@{part}-{host}"), part)).concat();
        format!(
            "graph: eight\nresources:\n  file:\n{own}{offered}collect:\n- {{kind: file, pattern: $DIR/shared/}}\n"
        )
    });
    for host in HOSTS {
        let mut expected: Vec<String> = ["one", "two"].map(|part| format!("{part}-{host}")).into();
        expected.extend(HOSTS.iter().flat_map(|it| [format!("three-{it}"), format!("four-{it}")]));
        expected.sort();
        let folder = format!("{host}/shared");
        site.wait_until("eight files", || names(site, &folder) == expected);
    }
    site.wait_for_file("c/shared/four-a", "four\n");
}

/// graph4: an empty pattern takes nothing, because paths of other hosts are not taken as they are.
pub(crate) fn play_an_empty_pattern(site: &mut Site) {
    start_all(site, |host| {
        format!(
            "graph: none\nresources:\n  file:\n  - {{name: \"@@x-{host}\", path: $SITE/taken-{host}, content: x}}\n  \
             - {{name: y, path: $DIR/shared/y, content: y}}\ncollect:\n- {{kind: file, pattern: \"\"}}\n"
        )
    });
    for host in HOSTS {
        site.wait_for_file(&format!("{host}/shared/y"), "y");
        site.wait_until("the file is offered", || {
            site.ask(host, &["world", "list", "exports/"]).1.contains(&format!("x-{host}"))
        });
        let (_, text) = site.ask(host, &["check"]);
        assert!(text.contains("an empty `pattern` collects nothing"), "{text}");
    }
    site.wait_until("all converge", || site.ask("a", &["fleet"]).0 == 0);
    for host in HOSTS {
        assert!(!site.path(&format!("taken-{host}")).exists());
    }
}

/// kv1 to kv4: a key is set; read without a value; not lowered; held against another host's write, and sent to a file.
pub(crate) fn play_keys(site: &mut Site) {
    let writer = "graph: w\nresources:\n  kv:\n  - {name: greeting, key: hello, value: world}\n  - {name: n, key: level, value: \"9\"}\n";
    let reader = "graph: r\nresources:\n  kv:\n  - {name: hello}\n  file:\n  - {name: f, path: $DIR/shared/f, recv: {content: \"kv[hello].value\"}}\n";
    let lower = "graph: l\nresources:\n  kv:\n  - {name: level, value: \"4\", skiplessthan: true}\n  \
                 - {name: colour, value: abc, skiplessthan: true, skipcmpstyle: 1}\n  \
                 file:\n  - {name: f, path: $DIR/shared/f, recv: {content: \"kv[level].value\"}, after: [\"kv[level]\"]}\n";
    start_all(site, |host| match host {
        "a" => writer.to_owned(),
        "b" => reader.to_owned(),
        _ => lower.to_owned(),
    });
    site.wait_for_file("b/shared/f", "world");
    site.wait_for_file("c/shared/f", "9");
    site.graph("a", &writer.replace("world", "there"));
    site.wait_for_file("b/shared/f", "there");
    let (_, text) = site.ask("b", &["world", "list", "strings/"]);
    assert!(text.contains("\"abc\"") && text.contains("\"9\"") && text.contains("there"), "{text}");
}

#[test]
fn files_are_offered_to_all() {
    play_one_file_for_all(&mut Site::with_file());
}

#[test]
fn own_and_offered_files_meet_in_one_folder() {
    play_own_and_offered_files(&mut Site::with_file());
}

#[test]
fn an_empty_pattern_takes_nothing() {
    play_an_empty_pattern(&mut Site::with_file());
}

#[test]
fn keys_are_set_read_and_not_lowered() {
    play_keys(&mut Site::with_file());
}
