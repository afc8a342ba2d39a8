//! The facts of hosts of several distributions.

use crate::hosts::{FakeHost, text_of};
use steadfast::facts::{HostRoot, SCHEMA, SystemAnswers, collect, find_fact, read_facts_file};

fn assert_facts(host: &FakeHost, expected: &[(&str, &str)]) {
    let facts = host.collect();
    for (name, value) in expected {
        assert_eq!(text_of(&facts, name), *value, "{name}");
    }
    assert_eq!(facts.problems, []);
}

#[test]
fn facts_of_debian() {
    let host = FakeHost::new()
        .with(
            "/usr/lib/os-release",
            "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n\
             VERSION_CODENAME=bookworm\nID=debian\n",
        )
        .with_link("/etc/os-release", "../usr/lib/os-release")
        .with_link("/etc/localtime", "/usr/share/zoneinfo/Europe/Berlin")
        .with("/etc/hosts", "127.0.0.1 localhost\n10.0.0.5 web-1.example.org web-1 # this host\n")
        .with("/usr/bin/apt-get", "")
        .with("/run/systemd/system/x", "")
        .with("/run/reboot-required", "")
        .with("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        .with(
            "/proc/net/route",
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            wlan0 00000000 0100A8C0 0003 0 0 600 00000000 0 0 0\n\
            eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0\n\
            eth0 000200C0 00000000 0001 0 0 100 00FFFFFF 0 0 0\n",
        )
        .with("/sys/class/dmi/id/sys_vendor", "QEMU\n")
        .with(
            "/sys/devices/system/clocksource/clocksource0/available_clocksource",
            "kvm-clock tsc acpi_pm\n",
        )
        .with("/sys/block/sda/size", "41943040\n")
        .with("/sys/block/sda/queue/rotational", "0\n")
        .with("/sys/block/loop0/size", "0\n")
        .with_interface(1, "lo", "127.0.0.1")
        .with_interface(2, "eth0", "192.0.2.7")
        .with_interface(2, "eth0", "fe80::1")
        .with_interface(2, "eth0", "2001:db8::7");
    assert_facts(
        &host,
        &[
            ("os.id", "debian"),
            ("os.family", "debian"),
            ("os.version", "12"),
            ("os.codename", "bookworm"),
            ("os.pretty_name", "Debian GNU/Linux 12 (bookworm)"),
            ("hostname", "web-1"),
            ("fqdn", "web-1.example.org"),
            ("time_zone", "Europe/Berlin"),
            ("package_manager", "apt"),
            ("init", "systemd"),
            ("reboot_required", "true"),
            ("cpu.count", "4"),
            ("cpu.model", "Test CPU"),
            ("memory.total_mb", "7983"),
            ("virtualisation", "kvm"),
            ("container", "false"),
            ("container_engine", "absent"),
            ("addresses.ipv4", "[\"192.0.2.7\"]"),
            ("addresses.ipv6", "[\"2001:db8::7\"]"),
            ("interfaces.eth0.addresses", "[\"192.0.2.7\",\"2001:db8::7\",\"fe80::1\"]"),
            ("interfaces.lo.mtu", "1500"),
            ("default_route.interface", "eth0"),
            ("default_route.gateway", "192.0.2.1"),
            (
                "mounts",
                "{\"/\":{\"device\":\"/dev/sda1\",\"options\":[\"rw\",\"noatime\"],\"type\":\"ext4\"}}",
            ),
            ("filesystems", "[\"ext4\",\"proc\",\"sysfs\"]"),
            ("block_devices.sda.size_mb", "20480"),
            ("block_devices.loop0", "absent"),
            ("local", "{}"),
        ],
    );
    let facts = host.collect();
    assert_eq!(text_of(&facts, "machine_id"), "0123456789abcdef0123456789abcdef");
    assert_eq!(text_of(&facts.without_private(), "machine_id"), "absent");
}

/// The default route of IPv6 is the used one with the lowest metric. Routes of a source, refused ones and a line that
/// is cut off do not count.
#[test]
fn the_default_route_of_ipv6_is_found() {
    let table = "20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000009 00000400 00000002 00000000 00000003 wlan0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000064 00000002 00000000 00000003 eth0\n\
            00000000000000000000000000000000 00 20010db8000000000000000000000000 40 fe800000000000000000000000000002 00000001 00000002 00000000 00000003 src0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000001 00000000 00000201 reject0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n\
            00000000000000000000000000000000 00 0000";
    let host = FakeHost::new().with("/proc/net/ipv6_route", table);
    assert_facts(
        &host,
        &[("default_route_ipv6.interface", "eth0"), ("default_route_ipv6.gateway", "fe80::1")],
    );
    let direct = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000001 tun0\n";
    let host = FakeHost::new().with("/proc/net/ipv6_route", direct);
    assert_facts(
        &host,
        &[("default_route_ipv6.interface", "tun0"), ("default_route_ipv6.gateway", "absent")],
    );
    assert_facts(&FakeHost::new(), &[("default_route_ipv6", "absent")]);
}

#[test]
fn facts_of_ubuntu_in_a_cloud() {
    let host = FakeHost::new()
        .with(
            "/etc/os-release",
            "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n",
        )
        .with("/etc/timezone", "Etc/UTC\n")
        .with("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
        .with(
            "/run/cloud-init/instance-data.json",
            r#"{"v1": {"cloud_name": "aws", "instance_id": "i-0abc", "region": "eu-central-1"}}"#,
        );
    assert_facts(
        &host,
        &[
            ("os.family", "debian"),
            ("os.version", "24.04"),
            ("time_zone", "Etc/UTC"),
            ("virtualisation", "amazon"),
            ("cloud.provider", "aws"),
            ("cloud.instance_id", "i-0abc"),
            ("cloud.region", "eu-central-1"),
            ("fqdn", "absent"),
        ],
    );
}

#[test]
fn facts_of_fedora_and_alpine() {
    let fedora = FakeHost::new()
        .with("/etc/os-release", "ID=fedora\nVERSION_ID=41\nVERSION_CODENAME=\"\"\n")
        .with("/usr/bin/dnf5", "")
        .with("/usr/bin/dnf", "")
        .with("/proc/sys/kernel/hostname", "f1.example.org\n");
    let expected = [
        ("os.family", "redhat"),
        ("os.codename", ""),
        ("package_manager", "dnf"),
        ("fqdn", "f1.example.org"),
        ("virtualisation", "none"),
    ];
    assert_facts(&fedora, &expected);
    let alpine = FakeHost::new()
        .with(
            "/etc/os-release",
            "ID=alpine\nVERSION_ID=3.20.1\nPRETTY_NAME=\"Alpine Linux v3.20\"\n",
        )
        .with("/sbin/apk", "")
        .with("/run/openrc/softlevel", "default");
    let expected = [
        ("os.family", "alpine"),
        ("os.version", "3.20.1"),
        ("package_manager", "apk"),
        ("init", "openrc"),
    ];
    assert_facts(&alpine, &expected);
}

#[test]
fn facts_of_containers() {
    let docker = FakeHost::new().with("/.dockerenv", "").with("/proc/1/comm", "nginx\n");
    let expected = [
        ("container", "true"),
        ("container_engine", "docker"),
        ("init", "nginx"),
        ("os.id", "linux"),
        ("package_manager", "none"),
    ];
    assert_facts(&docker, &expected);
    let lxc = FakeHost::new().with("/proc/1/environ", "TERM=linux\0container=lxc\0");
    assert_facts(&lxc, &[("container_engine", "lxc")]);
    let nspawn = FakeHost::new().with("/run/systemd/container", "systemd-nspawn");
    assert_facts(&nspawn, &[("container_engine", "systemd-nspawn")]);
}

#[test]
fn local_facts_have_the_names_of_their_files() {
    let host = FakeHost::new()
        .with("/etc/steadfast/facts.d/rack.yaml", "row: 3\nnames: [a, b]\n")
        .with("/etc/steadfast/facts.d/role.json", "\"web\"")
        .with("/etc/steadfast/facts.d/README.md", "not a fact")
        .with("/etc/steadfast/facts.d/.hidden.yaml", "x: 1");
    assert_facts(&host, &[("local.rack.row", "3"), ("local.role", "web")]);
    assert_eq!(
        text_of(&host.collect(), "local"),
        r#"{"rack":{"names":["a","b"],"row":3},"role":"web"}"#
    );
}

/// Each fact of this host has a row, and each required fact is there.
#[test]
fn this_host_has_all_required_facts() {
    let facts = collect(&HostRoot::default(), &SystemAnswers::of_this_host());
    for spec in SCHEMA.iter().filter(|spec| !spec.optional) {
        let found = facts.values.at_path(spec.name);
        assert!(found.is_some(), "{}: {:?}", spec.name, facts.problems);
        assert!(find_fact(spec.name).is_some());
    }
}

#[test]
fn printed_facts_are_a_facts_file() {
    let host = FakeHost::new().with("/etc/steadfast/facts.d/rack.yaml", "row: 3\n");
    let facts = host.collect();
    let file = host.path("/facts.json");
    std::fs::write(&file, serde_json::to_string(&facts.values).unwrap()).unwrap();
    assert_eq!(read_facts_file(&file).unwrap(), facts.values);
}
