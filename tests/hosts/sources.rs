//! The kinds `unit`, `repo` and `firewall` on a booted host, without a network.

use crate::host::Host;
use crate::service::GRAPH;

/// Applies a graph; returns the exit code and all output.
fn apply(host: &Host, resources: &str) -> (i32, String) {
    host.write(GRAPH, &format!("graph: host\nresources:\n{resources}"));
    let answer = host.run(&["steadfast", "apply", "--detailed-exitcode", GRAPH]);
    (answer.code.expect("an exit code"), answer.stdout + &answer.stderr)
}

/// Plans a graph; returns the exit code and all output.
fn plan(host: &Host, resources: &str) -> (i32, String) {
    host.write(GRAPH, &format!("graph: host\nresources:\n{resources}"));
    let answer = host.run(&["steadfast", "plan", GRAPH]);
    (answer.code.expect("an exit code"), answer.stdout + &answer.stderr)
}

/// Applies a graph that must change something, and again without a change.
fn made(host: &Host, resources: &str) {
    let (code, said) = apply(host, resources);
    assert_eq!(code, 2, "something is changed: {said}");
    let (code, said) = apply(host, resources);
    assert_eq!(code, 0, "nothing is changed again: {said}");
}

fn refused(host: &Host, resources: &str, expected: &str) {
    let (code, said) = apply(host, resources);
    assert!(code == 1 && said.contains(expected), "{code}: {said}");
}

const UNITS: &str = r"
  unit:
    - name: hello.service
      meta: { on_remove: delete }
      content: |
        [Service]
        ExecStart=/bin/sleep 1001
        [Install]
        WantedBy=multi-user.target
      enabled: true
      running: true
    - name: hello.timer
      content: |
        [Timer]
        OnCalendar=daily
";

const DROP_IN: &str = r"
  unit:
    - name: dbus.service
      drop_in: limits
      content: |
        [Service]
        LimitNOFILE=4321
    - name: priority of the bus
      unit: dbus.service
      drop_in: nice
      content: |
        [Service]
        Nice=3
";

#[test]
fn a_unit_is_verified_loaded_started_and_removed() {
    let host = Host::boot();
    let show = |property: &str, unit: &str| {
        let shown = host.run(&["systemctl", "show", "-P", property, unit]);
        shown.stdout.trim().to_owned()
    };
    // A plan shows what follows from the file that it writes.
    let (_, said) = plan(&host, UNITS);
    for words in ["state: absent -> file", "startup: enabled", "state: running"] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    made(&host, UNITS);
    let state = ["ActiveState", "UnitFileState"].map(|name| show(name, "hello.service"));
    assert_eq!(state, ["active", "enabled"]);
    assert!(show("ExecStart", "hello.service").contains("1001"));
    made(&host, &UNITS.replace("1001", "1002"));
    assert!(show("ExecStart", "hello.service").contains("1002"), "systemd has read the file again");
    made(&host, DROP_IN);
    assert_eq!(["LimitNOFILE", "Nice"].map(|name| show(name, "dbus.service")), ["4321", "3"]);
    // The first graph is gone with its resources: the unit is stopped, disabled and removed.
    assert_eq!(show("ActiveState", "hello.service"), "inactive");
    assert_eq!(host.read("/etc/systemd/system/hello.service"), None);
    refused(
        &host,
        "  unit:\n    - name: none.service\n      drop_in: a\n      content: \"[Service]\\n\"\n",
        "expected the unit none.service, found none",
    );
    refused(
        &host,
        "  unit:\n    - name: bad.service\n      content: |\n        [Service]\n        ExecStart=relative\n",
        "validate rejected the content",
    );
    assert_eq!(host.read("/etc/systemd/system/bad.service"), None);
}

const STARTED: &str = r"
  unit:
    - name: early.service
      content: |
        [Service]
        ExecStart=/bin/sh -c 'echo word:$WORD >/run/early; exec sleep 1004'
      running: true
    - name: word of early
      unit: early.service
      drop_in: word
      content: |
        [Service]
        Environment=WORD=first
";

/// The first start of a unit has what its drop-ins declare.
#[test]
fn a_unit_starts_after_its_drop_ins() {
    let host = Host::boot();
    made(&host, STARTED);
    host.until("the service", || host.read("/run/early").is_some_and(|text| text.ends_with('\n')));
    assert_eq!(host.read("/run/early").as_deref(), Some("word:first\n"));
    // The unit is verified together with its drop-in.
    host.shell(
        "systemctl stop early; rm -r /etc/systemd/system/early.service*; systemctl daemon-reload",
    );
    let wrong = STARTED.replace("Environment=WORD=first", "ExecStart=relative");
    refused(&host, &wrong, "validate rejected the content");
}

/// Shell functions that make a flat repository of one package, and serve nothing.
const REPOSITORY: &str = r#"
mkdir -p /repo /run/build/DEBIAN
printf 'Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n' >/run/build/DEBIAN/control
dpkg-deb --root-owner-group -Znone --build /run/build /repo >/dev/null
cd /repo
for deb in *.deb; do
  dpkg-deb -f "$deb"; echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"; echo
done >Packages
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
rm -rf /var/lib/apt/lists/*
"#;

#[test]
fn packages_come_from_a_repository_of_the_same_graph() {
    let host = Host::boot();
    host.shell(REPOSITORY);
    let graph = "  pkg:\n    - name: hello\n  repo:\n    - name: own\n      meta: { on_remove: delete }\n      uris: [\"copy:/repo\"]\n      suites: [\"./\"]\n      trusted: true\n";
    // In a plan, a group waits for the repository as its member does.
    let (code, said) =
        plan(&host, &graph.replace("hello", "hello\n    - name: sed\n      state: newest"));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("! pkg[hello]"), "{said}");
    made(&host, graph);
    assert_eq!(host.shell("dpkg-query -W -f '${Version}' hello"), "1");
    let wrong = "  repo:\n    - name: own\n      meta: { on_remove: delete }\n      uris: [\"copy:/nowhere\"]\n      suites: [\"./\"]\n      trusted: true\n";
    refused(&host, wrong, "the package lists of own could not be read");
    // The failure stays until its cause is gone.
    refused(&host, wrong, "the package lists of own could not be read");
    host.shell("cp -a /repo /nowhere");
    made(&host, wrong);
    let unsigned = wrong.replace("      trusted: true\n", "");
    refused(&host, &unsigned, "could not be read");
    let (code, said) = apply(&host, "  noop:\n    - name: a\n");
    assert_eq!(code, 2, "{said}");
    assert_eq!(host.read("/etc/apt/sources.list.d/own.sources"), None);
}

/// E-10: a repository that cannot be read stops the packages that only it has, and no other ones.
#[test]
fn packages_go_on_beside_an_unreachable_repository() {
    let host = Host::boot();
    host.shell(REPOSITORY);
    let graph = "  pkg:\n    - name: hello\n    - name: missing\n  repo:\n    - name: own\n      uris: [\"copy:/repo\"]\n      suites: [\"./\"]\n      trusted: true\n    - name: bad\n      uris: [\"copy:/nowhere\"]\n      suites: [\"./\"]\n      trusted: true\n";
    let (code, said) = apply(&host, graph);
    assert_eq!(code, 1, "{said}");
    assert_eq!(host.shell("dpkg-query -W -f '${Version}' hello"), "1");
    assert!(said.contains("the package lists of bad could not be read"), "{said}");
    assert!(said.contains("failed pkg[missing]"), "{said}");
    assert!(!said.contains("failed pkg[hello]"), "{said}");
    // The repository returns, with the package.
    host.shell(
        "cp -a /repo /nowhere; cd /nowhere; sed -i 's/hello/missing/g' Packages; \
         printf 'Package: missing\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n' >/run/build/DEBIAN/control; \
         rm *.deb; dpkg-deb --root-owner-group -Znone --build /run/build . >/dev/null; deb=$(ls *.deb); \
         { dpkg-deb -f $deb; echo \"Filename: ./$deb\"; echo \"Size: $(stat -c %s $deb)\"; \
           echo \"SHA256: $(sha256sum $deb | cut -d' ' -f1)\"; echo; } >Packages",
    );
    made(&host, graph);
    assert_eq!(host.shell("dpkg-query -W -f '${Version}' missing"), "1");
}

/// A repository of two components, with a package in each.
const COMPONENTS: &str = r#"
for c in main contrib; do
  mkdir -p /r/dists/st/$c/binary-amd64 /r/pool /run/b/DEBIAN
  printf "Package: of-$c\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n" >/run/b/DEBIAN/control
  dpkg-deb --root-owner-group -Znone --build /run/b /r/pool/of-$c.deb >/dev/null
  cd /r; { dpkg-deb -f pool/of-$c.deb; echo "Filename: pool/of-$c.deb"; echo "Size: $(stat -c %s pool/of-$c.deb)"
    echo "SHA256: $(sha256sum pool/of-$c.deb | cut -d' ' -f1)"; echo; } >dists/st/$c/binary-amd64/Packages
done
cd /r/dists/st
{ printf 'Origin: o\nSuite: st\nCodename: st\nComponents: main contrib\nArchitectures: amd64\nDate: %s\nSHA256:\n' "$(date -Ru)"
  for f in */binary-amd64/Packages; do echo " $(sha256sum $f | cut -d' ' -f1) $(stat -c %s $f) $f"; done; } >/run/Release
mv /run/Release Release
rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] copy:/r st main' >/etc/apt/sources.list
apt-get -q update 2>&1
"#;

/// The lists of another component of the same suite are no lists of this repository, and a missing key is a failure
/// also where lists exist.
#[test]
fn a_repository_beside_another_component_reads_its_lists() {
    let host = Host::boot();
    host.shell(COMPONENTS);
    let graph = "  pkg:\n    - name: of-contrib\n  repo:\n    - name: rr\n      uris: [\"copy:/r\"]\n      suites: [st]\n      components: [contrib]\n      trusted: true\n";
    made(&host, graph);
    assert_eq!(host.shell("dpkg-query -W -f '${Version}' of-contrib"), "1");
    let unsigned = graph.replace("trusted: true", "signed_by: /usr/share/keyrings/none.gpg");
    for _ in 0..2 {
        refused(&host, &unsigned, "the key file /usr/share/keyrings/none.gpg of rr does not exist");
    }
}

/// A plan of a new repository beside a package that can be changed at once.
#[test]
fn a_plan_of_a_new_repository_knows_the_other_packages() {
    let host = Host::boot();
    host.shell(REPOSITORY);
    host.shell("cp -a /repo /first; cd /first; sed -i 's/hello/app/' Packages");
    host.shell(
        "echo 'deb [trusted=yes] copy:/first ./' >/etc/apt/sources.list; apt-get -q update 2>&1",
    );
    let graph = "  pkg:\n    - name: app\n    - name: hello\n  repo:\n    - name: own\n      uris: [\"copy:/repo\"]\n      suites: [\"./\"]\n      trusted: true\n";
    let (code, said) = plan(&host, graph);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("! pkg[hello]") && said.contains("pkg[app]"), "{said}");
}

const RULES: &str = r#"
  firewall:
    - name: web
      meta: { on_remove: delete }
      content: |
        define ports = { 80, 443 }
        table inet web {
          set seen { type ipv4_addr; flags dynamic,timeout; timeout 1h; }
          set met { type ipv4_addr; flags dynamic; }
          chain input {
            type filter hook input priority 0; policy accept;
            iifname "lo" accept
            tcp dport $ports counter accept comment "web"
          }
        }
"#;

#[test]
fn tables_are_replaced_alone_and_drift_is_repaired() {
    let host = Host::boot();
    host.shell("nft add table inet foreign; nft add chain inet foreign a; nft add rule inet foreign a counter");
    let foreign = host.shell("nft list table inet foreign");
    made(&host, RULES);
    assert!(host.shell("nft list table inet web").contains("dport { 80, 443 }"));
    // A dynamic element and a counter are no drift.
    host.shell(
        "nft add element inet web seen { 192.0.2.1 }; nft add element inet web met { 192.0.2.1 }",
    );
    let (code, said) = apply(&host, RULES);
    assert_eq!(code, 0, "{said}");
    host.shell("nft flush chain inet web input");
    made(&host, RULES);
    // The stored file loads the same tables.
    host.shell("nft delete table inet web; nft -f /etc/nftables.d/web.nft");
    let (code, said) = apply(&host, RULES);
    assert_eq!(code, 0, "{said}");
    refused(&host, &RULES.replace("policy accept", "policy perhaps"), "nft rejected the content");
    assert!(host.shell("nft list table inet web").contains("dport"), "the old rules stay");
    let (code, said) = apply(&host, "  noop:\n    - name: a\n");
    assert_eq!(code, 2, "{said}");
    assert_eq!(host.run(&["nft", "list", "table", "inet", "web"]).code, Some(1));
    assert_eq!(host.read("/etc/nftables.d/web.nft"), None);
    assert_eq!(host.shell("nft list table inet foreign"), foreign);
}
