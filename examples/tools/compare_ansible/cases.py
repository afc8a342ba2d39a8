"""Makes one case of each native task: the role with this task alone, and the translated graph."""

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, replace

import jinja2
import jinja2.meta
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import_ansible"))

from commands import is_query  # noqa: E402
from expressions import Names  # noqa: E402
from importer import check, entries_of, expand, graph_of, provide_sources  # noqa: E402
from modules import CONTROL  # noqa: E402
from parameters import Impossible, NeedsExec  # noqa: E402

# Keywords that say when a task runs or what is told about it, not what it changes.
DROPPED = (
    "when notify register tags changed_when failed_when ignore_errors no_log check_mode delegate_to run_once".split()
)
WORDS_OF_ANSIBLE = {
    "installed": "present",
    "newest": "latest",
    "running": "started",
    "exists": "present",
    "enabled": True,
    "disabled": False,
}
# Names that Ansible itself provides to every template.
PROVIDED = {"ansible_managed": "Ansible managed"}


class LeftToAPerson(Exception):
    """The task has a value that the role does not hold."""


@dataclass
class Case:
    """A task with its graph and the variables that both tools use."""

    task: object
    role: object
    entries: list
    names: Names
    variables: dict

    @property
    def packages(self):
        return [name for kind, entry in self.entries if kind == "pkg" for name in self.expanded(entry, "name")]

    @property
    def paths(self):
        """Returns the paths that the entries name."""
        entries = [entry for kind, entry in self.entries if kind in ("file", "line", "block", "ini", "git")]
        return sorted(
            {path.rstrip("/") for one in entries for path in self.expanded(one, "path" if "path" in one else "name")}
        )

    def items(self, entry):
        """Returns the items of the loop of an entry, each with its key."""
        items = self.names.used.get(str(entry.get("for_each", "")).removeprefix("vars."), [""])
        return list(items.items()) if isinstance(items, dict) else [(item, None) for item in items]

    def expanded(self, entry, key):
        """Returns the values of a field, one for each item."""
        return [expand(str(entry[key]), self.names.used, item) for item in self.items(entry)]


def template_values(role, source, names):
    """Returns a value for each name that a template of the role uses."""
    path = os.path.join(role.folder, "templates", source)
    if "${" in source or not os.path.isfile(path):
        raise LeftToAPerson("a template that the role does not name")
    environment = jinja2.Environment(trim_blocks=True, extensions=["jinja2.ext.do"])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        undeclared = jinja2.meta.find_undeclared_variables(environment.parse(text))
    except jinja2.TemplateError as error:
        raise LeftToAPerson("a template that is not plain Jinja") from error
    values = {}
    for name in sorted(undeclared):
        if name in PROVIDED:
            values[name] = PROVIDED[name]
            continue
        value = names.resolve(role.variables.get(name))
        if value is None:
            raise LeftToAPerson(f"the name {name} in a template")
        values[name] = value
    return values


def case_of(task, role, number):
    """Makes the case of one task; raises `LeftToAPerson`, `NeedsExec` or `Impossible`."""
    task = replace(task, conditions=[])
    names = Names(role.variables, number)
    entries, instead, by_hand = entries_of(task, names)
    if not entries:
        raise LeftToAPerson("a task that has no resource")
    if by_hand or names.hoisted or instead or names.omits_in_items:
        raise LeftToAPerson("an expression")
    # Both tools get the same values.
    variables = {}
    for name, value in names.used.items():
        origin = names.origins.get(name)
        word = WORDS_OF_ANSIBLE.get(value, value) if isinstance(value, str) else value
        if origin and origin not in role.variables and origin not in names.defaulted:
            raise LeftToAPerson("a variable without a value")
        if origin and variables.setdefault(origin, word) != word:
            raise LeftToAPerson("a variable with two types")
    for name in sorted(role.facts):
        value = names.resolve(role.variables[name])
        if value is not None:
            variables.setdefault(name, value)
    for _, entry in entries:
        if isinstance(entry.get("template"), str):
            values = template_values(role, entry["template"], names)
            # The texts of the role hold no expression of steadfast.
            entry["with"] = json.loads(json.dumps(values).replace("${", "$${"))
            variables |= values
        for key, folder in (("template", "templates"), ("source", "files")):
            value = entry.get(key)
            if isinstance(value, str) and not value.startswith("/"):
                if "${" in value or not os.path.exists(os.path.join(role.folder, folder, value)):
                    raise LeftToAPerson("a file that the role does not bring")
                entry[key] = f"{folder}/{value}"
    return Case(task, role, entries, names, variables)


def cases_of(roles, program, folder):
    """Returns all cases that steadfast accepts, and the count of the tasks without a case by reason."""
    cases, without = [], {}
    for role in roles:
        for number, task in enumerate(role.tasks, 1):
            if task.module in CONTROL or is_query(task):
                continue
            try:
                case = case_of(task, role, number)
            except (NeedsExec, Impossible):
                continue
            except LeftToAPerson as reason:
                without[str(reason)] = without.get(str(reason), 0) + 1
                continue
            write_graph(case, folder)
            if check(program, graph_of(case.entries, case.names), folder) is None:
                cases.append(case)
    return cases, without


def copy_role(role, folder):
    """Copies templates and files of a role."""
    for name in ("templates", "files"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        source = os.path.join(role.folder, name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(folder, name))


def write_graph(case, folder):
    """Writes the graph of a case with the files of its role."""
    os.makedirs(folder, exist_ok=True)
    copy_role(case.role, folder)
    provide_sources(case.entries, case.names, folder)
    with open(os.path.join(folder, "graph.yaml"), "w", encoding="utf-8") as file:
        file.write(graph_of(case.entries, case.names))


def write_role(case, folder):
    """Writes a playbook with the role of a case, which has this task alone."""
    shutil.rmtree(folder, ignore_errors=True)
    inner = os.path.join(folder, "roles", "one")
    os.makedirs(os.path.join(inner, "tasks"))
    copy_role(case.role, inner)
    for name in ("defaults", "vars"):
        source = os.path.join(case.role.folder, name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(inner, name))
    found = os.path.join(inner, "vars")
    systems = sorted(
        name for name in (os.listdir(found) if os.path.isdir(found) else []) if re.match(r"Debian(-12)?\.ya?ml$", name)
    )
    play = {"hosts": "localhost", "connection": "local", "become": True, "roles": ["one"]}
    if systems:
        play["vars_files"] = [f"roles/one/vars/{name}" for name in systems]
    task = {key: value for key, value in case.task.keywords.items() if key not in DROPPED}
    task |= {"name": case.task.name, case.task.action: plain(case.task.parameters)}
    task.pop("args", None)
    for path, value in (
        ("play.yaml", [play]),
        ("values.json", case.variables),
        ("roles/one/tasks/main.yml", [plain(task)]),
    ):
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            if path.endswith("json"):
                json.dump(value, file)
            else:
                yaml.safe_dump(value, file, sort_keys=False, allow_unicode=True)


def plain(value):
    """Returns a value without the maps that know their lines."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
