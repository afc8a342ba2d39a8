"""Translates loops of Ansible into `for_each`: over a list of texts, or over a map of items with fields."""

import itertools
import re

from expressions import LOCALE, ONE, PARAMETER, PATH, STATES

# Kinds whose name is free, because a field names the object.
ITSELF = re.compile(r"(?<![.\w])item\b(?!\.)")
PATHS = ("file", "line", "block", "ini", "fetch", "archive", "git", "noop", "value", "ssh:authorized_key")


def variant(fallback, number):
    """Returns a sample value for one item: texts and paths differ from item to item."""
    if number == 1 or not isinstance(fallback, str) or fallback in STATES:
        return fallback
    if fallback in (PARAMETER, LOCALE):
        return f"net.ipv4.conf.text{number}.forwarding" if fallback == PARAMETER else "de_DE.UTF-8"
    return f"{fallback}{number}" if fallback == "text" or fallback.startswith(PATH) else fallback


def plain_items(kind, value, names):
    """Returns the items as the role writes them, or none where they are not plain."""
    if kind == "with_nested" and isinstance(value, list):
        lists = [plain_items("loop", one, names) for one in value]
        return None if None in lists else [list(one) for one in itertools.product(*lists)]
    if kind in ("with_subelements", "with_together", "with_sequence", "with_fileglob", "with_first_found"):
        return None
    if isinstance(value, str):
        one = ONE.match(value)
        inner = (
            re.sub(r"\s*\|\s*(list|dict2items|flatten|default\(\[\]\)|d\(\[\]\)|default\(\{\}\)|d\(\{\}\))", "", one[1])
            if one
            else ""
        )
        value = names.variables.get(inner.strip())
    if isinstance(value, dict):
        return [{"key": key} | (it if isinstance(it, dict) else {"value": it}) for key, it in value.items()] or None
    if not isinstance(value, list) or not value:
        return None
    items = []
    for one in value:
        if isinstance(one, str) and ONE.match(one):
            inner = names.resolve(one)
            if inner is None:
                return None
            items += inner if isinstance(inner, list) else [inner]
        else:
            items.append(one)
    return items or None


def value_of(item, key, names, fallback, default, number):
    """Returns the value of one field of an item, or a sample."""
    found = re.match(r"of_(\d)_(\w+)$", key)
    if found:
        place = int(found[1])
        item = item[place] if isinstance(item, list) and place < len(item) else None
        key = found[2]
    if key == "value" and not isinstance(item, dict):
        given = item
    else:
        given = item.get(key, default) if isinstance(item, dict) else default
    sample = variant(fallback, number)
    if given is not None and names.resolve(given) is None:
        names.unresolved_items = True
    return sample if given is None else names.sample(given, sample)


def add_loop(loop, entries, names):
    """Adds `for_each` for a loop to some entries, and its items to the variables.

    Returns true if a person must fill in the items.
    """
    if loop is None:
        return False
    entries = [(kind, entry) for kind, entry in entries if not is_the_same(entry, names)]
    if not entries:
        return False
    items = plain_items(*loop, names)
    by_hand = items is None
    items = items or [None, None]
    itself = names.item_itself or "text"
    keys = []
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            texts = [one.get("name", one.get("key")) if isinstance(one, dict) else None for one in items]
            has_names = all(isinstance(text, str) and "{{" not in text for text in texts) and len(set(texts)) == len(
                texts
            )
            keys.append(item.get("key") or (texts[number - 1] if has_names else str(number)))
        elif item is None or isinstance(item, list):
            keys.append(variant(itself, number))
        else:
            keys.append(str(names.sample(item, variant(itself, number))))
    # Texts keep their place; a text that occurs twice counts once.
    if len(set(keys)) < len(keys):
        known = set()
        keys = [
            key if not (key in known or known.add(key)) else f"{key} {number}" for number, key in enumerate(keys, 1)
        ]
    name = names.own("items")
    if names.item_fields:
        names.used[name] = {
            key: {field: value_of(item, field, names, *about, number) for field, about in names.item_fields.items()}
            for number, (key, item) in enumerate(zip(keys, items, strict=True), 1)
        }
        for _, entry in entries:
            for field in entry:
                entry[field] = with_keys(entry[field], field == "when")
    else:
        names.used[name] = keys
    itself = "${item.key}" if names.item_fields else "${item}"
    for kind, entry in entries:
        entry["for_each"] = f"vars.{name}"
        if "${item" not in str(entry["name"]) and kind in PATHS:
            if kind in ("file", "fetch", "archive", "git"):
                entry.setdefault("path", entry["name"])
            entry["name"] = f"{entry['name']} {itself}"
    return by_hand or names.unresolved_items


def is_the_same(entry, names):
    """Tells whether an entry is the same for every item: it stands once, under conditions without the item."""
    if any("${item" in str(value) for key, value in entry.items() if key != "when"):
        return False
    conditions = entry.get("when", [])
    conditions = conditions if isinstance(conditions, list) else [conditions]
    for number, condition in enumerate(conditions):
        if ITSELF.search(str(condition)) or "item.value." in str(condition):
            conditions[number] = f"vars.{names.own('by_hand_any')}"
            names.used[names.own("by_hand_any")] = True
    if conditions:
        entry["when"] = conditions
    return True


def with_keys(value, is_expression):
    """Writes `item` as `item.key`."""
    if isinstance(value, list):
        return [with_keys(one, is_expression) for one in value]
    if isinstance(value, dict):
        return {key: with_keys(one, is_expression) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    if is_expression:
        return ITSELF.sub("item.key", value)
    return re.sub(r"\$\{[^}]*\}", lambda found: ITSELF.sub("item.key", found[0]), value)
