"""Judges the host of tests/servers/opinions.yaml, mostly by `puppet resource`."""


def test_accounts(host, puppet):
    assert puppet("group", "team")["gid"] == 4200
    user = puppet("user", "mira")
    expected = {"ensure": "present", "uid": 4201, "gid": 4200, "home": "/home/mira", "shell": "/bin/sh", "comment": "Mira"}
    assert {key: user.get(key) for key in expected} == expected
    assert host.user("mira").group == "team"


def test_files(host, puppet):
    folder = puppet("file", "/srv/data")
    assert (folder["ensure"], folder["mode"], folder["owner"], folder["group"]) == ("directory", "2750", 4201, 4200)
    link = puppet("file", "/srv/link")
    assert (link["ensure"], link["target"]) == ("link", "data/note")
    assert host.file("/srv/data/note").content_string == "a note\n"


def test_mount(host, puppet):
    mount = puppet("mount", "/srv/scratch")
    expected = {"ensure": "mounted", "device": "tmpfs", "fstype": "tmpfs", "options": "size=8m,nosuid"}
    assert {key: mount.get(key) for key in expected} == expected
    assert host.mount_point("/srv/scratch").filesystem == "tmpfs"


def test_host(host, puppet):
    entry = puppet("host", "db.example.org")
    assert (entry["ip"], entry["host_aliases"]) == ("192.0.2.7", ["db"])
    assert host.check_output("getent hosts db.example.org").split() == ["192.0.2.7", "db.example.org", "db"]


def test_services_and_packages(host, puppet):
    service = puppet("service", "cron")
    assert (service["ensure"], service["enable"]) == ("running", "true")
    assert host.package("cron").is_installed


def test_cron(host, puppet):
    # steadfast keeps jobs in /etc/cron.d. Puppet knows the tables of users only.
    assert host.file("/etc/cron.d/tidy").contains("^15 4 \\* \\* \\* mira /bin/true$")
    assert host.file("/etc/cron.d/start").contains("^@reboot root /bin/true$")
    assert host.run("crontab -l -u mira").rc == 1
    assert puppet("cron", "tidy")["ensure"] == "absent"
