"""Applies native tasks by Ansible and by steadfast, each on a fresh host, and compares the hosts.

    python3 examples/tools/compare_ansible --program STEADFAST [--seed N] [--tasks N] [--report FILE] ROLE_OR_FOLDER...

It needs root, systemd-nspawn, PyYAML and Jinja2. See examples/tools/README.md.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

from cases import cases_of, write_graph, write_role  # noqa: E402
from hosts import Host  # noqa: E402
from snapshot import entry_of  # noqa: E402
from surroundings import script_of  # noqa: E402
from tasks import find_roles, read_role  # noqa: E402

ANSIBLE = """cd /opt/role
export PYTHONPATH=/opt/judges PYTHONDONTWRITEBYTECODE=1 ANSIBLE_HOME=/tmp/ansible ANSIBLE_PIPELINING=1 \\
  ANSIBLE_LOCALHOST_WARNING=0 ANSIBLE_RETRY_FILES_ENABLED=0
python3 /opt/judges/bin/ansible-playbook -i localhost, -e ansible_python_interpreter=/usr/bin/python3 \\
  -e @values.json play.yaml"""
STEADFAST = "/opt/steadfast apply /opt/graph/graph.yaml"
SOURCES = """rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] copy:/opt/repository ./' >/etc/apt/sources.list
apt-get -q update >/dev/null"""


def folder_of(program, *arguments):
    """Runs a script that prints a folder."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


class Unchanged:
    """An entry that is as in the root: it is read only if the other host has another one."""

    def __init__(self, root, path):
        self.root, self.path = root, path

    def __eq__(self, other):
        return isinstance(other, Unchanged) or entry_of(self.root + self.path) == other

    def __repr__(self):
        return "unchanged"


def change_by(command, root, binds, surroundings, paths):
    """Runs a command on a fresh host; returns its exit code, its output and the changes that it made."""
    host = Host(root, binds)
    try:
        host.run(SOURCES)
        host.run(surroundings)
        snapshot = shlex.join(["python3", "/opt/compare/snapshot.py", *paths])
        before = json.loads(host.run(snapshot)[1])
        code, output = host.run(command)
        after = json.loads(host.run(snapshot)[1])
    finally:
        host.stop()
    for found in (before, after):
        for path in [path for path, value in found.items() if value == "unchanged"]:
            found[path] = Unchanged(root, path)
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return code, output, {path: after.get(path) for path in paths}, after


def compare(case, number, options):
    """Applies one case by both tools and returns the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        role, graph = os.path.join(folder, "role"), os.path.join(folder, "graph")
        write_role(case, role)
        write_graph(case, graph)
        surroundings = script_of(case)
        binds = [*options.binds, (role, "/opt/role"), (graph, "/opt/graph")]
        ansible = change_by(ANSIBLE, options.root, binds, surroundings, case.paths)
        ours = change_by(STEADFAST, options.root, binds, surroundings, case.paths)
    result = {"number": number, "task": case.task.name, "place": case.task.place, "module": case.task.module}
    different = {}
    # Directories of the accounts' files and other parents change with their entries: only what one tool changed counts.
    for path in sorted(ansible[2].keys() | ours[2].keys()):
        if ansible[3].get(path) != ours[3].get(path):
            different[path] = [str(ansible[3].get(path)), str(ours[3].get(path))]
    result |= {"ansible": ansible[0], "steadfast": ours[0], "changes": len(ansible[2]), "different": different}
    if ansible[0] and ours[0]:
        result["verdict"] = "both fail"
    elif ansible[0] or ours[0]:
        result["verdict"] = "one fails"
    else:
        result["verdict"] = "differs" if different else "equal" if ansible[2] else "equal, nothing to change"
    if result["verdict"] not in ("equal", "equal, nothing to change"):
        result |= {"output": [ansible[1][-1500:], ours[1][-1500:]]}
    print(f"{number:3} {result['verdict']:24} {case.task.module:16} {case.task.place}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="roles, or folders of roles")
    parser.add_argument("--program", required=True, help="the steadfast to try")
    parser.add_argument("--seed", type=int, default=19, help="the seed of the draw")
    parser.add_argument("--tasks", type=int, default=50, help="the number of tasks to draw")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of drawn tasks to run")
    parser.add_argument("--jobs", type=int, default=2, help="the cases that run at the same time")
    parser.add_argument("--report", help="the file for all results, as JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop_all)
    if os.geteuid():
        sys.exit("compare_ansible: expected root; hosts need it")
    program = os.path.abspath(options.program)
    roles = [read_role(folder) for path in options.paths for folder in find_roles(path)]
    with tempfile.TemporaryDirectory() as folder:
        cases, without = cases_of(roles, program, folder)
    print(f"{len(cases)} native tasks whose values the role holds; left to a person: {sum(without.values())}")
    drawn = random.Random(options.seed).sample(cases, min(options.tasks, len(cases)))
    tests = os.path.join(HERE, "..", "..", "..", "tests", "hosts")
    options.root = folder_of(os.path.join(HERE, "make-surroundings"))
    names = {name for case in drawn for name in case.packages}
    known = [name for name in sorted(names) if is_in_debian(options.root, name)]
    repository = folder_of(os.path.join(tests, "make-repository"), "compare", *known, "apt-utils")
    judges = folder_of(os.path.join(tests, "make-judges"))
    options.binds = [
        (program, "/opt/steadfast"),
        (judges, "/opt/judges"),
        (HERE, "/opt/compare"),
        (repository, "/opt/repository"),
    ]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wanted = [(case, number) for number, case in enumerate(drawn, 1) if not options.only or number in options.only]
        results = list(pool.map(lambda one: attempt(*one, options), wanted))
    for verdict, count in collections.Counter(result["verdict"] for result in results).most_common():
        print(f"{count:4} {verdict}")
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


def attempt(case, number, options):
    """Compares one case; a host that hangs is a verdict too."""
    try:
        return compare(case, number, options)
    except (TimeoutError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        print(f"{number:3} no answer: {error}", flush=True)
        return {"number": number, "task": case.task.name, "place": case.task.place, "verdict": f"no answer: {error}"}


def stop_all(number, _frame):
    """Ends all hosts and this process: a host outlives the program that booted it."""
    for host in list(Host.running):
        host.stop()
    os._exit(128 + number)


def is_in_debian(root, name):
    """Tells whether apt of the root can install a package of this name."""
    command = ["chroot", root, "apt-cache", "policy", name]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return "Candidate:" in text and "Candidate: (none)" not in text


if __name__ == "__main__":
    main()
