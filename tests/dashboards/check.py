#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether every panel of the dashboards shows something on the sample day. TAP.

A query that is misspelt, or asks for a label that is not there, is valid and finds nothing.
"""

import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import boards  # noqa: E402
import day  # noqa: E402

# What a good day has none of: queries that match find nothing.
NONE = re.compile("unknown|quarantine|stuck|strangers|unheld|fail_opens|unconfirmed|denied"
                  "|kernel_module_loaded == 0")


def documented():
    """Type and labels of each metric of docs/metrics.md."""
    text = (boards.TOP / "docs/metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(gpushare_\w+)` \| (\w+) \| ([^|]*)\|", text, re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def main():
    if not shutil.which("prometheus"):
        print("1..0 # SKIP no Prometheus (packaging/deps.sh deb)")
        return 0
    results = []

    def result(good, name, *why):
        results.append(good)
        print(f"{'ok' if good else 'not ok'} {len(results)} - {name}")
        for line in why if not good else ():
            print(f"# {line}")

    known = documented()
    sample = day.day(boards.END)
    for name, kind in sample.types.items():
        if name == "up":
            continue
        labels = set(re.findall(r'(\w+)="', sample.lines[name][0])) - {"instance", "job", "le"}
        result(known.get(name) == (kind, labels), f"{name} is as documented",
               f"here {kind} {labels}, there {known.get(name)}")
    with boards.prometheus(sample) as server:
        for board, content in boards.boards():
            for panel in content["panels"]:
                for target in panel["targets"]:
                    query = boards.expression(target)
                    found = server.range(query, 300)
                    shown = any(value == value for _, values in found for _, value in values)
                    result(shown or bool(NONE.search(query)),
                           f"{board}: {panel['title']}: {target.get('refId')}", query)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
