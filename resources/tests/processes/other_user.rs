//! Tests of commands of another user: no terminal, no keyring of the daemon, a limit of tasks, and the ends
//! of the group.

use crate::support::{
    again, command, eventually, host, living, output, query, shell, unique, wait,
};
use keyutils_raw::{KEY_SPEC_SESSION_KEYRING, add_key, keyctl_join_session_keyring};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use steadfast_resources::host::{Command, End, MAX_TASKS};
use tokio_util::sync::CancellationToken;

fn as_nobody(command: Command) -> Command {
    Command { user: Some("nobody".to_owned()), ..command }
}

/// S-9, H2: a command of another user can neither type into the terminal of the daemon nor write to it.
#[test]
fn another_user_has_no_terminal() {
    // `script` runs the test again on a terminal of its own.
    let on_terminal = r#"exec script -qec "$*" /dev/null"#;
    again("other_user::on_a_terminal", &["/bin/sh", "-c", on_terminal, "x"], &[]);
}

#[test]
#[ignore = "run by another_user_has_no_terminal"]
fn on_a_terminal() {
    fs::File::open("/dev/tty").expect("this process has a terminal");
    // A failed redirection ends a shell, so this one runs in a subshell.
    let open = || shell("( : </dev/tty ) 2>&1; true");
    let grouped = Command { group: Some("daemon".to_owned()), ..open() };
    for command in [as_nobody(open()), grouped] {
        let seen = output(&command);
        assert!(seen.contains("/dev/tty: No such device or address"), "{seen}");
    }
}

/// The number of the process is that of its group and its session, which has no terminal.
#[test]
fn another_user_leads_a_session() {
    let seen = output(&as_nobody(shell("cut -d' ' -f1,5,6,7 /proc/$$/stat")));
    let fields: Vec<&str> = seen.split_whitespace().collect();
    assert_eq!(fields, [fields[0], fields[0], fields[0], "0"]);
}

/// S-9, M7: a command of another user has no access to the session keyring of the daemon.
#[test]
fn another_user_has_a_keyring_of_its_own() {
    // Later threads of the process inherit this keyring from the present one.
    keyctl_join_session_keyring(None).expect("this kernel has keyrings");
    let name = unique("steadfast-key-");
    add_key("user", &name, b"CANARY", KEY_SPEC_SESSION_KEYRING).unwrap();
    again("other_user::with_a_key", &["/usr/bin/env"], &[("STEADFAST_KEY", &name)]);
}

#[test]
#[ignore = "run by another_user_has_a_keyring_of_its_own"]
fn with_a_key() {
    let name = std::env::var("STEADFAST_KEY").unwrap();
    let keys = command(&["cat", "/proc/keys"]);
    assert!(output(&keys).contains(&name), "a command of root keeps the keyring");
    assert!(!output(&as_nobody(keys)).contains(&name));
}

#[test]
fn tasks_of_another_user_are_bounded() {
    let limits = |command: Command| {
        let seen = output(&command);
        let line = seen.lines().find(|line| line.starts_with("Max processes")).unwrap().to_owned();
        line.split_whitespace().skip(2).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let read = || command(&["cat", "/proc/self/limits"]);
    let bound = MAX_TASKS.to_string();
    assert_eq!(limits(as_nobody(read())), [bound.as_str(), bound.as_str()]);
    let declared = Command { max_tasks: Some(300), ..read() };
    assert_eq!(limits(as_nobody(declared.clone())), ["300", "300"]);
    let own = fs::read_to_string("/proc/self/limits").unwrap();
    let own = own.lines().find(|line| line.starts_with("Max processes")).unwrap();
    let own: Vec<&str> = own.split_whitespace().skip(2).take(2).collect();
    assert_eq!(limits(declared), own, "commands of our own user keep our limit");
}

/// S-9: the kernel's `NoNewPrivs` flag, as a child sees it.
#[test]
fn privileges_are_given_up_for_good() {
    let flag = |command: Command| {
        let seen = output(&command);
        let line = seen.lines().find(|line| line.starts_with("NoNewPrivs:")).unwrap().to_owned();
        line.split_whitespace().last().unwrap().to_owned()
    };
    let read = || command(&["cat", "/proc/self/status"]);
    let given_up = || Command { no_new_privs: true, ..read() };
    assert_eq!([flag(read()), flag(as_nobody(read()))], ["0", "0"]);
    assert_eq!([flag(given_up()), flag(as_nobody(given_up()))], ["1", "1"]);
    let leads = Command { no_new_privs: true, ..shell("cut -d' ' -f1,5 /proc/$$/stat") };
    let seen = output(&leads);
    let (pid, group) = seen.trim().split_once(' ').unwrap();
    assert_eq!(pid, group);
}

/// R-16: the deadline ends the whole group of another user.
#[test]
fn the_group_of_another_user_ends_with_its_time() {
    let word = unique("4321.7");
    let mut slow = as_nobody(shell(&format!("echo begun; sleep {word} & sleep {word}")));
    slow.timeout = Some(Duration::from_millis(500));
    let finished = query(&slow);
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(finished.stdout.bytes(), b"begun\n");
    assert!(living(&word).is_empty());
}

/// R-16: a cancellation is effective at each step of the start, even before the child has a group of its own.
#[test]
fn a_cancel_reaches_another_user_while_it_starts() {
    let word = unique("4321.8");
    let slow = as_nobody(shell(&format!("sleep {word} & sleep {word}")));
    for number in 0..60 {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let cancelling = async move {
            tokio::time::sleep(Duration::from_micros(number * 100)).await;
            cancel.cancel();
        };
        let host = host();
        let (finished, ()) = wait(async { tokio::join!(host.query(&slow, &token), cancelling) });
        assert!(matches!(finished.unwrap().end, End::Cancelled { .. }));
    }
    eventually("all are gone", || living(&word).is_empty());
}

/// S-9: a declared variable does not influence the programs that still run as root before the change of user.
/// The loader complains once for each program that it starts with an absent library.
#[test]
fn declared_variables_reach_only_the_program_of_another_user() {
    let with = |name: &str, value: &str, command: Command| Command {
        env: vec![(name.to_owned(), value.to_owned().into())],
        ..command
    };
    let missing = "/nonexistent/steadfast.so";
    let given_up = Command { no_new_privs: true, ..command(&["/bin/true"]) };
    for command in [as_nobody(command(&["/bin/true"])), given_up] {
        for name in ["LD_PRELOAD", "LD_AUDIT"] {
            let finished = query(&with(name, missing, command.clone()));
            let said = finished.stderr.text();
            let complaints = said.matches("ERROR: ld.so: object").count();
            assert_eq!((finished.is_success(), complaints), (true, 1), "{name}: {said}");
        }
    }
    // A library of setpriv that cannot be loaded ends setpriv.
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    fs::write(folder.path().join("libcap-ng.so.0"), "no library").unwrap();
    let path = folder.path().to_str().unwrap();
    let finished = query(&with("LD_LIBRARY_PATH", path, as_nobody(command(&["/bin/true"]))));
    assert!(finished.is_success(), "{}", finished.stderr.text());
    let seen = output(&with("LD_LIBRARY_PATH", path, as_nobody(command(&["env"]))));
    assert!(seen.contains(&format!("LD_LIBRARY_PATH={path}\n")), "{seen}");
}

/// Variables of another user's command arrive unchanged, and nothing else does.
#[test]
fn another_user_has_exactly_its_variables() {
    let values = ["a  b;$(id)", "", "${STEADFAST_0}", "'\"\\ #", "x\ny", "=", "ünï\u{1b}", "-S"];
    let mut declared = as_nobody(command(&["env", "-0"]));
    let named = values.iter().enumerate();
    declared.env =
        named.map(|(number, value)| (format!("V{number}"), (*value).to_owned().into())).collect();
    declared.env.push(("LANG".to_owned(), "C".to_owned().into()));
    declared.env.push(("STEADFAST_3".to_owned(), "own".to_owned().into()));
    let seen = output(&declared);
    let seen: BTreeSet<&str> = seen.trim_end_matches('\0').split('\0').collect();
    let fixed = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/nonexistent",
        "USER=nobody",
        "LOGNAME=nobody",
        "SHELL=/usr/sbin/nologin",
        "LANG=C",
        "STEADFAST_3=own",
    ];
    let own = values.iter().enumerate().map(|(number, value)| format!("V{number}={value}"));
    let expected: BTreeSet<String> = own.chain(fixed.map(str::to_owned)).collect();
    assert_eq!(seen, expected.iter().map(String::as_str).collect());
}

/// `env`, which starts the program, takes a word with `=` for a variable.
#[test]
fn a_program_of_another_user_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let open = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open()).unwrap();
    for name in ["a=b", "-x", "a b"] {
        let program = folder.path().join(name);
        fs::copy("/bin/echo", &program).unwrap();
        fs::set_permissions(&program, open()).unwrap();
        let declared = as_nobody(command(&[program.to_str().unwrap(), "a=b", "-S", "${HOME}"]));
        assert_eq!(output(&declared), "a=b -S ${HOME}\n");
    }
}
