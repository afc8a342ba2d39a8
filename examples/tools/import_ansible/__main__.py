"""Maps tasks of Ansible to resources of steadfast, writes them as graphs, and counts what is native.

    python3 examples/tools/import_ansible [--check STEADFAST] [--out DIR] [--report FILE] ROLE_OR_PLAYBOOK...
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import yaml

from expressions import Names
from modules import COMMANDS, CONTROL, MODULES, OTHER_SYSTEMS, Impossible, NeedsExec, Parameters
from tasks import find_roles, read_playbook, read_role

FACTS_OF_A_HOST = {
    "os": {"id": "debian", "family": "debian", "version": "12", "codename": "bookworm"},
    "architecture": "x86_64",
    "hostname": "web1",
    "fqdn": "web1.example.org",
    "kernel": {"release": "6.1.0"},
    "cpu": {"count": 2},
    "memory": {"total_mb": 2048},
}
FALSE = (False, "false", "no", "False")


def is_query(task):
    """Tells whether a command only asks."""
    return task.module in COMMANDS and task.keywords.get("changed_when") in FALSE


def is_elsewhere(task):
    """Tells whether a task runs on the control host or on another one."""
    delegate = str(task.keywords.get("delegate_to", ""))
    return "local_action" in task.keywords or (delegate and "inventory_hostname" not in delegate)


def add_loop(task, entry, names):
    """Translates a loop; raises `NeedsExec` where no form of `for_each` fits."""
    loops = [key for key in task.keywords if key == "loop" or key.startswith("with_")]
    if not loops:
        return
    if loops[0] in ("with_nested", "with_subelements", "with_together", "with_sequence", "with_fileglob", "with_first_found"):
        if loops[0] != "with_first_found":
            raise NeedsExec(f"{loops[0]}")
    value = task.keywords[loops[0]]
    text = json.dumps(entry)
    keys = sorted({word.split("}")[0].split(" ")[0] for word in text.split("item.value.")[1:]})
    keys = ["".join(c for c in key if c.isalnum() or c == "_") for key in keys]
    if keys:
        items = {"one": {key: "text" for key in keys}}
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            items = {
                str(index): {key: names.sample(item.get(key, "text")) for key in keys} for index, item in enumerate(value, 1)
            }
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        items = list(dict.fromkeys(names.sample(item) for item in value))
    else:
        items = ["text"]
    # A path that begins with the item needs items that are paths.
    for field in ("path", "name", "symlink", "source"):
        found = re.match(r"^\$\{item(?:\.value\.(\w+))?\}", str(entry.get(field, "")))
        if found and found[1] and isinstance(items, dict):
            for item in items.values():
                if not str(item.get(found[1])).startswith("/") and field != "name":
                    item[found[1]] = "/etc/text"
        elif found and field != "name":
            items = [item if item.startswith("/") else f"/etc/{item}" for item in items]
    name = f"items_{len(names.used) + 1}"
    names.used[name] = items
    entry["for_each"] = f"vars.{name}"


def entries_of(task, names):
    """Returns kind and entries of a task."""
    if task.module in OTHER_SYSTEMS:
        raise Impossible("another system")
    if is_elsewhere(task):
        raise Impossible("runs on another host")
    if task.module in COMMANDS:
        raise NeedsExec("a command")
    module = MODULES.get(task.module)
    if module is None:
        raise NeedsExec(f"module {task.module}")
    parameters = Parameters(task, names)
    kind, name, fields, *more = module(parameters)
    if parameters.given:
        raise NeedsExec(f"parameter {sorted(parameters.given)[0]} of {task.module}")
    if kind == "skip":
        return []
    entries = []
    for one in name if isinstance(name, list) else [name]:
        entry = {"name": one} | {key: value for key, value in fields.items() if value is not None}
        entries.append((kind, entry))
    attributes = {key: value for key, value in (more[0] if more else {}).items() if value is not None}
    if attributes:
        path = fields["path"]
        entries.append(("file", {"name": f"attributes of {path}", "path": path, "state": "undefined"} | attributes))
    conditions = [names.condition(condition) for condition in task.conditions]
    for _, entry in entries:
        add_loop(task, entry, names)
        if conditions and conditions != [True]:
            entry["when"] = conditions if len(conditions) > 1 else conditions[0]
    return entries


def graph_of(entries, names):
    """Writes a graph of some entries."""
    graph = {"graph": "imported"}
    if names.used:
        graph["vars"] = dict(names.used)
    resources = graph["resources"] = {}
    for kind, entry in entries:
        resources.setdefault(kind, []).append(entry)
    return yaml.safe_dump(graph, sort_keys=False, allow_unicode=True, width=120)


def check(program, text, folder):
    """Asks steadfast to check a graph; returns the first line of its answer if it is rejected."""
    path = os.path.join(folder, "graph.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    facts = os.path.join(folder, "facts.json")
    with open(facts, "w", encoding="utf-8") as file:
        json.dump(FACTS_OF_A_HOST, file)
    done = subprocess.run([program, "check", "--facts", facts, path], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    first = (done.stderr or done.stdout).strip().splitlines()[0]
    return re.sub(r"^\S+graph\.yaml:\d+:\d+: ", "", first)


def provide_sources(entries, names, folder):
    """Makes the templates and sources that the entries name, so that a check finds them."""
    for _, entry in entries:
        for key in ("template", "source"):
            value = entry.get(key)
            if isinstance(value, str):
                value = re.sub(r"\$\{vars\.(\w+)\}", lambda found: str(names.used.get(found[1])), value)
            if isinstance(value, str) and "${" not in value and not value.startswith("/"):
                path = os.path.normpath(os.path.join(folder, value))
                if path.startswith(folder) and not os.path.exists(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write("text\n")


def import_role(role, program, out):
    """Imports one role and returns the result of each task."""
    results, all_entries = [], []
    whole = Names(role.variables)
    for task in role.tasks:
        if task.module in CONTROL or is_query(task):
            continue
        names = Names(role.variables)
        try:
            entries = entries_of(task, names)
        except NeedsExec as reason:
            results.append((task, "exec", str(reason), 0))
            continue
        except Impossible as reason:
            results.append((task, "impossible", str(reason), 0))
            continue
        verdict, reason = "native", ""
        if program and entries:
            with tempfile.TemporaryDirectory() as folder:
                provide_sources(entries, names, folder)
                rejected = check(program, graph_of(entries, names), folder)
            if rejected:
                verdict, reason = "rejected", rejected
        results.append((task, verdict, reason, len(names.hoisted)))
        all_entries += entries
        whole.used |= names.used
    if out and all_entries:
        path = os.path.join(out, os.path.basename(os.path.abspath(role.folder)) + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph_of(all_entries, whole))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="roles, folders of roles, or playbooks")
    parser.add_argument("--check", metavar="STEADFAST", help="the program that must accept each graph")
    parser.add_argument("--out", metavar="DIR", help="the folder for the graphs")
    parser.add_argument("--report", metavar="FILE", help="the file for all tasks that are not native, as JSON")
    options = parser.parse_args()
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    rest, total, hoisted = [], collections.Counter(), 0
    reasons = collections.Counter()
    for path in options.paths:
        counts = collections.Counter()
        for folder in find_roles(path):
            try:
                role = read_playbook(folder) if os.path.isfile(folder) else read_role(folder)
            except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
                print(f"{folder}: cannot be read: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            for place, error in role.unread:
                print(f"{place}: cannot be read: {error}", file=sys.stderr)
            for task, verdict, reason, by_hand in import_role(role, options.check, options.out):
                counts[verdict] += 1
                hoisted += by_hand
                if verdict != "native":
                    reasons[f"{verdict}: {reason}"] += 1
                    rest.append({"task": task.name, "place": task.place, "result": verdict, "reason": reason})
        total += counts
        print_counts(os.path.basename(os.path.normpath(path)), counts)
    print_counts("all", total)
    print(f"expressions left to a person: {hoisted}")
    for reason, count in reasons.most_common(40):
        print(f"{count:6} {reason}")
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(rest, file, indent=1)


def print_counts(name, counts):
    """Prints one row: tasks, and the share of those that this system has."""
    here = sum(counts.values()) - counts["impossible"]
    share = 100 * counts["native"] / here if here else 0
    row = "  ".join(f"{key} {counts[key]}" for key in ("native", "exec", "rejected", "impossible"))
    print(f"{name:30} {sum(counts.values()):5} tasks  {row}  native share {share:.1f} %")


if __name__ == "__main__":
    main()
