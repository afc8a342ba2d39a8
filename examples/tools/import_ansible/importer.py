"""Makes the resources of tasks, asks steadfast about them, and gives each task its verdict."""

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass

import yaml
from commands import COMMANDS, command, has_guard, is_query
from expressions import Names
from literals import without_literals
from loops import add_loop
from modules import CONTROL, MODULES, OTHER_SYSTEMS
from parameters import Impossible, NeedsExec, Parameters, loop_of

FACTS_OF_A_HOST = {
    "os": {"id": "debian", "family": "debian", "version": "12", "codename": "bookworm"},
    "architecture": "x86_64",
    "hostname": "web1",
    "fqdn": "web1.example.org",
    "kernel": {"release": "6.1.0"},
    "cpu": {"count": 2},
    "memory": {"total_mb": 2048},
}
FAMILIES = (
    "RedHat|Archlinux|FreeBSD|OpenBSD|NetBSD|Suse|SUSE|Alpine|Gentoo|Darwin|Windows|Amazon|Fedora|Rocky|AlmaLinux"
    "|CentOS|OracleLinux"
)


@dataclass
class Result:
    """The verdict about one task with its reason, the count of values left to a person, and the guard of a command."""

    task: object
    verdict: str
    reason: str = ""
    by_hand: int = 0
    guarded: bool = False


def is_elsewhere(task):
    """Tells whether a task runs on the control host or on another one, or changes only that host."""
    delegate = str(task.keywords.get("delegate_to", ""))
    return (
        task.module == "fetch" or "local_action" in task.keywords or (delegate and "inventory_hostname" not in delegate)
    )


def is_other_system(task):
    """Tells whether a module, a condition or the name of the file is for a system without dpkg."""
    if task.module in OTHER_SYSTEMS or re.search(rf"[-_/]({FAMILIES})\.ya?ml$", task.path):
        return True
    fact = r"ansible_(facts\.|facts\[['\"])?(os_family|distribution)(['\"]\])?"
    return any(
        re.fullmatch(rf"\s*{fact}\s*==\s*['\"]({FAMILIES})['\"]\s*", str(condition)) for condition in task.conditions
    )


def entries_of(task, names):
    """Returns the entries of a task, the entries instead of them in another case, and true for a loop without items.

    Each entry is a pair of the kind and the fields.
    """
    if is_other_system(task):
        raise Impossible("another system")
    if is_elsewhere(task):
        raise Impossible("runs on another host")
    module = command if task.module in COMMANDS else MODULES.get(task.module)
    if module is None:
        raise NeedsExec(f"module {task.module}")
    control = task.keywords.get("loop_control")
    names.item = str((control or {}).get("loop_var", "item")) if loop_of(task) else "(no item)"
    parameters = Parameters(task, names)
    kind, name, fields, *more = module(parameters)
    if parameters.given:
        raise NeedsExec(f"parameter {sorted(parameters.given)[0]} of {task.module}")
    if kind == "skip":
        return [], [], False
    entries = []
    for one in name if isinstance(name, list) else [name]:
        entries.append((kind, {"name": one} | {key: value for key, value in fields.items() if value is not None}))
    attributes = {key: value for key, value in (more[0] if more else {}).items() if value is not None}
    if attributes:
        path = fields["path"]
        entries.append(("file", {"name": f"attributes of {path}", "path": path, "state": "undefined"} | attributes))
    entries += [
        (kind, {key: value for key, value in entry.items() if value is not None}) for kind, entry in parameters.more
    ]
    instead = [
        (kind, {key: value for key, value in entry.items() if value is not None}) for kind, entry in parameters.instead
    ]
    conditions = [names.condition(condition) for condition in task.conditions]
    conditions = [condition for condition in conditions if condition is not True]
    for _, entry in entries + instead:
        entry["name"] = re.sub(r"[\x00-\x1f]+", " ", entry["name"]) if isinstance(entry["name"], str) else entry["name"]
        all_of = conditions + ([entry["when"]] if "when" in entry else [])
        if all_of:
            entry["when"] = all_of if len(all_of) > 1 else all_of[0]
    by_hand = add_loop(parameters.loop, entries + instead, names)
    return without_literals(entries), without_literals(instead), by_hand


def merged(entries):
    """Joins the entries of one object, such as a service and its handler. The first entry wins a field."""
    found = {}
    for kind, entry in entries:
        known = found.setdefault((kind, str(entry["name"])), (kind, {}))[1]
        if known and "for_each" in (known.keys() | entry.keys()):
            known = found.setdefault((kind, entry["name"], len(found)), (kind, {}))[1]
        for key, value in entry.items():
            if key == "when" and known and "when" not in known:
                continue
            known.setdefault(key, value)
        if "when" not in entry:
            known.pop("when", None)
    return list(found.values())


def graph_of(entries, names):
    """Writes a graph of some entries."""
    graph = {"graph": "imported"}
    if names.used:
        graph["vars"] = dict(names.used)
    resources = graph["resources"] = {}
    for kind, entry in merged(entries):
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
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line[:1].strip() and "warning:" not in line]
    return re.sub(r"^\S+graph\.yaml:\d+:\d+: ", "", lines[0])


def for_check(entries):
    """Returns the entries without their conditions, each of which stands at a resource of its own.

    steadfast does not check an inactive resource.
    """
    found = []
    for number, (kind, entry) in enumerate(entries):
        entry = dict(entry)
        condition = entry.pop("when", None)
        found.append((kind, entry))
        if condition is not None:
            loop = {"for_each": entry["for_each"]} if "for_each" in entry else {}
            itself = (
                " ${item.key}"
                if "item.value." in str(entry) + str(condition) or "item.key" in str(entry) + str(condition)
                else " ${item}"
            )
            name = f"condition {number}" + (itself if loop else "")
            found.append(("noop", {"name": name, "when": condition} | loop))
    return found


def expand(value, used, item):
    """Replaces the variables of a path by their samples."""

    def replace(found):
        name = found[1]
        if name.startswith("vars."):
            return str(used.get(name[5:], found[0]))
        if name in ("item", "item.key"):
            return str(item[0])
        return str(item[1].get(name.removeprefix("item.value."), found[0])) if isinstance(item[1], dict) else found[0]

    return re.sub(r"\$\{([\w.]+)\}", replace, value)


def provide_sources(entries, names, folder):
    """Makes the templates and sources that the entries name, so that a check finds them."""
    for _, entry in entries:
        items = names.used.get(str(entry.get("for_each", "")).removeprefix("vars."), [""])
        items = list(items.items()) if isinstance(items, dict) else [(item, None) for item in items]
        for key in ("template", "source"):
            value = entry.get(key)
            for item in items if isinstance(value, str) else []:
                found = expand(value, names.used, item)
                path = os.path.normpath(os.path.join(folder, found))
                if "${" in found or found.startswith("/") or not path.startswith(folder) or os.path.exists(path):
                    continue
                os.makedirs(path if found.endswith("/") else os.path.dirname(path), exist_ok=True)
                if not found.endswith("/"):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write("text\n")


def is_rejected(program, entries, names):
    """Asks the program about a graph of these entries."""
    with tempfile.TemporaryDirectory() as folder:
        provide_sources(entries, names, folder)
        return check(program, graph_of(for_check(entries), names), folder)


@dataclass
class Handlers:
    """The handlers of a role by name and by the topics that they listen to: their entries and variables."""

    entries: dict
    used: dict

    def targets(self, task):
        """Returns the edges to the handlers of a task, their entries, and the count of handlers left to a person."""
        topics = [str(topic) for topic in as_list(task.keywords.get("notify", []))]
        found = [self.entries.get(topic) for topic in topics]
        entries = [one for handler in found if handler for one in handler]
        edges = list(dict.fromkeys(f"{kind}[{entry['name']}]" for kind, entry in entries if kind == "svc"))
        return edges, entries, found.count(None)


def as_list(value):
    return value if isinstance(value, list) else [value]


def handlers_of(role, known):
    """Imports the handlers of a role whose kind has a refresh, and those that need nothing."""
    handlers = Handlers({}, {})
    for number, task in enumerate(role.tasks, 1):
        if not task.handler:
            continue
        names = Names(role.variables, number, known)
        try:
            entries, instead, by_hand = entries_of(task, names)
        except (NeedsExec, Impossible):
            continue
        if instead or by_hand or any(kind != "svc" or "for_each" in entry for kind, entry in entries):
            continue
        handlers.used |= names.used
        for topic in [task.name, *as_list(task.keywords.get("listen", []))]:
            handlers.entries.setdefault(str(topic), []).extend(entries)
    return handlers


def import_task(task, names, program, registered, handlers):
    """Returns the result of one task and its entries."""
    guarded = task.module in COMMANDS and has_guard(task, registered)
    try:
        entries, instead, loop_by_hand = entries_of(task, names)
    except NeedsExec as reason:
        return Result(task, "exec", str(reason), guarded=guarded), []
    except Impossible as reason:
        return Result(task, "impossible", str(reason)), []
    edges, targets, unknown = handlers.targets(task) if entries and not task.handler else ([], [], 0)
    for kind, entry in entries + instead:
        others = [edge for edge in edges if edge != f"{kind}[{entry['name']}]"]
        if others:
            entry["notify"] = others
    names.used = handlers.used | names.used if targets else names.used
    entries = entries + [one for one in targets if one not in entries]
    for some in (entries, instead and instead + targets) if program else ():
        rejected = is_rejected(program, some, names) if some else None
        if rejected:
            return Result(task, "rejected", rejected), []
    return Result(task, "native", by_hand=len(names.hoisted) + loop_by_hand + unknown), entries + instead


def import_role(role, program, out):
    """Imports one role and returns the result of each task."""
    results, all_entries = [], []
    whole = Names(role.variables)
    registered = {task.keywords["register"] for task in role.tasks if "register" in task.keywords}
    handlers = handlers_of(role, whole.used)
    for number, task in enumerate(role.tasks, 1):
        if task.module in CONTROL or is_query(task):
            continue
        names = Names(role.variables, number, whole.used)
        result, entries = import_task(task, names, program, registered, handlers)
        results.append(result)
        all_entries += entries
        if entries:
            whole.used |= names.used
    if out and all_entries:
        path = os.path.join(out, os.path.basename(os.path.abspath(role.folder)) + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(graph_of(all_entries, whole))
    return results
