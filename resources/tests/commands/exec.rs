//! Tests of the kind `exec`: guards, runs and outcomes.

use crate::support::{
    EVENT, LOOK, REFRESH, apply, change, check, differs, exec, failure, permit, recorder, run,
    text, texts, wait, yes,
};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use steadfast_resources::{
    CheckRequest, CheckResult, ExecutorKind, Host, OnInterrupt, Outcome, RunPolicy, Value,
    WatchSource,
};
use tokio_util::sync::CancellationToken;

fn runs(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn changed(note: &str) -> Outcome {
    Outcome::Changed(vec![note.to_owned()])
}

#[test]
fn without_a_guard_it_runs_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let exec = recorder(&file, []);
    assert_eq!(exec.traits().repeat, RunPolicy::Once);
    assert_eq!(exec.traits().executor, ExecutorKind::Command);
    assert!(!differs(&exec, LOOK), "a look never runs a deed");
    assert!(differs(&exec, EVENT) && differs(&exec, REFRESH));
    assert_eq!(runs(&file), 0, "a check runs nothing");
    assert_eq!(run(&exec), changed("ran: exit 0"));
    assert_eq!(runs(&file), 1);
    assert_eq!(recorder(&file, [yes("always")]).traits().repeat, RunPolicy::EachStart);
}

#[test]
fn refresh_only_runs_when_it_is_notified() {
    let exec = exec([text("cmd", "true"), yes("refresh_only")]);
    assert_eq!(exec.traits().repeat, RunPolicy::Events);
    assert!(!differs(&exec, EVENT) && !differs(&exec, LOOK) && differs(&exec, REFRESH));
    let folder = tempfile::tempdir().unwrap();
    let guarded = recorder(folder.path(), [yes("refresh_only"), text("creates", "/nowhere")]);
    assert!(!differs(&guarded, EVENT) && !differs(&guarded, LOOK) && differs(&guarded, REFRESH));
}

#[test]
fn creates_guards_and_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let (file, made) = (folder.path().join("ran"), folder.path().join("made"));
    let exec = recorder(&file, [text("creates", made.to_str().unwrap())]);
    assert_eq!(exec.traits().repeat, RunPolicy::State);
    assert_eq!(exec.footprint().watch, [WatchSource::Path { path: made.clone(), below: false }]);
    assert!(differs(&exec, LOOK), "a look sees that it is missing");
    let premise = change(check(&exec, EVENT));
    fs::write(&made, "").unwrap();
    assert!(!differs(&exec, EVENT) && !differs(&exec, REFRESH), "a refresh heeds the guards");
    assert_eq!(apply(&exec, premise), Outcome::Unchanged, "the premise is checked again");
    assert_eq!(runs(&file), 0);
}

#[test]
fn mtimes_force_a_run_when_one_is_newer_than_creates() {
    let folder = tempfile::tempdir().unwrap();
    let (file, made) = (folder.path().join("ran"), folder.path().join("made"));
    let source = folder.path().join("source");
    let exec = recorder(
        &file,
        [
            text("creates", made.to_str().unwrap()),
            texts("mtimes", &[source.to_str().unwrap()]),
            text("ifcmd", "false"),
        ],
    );
    match check(&exec, EVENT) {
        CheckResult::Unknown(failure) => assert!(failure.what.contains("mtimes"), "{failure:?}"),
        other => panic!("a missing file is no answer: {other:?}"),
    }
    let stamp = |path: &Path, seconds: u64| {
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::create(path).unwrap().set_modified(time).unwrap();
    };
    stamp(&source, 2000);
    assert!(!differs(&exec, EVENT), "nothing to be newer than: ifcmd decides");
    stamp(&made, 3000);
    assert!(!differs(&exec, EVENT));
    stamp(&source, 3001);
    assert!(differs(&exec, EVENT) && differs(&exec, LOOK));
    let Outcome::Changed(notes) = run(&exec) else { panic!("it runs") };
    assert_eq!(notes[0], "ran: exit 0");
    assert!(notes[1].contains("guard not satisfied"), "the command leaves `creates` as it is");
    assert_eq!(exec.footprint().watch.len(), 2);
}

#[test]
fn ifcmd_and_nifcmd_guard() {
    let ask = |given: Vec<_>| {
        let exec = exec(given.into_iter().chain([text("cmd", "true")]));
        assert_eq!(exec.traits().repeat, RunPolicy::State);
        assert_eq!(differs(&exec, EVENT), differs(&exec, REFRESH));
        differs(&exec, LOOK)
    };
    assert!(ask(vec![text("ifcmd", "test -d /etc")]));
    assert!(!ask(vec![text("ifcmd", "test -d /nowhere")]));
    assert!(!ask(vec![text("nifcmd", "test -d /etc")]));
    assert!(ask(vec![text("nifcmd", "test -d /nowhere")]));
    assert!(ask(vec![text("ifcmd", "exit 0"), text("ifshell", "/bin/sh")]));
    assert!(!ask(vec![text("nifcmd", "exit 0"), text("nifshell", "/bin/sh")]));
    assert!(!ask(vec![text("ifcmd", "true"), text("nifcmd", "true")]), "both must allow it");
    assert!(ask(vec![text("ifcmd", "test -f passwd"), text("ifcwd", "/etc")]));
    assert!(ask(vec![text("ifcmd", "test -f passwd"), text("cwd", "/etc")]), "ifcwd is cwd");
    assert!(!ask(vec![text("nifcmd", "test -f passwd"), text("nifcwd", "/etc")]));
}

#[test]
fn ifequals_compares_what_ifcmd_prints() {
    let ask = |ifcmd: &str, equals: &str| {
        let guard = [text("ifcmd", ifcmd), text("ifshell", "/bin/sh"), text("ifequals", equals)];
        differs(&exec(guard.into_iter().chain([text("cmd", "true")])), EVENT)
    };
    assert!(!ask("echo done", "done") && !ask("echo done", "done\n"));
    assert!(ask("echo other", "done") && ask("echo; echo done", "done"));
    assert!(!ask("echo done; exit 1", "other"), "a code that is not 0 is a no");
    assert!(!ask("true", "") && ask("echo x", ""));
    let longest = "x".repeat(1 << 20);
    assert!(!ask("head -c 1048576 /dev/zero | tr '\\0' x", &longest));
    assert!(ask("head -c 1048577 /dev/zero | tr '\\0' x", &longest), "what was cut is not equal");
    assert!(!ask("echo done; echo warning >&2", "done"), "what it complains about is not compared");
}

#[test]
fn a_guard_that_gives_no_answer_is_unknown() {
    let unknown =
        |given: Vec<_>| match check(&exec(given.into_iter().chain([text("cmd", "true")])), EVENT) {
            CheckResult::Unknown(failure) => failure.what,
            other => panic!("{other:?}"),
        };
    assert!(unknown(vec![text("ifcmd", "steadfast-no-such")]).contains("steadfast-no-such"));
    let killed = vec![text("nifcmd", "kill -9 $$"), text("nifshell", "/bin/sh")];
    assert!(unknown(killed).contains("signal 9"));
    let slow = vec![text("ifcmd", "sleep 9"), ("timeout", Value::Float(0.1))];
    assert!(unknown(slow).contains("timed out"));
}

#[test]
fn a_check_that_is_cancelled_ends_its_guard() {
    let exec = exec([text("cmd", "true"), text("ifcmd", "sleep 5432.1")]);
    let cancel = CancellationToken::new();
    let ask = CheckRequest { run: true, cancel: cancel.clone(), ..CheckRequest::default() };
    let start = Instant::now();
    let verdict = wait(async {
        let host = Host::default();
        let check = exec.check(&host, ask);
        let stop = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
        };
        futures_util::future::join(check, stop).await.0
    });
    assert!(matches!(verdict, CheckResult::Unknown(_)), "{verdict:?}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

/// S-6: the change shows the command's words, escaped, and neither its input nor values of variables.
#[test]
fn the_change_shows_the_command_and_no_secret() {
    let env = ("env", Value::TextMap(vec![("TOKEN".into(), "canary-1".into())]));
    let exec = exec([texts("args", &["echo", "a b\n", "$(id)"]), text("stdin", "canary-2"), env]);
    let change = change(check(&exec, EVENT));
    assert_eq!(change.differences[0].aspect, "command");
    assert_eq!(change.differences[0].to, r"echo 'a b\n' '$(id)'");
    assert!(!change.destructive);
    let before = format!("{exec:?} {change:?}");
    let shown = format!("{before} {:?}", apply(&exec, change));
    assert!(!shown.contains("canary"), "{shown}");
}

/// S-18, S-8: values are passed as whole words; the text for a shell stays as it was written.
#[test]
fn values_go_in_as_arguments_and_variables() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let evil = "; touch /tmp/steadfast-injected; $(id) {{ x }}";
    let exec = exec([
        text(
            "cmd",
            format!(
                "printf '%s|%s|%s' \"$1\" \"$V\" '${{not}} {{{{ this }}}}' > {}",
                out.display()
            ),
        ),
        text("shell", "/bin/sh"),
        texts("args", &[evil]),
        ("env", Value::TextMap(vec![("V".into(), evil.into())])),
    ]);
    assert_eq!(run(&exec), changed("ran: exit 0"));
    let seen = fs::read_to_string(&out).unwrap();
    assert_eq!(seen, format!("{evil}|{evil}|${{not}} {{{{ this }}}}"));
    assert!(!Path::new("/tmp/steadfast-injected").exists());
}

#[test]
fn the_command_gets_its_surroundings() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let exec = exec([
        text("cmd", "{ id -un; id -gn; pwd; umask; cat; } > out"),
        text("shell", "/bin/sh"),
        text("cwd", folder.path().to_str().unwrap()),
        text("user", "nobody"),
        text("group", "daemon"),
        text("umask", "027"),
        text("stdin", "read me"),
    ]);
    assert_eq!(run(&exec), changed("ran: exit 0"));
    let seen = fs::read_to_string(folder.path().join("out")).unwrap();
    let expected = format!("nobody\ndaemon\n{}\n0027\nread me", folder.path().display());
    assert_eq!(seen, expected);
}

#[test]
fn the_name_is_the_command_where_none_is_given() {
    assert_eq!(run(&exec([])), changed("ran: exit 0"));
    let shown = change(check(&exec([]), EVENT)).differences[0].to.clone();
    assert_eq!(shown, "/bin/true by-name");
    let shown = |given: Vec<_>| change(check(&exec(given), EVENT)).differences[0].to.clone();
    assert_eq!(shown(vec![texts("args", &["/bin/echo", "x"])]), "/bin/echo x");
    assert_eq!(shown(vec![text("cmd", "echo"), texts("args", &["a b"])]), "echo 'a b'");
}

#[test]
fn a_code_that_is_not_well_fails_with_its_last_words() {
    let failing =
        "for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; printf 'bad\\033[31m\\n' >&2; exit 3";
    let what = failure(&exec([text("cmd", failing), text("shell", "/bin/sh")]));
    assert!(what.starts_with("exit 3, not 0: /bin/sh -c"), "{what}");
    assert!(what.ends_with("stderr: line 7\nstderr: bad\\u{1b}[31m"), "S-13: {what}");
    assert!(!what.contains("line 3"));
    let what = failure(&exec([text("cmd", "echo only out; exit 1"), text("shell", "/bin/sh")]));
    assert!(what.ends_with("stdout: only out"));
    let what = failure(&exec([text("cmd", "kill -9 $$"), text("shell", "/bin/sh")]));
    assert!(what.starts_with("killed by signal 9"), "{what}");
    let slow = exec([text("cmd", "sleep 9"), ("timeout", Value::Float(0.1))]);
    assert!(failure(&slow).starts_with("timed out"));
}

#[test]
fn returns_lists_the_codes_that_are_well() {
    let with = |code: &str, returns: &[&str]| {
        exec([
            text("cmd", format!("exit {code}")),
            text("shell", "/bin/sh"),
            texts("returns", returns),
        ])
    };
    assert_eq!(run(&with("3", &["0", "3"])), changed("ran: exit 3"));
    assert!(failure(&with("0", &["3", "4"])).starts_with("exit 0, not 3 or 4"));
}

#[test]
fn a_command_that_cannot_start_changes_nothing() {
    match run(&exec([text("cmd", "steadfast-no-such")])) {
        Outcome::Failed { failure, touched: false } => assert!(failure.what.contains("PATH")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn donecmd_must_go_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let done = format!("test -s {} && touch done", file.display());
    let cwd = folder.path().to_str().unwrap().to_owned();
    let exec = recorder(
        &file,
        [text("donecmd", done), text("doneshell", "/bin/sh"), text("donecwd", cwd)],
    );
    assert_eq!(run(&exec), changed("ran: exit 0"));
    assert!(folder.path().join("done").exists());
    let what = failure(&recorder(&file, [text("donecmd", "false")]));
    assert!(what.starts_with("donecmd: exit 1"), "{what}");
    let what = failure(&recorder(&file, [text("donecmd", "steadfast-no-such")]));
    assert!(what.starts_with("donecmd: "), "{what}");
    let failing =
        [text("cmd", "false"), text("donecmd", format!("touch {}/late", folder.path().display()))];
    failure(&crate::support::exec(failing));
    assert!(!folder.path().join("late").exists(), "not after a failure");
}

#[test]
fn changed_when_decides_what_it_was() {
    let with = |question: &str| {
        exec([text("cmd", "true"), text("shell", "/bin/sh"), text("changed_when", question)])
    };
    assert_eq!(run(&with("exit 0")), changed("ran: exit 0"));
    assert_eq!(run(&with("exit 1")), Outcome::Unchanged);
    assert!(failure(&with("kill -9 $$")).starts_with("changed_when: killed"));
}

#[test]
fn a_revoked_permit_is_an_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let exec = recorder(&file, []);
    let premise = change(check(&exec, EVENT));
    let cancel = CancellationToken::new();
    let permit = permit(&cancel);
    cancel.cancel();
    let outcome = wait(exec.apply(&Host::default(), &permit, premise));
    assert_eq!(outcome, Outcome::Interrupted);
    assert_eq!(runs(&file), 0);
}

#[test]
fn a_permit_revoked_during_the_run_is_an_interruption() {
    let exec = exec([text("cmd", "sleep 5432.2")]);
    let premise = change(check(&exec, EVENT));
    let cancel = CancellationToken::new();
    let permit = permit(&cancel);
    let outcome = wait(async {
        let host = Host::default();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
        };
        futures_util::future::join(exec.apply(&host, &permit, premise), stop).await.0
    });
    assert_eq!(outcome, Outcome::Interrupted);
}

#[test]
fn watch_sources_of_a_command() {
    let exec = exec([
        text("cmd", "true"),
        text("watchcmd", "echo $1; sleep 1"),
        text("watchshell", "/bin/sh"),
        text("watchcwd", "/tmp"),
        text("user", "nobody"),
        texts("watchfiles", &["/etc/passwd", "/etc/cron.d/"]),
        ("timeout", Value::Float(3.0)),
    ]);
    assert_eq!(exec.traits().repeat, RunPolicy::Once);
    let [WatchSource::Lines(command), rest @ ..] = &exec.footprint().watch[..] else {
        panic!("lines first")
    };
    assert_eq!(command.argv, ["/bin/sh", "-c", "echo $1; sleep 1"]);
    assert_eq!(command.cwd.as_deref(), Some(Path::new("/tmp")));
    assert_eq!((command.user.as_deref(), command.timeout), (Some("nobody"), None));
    let path = |path: &str, below| WatchSource::Path { path: path.into(), below };
    assert_eq!(rest, [path("/etc/passwd", false), path("/etc/cron.d/", true)]);
}

#[test]
fn interruption_policies_are_read() {
    let nature = |word: &str| exec([text("on_interrupt", word)]).traits().on_interrupt;
    assert_eq!(nature("rerun"), OnInterrupt::Again);
    assert_eq!(nature("skip"), OnInterrupt::Skip);
    assert_eq!(nature("ask"), OnInterrupt::Wait);
    assert_eq!(exec([]).traits().on_interrupt, OnInterrupt::Again);
}

#[test]
fn files_that_a_guard_reads_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let read = folder.path().join("read");
    fs::write(&read, "x").unwrap();
    let guard = format!("grep -q x {} /nowhere/else", read.display());
    let footprint = exec([text("ifcmd", guard)]).footprint();
    assert_eq!(footprint.guard_watches, std::slice::from_ref(&read), "no directory is there");
    let guard = format!("test -e {}", folder.path().join("made").display());
    let footprint = exec([text("nifcmd", guard)]).footprint();
    assert_eq!(footprint.guard_watches, [folder.path().join("made")], "the command may make it");
    let guard = format!("grep -q x {}", read.display());
    let footprint = exec([text("ifcmd", guard)]).footprint();
    assert!(footprint.watch.contains(&WatchSource::Path { path: read, below: false }));
    let footprint = exec([text("nifcmd", "getent passwd alice")]).footprint();
    assert_eq!(footprint.guard_watches, [Path::new("/etc/passwd")]);
}

#[test]
fn a_guard_that_asks_again_is_reported() {
    let again = exec([text("ifcmd", "true")]);
    let Outcome::Changed(notes) = run(&again) else { panic!("the command runs") };
    assert!(notes.iter().any(|note| note.contains("guard not satisfied")), "{notes:?}");
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let once = exec([
        text("cmd", format!("touch {}", made.display())),
        text("creates", made.to_str().unwrap()),
    ]);
    assert_eq!(run(&once), changed("ran: exit 0"));
}
