"""Modules of Ansible for files and directories."""

import os
import re
import stat

from expressions import PATH
from parameters import NeedsExec, owned, with_validation


def file(p):
    path = p.take("path", "dest", "name", fallback=PATH)
    state = p.raw("state", default="file")
    fields = {"path": path}
    if state == "touch":
        p.drop(modification_time="preserve", access_time="preserve")
    if state == "link":
        has_attributes = {"owner", "group", "mode"} & set(p.given)
        source = p.take("src", fallback=f"{PATH}-target" if has_attributes else "text")
        fields |= {"symlink": source, "force": p.flag("force")}
        follows = p.raw("follow") not in (False, "no", "false")
        attributes = owned(p, {})
        if follows:
            # The attributes are those of the target.
            target = (
                source
                if source.startswith(("/", "${"))
                else os.path.normpath(os.path.join(os.path.dirname(path), source))
            )
            if any(value is not None for value in attributes.values()):
                p.more.append(
                    ("file", {"name": f"attributes of {target}", "path": target, "state": "undefined"} | attributes)
                )
        else:
            fields |= {"owner": attributes["owner"], "group": attributes["group"]}
        p.drop(force=None)
        return "file", path, fields
    owned(p, fields)
    if state == "directory":
        fields["path"] = f"{path}/".replace("//", "/")
        if p.flag("recurse"):
            fields["recurse"] = True
    elif state == "absent":
        fields |= {"state": "absent", "force": True}
    elif state in ("file", "touch"):
        fields["state"] = "exists" if state == "touch" else "undefined"
    elif state == "hard":
        fields["hardlink"] = p.take("src", fallback=PATH)
    else:
        # The loop holds files, directories and links: the state decides about the form of the path.
        fields["state"] = p.names.text(state, "exists")
        fields["recurse"] = p.flag("recurse")
        p.drop(src=None)
    p.drop(force=None, recurse=False)
    return "file", path, fields


def within(dest, source):
    """Returns the path of a file in a directory."""
    return dest + os.path.basename(str(source)) if dest.endswith("/") else dest


def mode_of_source(p, folder, source, fields):
    """Reads the mode of a file of the role for `preserve`."""
    if fields["mode"] == "preserve":
        path = p.shipped(folder, source)
        if path is None:
            raise NeedsExec("mode preserve of a file that the role does not bring")
        fields["mode"] = f"{stat.S_IMODE(os.stat(path).st_mode):04o}"


def copy(p):
    dest = p.take("dest", fallback=PATH)
    fields = with_validation(p, owned(p, {"path": dest}))
    if p.raw("force") in (False, "no", "false"):
        fields["replace"] = False
    p.drop(force=None, decrypt=None)
    source = p.raw("src")
    if "content" in p.given:
        content = p.take("content")
        if source is not None:
            # One of the two is given: a person states which.
            has_content = p.names.hoist(f"content of {content}: item" if "item" in content else content, True)
            p.instead.append(
                (
                    "file",
                    {"name": f"{dest} from a file"}
                    | fields
                    | {"source": p.names.text(source), "when": f"not {has_content}"},
                )
            )
            fields["when"] = has_content
        fields["content"] = content
        p.drop(directory_mode=None, remote_src=None)
        return "file", dest, fields
    is_remote = p.raw("remote_src") in (True, "yes", "true")
    shipped = None if is_remote else p.shipped("files", source)
    if str(source).endswith("/") or (shipped and os.path.isdir(shipped)):
        inner = "" if str(source).endswith("/") else os.path.basename(str(source))
        fields["path"] = dest = f"{dest.rstrip('/')}/{inner}/".replace("//", "/")
        fields |= {"source": p.names.text(source).rstrip("/") + "/", "recurse": True}
        if fields.get("mode") == "preserve":
            fields["mode"] = None
        p.drop(directory_mode=None if fields["mode"] is None else "0755")
    else:
        fields["source"] = p.names.text(source, f"{PATH}-source" if is_remote else "text")
        fields["path"] = dest = within(dest, fields["source"])
        mode_of_source(p, "files", source, fields)
        p.drop(directory_mode=None)
    return "file", dest, fields


def template(p):
    dest = p.take("dest", fallback=PATH)
    source = p.raw("src")
    fields = with_validation(p, owned(p, {"path": dest, "template": p.names.text(source, "text")}))
    fields["path"] = dest = re.sub(r"\.j2$", "", within(dest, fields["template"])) if dest.endswith("/") else dest
    mode_of_source(p, "templates", source, fields)
    if p.raw("force") in (False, "no", "false"):
        fields["replace"] = False
    p.drop(force=None, newline_sequence="\n", output_encoding="utf-8", lstrip_blocks=False, trim_blocks=True)
    return "file", dest, fields


def assemble(p):
    dest = p.take("dest", fallback=PATH)
    fields = with_validation(p, owned(p, {"path": dest, "fragments": [p.take("src", fallback=PATH)]}))
    p.drop(remote_src=True)
    return "file", dest, fields


def acl(p):
    path = p.take("path", "name", fallback=PATH)
    if "entry" in p.given and not {"etype", "entity", "permissions"} & set(p.given):
        entry = p.take("entry")
    else:
        p.drop(entry=None if "omit" in str(p.given.get("entry", "omit")) else "")
        kinds = {"user": "user", "group": "group", "mask": "mask", "other": "other"}
        entry = f"{kinds.get(p.raw('etype'), 'user')}:{p.take('entity') or ''}:{p.take('permissions') or ''}"
    prefix = "default:" if p.raw("default") in (True, "yes") else ""
    p.drop(state="present", follow=True, recalculate_mask="default", recursive=False)
    return "file", path, {"path": path, "state": "undefined", "acl": [prefix + str(entry)]}


def capabilities(p):
    path, capability = p.take("path", "key", fallback=PATH), p.take("capability", "cap", fallback="cap_net_raw=ep")
    state = p.raw("state", default="present")
    if state != "present":
        raise NeedsExec("capabilities that are taken away")
    return (
        "file",
        f"capabilities of {path}",
        {"path": path, "state": "undefined", "capabilities": str(capability).replace("+", "=")},
    )
