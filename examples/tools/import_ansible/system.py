"""Modules of Ansible for units, accounts, jobs, mounts and the kernel."""

import re

from expressions import DAILY, KEY, LOCALE, PARAMETER, PATH
from parameters import NeedsExec, take_state


def service(p):
    name = p.take("name", "service", "unit")
    fields = {}
    state = p.raw("state")
    states = {
        "started": "running",
        "running": "running",
        "stopped": "stopped",
        "restarted": "running",
        "reloaded": "running",
    }
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
        if p.become:
            raise NeedsExec("a unit of another user")
        fields["session"] = True
    reload = p.raw("daemon_reload")
    if name is None:
        if reload:
            return "skip", "units are read again before an action on a unit", {}
        raise NeedsExec("systemd without a unit")
    p.drop(
        use=None, masked=False, daemon_reexec=False, arguments="", no_block=None, pattern=None, sleep=None, force=False
    )
    return "svc", name, fields


def user(p):
    name = p.take("name", "user")
    fields = {
        "uid": p.number("uid"),
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
    expires = p.raw("expires")
    if expires is not None:
        fields["expiry"] = "never" if str(expires).startswith("-") else p.names.hoist_text(str(expires), "2030-12-31")
    p.drop(remove=False, update_password="always", local=None, skeleton="/etc/skel", force=False)
    if fields["append"] is not None and fields["groups"] is None:
        fields.pop("append")
    return "user", name, fields


def group(p):
    name = p.take("name")
    fields = {"gid": p.number("gid"), "system": p.flag("system")}
    state = p.raw("state", default="present")
    if state == "absent":
        fields["state"] = "absent"
    elif state != "present":
        fields["state"] = p.names.text(state, "exists")
    p.drop(local=None, non_unique=False, force=False)
    return "group", name, fields


def authorized_key(p):
    login = p.take("user")
    fields = {
        "user": login,
        "key": p.take("key", fallback=KEY),
        "options": p.take("key_options"),
        "exclusive": p.flag("exclusive"),
    }
    fields["comment"], fields["path"] = p.take("comment"), p.take("path", fallback=PATH)
    take_state(p, fields)
    p.drop(manage_dir=None, follow=None)
    return "ssh:authorized_key", f"key of {login}", fields


def cron(p):
    if p.raw("env") not in (None, False, "no", "false"):
        raise NeedsExec("env of cron")
    name = p.raw("name")
    if isinstance(name, str) and "{{" not in name:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    name = p.names.text(name) if name is not None else p.take("cron_file")
    fields = {"job": p.take("job"), "user": p.take("user"), "file": p.take("cron_file")}
    for key in ("minute", "hour", "day", "month", "weekday"):
        fields[key] = p.take(key, fallback="1")
    special = p.raw("special_time")
    if special:
        fields["special"] = "@" + p.names.text(special, DAILY)
    take_state(p, fields)
    p.drop(backup=None, disabled=False)
    return "cron", name, fields


def mount(p):
    states = {
        "mounted": "mounted",
        "unmounted": "unmounted",
        "present": "present",
        "absent": "absent",
        "remounted": "mounted",
    }
    path = p.take("path", "name", fallback=PATH)
    state = p.raw("state", default="mounted")
    if p.given.get("fstype") == "swap":
        raise NeedsExec("a row of swap in fstab")
    if state == "remounted":
        p.drop(src=None, fstype=None, opts=None)
        return "skip", "a mount with other options is mounted again by its own resource", {}
    if state == "absent":
        p.drop(src=None, fstype=None, opts=None, boot=True, dump=None, passno=None, backup=None, fstab="/etc/fstab")
        return "mount", path, {"state": "absent"}
    fields = {
        "device": p.take("src", fallback="/dev/vdb1"),
        "type": p.take("fstype", fallback="ext4"),
        "options": p.listed("opts"),
        "state": states.get(state) or p.names.text(state, "mounted"),
    }
    fields |= {"freq": p.take("dump", fallback=0), "passno": p.take("passno", fallback=0)}
    p.drop(boot=True, backup=None, fstab="/etc/fstab")
    return "mount", path, fields


def sysctl(p):
    fields = {"value": p.take("value"), "path": p.take("sysctl_file", fallback="/etc/sysctl.d/60-text.conf")}
    # Ansible reads the file again, unless it must not.
    runtime, reload = p.flag("sysctl_set"), p.flag("reload")
    fields["runtime"] = None if reload in (None, True) else bool(runtime) if reload is False else reload
    take_state(p, fields)
    p.drop(ignoreerrors=None)
    return "sysctl", p.take("name", "key", fallback=PARAMETER), fields


def modprobe(p):
    state = p.raw("state", default="present")
    fields = {"state": {"present": "loaded", "absent": "absent"}.get(state) or p.names.text(state, "loaded")}
    # Ansible writes no file unless it is asked to.
    persistent = p.raw("persistent", default="disabled")
    if fields["state"] != "absent":
        fields["persist"] = {"present": True, "disabled": False, "absent": False}.get(persistent)
    params = p.raw("params", default="")
    if params:
        fields["options"] = (
            [p.names.text(word) for word in params.split()] if "{{" not in params else [p.names.text(params)]
        )
    return "kmod", p.take("name"), fields


def timezone(p):
    return "timezone", p.take("name", fallback="UTC"), {}


def hostname(p):
    p.drop(use=None)
    return "hostname", p.take("name"), {}


def locale(p):
    fields = {}
    take_state(p, fields)
    return "locale", p.take("name", fallback=LOCALE), fields
