"""Commands: the ones that only ask, the ones that a kind does exactly, and the ones with a guard."""

import re
import shlex

from expressions import LOCALE, MODE, PATH
from parameters import NeedsExec, mode_of

COMMANDS = ("command", "shell", "raw", "script", "expect")
FALSE = (False, "false", "no", "False")

# Programs that only read, with the words that must follow, where the program can also write.
READERS = {
    "[": r"",
    "apache2ctl": r"configtest",
    "awk": r"(?!.*[>|])",
    "cat": r"",
    "cut": r"",
    "dpkg-query": r"",
    "find": r"(?!.*(-delete|-exec|-fprint|-ok))",
    "getent": r"",
    "git": r"(rev-parse|describe|status|log|ls-remote)",
    "grep": r"",
    "head": r"",
    "id": r"",
    "ls": r"",
    "nginx": r"-t",
    "readlink": r"",
    "sed": r"-n ",
    "sort": r"(?!.*-o)",
    "sshd": r"-[tT]",
    "stat": r"",
    "sysctl": r"(--help|-n|-a)",
    "systemctl": r"(is-|list-|show|status|cat|get-default)",
    "tail": r"",
    "test": r"",
    "true": r"",
    "uname": r"",
    "visudo": r"-c",
    "wc": r"",
}


def words_of(task):
    """Returns the command line of a task."""
    parameters = task.parameters
    line = parameters.get("_raw") or parameters.get("cmd") or parameters.get("argv") or ""
    line = " ".join(str(word) for word in line) if isinstance(line, list) else str(line)
    line = re.sub(r"^\s*set( -o \w+)+\s*(&&|;|\n)", "", line)
    return " ".join(line.split())


def is_query(task):
    """Tells whether a task only asks."""
    if task.module == "uri":
        return str(task.parameters.get("method", "GET")).upper() in ("GET", "HEAD") and "dest" not in task.parameters
    if task.module not in COMMANDS:
        return False
    if task.keywords.get("changed_when") in FALSE:
        return True
    return reads_only(words_of(task))


def reads_only(line):
    """Tells whether every program of a command line only reads."""
    if not line or re.search(r"[;`&]|\$\(|\{%", line.replace("2>&1", "").replace("&&", "|").replace("2>/dev/null", "")):
        return False
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "x", line.replace("2>/dev/null", "").replace("2>&1", ""))
    if ">" in bare:
        return False
    for part in re.split(
        r"\|\|?|&&", re.sub(r"'[^']*'|\"[^\"]*\"", lambda it: it[0].replace("|", " ").replace("&", " "), line)
    ):
        program, _, rest = part.strip().partition(" ")
        pattern = READERS.get(program.rsplit("/", 1)[-1])
        if pattern is None or not re.match(pattern, rest):
            return False
    return True


def has_guard(task, registered):
    """Tells whether a task runs only if a path or the result of an earlier task asks for it."""
    if {"creates", "removes"} & set(task.parameters):
        return True
    text = " ".join(str(condition) for condition in task.conditions)
    return any(word in registered for word in re.findall(r"\w+", text))


def one(pattern, line):
    """Matches a whole command line whose words are `\\w` or one expression in braces."""
    word = r"(?:[\"']?((?:\{\{[^{}]*\}\}|[^\s\"'|;&<>*?$`{}])+)[\"']?)"
    return re.fullmatch(pattern.replace("WORD", word), line)


def command(p):
    """Maps a command that a kind does exactly."""
    line = words_of(p.task)
    names = p.names
    allowed = {"_raw", "cmd", "executable", "chdir"}

    def takes(*guards):
        extra = set(p.given) - allowed - set(guards)
        if extra:
            raise NeedsExec("a command")
        p.given.clear()

    found = one("systemctl daemon-reload", line)
    if found:
        takes()
        return "skip", "units are read again before an action on a unit", {}
    found = one(
        r"(?:systemctl (start|restart|reload|stop|enable|disable|mask) WORD|service WORD (start|restart|reload|stop))",
        line,
    )
    if found:
        takes()
        verb, unit = found[1] or found[4], found[2] or found[3]
        fields = {
            "start": {"state": "running"}, "stop": {"state": "stopped"},
            "restart": {"state": "running", "refresh": "restart"},
            "reload": {"state": "running", "refresh": "reload"}, "enable": {"startup": "enabled"},
            "disable": {"startup": "disabled"}, "mask": {"startup": "masked"},
        }[verb]  # fmt: skip
        return "svc", names.text(unit), fields
    found = one("modprobe WORD", line)
    if found:
        takes()
        return "kmod", names.text(found[1]), {"persist": False}
    found = one(r"sysctl (?:-q )?-w WORD", line)
    if found and found[1].count("=") == 1:
        takes()
        key, _, value = found[1].partition("=")
        return "sysctl", names.text(key), {"value": names.text(value), "persist": False}
    found = one("touch WORD", line)
    if found and p.given.get("creates") == found[1]:
        takes("creates")
        return "file", names.text(found[1], PATH), {"path": names.text(found[1], PATH)}
    found = one("mkdir -p WORD", line)
    if found:
        takes("creates")
        path = names.text(found[1], PATH).rstrip("/") + "/"
        return "file", path, {"path": path}
    found = one(r"chmod ([0-7]{3,4}) WORD", line)
    if found:
        takes()
        path = names.text(found[2], PATH)
        return "file", f"mode of {path}", {"path": path, "state": "undefined", "mode": mode_of(found[1])}
    found = one("ln -sf? WORD WORD", line)
    if found:
        takes("creates")
        path = names.text(found[2], PATH)
        return "file", path, {"path": path, "symlink": names.text(found[1])}
    found = one("apt-mark (hold|unhold) WORD", line)
    if found:
        takes()
        return "pkg", names.text(found[2]), {"hold": found[1] == "hold"}
    found = one("update-locale LANG=WORD", line)
    if found:
        takes()
        return "locale", names.text(found[1], LOCALE), {"default": True}
    found = one("useradd -D -f WORD", line)
    if found:
        takes()
        path = "/etc/default/useradd"
        return (
            "ini",
            f"{path}: INACTIVE",
            {"path": path, "key": "INACTIVE", "value": names.text(found[1]), "separator": "="},
        )
    found = one(r"install (.*?) ?WORD WORD", line)
    if found and p.given.get("creates") == found[3]:
        options = shlex.split(found[1])
        given = dict(zip(options[::2], options[1::2], strict=False))
        if set(given) <= {"-o", "-g", "-m"} and len(options) % 2 == 0:
            takes("creates")
            path = names.text(found[3], PATH)
            fields = {"path": path, "source": names.text(found[2], "/etc/source"), "replace": False}
            fields |= {"owner": names.text(given.get("-o")), "group": names.text(given.get("-g"))}
            return "file", path, fields | {"mode": names.text(mode_of(given.get("-m")), MODE)}
    raise NeedsExec("a command")
