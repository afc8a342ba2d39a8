//! The thirty tasks of docs/guide/cookbook.md, each applied as it is printed there on a fresh host with real packages,
//! and judged by other programs. A second plan of each task is empty.

use super::{boot, note};
use crate::guide::blocks;
use crate::host::Host;

const PACKAGES: &[&str] = &[
    "cron",
    "curl",
    "git",
    "gpg",
    "gpg-agent",
    "locales",
    "nftables",
    "nginx",
    "openssh-server",
    "postgresql-15",
    "sudo",
    "telnet",
    "tzdata",
];

/// The number of tasks that the guide promises.
const TASKS: usize = 30;

/// The addresses of the cookbook, and the folder of the host with their content.
const ADDRESSES: [(&str, &str); 4] = [
    ("https://deb.example.org/key.asc", "file:///srv/remote/key.asc"),
    ("https://deb.example.org/debian", "file:///srv/remote/debian"),
    ("https://git.example.org/app.git", "file:///srv/remote/app.git"),
    ("https://example.org/", "file:///srv/remote/"),
];

/// Makes the content of the addresses: a repository of Debian with a key, a program, an archive and a repository of
/// git.
const REMOTE: &str = r#"
apt-get install -y -q --no-install-recommends curl git gpg gpg-agent python3 >/dev/null 2>&1
mkdir -p /srv/remote/debian/dists/bookworm/main/binary-amd64 /srv/remote/debian/pool /run/build/DEBIAN
cd /srv/remote/debian
printf 'Package: example-agent\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n' >/run/build/DEBIAN/control
dpkg-deb --root-owner-group -Znone --build /run/build pool/example-agent.deb >/dev/null
lists=dists/bookworm/main/binary-amd64/Packages
{ dpkg-deb -f pool/example-agent.deb; echo "Filename: pool/example-agent.deb"
  echo "Size: $(stat -c %s pool/example-agent.deb)"
  echo "SHA256: $(sha256sum pool/example-agent.deb | cut -d' ' -f1)"; } >$lists
cd dists/bookworm
{ echo 'Suite: bookworm'; echo 'Codename: bookworm'; echo 'Components: main'; echo 'Architectures: amd64 all'
  echo "Date: $(date -Ru)"; echo SHA256:
  echo " $(sha256sum main/binary-amd64/Packages | cut -d' ' -f1) $(stat -c %s main/binary-amd64/Packages) main/binary-amd64/Packages"
} >Release
export GNUPGHOME=/run/gpg; mkdir -m 700 $GNUPGHOME
gpg --batch --quiet --passphrase '' --quick-generate-key 'example <a@b.c>' ed25519 sign never
gpg --batch --quiet --clearsign -o InRelease Release
gpg --batch --quiet --armor --export >/srv/remote/key.asc
printf hello >/srv/remote/tool-1.2
mkdir -p /run/app/app-1.2; echo app >/run/app/app-1.2/main
tar -C /run/app -czf /srv/remote/app-1.2.tar.gz app-1.2
git init -q /run/app.git; cd /run/app.git; echo v1.2 >version; git add version
git -c user.name=a -c user.email=a@b.c commit -qm one; git tag v1.2
git clone -q --bare /run/app.git /srv/remote/app.git
git config --system --add safe.directory '*'
for name in backup index migrate report shop tool-of-app; do
  printf '#!/bin/sh\nexec sleep 1009\n' >/usr/local/bin/$name; chmod 0755 /usr/local/bin/$name
done
printf '#!/bin/sh\nmkdir -p /var/lib/shop; echo done >>/var/lib/shop/migrated\n' >/usr/local/bin/migrate
printf '#!/bin/sh\necho done >>/var/lib/shop/index\n' >/usr/local/bin/index
printf '[Service]\nExecStart=/bin/sleep 1010\n' >/etc/systemd/system/app.service
systemctl daemon-reload
"#;

/// One task of the cookbook on a host.
struct Task {
    /// The number of its heading.
    number: usize,
    /// The script that makes what the text of the task takes for granted.
    prepare: &'static str,
    /// The script of other programs that succeeds if the task is done.
    judge: &'static str,
}

const fn task(number: usize, prepare: &'static str, judge: &'static str) -> Task {
    Task { number, prepare, judge }
}

/// The task that a host without a kernel of its own cannot do: it has neither block devices nor swap.
const WITH_A_KERNEL: usize = 26;

#[rustfmt::skip]
const CASES: &[Task] = &[
    task(1, "", "getent passwd ada | grep -q ':/home/ada:/bin/bash$'; test -d /home/ada; grep -q 'ada@laptop$' /home/ada/.ssh/authorized_keys"),
    task(2, "apt-get install -y -q sudo >/dev/null", "id -nG ada | grep -qw sudo; visudo -c >/dev/null; runuser -u ada -- sudo -n -l | grep -q 'restart shop'"),
    task(3, "groupadd --force --users bin web 2>/dev/null || { groupadd web; gpasswd -a bin web; }", "test \"$(getent group web | cut -d: -f4)\" = ada,www-data"),
    task(4, "useradd bob; echo bob:secret | chpasswd", "passwd -S bob | grep -q '^bob L '; chage -l bob | grep -q 'Account expires.*Jan 02, 1970'"),
    task(5, "apt-get install -y -q openssh-server >/dev/null; systemctl start ssh", "sshd -T | grep -qx 'permitrootlogin without-password'"),
    task(6, "rm -f /etc/motd", "test \"$(cat /etc/motd)\" = 'Managed by steadfast.'"),
    task(7, "mkdir -p /srv/sites; touch /srv/sites/old /srv/sites/a.log", "test \"$(ls /srv/sites | tr '\\n' ' ')\" = 'a.log index.html '"),
    task(8, "", "test \"$(readlink /srv/shop/current)\" = releases/42"),
    task(9, "", "grep -qx 'root: ada@example.org' /etc/aliases"),
    task(10, "", "sshd -t; grep -q 'ForceCommand internal-sftp' /etc/ssh/sshd_config"),
    task(11, "", "systemd-analyze cat-config systemd/journald.conf | grep -qx 'SystemMaxUse=500M'"),
    task(12, "mkdir -p /etc/docker", "python3 -c 'import json; assert json.load(open(\"/etc/docker/daemon.json\"))[\"log-opts\"][\"max-size\"] == \"10m\"'"),
    task(13, "mkdir -p /etc/shop; umask 077; printf pw >/etc/steadfast/database.secret", "test \"$(stat -c %U:%a /etc/shop/database) $(cat /etc/shop/database)\" = 'www-data:400 pw'"),
    task(14, "", "nginx -T 2>/dev/null | grep -q 'client_max_body_size 20m'; systemctl is-active -q nginx; systemctl is-enabled -q nginx"),
    task(15, "apt-get install -y -q telnet >/dev/null", "! dpkg-query -W -f '${Status}' telnet 2>/dev/null | grep -q ' installed$'"),
    task(16, "", "apt-mark showhold | grep -qx postgresql-15"),
    task(17, "", "dpkg-query -W example-agent | grep -q '1$'"),
    task(18, "", "systemctl is-active -q shop; systemctl is-enabled -q shop; test \"$(systemctl show -P DynamicUser shop)\" = yes"),
    // The hard limit of the machine bounds that of the process, so that the unit is judged, and the restart.
    task(19, "systemctl show -P MainPID nginx >/run/before.pid", "test \"$(systemctl show -P LimitNOFILE nginx)\" = 65536; test \"$(systemctl show -P MainPID nginx)\" != \"$(cat /run/before.pid)\""),
    task(20, "", "systemctl is-active -q backup.timer; systemctl show -P TimersCalendar backup.timer | grep -q 03:00"),
    task(21, "apt-get install -y -q cron >/dev/null", "grep -q '^0 7 \\* \\* \\(1-5\\|mon-fri\\) www-data /usr/local/bin/report$' /etc/cron.d/*"),
    task(22, "systemctl show -P MainPID shop >/run/shop.pid", "grep -qx port=8081 /etc/shop.conf; test \"$(systemctl show -P MainPID shop)\" != \"$(cat /run/shop.pid)\""),
    task(23, "apt-get install -y -q locales tzdata >/dev/null", "test \"$(hostname)\" = web1; test \"$(readlink -f /etc/localtime)\" = /usr/share/zoneinfo/Europe/Berlin; locale -a | grep -qx en_GB.utf8; grep -qx LANG=en_GB.UTF-8 /etc/default/locale"),
    task(24, "", "getent hosts db | grep -q '192.0.2.7 .*db.example.org'"),
    task(25, "", "test \"$(cat /proc/sys/net/ipv4/ip_forward) $(cat /proc/sys/net/ipv4/conf/all/rp_filter)\" = '1 2'"),
    task(27, "apt-get install -y -q nftables >/dev/null", "nft list table inet web | grep -q 'tcp dport { 22, 80, 443 } accept'"),
    task(28, "", "test \"$(cat /usr/local/bin/tool) $(stat -c %a /usr/local/bin/tool)\" = 'hello 755'; test \"$(cat /opt/app/main)\" = app"),
    task(29, "systemctl start app; systemctl show -P MainPID app >/run/app.pid", "test \"$(cat /srv/app/version)\" = v1.2; test \"$(systemctl show -P MainPID app)\" != \"$(cat /run/app.pid)\""),
    task(30, "", "test \"$(cat /var/lib/shop/migrated /var/lib/shop/index | wc -l)\" = 2"),
];

/// Returns the graph of a task for this host: the addresses and their checksums are those of the host, and the version
/// of a package is that of its repository.
fn graph_on(host: &Host, graph: &str) -> String {
    let mut graph = graph.to_owned();
    for (address, here) in ADDRESSES {
        graph = graph.replace(address, here);
    }
    let sum =
        |file: &str| host.shell(&format!("sha256sum {file} | cut -d' ' -f1")).trim().to_owned();
    let printed = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    for file in ["/srv/remote/key.asc", "/srv/remote/app-1.2.tar.gz"] {
        let address = format!("url: file://{file}\n");
        if let Some((before, after)) = graph.split_once(&address) {
            graph = format!("{before}{address}{}", after.replacen(printed, &sum(file), 1));
        }
    }
    let candidate = "apt-cache policy postgresql-15 | sed -n 's/^  Candidate: //p'";
    graph.replace("15.18-0+deb12u1", host.shell(candidate).trim())
}

/// The cookbook has thirty tasks with one graph each, and each has a case here.
#[test]
fn the_cookbook_has_thirty_tasks() {
    let numbers: Vec<usize> = CASES.iter().map(|task| task.number).collect();
    let expected: Vec<usize> = (1..=TASKS).filter(|number| *number != WITH_A_KERNEL).collect();
    assert_eq!(numbers, expected);
    let graphs =
        blocks("cookbook.md").into_iter().filter(|block| block.text.starts_with("graph: "));
    assert_eq!(graphs.count(), TASKS);
}

#[test]
#[ignore = "installs whole packages: tests/run --slow servers"]
fn each_task_of_the_cookbook_works() {
    let host = boot("/etc/steadfast/cookbook.yaml", PACKAGES);
    host.shell(&format!("export DEBIAN_FRONTEND=noninteractive\n{REMOTE}"));
    let graphs: Vec<_> =
        blocks("cookbook.md").into_iter().filter(|it| it.language == "yaml").collect();
    let mut complaints = Vec::new();
    for task in CASES {
        let graph = graph_on(&host, &graphs[task.number - 1].text);
        let (file, state) =
            (format!("/run/{}.yaml", task.number), format!("/run/state-{}", task.number));
        host.write(&file, &graph);
        host.shell(&format!("export DEBIAN_FRONTEND=noninteractive\n{}", task.prepare));
        let run = |words: &[&str]| {
            let answer = host.run(&[words, &["--state-dir", &state, &file]].concat());
            (answer.code, format!("{}{}", answer.stdout, answer.stderr))
        };
        let (code, said) = run(&["steadfast", "apply", "--yes"]);
        let (plan, planned) = run(&["steadfast", "plan", "--detailed-exitcode"]);
        let judged = host.run(&["sh", "-euxc", task.judge]);
        if (code, plan, judged.code) != (Some(0), Some(0), Some(0)) {
            complaints.push(format!(
                "{}: apply {code:?}: {said}\nplan {plan:?}: {planned}\njudge {:?}: {}{}",
                task.number, judged.code, judged.stdout, judged.stderr
            ));
        }
        note(&format!("task {}: {code:?} {plan:?} {:?}", task.number, judged.code));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n--\n"));
}
