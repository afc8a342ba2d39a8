"""Translates Jinja of Ansible into expressions of steadfast.

A simple expression keeps its meaning. Any other one becomes a variable that a person fills in: the report counts them.
"""

import ast
import re

FACTS = {
    "ansible_os_family": "facts.os.family",
    "ansible_distribution": "facts.os.id",
    "ansible_distribution_release": "facts.os.codename",
    "ansible_distribution_version": "facts.os.version",
    "ansible_architecture": "facts.architecture",
    "ansible_hostname": "facts.hostname",
    "ansible_fqdn": "facts.fqdn",
    "ansible_kernel": "facts.kernel.release",
    "ansible_processor_vcpus": "facts.cpu.count",
    "ansible_processor_cores": "facts.cpu.count",
    "ansible_memtotal_mb": "facts.memory.total_mb",
}
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
ONE = re.compile(r"^\s*\{\{-?\s*(.*?)\s*-?\}\}\s*$", re.S)
ANY = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.S)
LITERAL = r"'[^'{}]*'|\"[^\"{}]*\"|\d+|[Tt]rue|[Ff]alse"
DEFAULT = re.compile(rf"^(.*?)\s*\|\s*(?:default|d)\(\s*({LITERAL})\s*(?:,\s*[Tt]rue\s*)?\)$")
# Filters that leave the value as it is for a field of the right type.
PLAIN_FILTERS = re.compile(r"\s*\|\s*(bool|trim|string|int|quote|default\(omit\)|d\(omit\)|default\(\)|d\(\))$")

# Values that stand for a state: the words of Ansible differ, so a variable takes the word of steadfast.
STATES = {
    "installed": ("installed", "newest", "absent"),
    "running": ("running", "stopped"),
    "exists": ("exists", "absent"),
    "enabled": ("enabled", "disabled"),
    "mounted": ("mounted",),
}
STATE_WORDS = {
    "present": "installed",
    "installed": "installed",
    "latest": "newest",
    "absent": "absent",
    "started": "running",
    "restarted": "running",
    "reloaded": "running",
    "stopped": "stopped",
    "true": "enabled",
    "yes": "enabled",
    "false": "disabled",
    "no": "disabled",
}

# Sample values by the type of a field, each with the form that a value of the role must have to be the sample instead.
PATH = "/etc/text"
MODE = "0644"
URL = "https://example.org/text.tar.gz"
CHECKSUM = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC example"
COMMAND = "/bin/true %s"
DAILY = "daily"
LOCALE = "en_GB.UTF-8"
PARAMETER = "net.ipv4.ip_forward"
FORMS = {
    MODE: r"0?[0-7]{3,4}|[ugoa]*[=+-][rwxXst]+(,[ugoa]*[=+-][rwxXst]+)*",
    URL: r"(https?|file)://\S+",
    CHECKSUM: r"sha256:[0-9a-f]{64}",
    KEY: r"(ssh|ecdsa|sk)-\S+ \S+.*",
    COMMAND: r".*%s.*",
    DAILY: r"reboot|yearly|annually|monthly|weekly|daily|midnight|hourly",
    PARAMETER: r"[a-z]\w*([./][\w*-]+)+",
}


def literal(text):
    """Reads a literal of Jinja."""
    return ast.literal_eval(text.capitalize() if text.lower() in ("true", "false") else text)


def fits(value, fallback):
    """Tells whether a text has the form of a sample value."""
    if fallback in FORMS:
        return re.fullmatch(FORMS[fallback], value) is not None
    if fallback.startswith("/"):
        return value.startswith("/") and ".." not in value and "\n" not in value
    return value != ""


class Names:
    """The variables that the tasks of one graph use, with a value of the right type for each."""

    def __init__(self, variables, number=1, known=None):
        self.variables = variables
        self.number = number
        # The variables of the tasks before.
        self.known = known if known is not None else {}
        self.used = {}
        self.hoisted = {}
        # The name in Ansible of each variable.
        self.origins, self.defaulted = {}, set()
        self.omits_in_items = False
        self.unresolved_items = False
        self.become = ""
        # The loop around the present task: the fields of its items with samples and defaults, and the item itself.
        self.item = "item"
        self.item_fields = {}
        self.item_itself = None

    def own(self, word):
        """Returns the name of a variable that belongs to this task alone."""
        return f"{word}_{self.number}"

    def resolve(self, value, depth=0):
        """Replaces names of plain variables in a value; returns none for anything else."""
        if isinstance(value, dict) or value is None or depth > 8:
            return None
        if isinstance(value, list):
            found = [self.resolve(one, depth + 1) for one in value]
            return None if None in found else found
        if not isinstance(value, str) or "{{" not in value:
            return None if isinstance(value, str) and "{%" in value else value
        one = ONE.match(value)
        if one and "{{" not in one[1]:
            return self.resolve(self.variables.get(re.sub(r"\s*\|\s*list$", "", one[1]).strip()), depth + 1)
        parts = []
        for index, part in enumerate(ANY.split(value)):
            found = self.resolve(self.variables.get(part), depth + 1) if index % 2 else part
            if found is None or isinstance(found, list):
                return None
            parts.append(str(found))
        return "".join(parts)

    def sample(self, value, fallback="text"):
        """Returns a value of the type of a field: the value of the role if it is plain and has the form."""
        value = self.resolve(value)
        if value is None:
            return fallback
        if isinstance(fallback, bool):
            text = str(value).lower()
            return (
                text in ("yes", "true", "on", "1")
                if text in ("yes", "true", "on", "1", "no", "false", "off", "0")
                else fallback
            )
        if isinstance(fallback, int):
            return int(value) if re.fullmatch(r"\d+", str(value)) else fallback
        if isinstance(fallback, list):
            if isinstance(value, str):
                value = [word.strip() for word in value.split(",") if word.strip()]
            return [str(one) for one in value] if isinstance(value, list) else fallback
        if fallback in STATES:
            return (
                STATE_WORDS.get(str(value).lower(), fallback)
                if STATE_WORDS.get(str(value).lower()) in STATES[fallback]
                else fallback
            )
        if isinstance(value, list):
            return fallback
        if fallback == MODE and isinstance(value, int):
            value = f"{value:04o}"
        if fallback == MODE and re.fullmatch(r"[1-7][0-7]{2,3}", str(value)):
            value = f"0{value}"
        if isinstance(value, bool | int | float):
            return value if fallback == "text" else fallback
        return value if fits(value, fallback) else fallback

    def variable(self, name, fallback="text", default=None):
        """Declares a variable and returns its name in an expression."""
        value = self.sample(self.variables.get(name, default), fallback)
        wanted, number = name, 2
        while self.used.get(name, self.known.get(name, value)) != value:
            name, number = f"{wanted}_{number}", number + 1
        self.used.setdefault(name, value)
        self.origins[name] = wanted
        if default is not None:
            self.defaulted.add(wanted)
        return f"vars.{name}"

    def hoist(self, source, fallback):
        """Declares a variable, or a field of the items, for an expression that a person must write."""
        key = f"{type(fallback).__name__}:{fallback if isinstance(fallback, str) else ''}:{source}"
        name = self.hoisted.setdefault(key, f"by_hand_{self.number}_{len(self.hoisted) + 1}")
        if re.search(rf"\b{self.item}\b", source):
            return self.field(name, fallback)
        self.used.setdefault(name, fallback)
        return f"vars.{name}"

    def hoist_text(self, value, fallback):
        """Translates a value that a person must convert."""
        return "${" + self.hoist(value, fallback) + "}"

    def field(self, key, fallback, default=None):
        """Declares a field of the items of the loop."""
        known = self.item_fields.get(key)
        if known and known[0] != fallback:
            if fallback in ("text", known[0]):
                fallback = known[0]
            elif known[0] != "text":
                key = (
                    f"{key}_{type(fallback).__name__}"
                    if type(fallback) is not type(known[0])
                    else f"{key}_{len(self.item_fields)}"
                )
        self.item_fields[key] = (fallback, default if default is not None else (known or (None, None))[1])
        return f"item.value.{key}"

    def fact(self, expression):
        """Returns the fact that a name of Ansible stands for."""
        flat = re.sub(
            r"ansible_facts\[['\"](\w+)['\"]\]|ansible_facts\.(\w+)", lambda m: "ansible_" + (m[1] or m[2]), expression
        )
        flat = re.sub(r"hostvars\[inventory_hostname\]\.", "", flat)
        return FACTS.get(flat)

    def expression(self, source, fallback="text"):
        """Translates the inner text of one pair of braces into an expression of the wanted type."""
        source = source.strip()
        fact = self.fact(source)
        if fact and isinstance(fallback, str):
            return fact
        bare, default = source, None
        found = DEFAULT.match(bare)
        if found:
            bare, default = found[1], literal(found[2])
        while PLAIN_FILTERS.search(bare):
            bare = PLAIN_FILTERS.sub("", bare)
        if bare == self.item and isinstance(fallback, str):
            if self.item_itself in (None, "text"):
                self.item_itself = fallback
            if fallback in ("text", self.item_itself):
                return "item"
        item = re.escape(self.item)
        if bare == f"{self.item}.key" and isinstance(fallback, str):
            self.item_itself = self.item_itself or fallback
            return "item"
        number = r"(?:\.(?P<number>\d)|\[(?P<number2>\d)\])?"
        found = re.match(rf"^{item}{number}(?:\.value)?(?:\.(?P<name>{NAME})|\[['\"](?P<name2>{NAME})['\"]\])?$", bare)
        if found and bare != self.item:
            name = found["name"] or found["name2"] or "value"
            place = found["number"] or found["number2"]
            return self.field(f"of_{place}_{name}" if place else name, fallback, default)
        if re.fullmatch(NAME, bare):
            return self.variable(bare, fallback, default)
        return self.hoist(source, fallback)

    def text(self, value, fallback="text"):
        """Translates a value of a parameter into a value of a field."""
        if isinstance(value, bool | int | float) or value is None:
            return value
        if isinstance(value, list):
            return [self.text(item, "text" if isinstance(fallback, list | bool | int) else fallback) for item in value]
        if isinstance(value, dict):
            return {str(key): self.text(item) for key, item in value.items()}
        is_path = isinstance(fallback, str) and fallback.startswith("/") and fallback != COMMAND
        # Ansible expands the home directory of the user of the task.
        if is_path and value.startswith("~"):
            return "${" + self.hoist(f"{value} of {self.become}", fallback) + "}"
        one = ONE.match(value)
        if one and "{{" not in one[1]:
            omitted = re.fullmatch(rf"({NAME}(?:\.{NAME})?)\s*\|\s*(default|d)\(omit\)", one[1])
            if omitted and not omitted[1].startswith(self.item) and omitted[1] not in self.variables:
                return None
            self.omits_in_items = self.omits_in_items or bool(omitted and omitted[1].startswith(self.item))
            return "${" + self.expression(one[1], fallback) + "}"
        if "{%" in value or "{#" in value:
            return "${" + self.hoist(value, fallback) + "}"
        if "{{" not in value:
            return value.replace("${", "$${")
        if isinstance(fallback, str) and not is_path and fallback in FORMS and fallback not in (URL, CHECKSUM, COMMAND):
            return "${" + self.hoist(value, fallback) + "}"
        # The first expression of a path has the root of the path.
        first = PATH if fallback == COMMAND else fallback if is_path or fallback == URL else "text"
        first = first if value.startswith("{{") else "text"
        parts = []
        for index, part in enumerate(ANY.split(value)):
            if index % 2:
                parts.append("${" + self.expression(part, first if index == 1 else "text") + "}")
            else:
                parts.append(part.replace("${", "$${"))
        return "".join(parts)

    def condition(self, source):
        """Translates one condition of `when`."""
        if isinstance(source, bool):
            return source
        source = str(source).strip()
        if source in ("true", "True", "yes"):
            return True
        if source in ("false", "False", "no"):
            return False
        parts = re.split(r"\s+and\s+", source) if " or " not in source and "(" not in source else [source]
        return " and ".join(self._clause(part.strip()) for part in parts)

    def _clause(self, clause):
        negated = re.match(r"^not\s+(.*)$", clause, re.S)
        if negated:
            return "not " + self._clause(negated[1])
        compared = re.match(r"^(\S+)\s*(==|!=)\s*(['\"])(\w[\w .-]*)\3$", clause)
        if compared:
            fact = self.fact(compared[1])
            name = fact or (self.variable(compared[1], compared[4]) if re.fullmatch(NAME, compared[1]) else None)
            if name:
                wanted = compared[4].lower() if fact in ("facts.os.family", "facts.os.id") else compared[4]
                return f'{name} {compared[2]} "{wanted}"'
        plain = re.sub(r"\s*\|\s*bool$", "", clause)
        if re.fullmatch(NAME, plain) and not self.fact(plain) and plain != self.item:
            return self.variable(plain, False)
        return self.hoist(clause, True)
