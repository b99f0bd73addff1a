#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every message that a pod's author can cause stands in docs/pod-author.md.

    messages.py [--list]    in the repository's root; --list prints the messages that were found

A message is the format of an error that a file sets. The page has it if one text in
backticks, in the first column of a table below "## Messages", holds all that is fixed in the
format, in that order: what stands for the conversions there is the page's affair.
"""
import os
import re
import sys

PAGE = "docs/pod-author.md"
# Every file of runtime/ but those whose errors are others' affair: the engine's that calls us with
# a command line or a specification, the operator's, or the hook's and the dry run's own.
NOT = ["argv.c", "cgroup_kill.c", "dryrun.c", "hook.c", "next.c", "spec.c"]
COMMON = ["identity.c", "quantity.c", "grant.c", "grant_bind.c"]
HEADERS = ["include/gpushare/annotations.h", "include/gpushare/grant.h"]
# Functions that set an error, and which of their arguments is the format or its end.
CALLS = {"gs_err_set": 2, "gs_err_errno": 2, "gs_err_prefix": 1, "bad": 3, "fail": 3}

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*')
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]|%$")
SKIP = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/', re.S)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def macros():
    """The string macros of the headers, with what they are made of still unresolved."""
    found = {}
    for path in HEADERS:
        for name, value in re.findall(r"^#define (GS_\w+)[ \t]+(\S.*)$", read(path), re.M):
            if '"' in value:
                found[name] = value
    return found


def string_of(expression, known):
    """The text of string literals and macros in a row; any other word stands for something."""
    out = ""
    for token in TOKEN.findall(expression):
        if token.startswith('"'):
            out += token[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
        elif token in known:
            out += string_of(known[token], known)
        elif token.startswith("PRI"):
            out += "d"
        else:
            out += "%s"
    return out


def arguments(text, start):
    """The arguments of the call whose parenthesis opens just before start."""
    args, depth, begin, i = [], 0, start, start
    while True:
        skipped = SKIP.match(text, i)
        if skipped:
            i = skipped.end()
            continue
        c = text[i]
        if c in "([{":
            depth += 1
        elif c in ")]}" and depth:
            depth -= 1
        elif depth == 0 and c in ",)":
            args.append(text[begin:i])
            begin = i + 1
            if c == ")":
                return args
        i += 1


def messages(path, known, calls=None):
    """(line, format) of each error that a file sets; or of other calls, given as CALLS is."""
    text, calls = read(path), calls or CALLS
    for call in re.finditer(r"\b(%s)\(" % "|".join(calls), text):
        # The function's own head is at the beginning of a line, behind its type.
        before = text[:call.start()].rpartition("\n")[2]
        if re.search(r"^(?!return)(static )?[a-z]\w* \**$", before):
            continue
        args = arguments(text, call.end())
        if calls[call.group(1)] >= len(args):
            continue
        expression = args[calls[call.group(1)]]
        # Either of two formats.
        for part in re.split(r"\?|:(?=\s*\")", SKIP.sub(keep, expression)):
            fmt = string_of(restore(part), known)
            if re.search("[A-Za-z]", CONVERSION.sub("", fmt)):
                yield text.count("\n", 0, call.start()) + 1, fmt


KEPT = []


def keep(match):
    """Hides a literal, so that nothing in it is taken for an operator."""
    KEPT.append(match.group())
    return '"%d"' % (len(KEPT) - 1)


def restore(text):
    return re.sub(r'"(\d+)"', lambda m: KEPT[int(m.group(1))], text)


def texts(page=PAGE, heading="Messages"):
    """The texts in backticks in first columns of the section with that heading."""
    page = read(page).partition("\n## %s\n" % heading)[2].partition("\n## ")[0]
    found = []
    for line in page.split("\n"):
        if line.startswith("| "):
            found += re.findall(r"`([^`]+)`", line.split(" | ")[0])
    return found


def has(text, fmt):
    at = 0
    for part in CONVERSION.split(fmt):
        if not re.search("[A-Za-z]", part):
            continue
        at = text.find(part.strip(), at)
        if at < 0:
            return False
        at += len(part.strip())
    return True


def files():
    runtime = [name for name in sorted(os.listdir("runtime")) if name.endswith(".c")]
    return (["runtime/" + name for name in runtime if name not in NOT] +
            ["common/" + name for name in COMMON])


def main():
    known, there, missing = macros(), texts(), 0
    for path in files():
        for line, fmt in messages(path, known):
            if sys.argv[1:] == ["--list"]:
                print("%s:%d: %s" % (path, line, fmt))
            elif not any(has(text, fmt) for text in there):
                print('%s:%d: %s lacks the message "%s"' % (path, line, PAGE, fmt))
                missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
