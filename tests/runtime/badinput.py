#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Malformed annotations, configuration, catalogue, grants, registry, pid files and bundles: each
gives one clear error that names the thing, and none stops a container that asks for nothing. Prints
TAP; arguments choose tests by the beginning of their names."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import refusal  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from refusal import State  # noqa: E402
from specs import FROM, GRANT, dumps  # noqa: E402
from tap import need  # noqa: E402

KEY = FROM + ".dind"
NODE = None


def run(text, **more):
    fakenode.forget(NODE.make_bundle("target", text) + "/log.json")
    before = State(NODE)
    return before, NODE.run(NODE.create_args("target"), cwd=NODE.bundle("target"), **more)


def refused(text, message):
    """A create of that config.json fails as it should; gives the message."""
    before, result = run(text)
    return refusal.check(NODE, result, message, before, NODE.bundle("target") + "/log.json")


def passes(text):
    """A create of that config.json goes on, and not one byte changes."""
    before, result = run(text)
    need(result.status == fakenode.STARTED, "status", result.status, result.err)
    need(State(NODE).place == before.place, "config.json was written")


def with_source():
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))


# Annotations that name sources.
PART = '"%s" is not <namespace>/<pod>/<container>: %s'
NS, POD, NAME = ("its namespace is no DNS label (RFC 1123)", "its pod is no DNS name (RFC 1123)",
                 "its container is no DNS label (RFC 1123)")
FEW, MANY, EMPTY = ("it has fewer than three parts", "it has more than three parts", "it is empty")
SOURCES = [
    ("", "", EMPTY), ("main", "main", FEW), ("a/b", "a/b", FEW), ("a/b/c/d", "a/b/c/d", MANY),
    ("/b/c", "/b/c", NS), ("a//c", "a//c", POD), ("a/b/", "a/b/", NAME), ("//", "//", NS),
    ("/", "/", FEW), ("///", "///", MANY), ("_/_/_", "_/_/_", NAME), ("A/b/c", "A/b/c", NS),
    ("a/B/c", "a/B/c", POD), ("a/b/C", "a/b/C", NAME), ("a/b/c ", "a/b/c ", NAME),
    (" a/b/c", " a/b/c", NS), ("a/b/c\n", "a/b/c?", NAME), ("a/b\t/c", "a/b?/c", POD),
    ("a/b/c,", "", EMPTY), (",a/b/c", "", EMPTY), ("_/_/main,,_/_/x", "", EMPTY),
    ("../../etc/x/y", "../../etc/x/y", MANY), ("a/../c", "a/../c", POD), ("./b/c", "./b/c", NS),
    ("a/./c", "a/./c", POD), ("a/b/..", "a/b/..", NAME), ("a/b/.", "a/b/.", NAME),
    ("a%2Fb%2Fc", "a%2Fb%2Fc", FEW), ("a\\b\\c", "a\\b\\c", FEW), ("a/b/c;d", "a/b/c;d", NAME),
    ("ä/b/c", "??/b/c", NS), ("-a/b/c", "-a/b/c", NS), ("a-/b/c", "a-/b/c", NS),
    ("a/b.-c/d", "a/b.-c/d", POD), ("a/.b/c", "a/.b/c", POD), ("a/b./c", "a/b./c", POD),
    ("a/b/c.d", "a/b/c.d", NAME), ("a.b/c/d", "a.b/c/d", NS), ("a/b/c=d", "a/b/c=d", NAME),
    ("~/b/c", "~/b/c", NS), ("a/*/c", "a/*/c", POD), ("a/b/$(id)", "a/b/$(id)", NAME),
    ("\u001b[31ma/b/c", "?[31ma/b/c", NS), ("_a/b/c", "_a/b/c", NS), ("__/b/c", "__/b/c", NS),
    ("n" * 64 + "/b/c", "n" * 64 + "@ANY@", NS), ("a/" + "p" * 254 + "/c", "a/ppp@ANY@", POD),
    ("a/b/" + "c" * 64, "a/b/ccc@ANY@", NAME), ("x" * 16384, "xxx@ANY@...", FEW),
]


def source_names():
    with_source()
    for value, quoted, why in SOURCES:
        said = refused(dumps(specs.target(value)),
                       "annotation %s: %s" % (KEY, PART % (quoted, why)))
        need(len(said) < 400, "the value is not cut:", said)


def source_values():
    """What is no name at all."""
    with_source()
    many = ",".join("_/_/x%d" % i for i in range(17))
    refused(dumps(specs.target(many)), "annotation %s: more than 16 sources" % KEY)
    refused(dumps(specs.target("x" * 16385)),
            "annotation %s: 16385 characters are more than 16384" % KEY)
    refused(dumps(specs.target("_/_/main\0")),
            "annotation %s: the value holds a NUL character" % KEY)
    for value in (5, True, ["_/_/main"], {"a": "b"}, 1.5):
        refused(dumps(specs.target(value)), "annotation %s: @ANY@ is not a string" % KEY)
    passes(dumps(specs.target(None)))
    twice = dumps(specs.target()).replace(b'"_/_/main"', b'"_/_/main","%s":"_/_/x"' % KEY.encode())
    refused(twice, 'annotations: "%s" stands twice' % KEY)
    escaped = dumps(specs.target()).replace(
        b'"_/_/main"', b'"_/_/main","%s":"_/_/x"' % KEY.replace("/", "\\/").encode())
    refused(escaped, 'annotations: "%s" stands twice' % KEY)


LONG = [
    ("dind", '"dind"'), ("=_/_/main", '"=_/_/main"'), ("Dind=_/_/main", '"Dind=_/_/main"'),
    ("dind =_/_/main", '"dind =_/_/main"'), ("a/b=_/_/main", '"a/b=_/_/main"'),
    ("other=_/_/x;oops", '"oops"'), ("../x=_/_/main", '"../x=_/_/main"'),
    ("d" * 64 + "=_/_/main", '"ddd@ANY@'), ("dind=_/_/main\r\n", None),
]


def long_form():
    with_source()
    for value, quoted in LONG:
        if quoted is None:
            message = "annotation %s: @ANY@%s" % (FROM, NAME)
        else:
            message = "annotation %s: entry %s is not <container>=<source>[,<source>]" % (FROM,
                                                                                         quoted)
        refused(dumps(specs.target(value, key=FROM)), message)
    refused(dumps(specs.target("dind=", key=FROM)),
            "annotation %s: %s" % (FROM, PART % ("", EMPTY)))
    refused(dumps(specs.target("dind=_/_/main;dind=_/_/main", key=FROM)),
            "annotation %s: two entries for container dind" % FROM)
    refused(dumps(specs.target("dind=a/b", key=FROM)),
            "annotation %s: %s" % (FROM, PART % ("a/b", FEW)))
    passes(dumps(specs.target(";;\n;", key=FROM)))
    passes(dumps(specs.target("other=not even a name", key=FROM)))


NONE = "is no quantity (examples: 2, 500m, 1.5, 512Mi, 1e3)"
QUANTITIES = [
    ("", NONE), ("abc", NONE), ("1e", NONE), ("--1", NONE), ("0x10", NONE), ("1 ", NONE),
    (" 1", NONE), ("1,5", NONE), ("1.5.5", NONE), ("1KB", NONE), ("1kk", NONE), ("1Mib", NONE),
    (".", NONE), ("+", NONE), ("1e1.5", NONE), ("nan", NONE), ("inf", NONE), ("1m m", NONE),
    ("9" * 40, "is too large a quantity"), ("1e400", "is too large a quantity"),
    ("99999999999Ei", "is too large a quantity"), ("-1", "is negative"),
    ("0", "must be more than zero"), ("0m", "must be more than zero"),
    ("0.0", "must be more than zero"),
]


def quantities():
    for key in ("vcpu", "vmem"):
        for value, why in QUANTITIES:
            spec = specs.target(key=None, **{"gpushare.k8s.io/" + key: value})
            refused(dumps(spec), 'annotation gpushare.k8s.io/%s: "%s" %s' % (key, value, why))
        refused(dumps(specs.target(key=None, **{"gpushare.k8s.io/" + key: 5})),
                "annotation gpushare.k8s.io/%s: @ANY@ is not a string" % key)


def own_identity():
    """Names of the container itself: from the kubelet, and still checked."""
    with_source()
    for key, value in (("container-name", "../main"), ("sandbox-name", "a/b"),
                       ("sandbox-namespace", "_"), ("sandbox-namespace", ""),
                       ("sandbox-name", "x" * 254)):
        spec = specs.target(**{"io.kubernetes.cri." + key: value})
        refused(dumps(spec), "the container's own identity: @ANY@is not "
                "<namespace>/<pod>/<container>: @ANY@")
        spec["annotations"] = {k: v for k, v in spec["annotations"].items() if "gpushare" not in k}
        passes(dumps(spec))
    twice = dumps(specs.target()).replace(
        b'"io.kubernetes.cri.container-name":"dind"',
        b'"io.kubernetes.cri.container-name":"dind","io.kubernetes.cri.container-name":"main"')
    refused(twice, 'annotations: "io.kubernetes.cri.container-name" stands twice')


# Grants.
NAMES = ["", "../../etc/passwd", "0" * 31, "0" * 33, "0123456789ABCDEF0123456789ABCDEF",
         "0" * 31 + "g", "0" * 32 + "\n", "0" * 32 + ".json", "/" + "0" * 31, " " + "0" * 32,
         "..", ".", "0" * 16 + "/" + "0" * 15, "0" * 15 + "%2f" + "0" * 14]


def grant_names():
    for name in NAMES:
        said = refused(dumps(specs.target(key=None, **{GRANT: name})),
                       "annotation %s: not the name of a grant (32 lower-case hex digits)" % GRANT)
        need(not name or len(name) < 3 or name not in said, "the name is in the message:", said)


FULL = "0123456789abcdef0123456789abcdef"
SHORT = "grant 012345..."
BAD_GRANTS = [
    ("not json", "{", "@ANY@"), ("empty", "", "@ANY@"), ("a list", "[]", "@ANY@object@ANY@"),
    ("no version", {"v": None}, "v is missing"), ("version 2", {"v": 2}, "v is 2, and @ANY@"),
    ("no kind", {"kind": None}, "kind is missing"),
    ("kind", {"kind": "gift"}, "kind must be @ANY@"),
    ("state", {"state": "asleep"}, "state must be @ANY@"),
    ("no state", {"state": None}, "state @ANY@"),
    ("no sources", {"sources": None}, "sources @ANY@"),
    ("sources", {"sources": "a/b/c"}, "sources @ANY@"),
    ("no source", {"sources": []}, "sources @ANY@"),
    ("source", {"sources": ["../x"]}, "sources: \"../x\" @ANY@"),
    ("source here", {"sources": ["_/_/main"]}, "sources: \"_/_/main\" @ANY@"),
    ("to", {"to": "dind"}, "to: \"dind\" @ANY@"),
    ("unknown key", {"color": "red"}, "@ANY@color@ANY@"),
    ("resource", {"resource": 5}, "resource must be a string"),
    ("cards", {"cards": [1]}, "cards @ANY@"),
    ("spot without lease", {"kind": "spot"}, "lease is missing"),
    ("lease", {"kind": "spot", "lease": 5}, "lease must be an object"),
    ("lease of a share", {"lease": "live"}, "a share grant has no lease"),
    ("lease without deadline", {"kind": "spot", "lease": {"boot_id": "x"}},
     "lease: deadline_ms is missing"),
    ("lease deadline", {"kind": "spot", "lease": {"boot_id": "x", "deadline_ms": -1}},
     "@ANY@deadline_ms@ANY@"),
]


def grant_files():
    path = "%s/grants/%s.json" % (fakenode.LIB, FULL)
    text = dumps(specs.target(key=None, **{GRANT: FULL}))
    for name, content, message in BAD_GRANTS:
        if isinstance(content, dict):
            NODE.grant(FULL, **content)
        else:
            NODE.grant(FULL)
            fakenode.write(path, content)
        said = refused(text, "annotation %s: @ANY@%s@ANY@%s" % (GRANT, SHORT, message))
        need(FULL not in said, "the whole name is in the message")
    fakenode.write(path, b"x" * 70000)
    refused(text, "annotation %s: %s: @ANY@larger than@ANY@" % (GRANT, SHORT))


def bound_files():
    specs.cards(NODE)
    NODE.container("holder", dumps(specs.source("holder", who=specs.other_pod())))
    text = dumps(specs.target(key=None, **{GRANT: FULL}))
    for content in ("", "{", "[]", "{}", '{"v":1}', '{"v":2,"pod_uid":"x","container":"dind"}',
                    '{"v":1,"pod_uid":5,"container":"dind"}', '{"v":1,"pod_uid":"%s"}' % specs.UID):
        NODE.grant(FULL, resource="gpushare/share-gpu")
        fakenode.write("%s/grants/%s.bound" % (fakenode.LIB, FULL), content, 0o600)
        refused(text, "%s@ANY@" % SHORT)


# Configuration.
CONFIGS = [
    ("{", ": line 1, column 2: @ANY@"), ("", ": line 1, column 1: @ANY@"),
    ('{"next":["runc"]}x', ": line 1, column 18: @ANY@"), ("[]", ":1:1: must be a JSON object"),
    ('{\n "next": []}', ":2:10: next must name at least one runtime"),
    ('{"next":"runc"}', ":1:9: next must be a list"),
    ('{"next":[5]}', ":1:10: next must be a list of strings"),
    ('{"next":["bin/runc"]}', ':1:9: next must hold names or absolute paths, not "bin/runc"'),
    ('{"next":[""]}', ':1:9: next must hold names or absolute paths, not ""'),
    ('{"next":["runc"],"next":["crun"]}', ':1:18: key "next" stands twice'),
    ('{"cri":"docker"}', ':1:8: cri must be "containerd", "cri-o" or "none"'),
    ('{"cri":5}', ":1:8: cri must be a string"),
    ('{"run_dir":"run"}', ':1:12: run_dir must be an absolute path, not "run"'),
    ('{"lib_dir":""}', ':1:12: lib_dir must be an absolute path, not ""'),
    ('{"hook":"hook"}', ':1:9: hook must be an absolute path, not "hook"'),
    ('{"vendor_dirs":["v"]}', ':1:16: vendor_dirs must be an absolute path, not "v"'),
    ('{"state_dirs":{}}', ":1:15: state_dirs must be a list"),
    ('{"cross_pod":"yes"}', ':1:14: cross_pod must be "grant" or "annotation"'),
    ('{"fence_privileged":"yes"}', ":1:21: fence_privileged must be true or false"),
    ('{"refuse_unconfirmed":1}', ":1:23: refuse_unconfirmed must be true or false"),
    ('{"create_wait_ms":-1}', ":1:19: create_wait_ms must be a whole number from 0"),
    ('{"create_wait_ms":1.5}', ":1:19: create_wait_ms must be a whole number from 0"),
    ('{"create_wait_ms":15001}', ":1:19: create_wait_ms must be at most 15000"),
    ('{"create_wait_ms":99999999999999999999}',
     ":1:19: create_wait_ms must be a whole number from 0"),
    ('{"log":[]}', ":1:8: log must be an object"),
    ('{"log":{"level":"loud"}}', ':1:17: level must be "error", "warn", "info" or "debug"'),
    ('{"log":{"file":"log"}}', ':1:16: file must be an absolute path, not "log"'),
    ('{"log":{"size":1}}', ':1:9: unknown key "size" in log'),
    ('{"profiles":{"x":{}}}', ':1:18: key "next" is missing in a profile'),
    ('{"profiles":{"x":{"next":[]}}}', ":1:26: next must name at least one runtime"),
    ('{"profiles":[]}', ":1:13: profiles must be an object"),
    ('{"agent":[]}', ":1:10: agent must be an object"),
    ('{"controller":0}', ":1:15: controller must be an object"),
    ('{\n\n  "nxt": ["runc"]\n}', ':3:3: unknown key "nxt" in the configuration'),
    ('{"next":["\\ud800"]}', ": line 1, column 17: lone surrogate in a string"),
    (b'{"next":["\xff"]}', ": line 1, column 11: invalid UTF-8 in a string"),
    ('{"hook":"/a\\u0000b"}', ":1:9: hook must be a string without U+0000"),
]


def configurations():
    asks, plain = dumps(specs.target()), dumps(specs.target(key=None))
    for text, message in CONFIGS:
        NODE.configure({}, text)
        refused(asks, fakenode.CONFIG + message)
        passes(plain)
    NODE.configure({}, '{"x":"%s"}' % ("x" * 1100000))
    refused(asks, "@ANY@%s is larger than 1048576 bytes" % fakenode.CONFIG)
    passes(plain)
    fakenode.forget(fakenode.CONFIG)
    os.mkfifo(fakenode.CONFIG)
    refused(asks, "%s is not a regular file" % fakenode.CONFIG)
    passes(plain)


def configuration_path():
    env = {"PATH": fakenode.BIN, "GPUSHARE_CONFIG": "config.json"}
    before, result = run(dumps(specs.target()), env=env)
    refusal.check(NODE, result, 'GPUSHARE_CONFIG must be an absolute path, not "config.json"',
                  before, NODE.bundle("target") + "/log.json")


# The catalogue.
VENDOR = {"name": "mine", "title": "Mine", "nodes": [{"glob": "/dev/mine*", "kind": "card"}]}
VENDORS = [
    ("{", ": line 1, column 2: @ANY@"), ("[]", ":1:1: must be a JSON object"),
    ("", ": line 1, column 1: @ANY@"), ({"name": None}, 'key "name" is missing@ANY@'),
    ({"name": "Mine!"}, "name must be lower-case letters, digits and '-'"),
    ({"title": None}, 'key "title" is missing@ANY@'), ({"nodes": []}, "nodes must not be empty"),
    ({"nodes": None}, 'key "nodes" is missing@ANY@'), ({"nodes": [5]}, "a node must be an object"),
    ({"nodes": [{"glob": "dev/x", "kind": "card"}]}, 'glob must be an absolute path@ANY@"dev/x"'),
    ({"nodes": [{"glob": "/hostdev/x", "kind": "card"}]},
     'glob must begin with "/dev/", not "/hostdev/x"'),
    ({"nodes": [{"glob": "/dev/[x", "kind": "card"}]}, 'glob: the pattern "/dev/[x" has @ANY@'),
    ({"nodes": [{"glob": "/dev/../x", "kind": "card"}]}, "glob must be an absolute path@ANY@"),
    ({"nodes": [{"glob": "/dev/x", "kind": "pie"}]}, 'kind must be "card", "shared" or "control"'),
    ({"nodes": [{"glob": "/dev/x"}]}, 'key "kind" is missing in a node'),
    ({"nodes": [{"glob": "/dev/x", "kind": "card", "major": 5}]}, 'unknown key "major" in a node'),
    ({"env": [{"name": "A=B", "merge": "list"}]}, "name must be letters, digits and '_'"),
    ({"env": [{"name": "A", "merge": "sum"}]}, 'merge must be "list", "replace" or "local"'),
    ({"env": [{"name": "A", "merge": "list"}, {"name": "A", "merge": "list"}]},
     "variable A stands twice"),
    ({"mounts": ["relative"]}, "a mount must be an absolute path@ANY@"),
    ({"mounts": [{"to": "/x", "from": []}]}, "from must not be empty"),
    ({"mount_roots": ["relative"]}, "mount_roots must hold@ANY@"),
    ({"select_none": [1]}, "select_none must be a list of strings"),
    ({"driver": {"ioctl_magic": ["FF"]}}, "@ANY@magic@ANY@"),
    ({"load": {"source": "guess"}}, "source must be @ANY@"),
    ({"inventory": {}}, 'key "source" is missing'),
    ({"colour": 1}, 'unknown key "colour" in the entry'),
]


def catalogue():
    path = fakenode.VENDORS + "/zz-mine.json"
    asks, plain = dumps(specs.target()), dumps(specs.target(key=None))
    for content, message in VENDORS:
        if isinstance(content, dict):
            entry = {k: v for k, v in {**VENDOR, **content}.items() if v is not None}
            content, message = json.dumps(entry), ":@ANY@: " + message
        fakenode.write(path, content)
        refused(asks, path + message)
        passes(plain)
    fakenode.write(path, json.dumps({**VENDOR, "name": "nvidia"}))
    refused(asks, '%s: name "nvidia" is taken by %s/nvidia.json' % (path, fakenode.VENDORS))
    fakenode.write(path, b"x" * 300000)
    refused(asks, "@ANY@%s is larger than 262144 bytes" % path)
    fakenode.forget(path)
    os.mkfifo(path)
    refused(asks, "%s is not a regular file" % path)
    passes(plain)


# The registry.
def record_path(name="main"):
    return "%s/containers/%s.json" % (fakenode.RUN, name)


DEAD = "source team-a/devpod/main is not running"
SKIPPED = DEAD + " (unreadable records were skipped)"


def damaged_records():
    """A damaged record is no record; the container it stood for is not found by scanning either,
    since nobody knows what gpushare had made of it."""
    with_source()
    good = json.loads(fakenode.read(record_path()))
    asks = dumps(specs.target())
    changes = [{"v": 2}, {"v": None}, {"id": "other"}, {"id": None}, {"bundle": 5},
               {"bundle": None}, {"role": "king"}, {"role": None}, {"spec": None}, {"spec": []},
               {"start_ticks": -1},
               {"start_ticks": "1"}, {"sources": "x"}, {"shared_pid": 1}, {"annotations": []},
               {"identity": {"pod": "devpod"}}, {"identity": 5}]
    texts = [json.dumps({k: v for k, v in {**good, **c}.items() if v is not None}) for c in changes]
    texts += ["", "{", "[]", "null", json.dumps(good)[:-20], json.dumps(good) + "x", "\0" * 100]
    for text in texts:
        fakenode.write(record_path(), text)
        refused(asks, SKIPPED)
    fakenode.write(record_path(), b" " * 5000000)
    refused(asks, SKIPPED)
    other = dict(good, identity={"namespace": "team-a", "pod": "devpod", "container": "else"})
    fakenode.write(record_path(), json.dumps(other))
    refused(asks, DEAD)
    fakenode.forget(record_path())
    os.symlink("/etc/passwd", record_path())
    refused(asks, SKIPPED)
    fakenode.forget(record_path())
    os.mkfifo(record_path())
    refused(asks, SKIPPED)


def damaged_spec_in_record():
    with_source()
    good = json.loads(fakenode.read(record_path()))
    good["spec"]["linux"]["devices"][0]["type"] = "z"
    fakenode.write(record_path(), json.dumps(good))
    refused(dumps(specs.target()), "source team-a/devpod/main: record of container main: "
            "linux.devices[0]: type of /dev/nvidia0 is none of c, b, u, p")


def one_broken_record_beside_a_good_one():
    """A broken entry never stops the search."""
    with_source()
    folder = os.path.join(fakenode.RUN, "by-name",
                          os.listdir(fakenode.RUN + "/by-name")[0])
    for name in ("broken", "gone", ".hidden", "..x", "a b", "x" * 210):
        fakenode.write(os.path.join(folder, name), "")
    fakenode.write(record_path("broken"), "{")
    text = dumps(specs.target())
    _, result = run(text)
    need(result.status == fakenode.STARTED, result.err)
    specs.got_card(text, fakenode.read(NODE.bundle("target") + "/config.json"))


def registry_folders():
    """The registry belongs to root alone: one that others can write to is not used. A holder goes
    on without a record."""
    holder = dumps(specs.source("target"))
    for mode, message in ((0o777, "may be written by others than root (mode 0777)"),
                          (0o720, "may be written by others than root (mode 0720)")):
        with_source()
        for folder in ("containers", "by-name"):
            path = "%s/%s" % (fakenode.RUN, folder)
            os.chmod(path, mode)
            _, result = run(dumps(specs.target()))
            need(result.status == 1 and not result.calls, "status", result.status, result.err)
            os.chmod(path, 0o700)
        os.chmod(fakenode.RUN, mode)
        refused(dumps(specs.target()), SKIPPED)
        passes(holder)
        need(NODE.record("target") is None, "it wrote into a folder of everybody")
        NODE.reset()
    with_source()
    os.chown(fakenode.RUN + "/containers", 1000, 1000)
    refused(dumps(specs.target()), SKIPPED)
    passes(holder)
    NODE.reset()
    with_source()
    os.rename(fakenode.RUN + "/containers", fakenode.RUN + "/moved")
    os.symlink("moved", fakenode.RUN + "/containers")
    refused(dumps(specs.target()), SKIPPED)
    passes(holder)
    NODE.reset()
    fakenode.write(fakenode.RUN, "a file where the folder belongs")
    passes(holder)
    fakenode.forget(fakenode.RUN)


def record_can_not_be_written():
    """A target without a record would be nobody's: it is refused. A holder goes on."""
    with_source()
    os.makedirs(record_path("target") + "/x")
    _, result = run(dumps(specs.target()))
    need(result.status == 1 and not result.calls, "status", result.status, result.err)
    need(record_path("target").encode() in result.err, "the file is not named:", result.err)
    passes(dumps(specs.source("target")))


def pid_files():
    """The pid file is believed only with a process of that container."""
    with_source()
    path = NODE.pid_file("main")
    asks = dumps(specs.target())
    good = fakenode.read(path)
    bad = ["", "x", "-1", "0", "1x", "99999999999999999999", "2147483648", " 1", "+1", "0x1", "\0"]
    for text in bad:
        fakenode.write(path, text)
        refused(asks, DEAD + ": container main: @ANY@")
    fakenode.write(path, "1")  # a process older than the record
    refused(asks, DEAD + ": container main: process 1 is older than it")
    fakenode.forget(path)
    os.symlink(fakenode.HOME + "/elsewhere", path)
    fakenode.write(fakenode.HOME + "/elsewhere", good)
    refused(asks, DEAD + ": container main: @ANY@")
    fakenode.forget(path)
    os.mkfifo(path)
    refused(asks, DEAD + ": container main: @ANY@ is not a regular file")
    fakenode.forget(path)
    os.mkdir(path)
    refused(asks, DEAD + ": container main: @ANY@ is not a regular file")
    os.rmdir(path)
    stranger = NODE.start("stranger-of-another-cgroup", "/kubepods/elsewhere")
    fakenode.write(path, str(stranger))
    refused(asks, DEAD + ": container main: process %d is in cgroup "
            "@ANY@/kubepods/elsewhere, not /kubepods/pod%s/main" % (stranger, specs.UID))
    fakenode.write(path, good + b"\n")
    need(run(asks)[1].status == fakenode.STARTED, "the good one is not believed")


def hook_records():
    """The hook's record is believed only while that very process lives."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()), ("hooked",))
    path = fakenode.RUN + "/containers/main.hook.json"
    good = json.loads(fakenode.read(path))
    asks = dumps(specs.target())
    need(run(asks)[1].status == fakenode.STARTED, "the good one is not believed")
    fakenode.write(path, json.dumps(dict(good, start_ticks=good["start_ticks"] + 1)))
    refused_text = DEAD + ": container main: process %d is another one now"
    empty_target()
    refused(asks, refused_text % good["pid"])
    fakenode.write(path, "{")  # no more than a missing one: the pid file tells
    need(run(asks)[1].status == fakenode.STARTED, "a damaged hook's record was believed")
    empty_target()
    NODE.stop("main")
    fakenode.write(path, json.dumps(good))
    refused(asks, DEAD + ": container main: @ANY@")


def empty_target():
    for folder in ("containers", "by-name"):
        for top, _, files in os.walk("%s/%s" % (fakenode.RUN, folder)):
            for file in files:
                if file.split(".")[0] == "target":
                    os.unlink(os.path.join(top, file))


def next_links():
    """The recorded next runtime is used where it still exists."""
    with_source()
    link = fakenode.RUN + "/containers/main.next"
    for to in ("/nonexistent", "/etc/passwd", "relative"):
        fakenode.forget(link)
        os.symlink(to + "\n/run/containerd/runc/k8s.io", link)
        result = NODE.run(["--root", "/run/containerd/runc/k8s.io", "start", "main"])
        need(result.status == fakenode.STARTED and result.calls[0].exe.endswith("/runc"), to,
             result.status, result.err)


# Bundles and container ids.
def bundles():
    with_source()
    text = dumps(specs.target())
    folder = NODE.make_bundle("target", text)
    fakenode.write(fakenode.HOME + "/tmp/file", "x")
    for bundle in (fakenode.HOME + "/tmp/file", "/nonexistent", "/proc/self/mem", "/dev/null"):
        result = NODE.run(["create", "--bundle", bundle, "target"])
        need(result.status == fakenode.STARTED, "it is the next runtime's to refuse", bundle)
    before = State(NODE)
    result = NODE.run(["--log", folder + "/log.json", "--log-format", "json", "create", "--bundle",
                       "", "target"], cwd=folder)
    refusal.check(NODE, result, 'command line: "--bundle": an empty bundle path', before,
                  folder + "/log.json")
    for make in (os.mkfifo, os.mkdir, lambda p: os.symlink("config.json", p),
                 lambda p: os.symlink("/dev/zero", p), lambda p: os.mknod(p, 0o60600, 0)):
        fakenode.forget(folder + "/config.json")
        make(folder + "/config.json")
        result = NODE.run(NODE.create_args("target"), cwd=folder)
        need(result.status == fakenode.STARTED, "it is the next runtime's to refuse", result.err)


def container_ids():
    with_source()
    for name in ("../x", "a/b", ".hidden", "x" * 201, "a b", "x.hook", ""):
        folder = NODE.make_bundle("target", dumps(specs.target()))
        before = State(NODE)
        result = NODE.run(["--log", folder + "/log.json", "--log-format", "json", "create",
                           "--bundle", folder, name], cwd=folder)
        refusal.check(NODE, result, "the container id is missing or malformed", before,
                      folder + "/log.json")
        os.unlink(folder + "/log.json")
        for verb in ("delete", "start", "state"):
            result = NODE.run([verb, name])
            need(result.status == fakenode.STARTED, verb, name, result.err)
        # a holder only loses its record
        NODE.make_bundle("target", dumps(specs.source("target")))
        need(NODE.run(["create", "--bundle", folder, name]).status == fakenode.STARTED, name)
    left = [f for _, _, files in os.walk("/run") for f in files if f.startswith("x")]
    need(left == [], "a file by a forbidden name:", left)


def log_files():
    """An unusable log file leaves stderr."""
    folder = NODE.make_bundle("target", dumps(specs.target()))
    for log in ("/nonexistent/log", "/", "", "/dev/full", "syslog:x", "journald:x"):
        result = NODE.run(["--log", log, "--log-format", "json", "create", "--bundle", folder,
                           "target"])
        need(result.status == 1 and "gpushare-runtime: source team-a/devpod/main is not running" in
             result.err.decode().splitlines(), log, result.status, result.err)
        need(not os.path.exists("/syslog:x") and not result.calls, log)
    log = fakenode.HOME + "/tmp/log"
    result = NODE.run(["--log", "file:" + log, "--log-format", "json", "create", "--bundle", folder,
                       "target"])
    need(refusal.RUNC_RECORD.fullmatch(fakenode.read(log)), "crun's file: form of --log")


TESTS = [source_names, source_values, long_form, quantities, own_identity, grant_names, grant_files,
         bound_files, configurations, configuration_path, catalogue, damaged_records,
         damaged_spec_in_record, one_broken_record_beside_a_good_one, registry_folders,
         record_can_not_be_written, pid_files, hook_records, next_links, bundles, container_ids,
         log_files]


def main():
    global NODE
    NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], NODE.reset)


if __name__ == "__main__":
    main()
