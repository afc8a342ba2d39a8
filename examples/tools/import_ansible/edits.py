"""Modules of Ansible that edit a part of a file."""

import re

from expressions import PATH
from parameters import NeedsExec, owned, take_state, without_backup


def expression_of(p, *keys):
    """Takes a regular expression of Python: a brace that counts nothing is a letter there."""
    value = p.raw(*keys)
    if not isinstance(value, str):
        return value
    if re.search(r"\(\?[=!<]|\(\?P=|\\[1-9]", value):
        raise NeedsExec("look-around in a regular expression")
    if value in ("EOF", "BOF"):
        return value
    parts = re.split(r"(\{\{.*?\}\}|\{%.*?%\})", value)
    if len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])):
        parts[::2] = [escape_braces(part) for part in parts[::2]]
    elif len(parts) == 1:
        parts = [escape_braces(value)]
    return p.names.text("".join(parts))


def escape_braces(text):
    """Escapes braces that are no counts, and writes the end of a text as Rust does."""
    text = re.sub(r"(?<!\\)\{(?!\d+(,\d*)?\})", r"\\{", text)
    return text.replace("\\Z", "\\z").replace("\\'", "'").replace("\\ ", " ")


def replacement_of(p, key):
    """Takes a replacement of Python: a group is written as \\1 here."""
    value = p.raw(key)
    if not isinstance(value, str):
        return value
    if re.search(r"\\g<[^0-9]|\\[nrt]|\\[1-9][0-9]", value):
        raise NeedsExec("a named group or an escape in a replacement")
    return p.names.text(re.sub(r"\\g<([0-9])>", r"\\\1", value))


def replace(p):
    path = p.take("path", "dest", "name", "destfile", fallback=PATH)
    fields = {
        "path": path,
        "match": expression_of(p, "regexp"),
        "replacement": replacement_of(p, "replace"),
        "only_after": expression_of(p, "after"),
        "only_before": expression_of(p, "before"),
    }
    without_backup(p, fields)
    p.drop(encoding="utf-8")
    return "replace", f"{path}: {fields['match']}", fields, owned(p, {})


def backrefs(p):
    """A line whose new text has groups of the old one: the whole line must be matched."""
    value = p.raw("regexp", "regex")
    if not isinstance(value, str) or not (value.startswith("^") and value.endswith("$")):
        raise NeedsExec("backrefs of lineinfile without a match of the whole line")
    p.given["regexp"] = value
    p.given["replace"] = p.raw("line", "value")
    p.drop(state="present", create=False, insertafter=None, insertbefore=None, firstmatch=False)
    return replace(p)


def line(p):
    if p.raw("backrefs") in (True, "yes", "true"):
        return backrefs(p)
    path = p.take("path", "dest", "name", "destfile", fallback=PATH)
    fields = {"path": path, "match": expression_of(p, "regexp", "regex"), "line": p.take("line", "value")}
    take_state(p, fields)
    for key in ("insertafter", "insertbefore"):
        fields[f"insert_{key[6:]}"] = expression_of(p, key)
    fields["create"] = p.flag("create")
    without_backup(p, fields)
    p.drop(backrefs=False, firstmatch=False)
    attributes = owned(p, {})
    return "line", f"{path}: {fields['line'] or fields['match']}", fields, attributes


def block(p):
    path = p.take("path", "dest", "name", fallback=PATH)
    fields = {
        "path": path,
        "content": p.take("block", "content"),
        "marker": p.take("marker"),
        "create": p.flag("create"),
    }
    for key in ("insertafter", "insertbefore"):
        fields[f"insert_{key[6:]}"] = expression_of(p, key)
    take_state(p, fields)
    without_backup(p, fields)
    return "block", path, fields, owned(p, {})


def ini(p):
    path = p.take("path", "dest", fallback=PATH)
    fields = {"path": path, "section": p.take("section"), "key": p.take("option"), "value": p.take("value")}
    if p.raw("no_extra_spaces") in (True, "yes"):
        fields["separator"] = "="
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    fields["create"] = p.flag("create")
    p.drop(state="present", backup=None, no_extra_spaces=None)
    return "ini", path, fields, owned(p, {})


def pam_limits(p):
    words = [p.take("domain"), p.take("limit_type"), p.take("limit_item"), p.take("value")]
    path = p.take("dest") or "/etc/security/limits.conf"
    p.drop(comment="", use_max=False, use_min=False, backup=None)
    line = "\t".join(str(word) for word in words)
    plain = [re.escape(str(word)) if "${" not in str(word) else str(word) for word in words[:3]]
    return (
        "line",
        f"{path}: {words[0]} {words[2]}",
        {"path": path, "match": r"^\s*" + r"\s+".join(plain) + r"\s", "line": line},
    )


def known_hosts(p):
    path = p.take("path") or "/root/.ssh/known_hosts"
    name = p.take("name")
    p.drop(hash_host=False, state="present")
    return "line", f"{path}: {name}", {"path": path, "line": p.take("key"), "create": True}


def crypttab(p):
    name, state = p.take("name"), p.raw("state", default="present")
    path = p.take("path", fallback=PATH) or "/etc/crypttab"
    if state == "absent":
        return "line", f"{path}: {name}", {"path": path, "match": f"^{name}\\s", "state": "absent"}
    if state != "present":
        raise NeedsExec("crypttab without a whole row")
    words = [name, p.take("backing_device", fallback="/dev/vdb"), p.take("password") or "none", p.take("opts")]
    line = " ".join(str(word) for word in words if word is not None)
    return "line", f"{path}: {name}", {"path": path, "match": f"^{name}\\s", "line": line, "create": True}
