//! Users and groups on a host: made by the shadow tools, repaired after changes by hand, and removed.

use crate::host::Host;
use crate::service::GRAPH;
use std::sync::atomic::{AtomicBool, Ordering};

/// A password hash that no command line and no log may contain.
const HASH: &str = "$6$saltsalt$canary5f1d9canary5f1d9canary5f1d9canary5f1d9";

const ACCOUNTS: &str = r#"
graph: accounts
resources:
  user:
    - name: eve
      uid: 2100
      group: dev
      groups: [adm]
      append: true
      shell: /bin/bash
      homedir: /srv/eve
      manage_home: true
      comment: Eve Example
      password: "$HASH"
      expiry: "2030-01-01"
  group:
    - {name: dev, gid: 2000}
    - {name: ops, members: [eve, backup]}
"#;

const ABSENT: &str = r"
graph: accounts
resources:
  user:
    - {name: eve, state: absent, manage_home: true, remove_home: true}
  group:
    - {name: dev, state: absent}
    - {name: ops, state: absent}
";

/// Prints everything that the graph declares, as other programs see it.
const LOOK: &str = "getent passwd eve; getent group dev ops | sed 's/^ops:x:[0-9]*:/ops:x:N:/'; \
    id -nG eve | tr ' ' '\\n' | sort | tr '\\n' ' '; getent shadow eve | cut -d: -f2,8; \
    stat -c '%U %F' /srv/eve";

/// Puts a script in front of each tool that records its arguments and variables.
const RECORD: &str = r#"
for tool in useradd usermod userdel groupadd groupmod groupdel gpasswd chpasswd; do
  printf '#!/bin/sh\n(echo "%s $*"; env) >>/root/calls\nexec /usr/sbin/%s "$@"\n' $tool $tool >/usr/local/sbin/$tool
  chmod 0755 /usr/local/sbin/$tool
done
ln -sf /usr/bin/gpasswd /usr/sbin/gpasswd
"#;

fn declared() -> String {
    format!(
        "eve:x:2100:2000:Eve Example:/srv/eve:/bin/bash\ndev:x:2000:\nops:x:N:backup,eve\n\
         adm dev ops {HASH}:21915\neve directory\n"
    )
}

fn look(host: &Host) -> String {
    host.run(&["sh", "-c", LOOK]).stdout
}

fn holding() -> Host {
    let host = Host::boot();
    host.shell(RECORD);
    host.write(GRAPH, &ACCOUNTS.replace("$HASH", HASH));
    host.start();
    host.until("the accounts to be made", || look(&host) == declared());
    host
}

#[test]
fn accounts_are_made_repaired_and_removed() {
    let host = holding();
    for damage in [
        "sed -i /^eve:/d /etc/passwd",
        "userdel -f eve",
        "usermod --shell /bin/sh --comment x --expiredate '' eve",
        "usermod --gid nogroup eve",
        "gpasswd --delete eve adm",
        "gpasswd --members root ops",
        "sed -i /^ops:/d /etc/group",
        "echo 'eve:$6$other$other' | chpasswd --encrypted",
        "rm -r /srv/eve",
        "usermod --uid 2101 eve; echo foreign:line >>/etc/passwd",
        "groupmod --gid 2500 dev",
    ] {
        host.shell(damage);
        host.until(damage, || look(&host) == declared());
    }
    let passwd = host.read("/etc/passwd").unwrap_or_default();
    assert!(passwd.contains("foreign:line\n"), "a broken line is not ours: {passwd}");

    let calls = host.read("/root/calls").unwrap_or_default();
    assert!(
        calls.contains("useradd --uid 2100") && calls.contains("chpasswd --encrypted"),
        "{calls}"
    );
    assert!(!calls.contains("canary5f1d9"), "a hash on a command line or in a variable: {calls}");
    let log = host.log().join("\n");
    assert!(log.contains("user[eve]") && !log.contains("canary5f1d9"), "{log}");

    host.write(GRAPH, ABSENT);
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    host.until("the accounts to be removed", || {
        host.run(&["sh", "-c", LOOK]).stdout.trim().is_empty()
    });
    assert!(
        host.run(&["ls", "/srv"]).stdout.is_empty(),
        "the home directory is removed with its user"
    );
}

/// The files of a user who is removed by hand stay that user's: the account gets its former number again.
#[test]
fn a_user_who_was_removed_by_hand_gets_the_former_number() {
    let host = Host::boot();
    let user = "graph: g\nresources:\n  user:\n    - {name: zoe, manage_home: true}\n";
    host.write("/run/graph/graph.yaml", user);
    let apply = "cd /run/graph && steadfast apply --state-dir /run/state graph.yaml";
    host.shell(apply);
    let number = host.shell("id -u zoe");
    host.shell("useradd other; userdel zoe; useradd another");
    host.shell(apply);
    assert_eq!(host.shell("id -u zoe"), number);
    host.shell("setpriv --reuid zoe --init-groups --regid zoe touch /home/zoe/file");
    // The number of another account is not taken.
    host.shell("userdel zoe; chown other /home/zoe");
    host.shell(apply);
    assert_ne!(host.shell("id -u zoe"), host.shell("id -u other"));
}

/// A lock of another program and a read-only file system are failures that pass.
#[test]
fn a_locked_and_a_read_only_table_heal() {
    let host = Host::boot();
    host.write("/run/graph/graph.yaml", "graph: g\nresources:\n  group:\n    - name: late\n");
    let apply = "cd /run/graph && steadfast apply --state-dir /run/state graph.yaml 2>&1 || true";
    host.shell("mount --bind /etc /etc && mount -o remount,ro,bind /etc");
    let said = host.shell(apply);
    assert!(said.contains("read-only file system") && said.contains("findmnt"), "{said}");
    // A lock file with the number of a running process.
    host.shell("umount /etc; printf 1 >/etc/group.lock");
    let said = host.shell(apply);
    assert!(said.contains("groupadd waited for the lock of the account files"), "{said}");
    host.shell("rm /etc/group.lock");
    host.shell(apply);
    host.shell("getent group late");
}

/// The tables can be read without root, and a change says that it needs root.
#[test]
fn a_change_without_root_is_one_clear_failure() {
    let host = Host::boot();
    host.write("/run/graph/graph.yaml", "graph: g\nresources:\n  user:\n    - name: late\n");
    let apply = "mkdir /run/state && chown nobody /run/state && setpriv --reuid nobody --clear-groups \
        steadfast apply --state-dir /run/state /run/graph/graph.yaml 2>&1 || true";
    let said = host.shell(apply);
    assert!(said.contains("steadfast must run as root to change accounts"), "{said}");
    assert!(host.run(&["getent", "passwd", "late"]).stdout.is_empty());
}

/// A program that writes an account table in place truncates it first. The tools must not run in that moment: they
/// would write a table with the declared rows alone.
#[test]
fn a_table_that_is_being_written_keeps_its_rows() {
    let host = Host::boot();
    host.write(
        GRAPH,
        "graph: g\nresources:\n  group:\n    - {name: deploy, gid: 2000}\n  user:\n    - {name: deploy, uid: 2000, group: deploy, password: \"*\"}\n",
    );
    host.shell("systemctl start steadfast; steadfast wait --timeout 60");
    let copies = "for f in group passwd shadow; do cp -a /etc/$f /root/$f; done";
    host.shell(copies);
    // In the first round each file is empty for 200 ms, in the other ones as long as `cp` takes.
    let lines = host.shell(
        "for f in group passwd shadow; do : >/etc/$f; sleep 0.2; cat /root/$f >/etc/$f; done
        for n in 1 2 3 4 5; do for f in group passwd shadow; do cp /root/$f /etc/$f; sleep 0.1; done; done
        steadfast wait --timeout 60 >/dev/null
        for f in group passwd shadow; do sort /etc/$f >/root/now; sort /root/$f | comm -23 - /root/now; done",
    );
    assert_eq!(lines.trim(), "", "lost rows");
    // An empty table is never filled with the declared rows alone.
    host.shell(": >/etc/group; sleep 2");
    assert_eq!(host.read("/etc/group").as_deref(), Some(""));
    // A new try hides the failure for a moment.
    host.until("status names the empty table", || {
        host.run(&["steadfast", "status"]).stdout.contains("/etc/group is empty")
    });
    host.shell("cp /root/group /etc/group; steadfast wait --timeout 60");
}

/// Removes a file as soon as it is there and empty; returns false if the time is over first.
fn remove_while_empty(file: &str, is_over: &AtomicBool) -> bool {
    while !is_over.load(Ordering::Relaxed) {
        let is_empty = std::fs::metadata(file).is_ok_and(|it| it.len() == 0);
        if is_empty && std::fs::remove_file(file).is_ok() {
            return true;
        }
    }
    false
}

/// A user can remove the file of keys between the step that makes it and the step that writes it. The second step then
/// makes a file of the user, not of root: steadfast would never change that one again.
#[test]
fn a_file_of_keys_that_vanishes_during_its_change_belongs_to_the_user() {
    let host = Host::boot();
    host.shell("useradd --create-home eve");
    host.write(
        "/root/keys.yaml",
        "graph: keys\nresources:\n  \"ssh:authorized_key\":\n    - name: key of eve\n      user: eve\n      \
         key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC eve@laptop\n",
    );
    let file = format!("/proc/{}/root/home/eve/.ssh/authorized_keys", host.leader());
    let mut removed = false;
    for _ in 0..20 {
        host.shell("rm -rf /home/eve/.ssh");
        let is_over = AtomicBool::new(false);
        removed = std::thread::scope(|scope| {
            let adversary = scope.spawn(|| remove_while_empty(&file, &is_over));
            host.shell("steadfast apply --yes /root/keys.yaml");
            is_over.store(true, Ordering::Relaxed);
            adversary.join().expect("no panic")
        });
        if removed {
            break;
        }
    }
    assert!(removed, "the file was removed in time");
    let found = host.shell("stat -c '%U %G %a' /home/eve/.ssh/authorized_keys");
    assert_eq!(found, "eve eve 600\n");
    assert!(host.read("/home/eve/.ssh/authorized_keys").expect("keys").ends_with(" eve@laptop\n"));
    let again =
        host.run(&["steadfast", "apply", "--yes", "--detailed-exitcode", "/root/keys.yaml"]);
    assert_eq!(again.code, Some(0), "{again:?}");
}
