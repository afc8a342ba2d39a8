"""Undoes each setting of examples/modules/hardening alone, on a converged host, and measures when it is back.

    python3 adversary.py MODULE EVENT POLL [--kernel | --persisted]

With `--kernel` the settings are those that need a kernel, with `--persisted` the lines of sysctl.d that are there, otherwise
all others. EVENT and POLL are the longest times in
seconds of a repair by event and of one by the documented poll. Each line of the output is a setting as JSON. A setting that
is late is undone again, at most four times: a busy machine can delay one. The program ends with 1 if a setting is late each
time, or if a setting is not as declared before it is undone.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import yaml

SYSCTL_FILE = "/etc/sysctl.d/60-steadfast.conf"


def lines(path):
    return pathlib.Path(path).read_text().splitlines()


def drop_lines(path, dropped):
    """Rewrites a file in place, without these lines."""
    rest = [line for line in lines(path) if line not in dropped]
    pathlib.Path(path).write_text("".join(line + "\n" for line in rest))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True).returncode == 0


class Line:
    """A line of a file."""

    polled = False

    def __init__(self, path, line):
        self.name, self.path, self.line = f"{line} in {path}", path, line

    def undo(self):
        drop_lines(self.path, [self.line])

    def is_back(self):
        return self.line in lines(self.path)


class Attributes:
    """Owner, group and mode of a path."""

    polled = False

    def __init__(self, path):
        self.name = self.path = path
        self.declared = self.read()

    def read(self):
        status = os.stat(self.path)
        return (status.st_uid, status.st_gid, status.st_mode)

    def undo(self):
        os.chmod(self.path, 0o777)
        os.chown(self.path, 65534, 65534)

    def is_back(self):
        return self.read() == self.declared


class Content:
    """The content of a file, or its absence."""

    polled = False

    def __init__(self, path):
        self.name = self.path = path
        self.declared = self.read()

    def read(self):
        try:
            return pathlib.Path(self.path).read_text()
        except FileNotFoundError:
            return None

    def undo(self):
        if self.declared is None:
            pathlib.Path(self.path).write_text("+ +\n")
        else:
            os.remove(self.path)

    def is_back(self):
        return self.read() == self.declared


class Service:
    """A running service. It is back when systemd starts it: the rest is the time of its own program."""

    polled = False

    def __init__(self, unit):
        self.name = self.unit = unit

    def undo(self):
        run("systemctl", "stop", self.unit)

    def is_back(self):
        command = ["systemctl", "show", "--property", "ActiveState", "--value", self.unit]
        state = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        return state in ("active", "activating")


class Parameter:
    """The present value of a parameter of the kernel."""

    polled = False

    def __init__(self, name, value):
        self.name, self.value = name, value
        self.path = pathlib.Path("/proc/sys") / name.replace(".", "/")

    def undo(self):
        """Writes the first other value that the kernel takes."""
        for value in ("0", "1", "2", "3", "4096"):
            if value == self.value:
                continue
            try:
                self.path.write_text(value)
            except OSError:
                continue
            if not self.is_back():
                return
        raise OSError("the kernel takes no other value")

    def is_back(self):
        return self.path.read_text().split() == self.value.split()


class MountOptions:
    """The options of a mounted file system, which have no events."""

    polled = True

    def __init__(self, path, options):
        self.name, self.path, self.options = f"options of {path}", path, options

    def undo(self):
        run("mount", "-o", "remount,suid,exec,dev", self.path)

    def is_back(self):
        rows = [line.split() for line in lines("/proc/self/mounts")]
        found = next(row[3].split(",") for row in reversed(rows) if row[1] == self.path)
        return set(self.options) <= set(found)


def settings(params):
    """Returns the settings that a container can have, too."""
    for key, value in params["sshd"].items():
        yield Line("/etc/ssh/sshd_config", f"{key} {value}")
    for key, value in params["ssh"].items():
        yield Line("/etc/ssh/ssh_config", f"    {key} {value}")
    for key, value in params["login"].items():
        yield Line("/etc/login.defs", f"{key} {value}")
    yield Line("/etc/security/limits.conf", "* hard core 0")
    for path in params["files"]:
        yield Attributes(path.rstrip("/"))
    for path in [*params["trust"], "/etc/profile.d/umask.sh", "/etc/issue.net"]:
        yield Content(path)
    for unit in ["ssh", "cron"]:
        yield Service(unit)


def kernel_settings(params):
    """Returns the settings that need a kernel."""
    yield Content("/etc/modprobe.d/dev-sec.conf")
    for name in params["protocols"]:
        yield Content(f"/etc/modprobe.d/steadfast-{name}.conf")
    yield Service("auditd")
    for key, value in params["audit"].items():
        yield Line("/etc/audit/auditd.conf", f"{key} = {value}")
    for name, value in params["sysctl"].items():
        yield Parameter(name, value)
        yield Line(SYSCTL_FILE, f"{name} = {value}")
    for path, mount in params["mounts"].items():
        yield MountOptions(path, mount["options"])


def persisted_settings(_params):
    """Returns the lines that set parameters of the kernel at each boot."""
    for line in lines(SYSCTL_FILE):
        if line and not line.startswith("#"):
            yield Line(SYSCTL_FILE, line)


def measure(setting, limit):
    """Undoes a setting and returns the seconds until it is back, or infinity."""
    setting.undo()
    start = time.monotonic()
    while not setting.is_back():
        if time.monotonic() - start > max(60, 2 * limit):
            return float("inf")
        time.sleep(0.001)
    return time.monotonic() - start


def main():
    module = yaml.safe_load(pathlib.Path(sys.argv[1]).read_text())
    limits = {False: float(sys.argv[2]), True: float(sys.argv[3])}
    params = {name: param.get("default") for name, param in module["params"].items()}
    wrong = 0
    parts = {"--kernel": kernel_settings, "--persisted": persisted_settings}
    for setting in parts.get(sys.argv[-1], settings)(params):
        report = {"name": setting.name, "polled": setting.polled, "seconds": []}
        limit = limits[setting.polled]
        for pause in (0, 5, 10, 20, 30):
            time.sleep(pause)
            run("steadfast", "wait", "--timeout", "60")
            if not setting.is_back():
                report["problem"] = "not as declared"
                break
            try:
                report["seconds"].append(round(measure(setting, limit), 3))
            except OSError as error:
                report["permanent"] = str(error)
                break
            if report["seconds"][-1] <= limit:
                break
        is_late = bool(report["seconds"]) and min(report["seconds"]) > limit
        wrong += is_late or "problem" in report
        print(json.dumps(report), flush=True)
    sys.exit(1 if wrong else 0)


main()
