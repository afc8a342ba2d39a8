//! Automatic edges: their reasons, the ones left out, and their effect on the order of runs.

use crate::host::Host;

/// A service with all its dependencies, in the wrong order and without a declared edge.
const STACK: &str = r#"graph: stack
resources:
  svc:
  - {name: web, state: running}
  - {name: worker@one, state: running}
  exec:
  - {name: build, args: [$DIR/bin/build, x], cwd: $DIR/site, creates: $DIR/site/made, watchfiles: $DIR/site/conf/}
  file:
  - {name: made, path: $DIR/site/conf/deep/a, content: x}
  - {name: copy, path: $DIR/copy, source: $DIR/site/conf/deep/a}
  - {name: tree, path: $DIR/tree/, source: $DIR/site/conf/, recurse: true}
  - {name: joined, path: $DIR/joined, fragments: [$DIR/site/conf/]}
  - {name: builder, path: $DIR/bin/build, content: x, mode: 0755}
  - {name: conf, path: $DIR/site/conf/}
  - {name: site, path: $DIR/site/}
  - {name: bin, path: $DIR/bin/}
  - {name: unit, path: /etc/systemd/system/web.service, content: "[Service]\n"}
  - {name: drop-in, path: /run/systemd/system/web.service.d/x.conf, content: "[Service]\n"}
  - {name: template, path: /etc/systemd/system/worker@.service, content: "[Service]\n"}
  - {name: aside, path: $DIR/site/aside, content: x, meta: {autoedge: false}}
"#;

#[test]
fn every_sort_of_edge_is_made_and_explained() {
    let shown = Host::with(STACK).ask(&["graph"]);
    let edges: Vec<&str> =
        shown.exits(0).stdout.lines().filter(|line| line.contains(" -> ")).map(str::trim).collect();
    let mut expected = vec![
        "file[made] -> file[copy]: automatic: its source",
        "file[made] -> file[tree]: automatic: its source",
        "file[conf] -> file[tree]: automatic: its source",
        "file[made] -> file[joined]: automatic: its fragments",
        "file[conf] -> file[joined]: automatic: its fragments",
        "file[conf] -> file[made]: automatic: its directory",
        "file[site] -> file[conf]: automatic: its directory",
        "file[bin] -> file[builder]: automatic: its directory",
        "file[builder] -> exec[build]: automatic: contains the command",
        "file[site] -> exec[build]: automatic: is the working directory",
        "file[conf] -> exec[build]: automatic: is watched",
        "file[made] -> exec[build]: automatic: is watched",
        "file[unit] -> svc[web]: automatic: defines the unit",
        "file[drop-in] -> svc[web]: automatic: defines the unit",
        "file[template] -> svc[worker@one]: automatic: defines the unit",
    ];
    let mut edges = edges;
    edges.sort_unstable();
    expected.sort_unstable();
    assert_eq!(edges, expected);
}

/// A relative command is found from its working directory.
#[test]
fn a_command_is_found_from_where_it_runs() {
    let host = Host::with(
        r"graph: g
resources:
  exec:
  - {name: own, cmd: ./bin/own, cwd: $DIR/site}
  - {name: shell, shell: /bin/sh, cmd: bin/own x, cwd: $DIR/site}
  - {name: path, cmd: own, cwd: $DIR/site}
  file:
  - {name: own, path: $DIR/site/bin/own, content: x, mode: 0755}
",
    );
    let shown = host.ask(&["graph"]);
    for name in ["own", "shell"] {
        let edge = format!("file[own] -> exec[{name}]: automatic: contains the command");
        shown.exits(0).prints(&edge);
    }
    shown.prints_nothing_of("exec[path]: automatic: contains");
}

/// The file of a secret, and the resource that supplies it, run before the receiver.
#[test]
fn the_supplier_of_a_secret_runs_first() {
    let host = Host::with(
        r##"graph: g
secrets: {held: {file: $DIR/deep/secret}, told: {command: [$DIR/deep/tell]}}
resources:
  exec:
  - {name: held, cmd: 'test "$S" = held', shell: /bin/sh, env: {S: {secret: held}}}
  file:
  - {name: got, path: $DIR/got, content: {secret: told}}
  - {name: secret, path: $DIR/deep/secret, content: held, mode: 0600}
  - {name: tell, path: $DIR/deep/tell, content: "#!/bin/sh\necho told\n", mode: 0755}
  - {name: deep, path: $DIR/deep/, mode: 0755}
"##,
    );
    let shown = host.ask(&["graph"]);
    shown.exits(0).prints("file[secret] -> exec[held]: automatic: holds a secret of this resource");
    shown.prints("file[tell] -> file[got]: automatic: supplies a secret of this resource");
    host.apply().exits(0);
    assert_eq!(host.read("got"), "told");
}

/// A script runs before the command whose shell executes it, in each notation; an argument of another program makes
/// no edge.
#[test]
fn a_script_that_a_shell_runs_comes_first() {
    let graph = r#"graph: g
resources:
  exec:
  - {name: by-text, shell: /bin/sh, cmd: "$DIR/script --x >> $DIR/done"}
  - {name: by-words, cmd: "/bin/sh -e $DIR/script"}
  - {name: by-list, args: [/bin/bash, -euo, pipefail, -c, "$DIR/script"]}
  - {name: guarded, cmd: 'true', nifcmd: "$DIR/script | grep -q no", nifshell: /bin/sh}
  - {name: not-first, shell: /bin/sh, cmd: "true; $DIR/script"}
  - {name: touched, args: [test, -e, $DIR/script]}
  - {name: makes, shell: /bin/sh, cmd: "$DIR/script", before: "file[script]", meta: {noop: true}}
  file:
  - {name: script, path: $DIR/script, content: "echo ran
", mode: 0755}
"#;
    let host = Host::with(graph);
    let shown = host.ask(&["graph"]);
    let automatic = |line: &&str| line.contains("automatic");
    let mut edges: Vec<_> = shown.exits(0).stdout.lines().filter(automatic).collect();
    edges.sort_unstable();
    let expected = ["by-list", "by-text", "by-words", "guarded"]
        .map(|name| format!("file[script] -> exec[{name}]: automatic: contains the command"));
    assert_eq!(edges.iter().map(|edge| edge.trim()).collect::<Vec<_>>(), expected, "{shown}");
    assert!(shown.stdout.contains("exec[makes] -> file[script]: `before` at"), "{shown}");
}

#[test]
fn declared_edges_stay_and_refresh() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: $DIR/d/a, content: x, subscribe: 'file[$DIR/d/]'}\n  - {name: $DIR/d/}\n",
    );
    let shown = host.ask(&["graph"]);
    shown.exits(0).prints("1 edge").prints("file[$DIR/d/] => file[$DIR/d/a]: `subscribe` at");
    assert!(!shown.stdout.contains("automatic"), "{shown}");
}

#[test]
fn in_json_they_say_why() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: $DIR/d/a, content: x}\n  - {name: $DIR/d/}\n",
    );
    let json = host.ask(&["plan", "--json", "--explain-edges"]).exits(0).json();
    let origin = &json["edges"][0]["origins"][0];
    assert_eq!(origin["key"], "automatic");
    assert_eq!(origin["because"], "its directory");
}

#[test]
fn a_directory_comes_before_what_is_in_it() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: $DIR/a/b/c, content: x}\n  - {name: $DIR/a/b/}\n  - {name: $DIR/a/}\n",
    );
    host.apply().exits(0);
    assert_eq!(host.read("a/b/c"), "x");
}

/// A declared edge wins over an automatic one: the latter is left out with its reason and place, and the graph loads.
#[test]
fn none_makes_a_cycle() {
    let graph = "graph: g\nresources:\n  file:\n  - {name: $DIR/d/}\n  - {name: $DIR/d/run, content: x, mode: 0755}\n  exec:\n  - {name: make, args: [mkdir, -p, $DIR/d], creates: $DIR/d, before: 'file[$DIR/d/]', cwd: $DIR/d}\n";
    let host = Host::with(graph);
    let said = host.check();
    for words in [
        "waits for `exec[make]`: the opposite automatic edge was omitted [C903]",
        "(is the working directory); reverse the other edges, or set meta: { autoedge: false }",
    ] {
        assert!(said.exits(0).stderr.contains(words), "{said}");
    }
    let shown = host.ask(&["graph"]);
    shown.exits(0).prints("file[$DIR/d/] -> file[$DIR/d/run]: automatic: its directory");
    host.graph(&graph.replace(", cwd: $DIR/d", ", cwd: $DIR/d, meta: {autoedge: false}"));
    assert!(host.check().exits(0).stderr.is_empty());
}

/// A file in a home directory comes after the user whose creation makes the directory.
#[test]
fn a_home_comes_before_what_is_in_it() {
    let graph = "graph: g
resources:
  file:
  - {name: deep, path: /srv/own/conf/a, content: x}
  - {name: home, path: /srv/own/, mode: 0750}
  - {name: usual, path: /home/bob/.profile, content: x}
  - {name: beside, path: /srv/owner/a, content: x}
  - {name: above, path: /srv/, mode: 0755}
  - {name: unmanaged, path: /home/carol/a, content: x}
  user:
  - {name: eve, homedir: /srv/own, manage_home: true}
  - {name: bob, manage_home: true}
  - {name: carol}
";
    let shown = Host::with(graph).ask(&["graph"]);
    let is_home = |line: &&str| line.contains("automatic: ");
    let mut edges: Vec<_> = shown.exits(0).stdout.lines().filter(is_home).map(str::trim).collect();
    edges.sort_unstable();
    let expected = [
        "file[above] -> file[beside]: automatic: its directory",
        "file[above] -> file[home]: automatic: its directory",
        "file[above] -> user[eve]: automatic: contains the home directory",
        "file[home] -> file[deep]: automatic: its directory",
        "user[bob] -> file[usual]: automatic: brings the path",
        "user[eve] -> file[deep]: automatic: brings the path",
        "user[eve] -> file[home]: automatic: brings the path",
    ];
    assert_eq!(edges, expected, "{shown}");
}
