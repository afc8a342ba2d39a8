"""Writes the baseline of examples/modules/hardening for four tools, for a comparison of their times with nothing to do.

    python3 baselines.py FOLDER

A container cannot set most parameters of the kernel, so each parameter is declared with the value that it has. The mounts and
the audit are left out for all tools.
"""

import json
import pathlib
import sys

import yaml

MODULE = "/etc/steadfast/examples/modules/hardening"
SYSCTL_FILE = "/etc/sysctl.d/60-steadfast.conf"


def quoted(text):
    """Quotes a text for Puppet."""
    return json.dumps(text).replace("$", "\\$")


def plain(text):
    """Quotes a text for CFEngine, which knows no escape of a line end."""
    return '"' + text.replace('"', '\\"') + '"'


def present(name):
    path = pathlib.Path("/proc/sys") / name.replace(".", "/")
    return " ".join(path.read_text().split()) if path.exists() else None


def read():
    module = yaml.safe_load(pathlib.Path(MODULE, "module.yaml").read_text())
    params = {name: param.get("default") for name, param in module["params"].items()}
    values = {name: present(name) for name in params["sysctl"]}
    params["sysctl"] = {name: value for name, value in values.items() if value is not None}
    return params


def edits(params):
    """Returns path, pattern and line of each managed line."""
    for key, value in params["sshd"].items():
        yield "/etc/ssh/sshd_config", rf"^#?{key}\s", f"{key} {value}"
    for key, value in params["ssh"].items():
        yield "/etc/ssh/ssh_config", rf"^#?\s*{key}\s", f"    {key} {value}"
    for key, value in params["login"].items():
        yield "/etc/login.defs", rf"^#?\s*{key}\s", f"{key} {value}"
    yield "/etc/security/limits.conf", r"^\* hard core 0$", "* hard core 0"
    for key, value in params["sysctl"].items():
        yield SYSCTL_FILE, rf"^{key} = ", f"{key} = {value}"


def contents(params):
    """Returns path and content of each managed file."""
    yield "/etc/profile.d/umask.sh", "umask 027\n"
    yield "/etc/issue.net", "Authorised use only.\n"
    yield "/etc/modprobe.d/dev-sec.conf", "".join(f"install {it} /bin/true\n" for it in params["filesystems"])
    for name in params["protocols"]:
        yield f"/etc/modprobe.d/steadfast-{name}.conf", pathlib.Path(f"/etc/modprobe.d/steadfast-{name}.conf").read_text()


def steadfast(params):
    given = {"kernel": True, "auditd": False, "mounts": {}, "sysctl": params["sysctl"]}
    return yaml.safe_dump({"graph": "hardened", "modules": [{"use": MODULE, "as": "base", "with": given}]}, sort_keys=False)


def ansible(params):
    """One task for each group, with loops, as a person writes it."""
    lines = [{"path": path, "regexp": pattern, "line": line} for path, pattern, line in edits(params)]
    rights = [{"path": path, **it} for path, it in params["files"].items()]
    files = [{"dest": path, "content": content} for path, content in contents(params)]
    loop = "{{ item }}"
    tasks = [
        {"apt": {"name": ["openssh-server", "cron"]}},
        {"apt": {"name": params["unwanted"], "state": "absent", "purge": True}},
        {"lineinfile": {key: "{{ item.%s }}" % key for key in ("path", "regexp", "line")}, "loop": lines},
        {"file": {key: "{{ item.%s }}" % key for key in ("path", "owner", "group", "mode")}, "loop": rights},
        {"file": {"path": loop, "state": "absent"}, "loop": params["trust"]},
        {"copy": {"dest": "{{ item.dest }}", "content": "{{ item.content }}", "mode": "0644"}, "loop": files},
        {
            "ansible.posix.sysctl": {
                "name": "{{ item.key }}",
                "value": "{{ item.value }}",
                "sysctl_file": SYSCTL_FILE,
                "reload": False,
            },
            "loop": [{"key": key, "value": value} for key, value in params["sysctl"].items()],
        },
        {"systemd_service": {"name": loop, "state": "started", "enabled": True}, "loop": ["ssh", "cron"]},
    ]
    return yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}], sort_keys=False, width=200)


def puppet(params):
    text = ["package { ['openssh-server', 'cron']: ensure => installed }"]
    text.append("package { %s: ensure => purged }" % json.dumps(params["unwanted"]))
    for number, (path, pattern, line) in enumerate(edits(params)):
        edit = f"path => '{path}', match => '{pattern}', line => {quoted(line)}, multiple => true"
        text.append(f"file_line {{ 'line {number}': {edit} }}")
    for path, it in params["files"].items():
        text.append(f"file {{ '{path.rstrip('/')}': owner => {it['owner']}, group => {it['group']}, mode => '{it['mode']}' }}")
    for path in params["trust"]:
        text.append(f"file {{ '{path}': ensure => absent }}")
    for path, content in contents(params):
        text.append(f"file {{ '{path}': mode => '0644', content => {quoted(content)} }}")
    for name, value in params["sysctl"].items():
        path = "/proc/sys/" + name.replace(".", "/")
        test = f'test "$(tr "\\t" " " <{path})" = "{value}"'
        text.append(f"exec {{ '/usr/sbin/sysctl -w {name}={value}': unless => '{test}', provider => shell }}")
    text.append("service { ['ssh', 'cron']: ensure => running, enable => true }")
    return "\n".join(text) + "\n"


def cfengine(params):
    def slist(items):
        return "{ " + ", ".join(plain(item) for item in items) + " }"

    by_path = {}
    for path, _, line in edits(params):
        by_path.setdefault(path, []).append(line)
    variables, files = [], []
    for number, (path, lines) in enumerate(by_path.items()):
        variables.append(f'"lines{number}" slist => {slist(lines)};')
        files.append(f'"{path}" edit_line => insert_lines(@(baseline.lines{number}));')
    for path, it in params["files"].items():
        rights = f'perms => mog("{it["mode"]}", "{it["owner"]}", "{it["group"]}")'
        files.append(f'"{path.rstrip("/")}{"/." if path.endswith("/") else ""}" {rights};')
    for path in params["trust"]:
        files.append(f'"{path}" delete => tidy;')
    for path, content in contents(params):
        files.append(f'"{path}" create => "true", perms => m("0644"), content => {plain(content)};')
    values, commands = [], []
    for number, (name, value) in enumerate(params["sysctl"].items()):
        path = "/proc/sys/" + name.replace(".", "/")
        pattern = value.replace(" ", r"\s+")
        values.append(f'"value{number}_ok" expression => regcmp("{pattern}\\s*", readfile("{path}", 100));')
        commands.append(f'"/usr/sbin/sysctl -w {name}={value}" unless => "value{number}_ok";')
    # The package modules of CFEngine are scripts of Python; a line of dpkg's status is quicker to read.
    for name in ("openssh-server", "cron"):
        values.append(f'"has_{name.replace("-", "_")}" expression => regline("Package: {name}", "/var/lib/dpkg/status");')
        commands.append(f'"/usr/bin/apt-get install -y {name}" unless => "has_{name.replace("-", "_")}";')
    for name in params["unwanted"]:
        values.append(f'"has_{name.replace("-", "_")}" expression => regline("Package: {name}", "/var/lib/dpkg/status");')
        commands.append(f'"/usr/bin/apt-get purge -y {name}" if => "has_{name.replace("-", "_")}";')
    services = [f'"{name}" service_policy => "start";' for name in ("ssh", "cron")]
    sections = {
        "vars": variables,
        "classes": values,
        "files": files,
        "commands": commands,
        "services": services,
    }
    body = "".join(f"  {name}:\n" + "".join(f"    {line}\n" for line in lines) for name, lines in sections.items())
    stdlib = "/usr/share/cfengine3/masterfiles/lib/stdlib.cf"
    control = f'  inputs => {{ "{stdlib}" }};\n  bundlesequence => {{ "baseline" }};\n'
    return f"body common control {{\n{control}}}\nbundle agent baseline {{\n{body}}}\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    params = read()
    folder.mkdir(exist_ok=True)
    pathlib.Path(folder, "steadfast.yaml").write_text(steadfast(params))
    if "--graph" in sys.argv:
        return
    pathlib.Path(folder, "ansible.yaml").write_text(ansible(params))
    pathlib.Path(folder, "puppet.pp").write_text(puppet(params))
    policy = pathlib.Path(folder, "cfengine.cf")
    policy.write_text(cfengine(params))
    policy.chmod(0o600)


main()
