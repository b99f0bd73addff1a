#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics in the code, in docs/metrics.md and the manual pages, and in the rules and dashboards of
packaging/ agree.

metrics.py [DIR]   looks at DIR instead of this repository; says where they do not, and fails then
"""
import glob
import json
import os
import re
import sys

PAGE = "docs/metrics.md"
MANUALS = {"gpushare_controller_": "docs/man/gpushare-controller.8",
           "gpushare_": "docs/man/gpushared.8"}
RULES = "packaging/prometheus/gpushare.rules.yml"
MACRO = re.compile(r'^(COUNTER|GAUGE|SECONDS)\((\w+),\s*"(?:[^"\\]|\\.)*",\s*([^)]*)\);', re.M)
PLAIN = re.compile(r'\.name = "(gpushare_\w+)",.*?\.type = METRIC_(\w+),(.*?)\};', re.S)
FORM = {"COUNTER": ("{}{}_total", "counter"), "GAUGE": ("{}{}", "gauge"),
        "SECONDS": ("{}{}_seconds", "histogram")}
# What those macros put in front of each name, in the file that defines them.
PREFIX = re.compile(r'"(gpushare_(?:\w+_)?)"')
ROW = re.compile(r"^\| `(gpushare_\w+)` \| (\w+) \| ([^|]*)\|", re.M)
ALERT_ROW = re.compile(r"^\| `(Gpushare\w+)` \| (\w+) \|", re.M)
ALERT = re.compile(r"^\s*- alert: (\w+)$.*?severity: (\w+)", re.M | re.S)
NAME = re.compile(r"\bgpushare_\w+")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_code():
    """name: (type, labels)"""
    ret = {}
    folders = ("agent", "common", "controller")
    for path in sorted(path for folder in folders for path in glob.glob(folder + "/*.c")):
        text = read(path)
        prefix = PREFIX.search(text)
        for kind, name, labels in MACRO.findall(text):
            form, what = FORM[kind]
            ret[form.format(prefix[1], name)] = (what, re.findall(r'"(\w+)"', labels))
        for name, kind, rest in PLAIN.findall(text):
            ret[name] = (kind.lower(), re.findall(r'"(\w+)"', rest))
    return ret


def expressions():
    """Where, and the expression of every rule and panel."""
    yield RULES, "\n".join(line for line in read(RULES).split("\n")
                           if not line.lstrip().startswith("#"))
    for path in sorted(glob.glob("packaging/grafana/*.json")):
        def walk(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    if key in ("expr", "query", "definition") and isinstance(inner, str):
                        yield path, inner
                    else:
                        yield from walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from walk(inner)
        yield from walk(json.loads(read(path)))


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(__file__) + "/../..")
    found = []
    code = in_code()
    page = read(PAGE)
    rows = {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels
            in ROW.findall(page)}
    if not code:
        found.append("agent: no metric in the code: this check no longer finds them")
    for name in sorted(code.keys() | rows.keys()):
        if name not in rows:
            found.append(f"{PAGE}: {name} is missing")
        elif name not in code:
            found.append(f"{PAGE}: {name} is in no code")
        elif code[name] != rows[name]:
            found.append(f"{PAGE}: {name} is {rows[name]}, in the code {code[name]}")
    for name in sorted(code):
        prefix = next(prefix for prefix in MANUALS if name.startswith(prefix))
        path = MANUALS[prefix]
        if not re.search(rf"^\.(It )?Li .*\b{name[len(prefix):]}\b", read(path), re.M):
            found.append(f"{path}: {name} is missing")
    known = set(code)
    for name, (kind, _) in code.items():
        if kind == "histogram":
            known |= {name + end for end in ("_bucket", "_sum", "_count")}
    shown = set()
    for where, text in expressions():
        used = set(NAME.findall(text))
        shown |= used
        for name in sorted(used - known):
            found.append(f"{where}: {name} is in no code")
    for name, (kind, _) in sorted(code.items()):
        if not {name, name + "_bucket"} & shown:
            found.append(f"{name}: in no rule and on no dashboard")
    alerts, told = dict(ALERT.findall(read(RULES))), dict(ALERT_ROW.findall(page))
    for name in sorted(alerts.keys() | told.keys()):
        if alerts.get(name) != told.get(name):
            found.append(f"{PAGE}: alert {name} is {told.get(name)}, in {RULES} {alerts.get(name)}")
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
