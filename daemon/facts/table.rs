//! The table of all facts: name, type, unit, class, pattern, description and the sources that change it.

use super::schema::{FactClass, FactSource, FactSpec, FactType};

const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$";
const WORD_OR_NOTHING: &str = "^([A-Za-z0-9][A-Za-z0-9._+-]{0,63})?$";
const LINE: &str = "^[^\\x00-\\x1f\\x7f]{1,256}$";
const ADDRESS: &str = "^[0-9a-f:.]{2,45}$";
const HOST_NAME: &str =
    "^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})){0,31}$";
const ID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";

const OS_RELEASE: &[FactSource] =
    &[FactSource::Path("/etc/os-release"), FactSource::Path("/usr/lib/os-release")];
const HOST: FactSource = FactSource::Polled("/proc/sys/kernel/hostname");
const CLOUD: &[FactSource] = &[FactSource::Path("/run/cloud-init/instance-data.json")];

/// Creates a row of the table.
const fn fact(
    name: &'static str,
    fact_type: FactType,
    class: FactClass,
    doc: &'static str,
) -> FactSpec {
    FactSpec {
        name,
        fact_type,
        unit: None,
        class,
        pattern: None,
        optional: false,
        private: false,
        doc,
        sources: &[],
    }
}

impl FactSpec {
    const fn unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    const fn pattern(self, pattern: &'static str) -> Self {
        Self { pattern: Some(pattern), ..self }
    }

    const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    const fn private(self) -> Self {
        Self { private: true, ..self }
    }

    const fn sources(self, sources: &'static [FactSource]) -> Self {
        Self { sources, ..self }
    }
}

/// All facts, in the order of their names.
pub static SCHEMA: &[FactSpec] = &[
    fact(
        "addresses.ipv4",
        FactType::Texts,
        FactClass::Watched,
        "IPv4 addresses without loopback and link-local ones.",
    )
    .pattern(ADDRESS)
    .sources(&[FactSource::Network]),
    fact(
        "addresses.ipv6",
        FactType::Texts,
        FactClass::Watched,
        "IPv6 addresses without loopback, link-local, temporary and deprecated ones.",
    )
    .pattern(ADDRESS)
    .sources(&[FactSource::Network]),
    fact(
        "architecture",
        FactType::Text,
        FactClass::Fixed,
        "Machine name of the kernel, such as x86_64 or aarch64.",
    )
    .pattern(WORD),
    fact(
        "block_devices",
        FactType::BlockDevices,
        FactClass::Watched,
        "Block devices by name, without empty ones.",
    )
    .sources(&[FactSource::Periodic]),
    fact("boot_id", FactType::Text, FactClass::Fixed, "Identifier of this boot.").pattern(ID),
    fact(
        "cloud.instance_id",
        FactType::Text,
        FactClass::Watched,
        "Instance identifier that cloud-init found.",
    )
    .pattern(WORD)
    .optional()
    .sources(CLOUD),
    fact(
        "cloud.provider",
        FactType::Text,
        FactClass::Watched,
        "Cloud provider, from cloud-init or the firmware, such as aws, azure, gce or hetzner.",
    )
    .pattern(WORD)
    .optional()
    .sources(CLOUD),
    fact("cloud.region", FactType::Text, FactClass::Watched, "Region that cloud-init found.")
        .pattern(WORD)
        .optional()
        .sources(CLOUD),
    fact("container", FactType::Bool, FactClass::Fixed, "True if the host is a container."),
    fact(
        "container_engine",
        FactType::Text,
        FactClass::Fixed,
        "Software that runs the container, such as docker, podman or lxc.",
    )
    .pattern(WORD)
    .optional(),
    fact("cpu.count", FactType::Int, FactClass::Fixed, "Number of processors that are online."),
    fact("cpu.model", FactType::Text, FactClass::Fixed, "Model of the first processor.")
        .pattern(LINE)
        .optional(),
    fact(
        "default_route.gateway",
        FactType::Text,
        FactClass::Watched,
        "Address of the IPv4 default gateway.",
    )
    .pattern(ADDRESS)
    .optional()
    .sources(&[FactSource::Network]),
    fact(
        "default_route.interface",
        FactType::Text,
        FactClass::Watched,
        "Interface of the IPv4 default route.",
    )
    .pattern("^[^\\s/]{1,15}$")
    .optional()
    .sources(&[FactSource::Network]),
    fact(
        "default_route_ipv6.gateway",
        FactType::Text,
        FactClass::Watched,
        "Address of the IPv6 default gateway; mostly a link-local one.",
    )
    .pattern(ADDRESS)
    .optional()
    .sources(&[FactSource::Network]),
    fact(
        "default_route_ipv6.interface",
        FactType::Text,
        FactClass::Watched,
        "Interface of the IPv6 default route.",
    )
    .pattern("^[^\\s/]{1,15}$")
    .optional()
    .sources(&[FactSource::Network]),
    fact(
        "filesystems",
        FactType::Texts,
        FactClass::Watched,
        "Types of file systems that the kernel knows now; a kernel module can add one.",
    )
    .pattern(WORD)
    .sources(&[FactSource::Periodic]),
    fact(
        "fqdn",
        FactType::Text,
        FactClass::Watched,
        "Host name with its domain, from the host name or /etc/hosts, never from DNS.",
    )
    .pattern(HOST_NAME)
    .optional()
    .sources(&[HOST, FactSource::Path("/etc/hosts")]),
    fact("hostname", FactType::Text, FactClass::Watched, "Host name of the kernel.")
        .pattern(HOST_NAME)
        .sources(&[HOST]),
    fact(
        "init",
        FactType::Text,
        FactClass::Fixed,
        "Init system: systemd, openrc, runit, s6, sysvinit or the name of process 1.",
    )
    .pattern(WORD),
    fact("interfaces", FactType::Interfaces, FactClass::Watched, "Network interfaces by name.")
        .pattern(LINE)
        .sources(&[FactSource::Network]),
    fact("kernel.name", FactType::Text, FactClass::Fixed, "Name of the kernel.").pattern(WORD),
    fact(
        "kernel.release",
        FactType::Text,
        FactClass::Fixed,
        "Release of the kernel, such as 6.1.0-18-amd64.",
    )
    .pattern("^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$"),
    fact(
        "load.fifteen",
        FactType::Float,
        FactClass::DisplayOnly,
        "Average load of the last 15 minutes.",
    ),
    fact("load.one", FactType::Float, FactClass::DisplayOnly, "Average load of the last minute."),
    fact(
        "local",
        FactType::Local,
        FactClass::Watched,
        "Values of the files NAME.yaml and NAME.json of /etc/steadfast/facts.d, as local.NAME.",
    )
    .sources(&[FactSource::Path("/etc/steadfast/facts.d")]),
    fact(
        "machine_id",
        FactType::Text,
        FactClass::Fixed,
        "Identifier of the installation; the control socket does not show it.",
    )
    .pattern("^[0-9a-f]{32}$")
    .optional()
    .private(),
    fact(
        "memory.available_mb",
        FactType::Int,
        FactClass::DisplayOnly,
        "Memory that programs can use now.",
    )
    .unit("MiB"),
    fact("memory.swap_mb", FactType::Int, FactClass::Watched, "Size of the swap space.")
        .unit("MiB")
        .sources(&[FactSource::Polled("/proc/swaps")]),
    fact("memory.total_mb", FactType::Int, FactClass::Fixed, "Memory that the kernel manages.")
        .unit("MiB"),
    fact("mounts", FactType::Mounts, FactClass::Watched, "Mounted file systems by mount point.")
        .pattern("^[^\\x00-\\x1f\\x7f]{1,4096}$")
        .sources(&[FactSource::Polled("/proc/self/mountinfo")]),
    fact(
        "os.codename",
        FactType::Text,
        FactClass::Watched,
        "Codename of the release, such as bookworm; empty if it has none.",
    )
    .pattern(WORD_OR_NOTHING)
    .sources(OS_RELEASE),
    fact(
        "os.family",
        FactType::Text,
        FactClass::Watched,
        "Family of the distribution: debian, redhat, suse, arch, alpine, or os.id.",
    )
    .pattern(WORD)
    .sources(OS_RELEASE),
    fact(
        "os.id",
        FactType::Text,
        FactClass::Watched,
        "Distribution, such as debian, ubuntu, fedora or alpine.",
    )
    .pattern("^[a-z0-9][a-z0-9._-]{0,63}$")
    .sources(OS_RELEASE),
    fact("os.pretty_name", FactType::Text, FactClass::Watched, "Name of the release for people.")
        .pattern(LINE)
        .sources(OS_RELEASE),
    fact(
        "os.version",
        FactType::Text,
        FactClass::Watched,
        "Version of the release, such as 12 or 24.04; empty if it has none.",
    )
    .pattern(WORD_OR_NOTHING)
    .sources(OS_RELEASE),
    fact(
        "package_manager",
        FactType::Text,
        FactClass::Fixed,
        "Package manager: apt, dnf, yum, zypper, apk, pacman, xbps, portage or none.",
    )
    .pattern(WORD),
    fact(
        "reboot_required",
        FactType::Bool,
        FactClass::Watched,
        "True if a package asks for a reboot in /run/reboot-required (Debian and Ubuntu).",
    )
    .sources(&[FactSource::Path("/run/reboot-required")]),
    fact("time_zone", FactType::Text, FactClass::Watched, "Time zone, such as Europe/Berlin.")
        .pattern("^[A-Za-z0-9][A-Za-z0-9._+/-]{0,63}$")
        .sources(&[FactSource::Path("/etc/localtime"), FactSource::Path("/etc/timezone")]),
    fact("uptime_seconds", FactType::Int, FactClass::DisplayOnly, "Time since the boot.").unit("s"),
    fact(
        "virtualisation",
        FactType::Text,
        FactClass::Fixed,
        "Virtual machine: kvm, qemu, vmware, hyper-v, xen, virtualbox, amazon, other, or none.",
    )
    .pattern(WORD),
];
