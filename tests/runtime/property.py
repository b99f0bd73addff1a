#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Property test of gpushare-runtime: whatever a config.json looks like, everything outside of the
edited places keeps its bytes, the result is JSON, and a second run changes nothing. Without our
annotations not one byte changes. Prints TAP, one result for ten specs.

COUNT (default 300): how many random specs. SEED (default 1): of the first one; each further spec
has the next number, and a failure tells its own, so SEED=<that> COUNT=1 repeats it.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import jsontext  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from tap import need  # noqa: E402

BATCH = 10
ODD = ["", "ä", "日本語", "😀", "\u007f", "\u2028", "\ufeff", "\uffff", "a/b", "\\", '"', "\t\n\r\b\f",
       "\u0001", "</script>", "null", "true", "1e3", "gpushare.k8s.io", "{}", "[,]", "\U0010ffff"]
NUMBERS = ["0", "-0", "1", "-1", "18446744073709551615", "9223372036854775808",
           "-9223372036854775809", "9007199254740993", "1024.0", "1e3", "1E+3", "-1.5e-7",
           "0.10000000000000000001", "1e400", "7" * 70, "-" + "9" * 70, "0e0", "123456789.000"]


class Raw:
    """A piece of text that is JSON already."""

    def __init__(self, text):
        self.text = text


class Members(list):
    """An object as (key, value) pairs, in an order of their own and with keys that may repeat."""


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.style = self.random.choice(["compact", "spaced", "pretty", "tabs", "odd"])
        self.escape = self.random.choice([0, 0, 0.02, 0.5])

    def chance(self, p):
        return self.random.random() < p

    # Random content.
    def text(self):
        parts = [self.random.choice(ODD) for _ in range(self.random.randrange(3))]
        parts += [self.random.choice(["x", "name", "value", "0"])]
        self.random.shuffle(parts)
        return "".join(parts)

    def value(self, depth=0):
        kind = self.random.randrange(8 if depth < 4 else 5)
        if kind == 0:
            return Raw(self.random.choice(NUMBERS))
        if kind == 1:
            return Raw(self.random.choice(["null", "true", "false"]))
        if kind <= 4:
            return self.text()
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        out = Members(("x-" + self.text(), self.value(depth + 1))
                      for _ in range(self.random.randrange(4)))
        if out and self.chance(0.3):  # a key that stands twice, where nobody edits
            out.append((out[0][0], self.value(depth + 1)))
        return out

    def deep(self):
        depth = self.random.choice([5, 50, 500, 2500])
        kinds = ["[", '{"x":', "[1,", '{"a":null,"a":']
        opening = [self.random.choice(kinds) for _ in range(depth)]
        closing = ["]" if o[0] == "[" else "}" for o in reversed(opening)]
        return Raw("".join(opening) + self.random.choice(["0", '""', "[]"]) + "".join(closing))

    def with_unknown(self, members):
        """The members, in a random order, with unknown ones between them."""
        for _ in range(self.random.randrange(3)):
            members.append(("x-" + self.text(), self.value()))
        if self.chance(0.05):
            members.append(("x-deep", self.deep()))
        self.random.shuffle(members)
        return Members(members)

    def maybe(self, members, key, value):
        """Adds a member, or null, or nothing."""
        if self.chance(0.8):
            members.append((key, value))
        elif self.chance(0.5):
            members.append((key, Raw("null")))

    # A spec.
    def env(self):
        out = ["PATH=/bin", "HOME=" + self.text().replace("\0", "")]
        out += [self.random.choice(["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void",
                                    "NOEQUALS", "X=1", "X=" + self.text()])
                for _ in range(self.random.randrange(5))]
        self.random.shuffle(out)
        return out

    def mounts(self):
        return [self.with_unknown([("destination", "/m%d%s" % (i, self.text())),
                                   ("type", "bind"), ("source", "/srv/" + self.text()),
                                   ("options", ["rbind", "ro"])])
                for i in range(self.random.randrange(4))]

    def devices(self):
        return [self.with_unknown([("path", "/dev/x%d" % i), ("type", self.random.choice("cbu")),
                                   ("major", Raw("7")), ("minor", Raw(str(i)))])
                for i in range(self.random.randrange(4))]

    def rules(self):
        out = [Members([("allow", Raw("false")), ("access", "rwm")])]
        for i in range(self.random.randrange(4)):
            rule = [("allow", Raw(self.random.choice(["true", "false"]))), ("type", "c"),
                    ("major", Raw(self.random.choice(["1", "7", "195"]))), ("minor", Raw(str(i)))]
            if self.chance(0.7):
                rule.append(("access", self.random.choice(["rwm", "rw", "r", "m"])))
            out.append(self.with_unknown(rule))
        return out

    def hooks(self):
        stages = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart",
                  "poststop"]
        out = []
        for stage in stages:
            if self.chance(0.3):
                out.append((stage, [self.with_unknown([("path", "/bin/hook"),
                                                       ("args", ["hook", self.text()])])]))
            elif self.chance(0.1):
                out.append((stage, Raw("null")))
        return self.with_unknown(out)

    def spec(self, annotation=True):
        annotations = [(k, v) for k, v in specs.identity().items()]
        annotations += [("x-" + self.text(), self.text()) for _ in range(self.random.randrange(3))]
        if annotation:
            annotations.append((specs.FROM + ".dind", "_/_/main"))
        self.random.shuffle(annotations)
        process = [("args", ["sh", "-c", self.text()]), ("cwd", "/")]
        self.maybe(process, "env", self.env())
        resources = [("pids", Members([("limit", Raw(self.random.choice(NUMBERS)))]))]
        self.maybe(resources, "devices", self.rules())
        linux = [("cgroupsPath", "/kubepods/target"),
                 ("namespaces", [Members([("type", t)]) for t in ("pid", "mount")])]
        self.maybe(linux, "devices", self.devices())
        self.maybe(linux, "resources", self.with_unknown(resources))
        top = [("ociVersion", "1.0.2-dev"), ("process", self.with_unknown(process)),
               ("root", Members([("path", "rootfs")])), ("annotations", Members(annotations)),
               ("linux", self.with_unknown(linux))]
        self.maybe(top, "mounts", self.mounts())
        self.maybe(top, "hooks", self.hooks())
        text = self.print(self.with_unknown(top))
        around = [self.random.choice(["", "", "\n", " ", "\r\n\t"]) for _ in range(2)]
        return (around[0] + text + around[1]).encode()

    # Printing.
    def string(self, text):
        out = []
        for char in text:
            code = ord(char)
            if char in '"\\':
                out.append("\\" + char)
            elif code < 0x20 or self.chance(self.escape):
                units = char.encode("utf-16-be")
                out += ["\\u%02x%02x" % (units[i], units[i + 1]) for i in range(0, len(units), 2)]
            elif char == "/" and self.chance(self.escape):
                out.append("\\/")
            else:
                out.append(char)
        return '"' + "".join(out) + '"'

    def space(self, depth, inside):
        """White space before an element (inside) or a closing bracket."""
        if self.style == "pretty":
            return "\n" + "  " * (depth + inside)
        if self.style == "tabs":
            return "\r\n" + "\t" * (depth + inside)
        if self.style == "odd":
            return "".join(self.random.choice(" \t\r\n") for _ in range(self.random.randrange(3)))
        return " " if self.style == "spaced" and inside else ""

    def print(self, value, depth=0):
        if isinstance(value, Raw):
            return value.text
        if isinstance(value, str):
            return self.string(value)
        brackets = "{}" if isinstance(value, Members) else "[]"
        parts = []
        for item in value:
            text = self.space(depth, True)
            if brackets == "{}":
                key, item = item
                text += self.string(key) + self.random.choice(["", " "]) * (self.style == "odd")
                text += ":" if self.style == "compact" else ": "
            text += self.print(item, depth + 1)
            parts.append(text + (self.space(0, False) if self.style == "odd" else ""))
        end = self.space(depth, False) if parts or self.style == "odd" else ""
        return brackets[0] + ",".join(parts) + end + brackets[1]


def create(node, text):
    node.make_bundle("target", text)
    result = node.run(node.create_args("target"), cwd=node.bundle("target"))
    need(result.status == fakenode.STARTED and not result.err, "status", result.status, result.err)
    return fakenode.read(node.bundle("target") + "/config.json")


def one(node, seed):
    text = Maker(seed).spec(annotation=False)
    jsontext.parse(text)
    need(create(node, text) == text, "config.json changed without an annotation")
    text = Maker(seed).spec()
    new = create(node, text)
    need(new != text, "nothing changed")
    specs.got_card(text, new)
    try:
        json.loads(new)
    except RecursionError:
        pass  # as deep as some specs are, jsontext.parse() has read it without recursion
    need(create(node, new) == new, "a second run changed it again")
    spec = node.record("target")["spec"]
    need([d["path"] for d in spec["linux"]["devices"]] == [n[0] for n in specs.NODES],
         "the record has", spec)


def batch(node, first, count):
    specs.cards(node)
    source = Maker(first)
    source.escape = 0.3
    node.container("main", specs.dumps(specs.source()))
    for seed in range(first, first + count):
        try:
            one(node, seed)
        except Exception as error:
            fakenode.write(os.path.join(fakenode.TOP, "build/test-logs/property/%d.json" % seed),
                           fakenode.read(node.bundle("target") + "/config.json"))
            raise tap.Failed("SEED=%d COUNT=1 shows it: %s: %s"
                             % (seed, type(error).__name__, error)) from error


def main():
    node = fakenode.enter()
    sys.setrecursionlimit(20000)
    count, first = int(os.environ.get("COUNT", "300")), int(os.environ.get("SEED", "1"))
    tests = [("random specs %d to %d" % (at, min(at + BATCH, first + count) - 1),
              lambda a=at: batch(node, a, min(BATCH, first + count - a)))
             for at in range(first, first + count, BATCH)]
    sys.argv = sys.argv[:1]
    tap.main(tests, node.reset)


if __name__ == "__main__":
    main()
