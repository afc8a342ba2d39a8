//! Virtual machine, container, init system and package manager.

use super::collect::FactTree;
use super::host_root::HostRoot;

/// Text of the firmware, with the name of the virtual machine that it means.
const FIRMWARE: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("Amazon EC2", "amazon"),
    ("OpenStack", "kvm"),
    ("Google", "kvm"),
    ("DigitalOcean", "kvm"),
    ("Hetzner", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "qemu"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyper-v"),
    ("Virtual Machine", "hyper-v"),
];

/// Collects the facts of the platform.
pub(super) fn collect_platform(root: &HostRoot, facts: &mut FactTree) {
    facts.put("virtualisation", virtualisation(root));
    let engine = container_engine(root);
    facts.put("container", engine.is_some());
    facts.put_some("container_engine", engine);
    facts.put_some("init", init_system(root));
    facts.put("package_manager", package_manager(root).unwrap_or_else(|| "none".to_owned()));
}

fn virtualisation(root: &HostRoot) -> String {
    let firmware: Vec<String> = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|file| root.word(&format!("/sys/class/dmi/id/{file}")))
        .collect();
    let named = FIRMWARE.iter().find(|(text, _)| firmware.iter().any(|it| it.contains(text)));
    if let Some((_, name)) = named {
        // The firmware of QEMU is the same with and without acceleration by KVM.
        return if *name == "qemu" && has_kvm_clock(root) { "kvm" } else { name }.to_owned();
    }
    if let Some(kind) = root.word("/sys/hypervisor/type") {
        return kind;
    }
    let information = root.beginning("/proc/cpuinfo", 8 << 10).unwrap_or_default();
    let flags = information.lines().find(|line| line.starts_with("flags"));
    let is_guest = flags.is_some_and(|flags| flags.split_whitespace().any(|it| it == "hypervisor"));
    if !is_guest {
        return "none".to_owned();
    }
    // The firmware of small virtual machines says nothing.
    if has_kvm_clock(root) { "kvm" } else { "other" }.to_owned()
}

/// Returns true if the kernel runs on KVM, which offers a clock of its own.
fn has_kvm_clock(root: &HostRoot) -> bool {
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    root.word(clocks).is_some_and(|clocks| clocks.contains("kvm-clock"))
}

fn container_engine(root: &HostRoot) -> Option<String> {
    // systemd writes this file in each container that it runs in.
    if let Some(engine) = root.word("/run/systemd/container") {
        return Some(engine);
    }
    for (file, engine) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if root.exists(file) {
            return Some(engine.to_owned());
        }
    }
    let environment = root.text("/proc/1/environ")?;
    let container = environment.split('\0').find_map(|it| it.strip_prefix("container="))?;
    (!container.is_empty()).then(|| container.to_owned())
}

fn init_system(root: &HostRoot) -> Option<String> {
    let by_file = [
        ("/run/systemd/system", "systemd"),
        ("/run/openrc", "openrc"),
        ("/run/runit", "runit"),
        ("/run/s6", "s6"),
    ];
    if let Some((_, name)) = by_file.iter().find(|(path, _)| root.exists(path)) {
        return Some((*name).to_owned());
    }
    let name = root.word("/proc/1/comm")?;
    Some(if name == "init" { "sysvinit".to_owned() } else { name })
}

fn package_manager(root: &HostRoot) -> Option<String> {
    let by_file = [
        ("/usr/bin/apt-get", "apt"),
        ("/usr/bin/dnf5", "dnf"),
        ("/usr/bin/dnf", "dnf"),
        ("/usr/bin/yum", "yum"),
        ("/usr/bin/zypper", "zypper"),
        ("/sbin/apk", "apk"),
        ("/usr/bin/pacman", "pacman"),
        ("/usr/bin/xbps-install", "xbps"),
        ("/usr/bin/emerge", "portage"),
    ];
    by_file.iter().find(|(path, _)| root.exists(path)).map(|(_, name)| (*name).to_owned())
}
