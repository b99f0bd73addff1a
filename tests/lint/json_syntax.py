#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that JSON files parse and that no object has a key twice."""

import json
import sys


def unique(pairs):
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"key {key!r} stands twice in one object")
        seen.add(key)
    return dict(pairs)


def main():
    status = 0
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                json.load(file, object_pairs_hook=unique)
        except ValueError as error:
            print(f"{path}: {error}")
            status = 1
    return status


sys.exit(main())
