"""Fields that hold a text of another language: steadfast copies it as it is, so an expression comes by another way."""

import re

EXPRESSION = re.compile(r"\$?\$\{([^}]*)\}")
# The fields whose text can be a template, and the ones that receive a value.
TEMPLATES = {("file", "content"), ("block", "content")}
RECEIVED = {("cron", "job"), ("ssh:authorized_key", "options")}


def without_literals(entries):
    """Returns the entries with templates and received values in place of expressions in such texts."""
    found = []
    for kind, entry in entries:
        entry = dict(entry)
        for field in [key for key in entry if (kind, key) in TEMPLATES | RECEIVED]:
            text = entry[field]
            if not isinstance(text, str):
                continue
            if not any(not one[0].startswith("$$") for one in EXPRESSION.finditer(text)):
                entry[field] = text.replace("$${", "${")
            elif (kind, field) in TEMPLATES:
                as_template(entry, field)
            else:
                found.append(as_value(kind, entry, field))
        found.append((kind, entry))
    return found


def as_template(entry, field):
    """Makes a template of a text with expressions."""
    values = {}

    def replace(one):
        if one[0].startswith("$$"):
            return one[0][1:]
        name = next((name for name, value in values.items() if value == f"${{{one[1]}}}"), f"value_{len(values) + 1}")
        values[name] = f"${{{one[1]}}}"
        return "{{ " + name + " }}"

    text = EXPRESSION.sub(replace, entry.pop(field))
    entry |= {"template": {"text": text}, "with": values}


def as_value(kind, entry, field):
    """Makes a resource that sends the text, and lets the entry receive it."""
    name = f"{field} of {entry['name']}"
    sender = {"name": name, "text": entry.pop(field)} | {
        key: entry[key] for key in ("for_each", "when") if key in entry
    }
    entry["recv"] = {field: f"value[{name}].text"}
    return "value", sender
