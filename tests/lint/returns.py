#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table in docs/returns.md, as the vendor catalogue makes it.

returns.py          says where the page and the catalogue disagree, and fails then
returns.py --table  prints the table
"""
import glob
import json
import sys

PAGE = "docs/returns.md"
HEAD = (
    "| vendor | is lent | a call | a store, while somebody borrows"
    " | a store, while nobody borrows |",
    "| --- | --- | --- | --- | --- |",
)


def lent(entry):
    """By itself, or by an operator's word alone, or never?"""
    if not entry.get("inventory") or not entry.get("driver", {}).get("hook_nodes"):
        return "never"
    return "yes" if entry.get("load") else "by hand"


def store_while_borrowed(entry):
    """Somebody else's work is on the card, so only a process's own load tells."""
    load = entry.get("load")
    if entry["driver"].get("revocable"):
        return "held"
    if not load:
        return "not seen"
    # DRM tells of work that came through it; not of what has a node of its own, like AMD's kfd.
    drm = all(node.startswith("/dev/dri/") for node in entry["driver"]["hook_nodes"])
    if load["source"] == "fdinfo":
        return "seen" if drm else "not seen"
    if load.get("processes") == "nvml":
        return "seen, if its library tells"
    return "seen within a minute" if drm and load.get("processes") == "fdinfo" else "not seen"


def store_alone(entry):
    if entry["driver"].get("revocable"):
        return "held"
    return "seen" if entry.get("load") else "not seen"


def row(entry):
    how = lent(entry)
    if how == "never":
        cells = ["-", "-", "-"]
    else:
        cells = ["held", store_while_borrowed(entry), store_alone(entry)]
    return "| " + " | ".join([entry["title"], how] + cells) + " |"


def table():
    rows = []
    for path in glob.glob("vendors/*.json"):
        with open(path, encoding="utf-8") as f:
            rows.append(row(json.load(f)))
    return list(HEAD) + sorted(rows)


def page_table():
    with open(PAGE, encoding="utf-8") as f:
        lines = f.read().splitlines()
    if HEAD[0] not in lines:
        return []
    first = last = lines.index(HEAD[0])
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return lines[first:last]


def main():
    want = table()
    if sys.argv[1:] == ["--table"]:
        print("\n".join(want))
        return 0
    have = page_table()
    for line in want:
        if line not in have:
            print(f"{PAGE} lacks the line: {line}")
    for line in have:
        if line not in want:
            print(f"{PAGE} has a line that the catalogue does not make: {line}")
    return 0 if have == want else 1


sys.exit(main())
