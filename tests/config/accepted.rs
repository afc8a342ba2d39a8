//! Accepted graphs and the result of loading them.

use crate::{Files, edges, good, load, load_under, words};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use steadfast::config::{self, Options, RESERVED};
use steadfast_engine::{Conflict, Meta, Pace, Poll, SemaphoreId, WindowId};

fn meta(text: &str) -> Meta {
    let graph = format!("graph: g\nresources: {{noop: [{{name: a, meta: {{{text}}}}}]}}\n");
    Meta::clone(&good(&graph).vertices[0].meta)
}

#[test]
fn a_whole_graph() {
    let text = "\
---
graph: web
comment: what it is for
resources:
  noop:
    - name: start
  file:
    - name: motd
      path: /etc/motd
      content: |
        Welcome
      mode: 0644
      meta: { limit: 2, burst: 3, retry: -1, delay: 500, sema: [\"disk:2\"] }
      after: noop[start]
  exec:
    - name: reload
      cmd: true
      args: [a, 1, yes]
      env: {A: 1, B: \"\"}
      subscribe: [\"file[motd]\"]
edges:
- name: e1
  from:
    kind: noop
    name: start
  to:
    kind: exec
    name: reload
";
    let loaded = good(text);
    assert_eq!((loaded.name.as_str(), loaded.comment.as_deref()), ("web", Some("what it is for")));
    let names: Vec<_> = loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect();
    assert_eq!(names, ["noop[start]", "file[motd]", "exec[reload]"]);
    assert_eq!(
        edges(&loaded),
        ["noop[start] -> file[motd]", "noop[start] -> exec[reload]", "file[motd] => exec[reload]"]
    );
    let meta = &loaded.vertices[1].meta;
    assert_eq!(meta.pace, Some(Pace { period_ns: 500_000_000, burst: 3 }));
    assert_eq!((meta.retry, meta.delay), (None, Duration::from_millis(500)));
    assert_eq!(meta.semaphores, [SemaphoreId(0)]);
    assert_eq!(loaded.semaphores, [("disk".to_owned(), 2)]);
    let lines: Vec<_> = loaded.vertices.iter().map(|vertex| vertex.place).collect();
    assert_eq!(lines, [(0, 6), (0, 8), (0, 16)]);
    assert_eq!(loaded.text_bytes, text.len());
    let fields = format!("{:?}", loaded.vertices[2].resource);
    assert_eq!(
        fields,
        "Remembered { fields: Fields({\"args\": Texts([\"a\", \"1\", \"yes\"]), \"cmd\": Text(\"true\"), \
         \"env\": TextMap([(\"A\", \"1\"), (\"B\", \"\")])}), path: None, is_closed: false, below: None }"
    );
}

/// Issue 2, point 4: the empty forms of `edges` in mgmt's graphs load.
#[test]
fn graphs_of_mgmt_load() {
    for edges in ["edges: []\n", "edges:\n", "edges: null\n", "edges: ~\n", ""] {
        good(&format!("graph: g\nresources:\n  noop:\n  - name: a\n{edges}"));
    }
    for resources in ["", "resources:\n", "resources: {}\n", "resources: {noop: }\n"] {
        assert!(good(&format!("graph: g\n{resources}")).vertices.is_empty());
    }
    assert_eq!(meta("limit: .inf, burst: 0").pace, None);
    assert_eq!(meta("limit: .inf").pace, None);
    assert_eq!(meta("burst: 7").pace, None);
    assert_eq!(meta("limit: 0.2").pace, Some(Pace { period_ns: 5_000_000_000, burst: 1 }));
    assert_eq!(
        meta("limit: 0.2, burst: 5").pace,
        Some(Pace { period_ns: 5_000_000_000, burst: 5 })
    );
    assert_eq!(meta("limit: 1e12").pace, Some(Pace { period_ns: 1, burst: 1 }));
}

/// S-10: modes, numeric owners and versions stay as written, quoted or not.
#[test]
fn texts_stay_as_written() {
    for text in ["0741", "644", "0o644", "1e3", "NO", "yes", "1.10", "0x1F", "1_000", "12:30"] {
        for written in [text.to_owned(), format!("\"{text}\""), format!("'{text}'")] {
            let graph =
                format!("graph: g\nresources:\n  file:\n  - name: a\n    owner: {written}\n");
            let loaded = good(&graph);
            let seen = format!("{:?}", loaded.vertices[0].resource);
            assert!(seen.contains(&format!("Text(\"{text}\")")), "{written}: {seen}");
        }
    }
}

#[test]
fn every_metaparameter() {
    assert_eq!(meta(""), Meta::default());
    let all = meta(
        "noop: true, retry: 3, retryreset: false, delay: 250, delay_max: 5000, timeout: 9, poll: 60, \
         sema: [\"a:2\", \"b\", \":13\"], reset: true, rewatch: false, autoedge: false, autogroup: false, \
         realize: true, on_conflict: win, on_remove: forget, protect: false, \
         when_allowed: \"Mon..Fri 22:00-05:00, Sat\"",
    );
    let expected = Meta {
        noop: true,
        planned: false,
        retry: Some(3),
        retryreset: false,
        delay: Duration::from_millis(250),
        delay_max: Duration::from_secs(5),
        timeout: Some(Duration::from_millis(9)),
        poll: Poll::Every(Duration::from_mins(1)),
        pace: None,
        semaphores: vec![SemaphoreId(0), SemaphoreId(1), SemaphoreId(2)],
        reset: true,
        on_conflict: Conflict::Win,
        window: Some(WindowId(0)),
        realize: true,
    };
    assert_eq!(all, expected);
    assert_eq!(meta("on_conflict: yield").on_conflict, Conflict::Yield);
    let usual = "on_conflict: backoff, when_allowed: always, realize: false, protect: false";
    assert_eq!(meta(usual), Meta::default());
    assert_eq!(meta("poll: -1").poll, Poll::Once);
    assert_eq!(meta("timeout: 0").timeout, None);
    assert_eq!(meta("retry: -1").retry, None);
    assert_eq!(meta("delay: 0").delay, Meta::SHORTEST_DELAY);
    assert_eq!(meta("delay: 90000").delay_max, Duration::from_secs(90));
}

/// B-16, B-18: `protect`, `on_remove` and `aliases` are loaded; an alias has the definition under the old name.
#[test]
fn leaving_and_former_names() {
    let loaded = good(
        "graph: g\nresources:\n  exec:\n  - {name: a, cmd: x, aliases: [b, c], meta: {protect: true}}\n  \
         - {name: d, cmd: x}\n",
    );
    let [a, d] = &loaded.vertices[..] else { panic!("two") };
    assert!(a.protect && !a.delete && !d.protect && d.aliases.is_empty());
    let names: Vec<&str> = a.aliases.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(names, ["exec[b]", "exec[c]"]);
    let before = good("graph: g\nresources:\n  exec:\n  - {name: b, cmd: x}\n");
    assert_eq!(a.aliases[0].1, before.vertices[0].definition);
    assert_ne!(a.definition, before.vertices[0].definition);
}

/// Maintenance windows are numbered, and equal times share one number.
#[test]
fn windows_are_numbered() {
    let loaded = good(
        "graph: g\nresources:\n  noop:\n  - {name: a, meta: {when_allowed: Sat}}\n  \
         - {name: b, meta: {when_allowed: '22:00-05:00'}}\n  \
         - {name: c, meta: {when_allowed: sat 0:00-24:00}}\n  - {name: d}\n",
    );
    let windows: Vec<_> = loaded.vertices.iter().map(|vertex| vertex.meta.window).collect();
    assert_eq!(windows, [Some(WindowId(0)), Some(WindowId(1)), Some(WindowId(0)), None]);
    let (text, window) = &loaded.windows[0];
    assert_eq!((text.as_str(), loaded.windows.len()), ("Sat", 2));
    assert!(window.is_open(5, 0) && !window.is_open(6, 0));
}

#[test]
fn equal_metaparameters_are_shared() {
    let loaded = good(
        "graph: g\nresources:\n  noop:\n  - {name: a, meta: {retry: 1}}\n  - {name: b, meta: {retry: 1}}\n  \
         - {name: c}\n  - {name: d, meta: {retry: 0}}\n",
    );
    let meta: Vec<_> = loaded.vertices.iter().map(|vertex| &vertex.meta).collect();
    assert!(Arc::ptr_eq(meta[0], meta[1]) && Arc::ptr_eq(meta[2], meta[3]));
}

#[test]
fn command_line_metaparameters() {
    let text = "graph: g\nresources: {noop: [{name: a, meta: {sema: [\"x:1\"]}}, {name: b}]}\n";
    let options = Options { noop: true, semaphore: Some(2), ..crate::options() };
    let loaded = load_under(text, &options).unwrap();
    crate::into_engine(&loaded);
    assert_eq!(loaded.semaphores, [(RESERVED.to_owned(), 2), ("x".to_owned(), 1)]);
    assert_eq!(loaded.vertices[0].meta.semaphores, [SemaphoreId(0), SemaphoreId(1)]);
    assert_eq!(loaded.vertices[1].meta.semaphores, [SemaphoreId(0)]);
    assert!(loaded.vertices.iter().all(|vertex| vertex.meta.noop));
}

fn definition(fields: &str) -> u64 {
    let text = format!("graph: g\nresources: {{file: [{{name: a, {fields}}}]}}\n");
    good(&text).vertices[0].definition
}

#[test]
fn definitions_are_stable() {
    // A literal: another value would make every host run its commands again.
    assert_eq!(definition("content: x, mode: 0644"), DEFINITION);
    assert_eq!(definition("mode: 0644, content: x"), DEFINITION);
    assert_eq!(definition("mode: \"0644\", content: x, owner: ~, meta: {noop: true}"), DEFINITION);
    assert_ne!(definition("content: x, mode: 0645"), DEFINITION);
    assert_ne!(definition("content: x, owner: 0644"), DEFINITION);
    assert_ne!(definition("source: x"), definition("source: x"), "relative to another folder");
    assert_eq!(definition("source: /x"), definition("source: /x"));
}

/// A10: the innermost closed directory above a resource is part of its definition.
#[test]
fn a_closed_directory_is_passed_to_the_resources_below() {
    let tree = |owner: &str| {
        let text = format!(
            "graph: g\nresources:\n  file:\n  - {{name: /d/, mode: 0700, owner: {owner}}}\n  \
             - {{name: /d/open/, mode: 0711}}\n  - {{name: /d/open/f}}\n  \
             - {{name: /d/open/e/, mode: 0700}}\n  - {{name: /d/open/e/f}}\n  - {{name: /dd}}\n"
        );
        good(&text)
    };
    let (bobs, carols) = (tree("bob"), tree("carol"));
    let above = |vertex: usize| {
        let resource = format!("{:?}", bobs.vertices[vertex].resource);
        let (_, below) = resource.split_once("below: ").unwrap();
        below.trim_end_matches(" }").to_owned()
    };
    let of_bob = "Some(ClosedDirectory { path: \"/d/\", owner: Some(\"bob\") })";
    assert_eq!([0, 1, 2, 3, 5].map(above), ["None", of_bob, of_bob, of_bob, "None"]);
    assert_eq!(above(4), "Some(ClosedDirectory { path: \"/d/open/e/\", owner: None })");
    let is_same = |it: usize| bobs.vertices[it].definition == carols.vertices[it].definition;
    assert_eq!([1, 2, 3, 4, 5].map(is_same), [false, false, false, true, true]);
}

const DEFINITION: u64 = 10_809_110_349_562_998_710;

#[test]
fn several_files_are_one_graph() {
    let files = Files::new()
        .with("10-a.yaml", "graph: g\nresources: {noop: [{name: a}]}\n")
        .with("20-b.yml", "resources: {noop: [{name: b, after: \"noop[a]\"}]}\n")
        .with("notes.txt", "nothing")
        .with(".hidden.yaml", "nothing");
    let loaded = files.load(&[""], &crate::options()).unwrap();
    assert_eq!(edges(&loaded), ["noop[a] -> noop[b]"]);
    assert_eq!(loaded.vertices[1].place, (1, 1));
    assert_eq!(loaded.files, [files.path("10-a.yaml"), files.path("20-b.yml")]);
    let again = files.load(&["20-b.yml", "", "10-a.yaml"], &crate::options()).unwrap();
    assert_eq!(edges(&again), ["noop[a] -> noop[b]"]);
    assert_ne!(loaded.hash, again.hash);
    assert_eq!(loaded.vertices[0].definition, again.vertices[1].definition);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_load() {
    let loaded = load(
        "\u{feff}graph: g\r\nresources:\r\n  file:\r\n  - name: a\r\n    content: |\r\n      x\r\n",
    );
    let loaded = loaded.unwrap();
    assert!(format!("{:?}", loaded.vertices[0].resource).contains("Text(\"x\\n\")"));
}

#[test]
fn aliases_load_within_bounds() {
    let text = "graph: g\nresources:\n  file:\n  - {name: a, meta: &m {retry: 1}}\n  - {name: b, meta: *m}\n";
    assert_eq!(good(text).vertices[1].meta.retry, Some(1));
}

/// Issue 2, point 4: obsolete keys give one warning for each field and kind.
#[test]
fn old_keys_warn_once() {
    let text = "graph: g
resources:
  exec:
  - {name: a, cmd: x, pollint: 0, state: present}
  - {name: b, cmd: x, pollint: 0, state: present}
";
    assert_eq!(good(text).vertices.len(), 2);
    let expected = "\
graph.yaml:4:23: warning: `pollint` of exec has no effect [C901]
   4 |   - {name: a, cmd: x, pollint: 0, state: present}
     |                       ^^^^^^^
  hint: commands are watched, never polled
graph.yaml:4:35: warning: `state` of exec has no effect [C901]
   4 |   - {name: a, cmd: x, pollint: 0, state: present}
     |                                   ^^^^^
  hint: an exec has no state
";
    assert_eq!(words(text), expected);
}

/// Likely mistakes give warnings: for instance shell syntax in a command without a shell. Uses the kinds of this
/// build.
#[test]
fn likely_mistakes_give_warnings() {
    let files = Files::new().with(
        "graph.yaml",
        "graph: g
resources:
  exec:
  - {name: a, cmd: 'echo x > /tmp/x'}
  - {name: b, cmd: 'echo x > /tmp/x', shell: /bin/sh}
  - {name: c, cmd: echo, args: [x, '>', /tmp/x]}
",
    );
    let loaded = config::load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    let said: Vec<String> = loaded.warnings.iter().map(config::Problem::with_source).collect();
    let expected =
        "graph.yaml:4:20: warning: exec[a]: `cmd` is not run by a shell: `>` is passed literally [C902]
   4 |   - {name: a, cmd: 'echo x > /tmp/x'}
     |                    ^^^^^^^^^^^^^^^^^
  hint: add `shell: /bin/sh`, or put the words into `args`
";
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].ends_with(expected), "{}", said[0]);
}

/// Two files that copy each other do not make a cycle: one automatic edge is left out with a warning.
#[test]
fn an_automatic_edge_never_makes_a_cycle() {
    let text = "graph: g\nresources:\n  file:\n  - {name: a, path: /a/x, source: /b/x}\n  - {name: b, path: /b/x, source: /a/x}\n";
    let files = Files::new().with("graph.yaml", text);
    let path = [files.path("graph.yaml")];
    let loaded = config::load(&path, &crate::options()).unwrap();
    assert_eq!(loaded.edges.len(), 1);
    let said: Vec<String> = loaded.warnings.iter().map(config::Problem::with_source).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(
            "`file[b]` waits for `file[a]`: the opposite automatic edge was omitted [C903]"
        ),
        "{said:?}"
    );
}

/// Packages may come from any repository, so all of them come first, unless `autoedge: false` says otherwise.
#[test]
fn packages_follow_every_repository() {
    let text = "graph: g\nresources:\n  pkg:\n  - name: aa\n  - {name: bb, state: absent}\n  - {name: cc, meta: {autoedge: false}}\n  repo:\n  - {name: x, uris: ['http://h/'], suites: [./]}\n  - {name: y, uris: ['http://h/'], suites: [z/]}\n";
    let files = Files::new().with("graph.yaml", text);
    let loaded = config::load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    assert_eq!(edges(&loaded), ["repo[x] -> pkg[aa]", "repo[y] -> pkg[aa]"]);
}

/// A mount waits for the mount above it; an account for access lists, and a package for the kinds that need its
/// program, come first.
#[test]
fn mounts_accounts_and_programs_come_first() {
    let text = "graph: g
resources:
  mount:
  - {name: /srv, device: tmpfs, type: tmpfs}
  - {name: /srv/a, device: tmpfs, type: tmpfs}
  - {name: /srv/a/b, device: tmpfs, type: tmpfs}
  exec: [{name: made, cmd: /bin/true, creates: /srv/a/b/x}]
  user: [{name: eve}]
  file: [{name: /opt/f, content: x, acl: ['user:eve:r--']}]
  pkg: [git, curl, nginx]
  git: [{name: /opt/tree, repo: 'https://h/r.git'}]
  fetch: [{name: /opt/got, url: 'https://h/f', checksum: 'sha256:0000000000000000000000000000000000000000000000000000000000000000'}]
  probe: [{name: version, builtin: package_version, of: nginx}]
";
    let files = Files::new().with("graph.yaml", text);
    let loaded = config::load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    let expected = [
        "mount[/srv/a/b] -> exec[made]",
        "mount[/srv/a] -> mount[/srv/a/b]",
        "mount[/srv] -> mount[/srv/a]",
        "pkg[curl] -> fetch[/opt/got]",
        "pkg[git] -> git[/opt/tree]",
        "pkg[nginx] -> probe[version]",
        "user[eve] -> file[/opt/f]",
    ];
    let mut found = edges(&loaded);
    found.sort();
    assert_eq!(found, expected);
}

/// A chain of files whose last one runs before their directory: thousands of edges are left out with a few warnings.
#[test]
fn thousands_of_edges_left_out_are_a_few_warnings() {
    let files = 3000;
    let mut text = String::from("graph: g\nresources:\n  file:\n  - {name: f0, path: /d/f0}\n");
    for at in 1..files {
        let before = at - 1;
        writeln!(text, "  - {{name: f{at}, path: /d/f{at}, after: \"file[f{before}]\"}}").unwrap();
    }
    writeln!(text, "  - {{name: d, path: /d/, after: \"file[f{}]\"}}", files - 1).unwrap();
    let files = Files::new().with("graph.yaml", &text);
    let loaded = config::load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    assert_eq!(loaded.edges.len(), 3000, "those that are written, and no other");
    let said: Vec<String> = loaded.warnings.iter().map(config::Problem::with_source).collect();
    assert_eq!(said.len(), 21, "{said:?}");
    let more = said.iter().filter(|s| s.contains("2980 more automatic edges were omitted")).count();
    assert_eq!(more, 1, "{said:?}");
}

/// Absent objects go in the order in which the host lets them go: users before groups, a mount before its directory.
#[test]
fn absent_objects_have_an_order() {
    let text = "graph: g\nresources:\n  group:\n  - {name: staff2, state: absent}\n  user:\n  - {name: alice, state: absent}\n  file:\n  - {name: /mnt/x/, state: absent}\n  mount:\n  - {name: /mnt/x, state: absent}\n";
    let found = edges(&crate::language::accepted(&[("web.yaml", text)]));
    for (from, to) in [("user[alice]", "group[staff2]"), ("mount[/mnt/x]", "file[/mnt/x/]")] {
        assert!(found.iter().any(|edge| edge.starts_with(from) && edge.ends_with(to)), "{found:?}");
    }
}

/// The ends of an edge are texts, as in `after`, or maps.
#[test]
fn the_ends_of_an_edge_are_texts_or_maps() {
    let text = |from: &str, to: &str| {
        format!(
            "graph: g\nresources:\n  noop: [{{name: a}}, {{name: 'b]c'}}]\nedges:\n- {{from: {from}, to: {to}, notify: true}}\n"
        )
    };
    let maps = edges(&good(&text("{kind: noop, name: a}", "{kind: noop, name: 'b]c'}")));
    assert_eq!(maps.len(), 1);
    assert_eq!(edges(&good(&text("'noop[a]'", "'noop[b]c]'"))), maps);
    assert_eq!(edges(&good(&text("'noop[a]'", "{kind: noop, name: 'b]c'}"))), maps);
}
