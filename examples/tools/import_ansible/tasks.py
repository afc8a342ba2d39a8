"""Reads Ansible roles and playbooks: every task with its file and line, and the variables of the role."""

import os
import re
from dataclasses import dataclass, field

import yaml

KEYWORDS = set(
    "name when loop loop_control notify register tags become become_user become_method become_exe changed_when "
    "failed_when ignore_errors ignore_unreachable check_mode diff delegate_to delegate_facts run_once vars "
    "args environment no_log until retries delay listen block rescue always any_errors_fatal timeout throttle "
    "module_defaults collections debugger connection async poll remote_user local_action action".split()
)


class Located(dict):
    """A map that knows its first line, counted from 1."""

    line = 0


class Loader(yaml.SafeLoader):
    """Keeps lines of maps; tags such as !vault become empty."""


def _map(loader, node):
    loader.flatten_mapping(node)
    located = Located()
    located.line = node.start_mark.line + 1
    for key, value in node.value:
        located[str(loader.construct_object(key, deep=True))] = loader.construct_object(value, deep=True)
    return located


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _map)
Loader.add_multi_constructor("!", lambda loader, tag, node: None)


@dataclass
class Task:
    """One task, with the conditions of the blocks around it."""

    path: str
    line: int
    handler: bool
    name: str
    module: str
    action: str
    parameters: dict
    keywords: dict
    conditions: list = field(default_factory=list)

    @property
    def place(self):
        return f"{self.path}:{self.line}"


def _free_form(text):
    """Splits `key=value key=value` of a free-form module; the rest is the free form itself."""
    parameters, rest = {}, []
    for word in re.findall(r"(?:\{\{.*?\}\}|\{%.*?%\}|[^ ])+| (?= )", text, re.S):
        key, mark, value = word.partition("=")
        if mark and key.isidentifier() and key.islower() and (not rest or key in ("chdir", "creates", "removes")):
            parameters[key] = value.strip("\"'")
        else:
            rest.append(word)
    if any(rest):
        parameters["_raw"] = " ".join(rest).strip()
    return parameters


def _as_list(value):
    return value if isinstance(value, list) else [value]


def _tasks(entries, path, handler, conditions):
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        own = conditions + (_as_list(entry["when"]) if "when" in entry else [])
        if "block" in entry:
            for part in ("block", "rescue", "always"):
                yield from _tasks(entry.get(part), path, handler, own)
            continue
        module = next((key for key in entry if key not in KEYWORDS and not key.startswith("with_")), None)
        parameters = entry.get(module) if module else None
        if module is None and isinstance(entry.get("action"), str):
            module, _, parameters = entry["action"].partition(" ")
        if module is None:
            continue
        if isinstance(parameters, str):
            parameters = _free_form(parameters)
        parameters = dict(parameters) if isinstance(parameters, dict) else {}
        if isinstance(entry.get("args"), dict):
            parameters.update(entry["args"])
        keywords = {key: value for key, value in entry.items() if key != module}
        yield Task(
            path=path,
            line=getattr(entry, "line", 0),
            handler=handler,
            name=str(entry.get("name", module)),
            module=module.rsplit(".", 1)[-1],
            action=module,
            parameters=parameters,
            keywords=keywords,
            conditions=own,
        )


def _load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader)


def _yaml_files(folder):
    for root, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(root, name) for name in sorted(files) if name.endswith((".yml", ".yaml")))


def _variable_files(folder):
    """Returns the files with variables of a role for Debian 12: the first value of a variable wins."""
    files = {part: list(_yaml_files(os.path.join(folder, part))) for part in ("vars", "defaults")}
    ours = [re.compile(pattern) for pattern in (r"Debian-?12\.ya?ml$", r"Debian\.ya?ml$", r"/vars/main\b")]
    ranks = {path: next((rank for rank, one in enumerate(ours) if one.search(path)), 9) for path in files["vars"]}
    first = sorted((path for path in files["vars"] if ranks[path] < 9), key=lambda path: (ranks[path], path))
    return first + files["defaults"] + [path for path in files["vars"] if ranks[path] == 9]


@dataclass
class Role:
    """A role: its tasks and handlers, and its variables with their values where those are plain."""

    folder: str
    tasks: list
    variables: dict
    unread: list
    # The variables whose values come from tasks.
    facts: set = field(default_factory=set)


def read_role(folder):
    """Reads the role in a folder with `tasks/`."""
    role = Role(folder, [], {}, [])
    for path in _variable_files(folder):
        try:
            loaded = _load(path)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            role.unread.append((path, str(error).splitlines()[0]))
            continue
        if isinstance(loaded, dict):
            for name, value in loaded.items():
                role.variables.setdefault(name, value)
    for part in ("tasks", "handlers"):
        for path in _yaml_files(os.path.join(folder, part)):
            try:
                loaded = _load(path)
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                role.unread.append((path, str(error).splitlines()[0]))
                continue
            role.tasks.extend(_tasks(loaded, path, part == "handlers", []))
    # A variable that nobody sets gets its value from a task.
    for task in role.tasks:
        if task.module == "set_fact":
            for name, value in task.parameters.items():
                if name not in role.variables:
                    role.variables[name] = value
                    role.facts.add(name)
    return role


def read_playbook(path):
    """Reads the plays of one file as one role."""
    role = Role(path, [], {}, [])
    for play in _load(path) or []:
        if not isinstance(play, dict):
            continue
        role.variables.update(play.get("vars") or {})
        for part in ("pre_tasks", "tasks", "post_tasks", "handlers"):
            role.tasks.extend(_tasks(play.get(part), path, part == "handlers", []))
    return role


def find_roles(path):
    """Returns the folders of all roles below a path, or the playbook itself."""
    if os.path.isfile(path):
        return [path]
    found = []
    for root, folders, _ in os.walk(path):
        folders.sort()
        if "tasks" in folders and "molecule" not in root.split(os.sep):
            found.append(root)
            folders[:] = []
    return found
