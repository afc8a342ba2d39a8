//! The objects that a package brings: its settings and units.
//!
//! The lists of dpkg name the files of an installed package. A package that is not installed yet brings what packages
//! with its name usually bring.

use super::Declared;
use crate::dependency::HostObject;
use crate::host::packages::PackagedFiles;
use std::path::PathBuf;

/// The usual places of the settings of a package.
const USUAL: [(&str, &str); 6] = [
    ("/etc/", ""),
    ("/etc/", ".conf"),
    ("/etc/default/", ""),
    ("/etc/logrotate.d/", ""),
    ("/var/lib/", ""),
    ("/usr/share/", ""),
];

/// The units and settings of packages of Debian that have other names than the package: unit names without their end,
/// and folders or files.
const KNOWN: &[(&str, &[&str], &[&str])] = &[
    ("apache2", &[], &["/etc/apache2"]),
    ("bind9", &["named"], &["/etc/bind"]),
    ("ca-certificates", &[], &["/usr/local/share/ca-certificates"]),
    ("certbot", &[], &["/etc/letsencrypt"]),
    ("cron", &[], &["/etc/cron.d", "/etc/crontab"]),
    ("docker-ce", &["docker"], &["/etc/docker"]),
    ("docker.io", &["docker"], &["/etc/docker"]),
    ("dovecot-core", &["dovecot"], &["/etc/dovecot"]),
    ("isc-dhcp-server", &[], &["/etc/dhcp"]),
    ("logrotate", &[], &["/etc/logrotate.d"]),
    ("mariadb-server", &["mariadb"], &["/etc/mysql"]),
    ("mysql-server", &["mysql"], &["/etc/mysql"]),
    ("nftables", &[], &["/etc/nftables.d"]),
    ("openssh-server", &["ssh", "sshd"], &["/etc/ssh"]),
    ("postgresql", &[], &["/etc/postgresql"]),
    ("redis-server", &[], &["/etc/redis"]),
    ("rsyslog", &[], &["/etc/rsyslog.d"]),
    ("samba", &["smbd", "nmbd"], &["/etc/samba"]),
    ("snmpd", &[], &["/etc/snmp"]),
    ("sudo", &[], &["/etc/sudoers.d", "/etc/sudoers"]),
    ("unattended-upgrades", &[], &["/etc/apt/apt.conf.d"]),
    ("wireguard-tools", &[], &["/etc/wireguard"]),
];

/// Returns what the package brings.
pub(super) fn provided_objects(declared: &Declared) -> Vec<HostObject> {
    let (name, _) = declared.name.split_once(':').unwrap_or((&declared.name, ""));
    if !declared.is_to_be_there() {
        return Vec::new();
    }
    let found = PackagedFiles::read(name);
    let usual = USUAL.iter().map(|(start, end)| PathBuf::from(format!("{start}{name}{end}")));
    let known = KNOWN.iter().find(|(known, _, _)| *known == name);
    let (own_units, own_paths) =
        known.map_or((&[][..], &[][..]), |(_, units, paths)| (units, paths));
    let own_paths = own_paths.iter().map(PathBuf::from);
    let paths = usual.chain(own_paths).chain(found.settings).map(HostObject::Brought);
    let unit = |name: String| HostObject::Unit { session: false, name };
    let usual_units = own_units.iter().copied().chain([name]).map(|it| format!("{it}.service"));
    let units = found.units.into_iter().chain(usual_units);
    let units: Vec<String> = units.collect();
    // A drop-in extends the unit, so the unit must be there before.
    let drop_ins = units.iter().map(|unit| PathBuf::from(format!("/etc/systemd/system/{unit}.d")));
    let paths = paths.chain(drop_ins.map(HostObject::Brought));
    let mut all: Vec<HostObject> = paths.collect();
    all.extend(units.into_iter().map(unit));
    all.push(HostObject::Package(name.to_owned()));
    all.sort();
    all.dedup();
    all
}
