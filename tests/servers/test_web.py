"""Judges the host of examples/servers/web.yaml."""

import re

import pytest

SITES = ["shop.example.org", "blog.example.org"]


@pytest.mark.parametrize("name", ["nginx-light", "openssl", "logrotate", "sudo", "nftables"])
def test_package(host, puppet, name):
    assert host.package(name).is_installed
    assert re.match(r"\d", puppet("package", name)["ensure"])


@pytest.mark.parametrize("name", ["nginx", "renew-certificate.timer"])
def test_service(host, puppet, name):
    service = host.service(name)
    assert service.is_running and service.is_enabled
    assert puppet("service", name)["ensure"] == "running"
    assert puppet("service", name)["enable"] == "true"


@pytest.mark.parametrize("port", [80, 443])
def test_socket(host, port):
    assert host.socket(f"tcp://0.0.0.0:{port}").is_listening


def test_nginx_accepts_its_configuration(host):
    assert host.run("nginx -t").rc == 0


@pytest.mark.parametrize("site", SITES)
def test_site(host, puppet, site):
    vhost = host.file(f"/etc/nginx/sites-enabled/{site}.conf")
    assert (vhost.user, vhost.group, vhost.mode) == ("root", "root", 0o644)
    assert vhost.contains(f"server_name {site};")
    page = host.file(f"/srv/www/{site}/index.html")
    heading = page.content_string
    assert heading == f"<h1>The {site.split('.')[0]}</h1>\n"
    for address in (f"http://{site}/", f"https://{site}/"):
        resolve = f"--resolve {site}:80:127.0.0.1 --resolve {site}:443:127.0.0.1"
        assert host.check_output(f"curl -sk {resolve} {address}") + "\n" == heading
    read = puppet("file", vhost.path)
    assert (read["ensure"], read["mode"]) == ("file", "0644")
    assert puppet("file", f"/srv/www/{site}")["ensure"] == "directory"


def test_default_site_is_gone(host, puppet):
    assert not host.file("/etc/nginx/sites-enabled/default").exists
    assert puppet("file", "/etc/nginx/sites-enabled/default")["ensure"] == "absent"


def test_certificate(host):
    folder = host.file("/etc/nginx/tls")
    assert (folder.is_directory, folder.mode) == (True, 0o700)
    assert host.file("/etc/nginx/tls/site.key").mode == 0o600
    assert host.run("openssl x509 -in /etc/nginx/tls/site.crt -noout -checkend 1296000").rc == 0


@pytest.mark.parametrize("name", ["ada", "grace"])
def test_user(host, puppet, name):
    user = host.user(name)
    assert (user.shell, user.home) == ("/bin/bash", f"/home/{name}")
    assert "sudo" in user.groups
    keys = host.file(f"/home/{name}/.ssh/authorized_keys")
    assert (keys.user, keys.mode) == (name, 0o600)
    assert keys.content_string.endswith(f" {name}@laptop\n")
    read = puppet("user", name)
    assert (read["ensure"], read["shell"], read["home"]) == ("present", "/bin/bash", f"/home/{name}")
    assert read["groups"] in ("sudo", ["sudo"])


def test_logs_are_rotated(host):
    assert host.run("logrotate --debug /etc/logrotate.d/sites").rc == 0


def test_firewall(host):
    rules = host.check_output("nft list table inet web")
    assert "policy drop" in rules and "tcp dport { 22, 80, 443 } accept" in rules
    assert host.run("nft -c -f /etc/nftables.d/web.nft").rc == 0
