# Ported from the InSpec profiles dev-sec/linux-baseline and dev-sec/ssh-baseline, whose files carry this notice:
#
#   Copyright 2015, Patrick Muench
#   Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with the
#   License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#   Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
#   "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
#   language governing permissions and limitations under the License.
#   author: Christoph Hartmann, Dominik Richter, Patrick Muench
#
# Changed: written for pytest-testinfra; the values of sshd are those that it reports (`sshd -T`). The controls of the kernel
# are in test_hardened_kernel.py. Left out are controls whose condition is false on Debian 12 and 13 (an older OpenSSH: sshd-10,
# ssh-04, ssh-14, ssh-15, ssh-21; Red Hat: os-05b).
"""Judges the host of examples/servers/hardened.yaml by the controls of DevSec."""

import pytest


def first_values(text):
    """Returns the first value of each setting of a configuration of ssh or sshd, as InSpec reads them."""
    settings = {}
    for line in text.splitlines():
        words = line.strip().split(None, 1)
        if len(words) == 2 and words[0][0] != "#":
            settings.setdefault(words[0], words[1])
    return settings


@pytest.fixture(scope="module")
def sshd(host):
    """Returns the settings of sshd in lower case, those with several values joined by blanks."""
    settings = {}
    for line in host.check_output("sshd -T").splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    return {key: " ".join(values) for key, values in settings.items()}


SSHD = {
    "sshd-01": ("Ciphers", "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr"),
    "sshd-02": ("KexAlgorithms", "sntrup761x25519-sha512@openssh.com,curve25519-sha256@libssh.org,diffie-hellman-group-exchange-sha256"),
    "sshd-03": ("MACs", "hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-512,hmac-sha2-256"),
    "sshd-06": ("PermitRootLogin", "no"),
    "sshd-07": ("Port", "22"),
    "sshd-08": ("AddressFamily", "inet"),
    "sshd-09": ("ListenAddress", "0.0.0.0:22"),
    "sshd-11": ("StrictModes", "yes"),
    "sshd-12": ("SyslogFacility", "AUTH"),
    "sshd-13": ("LogLevel", "VERBOSE"),
    "sshd-17": ("PermitUserEnvironment", "no"),
    "sshd-18": ("LoginGraceTime", "30"),
    "sshd-19": ("MaxAuthTries", "2"),
    "sshd-20": ("MaxSessions", "10"),
    "sshd-21": ("MaxStartups", "10:30:60"),
    "sshd-22": ("PubkeyAuthentication", "yes"),
    "sshd-23": ("IgnoreRhosts", "yes"),
    "sshd-24": ("IgnoreUserKnownHosts", "yes"),
    "sshd-25": ("HostbasedAuthentication", "no"),
    "sshd-27": ("PasswordAuthentication", "no"),
    "sshd-28": ("PermitEmptyPasswords", "no"),
    "sshd-29": ("KbdInteractiveAuthentication", "no"),
    "sshd-30": ("KerberosAuthentication", "no"),
    "sshd-31": ("KerberosOrLocalPasswd", "no"),
    "sshd-32": ("KerberosTicketCleanup", "yes"),
    "sshd-33": ("GSSAPIAuthentication", "no"),
    "sshd-34": ("GSSAPICleanupCredentials", "yes"),
    "sshd-35": ("TCPKeepAlive", "no"),
    "sshd-36": ("ClientAliveInterval", "300"),
    "sshd-37": ("ClientAliveCountMax", "3"),
    "sshd-38": ("PermitTunnel", "no"),
    "sshd-39": ("AllowTcpForwarding", "no"),
    "sshd-40": ("AllowAgentForwarding", "no"),
    "sshd-41": ("GatewayPorts", "no"),
    "sshd-42": ("X11Forwarding", "no"),
    "sshd-43": ("X11UseLocalhost", "yes"),
    "sshd-44": ("PrintMotd", "no"),
    "sshd-45": ("PrintLastLog", "no"),
    "sshd-46": ("Banner", "none"),
    "sshd-47": ("DebianBanner", "no"),
}

# `sshd -T` does not report these; the file has them.
IN_FILE = ("sshd-30", "sshd-31", "sshd-32", "sshd-47")


@pytest.mark.parametrize("control", SSHD)
def test_sshd(host, sshd, control):
    key, value = SSHD[control]
    if control in IN_FILE:
        assert host.file("/etc/ssh/sshd_config").contains(f"^{key} {value}$")
    else:
        assert sshd[key.lower()] == value


def test_sshd_04_and_05_permissions(host):
    folder, config = host.file("/etc/ssh"), host.file("/etc/ssh/sshd_config")
    assert (folder.is_directory, folder.user, folder.group, folder.mode) == (True, "root", "root", 0o755)
    assert (config.is_file, config.user, config.group, config.mode) == (True, "root", "root", 0o600)


def test_sshd_07_and_09_are_explicit(host):
    settings = first_values(host.file("/etc/ssh/sshd_config").content_string)
    assert (settings.get("Port"), settings.get("ListenAddress")) == ("22", "0.0.0.0")


@pytest.mark.parametrize("control, name", [("sshd-15", "UseLogin"), ("sshd-16", "UsePrivilegeSeparation")])
def test_sshd_obsolete(host, control, name):
    settings = first_values(host.file("/etc/ssh/sshd_config").content_string)
    # Both controls judge a file with settings.
    assert "Ciphers" in settings and name not in settings


SSH = {
    "ssh-02": ("AddressFamily", "inet"),
    "ssh-03": ("Port", "22"),
    "ssh-05": ("BatchMode", "no"),
    "ssh-06": ("CheckHostIP", "yes"),
    "ssh-07": ("StrictHostKeyChecking", "ask"),
    "ssh-08": SSHD["sshd-01"],
    "ssh-09": SSHD["sshd-02"],
    "ssh-10": SSHD["sshd-03"],
    "ssh-11": ("ForwardAgent", "no"),
    "ssh-12": ("ForwardX11", "no"),
    "ssh-13": ("HostbasedAuthentication", "no"),
    "ssh-16": ("PasswordAuthentication", "no"),
    "ssh-17": ("GSSAPIAuthentication", "no"),
    "ssh-18": ("GSSAPIDelegateCredentials", "no"),
    "ssh-19": ("Tunnel", "no"),
    "ssh-20": ("PermitLocalCommand", "no"),
}


@pytest.mark.parametrize("control", SSH)
def test_ssh(host, control):
    key, value = SSH[control]
    assert first_values(host.file("/etc/ssh/ssh_config").content_string).get(key) == value


def test_ssh_01_permissions(host):
    file = host.file("/etc/ssh/ssh_config")
    assert (file.is_file, file.user, file.group, file.mode) == (True, "root", "root", 0o644)


def test_ssh_22_effective_settings(host):
    settings = host.check_output("ssh -G localhost").splitlines()
    for control, name in [("ssh-08", "ciphers"), ("ssh-09", "kexalgorithms"), ("ssh-10", "macs")]:
        assert f"{name} {SSH[control][1]}" in settings


def test_sshd_49_no_policy_of_the_distribution(host):
    daemons = [line for line in host.check_output("ps -eo args").splitlines() if "sshd -D" in line]
    assert len(daemons) == 1
    assert not any(option in daemons[0] for option in ("-oCiphers", "-oKexAlgorithms", "-oHostKeyAlgorithms"))


def test_sshd_50_size_of_the_key(host):
    # Without a key of RSA the condition of the control is false.
    size = host.check_output("test ! -e /etc/ssh/ssh_host_rsa_key || ssh-keygen -l -f /etc/ssh/ssh_host_rsa_key")
    assert size == "" or int(size.split()[0]) >= 4096


def test_sshd_14_host_keys(sshd):
    assert "/etc/ssh/ssh_host_ed25519_key" in sshd["hostkey"]


def test_sshd_48_primes(host):
    assert host.check_output("awk '$5 < 2047' /etc/ssh/moduli | grep -v '^#' || true") == ""


@pytest.mark.parametrize("path", ["/etc/hosts.equiv", "/root/.rhosts", "/root/.netrc"])
def test_os_01_and_09_trust(host, path):
    assert not host.file(path).exists


def test_os_02_shadow(host):
    shadow = host.file("/etc/shadow")
    assert (shadow.is_file, shadow.user, shadow.group, shadow.mode) == (True, "root", "shadow", 0o640)


def test_os_03_passwd(host):
    passwd = host.file("/etc/passwd")
    assert (passwd.is_file, passwd.user, passwd.group, passwd.mode) == (True, "root", "root", 0o644)
    fields = [line.split(":") for line in passwd.content_string.splitlines()]
    assert {field[1] for field in fields} <= {"x", "*"}


def test_os_05_login(host):
    file = host.file("/etc/login.defs")
    assert (file.user, file.group, file.mode) == ("root", "root", 0o644)
    lines = [line.split(None, 1) for line in file.content_string.splitlines() if line and line[0] != "#"]
    values = {words[0]: words[1].strip() for words in lines}
    assert values["ENV_SUPATH"].endswith("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    assert "/usr/local/bin:/usr/bin:/bin" in values["ENV_PATH"]
    expected = {
        "UMASK": "027",
        "PASS_MAX_DAYS": "60",
        "PASS_MIN_DAYS": "7",
        "PASS_WARN_AGE": "7",
        "LOGIN_RETRIES": "5",
        "LOGIN_TIMEOUT": "60",
        "UID_MIN": "1000",
        "GID_MIN": "1000",
    }
    assert {key: values.get(key) for key in expected} == expected


def test_os_04_path(host):
    path = host.check_output("echo $PATH").split(":")
    assert "" not in path and "." not in path


# The list of the profile (libraries/suid_blacklist.rb).
SUID = """
/usr/bin/rcp /usr/bin/rlogin /usr/bin/rsh /usr/libexec/openssh/ssh-keysign /usr/lib/openssh/ssh-keysign /sbin/netreport
/usr/sbin/usernetctl /usr/sbin/userisdnctl /usr/sbin/pppd /usr/bin/lockfile /usr/bin/mail-lock /usr/bin/mail-unlock
/usr/bin/mail-touchlock /usr/bin/dotlockfile /usr/bin/arping /usr/sbin/arping /usr/sbin/uuidd /usr/bin/mtr
/usr/lib/evolution/camel-lock-helper-1.2 /usr/lib/pt_chown /usr/lib/eject/dmcrypt-get-device /usr/lib/mc/cons.saver
""".split()


def test_os_06_set_id_programs(host):
    found = host.run("find / -xdev -type f -perm /6000").stdout.splitlines()
    # `su` is there, so the search finds something.
    assert any(path.endswith("/su") for path in found)
    assert set(found) & set(SUID) == set()


@pytest.mark.parametrize("path, column", [("/etc/passwd", 2), ("/etc/group", 2)])
def test_os_07_unique_ids(host, path, column):
    ids = [line.split(":")[column] for line in host.file(path).content_string.splitlines()]
    assert len(ids) == len(set(ids))


def test_os_11_logs(host):
    logs = host.file("/var/log")
    assert (logs.is_directory, logs.user) == (True, "root") and logs.group in ("root", "syslog")


@pytest.mark.parametrize("path", ["crontab", "cron.d", "cron.daily", "cron.hourly", "cron.weekly", "cron.monthly"])
def test_os_13_cron(host, path):
    file = host.file(f"/etc/{path}")
    assert file.user == "root" and file.mode & 0o077 == 0


@pytest.mark.parametrize(
    "control, name",
    [
        ("package-01", "inetd"),
        ("package-01", "xinetd"),
        ("package-02", "telnetd"),
        ("package-03", "rsh-server"),
        ("package-05", "ypserv"),
        ("package-06", "tftpd"),
        ("package-09", "prelink"),
    ],
)
def test_package(host, control, name):
    assert not host.package(name).is_installed


@pytest.mark.parametrize("name", ["ssh", "cron"])
def test_service(host, puppet, name):
    assert host.service(name).is_running and host.service(name).is_enabled
    read = puppet("service", name)
    assert (read["ensure"], read["enable"]) == ("running", "true")
