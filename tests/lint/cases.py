#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every test that tests/runtime/cases/README.md names for a public report is there.

    cases.py    in the repository's root

What it looks for, in the tables below "## Which report is tested where": golden cases by their
folders (with * as the shell has it), files below tests/, and what stands behind a file's name:
words in quotes, and names with an underscore, must stand in that file.
"""
import fnmatch
import os
import re
import sys

CASES = "tests/runtime/cases"
PAGE = CASES + "/README.md"
FILE = re.compile(r"`((?:unit|vm|harness|fuzz|node|k8s|ctl|packages|runtime)/[^`]+)`([^`;|]*)")
NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+_?\b")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def place(name):
    """Where a file is that the page calls so."""
    if name.startswith("vm/") and os.path.exists(f"tests/vm/suite/{name[3:]}.sh"):
        return f"tests/vm/suite/{name[3:]}.sh"
    return "tests/" + name


def missing_in(path, words):
    """What of @words, the text behind a file's name, is not in that file."""
    text = read(path)
    for quoted in re.findall(r'"([^"]+)"', words):
        # a name may be put together in the script: "restarted: ..." from $1 and the rest
        told = quoted.replace("... ", "")
        if told not in text and told.split(":")[0] not in text:
            yield quoted
    for name in NAME.findall(re.sub(r'"[^"]*"', "", words)):
        if name not in text:
            yield name


def rows(text):
    """Section and cells of each row of a table."""
    section = None
    for line in text.splitlines():
        if line.startswith("### "):
            section = line[4:]
        elif section and line.startswith("| ") and not re.match(r"\| (---|public report) ", line):
            yield section, [cell.strip() for cell in line.strip("|").split("|")]


def wrong(section, cells, golden):
    """What this row names that is not there."""
    if section == "The runtime":
        for name in re.findall(r"`([^`]+)`", cells[2]):
            if not fnmatch.filter(golden, name):
                yield f"no case {name}"
    for name, words in FILE.findall(cells[-1]):
        path = place(name)
        if "*" in name:
            if not fnmatch.filter(os.listdir(os.path.dirname(path)), os.path.basename(path)):
                yield f"no {path}"
        elif not os.path.exists(path):
            yield f"no {path}"
        elif os.path.isfile(path):
            yield from (f"{path} has no {what}" for what in missing_in(path, words))


def main():
    text = read(PAGE)
    golden = [name for name in os.listdir(CASES) if os.path.isdir(f"{CASES}/{name}")]
    found = list(rows(text[text.index("## Which report is tested where"):]))
    bad = [f"{PAGE}: {cells[0]}: {what}"
           for section, cells in found for what in wrong(section, cells, golden)]
    print("\n".join(bad) or f"{len(found)} reports")
    if len(found) < 50:
        print(f"{PAGE}: only {len(found)} rows: is it read as it is written?")
        return 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
