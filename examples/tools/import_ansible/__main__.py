"""Maps tasks of Ansible to resources of steadfast, writes them as graphs, and counts what is native.

python3 examples/tools/import_ansible [--check STEADFAST] [--out DIR] [--report FILE] ROLE_OR_PLAYBOOK...
"""

import argparse
import collections
import json
import os
import sys

import yaml
from importer import import_role
from tasks import find_roles, read_playbook, read_role


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="roles, folders of roles, or playbooks")
    parser.add_argument("--check", metavar="STEADFAST", help="the program that must accept each graph")
    parser.add_argument("--out", metavar="DIR", help="the folder for the graphs")
    parser.add_argument("--report", metavar="FILE", help="the file for all tasks that are not native, as JSON")
    options = parser.parse_args()
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    rest, total = [], collections.Counter()
    reasons = collections.Counter()
    for path in options.paths:
        counts = collections.Counter()
        for folder in find_roles(path):
            try:
                role = read_playbook(folder) if os.path.isfile(folder) else read_role(folder)
            except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
                print(f"{folder}: cannot be read: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            for place, error in role.unread:
                print(f"{place}: cannot be read: {error}", file=sys.stderr)
            for result in import_role(role, options.check, options.out):
                counts[result.verdict] += 1
                counts["tasks"] += 1
                counts["guarded"] += result.verdict == "exec" and result.guarded
                counts["complete"] += result.verdict == "native" and not result.by_hand
                counts["expressions"] += result.by_hand
                if result.verdict != "native":
                    reasons[f"{result.verdict}: {result.reason}"] += 1
                    task = {"task": result.task.name, "place": result.task.place, "guarded": result.guarded}
                    rest.append(task | {"result": result.verdict, "reason": result.reason})
        total += counts
        print_counts(os.path.basename(os.path.normpath(path)), counts)
    print_counts("all", total)
    print(f"expressions and loops left to a person: {total['expressions']}")
    for reason, count in reasons.most_common(40):
        print(f"{count:6} {reason}")
    if options.report:
        with open(options.report, "w", encoding="utf-8") as file:
            json.dump(rest, file, indent=1)


def print_counts(name, counts):
    """Prints one row: tasks, and the shares of those that this system has."""
    here = counts["tasks"] - counts["impossible"]
    row = "  ".join(
        f"{key} {counts[key]}" for key in ("native", "complete", "exec", "guarded", "rejected", "impossible")
    )
    share, wide = (
        100 * count / here if here else 0 for count in (counts["native"], counts["native"] + counts["guarded"])
    )
    print(f"{name:24} {counts['tasks']:5} tasks  {row}  share {share:.1f} %  with guards {wide:.1f} %")


if __name__ == "__main__":
    main()
