//! Packages on a test host, from a repository that the test creates there, without a network.
//!
//! No test installs a package outside its host. Reading order: this file, then `states`, `declared`, `groups`,
//! `faults`, `judged`, `outlived`, `planned` and `recorded`.

mod declared;
pub(crate) mod faults;
mod groups;
mod judged;
mod outlived;
mod planned;
mod recorded;
mod states;

use crate::host::Host;
use crate::service::GRAPH;

/// Shell functions: `make NAME VERSION [MORE OF CONTROL] [POSTINST] [MORE]` builds a package in the repository,
/// `index` lists the packages, `publish` updates apt.
///
/// MORE is a shell script that runs in the build folder. `$arch` is the architecture of the package, if any.
const REPOSITORY: &str = r#"
mkdir -p /repo
make() {
  rm -rf /run/build; mkdir -p "/run/build/DEBIAN" "/run/build/etc/$1" "/run/build/usr/share/$1"
  echo "$2" >"/run/build/usr/share/$1/version"
  echo "of the package, $2" >"/run/build/etc/$1/$1.conf"
  echo "/etc/$1/$1.conf" >/run/build/DEBIAN/conffiles
  {
    echo "Package: $1"; echo "Version: $2"; echo "Architecture: ${arch:-all}"
    echo "Maintainer: nobody <nobody@example.org>"; echo "Description: $1"
    [ -z "${3:-}" ] || echo "$3"
  } >/run/build/DEBIAN/control
  if [ -n "${4:-}" ]; then
    printf '#!/bin/sh\n%s\n' "$4" >/run/build/DEBIAN/postinst; chmod 755 /run/build/DEBIAN/postinst
  fi
  (cd /run/build && eval "${5:-}")
  dpkg-deb --root-owner-group -Znone --build /run/build /repo >/dev/null
}
index() {
  cd /repo
  for deb in *.deb; do
    dpkg-deb -f "$deb"
    echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
    echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"; echo
  done >Packages
}
publish() {
  index
  rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
  echo 'deb [trusted=yes] copy:/repo ./' >/etc/apt/sources.list
  apt-get -q update 2>&1
}
"#;

impl Host {
    /// Boots a host with the packages that this script builds.
    fn with_packages(script: &str) -> Self {
        let host = Self::boot();
        host.repository(&format!("{script}\npublish"));
        host
    }

    fn repository(&self, script: &str) {
        self.shell(&format!("{REPOSITORY}\n{script}"));
    }

    /// Writes a graph of packages: names with further fields.
    fn declare(&self, packages: &[(&str, &str)]) {
        let mut graph = "graph: host\nresources:\n  pkg:\n".to_owned();
        for (name, fields) in packages {
            graph.push_str(&format!("    - {{ name: \"{name}\", {fields} }}\n"));
        }
        self.write(GRAPH, &graph);
    }

    /// Runs `steadfast apply`; returns the exit code and all output.
    fn apply(&self) -> (i32, String) {
        let answer = self.run(&["steadfast", "apply", GRAPH]);
        (answer.code.expect("an exit code"), answer.stdout + &answer.stderr)
    }

    /// Returns dpkg's state and version of a package; empty for a package that is unknown or only mentioned by
    /// others.
    fn package(&self, name: &str) -> String {
        let format = "--showformat=${db:Status-Abbrev} ${Version}";
        let said = self.run(&["dpkg-query", "--show", format, name]).stdout.trim().to_owned();
        if said == "un" { String::new() } else { said }
    }

    /// Counts the transactions of apt.
    fn transactions(&self) -> usize {
        let log = self.read("/var/log/apt/history.log").unwrap_or_default();
        log.lines().filter(|line| line.starts_with("Commandline:")).count()
    }
}
