"""Modules of Ansible for packages, repositories and downloads."""

import re

from expressions import CHECKSUM, ONE, PATH, URL
from files import within
from parameters import NeedsExec, owned, take_state


def git(p):
    dest = p.take("dest", fallback=PATH)
    fields = {
        "repo": p.take("repo", fallback="https://example.org/text.git"),
        "version": p.take("version"),
        "depth": p.number("depth"),
        "force": p.flag("force"),
    }
    fields["update"] = p.flag("update")
    if p.become and p.become != "root":
        fields["user"] = p.names.text(p.become)
    p.drop(accept_hostkey=None, clone=True, bare=False, recursive=False, track_submodules=False, single_branch=None)
    return "git", dest, fields


def checksum(p):
    """Takes the checksum of a download."""
    value = p.raw("checksum", "sha256sum")
    if not value:
        raise NeedsExec("get_url without a checksum")
    value = str(value)
    if re.fullmatch(r"[0-9a-f]{64}", value):
        value = "sha256:" + value
    if "://" in value:
        raise NeedsExec("a checksum at a URL")
    kind = re.match(r"([a-z0-9]+):", value)
    if kind and kind[1] != "sha256":
        raise NeedsExec(f"a checksum of {kind[1]}")
    if kind and "{{" in value:
        inner = "{{ " + repr("sha256:") + " ~ x }}"
        return "${" + p.names.hoist(value + inner, CHECKSUM) + "}"
    return p.names.text(value, CHECKSUM)


def get_url(p):
    dest = p.take("dest", fallback=PATH)
    fields = owned(p, {"url": p.take("url", fallback=URL), "checksum": checksum(p)})
    fields["timeout"] = p.take("timeout", fallback=60)
    if isinstance(fields["timeout"], int):
        fields["timeout"] = f"{fields['timeout']}s"
    fields["path"] = dest = within(dest, str(fields["url"]))
    fields |= {"username": p.take("url_username"), "password": p.take("url_password")}
    p.drop(force=None, validate_certs=True, tmp_dest=None)
    return "fetch", dest, fields


def unarchive(p):
    p.task_dest = p.given.get("dest", "")
    dest = p.take("dest", fallback=PATH)
    fields = owned(p, {})
    if fields["mode"] is not None:
        raise NeedsExec("the mode of all files of an archive")
    creates = p.raw("creates")
    if creates is not None:
        inner = str(creates).removeprefix(str(p.task_dest).rstrip("/") + "/")
        if inner == creates or "{{" in inner:
            raise NeedsExec("creates of unarchive outside of its directory")
        fields["creates"] = inner
    source = p.raw("src", default="")
    remote = p.raw("remote_src")
    if "://" in str(source):
        raise NeedsExec("unarchive of a URL without a checksum")
    if not remote:
        raise NeedsExec("unarchive of a file of the control host")
    fields["source"] = p.names.text(source, "/var/cache/text.tar.gz")
    extra = p.raw("extra_opts") or []
    for option in extra if isinstance(extra, list) else [extra]:
        found = re.fullmatch(r"--strip-components[= ]?(\d+)", str(option))
        if not found:
            raise NeedsExec("extra_opts of unarchive")
        fields["strip"] = int(found[1])
    if "strip" not in fields:
        raise NeedsExec("unarchive into a directory with other files")
    p.drop(keep_newer=False, list_files=None, exclude=[])
    return "archive", dest, fields


def deb822(p):
    name = p.take("name")
    fields = {
        "uris": p.listed("uris"),
        "suites": p.listed("suites"),
        "components": p.listed("components"),
        "types": p.listed("types"),
    }
    fields |= {
        "architectures": p.listed("architectures"),
        "signed_by": p.take("signed_by", fallback="/usr/share/keyrings/x.gpg"),
    }
    take_state(p, fields)
    fields["enabled"] = p.flag("enabled")
    p.drop(mode="0644", install_python_debian=None, allow_downgrade_to_insecure=False)
    return "repo", name, fields


def apt_repository(p):
    text = str(p.raw("repo", default=""))
    if ONE.match(text):
        text = str(p.names.resolve(text) or text)
    name = p.raw("filename")
    state = p.raw("state")
    found = re.match(r"^(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+|\{\{.*?\}\})\s+(\S+|\{\{.*?\}\})\s*(.*)$", text)
    if not found:
        raise NeedsExec("a repository whose line is an expression")
    kind, options, uri, suite, components = found.groups()
    fields = {"types": [kind], "uris": [p.names.text(uri, "https://example.org")], "suites": [p.names.text(suite)]}
    fields["components"] = [p.names.text(word) for word in components.split()] or None
    for option in (options or "").split():
        key, _, value = option.partition("=")
        field = {"signed-by": "signed_by", "arch": "architectures", "trusted": "trusted"}.get(key)
        if field is None:
            raise NeedsExec(f"option {key} of a repository")
        fields[field] = (
            [p.names.text(value)] if key == "arch" else True if key == "trusted" else p.names.text(value, "/x.gpg")
        )
    if state == "absent":
        fields = {"state": "absent"}
    p.drop(
        update_cache=None,
        mode="0644",
        install_python_apt=None,
        update_cache_retries=None,
        validate_certs=None,
        codename=None,
    )
    return "repo", p.names.text(name) if name else "imported", fields


def debconf(p):
    question, kind, value = p.raw("question", "setting", "selection"), p.raw("vtype"), p.raw("value", "answer")
    if question is None or kind is None or value is None:
        raise NeedsExec("debconf without a question")
    return "pkg", p.take("name", "pkg"), {"debconf": {p.names.text(question): f"{kind} {p.names.text(value)}"}}


def package(p):
    names = p.raw("name", "pkg", "package", "deb")
    state = p.raw("state", default="present")
    states = {
        "present": "installed",
        "installed": "installed",
        "latest": "newest",
        "absent": "absent",
        "removed": "absent",
    }
    if state not in states and "{{" not in str(state):
        raise NeedsExec(f"state {state} of apt")
    fields = {"state": states.get(state) or p.names.text(state, "installed")}
    if "purge" in p.given:
        fields["purge"] = p.flag("purge")
        if fields["state"] != "absent":
            fields.pop("purge")
    if p.raw("install_recommends") in (False, "no", "false"):
        fields["recommends"] = False
    age = p.raw("cache_valid_time")
    if p.raw("update_cache") not in (None, False, "no", "false"):
        fields["cache_age"] = p.names.text(age, 3600) if age is not None else 3600
    options = p.raw("dpkg_options")
    if options is not None:
        words = set(re.findall(r"force-(\w+)", str(options)))
        if not words <= {"confold", "confdef"} and not words <= {"confnew", "confdef"}:
            raise NeedsExec("dpkg_options of apt")
        fields["conffiles"] = "replace" if "confnew" in words else "keep"
    p.drop(
        use="auto",
        force_apt_get=None,
        install_recommends=True,
        lock_timeout=None,
        allow_downgrade=False,
        update_cache_retries=None,
    )
    if p.raw("default_release", default="") not in ("", None):
        raise NeedsExec("default_release of apt")
    if names is None:
        for key in ("upgrade", "autoremove", "autoclean", "clean"):
            if key in p.given:
                raise NeedsExec(f"{key} of apt")
        if "cache_age" in fields:
            return "skip", "lists are read before a package is installed", {}
        raise NeedsExec("apt without a package")
    p.drop(autoremove=False)
    if names == "*":
        raise NeedsExec("upgrade of all packages")
    if isinstance(names, list) and len(names) == 1:
        names = names[0]
    if isinstance(names, list):
        return "pkg", [p.names.text(item) for item in names], fields
    one = ONE.match(str(names))
    if one and re.fullmatch(r"\w+(\s*\|\s*list)?", one[1]) and isinstance(p.names.resolve(names), list) and not p.loop:
        p.loop = ("loop", names)
        names = "{{ item }}"
        p.names.item = "item"
    return "pkg", p.names.text(names), fields


def divert(p):
    path = p.take("path", "name", fallback=PATH)
    if p.flag("force") not in (None, False):
        raise NeedsExec("a diversion of another package")
    fields = {"to": p.take("divert", "dest", fallback="/etc/other.dpkg-divert"), "package": p.take("package")}
    if fields["to"] is None:
        fields["to"] = f"{path}.dpkg-divert" if fields["package"] is None else f"{path}.distrib"
    take_state(p, fields)
    fields["discard"] = p.flag("delete")
    if p.raw("rename") in (False, "no", "false"):
        fields["rename"] = False
    return "divert", path, fields
