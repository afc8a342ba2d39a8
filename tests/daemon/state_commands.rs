//! The state commands: with and without a daemon, durable when they reply.

use crate::host::Host;
use nix::sys::signal::Signal::SIGHUP;

const DELETE: &str = "meta: {on_remove: delete}";

/// Returns a graph with a command that runs once and this file.
fn graph(file: &str) -> String {
    format!(
        "graph: g\nresources:\n  noop: [{{name: stays}}]\n  exec:\n  - {{name: once, shell: /bin/sh, cmd: 'echo ran >> $DIR/ran'}}\n{file}\n"
    )
}

fn made(meta: &str) -> String {
    format!("  file:\n  - {{name: made, path: $DIR/made, content: \"made\\n\", {meta}}}")
}

/// B-24: a resource protected by the operator cannot leave, at once and after `kill -9`; unprotected it can, also
/// with a daemon that has accepted no graph yet.
#[test]
fn a_daemon_protects_what_it_is_told_to() {
    let host = Host::with(&graph(&made(DELETE)));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["protect", "file[made]"])
        .exits(0)
        .prints("file[made] is protected: a graph without it is rejected");
    host.ask_daemon(&["protect", "file[made]"]).exits(0).prints("file[made] is already protected");
    host.ask_daemon(&["show", "file[made]"]).exits(0).prints("protected");
    host.graph(&graph(""));
    let refused = daemon.signal(SIGHUP).wait_for("rejected");
    assert!(refused.message.contains("steadfast unprotect"), "{}", refused.message);
    assert!(host.exists("made"));
    daemon.kill();
    let daemon = host.run(&[]);
    daemon.wait_for("rejected");
    assert!(host.exists("made"), "protected after kill -9");
    host.ask_daemon(&["unprotect", "file[made]"])
        .exits(0)
        .prints("file[made] is no longer protected");
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_of("changed", "file[made]");
    host.wait_until("it is removed", || !host.exists("made"));
}

/// B-24: a forgotten resource is treated as new: a one-time command runs again, and an object is adopted and not
/// deleted later.
#[test]
fn a_daemon_forgets_what_it_is_told_to() {
    let host = Host::with(&graph(&made(DELETE)));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.lines("ran").len(), 1);
    host.ask_daemon(&["forget", "exec[once]", "file[made]"])
        .exits(0)
        .prints("exec[once] is forgotten: existing objects are adopted")
        .prints("file[made] is forgotten: existing objects are adopted");
    host.wait_until("it runs again", || host.lines("ran").len() == 2);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    host.graph(&graph(""));
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_of("undeclared", "file[made]");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    assert!(host.exists("made"), "adopted, so it is not removed");
    assert_eq!(host.lines("ran").len(), 2);
}

/// B-24: without a daemon the commands change the store itself.
#[test]
fn without_a_daemon_the_store_is_changed() {
    let host = Host::with(&graph(&made(DELETE)));
    host.apply().exits(0);
    host.ask_daemon(&["protect", "file[made]"]).exits(0).prints("file[made] is protected");
    host.graph(&graph(""));
    host.apply().exits(65).says("protected resources are missing from the new graph: file[made]");
    assert!(host.exists("made"));
    host.ask_daemon(&["forget", "file[made]", "exec[once]"])
        .exits(0)
        .prints("exec[once] is forgotten: the next graph that declares it")
        .prints("file[made] is forgotten");
    host.apply().exits(0).prints("changed exec[once]").prints_nothing_of("file[made]");
    assert!(host.exists("made"), "nobody's");
    assert_eq!(host.lines("ran").len(), 2, "it has run once more");
    host.ask_daemon(&["unprotect", "exec[once]"]).exits(0).prints("exec[once] was not protected");
}

/// B-24: an unknown name changes nothing and gets a suggestion; a protection in the graph can only be ended there.
#[test]
fn unknown_names_are_rejected() {
    let host = Host::with(&graph(&made("meta: {protect: true}")));
    host.ask_daemon(&["forget", "file[made]"]).exits(64).says("no such resource: file[made]");
    host.apply().exits(0);
    let both = ["forget", "exec[once]", "file[maed]"];
    let unknown = "no such resource: file[maed] (did you mean file[made]?)";
    host.ask_daemon(&both).exits(64).says(unknown);
    host.ask_daemon(&["protect", "exec[once]"])
        .exits(1)
        .says("exec[once] has no record in the state");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&both).exits(64).says(unknown);
    assert_eq!(host.lines("ran").len(), 1, "nothing was changed");
    host.ask_daemon(&["unprotect", "file[made]"])
        .exits(1)
        .says("file[made] is protected by its graph: load a graph with `protect: false`");
    // A command has nothing to delete, but its leaving can still be rejected.
    host.ask_daemon(&["protect", "exec[once]"]).exits(0);
    host.graph("graph: g\nresources: {noop: [{name: stays}]}\n");
    host.ask_daemon(&["reload"])
        .exits(65)
        .says("protected resources are missing from the new graph: exec[once], file[made]");
}

/// B-24, B-25: the stored state is shown with and without a daemon, without secrets.
#[test]
fn stored_records_are_shown_without_secrets() {
    let sender = r#"
  - {name: conf, path: $DIR/conf, mode: 0600, recv: {content: "password[secret].password"}}
  password: [{name: secret, length: 40, saved: true}]"#;
    let host = Host::with(&graph(&(made(DELETE) + sender)));
    host.ask_daemon(&["state", "show"]).exits(64).says("no state in $DIR/state");
    let mut running = Some(host.run(&[]));
    let daemon = running.as_ref().expect("just started");
    daemon.wait_for("converged");
    let secret = host.read("conf");
    assert_eq!(secret.trim_end().len(), 40);
    host.ask_daemon(&["protect", "file[made]"]).exits(0);
    host.ask_daemon(&["pause", "file[made]", "--for", "2h", "--reason", "somebody looks"]).exits(0);
    daemon.wait_for_of("paused", "file[made]");
    let all = ["exec[once]", "file[conf]", "file[made]", "password[secret]"];
    for beside in [true, false] {
        if let Some(daemon) = running.take_if(|_| !beside) {
            daemon.kill();
        }
        let json = host.ask_daemon(&["state", "show", "--json"]);
        json.exits(0);
        let shown = json.json();
        let names: Vec<_> = shown["resources"].as_object().expect("resources").keys().collect();
        assert_eq!(names, all, "{shown}");
        let file = &shown["resources"]["file[made]"];
        assert_eq!(file["owned"]["origin"], "created");
        assert_eq!(file["owned"]["protected_by_operator"], true);
        assert_eq!(file["pause"]["reason"], "somebody looks");
        assert_eq!(shown["resources"]["password[secret]"]["sent"], true);
        assert!(!json.stdout.contains(secret.trim_end()), "{}", json.stdout);
        host.ask_daemon(&["state", "show", "file[made]"]).exits(0).prints_in_order(&[
            "file[made]",
            "paused until",
            "somebody looks",
            "created by steadfast, in graph `g`",
            "protected by the operator",
        ]);
        let shown = host.ask_daemon(&["state", "show"]);
        shown.exits(0).prints("4 resources in").prints("has sent values");
        shown.prints("has received values").prints_nothing_of(secret.trim_end());
        host.ask_daemon(&["state", "verify"]).exits(0).prints("intact: 4 resources in");
    }
    let meant = "the state has no record of file[mad] (did you mean file[made]?)";
    host.ask_daemon(&["state", "show", "file[mad]"]).exits(64).says(meant);
}

/// B-19: damage is found, named and left as it is.
#[test]
fn damage_is_named() {
    let host = Host::with(&graph(&made(DELETE)));
    host.apply().exits(0);
    host.ask_daemon(&["state", "verify"]).exits(0).prints("intact:");
    let path = host.path("state/state.db");
    let mut bytes = std::fs::read(&path).expect("the state");
    let name = b"file[made]";
    let places = bytes.windows(name.len()).enumerate().filter(|(_, part)| part == name);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + 5] = b'f';
    }
    std::fs::write(&path, &bytes).expect("written");
    host.ask_daemon(&["state", "verify"])
        .exits(1)
        .prints("the row of file[fade]: the checksum does not match")
        .says("1 problem in");
    assert_eq!(std::fs::read(&path).expect("the state"), bytes, "left as it is");
}

/// B-11: records without their key are rejected by each changing command and reported by each reading one, until a
/// repair creates a key and names the losses.
#[test]
fn records_without_their_key_are_damaged() {
    let host = Host::with(&graph(&made(DELETE)));
    host.write("made", "mine\n").apply().exits(0);
    host.remove("state/values.key");
    let why = "values.key is damaged: the file is missing";
    for words in [
        &["protect", "file[made]"][..],
        &["retry", "--persist", "exec[once]"],
        &["forget", "exec[once]"],
        &["undo", "file[made]"],
        &["state", "export"],
    ] {
        host.ask_daemon(words).exits(73).says(why).says("steadfast state repair");
    }
    host.plan().exits(73).says(why);
    host.apply().exits(73).says(why);
    host.ask_daemon(&["state", "verify"]).exits(1).prints(why).says("1 problem in");
    assert!(!host.exists("state/values.key"), "left as it is");
    host.ask_daemon(&["state", "repair"])
        .exits(0)
        .prints(
            "a new key is created: received values count as changed, and saved passwords are lost",
        )
        .prints("history entries made with this key cannot be read or restored");
    host.ask_daemon(&["state", "verify"]).exits(0).prints("intact: 2 resources");
    host.ask_daemon(&["protect", "file[made]"]).exits(0);
}

/// A mistyped directory is neither a sound state nor an empty one to import.
#[test]
fn a_missing_state_is_not_sound() {
    let host = Host::with(&graph(""));
    for words in [["state", "verify"], ["state", "export"]] {
        let mut command = host.bare(&words);
        command.arg("--state-dir").arg(host.path("stat"));
        let refused = host.finish(command);
        refused.exits(64).says("no state in $DIR/stat").says("check --state-dir");
        assert!(!host.exists("stat"), "nothing was made");
    }
}
