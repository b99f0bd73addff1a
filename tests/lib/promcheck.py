#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Prometheus exposition (text format 0.0.4) from stdin, stricter than Prometheus does.

	promcheck.py [PREFIX]	metric names begin with PREFIX (default: gpushare_)

Prints what is wrong, a line each, and exits 1; nothing and 0 if all is well. Besides the format:
HELP and TYPE stand above each family and all of a family in one place, names and units as
https://prometheus.io/docs/practices/naming/ asks, no series twice, histograms that add up.
"""
import math
import re
import sys

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|\Z)')
SAMPLE = re.compile(r'([^\s{]+)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)\Z')
NUMBER = re.compile(r"(?:[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?|\+Inf|-Inf|NaN)\Z")
# Units that have a base unit, and names of types, as parts of a name.
BAD_PARTS = {
    "milliseconds": "seconds", "ms": "seconds", "microseconds": "seconds", "us": "seconds",
    "nanoseconds": "seconds", "ns": "seconds", "minutes": "seconds", "hours": "seconds",
    "kilobytes": "bytes", "kib": "bytes", "megabytes": "bytes", "mib": "bytes", "gib": "bytes",
    "percent": "ratio", "permille": "ratio", "counter": None, "gauge": None, "histogram": None,
}
UNITS = {"seconds", "bytes", "ratio", "celsius", "joules", "meters", "volts", "amperes"}
RESERVED = ("_total", "_bucket", "_sum", "_count")
TYPES = {"counter", "gauge", "histogram"}


class Family:
    def __init__(self, name):
        self.name = name
        self.help = None
        self.type = None
        self.samples = []  # (suffix, labels, value)


class Check:
    def __init__(self, prefix):
        self.prefix = prefix
        self.found = []
        self.families = {}
        self.current = None
        self.line = 0

    def bad(self, text):
        self.found.append(f"line {self.line}: {text}")

    def comment(self, line):
        match = re.match(r"# (HELP|TYPE) (\S+) (.*)\Z", line)
        if not match:
            self.bad(f"neither HELP nor TYPE: {line!r}")
            return
        kind, name, text = match.groups()
        if self.current is None or self.current.name != name:
            if name in self.families:
                self.bad(f"{name}: in two places")
            self.current = self.families.setdefault(name, Family(name))
            self.naming(name)
        family = self.current
        if family.samples:
            self.bad(f"{name}: {kind} behind its samples")
        if kind == "HELP":
            if family.help is not None:
                self.bad(f"{name}: HELP twice")
            if not text.strip():
                self.bad(f"{name}: empty HELP")
            if re.search(r"\\(?![\\n])", text.replace("\\\\", "")):
                self.bad(f"{name}: bad escape in HELP")
            family.help = text
            return
        if family.type is not None:
            self.bad(f"{name}: TYPE twice")
        if family.help is None:
            self.bad(f"{name}: TYPE without HELP above it")
        if text not in TYPES:
            self.bad(f"{name}: type {text}")
        family.type = text
        if (text == "counter") != name.endswith("_total"):
            self.bad(f"{name}: a counter's name ends in _total, and no other's")
        if text != "counter" and name.endswith(RESERVED):
            self.bad(f"{name}: ends in what histograms and counters add")

    def naming(self, name):
        if not NAME.match(name) or ":" in name or name != name.lower() or "__" in name:
            self.bad(f"{name}: not a name (lower case, digits, single _)")
        if not name.startswith(self.prefix):
            self.bad(f"{name}: does not begin with {self.prefix}")
        parts = name.split("_")
        for part in parts:
            if part in BAD_PARTS:
                self.bad(f"{name}: {part}" + (f", not {BAD_PARTS[part]}" if BAD_PARTS[part]
                                               else ": a type in a name"))
        last = parts[:-1] if parts[-1] in ("total", "info") else parts
        for part in last[:-1]:
            if part in UNITS:
                self.bad(f"{name}: the unit {part} does not stand last")

    def labels(self, name, text):
        ret, at = {}, 0
        while at < len(text):
            match = LABEL.match(text, at)
            if not match or (match.group(3) == "," and match.end() == len(text)):
                self.bad(f"{name}: labels {text!r}")
                return ret
            key, value = match.group(1), match.group(2)
            if key in ret:
                self.bad(f"{name}: label {key} twice")
            if key.startswith("__"):
                self.bad(f"{name}: label {key} is Prometheus's own")
            ret[key] = value
            at = match.end()
        return ret

    def sample(self, line):
        match = SAMPLE.match(line)
        if not match:
            self.bad(f"not a sample: {line!r}")
            return
        name, labels, value = match.group(1), match.group(2) or "", match.group(3)
        family = self.current
        suffix = name[len(family.name):] if family and name.startswith(family.name) else None
        allowed = ("_bucket", "_sum", "_count") if family and family.type == "histogram" else ("",)
        if suffix not in allowed:
            self.bad(f"{name}: not below its own HELP and TYPE")
            return
        if family.type is None:
            self.bad(f"{name}: no TYPE")
        if not NUMBER.match(value):
            self.bad(f"{name}: {value!r} is no number")
            return
        number = float(value.replace("Inf", "inf"))
        got = self.labels(name, labels)
        if suffix != "_bucket" and "le" in got:
            self.bad(f"{name}: label le on what is no bucket")
        if family.type != "gauge" and suffix != "_sum" and not 0 <= number < math.inf:
            self.bad(f"{name}: counts {value}")
        if any((suffix, got) == (s, g) for s, g, _ in family.samples):
            self.bad(f"{name}{{{labels}}}: twice")
        keys = set(got) - {"le"}
        if family.samples and keys != set(family.samples[0][1]) - {"le"}:
            self.bad(f"{name}: labels differ within the family")
        family.samples.append((suffix, got, number))

    def histogram(self, family):
        groups = {}
        for suffix, labels, value in family.samples:
            key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
            group = groups.setdefault(key, {"_bucket": [], "_sum": None, "_count": None})
            if suffix == "_bucket":
                if not NUMBER.match(labels.get("le", "")):
                    self.bad(f"{family.name}: a bucket without le")
                    continue
                group["_bucket"].append((float(labels["le"].replace("Inf", "inf")), value))
            else:
                group[suffix] = value
        for key, group in groups.items():
            where = f"{family.name}{dict(key)}"
            bounds = [b for b, _ in group["_bucket"]]
            counts = [c for _, c in group["_bucket"]]
            if bounds != sorted(set(bounds)):
                self.bad(f"{where}: bounds do not rise")
            if not bounds or bounds[-1] != math.inf:
                self.bad(f"{where}: no +Inf bucket")
            if counts != sorted(counts):
                self.bad(f"{where}: buckets are not cumulative")
            if group["_sum"] is None or group["_count"] is None:
                self.bad(f"{where}: no _sum or no _count")
            elif counts and counts[-1] != group["_count"]:
                self.bad(f"{where}: +Inf is not _count")
            elif group["_count"] == 0 and group["_sum"] != 0:
                self.bad(f"{where}: a sum of nothing")

    def run(self, data):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.bad(f"not UTF-8: {error}")
            return
        if not text.endswith("\n"):
            self.bad("no newline at the end")
        for self.line, line in enumerate(text.split("\n")[:-1], 1):
            if line.startswith("#"):
                self.comment(line)
            else:
                self.sample(line)
        for family in self.families.values():
            if family.help is None or family.type is None:
                self.bad(f"{family.name}: no HELP or no TYPE")
            if family.type == "histogram":
                self.histogram(family)
        if not self.families:
            self.bad("nothing")


def main():
    check = Check(sys.argv[1] if len(sys.argv) > 1 else "gpushare_")
    check.run(sys.stdin.buffer.read())
    for line in check.found:
        print(line)
    return 1 if check.found else 0


if __name__ == "__main__":
    sys.exit(main())
