#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every sentence that an operator or a pod's author is told stands in a page, and the other way
round.

sentences.py [DIR]   in the repository's root, or for DIR

Of the controller's refusals, the Events on pods, what `gpusharectl status` calls wrong, and why a
card is not lent. messages.py has what the runtime says, and how a sentence is found in a page.
"""
import os
import re
import sys

import messages

ADMISSION = ["keys.c", "order.c", "spot.c", "share.c", "oversold.c", "partition.c", "pod.c",
             "admission.c"]
# What the API server sends cannot be so, or is sent by nobody else.
NOT_TOLD = re.compile(r"^(apiVersion |request\.|the object is |the pod has no spec|container %s$"
                      r"|%s has an element|neither a pod)|^(change|write|remove)$"
                      # Lines of the log.
                      r"|^(nobody needs it |nobody has shared |it has ended)")
PLACES = [
    # page, section, files, calls and which of their arguments it is, from which line on
    ("docs/controller.md", "Why a pod is refused", ["controller/" + name for name in ADMISSION],
     {"gs_err_set": 2}, ""),
    ("docs/controller.md", "Share pods and shadow pods", ["controller/shadow_plan.c"],
     {"gs_asprintf": 0, "gs_strdup": 0}, "SHADOW_TELL"),
    ("docs/operator.md", "What is wrong", ["ctl/picture.c"],
     {"gs_asprintf": 0, "gs_strv_add": 1}, "static void problem_of_holding("),
    ("docs/operator.md", "Why a card is not lent", ["agent/lend.c"], {"not_now": 1}, ""),
]
# Set by hand: the page, its section, the file, how it is set.
ASSIGNED = [("docs/operator.md", "Why a card is not lent", "agent/policy.c",
             re.compile(r"->why_not = ([^;]*);")),
            ("docs/operator.md", "Why a card is not lent", "ctl/picture.c",
             re.compile(r'(?:return|\?) ("[^"]* [^"]*")'))]
EVENTS = ("docs/operator.md", "Events on pods")

found = []


def told(place):
    """(where, format) of each sentence of that place in the code."""
    known = messages.macros()
    for path in place[2]:
        text = messages.read(path)
        first = text.count("\n", 0, max(text.find(place[4]), 0)) + 1
        for line, fmt in messages.messages(path, known, place[3]):
            if line >= first and not NOT_TOLD.match(fmt):
                yield f"{path}:{line}", fmt
    if place[4] == "SHADOW_TELL":
        yield "controller/shadow.c", "no pod that holds a card to be shared can be made: %s"


def assigned(path, pattern):
    known = messages.macros()
    for value in pattern.findall(messages.read(path)):
        for part in re.split(r"\?|:(?=\s*\")", value):
            fmt = messages.string_of(part, known)
            if " " in fmt:
                yield path, fmt


def check_sections():
    code = {}
    for place in PLACES:
        code.setdefault(place[:2], []).extend(told(place))
    for page, heading, path, pattern in ASSIGNED:
        code.setdefault((page, heading), []).extend(assigned(path, pattern))
    for (page, heading), sentences in code.items():
        texts = messages.texts(page, heading)
        if not sentences or not texts:
            found.append(f"{page}: \"{heading}\": nothing is found there, or in the code")
        for where, fmt in sentences:
            if not any(messages.has(text, fmt) for text in texts):
                found.append(f'{where}: {page}, "{heading}" lacks "{fmt}"')
        for text in texts:
            if not any(messages.has(text, fmt) for _, fmt in sentences):
                found.append(f'{page}: "{heading}": no code says `{text}`')


def check_events():
    code = set()
    for path in ("agent/pods.c", "agent/unseen.c", "controller/shadow.c"):
        for call in re.findall(r"(?:kube_event|delete_pod)\((.*?)\);", messages.read(path), re.S):
            code |= set(re.findall(r'"([A-Z][a-z]+[A-Z]\w+)"', call))
    page = set(messages.texts(*EVENTS))
    for reason in sorted(code ^ page):
        found.append(f"{EVENTS[0]}: Event {reason} is in " +
                     ("no code" if reason in page else "the code, and not there"))


def main():
    if len(sys.argv) > 1:
        os.chdir(sys.argv[1])
    check_sections()
    check_events()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
