"""Writes what a task expects of its host, and a difference that it must repair: the same for both tools."""

import os
import shlex

from importer import expand

UNIT = """[Unit]
Description=a unit for a comparison
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


def script_of(case):
    """Returns a shell script for the host before the task."""
    lines = ["set +e", "mkdir -p /run/sshd"]
    for kind, entry in case.entries:
        for item in case.items(entry):
            flat = {
                key: expand(value, case.names.used, item) if isinstance(value, str) else value
                for key, value in entry.items()
            }
            lines += lines_of(kind, flat)
    return "\n".join(lines + ["true"])


def lines_of(kind, entry):
    """Returns the lines for one resource."""
    lines = []
    for key, ask, make in (("group", "group", "groupadd -r"), ("owner", "passwd", "useradd -r")):
        name = entry.get(key)
        if kind == "file" and isinstance(name, str) and not name.isdigit():
            lines.append(f"getent {ask} {shlex.quote(name)} >/dev/null || {make} {shlex.quote(name)}")
    if kind in ("file", "line", "block", "ini"):
        lines += lines_of_file(kind, str(entry.get("path", entry["name"])), entry)
    if kind == "svc":
        lines += lines_of_unit(entry["name"], entry)
    if kind == "pkg" and entry.get("state") == "absent":
        lines.append(f"DEBIAN_FRONTEND=noninteractive apt-get install -y -q {entry['name']} >/dev/null 2>&1")
    return lines


def lines_of_file(kind, path, entry):
    """Returns the lines for a file: its directory, itself where the task expects it, and another mode."""
    plain = shlex.quote(path.rstrip("/"))
    lines = [f"mkdir -p {shlex.quote(os.path.dirname(path.rstrip('/')))}"]
    state = entry.get("state", "exists")
    is_folder = path.endswith("/") or (state == "absent" and "." not in os.path.basename(path))
    if kind != "file" or state in ("absent", "undefined"):
        make = (
            f"mkdir -p {plain} && echo text >{plain}/text"
            if is_folder and kind == "file"
            else f"echo '# text' >{plain}"
        )
        lines.append(f"[ -e {plain} ] || {{ {make}; }}")
    target = str(entry.get("symlink") or entry.get("hardlink") or "")
    if target.startswith("/"):
        lines += [
            f"mkdir -p {shlex.quote(os.path.dirname(target))}",
            f"[ -e {shlex.quote(target)} ] || echo text >{shlex.quote(target)}",
        ]
    if entry.get("mode") and kind == "file":
        lines.append(f"[ ! -e {plain} ] || chmod g+{'w' if path.endswith('/') else 'x'} {plain}")
    return lines


def lines_of_unit(name, entry):
    """Returns the lines for a unit: the unit itself, and the opposite of the declared state."""
    unit = name if "." in name else f"{name}.service"
    quoted = shlex.quote(unit)
    lines = [
        f"systemctl cat {quoted} >/dev/null 2>&1 || {{ printf %s {shlex.quote(UNIT)} >/etc/systemd/system/{quoted}",
        "systemctl daemon-reload; }",
    ]
    if entry.get("state") == "stopped":
        lines.append(f"systemctl start {quoted}")
    if entry.get("startup") in ("disabled", "masked"):
        lines.append(f"systemctl enable {quoted} 2>/dev/null")
    return lines
