# SPDX-License-Identifier: Apache-2.0
"""JSON as text: where in a config.json each value stands. Written for the tests alone, and on
purpose not like the C code that they test: one regular expression for tokens and one stack."""
import functools
import re

TOKEN = re.compile(rb'[ \t\r\n]*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")'
                   rb'|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)'
                   rb'|(?P<word>true|false|null)|(?P<mark>[][{}:,]))')


class Value:
    """A value with its place: text[start:end]. An object has members [(key, value)] with key as
    str, an array has elements."""

    def __init__(self, kind, start):
        self.kind, self.start, self.end = kind, start, start
        self.members, self.elements = [], []

    def get(self, *path):
        """The value behind a chain of keys; None where there is none. Of several: the last."""
        at = self
        for key in path:
            found = [v for k, v in at.members if k == key] if at.kind == "object" else []
            if not found:
                return None
            at = found[-1]
        return at


def unescape(raw):
    """The text of a string token."""
    def one(match):
        what = match.group(1)
        if what.startswith("u"):
            return chr(int(what[1:], 16))
        return {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}.get(what, what)
    text = raw[1:-1].decode("utf-8", "surrogateescape")
    text = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@functools.lru_cache(maxsize=8)
def parse(text):
    """The top value of a JSON text (bytes); ValueError where it is none."""
    stack, top, key, at, want = [], None, None, 0, "value"
    while True:
        match = TOKEN.match(text, at)
        if not match:
            if text[at:].strip(b" \t\r\n"):
                raise ValueError("byte %d: %r" % (at, text[at:at + 30]))
            break
        kind = match.lastgroup
        start, at = match.start(kind), match.end()
        mark = match.group("mark")
        if mark == b":" and want == "colon":
            want = "value"
            continue
        if mark == b"," and want == "end" and stack:
            want = "key" if stack[-1].kind == "object" else "value"
            continue
        if mark in (b"}", b"]") and stack and want in ("end", "first"):
            value = stack.pop()
            if (value.kind == "object") != (mark == b"}"):
                raise ValueError("byte %d: %r" % (start, mark))
            value.end, want = at, "end"
            continue
        if kind == "string" and stack and stack[-1].kind == "object" and want in ("key", "first"):
            key, want = unescape(match.group("string")), "colon"
            continue
        inside = stack and stack[-1].kind == "array" and want == "first"
        if not (want == "value" or inside) or mark in (b":", b",", b"}", b"]"):
            raise ValueError("byte %d: %r where a %s belongs" % (start, text[start:at], want))
        value = Value({b"{": "object", b"[": "array"}.get(mark, kind), start)
        value.end = at
        if not stack and top is not None:
            raise ValueError("byte %d: a second value" % start)
        if not stack:
            top = value
        elif stack[-1].kind == "object":
            stack[-1].members.append((key, value))
        else:
            stack[-1].elements.append(value)
        if mark in (b"{", b"["):
            stack.append(value)
            want = "first"
        else:
            want = "end"
    if stack or top is None:
        raise ValueError("the text ends too early")
    return top


def semantic(text, value=None):
    """The meaning, for comparing: numbers as written, objects as sorted lists of members (so that
    a key that stands twice counts twice), strings decoded."""
    if value is None:
        value = parse(text)
    raw = text[value.start:value.end]
    if value.kind == "object":
        return ("object", sorted(((k, semantic(text, v)) for k, v in value.members), key=repr))
    if value.kind == "array":
        return ("array", [semantic(text, v) for v in value.elements])
    if value.kind == "string":
        return ("string", unescape(raw))
    return (value.kind, raw.decode())


# What the runtime may change; an entry that ends with "*" stands for each member.
EDITED = [("process", "env"), ("mounts",), ("hooks", "*"), ("linux", "devices"),
          ("linux", "resources", "devices"),
          ("linux", "resources", "cpu", "period"), ("linux", "resources", "cpu", "quota"),
          ("linux", "resources", "cpu", "shares"), ("linux", "resources", "memory", "limit")]


def is_edited(path):
    return any(len(p) == len(path) and all(a in ("*", b) for a, b in zip(p, path))
               for p in EDITED)


def leads_to_edited(path):
    return any(len(p) > len(path) and all(a in ("*", b) for a, b in zip(p, path))
               for p in EDITED)


def cuts(old, new, old_value, new_value, path=()):
    """The spans (of old, of new) of what may differ between two texts: edited values that both
    have, and whole members, with the comma and white space before them, that only new has.
    Only where old and new have the same members up to there are they compared one by one."""
    out_old, out_new = [], []
    if old_value.kind != "object" or new_value.kind != "object":
        return out_old, out_new
    for i, (key, value) in enumerate(new_value.members):
        here = path + (key,)
        if i >= len(old_value.members):
            if is_edited(here) or leads_to_edited(here):
                before = new_value.members[i - 1][1].end if i else new_value.start + 1
                out_new.append((before, value.end))
            continue
        was = old_value.members[i][1]
        absent = old[was.start:was.end] == b"null"
        if is_edited(here) or (absent and leads_to_edited(here)):
            out_old.append((was.start, was.end))
            out_new.append((value.start, value.end))
        elif leads_to_edited(here):
            more = cuts(old, new, was, value, here)
            out_old += more[0]
            out_new += more[1]
    return out_old, out_new


def without(text, spans):
    """The text with the spans cut out; a mark stays, so that two cuts do not run together."""
    out, at = [], 0
    for start, end in sorted(spans):
        out.append(text[at:start])
        at = end
    out.append(text[at:])
    return out


def outside_differs(old, new):
    """None where nothing but the edited places differs, byte by byte; else the first difference,
    in words."""
    spans_old, spans_new = cuts(old, new, parse(old), parse(new))
    a, b = b"".join(without(old, spans_old)), b"".join(without(new, spans_new))
    if a == b:
        return None
    at = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
    return "outside of the edited places, %r became %r" % (a[max(0, at - 40):at + 40],
                                                           b[max(0, at - 40):at + 40])


def elements(text, *path):
    """The raw texts of the elements of the array at a path; none where there is no array."""
    value = parse(text).get(*path)
    if value is None:
        return []
    return [text[v.start:v.end] for v in value.elements]
