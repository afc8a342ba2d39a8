//! The name, the time zone and the language of a host: set, and repaired after changes by hand.

use crate::host::Host;
use crate::service::GRAPH;

const IDENTITY: &str = r#"
graph: identity
resources:
  hostname:
    - {name: web1, pretty_hostname: First "web" server}
  timezone:
    - name: Europe/Berlin
"#;

const LANGUAGE: &str = r"
graph: language
resources:
  locale:
    - name: de_DE.UTF-8
      default: true
      variables: {LC_TIME: C.UTF-8}
";

/// A stand-in of the program of the package `locales`, which a minimal host lacks: each listed locale becomes a copy
/// of C.UTF-8 in the archive.
const LOCALE_GEN: &str = r#"#!/bin/sh
set -eu
[ "$*" = --keep-existing ]
grep -v '^#' /etc/locale.gen | while read -r name charset; do
  target=/run/locales/$(echo "$name" | sed s/UTF-8/utf8/)
  mkdir -p /run/locales
  cp -r /usr/lib/locale/C.utf8 "$target"
  localedef --replace --add-to-archive "$target"
  rm -r "$target"
done
"#;

#[test]
fn name_and_zone_are_set_and_repaired() {
    let host = Host::boot();
    let real = host.run(&["hostname"]).stdout;
    assert_ne!(real, "web1\n");
    host.write("/etc/machine-info", "# by hand\nCHASSIS=vm\n");
    host.write(GRAPH, IDENTITY);
    host.start();
    let look = "hostname; cat /etc/hostname /etc/machine-info; readlink /etc/localtime; cat /etc/timezone; \
        date -d @0 +%Z";
    let declared = "web1\nweb1\n# by hand\nCHASSIS=vm\nPRETTY_HOSTNAME=\"First \\\"web\\\" server\"\n\
        /usr/share/zoneinfo/Europe/Berlin\nEurope/Berlin\nCET\n";
    let is_declared = || host.run(&["sh", "-c", look]).stdout == declared;
    host.until("the identity to be set", is_declared);
    for damage in [
        "hostname other; echo other >/etc/hostname",
        "sed -i /PRETTY/d /etc/machine-info",
        "ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime",
        "cp /usr/share/zoneinfo/Asia/Tokyo /etc/copy; mv /etc/copy /etc/localtime",
        "echo Asia/Tokyo >/etc/timezone",
    ] {
        host.shell(damage);
        host.until(damage, is_declared);
    }
    let pretty = host.shell("hostnamectl --pretty || true");
    assert!(pretty.is_empty() || pretty == "First \"web\" server\n", "{pretty}");
    // The link of timedatectl leads to the same zone: it stays.
    host.shell("ln -sfn ../usr/share/zoneinfo/Europe/Berlin /etc/localtime; rm /etc/timezone");
    host.until("the name of the zone", || {
        host.read("/etc/timezone").as_deref() == Some("Europe/Berlin\n")
    });
    assert_eq!(host.shell("readlink /etc/localtime"), "../usr/share/zoneinfo/Europe/Berlin\n");
}

#[test]
fn an_unknown_zone_is_one_clear_failure() {
    let host = Host::boot();
    host.write("/root/graph.yaml", "graph: g\nresources:\n  timezone:\n    - name: Mars/Olympus\n");
    let said = host.run(&["steadfast", "apply", "/root/graph.yaml"]);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(
        said.contains("the host does not know this time zone") && said.contains("tzdata"),
        "{said}"
    );
    assert!(!host.shell("readlink /etc/localtime").contains("Mars"), "{said}");
}

#[test]
fn a_locale_is_generated_and_the_default() {
    let host = Host::boot();
    host.write("/usr/sbin/locale-gen", LOCALE_GEN);
    host.shell("chmod 0755 /usr/sbin/locale-gen");
    host.write("/etc/locale.gen", "# a list\n# de_DE.UTF-8 UTF-8\n# fr_FR.UTF-8 UTF-8\n");
    host.write("/etc/default/locale", "# by hand\nLANG=C\nLC_PAPER=C\n");
    host.write(GRAPH, LANGUAGE);
    host.start();
    let look = "cat /etc/locale.gen /etc/default/locale; locale -a | grep de_";
    let declared = "# a list\nde_DE.UTF-8 UTF-8\n# fr_FR.UTF-8 UTF-8\n\
        # by hand\nLANG=de_DE.UTF-8\nLC_PAPER=C\nLC_TIME=C.UTF-8\nde_DE.utf8\n";
    let is_declared = || host.run(&["sh", "-c", look]).stdout == declared;
    host.until("the locale to be made", is_declared);
    for damage in [
        "localedef --delete-from-archive de_DE.utf8",
        "rm /usr/lib/locale/locale-archive",
        "sed -i 's/^de_DE/# de_DE/' /etc/locale.gen",
        "sed -i 's/^LANG=.*/LANG=fr_FR/' /etc/default/locale",
    ] {
        host.shell(damage);
        host.until(damage, is_declared);
    }
    host.write(
        GRAPH,
        "graph: g\nresources:\n  locale:\n    - {name: de_DE.UTF-8, state: absent}\n",
    );
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    host.until("the locale to be removed", || {
        let list = host.read("/etc/locale.gen").unwrap_or_default();
        let is_listed = list.lines().any(|line| line.starts_with("de_DE"));
        !is_listed && !host.shell("locale -a").contains("de_DE")
    });
}
