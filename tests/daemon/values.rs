//! Values between resources: sending, receiving, and their records over a restart.

use crate::host::Host;

/// A command whose output goes to a file and to another command, in each notation.
const GRAPH: &str = r#"graph: values
resources:
  exec:
  - {name: ask, args: [cat, $DIR/in], watchfiles: $DIR/in}
  - name: tell
    shell: /bin/sh
    cmd: 'printf "%s|%s|%s|" "$GREETING" "$1" "$2" >> $DIR/told; cat >> $DIR/told; echo >> $DIR/told'
    args: [first]
    recv:
      env.GREETING: "exec[ask].output"
      args.1: {from: "exec[ask]", key: exit}
      stdin: {template: "in=${a} port=${b}", values: {a: "exec[ask].stdout", b: "value[port].int"}}
  file:
  - {name: copy, path: $DIR/copy, recv: {content: "exec[ask].output"}}
  - name: joined
    path: $DIR/joined
    template: {text: "a={{ a }}\n"}
    values: {a: {from: "exec[ask]", key: output}}
  value:
  - {name: port, int: 80}
"#;

fn host(input: &str) -> Host {
    let host = Host::with(GRAPH);
    host.write("in", input);
    host
}

#[test]
fn values_go_into_every_sort_of_field() {
    let host = host("one two\n");
    host.apply().exits(0);
    assert_eq!(host.read("copy"), "one two");
    assert_eq!(host.read("joined"), "a=one two\n");
    assert_eq!(host.read("told"), "one two|first|0|in=one two port=80\n");
}

/// S-18: a value is data: no shell interprets its content.
#[test]
fn a_value_is_never_read_by_a_shell() {
    let host = host("$(touch $DIR/no); `touch $DIR/no` \"'; touch $DIR/no #\n");
    host.write("in", host.full("$(touch $DIR/no); `touch $DIR/no` \"'; touch $DIR/no #"));
    host.apply().exits(0);
    assert!(!host.exists("no"));
    assert_eq!(host.read("copy"), host.read("in"));
    assert!(host.read("told").starts_with(&host.read("in")));
}

#[test]
fn a_change_reaches_those_that_receive_it_and_nobody_else() {
    let host = host("one\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.write("in", "two\n");
    daemon.wait_for_all("changed", &["exec[ask]", "file[copy]", "file[joined]", "exec[tell]"]);
    daemon.wait_for("converged");
    assert_eq!((host.read("copy").as_str(), host.lines("told").len()), ("two", 2));
    // An equal value causes no change.
    host.write("in", "two\n");
    daemon.wait_for_of("changed", "exec[ask]");
    daemon.wait_for("converged");
    assert_eq!(host.lines("told").len(), 2);
    daemon.has_not_said("failed");
}

/// Values are stored: a restart runs nothing again, and a change made meanwhile is noticed by its hash.
#[test]
fn a_restart_makes_no_needless_change() {
    let host = host("one\n");
    host.apply().exits(0);
    let again = host.ask(&["apply", "--detailed-exitcode"]);
    again.exits(0);
    host.plan().exits(0).prints("0 resources to change");
    assert_eq!(host.lines("told").len(), 1);
    // The repair uses the stored value, without a run of the sender.
    host.write("copy", "drifted");
    host.ask(&["plan", "--only", "file[copy]"]).exits(0).prints("~ file[copy]");
    host.ask(&["apply", "--only", "file[copy]"]).exits(0);
    assert_eq!((host.read("copy").as_str(), host.lines("told").len()), ("one", 1));
}

/// R-12: a value whose receiver fails stays pending until a run with it succeeds, across a restart too.
#[test]
fn a_changed_value_stays_marked_until_a_run_with_it_succeeds() {
    let graph = r#"graph: g
resources:
  exec:
  - {name: ask, args: [cat, $DIR/in], watchfiles: $DIR/in}
  - name: tell
    args: [sh, -c, 'test -e $DIR/ok && echo "$V" >> $DIR/told']
    recv: {env.V: "exec[ask].output"}
"#;
    let host = Host::with(graph);
    host.write("in", "one\n").write("ok", "");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.remove("ok").write("in", "two\n");
    daemon.wait_for_of("failed", "exec[tell]");
    // The failed run has not lost the value: the next attempt uses it.
    host.write("ok", "").write("in", "three\n");
    daemon.wait_for_of("changed", "exec[tell]");
    daemon.wait_for("converged");
    assert_eq!(host.lines("told"), ["one", "three"]);
    host.remove("ok").write("in", "four\n");
    daemon.wait_for_of("failed", "exec[tell]");
    daemon.kill();
    host.write("ok", "");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.lines("told"), ["one", "three", "four"]);
    drop(daemon);
    host.apply().exits(0);
    assert_eq!(host.lines("told").len(), 3);
}

#[test]
fn unsent_values_are_unknown() {
    let host = Host::with(
        "graph: g\nresources:\n  exec:\n  - {name: ask, args: [echo, x]}\n  file:\n  - {name: $DIR/f, recv: {content: 'exec[ask].output'}}\n  password:\n  - {name: p}\n  test:\n  - {name: t, recv: {text: 'password[p].password'}}\n",
    );
    host.plan()
        .exits(0)
        .prints("~ exec[ask]")
        .prints("! file[$DIR/f]: unknown until exec[ask] is changed")
        .prints("    password: not shown, new")
        .prints("! test[t]: unknown until password[p] is changed");
    host.apply().exits(0);
    host.plan().exits(0).prints("0 resources to change");
}

#[test]
fn a_receiver_that_comes_later_gets_the_value_too() {
    let graph = "graph: g\nresources:\n  exec:\n  - {name: ask, args: [sh, -c, 'echo x >> $DIR/asked; echo y']}\n  value:\n  - {name: v, text: z}\n";
    let more = "  file:\n  - {name: $DIR/f, template: {text: '{{ a }}{{ b }}'}, values: {a: 'exec[ask].output', b: 'value[v].text'}}\n";
    let host = Host::with(graph);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.graph(&format!("{graph}{more}"));
    daemon.wait_for_of("changed", "file[$DIR/f]");
    daemon.wait_for("converged");
    assert_eq!(host.read("f"), "yz");
    drop(daemon);
    // Another command sends now, without any stored value.
    let host = Host::with(graph);
    host.apply().exits(0);
    host.graph(&format!("{graph}{more}"));
    host.apply().exits(0);
    assert_eq!(host.read("f"), "yz");
}

#[test]
fn an_invalid_value_is_a_failed_run() {
    let host = Host::with(
        "graph: g\nresources:\n  exec:\n  - {name: ask, args: [printf, 'a\\0b']}\n  - {name: tell, args: ['true'], recv: {env.V: 'exec[ask].output'}}\n",
    );
    host.apply().exits(1).prints("the received value is invalid for `env`");
}

/// A value too long to be stored was still sent: its receiver says so, and the sender does not run again for it.
#[test]
fn a_sender_of_too_long_output_is_not_run_again() {
    let graph = |count: &str| {
        format!(
            r#"graph: g
resources:
  exec:
  - {{name: ask, shell: /bin/sh, cmd: 'echo x >> $DIR/asked; head -c {count} /dev/zero | tr "\0" y; echo e >&2'}}
  - {{name: tell, shell: /bin/sh, cmd: 'wc -c > $DIR/told', recv: {{stdin: "exec[ask].stdout"}}}}
  - {{name: all, shell: /bin/sh, cmd: 'wc -c > $DIR/all', recv: {{stdin: "exec[ask].output"}}}}
  file:
  - {{name: $DIR/stderr, recv: {{content: "exec[ask].stderr"}}}}
  - {{name: $DIR/exit, recv: {{content: "exec[ask].exit"}}}}
"#
        )
    };
    let host = Host::with(&graph("1048577"));
    for _ in 0..2 {
        let applied = host.apply();
        applied.exits(1);
        applied.prints("exec[ask]: stdout exceeded 1 MiB and was not stored");
        applied.prints("exec[ask]: output exceeded 1 MiB and was not stored");
        assert_eq!(host.lines("asked").len(), 1, "{applied}");
    }
    let daemon = host.run(&[]);
    daemon.wait_for_all("failed", &["exec[tell]", "exec[all]"]);
    drop(daemon);
    assert_eq!(host.lines("asked").len(), 1);
    assert_eq!((host.read("stderr").as_str(), host.read("exit").as_str()), ("e", "0"));
    assert!(!host.exists("told") && !host.exists("all"));
    // A value of the largest stored length is sent after the one run of the other command.
    host.graph(&graph("1000000"));
    host.apply().exits(0);
    assert_eq!(host.lines("asked").len(), 2);
    assert_eq!((host.read("told").trim(), host.read("all").trim()), ("1000000", "1000001"));
    host.finish(host.bare(&["explain", "exec"])).exits(0).prints("Standard output, without one trailing newline. At most 1 MiB; invalid UTF-8 becomes U+FFFD.");
}

#[test]
fn every_type_is_sent_and_received() {
    let host = Host::with(
        r#"graph: g
resources:
  value:
  - {name: v, text: a, bool: true, int: -7, float: 0.5, texts: [x, y]}
  test:
  - name: t
    changed: true
    recv: {text: "value[v].text", bool: "value[v].bool", int: "value[v].int", float: "value[v].int", texts: "value[v].texts", map.k: "value[v].float"}
  file:
  - name: $DIR/f
    template: {text: "{{ a }} {{ b }} {{ c }} {{ d }} ${e}"}
    values: {a: "test[t].text", b: "test[t].bool", c: "test[t].int", d: "test[t].float"}
  exec:
  - {name: list, shell: /bin/sh, cmd: 'echo "$1 $2" > $DIR/list', recv: {args: "test[t].texts"}}
"#,
    );
    host.apply().exits(0);
    assert_eq!(host.read("f"), "a true -7 -7 ${e}");
    assert_eq!(host.read("list"), "x y\n");
}

#[test]
fn faults_come_on_request() {
    let host = Host::with(
        "graph: g\nresources:\n  test:\n  - {name: fails, fail: 2, changed: true, meta: {retry: 2, delay: 100}}\n  - {name: panics, panic: true}\n  - {name: sleeps, sleep: 0.01}\n",
    );
    let applied = host.apply();
    assert!(applied.code == 1 && applied.stderr.contains("panicked"), "{applied}");
    applied.prints("failed test[panics]").prints_in_order(&[
        "retrying test[fails]",
        "retrying test[fails]",
        "changed test[fails]",
    ]);
}

/// A file sends its hash and attributes, and `value` joins and converts received values.
#[test]
fn files_send_what_they_are_and_values_are_converted() {
    let host = Host::with(
        r#"graph: values
resources:
  exec:
  - {name: ask, args: [cat, $DIR/in], watchfiles: $DIR/in}
  file:
  - {name: source, path: $DIR/source, content: hello, mode: "0644"}
  - name: told
    path: $DIR/told
    template: {text: "{{ hash }} {{ size }} {{ mode }} {{ port }} {{ all }}"}
    values:
      hash: "file[source].hash"
      size: "file[source].size"
      mode: "file[source].mode"
      port: "value[port].int"
      all: "value[joined].text"
  value:
  - {name: port, convert: int, field: server.port, recv: {from: "exec[ask].output"}}
  - {name: names, convert: texts, field: names, recv: {from: "exec[ask].output"}}
  - {name: joined, separator: "+", recv: {texts: "value[names].texts"}}
"#,
    );
    host.write("in", "{\"server\": {\"port\": 80}, \"names\": [\"a\", \"b\"]}");
    host.apply().exits(0);
    let hash = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(host.read("told"), format!("{hash} 5 0644 80 a+b"));
}

/// The hash of a private file would tell its content, and waiting for it is of no use.
#[test]
fn a_private_file_says_that_it_sends_no_hash() {
    let host = Host::with(
        r#"graph: values
resources:
  file:
  - {name: source, path: $DIR/source, content: hello, mode: "0600"}
  - {name: told, path: $DIR/told, recv: {content: "file[source].hash"}}
"#,
    );
    host.apply().exits(1).prints("file[source] sends no hash").prints("that others cannot read");
}
