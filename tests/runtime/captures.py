#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""config.json files and command lines that real engines made (captures/): untouched where nothing
asks for a card; with an annotation and a live source, different in the meant places only. Prints
TAP."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import jsontext  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from tap import need  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "captures")
MINE = "gpushare.k8s.io/"


def annotations(text):
    """The captured annotations, decoded, with the place of each in the text."""
    found = jsontext.parse(text).get("annotations")
    return {k: v for k, v in found.members} if found else {}


def without_mine(text):
    """The same text without annotations of ours."""
    for key in annotations(text):
        if key.startswith(MINE):
            value = annotations(text)[key]
            start = text.rindex(b'"' + key.encode(), 0, value.start)
            end = value.end + (text[value.end:value.end + 1] == b",")
            text = text[:start] + text[end:]
    return text.replace(b",}", b"}")


def with_annotation(text, key, value):
    """The same text with one annotation more."""
    pair = b'"%s":"%s"' % (key.encode(), value.encode())
    found = jsontext.parse(text).get("annotations")
    if found is None:
        start = text.index(b"{") + 1
        return text[:start] + b'"annotations":{' + pair + b"}," + text[start:]
    comma = b"," if found.members else b""
    return text[:found.start + 1] + pair + comma + text[found.start + 1:]


def create(node, text):
    node.make_bundle("target", text)
    result = node.run(node.create_args("target"), cwd=node.bundle("target"))
    need(result.status == fakenode.STARTED, result.err)
    need(result.out == b"" and result.err == b"", "it said something:", result.err)
    return fakenode.read(node.bundle("target") + "/config.json")


def is_from_cri(text):
    return "io.kubernetes.cri.sandbox-id" in annotations(text)


def prepare(node, text):
    """A node with a live source in the captured container's pod; gives the container's name."""
    specs.cards(node)
    if not is_from_cri(text):
        node.configure({"cri": "none"})
        node.container("main", specs.dumps(specs.source(who={MINE + "identity": "a/b/main"})))
        return "box"
    here = {k: text[v.start + 1:v.end - 1].decode() for k, v in annotations(text).items()}
    # The captured pod's own main container is the target in one capture.
    here["io.kubernetes.cri.container-name"] = "source"
    here["io.kubernetes.cri.container-type"] = "container"
    who = {k: v for k, v in here.items() if not k.startswith(MINE)}
    node.container("source", specs.dumps(specs.source("source", who=who)))
    return jsontext.unescape(b'"%s"' % name_of(text)) if name_of(text) else None


def name_of(text):
    value = annotations(text).get("io.kubernetes.cri.container-name")
    return text[value.start + 1:value.end - 1] if value else None


def untouched(node, text):
    specs.cards(node)
    text = without_mine(text)
    need(create(node, text) == text, "config.json changed")


def untouched_as_captured(node, text):
    """With the pod's annotations as they were, where they are another container's."""
    specs.cards(node)
    need(create(node, text) == text, "config.json changed")


def rewritten(node, text):
    text = without_mine(text)
    name = prepare(node, text)
    if is_from_cri(text):
        text = with_annotation(text, "%s.%s" % (specs.FROM, name), "_/_/source")
    else:
        text = with_annotation(text, MINE + "identity", "a/b/" + name)
        text = with_annotation(text, "%s.%s" % (specs.FROM, name), "_/_/main")
    new = create(node, text)
    if name_of(text) is None and is_from_cri(text):
        need(new == text, "the sandbox was changed")
        return
    if b'"allow":true,"access":"rwm"' in text.replace(b" ", b""):
        fenced(text, new)
    else:
        specs.got_card(text, new)
    need(create(node, new) == new, "the second run changed it again")


def fenced(old, new):
    """A privileged one: only rules, devices, environment and hooks may differ."""
    differs = jsontext.outside_differs(old, new)
    need(differs is None, differs)
    before = jsontext.elements(old, "linux", "devices")
    after = jsontext.elements(new, "linux", "devices")
    need([e for e in before if b"/dev/nvidia" not in e] ==
         [e for e in after if b"/dev/nvidia" not in e], "other devices changed")
    specs.appended(old, new, ("mounts",), [])
    specs.appended(old, new, ("hooks", "createRuntime"), [specs.HOOK])


def command_lines(node):
    """Every captured call reaches the next runtime as it was made."""
    for line in fakenode.read(FOLDER + "/argv.txt").decode().splitlines():
        if line.startswith("#"):
            continue
        result = node.run(line.split(" "))
        need(result.status == fakenode.STARTED, line, "->", result.status, result.err)
        need(result.calls[0].args[1:] == line.split(" "), line, "became", result.calls[0].args)


def main():
    node = fakenode.enter()
    tests = [("command-lines", lambda: command_lines(node))]
    for file in sorted(os.listdir(FOLDER + "/cases")):
        text = fakenode.read(os.path.join(FOLDER, "cases", file))
        name = file.removesuffix(".json")
        for function in (untouched, rewritten):
            tests.append(("%s-%s" % (name, function.__name__),
                          lambda f=function, t=text: f(node, t)))
        if name_of(text) != b"dind":
            tests.append((name + "-as-captured", lambda t=text: untouched_as_captured(node, t)))
    tap.main(tests, node.reset)


if __name__ == "__main__":
    main()
