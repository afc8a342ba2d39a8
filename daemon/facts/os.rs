//! The distribution, the kernel and the names of the host.

use super::collect::FactTree;
use super::host_root::HostRoot;
use std::collections::BTreeMap;

/// Collects the facts of the distribution.
pub(super) fn collect_os(root: &HostRoot, facts: &mut FactTree) {
    let text = root.text("/etc/os-release").or_else(|| root.text("/usr/lib/os-release"));
    let values = text.map(|text| assignments(&text)).unwrap_or_default();
    let get = |key: &str| values.get(key).filter(|value| !value.is_empty()).cloned();
    // The manual of os-release gives `linux` as the default.
    let id = get("ID").unwrap_or_else(|| "linux".to_owned());
    facts.put("os.family", family_of(&id, &get("ID_LIKE").unwrap_or_default()));
    facts.put("os.version", get("VERSION_ID").unwrap_or_default());
    facts.put("os.codename", get("VERSION_CODENAME").unwrap_or_default());
    facts.put("os.pretty_name", get("PRETTY_NAME").unwrap_or_else(|| id.clone()));
    facts.put("os.id", id);
}

/// Collects the names of the kernel and of the host.
pub(super) fn collect_names(root: &HostRoot, machine: &str, facts: &mut FactTree) {
    let architecture = (!machine.is_empty()).then(|| machine.to_owned());
    facts.put_some("architecture", architecture.or_else(|| root.word("/proc/sys/kernel/arch")));
    facts.put_some("kernel.name", root.word("/proc/sys/kernel/ostype"));
    facts.put_some("kernel.release", root.word("/proc/sys/kernel/osrelease"));
    facts.put_some("boot_id", root.word("/proc/sys/kernel/random/boot_id"));
    facts.put_some("machine_id", root.word("/etc/machine-id"));
    facts.put("reboot_required", root.exists("/run/reboot-required"));
    let time_zone = root.link("/etc/localtime").and_then(|target| {
        let (_, zone) = target.to_str()?.split_once("zoneinfo/")?;
        Some(zone.to_owned())
    });
    let time_zone = time_zone.or_else(|| root.word("/etc/timezone"));
    // Without a file the C library uses UTC.
    facts.put("time_zone", time_zone.unwrap_or_else(|| "UTC".to_owned()));
    let Some(host_name) = root.word("/proc/sys/kernel/hostname") else { return };
    facts.put_some("fqdn", full_name(root, &host_name));
    facts.put("hostname", host_name);
}

/// Returns the host name with its domain: the host name itself, or the first name of its line in /etc/hosts.
fn full_name(root: &HostRoot, host_name: &str) -> Option<String> {
    if host_name.contains('.') {
        return Some(host_name.to_owned());
    }
    let hosts = root.text("/etc/hosts")?;
    hosts.lines().find_map(|line| {
        let line = line.split('#').next()?;
        let names: Vec<&str> = line.split_whitespace().skip(1).collect();
        let is_named = names.contains(&host_name);
        let begins = |name: &&&str| {
            let rest = name.strip_prefix(host_name);
            is_named && rest.is_some_and(|rest| rest.starts_with('.'))
        };
        names.iter().find(begins).map(|name| (**name).to_owned())
    })
}

/// Returns the family of a distribution.
fn family_of(id: &str, like: &str) -> String {
    let names = std::iter::once(id).chain(like.split_whitespace());
    for name in names {
        let family = match name {
            "debian" | "ubuntu" => "debian",
            "fedora" | "rhel" | "centos" | "rocky" | "almalinux" | "amzn" | "ol" => "redhat",
            "suse" | "opensuse" | "sles" | "opensuse-leap" | "opensuse-tumbleweed" => "suse",
            "arch" | "archlinux" => "arch",
            "alpine" => "alpine",
            "gentoo" => "gentoo",
            _ => continue,
        };
        return family.to_owned();
    }
    id.to_owned()
}

/// Reads lines of the form KEY=VALUE as a shell would, without expansions.
pub(super) fn assignments(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        Some((key.to_owned(), unquoted(value)))
    };
    text.lines().filter_map(pair).collect()
}

fn unquoted(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            text.extend(letters.next());
        } else {
            text.push(letter);
        }
    }
    text
}
