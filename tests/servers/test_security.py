"""Judges the host of tests/servers/security.yaml: the role geerlingguy.security, rewritten."""

import pytest


@pytest.mark.parametrize(
    "key, value",
    [
        ("passwordauthentication", "no"),
        ("permitrootlogin", "no"),
        ("port", "22"),
        ("usedns", "no"),
        ("permitemptypasswords", "no"),
        ("kbdinteractiveauthentication", "no"),
        ("gssapiauthentication", "no"),
        ("x11forwarding", "no"),
    ],
)
def test_sshd(host, key, value):
    assert f"{key} {value}" in host.check_output("sshd -T").splitlines()


def test_allowed(host):
    settings = host.check_output("sshd -T").splitlines()
    assert {"allowusers deploy", "allowusers ops", "allowgroups sudo", "allowgroups ops"} <= set(settings)


def test_sudoers(host):
    assert host.run("visudo -c").rc == 0
    assert "NOPASSWD: ALL" in host.check_output("sudo -l -U deploy")
    assert "(ALL) ALL" in host.check_output("sudo -l -U ops")


def test_fail2ban(host):
    service = host.service("fail2ban")
    assert service.is_running and service.is_enabled
    assert "sshd" in host.check_output("fail2ban-client status")


def test_updates(host):
    assert host.check_output("apt-config dump APT::Periodic::Unattended-Upgrade") == 'APT::Periodic::Unattended-Upgrade "1";'
    origins = host.check_output("apt-config dump Unattended-Upgrade::Origins-Pattern")
    assert "origin=Example" in origins
