//! Tests of the environment of a child: arguments, variables, directory, umask, identity, descriptors.

use crate::support::{AS_NOBODY, again, command, host, output, shell, wait};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use steadfast_resources::host::{Command, close_inherited};
use tokio_util::sync::CancellationToken;

/// S-8: a word with any content arrives unchanged as one word.
#[test]
fn words_arrive_exactly_as_declared() {
    let words = [
        "; touch /tmp/steadfast-injected",
        "$(id)",
        "`id`",
        "${HOME}",
        "-o ProxyCommand=id",
        "--",
        "a\nb",
        "../../etc/passwd",
        "*",
        "~root",
        "'\"\\",
        "",
        "ünï\u{1b}[31m",
        "{{ x }} %s",
    ];
    let mut declared =
        command(&["/usr/bin/env", "--", "/bin/sh", "-c", "cat /proc/$$/cmdline", "x"]);
    declared.argv.extend(words.map(str::to_owned));
    let seen = output(&declared);
    let seen: Vec<&str> = seen.trim_end_matches('\0').split('\0').collect();
    // An empty last word would be invisible here, so the list does not end in one.
    assert_eq!(seen[4..], words);

    declared.user = Some("nobody".to_owned());
    let seen = output(&declared);
    let seen: Vec<&str> = seen.trim_end_matches('\0').split('\0').collect();
    assert_eq!(seen[4..], words, "with a user");
}

#[test]
fn the_program_keeps_the_name_it_was_called_by() {
    assert!(output(&command(&["cat", "/proc/self/cmdline"])).starts_with("cat\0"));
}

/// S-9: no variable of the daemon reaches a child.
#[test]
fn the_environment_is_fixed() {
    let seen = output(&command(&["env"]));
    let seen: BTreeSet<&str> = seen.lines().collect();
    let expected = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "USER=root",
        "LOGNAME=root",
        "SHELL=/bin/bash",
        "LANG=C.UTF-8",
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}

/// S-9: a poisoned PATH, `LD_PRELOAD`, `BASH_ENV`, `ENV` or `IFS` of the daemon reaches no child.
#[test]
fn a_poisoned_environment_reaches_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let poison = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\ntouch {}/bitten\n", folder.path().display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for name in ["env", "id", "sh", "setpriv", "true"] {
        poison(name);
    }
    let rc = poison("rc");
    let path = folder.path().to_str().unwrap();
    let environment = [
        ("PATH", path),
        ("LD_LIBRARY_PATH", path),
        ("LD_PRELOAD", "/nonexistent/steadfast-poison.so"),
        ("BASH_ENV", &rc),
        ("ENV", &rc),
        ("IFS", "/"),
        ("LANG", "tr_TR"),
        ("HOME", path),
    ];
    again("surroundings::with_a_poisoned_environment", &["/usr/bin/env"], &environment);
    assert!(!folder.path().join("bitten").exists());
}

#[test]
#[ignore = "run by a_poisoned_environment_reaches_no_child"]
fn with_a_poisoned_environment() {
    assert!(std::env::var("LD_PRELOAD").is_ok(), "the poison is there");
    the_environment_is_fixed();
    let mut bash = command(&["bash", "-c", "true; env; id -u"]);
    assert!(!output(&bash).contains("poison"));
    bash.user = Some("nobody".to_owned());
    assert!(output(&bash).ends_with("65534\n"));
}

#[test]
fn declared_variables_come_on_top() {
    let mut declared = command(&["env"]);
    declared.env =
        vec![("http_proxy".into(), "http://a b;$(id)".into()), ("LANG".into(), "C".into())];
    let seen = output(&declared);
    assert!(seen.contains("http_proxy=http://a b;$(id)\n") && seen.contains("LANG=C\n"));
    let shown = format!("{declared:?}");
    assert!(shown.contains("http_proxy") && !shown.contains("a b;"), "S-6: {shown}");
}

/// S-9: the working directory is `/` and the umask 022, whatever the daemon's are; a command may declare
/// others.
#[test]
fn directory_and_umask() {
    let own = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let mut declared = shell("pwd; umask; cat /proc/self/status");
    let seen = output(&declared);
    assert!(seen.starts_with("/\n0022\n") && seen.contains("Umask:\t0022"), "{seen}");
    declared.umask = Some(0o027);
    declared.cwd = Some("/tmp".into());
    assert!(output(&declared).starts_with("/tmp\n0027\n"));
    declared.user = Some("nobody".to_owned());
    declared.umask = None;
    assert!(output(&declared).starts_with("/tmp\n0022\n"));
    let ours = rustix::process::umask(own);
    assert_eq!(ours.as_raw_mode(), 0o077, "the daemon's own umask is untouched");
}

/// S-9: a command has the supplementary groups of its user and not those of the daemon. The test needs root.
#[test]
fn identity_and_groups_are_those_of_the_user() {
    let mut declared = command(&["cat", "/proc/self/status"]);
    let wanted = fs::read_to_string("/etc/passwd").unwrap();
    assert!(wanted.contains("nobody:x:65534:65534"));
    for user in ["nobody", "65534"] {
        declared.user = Some(user.to_owned());
        let seen = output(&declared);
        let line = |name: &str| {
            let line = seen.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("Uid:"), "65534 65534 65534 65534");
        assert_eq!(line("Gid:"), "65534 65534 65534 65534");
        assert_eq!(line("Groups:"), "65534");
        assert_eq!(line("CapEff:"), "0000000000000000");
        assert_eq!(line("CapPrm:"), "0000000000000000");
    }
    declared.group = Some("daemon".to_owned());
    declared.argv = vec!["id".into(), "-gn".into()];
    assert_eq!(output(&declared), "daemon\n");
    declared.argv = vec!["env".into()];
    let seen = output(&declared);
    assert!(seen.contains("USER=nobody\n") && seen.contains("HOME=/nonexistent\n"), "{seen}");

    let mut bare = command(&["id"]);
    (bare.user, bare.group) = (Some("4242".into()), Some("4243".into()));
    assert_eq!(output(&bare), "uid=4242 gid=4243 groups=4243\n");
}

/// S-9: no descriptor of the daemon reaches a child, including those that the daemon inherited.
#[test]
fn a_child_has_three_descriptors() {
    let script = "exec 3</etc/passwd 8</etc/passwd; exec /usr/bin/env \"$@\"";
    again("surroundings::with_foreign_descriptors", &["/bin/bash", "-c", script, "x"], &[]);
}

#[test]
#[ignore = "run by a_child_has_three_descriptors"]
fn with_foreign_descriptors() {
    assert!(fs::read_link("/proc/self/fd/8").is_ok(), "they are there");
    close_inherited().unwrap();
    let _ours = fs::File::open("/etc/passwd").unwrap();
    let seen = output(&shell("for d in /proc/self/fd/*; do echo ${d##*/}; done"));
    // One more descriptor is that of the shell's own listing.
    assert!(["0\n1\n2\n", "0\n1\n2\n3\n"].contains(&seen.as_str()), "{seen}");
    assert_eq!(output(&command(&["readlink", "/proc/self/fd/0"])), "/dev/null\n");
    assert!(!output(&command(&["ls", "-l", "/proc/self/fd"])).contains("passwd"));
}

#[test]
fn a_child_leads_its_own_group() {
    let seen = output(&shell("cut -d' ' -f1,5 /proc/$$/stat"));
    let (pid, group) = seen.trim().split_once(' ').unwrap();
    assert_eq!(pid, group);
}

/// S-9: the rules hold without root, too.
#[test]
fn all_of_it_without_root() {
    again("surroundings::without_root", AS_NOBODY, &[("LD_PRELOAD", "/nonexistent/x.so")]);
}

#[test]
#[ignore = "run by all_of_it_without_root"]
fn without_root() {
    directory_and_umask_of_nobody();
    let mut declared = command(&["id", "-u"]);
    assert_eq!(output(&declared), "65534\n");
    declared.user = Some("nobody".to_owned());
    assert_eq!(output(&declared), "65534\n");
    declared.user = Some("root".to_owned());
    let failure = refused(&declared);
    assert!(failure.0.contains("runs as uid 65534"), "{failure:?}");
}

fn directory_and_umask_of_nobody() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let seen = output(&shell("pwd; umask; env"));
    assert!(seen.starts_with("/\n0022\n"), "{seen}");
    assert!(seen.contains("USER=nobody") && !seen.contains("PRELOAD"));
}

fn refused(command: &Command) -> (String, String) {
    let failure = wait(host().query(command, &CancellationToken::new())).unwrap_err();
    assert!(failure.what.lines().next().unwrap().len() <= 100, "{failure:?}");
    (failure.what, failure.hint.unwrap_or_default())
}

#[test]
fn missing_parts_of_a_command_are_named() {
    let (what, _) = refused(&command(&["steadfast-no-such", "x"]));
    assert!(what.contains("steadfast-no-such") && what.contains("/usr/local/sbin:"), "{what}");
    assert!(refused(&command(&["/nowhere/x"])).0.contains("/nowhere/x"));
    assert!(refused(&command(&["/etc/passwd"])).0.contains("not executable"));
    assert!(refused(&command(&[])).0.contains("empty"));
    assert!(refused(&command(&[""])).0.contains("empty"));
    assert!(refused(&command(&["true\nforged"])).0.contains("\\n"));
    let cwd = Command { cwd: Some("/nowhere".into()), ..command(&["true"]) };
    assert!(refused(&cwd).0.contains("cwd /nowhere"));
    let cwd = Command { cwd: Some("/etc/passwd".into()), ..command(&["true"]) };
    assert!(refused(&cwd).0.contains("not a directory"));
    let user = Command { user: Some("steadfast-nobody".into()), ..command(&["true"]) };
    assert!(refused(&user).0.contains("steadfast-nobody"));
    let group = Command { group: Some("steadfast-none".into()), ..command(&["true"]) };
    assert!(refused(&group).0.contains("steadfast-none"));
    let number = Command { user: Some("4242".into()), ..command(&["true"]) };
    assert!(refused(&number).1.contains("group"));
}

/// A program that cannot be loaded causes a failure instead of an exit code.
#[test]
fn an_unloadable_program_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken");
    fs::write(&path, "#!/nowhere/interpreter\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused(&command(&[path.to_str().unwrap()])).0.contains("cannot be started"));
}

#[test]
fn a_program_with_a_slash_is_taken_from_the_working_directory() {
    let declared = Command { cwd: Some("/usr/bin".into()), ..command(&["./true"]) };
    assert_eq!(output(&declared), "");
    let declared = Command { env: vec![("PATH".into(), "/nowhere".into())], ..command(&["true"]) };
    let (what, _) = refused(&declared);
    assert!(what.contains("in the PATH of its `env`"), "the declared PATH is searched: {what}");
    assert!(!what.contains("/nowhere"), "L3: a declared PATH may be a secret: {what}");
}

/// A program that another process has open for writing is busy: the start is repeated for a limited time.
#[test]
fn a_program_that_was_just_written_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    fs::write(&path, "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let declared = command(&[path.to_str().unwrap()]);
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    assert!(refused(&declared).0.contains("cannot be started"), "the kernel calls it busy");
    let closing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(60));
        drop(writer);
    });
    assert_eq!(output(&declared), "ran\n");
    closing.join().unwrap();
}
