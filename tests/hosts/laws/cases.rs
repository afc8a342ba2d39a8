//! The table: one case for each kind of the build, or the reason why there is none.

use super::{Case, Removal, Repair, Undo};

/// Kinds without a case, with the reason.
pub(super) const UNTRIED: &[(&str, &str)] = &[
    ("export", "changes the world: tests/world has its tests with real daemons"),
    ("kmod", "needs a kernel of its own: tests/machine loads a real module"),
    ("kv", "changes the world: tests/world has its tests with real daemons"),
    ("msg", "changes nothing on the host"),
    ("noop", "changes nothing on the host"),
    ("password", "changes nothing on the host"),
    ("print", "changes nothing on the host"),
    ("probe", "changes nothing on the host"),
    ("swap", "needs a kernel of its own: tests/machine uses a real swap file"),
    ("test", "a kind for tests"),
    ("timer", "changes nothing on the host"),
    ("value", "changes nothing on the host"),
];

/// A case that an event repairs, that a removal and an undo leave as before.
const USUAL: Case = Case {
    kind: "",
    name: "",
    fields: "",
    prepare: "",
    observe: "",
    declared: "",
    breaks: &[],
    repair: Repair::Event,
    removal: Removal::AsBefore,
    undo: Undo::AsBefore,
};

/// A server that answers every request with the line `one`.
const SERVER: &str = r"
cat >/etc/laws-http <<'END'
#!/bin/sh
read -r line
printf 'HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\none\n'
cat >/dev/null
END
chmod 755 /etc/laws-http
cd /etc/systemd/system
printf '[Socket]\nListenStream=127.0.0.1:8080\nAccept=yes\n' >laws-http.socket
printf '[Service]\nStandardInput=socket\nExecStart=/etc/laws-http\n' >laws-http@.service
systemctl daemon-reload
systemctl start laws-http.socket
";

pub(super) const CASES: &[Case] = &[
    Case {
        kind: "archive",
        name: "/srv/laws/archive",
        fields: "source: /srv/laws/a.tar, strip: 1",
        prepare: "mkdir -p /run/a/top; echo one >/run/a/top/file; tar -C /run/a -cf /srv/laws/a.tar top",
        observe: "cat /srv/laws/archive/file; stat -c %a /srv/laws/archive",
        declared: "one\n755\n",
        breaks: &[
            "mv /srv/laws/archive /srv/moved",
            "echo two >/srv/laws/archive/file",
            "rm /srv/laws/archive/file",
            "chmod 700 /srv/laws/archive",
        ],
        ..USUAL
    },
    Case {
        kind: "block",
        name: "laws",
        fields: r#"path: /srv/laws/block, content: "a\nb\n""#,
        prepare: r"printf 'first\nlast\n' >/srv/laws/block",
        observe: "cat /srv/laws/block",
        declared: "first\nlast\n# BEGIN steadfast: laws\na\nb\n# END steadfast: laws\n",
        breaks: &[
            "sed -i /^a/d /srv/laws/block",
            r"printf 'first\nlast\n' >/srv/new; mv /srv/new /srv/laws/block",
        ],
        ..USUAL
    },
    Case {
        kind: "cron",
        name: "laws",
        fields: "minute: 5, job: /usr/bin/true",
        observe: "cat /etc/cron.d/laws; stat -c '%a %U' /etc/cron.d/laws",
        declared: "# Managed by steadfast: cron[laws]\n5 * * * * root /usr/bin/true\n644 root\n",
        breaks: &[
            "rm /etc/cron.d/laws",
            "sed -i s/^5/6/ /etc/cron.d/laws",
            "chmod 600 /etc/cron.d/laws",
            "chown backup /etc/cron.d/laws",
        ],
        ..USUAL
    },
    Case {
        kind: "divert",
        name: "/etc/laws.conf",
        prepare: "echo packaged >/etc/laws.conf",
        observe: "dpkg-divert --list /etc/laws.conf; cat /etc/laws.conf.distrib; ls /etc/laws.conf*",
        declared: "local diversion of /etc/laws.conf to /etc/laws.conf.distrib\npackaged\n\
                   /etc/laws.conf.distrib\n",
        breaks: &["dpkg-divert --quiet --rename --remove /etc/laws.conf"],
        ..USUAL
    },
    Case {
        kind: "exec",
        name: "laws",
        fields: "args: [/usr/bin/touch, /srv/laws/exec], creates: /srv/laws/exec",
        observe: "ls /srv/laws/exec",
        declared: "/srv/laws/exec\n",
        breaks: &["rm /srv/laws/exec"],
        removal: Removal::None("a command has no removal (C305)"),
        undo: Undo::Refused("command"),
        ..USUAL
    },
    Case {
        kind: "fetch",
        name: "/srv/laws/fetched",
        fields: "url: http://127.0.0.1:8080/one, mode: '0644', \
                 checksum: sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806",
        prepare: SERVER,
        observe: "cat /srv/laws/fetched; stat -c %a /srv/laws/fetched",
        declared: "one\n644\n",
        breaks: &[
            "rm /srv/laws/fetched",
            "echo two >/srv/laws/fetched",
            "chmod 600 /srv/laws/fetched",
        ],
        ..USUAL
    },
    Case {
        kind: "file",
        name: "/srv/laws/file",
        fields: r#"content: "declared\n", mode: "0664", owner: root"#,
        prepare: "echo before >/srv/laws/file",
        observe: "cat /srv/laws/file; stat -c '%a %U' /srv/laws/file",
        declared: "declared\n664 root\n",
        breaks: &[
            "echo x >/srv/laws/file",
            "rm /srv/laws/file",
            "chmod 600 /srv/laws/file",
            "chown backup /srv/laws/file",
        ],
        removal: Removal::Otherwise(
            "declared\n664 root\n",
            "the file is adopted: it existed before",
        ),
        ..USUAL
    },
    Case {
        kind: "firewall",
        name: "laws",
        fields: r#"content: "table inet laws {\n chain c {\n tcp dport 80 accept\n }\n}\n""#,
        observe: "nft list table inet laws | grep -o 'dport.*'; ls /etc/nftables.d/laws.nft",
        declared: "dport 80 accept\n/etc/nftables.d/laws.nft\n",
        breaks: &[
            "nft flush chain inet laws c",
            "nft delete table inet laws",
            "rm /etc/nftables.d/laws.nft",
        ],
        ..USUAL
    },
    Case {
        kind: "git",
        name: "/srv/laws/tree",
        fields: "repo: /srv/laws/origin, version: v1",
        prepare: r#"git init -q -b main /srv/laws/origin; cd /srv/laws/origin
                    git config user.name a; git config user.email a@b; echo one >file; git add file
                    export GIT_COMMITTER_DATE="2026-01-01T00:00:00Z" GIT_AUTHOR_DATE="2026-01-01T00:00:00Z"
                    git commit -q -m one; git tag v1"#,
        observe: "cat /srv/laws/tree/file; git -C /srv/laws/tree log -1 --format=%s",
        declared: "one\none\n",
        breaks: &[
            "rm -r /srv/laws/tree",
            "git -C /srv/laws/tree -c user.name=a -c user.email=a@b commit -q --allow-empty -m other",
        ],
        ..USUAL
    },
    Case {
        kind: "group",
        name: "laws-group",
        fields: "gid: 2900, members: [backup]",
        observe: "getent group laws-group",
        declared: "laws-group:x:2900:backup\n",
        breaks: &[
            "groupdel laws-group",
            "gpasswd -d backup laws-group",
            "groupmod -g 2950 laws-group",
        ],
        ..USUAL
    },
    Case {
        kind: "hostname",
        name: "laws-host",
        fields: "",
        prepare: "echo before >/etc/hostname; hostname before",
        observe: "hostname; cat /etc/hostname",
        declared: "laws-host\nlaws-host\n",
        breaks: &["echo other >/etc/hostname", "hostname other"],
        removal: Removal::None("every host has a name"),
        ..USUAL
    },
    Case {
        kind: "hosts",
        name: "db.laws",
        fields: "ip: 192.0.2.7, names: [db]",
        prepare: "echo 127.0.0.1 localhost >/etc/hosts",
        observe: "grep laws /etc/hosts",
        declared: "192.0.2.7\tdb.laws db\n",
        breaks: &["sed -i /laws/d /etc/hosts", "sed -i s/192.0.2.7/192.0.2.8/ /etc/hosts"],
        ..USUAL
    },
    Case {
        kind: "ini",
        name: "laws",
        fields: "path: /srv/laws/ini, section: a, key: k, value: v",
        prepare: r"printf '[a]\nother = 1\n[b]\n' >/srv/laws/ini",
        observe: "cat /srv/laws/ini",
        declared: "[a]\nother = 1\nk = v\n[b]\n",
        breaks: &["sed -i /^k/d /srv/laws/ini", "sed -i 's/^k.*/k = w/' /srv/laws/ini"],
        ..USUAL
    },
    Case {
        kind: "json",
        name: "laws",
        fields: "path: /srv/laws/json, key: k, value: v",
        prepare: r#"printf '{\n  "other": 1\n}\n' >/srv/laws/json"#,
        observe: "cat /srv/laws/json",
        declared: "{\n  \"other\": 1,\n  \"k\": \"v\"\n}\n",
        breaks: &[
            r#"printf '{\n  "other": 1\n}\n' >/srv/new; mv /srv/new /srv/laws/json"#,
            "sed -i s/v/w/ /srv/laws/json",
        ],
        ..USUAL
    },
    Case {
        kind: "line",
        name: "laws",
        fields: "path: /srv/laws/line, line: added",
        prepare: "echo first >/srv/laws/line",
        observe: "cat /srv/laws/line",
        declared: "first\nadded\n",
        breaks: &["sed -i /added/d /srv/laws/line"],
        ..USUAL
    },
    Case {
        kind: "locale",
        name: "C.UTF-8",
        fields: "default: true",
        prepare: r"printf '# by hand\nLANG=C\n' >/etc/default/locale",
        observe: "cat /etc/default/locale",
        declared: "# by hand\nLANG=C.UTF-8\n",
        breaks: &["sed -i s/^LANG.*/LANG=C/ /etc/default/locale"],
        removal: Removal::None("C.UTF-8 belongs to the host, and a host has a language"),
        ..USUAL
    },
    Case {
        kind: "mount",
        name: "/srv/laws/mount",
        fields: "device: tmpfs, type: tmpfs, options: [noexec, size=1m]",
        prepare: "mkdir /srv/laws/mount; echo '# rows' >/etc/fstab",
        observe: "findmnt -no FSTYPE /srv/laws/mount; findmnt -no VFS-OPTIONS /srv/laws/mount | grep -o noexec; \
                  cat /etc/fstab",
        declared: "tmpfs\nnoexec\n# rows\ntmpfs /srv/laws/mount tmpfs noexec,size=1m 0 0\n",
        breaks: &[
            "umount /srv/laws/mount",
            "sed -i /laws/d /etc/fstab",
            "mount -o remount,exec /srv/laws/mount",
        ],
        ..USUAL
    },
    Case {
        kind: "pkg",
        name: "laws-pkg",
        fields: "",
        observe: "dpkg-query -W -f '${db:Status-Abbrev}${Version}\\n' laws-pkg | grep -v ^un",
        declared: "ii 1\n",
        breaks: &["dpkg --purge laws-pkg"],
        repair: Repair::Transaction,
        ..USUAL
    },
    Case {
        kind: "replace",
        name: "laws",
        fields: r"path: /srv/laws/replace, match: '^#?(timeout)=.*$', replacement: '\1=2'",
        prepare: r"printf 'a\n#timeout=5\nb\n' >/srv/laws/replace",
        observe: "cat /srv/laws/replace",
        declared: "a\ntimeout=2\nb\n",
        breaks: &["sed -i s/=2/=9/ /srv/laws/replace"],
        removal: Removal::None("the text that was replaced is not stored with the declaration"),
        ..USUAL
    },
    Case {
        kind: "repo",
        name: "laws",
        fields: r#"uris: ["copy:/more"], suites: ["./"], trusted: true"#,
        observe: "tail -n +2 /etc/apt/sources.list.d/laws.sources; ls /var/lib/apt/lists | grep more",
        declared: "Types: deb\nURIs: copy:/more\nSuites: ./\nTrusted: yes\n_more_._Packages\n",
        breaks: &[
            "rm /etc/apt/sources.list.d/laws.sources",
            "sed -i s/more/less/ /etc/apt/sources.list.d/laws.sources",
            "rm /var/lib/apt/lists/_more_._Packages",
        ],
        repair: Repair::Transaction,
        removal: Removal::Otherwise(
            "_more_._Packages\n",
            "apt ignores the lists of a repository that is gone, and its next update removes them",
        ),
        undo: Undo::Otherwise(
            "_more_._Packages\n",
            "apt ignores the lists of a repository that is gone, and its next update removes them",
        ),
        ..USUAL
    },
    Case {
        kind: "ssh:authorized_key",
        name: "laws",
        fields: "user: root, key: ssh-ed25519 \
                 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC eve@laptop",
        observe: "cat /root/.ssh/authorized_keys; stat -c %a /root/.ssh/authorized_keys",
        declared: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC \
                   eve@laptop\n600\n",
        breaks: &["sed -i d /root/.ssh/authorized_keys", "mv /root/.ssh /root/moved"],
        removal: Removal::Otherwise("600\n", "the file may get other keys"),
        ..USUAL
    },
    Case {
        kind: "svc",
        name: "laws-svc",
        fields: "state: running, startup: enabled",
        prepare: r"cd /etc/systemd/system
                   printf '[Service]\nExecStart=/bin/sleep 1003\n[Install]\n' >laws-svc.service
                   echo WantedBy=multi-user.target >>laws-svc.service; systemctl daemon-reload",
        observe: "systemctl is-active laws-svc; systemctl is-enabled laws-svc",
        declared: "active\nenabled\n",
        breaks: &[
            "systemctl stop laws-svc",
            "systemctl kill -s KILL laws-svc",
            "systemctl disable laws-svc 2>/dev/null",
        ],
        ..USUAL
    },
    Case {
        kind: "sysctl",
        name: "net.ipv4.ip_forward",
        fields: "value: 1",
        prepare: "sysctl -qw net.ipv4.ip_forward=0 || echo 0 >/proc/sys/net/ipv4/ip_forward; \
                  mkdir -p /etc/sysctl.d; : >/etc/sysctl.d/60-steadfast.conf",
        observe: "cat /proc/sys/net/ipv4/ip_forward /etc/sysctl.d/60-steadfast.conf",
        declared: "1\nnet.ipv4.ip_forward = 1\n",
        breaks: &[
            "sed -i d /etc/sysctl.d/60-steadfast.conf",
            "echo 0 >/proc/sys/net/ipv4/ip_forward",
        ],
        removal: Removal::Otherwise("1\n", "the value of the kernel stays until the next boot"),
        ..USUAL
    },
    Case {
        kind: "timezone",
        name: "Europe/Berlin",
        fields: "",
        prepare: "ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime; echo Etc/UTC >/etc/timezone",
        observe: "readlink /etc/localtime; cat /etc/timezone",
        declared: "/usr/share/zoneinfo/Europe/Berlin\nEurope/Berlin\n",
        breaks: &[
            "ln -sfn /usr/share/zoneinfo/Asia/Tokyo /etc/localtime",
            "echo Asia/Tokyo >/etc/timezone",
        ],
        removal: Removal::None("every host has a time zone"),
        ..USUAL
    },
    Case {
        kind: "toml",
        name: "laws",
        fields: "path: /srv/laws/toml, key: a.k, value: v",
        prepare: r"printf '[a]\nother = 1 # kept\n' >/srv/laws/toml",
        observe: "cat /srv/laws/toml",
        declared: "[a]\nother = 1 # kept\nk = \"v\"\n",
        breaks: &["sed -i /^k/d /srv/laws/toml", "sed -i 's/\"v\"/\"w\"/' /srv/laws/toml"],
        ..USUAL
    },
    Case {
        kind: "unit",
        name: "laws-unit.service",
        fields: "enabled: true, running: true, content: \"[Service]\\nExecStart=/bin/sleep 1004\\n[Install]\\n\
                 WantedBy=multi-user.target\\n\"",
        observe: "systemctl show -P ExecStart laws-unit | grep -o 'argv.*1004'; systemctl is-active laws-unit; \
                  systemctl is-enabled laws-unit",
        declared: "argv[]=/bin/sleep 1004\nactive\nenabled\n",
        breaks: &[
            "rm /etc/systemd/system/laws-unit.service",
            "sed -i s/1004/1005/ /etc/systemd/system/laws-unit.service; systemctl daemon-reload",
            "systemctl stop laws-unit",
            "systemctl disable laws-unit 2>/dev/null",
        ],
        ..USUAL
    },
    Case {
        kind: "user",
        name: "laws-user",
        fields: "uid: 2901, shell: /bin/bash, comment: Laws, homedir: /srv/laws-user",
        observe: "getent passwd laws-user | cut -d: -f1,3,5-",
        declared: "laws-user:2901:Laws:/srv/laws-user:/bin/bash\n",
        breaks: &[
            "userdel laws-user",
            "sed -i /^laws-user:/d /etc/passwd",
            "usermod -s /bin/sh laws-user",
            "usermod -c other laws-user",
            "usermod -u 2950 laws-user",
            "usermod -d /srv/other laws-user",
        ],
        ..USUAL
    },
    Case {
        kind: "yaml",
        name: "laws",
        fields: "path: /srv/laws/yaml, key: a.k, value: v",
        prepare: r"printf 'a:\n  other: 1 # kept\n' >/srv/laws/yaml",
        observe: "cat /srv/laws/yaml",
        declared: "a:\n  other: 1 # kept\n  k: v\n",
        breaks: &["sed -i /k:/d /srv/laws/yaml", "sed -i 's/k: v/k: w/' /srv/laws/yaml"],
        ..USUAL
    },
];
