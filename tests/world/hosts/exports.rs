//! Exported and collected resources on three hosts.

use super::site::Site;

const EXPORTER: &str = r#"graph: exporter
resources:
  file:
  - {name: "@@banner-$HOST", path: /nowhere/banner-$HOST, content: "from $HOST"}
  line:
  - {name: key-$HOST, export: {apply: true}, path: $DIR/own, line: "$HOST ssh-ed25519 AAAA"}
"#;

const COLLECTOR: &str = r#"graph: collector
collect:
- {kind: file, fields: [path, content], below: $DIR/banners}
- {kind: line, from: ["a", "b"], fields: [line], set: {path: $DIR/known_hosts}}
resources:
  file:
  - {name: banners, path: $DIR/banners/, state: exists}
  - {name: known_hosts, path: $DIR/known_hosts, state: exists}
"#;

fn collector(name: &str) -> String {
    COLLECTOR.replace("$NAME", name)
}

#[test]
fn exports_are_collected_on_other_hosts() {
    let mut site = Site::with_file();
    for host in ["a", "b"] {
        site.graph(host, EXPORTER);
        site.write(&format!("{host}/own"), "");
    }
    site.graph("c", &collector("c"));
    site.start("c");
    site.start("a");
    site.start("b");
    site.wait_for_file("c/banners/banner-a", "from a");
    site.wait_for_file("c/banners/banner-b", "from b");
    site.wait_until("both keys are known", || {
        let known = site.read("c/known_hosts");
        known.contains("a ssh-ed25519") && known.contains("b ssh-ed25519")
    });
    assert!(!site.path("a/banner-a").exists(), "an export is not applied at home");
    site.wait_for_file("a/own", "a ssh-ed25519 AAAA\n");
    // The identity names the exporter.
    let (_, text) = site.ask_daemon("c", &["show", "@a/file[banner-a]"]);
    assert!(text.contains("banner-a"), "{text}");
    // A host that stops withdraws nothing.
    site.kill("a");
    site.graph("c", &collector("c").replace("graph: collector", "graph: collector2"));
    site.wait_until("the graph is loaded", || site.read("c/log").contains("collector2"));
    assert_eq!(site.read("c/banners/banner-a"), "from a");
    // A forgotten host is withdrawn; its objects stay.
    site.wait_until("the lease ends or the host is forgotten", || {
        site.ask("c", &["world", "forget", "a"]).0 == 0
    });
    site.wait_until("the collected resource is gone", || {
        site.ask_daemon("c", &["show", "@a/file[banner-a]"]).0 != 0
    });
    assert_eq!(site.read("c/banners/banner-a"), "from a");
}

/// An exporter that leaves a resource out withdraws it by an explicit reload, not by a restart.
#[test]
fn an_export_is_withdrawn_by_a_reload() {
    let mut site = Site::with_file();
    site.graph(
        "a",
        "graph: g\nresources:\n  noop:\n  - {name: x, export: true}\n  - {name: y, export: true}\n",
    );
    site.start("a");
    let exports = |site: &Site| site.ask("a", &["world", "list", "exports/"]).1;
    site.wait_until("both are exported", || {
        let text = exports(&site);
        text.contains("noop%5Bx%5D") && text.contains("noop%5By%5D")
    });
    site.kill("a");
    site.graph("a", "graph: g\nresources:\n  noop:\n  - {name: y, export: true}\n");
    site.start("a");
    site.wait_until("the daemon answers", || site.ask_daemon("a", &["status"]).0 != 69);
    assert!(exports(&site).contains("noop%5Bx%5D"), "a start removes nothing");
    site.wait_until("the reload is done", || site.ask_daemon("a", &["reload"]).0 == 0);
    site.wait_until("the export is gone", || !exports(&site).contains("noop%5Bx%5D"));
    assert!(exports(&site).contains("noop%5By%5D"));
}

/// Wrong collections are refused at load, each with its place.
#[test]
fn dangerous_collections_are_refused() {
    let site = Site::with_file();
    for (collect, words) in [
        ("{kind: exec, fields: [cmd]}", "would take an object"),
        ("{kind: file, fields: [path, content]}", "only with `below`"),
        ("{kind: file, fields: [content]}", "the collector sets the place"),
        ("{kind: file, fields: [mode], below: /x}", "cannot come from another host"),
        ("{kind: user, fields: [shell]}", "would take an object"),
        ("{kind: user, set: {name: a}, fields: [shell]}", "cannot come from another host"),
        ("{kind: line, fields: [file, line], set: {path: /x}}", "cannot come from another host"),
        ("{kind: line, fields: [line]}", "the collector sets the place"),
        ("{kind: file, fields: [dirname], below: /x}", "cannot come from another host"),
        ("{kind: file, fields: [fragments], below: /x}", "cannot come from another host"),
        ("{kind: kv, set: {name: a}, fields: [key]}", "cannot come from another host"),
        ("{kind: nofile, fields: []}", "unknown kind"),
        ("{kind: file, fields: [contents], below: /x}", "has no field"),
        ("{kind: file, below: x}", "should be an absolute path"),
        ("{fields: [x]}", "needs `kind`"),
    ] {
        let graph = format!("graph: g\ncollect:\n- {collect}\nresources: {{}}\n");
        site.graph("a", &graph);
        let (code, text) = site.ask("a", &["check", "--allow-empty"]);
        let (code, text) = if code == 64 { site.ask("a", &["check"]) } else { (code, text) };
        assert_eq!(code, 65, "{collect}: {text}");
        assert!(text.contains(words), "{collect}: {text}");
        assert!(text.contains("graph.yaml:"), "{text}");
    }
}

const NAMES: &str = "graph: g\nresources:\n  noop:\n  - {name: y, export: true}\n";

/// `on_remove: delete` of a collection is the consent: a withdrawn export takes its object along without a reload.
#[test]
fn a_withdrawn_export_removes_its_object_with_consent() {
    let mut site = Site::with_file();
    let offers = |names: &str| {
        let each = names
            .split(' ')
            .map(|it| format!("  - {{name: {it}, export: true, path: /x/{it}, content: {it}}}\n"));
        let mut text = "graph: g\nresources:\n  file:\n".to_owned();
        text.extend(each);
        text
    };
    site.graph("a", &offers("one two"));
    site.graph(
        "b",
        "graph: g\ncollect:\n\
         - {kind: file, fields: [path, content], below: $DIR/gone, meta: {on_remove: delete}}\n\
         resources:\n  file: [{name: gone, path: $DIR/gone/, state: exists}]\n",
    );
    site.graph(
        "c",
        "graph: g\ncollect:\n- {kind: file, fields: [path, content], below: $DIR/kept}\n\
         resources:\n  file: [{name: kept, path: $DIR/kept/, state: exists}]\n",
    );
    for host in ["a", "b", "c"] {
        site.start(host);
    }
    site.wait_for_file("b/gone/one", "one");
    site.wait_for_file("b/gone/two", "two");
    site.wait_for_file("c/kept/one", "one");
    // A start that knows no exports any more removes nothing.
    site.kill("b");
    std::fs::remove_file(site.path("b/state/world-exports.json")).unwrap();
    site.start("b");
    site.wait_until("the daemon answers", || site.ask_daemon("b", &["status"]).0 == 0);
    assert_eq!(
        (site.read("b/gone/one").as_str(), site.read("b/gone/two").as_str()),
        ("one", "two")
    );
    site.graph("a", &offers("two"));
    site.wait_until("the reload is done", || site.ask_daemon("a", &["reload"]).0 == 0);
    site.wait_until("the object is removed", || !site.path("b/gone/one").exists());
    assert_eq!(site.read("b/gone/two"), "two");
    site.wait_until("the collected resource is forgotten", || {
        site.ask_daemon("c", &["show", "@a/file[one]"]).0 != 0
    });
    assert_eq!(site.read("c/kept/one"), "one", "without `on_remove` the object stays");
}

/// A forgotten host that is started again is collected again, and counts as part of the fleet until it is forgotten.
#[test]
fn a_forgotten_host_returns() {
    let mut site = Site::with_file();
    site.graph("a", NAMES);
    site.graph("b", "graph: g\ncollect: [{kind: noop}]\nresources: {noop: [{name: x}]}\n");
    site.start("a");
    site.start("b");
    let is_there = |site: &Site| site.ask_daemon("b", &["show", "@a/noop[y]"]).0 == 0;
    site.wait_until("the export is collected", || is_there(&site));
    site.kill("a");
    site.wait_until("the host is lost", || site.ask("b", &["fleet"]).1.contains("a: lost"));
    assert_eq!(site.ask("b", &["fleet"]).0, 1, "a lost host is a failure");
    site.wait_until("the host is forgotten", || site.ask("b", &["world", "forget", "a"]).0 == 0);
    site.wait_until("the export is gone", || !is_there(&site));
    assert!(!site.ask("b", &["fleet"]).1.contains("a:"));
    site.start("a");
    site.wait_until("the export is collected again", || is_there(&site));
    let (code, text) =
        site.ask("b", &["fleet", "wait", "--generation", "x", "--hosts", "z*", "--timeout", "1s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no host matches `z*`"), "{text}");
}

/// With `splay` a host takes over a change of a collection after a delay of its own; other collections do not wait.
/// The exports that are there at a start do not wait, and `steadfast reload --yes` ends the delay.
#[test]
fn a_splay_delays_changes_of_a_collection() {
    let mut site = Site::with_file();
    let exporter = |word: &str| EXPORTER.replace("from $HOST", word).replace("AAAA", word);
    site.graph("a", &exporter("one"));
    site.write("a/own", "");
    let spread = "from: [\"a\", \"b\"], splay: 1h";
    site.graph("c", &collector("c").replace("from: [\"a\", \"b\"]", spread));
    site.start("a");
    // The key of the file may be written long after its line: an export that comes after the first view of `c` waits.
    site.wait_until("both are exported", || {
        let text = site.ask("a", &["world", "list", "exports/"]).1;
        text.contains("ssh-ed25519 one") && text.contains("banner-a")
    });
    site.start("c");
    site.wait_for_file("c/known_hosts", "a ssh-ed25519 one\n");
    site.graph("a", &exporter("two"));
    // The delay of the host `c` in an hour is longer than this test.
    assert!(steadfast::world::splay::host_delay("c", 3600).as_secs() > 600);
    site.wait_for_file("c/banners/banner-a", "two");
    site.wait_until("the change waits", || {
        let words = "1 changes of collections wait for their delay";
        site.ask_daemon("c", &["workers"]).1.contains(words)
    });
    assert_eq!(site.read("c/known_hosts"), "a ssh-ed25519 one\n");
    let (code, text) = site.ask_daemon("c", &["reload", "--yes"]);
    assert_eq!(code, 0, "{text}");
    site.wait_until("the change is taken over", || {
        site.read("c/known_hosts").contains("a ssh-ed25519 two")
    });
    // Also the first change after a start waits.
    site.kill("c");
    site.start("c");
    site.wait_until("the world is known", || {
        site.ask_daemon("c", &["workers"]).1.contains("host c: up to date")
    });
    site.graph("a", &exporter("three"));
    site.wait_for_file("c/banners/banner-a", "three");
    assert!(!site.read("c/known_hosts").contains("three"));
}

/// A change of a collection that waits for its splay is taken over although the worker of the world ends meanwhile.
#[test]
fn a_waiting_change_survives_the_worker_of_the_world() {
    let mut site = Site::with_file();
    let exporter = |word: &str| EXPORTER.replace("from $HOST", word).replace("AAAA", word);
    let delay = |splay: u64| steadfast::world::splay::host_delay("c", splay).as_secs();
    let splay = (20..600).find(|it| (15..20).contains(&delay(*it))).expect("a splay");
    site.graph("a", &exporter("one"));
    site.write("a/own", "");
    let spread = format!("from: [\"a\", \"b\"], splay: {splay}s");
    site.graph("c", &collector("c").replace("from: [\"a\", \"b\"]", &spread));
    site.start("a");
    site.wait_until("the line is exported", || {
        site.ask("a", &["world", "list", "exports/"]).1.contains("ssh-ed25519 one")
    });
    site.start("c");
    site.wait_for_file("c/known_hosts", "a ssh-ed25519 one\n");
    let workers = |site: &Site| site.ask_daemon("c", &["workers"]).1;
    site.graph("a", &exporter("two"));
    let words = "1 changes of collections wait for their delay";
    site.wait_until("the change waits", || workers(&site).contains(words));
    site.break_worker("c", "world");
    site.wait_until("the worker runs again", || site.read("c/log").contains("a fault was put"));
    site.wait_until("the change is taken over", || {
        site.read("c/known_hosts").contains("a ssh-ed25519 two")
    });
    assert!(workers(&site).contains("host c: up to date"), "{}", workers(&site));
}
