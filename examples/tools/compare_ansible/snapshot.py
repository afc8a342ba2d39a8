"""Prints the files, units and kernel parameters of this host as JSON. Runs on the host itself.

    python3 snapshot.py [PATH...]

A path that is named here is never ignored.
"""

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import time

# Paths that say nothing about the task: kernel and run time, logs, caches, states and backups of the tools themselves.
IGNORED = re.compile(
    r"^/(proc|sys|dev|run|tmp|opt|var/tmp|var/log|var/cache|var/lib/steadfast|var/lib/systemd|var/lib/apt/lists|var/lib/private"
    r"|var/lib/chrony|var/lib/mysql|var/lib/postgresql|var/lib/fail2ban|var/lib/dpkg/triggers|var/lib/dpkg/updates"
    r"|root/\.ansible|var/backups/steadfast)(/|$)"
    r"|^/(etc/\.pwd\.lock|etc/(passwd|group|shadow|gshadow|subuid|subgid)-|etc/ld\.so\.cache|etc/mtab|etc/machine-id"
    r"|var/lib/dpkg/(lock|lock-frontend|status-old|available)|var/lib/apt/daily_lock|etc/resolv\.conf)$"
    r"|/__pycache__(/|$)|\.pyc$|\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~$|^/etc/systemd/system\.control(/|$)"
)


def boot_time():
    """Returns the time of the first process of this host."""
    with open("/proc/1/stat", encoding="ascii") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime", encoding="ascii") as file:
        return time.time() - float(file.read().split()[0]) + ticks / os.sysconf("SC_CLK_TCK") - 2


def entry_of(path, boot=0):
    """Returns type, mode, owner, group and content of a path."""
    about = os.lstat(path)
    # What did not change since the boot is as in the root of the host.
    if about.st_ctime < boot:
        return "unchanged"
    mode = stat.S_IMODE(about.st_mode)
    kind = stat.S_IFMT(about.st_mode)
    if kind == stat.S_IFLNK:
        return ["link", "", about.st_uid, about.st_gid, os.readlink(path)]
    if kind == stat.S_IFDIR:
        return ["directory", f"{mode:04o}", about.st_uid, about.st_gid, acl_of(path)]
    if kind != stat.S_IFREG:
        return ["other", f"{mode:04o}", about.st_uid, about.st_gid, ""]
    with open(path, "rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return ["file", f"{mode:04o}", about.st_uid, about.st_gid, content + acl_of(path)]


def acl_of(path):
    """Returns the access lists and capabilities as text."""
    found = []
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(("system.posix_acl", "security.capability", "user.")):
            found.append(f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}")
    return " ".join(sorted(found))


def files(boot, paths):
    """Returns every entry of the tree that is not ignored, and these paths."""
    found = {path: entry_of(path) for path in paths if os.path.lexists(path)}
    for root, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if not IGNORED.search(os.path.join(root, name))]
        for name in folders + names:
            path = os.path.join(root, name)
            if not IGNORED.search(path):
                try:
                    found[path] = entry_of(path, boot)
                except OSError:
                    continue
    return found


def units():
    """Returns the activity of each unit that a task can manage."""
    command = ["systemctl", "show", "--all", "--property=Id,ActiveState", "*.service", "*.socket", "*.timer", "*.mount"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {}
    for part in text.split("\n\n"):
        pairs = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)
        if "Id" in pairs and not pairs["Id"].startswith(
            ("systemd-", "user@", "user-runtime", "run-", "dbus", "modprobe@")
        ):
            found[f"unit {pairs['Id']}"] = pairs["ActiveState"]
    return found


def parameters():
    """Returns the parameters of the network in the kernel, which a host has for itself."""
    found = {}
    for root, _, names in os.walk("/proc/sys/net"):
        for name in names:
            try:
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    found[os.path.join(root, name)] = file.read().strip()
            except (OSError, UnicodeDecodeError):
                continue
    return found


if __name__ == "__main__":
    print(json.dumps(files(boot_time(), sys.argv[1:]) | units() | parameters()))
