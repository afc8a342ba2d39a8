"""Judges the host of examples/servers/database.yaml."""

import re

import pytest


def query(host, text):
    with host.sudo("postgres"):
        return host.check_output("cd / && psql -XtAc %s", text)


@pytest.mark.parametrize("name", ["postgresql", "sudo"])
def test_package(host, puppet, name):
    assert host.package(name).is_installed
    assert re.match(r"\d", puppet("package", name)["ensure"])


@pytest.mark.parametrize("name", ["postgresql", "backup-databases.timer"])
def test_service(host, puppet, name):
    service = host.service(name)
    assert service.is_running and service.is_enabled
    assert puppet("service", name)["ensure"] == "running"
    assert puppet("service", name)["enable"] == "true"


@pytest.mark.parametrize("name", ["shop", "blog"])
def test_database(host, name):
    owner = f"SELECT r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE d.datname = '{name}'"
    assert query(host, owner) == name
    assert query(host, f"SELECT rolcanlogin FROM pg_roles WHERE rolname = '{name}'") == "t"


def test_settings(host):
    assert query(host, "SHOW max_connections") == "50"
    assert query(host, "SHOW shared_buffers") == "64MB"


def test_sudoers(host, puppet):
    assert host.run("visudo -c").rc == 0
    rule = host.file("/etc/sudoers.d/operators")
    assert (rule.user, rule.group, rule.mode) == ("root", "root", 0o440)
    assert host.group("operators").exists and host.group("operators").gid < 1000
    assert puppet("group", "operators")["ensure"] == "present"
    assert puppet("file", rule.path)["mode"] == "0440"


def test_backup(host, puppet):
    folder = host.file("/var/backups/postgresql")
    assert (folder.user, folder.mode) == ("postgres", 0o700)
    assert host.file("/usr/local/sbin/backup-databases").mode == 0o755
    read = puppet("file", "/var/backups/postgresql")
    assert (read["ensure"], read["mode"]) == ("directory", "0700")
    assert host.run("systemctl start backup-databases.service").rc == 0
    with host.sudo("postgres"):
        assert host.run("zgrep -q 'CREATE DATABASE shop' /var/backups/postgresql/all-*.gz").rc == 0
