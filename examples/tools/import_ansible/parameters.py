"""The parameters of a task, and the ones that many modules share."""

import os
import re

from expressions import COMMAND, MODE

DEFAULTS = {True: ("true", "yes", "on"), False: ("false", "no", "off")}


class NeedsExec(Exception):
    """The task needs a command."""


class Impossible(Exception):
    """The task has no counterpart."""


def loop_of(task):
    """Returns the name and the value of the loop of a task, or none."""
    found = [key for key in task.keywords if key == "loop" or key.startswith("with_")]
    return (found[0], task.keywords[found[0]]) if found else None


class Parameters:
    """The parameters of a task; each must be used."""

    def __init__(self, task, names):
        self.task = task
        self.given = dict(task.parameters)
        self.names = names
        self.role = os.path.dirname(task.path.split("/tasks/")[0].split("/handlers/")[0] + "/x")
        self.become = names.become = task.keywords.get("become_user") or ""
        self.loop = loop_of(task)
        # Entries beside the one of the task, and entries instead of it.
        self.more, self.instead = [], []

    def raw(self, *keys, default=None):
        """Takes a parameter as it stands."""
        for key in keys:
            if key in self.given:
                return self.given.pop(key)
        return default

    def take(self, *keys, fallback="text"):
        """Takes a parameter as a value of a field."""
        return self.names.text(self.raw(*keys), fallback)

    def number(self, *keys):
        """Takes a parameter that is a whole number."""
        value = self.raw(*keys)
        if isinstance(value, str) and value.strip().isdigit():
            return int(value)
        return self.names.text(value, 1000)

    def shipped(self, folder, source):
        """Returns the path of a file that the role brings, or none."""
        path = os.path.join(self.role, folder, str(source))
        return path if "{{" not in path and os.path.exists(path) else None

    def flag(self, *keys):
        """Takes a parameter that is true or false."""
        value = self.raw(*keys)
        if isinstance(value, str) and value.lower() in ("yes", "no", "true", "false"):
            return value.lower() in ("yes", "true")
        return self.names.text(value, False)

    def listed(self, *keys):
        """Takes a parameter that is a list, or a string with commas."""
        value = self.raw(*keys)
        if isinstance(value, str) and "{{" not in value:
            return [word.strip() for word in value.split(",") if word.strip()]
        if isinstance(value, str):
            return self.names.text(value, ["text"])
        return self.names.text(value)

    def drop(self, **accepted):
        """Drops parameters whose value is what steadfast does anyway; `None` accepts every value."""
        for key, value in accepted.items():
            given = self.given.get(key)
            if key in self.given and (
                value is None or given == value or str(given).lower() in DEFAULTS.get(value, (str(value).lower(),))
            ):
                del self.given[key]


def mode_of(value):
    """Writes a mode as a string: YAML reads 0644 as a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:04o}" if value > 7 else f"{value:04d}"
    if isinstance(value, str) and re.fullmatch(r"[1-7][0-7]{2,3}", value):
        return "0" + value
    return value


def owned(p, fields):
    """Takes owner, group and mode."""
    owner, group, mode = p.take("owner"), p.take("group"), mode_of(p.take("mode", fallback=MODE))
    if owner is None and p.become and p.become != "root":
        owner = p.names.text(p.become)
    fields |= {"owner": owner, "group": group, "mode": mode}
    p.drop(follow=None, unsafe_writes=None)
    return fields


def take_state(p, fields):
    """Takes `present` or `absent`."""
    state = p.raw("state", default="present")
    if state == "absent":
        fields["state"] = "absent"
    elif state != "present":
        fields["state"] = p.names.text(state, "exists")


def with_validation(p, fields):
    """Takes `validate` and `backup`."""
    validate = p.raw("validate")
    # steadfast splits at blanks: a placeholder needs no quotes.
    validate = re.sub(r"([\"'])%s\1", "%s", validate) if isinstance(validate, str) else validate
    fields["validate"] = p.names.text(validate, COMMAND)
    if p.raw("backup") not in (None, False, "no", "false"):
        fields["backup"] = "/var/backups/steadfast"
    return fields


def without_backup(p, fields):
    """Takes `validate`; the history of steadfast holds what `backup` would."""
    with_validation(p, fields).pop("backup", None)
