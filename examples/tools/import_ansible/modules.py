"""The table of modules: the kind of steadfast for each module of Ansible, and the field for each parameter.

A function takes the parameters of a task, uses every one of them, and returns kind, name and fields. It raises `NeedsExec` where
only a command can do the work, and `Impossible` where steadfast has nothing to do on this host.
"""

import re

CONTROL = set(
    "include_tasks import_tasks import_role include_role include include_vars set_fact meta debug assert fail setup stat "
    "package_facts service_facts getent find slurp wait_for wait_for_connection pause add_host group_by mysql_info "
    "validate_argument_spec import_playbook gather_facts set_stats".split()
)
OTHER_SYSTEMS = set(
    "yum dnf yum_repository rpm_key pacman openbsd_pkg pkgng zypper zypper_repository apk homebrew portage selinux seboolean "
    "seport sefcontext firewalld win_shell win_command redhat_subscription rhsm_repository dnf5 sysrc".split()
)


# The value of a variable that is a path.
PATH = "/etc/text"


class NeedsExec(Exception):
    """The task needs a command."""


class Impossible(Exception):
    """The task has no counterpart."""


class Parameters:
    """The parameters of a task; each must be used."""

    def __init__(self, task, names):
        self.given = dict(task.parameters)
        self.names = names

    def raw(self, *keys, default=None):
        """Takes a parameter as it stands."""
        for key in keys:
            if key in self.given:
                return self.given.pop(key)
        return default

    def take(self, *keys, fallback="text"):
        """Takes a parameter as a value of a field."""
        return self.names.text(self.raw(*keys), fallback)

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
            if key in self.given and (value is None or self.given[key] == value or str(self.given[key]).lower() == str(value).lower()):
                del self.given[key]


def mode_of(value):
    """Writes a mode as a string: YAML reads 0644 as a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:04o}" if value > 7 else f"{value:04d}"
    if isinstance(value, str) and re.fullmatch(r"[0-7]{3}", value):
        return "0" + value
    return value


def owned(p, fields):
    """Takes owner, group and mode."""
    fields |= {"owner": p.take("owner"), "group": p.take("group"), "mode": mode_of(p.take("mode", fallback="0644"))}
    p.drop(follow=None, unsafe_writes=None, modification_time="preserve", access_time="preserve")
    return fields


def with_validation(p, fields):
    """Takes `validate` and `backup`."""
    fields["validate"] = p.take("validate")
    if p.raw("backup") not in (None, False, "no", "false"):
        fields["backup"] = "/var/backups/steadfast"
    return fields


def file(p):
    path = p.take("path", "dest", "name", fallback=PATH)
    state = p.raw("state", default="file")
    fields = owned(p, {"path": path})
    if state == "directory":
        fields["path"] = f"{path}/".replace("//", "/")
        if p.flag("recurse"):
            fields["recurse"] = True
    elif state == "link":
        fields["symlink"] = p.take("src")
        fields["force"] = p.flag("force")
    elif state == "absent":
        fields |= {"state": "absent", "force": True}
    elif state in ("file", "touch"):
        fields["state"] = "exists" if state == "touch" else "undefined"
    elif state == "hard":
        fields["hardlink"] = p.take("src")
    else:
        fields["state"] = p.names.text(state, "exists")
        p.drop(src=None)
    p.drop(force=None, recurse=None)
    return "file", path, fields


def copy(p):
    dest = p.take("dest", fallback=PATH)
    fields = with_validation(p, owned(p, {"path": dest}))
    if "content" in p.given:
        fields["content"] = p.take("content")
    else:
        fields["source"] = p.take("src")
    p.drop(remote_src=None, directory_mode=None, decrypt=None)
    if p.raw("force") in (False, "no", "false"):
        fields["replace"] = False
    p.drop(force=None)
    return "file", dest, fields


def template(p):
    dest = p.take("dest", fallback=PATH)
    fields = with_validation(p, owned(p, {"path": dest, "template": p.take("src")}))
    if p.raw("force") in (False, "no", "false"):
        fields["replace"] = False
    p.drop(force=None, newline_sequence="\n", output_encoding="utf-8", lstrip_blocks=None, trim_blocks=None)
    return "file", dest, fields


def assemble(p):
    dest = p.take("dest", fallback=PATH)
    fields = with_validation(p, owned(p, {"path": dest, "fragments": [p.take("src")]}))
    p.drop(remote_src=True, delimiter=None)
    return "file", dest, fields


def line(p):
    path = p.take("path", "dest", "name", "destfile", fallback=PATH)
    fields = {"path": path, "match": p.take("regexp", "regex"), "line": p.take("line", "value")}
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state="present")
    for key in ("insertafter", "insertbefore"):
        fields[f"insert_{key[6:]}"] = p.take(key)
    fields["create"] = p.flag("create")
    if p.raw("backrefs") in (True, "yes", "true"):
        raise NeedsExec("backrefs of lineinfile")
    with_validation(p, fields).pop("backup", None)
    p.drop(backrefs=None, firstmatch=None)
    attributes = owned(p, {})
    return "line", f"{path}: {fields['line'] or fields['match']}", fields, attributes


def block(p):
    path = p.take("path", "dest", "name", fallback=PATH)
    fields = {"path": path, "content": p.take("block", "content"), "marker": p.take("marker"), "create": p.flag("create")}
    for key in ("insertafter", "insertbefore"):
        fields[f"insert_{key[6:]}"] = p.take(key)
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state="present")
    with_validation(p, fields).pop("backup", None)
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


def package(p):
    names = p.raw("name", "pkg", "package", "deb")
    state = p.raw("state", default="present")
    states = {"present": "installed", "installed": "installed", "latest": "newest", "absent": "absent", "removed": "absent"}
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
    p.drop(use="auto", force_apt_get=None, install_recommends=None, lock_timeout=None, policy_rc_d=None, allow_downgrade=None)
    if p.raw("default_release", default="") not in ("", None):
        raise NeedsExec("default_release of apt")
    if names is None:
        for key in ("upgrade", "autoremove", "autoclean", "clean"):
            if key in p.given:
                raise NeedsExec(f"{key} of apt")
        if "cache_age" in fields:
            return "skip", "lists are read before a package is installed", {}
        raise NeedsExec("apt without a package")
    p.drop(autoremove=None)
    if isinstance(names, list) and len(names) == 1:
        names = names[0]
    if isinstance(names, list):
        return "pkg", [p.names.text(item) for item in names], fields
    return "pkg", p.names.text(names), fields


def service(p):
    name = p.take("name", "service", "unit")
    fields = {}
    state = p.raw("state")
    states = {"started": "running", "running": "running", "stopped": "stopped", "restarted": "running", "reloaded": "running"}
    if state:
        fields["state"] = states.get(state) or p.names.text(state, "running")
    if state == "restarted":
        fields["refresh"] = "restart"
    if state == "reloaded":
        fields["refresh"] = "reload"
    enabled = p.raw("enabled")
    if enabled is not None:
        text = str(enabled).lower()
        known = {"true": "enabled", "yes": "enabled", "false": "disabled", "no": "disabled"}
        fields["startup"] = known.get(text) or p.names.text(enabled, "enabled")
    if p.raw("masked") in (True, "yes", "true"):
        fields["startup"] = "masked"
    if p.raw("scope", default="system") == "user":
        fields["session"] = True
    reload = p.raw("daemon_reload")
    if name is None:
        if reload:
            return "skip", "units are read again before an action on a unit", {}
        raise NeedsExec("systemd without a unit")
    p.drop(use=None, masked=None, daemon_reexec=None, no_block=None, pattern=None, sleep=None, force=None)
    return "svc", name, fields


def user(p):
    name = p.take("name", "user")
    fields = {
        "uid": p.take("uid", fallback=1000),
        "group": p.take("group"),
        "groups": p.listed("groups"),
        "append": p.flag("append"),
        "shell": p.take("shell", fallback="/bin/sh"),
        "homedir": p.take("home", fallback=PATH),
        "comment": p.take("comment"),
        "system": p.flag("system"),
        "password": p.take("password", fallback="*"),
        "lock": p.flag("password_lock"),
        "allowduplicateuid": p.flag("non_unique"),
    }
    home = p.flag("create_home", "createhome")
    if home is not None:
        fields["manage_home"] = home
    if p.raw("move_home"):
        fields["manage_home"] = True
    state = p.raw("state", default="present")
    if state == "absent":
        fields["state"] = "absent"
        if p.flag("remove"):
            fields |= {"manage_home": True, "remove_home": True}
    elif state != "present":
        fields["state"] = p.names.text(state, "exists")
    p.drop(remove=None, update_password="always", local=None, skeleton=None, force=None)
    if fields["append"] is not None and fields["groups"] is None:
        fields.pop("append")
    return "user", name, fields


def group(p):
    name = p.take("name")
    fields = {"gid": p.take("gid", fallback=1000), "system": p.flag("system")}
    state = p.raw("state", default="present")
    if state == "absent":
        fields["state"] = "absent"
    elif state != "present":
        fields["state"] = p.names.text(state, "exists")
    p.drop(local=None, non_unique=None, force=None)
    return "group", name, fields


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC example"


def authorized_key(p):
    login = p.take("user")
    fields = {"user": login, "key": p.take("key", fallback=KEY), "options": p.take("key_options"), "exclusive": p.flag("exclusive")}
    fields["comment"], fields["path"] = p.take("comment"), p.take("path")
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state=None, manage_dir=None, follow=None)
    return "ssh:authorized_key", f"key of {login}", fields


def cron(p):
    name = p.take("name", "cron_file")
    if p.raw("env"):
        raise NeedsExec("env of cron")
    fields = {"job": p.take("job"), "user": p.take("user"), "file": p.take("cron_file")}
    for key in ("minute", "hour", "day", "month", "weekday"):
        fields[key] = p.take(key, fallback="1")
    special = p.raw("special_time")
    if special:
        fields["special"] = f"@{special}" if "{{" not in special else p.names.text(special, "@daily")
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state=None, backup=None, disabled=False)
    return "cron", name, fields


def mount(p):
    states = {"mounted": "mounted", "unmounted": "unmounted", "present": "present", "absent": "absent", "remounted": "mounted"}
    path = p.take("path", "name", fallback=PATH)
    state = p.raw("state", default="mounted")
    fields = {"device": p.take("src"), "type": p.take("fstype"), "options": p.listed("opts"), "state": states.get(state) or p.names.text(state, "mounted")}
    fields |= {"freq": p.take("dump", fallback=0), "passno": p.take("passno", fallback=0)}
    p.drop(boot=None, backup=None, fstab="/etc/fstab")
    return "mount", path, fields


def sysctl(p):
    fields = {"value": p.take("value"), "path": p.take("sysctl_file"), "runtime": p.flag("sysctl_set")}
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state=None, reload=None, ignoreerrors=None)
    return "sysctl", p.take("name"), fields


def modprobe(p):
    fields = {"state": "absent" if p.raw("state") == "absent" else "loaded"}
    p.drop(persistent=None, params="")
    return "kmod", p.take("name"), fields


def timezone(p):
    return "timezone", p.take("name", fallback="UTC"), {}


def hostname(p):
    p.drop(use=None)
    return "hostname", p.take("name"), {}


def locale(p):
    fields = {"state": "absent"} if p.raw("state") == "absent" else {}
    p.drop(state=None)
    return "locale", p.take("name", fallback="en_GB.UTF-8"), fields


def git(p):
    dest = p.take("dest", fallback=PATH)
    fields = {"repo": p.take("repo"), "version": p.take("version"), "depth": p.take("depth", fallback=1), "force": p.flag("force")}
    fields["update"] = p.flag("update")
    p.drop(accept_hostkey=None, clone=True, bare=False, recursive=False, track_submodules=False, single_branch=None)
    return "git", dest, fields


CHECKSUM = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def get_url(p):
    dest = p.take("dest", fallback=PATH)
    fields = owned(p, {"url": p.take("url", fallback="https://example.org/x"), "checksum": p.take("checksum", "sha256sum", fallback=CHECKSUM)})
    fields["timeout"] = p.take("timeout", fallback=60)
    if isinstance(fields["timeout"], int):
        fields["timeout"] = f"{fields['timeout']}s"
    p.drop(force=None, validate_certs=True, tmp_dest=None)
    if not fields["checksum"]:
        raise NeedsExec("get_url without a checksum")
    return "fetch", dest, fields


def unarchive(p):
    dest = p.take("dest", fallback=PATH)
    fields = owned(p, {"creates": p.take("creates")})
    source = p.raw("src", default="")
    remote = p.raw("remote_src")
    if "://" in str(source):
        raise NeedsExec("unarchive of a URL without a checksum")
    if not remote:
        raise NeedsExec("unarchive of a file of the control host")
    fields["source"] = p.names.text(source, "/var/cache/x.tar.gz")
    extra = p.raw("extra_opts") or []
    for option in extra if isinstance(extra, list) else [extra]:
        found = re.fullmatch(r"--strip-components[= ]?(\d+)", str(option))
        if not found:
            raise NeedsExec("extra_opts of unarchive")
        fields["strip"] = int(found[1])
    p.drop(keep_newer=None, list_files=None, exclude=[])
    return "archive", dest, fields


def deb822(p):
    name = p.take("name")
    fields = {"uris": p.listed("uris"), "suites": p.listed("suites"), "components": p.listed("components"), "types": p.listed("types")}
    fields |= {"architectures": p.listed("architectures"), "signed_by": p.take("signed_by", fallback="/usr/share/keyrings/x.gpg")}
    if p.raw("state") == "absent":
        fields["state"] = "absent"
    p.drop(state=None, mode=None, enabled=True, install_python_debian=None)
    return "repo", name, fields


def apt_repository(p):
    text = str(p.raw("repo", default=""))
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
        fields[field] = [p.names.text(value)] if key == "arch" else True if key == "trusted" else p.names.text(value, "/x.gpg")
    if state == "absent":
        fields = {"state": "absent"}
    p.drop(update_cache=None, mode=None, install_python_apt=None, update_cache_retries=None, validate_certs=None, codename=None)
    return "repo", p.names.text(name) if name else "imported", fields


def debconf(p):
    question, kind, value = p.raw("question", "setting", "selection"), p.raw("vtype"), p.raw("value", "answer")
    if question is None:
        raise NeedsExec("debconf without a question")
    return "pkg", p.take("name", "pkg"), {"debconf": {p.names.text(question): f"{kind} {p.names.text(value)}"}}


def pam_limits(p):
    words = [p.take("domain"), p.take("limit_type"), p.take("limit_item"), p.take("value")]
    path = p.take("dest") or "/etc/security/limits.conf"
    p.drop(comment=None, use_max=None, use_min=None, backup=None)
    return "line", f"{path}: {words[0]} {words[2]}", {"path": path, "line": " ".join(str(word) for word in words)}


def known_hosts(p):
    path = p.take("path") or "/etc/ssh/ssh_known_hosts"
    name = p.take("name")
    p.drop(hash_host=False, state="present")
    return "line", f"{path}: {name}", {"path": path, "line": p.take("key"), "create": True}


def apache_module(p):
    name = p.take("name")
    absent = p.raw("state") == "absent"
    p.drop(state=None, ignore_configcheck=None, force=None)
    fields = {"path": f"/etc/apache2/mods-enabled/{name}.load", "symlink": f"../mods-available/{name}.load"}
    return "file", f"module {name}", {"path": fields["path"], "state": "absent"} if absent else fields


def acl(p):
    path = p.take("path", "name", fallback=PATH)
    if "entry" in p.given:
        entry = p.take("entry")
    else:
        kinds = {"user": "user", "group": "group", "mask": "mask", "other": "other"}
        entry = f"{kinds.get(p.raw('etype'), 'user')}:{p.take('entity') or ''}:{p.take('permissions') or ''}"
    prefix = "default:" if p.raw("default") in (True, "yes") else ""
    p.drop(state="present", follow=None, default=None, recalculate_mask=None)
    return "file", path, {"path": path, "state": "undefined", "acl": [prefix + str(entry)]}


MODULES = {
    "file": file,
    "copy": copy,
    "template": template,
    "assemble": assemble,
    "lineinfile": line,
    "blockinfile": block,
    "ini_file": ini,
    "package": package,
    "apt": package,
    "service": service,
    "systemd": service,
    "systemd_service": service,
    "user": user,
    "group": group,
    "authorized_key": authorized_key,
    "cron": cron,
    "mount": mount,
    "sysctl": sysctl,
    "modprobe": modprobe,
    "timezone": timezone,
    "hostname": hostname,
    "locale_gen": locale,
    "git": git,
    "get_url": get_url,
    "unarchive": unarchive,
    "deb822_repository": deb822,
    "apt_repository": apt_repository,
    "debconf": debconf,
    "pam_limits": pam_limits,
    "known_hosts": known_hosts,
    "apache2_module": apache_module,
    "acl": acl,
}

COMMANDS = ("command", "shell", "raw", "script", "expect")
