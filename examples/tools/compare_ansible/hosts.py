"""Disposable hosts: a booted Debian in memory by systemd-nspawn, as tests/hosts/machine.rs boots it."""

import os
import signal
import subprocess
import time

GROUPS = "/sys/fs/cgroup"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Host:
    """A booted host with some paths of this machine, read-only."""

    count = 0
    running = []

    def __init__(self, root, binds):
        Host.count += 1
        self.name = f"{os.getpid()}-compare{Host.count}"
        self.groups = [os.path.join(one, f"steadfast-host-{self.name}") for one in hierarchies()]
        for group in self.groups:
            os.mkdir(group)
        doors = [os.path.join(group, "cgroup.procs") for group in self.groups]
        enter = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'
        command = ["sh", "-euc", enter, "sh", *doors, "--"]
        command += ["setpriv", "--pdeathsig", "KILL", "systemd-nspawn", "--quiet", "--boot", "--directory", root]
        command += [
            "--volatile=overlay",
            "--machine",
            f"sf-{self.name}",
            "--register=no",
            "--keep-unit",
            "--private-network",
        ]
        command += ["--link-journal=no"] + [f"--bind-ro={source}:{target}" for source, target in binds]
        command += ["--", "systemd.unit=multi-user.target", "systemd.mask=timers.target", "systemd.mask=getty.target"]
        command += ["systemd.mask=console-getty.service"]
        self.nspawn = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.leader = None
        Host.running.append(self)
        self.leader = self.wait(lambda: first_process(self.nspawn.pid), 90)
        self.wait(lambda: self.run("systemctl is-system-running")[1].strip() in ("running", "degraded"), 90)

    def wait(self, reached, seconds):
        """Waits for a value that is true."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            value = reached()
            if value:
                return value
            time.sleep(0.05)
        raise TimeoutError(f"host {self.name}")

    def run(self, script, seconds=300):
        """Runs a shell script as root; returns the exit code and the output."""
        command = [
            "nsenter",
            "--target",
            str(self.leader),
            "--root",
            "--wd",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--ipc",
        ]
        command += ["--cgroup", "--", "sh", "-euc", script]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=seconds,
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/root"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def stop(self):
        """Ends the host and removes its control groups."""
        if self in Host.running:
            Host.running.remove(self)
        if self.leader:
            os.kill(self.leader, signal.SIGKILL)
        try:
            self.nspawn.wait(20)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()
        limit = time.monotonic() + 10
        while not all([remove_group(group) for group in self.groups]) and time.monotonic() < limit:
            time.sleep(0.05)


def hierarchies():
    """Returns the hierarchies of control groups that systemd writes to."""
    if os.path.exists(f"{GROUPS}/cgroup.controllers"):
        return [GROUPS]
    return [f"{GROUPS}/{name}" for name in ("systemd", "unified") if os.path.exists(f"{GROUPS}/{name}/cgroup.procs")]


def remove_group(path):
    """Removes a control group with its subgroups; returns false while one has processes."""
    for root, folders, _ in os.walk(path, topdown=False):
        for folder in folders:
            try:
                os.rmdir(os.path.join(root, folder))
            except OSError:
                return False
    try:
        os.rmdir(path)
    except OSError:
        return not os.path.exists(path)
    return True


def first_process(nspawn):
    """Returns the systemd below nspawn, in a process namespace of its own."""
    try:
        with open(f"/proc/{nspawn}/task/{nspawn}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            if name == "systemd" and os.readlink(f"/proc/{child}/ns/pid") != os.readlink("/proc/self/ns/pid"):
                return int(child)
    except OSError:
        return None
    return None
