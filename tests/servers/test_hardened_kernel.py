# Ported from the InSpec profile dev-sec/linux-baseline, whose files carry this notice:
#
#   Copyright 2015, Patrick Muench
#   Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with the
#   License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#   Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
#   "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
#   language governing permissions and limitations under the License.
#   author: Christoph Hartmann, Dominik Richter, Patrick Muench
#
# Changed: written for pytest-testinfra; values are compared as texts. Left out are sysctl-31b, whose condition
# (fs.suid_dumpable is 2) is false here, and os-12, which judges the processor.
"""Judges a machine with examples/servers/hardened.yaml by the controls of DevSec that need a kernel."""

import pytest

SYSCTL = {
    "sysctl-01": {"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.forwarding": "0"},
    "sysctl-02": {"net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.default.rp_filter": "1"},
    "sysctl-03": {"net.ipv4.icmp_ignore_bogus_error_responses": "1"},
    "sysctl-04": {"net.ipv4.icmp_echo_ignore_broadcasts": "1"},
    "sysctl-05": {"net.ipv4.icmp_ratelimit": "100"},
    "sysctl-06": {"net.ipv4.icmp_ratemask": "88089"},
    "sysctl-07": {"net.ipv4.tcp_timestamps": "0"},
    "sysctl-08": {"net.ipv4.conf.all.arp_ignore": ("1", "2")},
    "sysctl-09": {"net.ipv4.conf.all.arp_announce": "2"},
    "sysctl-10": {"net.ipv4.tcp_rfc1337": "1"},
    "sysctl-11": {"net.ipv4.tcp_syncookies": "1"},
    "sysctl-12": {"net.ipv4.conf.all.shared_media": "1", "net.ipv4.conf.default.shared_media": "1"},
    "sysctl-13": {
        "net.ipv4.conf.all.accept_source_route": "0",
        "net.ipv4.conf.default.accept_source_route": "0",
        "net.ipv6.conf.all.accept_source_route": "0",
        "net.ipv6.conf.default.accept_source_route": "0",
    },
    "sysctl-14": {"net.ipv4.conf.default.accept_redirects": "0", "net.ipv4.conf.all.accept_redirects": "0"},
    "sysctl-15": {"net.ipv4.conf.all.secure_redirects": "0", "net.ipv4.conf.default.secure_redirects": "0"},
    "sysctl-16": {"net.ipv4.conf.default.send_redirects": "0", "net.ipv4.conf.all.send_redirects": "0"},
    "sysctl-17": {"net.ipv4.conf.all.log_martians": "1", "net.ipv4.conf.default.log_martians": "1"},
    "sysctl-19": {"net.ipv6.conf.all.forwarding": "0"},
    "sysctl-20": {"net.ipv6.conf.default.accept_redirects": "0", "net.ipv6.conf.all.accept_redirects": "0"},
    "sysctl-21": {"net.ipv6.conf.default.router_solicitations": "0", "net.ipv6.conf.all.router_solicitations": "0"},
    "sysctl-22": {"net.ipv6.conf.default.accept_ra_rtr_pref": "0"},
    "sysctl-23": {"net.ipv6.conf.default.accept_ra_pinfo": "0"},
    "sysctl-24": {"net.ipv6.conf.default.accept_ra_defrtr": "0"},
    "sysctl-25": {"net.ipv6.conf.all.accept_ra": "0", "net.ipv6.conf.default.accept_ra": "0"},
    "sysctl-26": {"net.ipv6.conf.default.autoconf": "0", "net.ipv6.conf.all.autoconf": "0"},
    "sysctl-27": {"net.ipv6.conf.default.dad_transmits": "0"},
    "sysctl-28": {"net.ipv6.conf.default.max_addresses": "1"},
    "sysctl-29": {"kernel.modules_disabled": "0"},
    "sysctl-30": {"kernel.sysrq": "0"},
    "sysctl-31a": {"fs.suid_dumpable": ("0", "2")},
    "sysctl-32": {"kernel.randomize_va_space": "2"},
    "sysctl-34": {
        "fs.protected_fifos": ("1", "2"),
        "fs.protected_hardlinks": "1",
        "fs.protected_regular": "2",
        "fs.protected_symlinks": "1",
    },
    "sysctl-35": {"kernel.yama.ptrace_scope": ("2", "3")},
}


def accepted(control, name):
    values = SYSCTL[control][name]
    return values if isinstance(values, tuple) else (values,)


@pytest.mark.parametrize("control", SYSCTL)
def test_sysctl(host, control):
    read = {name: host.file("/proc/sys/" + name.replace(".", "/")).content_string.strip() for name in SYSCTL[control]}
    assert {name: value for name, value in read.items() if value not in accepted(control, name)} == {}


def test_sysctl_33_no_execution(host):
    flags = next(line for line in host.file("/proc/cpuinfo").content_string.splitlines() if line.startswith("flags"))
    assert "nx" in flags.split()


@pytest.mark.parametrize("name", ["cramfs", "freevxfs", "jffs2", "hfs", "hfsplus", "squashfs", "udf", "vfat"])
def test_os_10_filesystems(host, name):
    assert not host.file("/sys/firmware/efi").exists
    assert host.file("/etc/modprobe.d/dev-sec.conf").contains(f"install {name} /bin/true")
    # The kernel refuses the module, too.
    assert "/bin/true" in host.check_output(f"modprobe --show-depends {name}")


OPTIONS = {
    "os-14 noexec": "/boot /dev /dev/shm /tmp /var/log /var/log/audit /var/tmp",
    "os-15 nosuid": "/boot /dev /dev/shm /home /run /tmp /var /var/log /var/log/audit /var/tmp",
    "os-16 nodev": "/boot /dev/shm /home /run /tmp /var /var/log /var/log/audit /var/tmp",
}


@pytest.mark.parametrize("control", OPTIONS)
def test_mounts(host, control):
    option = control.split()[1]
    mounted = [path for path in OPTIONS[control].split() if host.mount_point(path).exists]
    assert "/dev/shm" in mounted
    assert [path for path in mounted if option not in host.mount_point(path).options] == []


AUDIT = {
    "log_file": "/var/log/audit/audit.log",
    "log_format": "raw",
    "max_log_file_action": "keep_logs",
    "space_left": "75",
    "action_mail_acct": "root",
    "space_left_action": "syslog",
    "admin_space_left": "50",
    "admin_space_left_action": "suspend",
    "disk_full_action": "suspend",
    "disk_error_action": "suspend",
}


def test_package_08_auditd(host):
    assert host.package("auditd").is_installed
    lines = [line.split("=", 1) for line in host.file("/etc/audit/auditd.conf").content_string.splitlines() if "=" in line]
    values = {words[0].strip(): words[1].strip().lower() for words in lines if words[0][0] != "#"}
    assert {key: values.get(key) for key in AUDIT} == AUDIT
    assert values["flush"] in ("incremental", "incremental_async")
