"""Translates Jinja of Ansible into expressions of steadfast.

A simple expression keeps its meaning. Any other one becomes a variable that a person fills in: the report counts them.
"""

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
ONE = re.compile(r"^\s*\{\{\s*(.*?)\s*\}\}\s*$", re.S)
ANY = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.S)
SIMPLE = re.compile(rf"^{NAME}(\.{NAME}|\['{NAME}'\])*$")


# Values that stand for a state: the words of Ansible differ, so a variable takes the word of steadfast.
STATES = ("installed", "running", "exists", "enabled", "mounted")


class Names:
    """The variables that the tasks of one graph use, with a value of the right type for each."""

    def __init__(self, variables):
        self.variables = variables
        self.used = {}
        self.hoisted = {}

    def sample(self, value, fallback="text"):
        """Returns a plain value of the type of a variable of the role."""
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            is_path = isinstance(fallback, str) and fallback.startswith("/")
            return fallback if "{{" in value or (is_path and not value.startswith("/")) else value or fallback
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return [self.sample(item) for item in value]
        return fallback

    def variable(self, name, fallback="text"):
        """Declares a variable and returns its name in an expression."""
        value = fallback if fallback in STATES else self.sample(self.variables.get(name), fallback)
        if isinstance(fallback, bool):
            text = str(value).lower()
            value = value if isinstance(value, bool) else text in ("yes", "true", "on", "1")
        elif isinstance(fallback, str) and isinstance(value, list):
            value = fallback
        previous = self.used.get(name)
        if previous is not None and type(previous) is not type(value):
            name = f"{name}_{type(value).__name__}"
        self.used.setdefault(name, value)
        return f"vars.{name}"

    def hoist(self, source, fallback):
        """Declares a variable for an expression that a person must write."""
        source = f"{type(fallback).__name__}:{source}"
        name = self.hoisted.setdefault(source, f"by_hand_{len(self.hoisted) + 1}")
        self.used.setdefault(name, fallback)
        return f"vars.{name}"

    def fact(self, expression):
        """Returns the fact that a name of Ansible stands for."""
        flat = re.sub(r"ansible_facts\[['\"](\w+)['\"]\]|ansible_facts\.(\w+)", lambda m: "ansible_" + (m[1] or m[2]), expression)
        flat = re.sub(r"hostvars\[inventory_hostname\]\.", "", flat)
        return FACTS.get(flat)

    def expression(self, source, fallback="text"):
        """Translates the inner text of one pair of braces into an expression of the wanted type."""
        source = source.strip()
        fact = self.fact(source)
        if fact and isinstance(fallback, str):
            return fact
        if source == "item":
            return "item" if isinstance(fallback, str) else self.hoist(source, fallback)
        found = re.match(rf"^item\.({NAME})$", source) or re.match(rf"^item\[['\"]({NAME})['\"]\]$", source)
        if found and isinstance(fallback, str):
            return f"item.value.{found[1]}"
        bare = re.sub(rf"^({NAME})\s*\|\s*(bool|default\([^()]*\)|d\([^()]*\)|trim|string|int)$", r"\1", source)
        if re.fullmatch(NAME, bare):
            return self.variable(bare, fallback)
        return self.hoist(source, fallback)

    def text(self, value, fallback="text"):
        """Translates a value of a parameter into a value of a field."""
        if isinstance(value, bool | int | float) or value is None:
            return value
        if isinstance(value, list):
            return [self.text(item) for item in value]
        if isinstance(value, dict):
            return {str(key): self.text(item) for key, item in value.items()}
        one = ONE.match(value)
        if one and "{{" not in one[1]:
            return "${" + self.expression(one[1], fallback) + "}"
        if "{%" in value:
            return "${" + self.hoist(value, fallback) + "}"
        escaped = value.replace("${", "$${")
        # The first expression of a path has the root of the path.
        first = fallback if str(fallback).startswith("/") and value.startswith("{{") else "text"
        return ANY.sub(lambda found: "${" + self.expression(found[1], first if found.start() == 0 else "text") + "}", escaped)

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
            name = fact or (self.variable(compared[1]) if re.fullmatch(NAME, compared[1]) else None)
            if name:
                wanted = compared[4].lower() if fact in ("facts.os.family", "facts.os.id") else compared[4]
                return f'{name} {compared[2]} "{wanted}"'
        plain = re.sub(r"\s*\|\s*bool$", "", clause)
        if re.fullmatch(NAME, plain) and not self.fact(plain):
            return self.variable(plain, False)
        return self.hoist(clause, True)
