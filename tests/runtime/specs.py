# SPDX-License-Identifier: Apache-2.0
"""Parts of config.json files that tests put together, and what is expected of them."""
import json

import fakenode
import fencing
import jsontext
from tap import need

UID = "3c0ffee0-0000-4000-8000-000000000001"
FROM = "gpushare.k8s.io/container-devices-from"
GRANT = "gpushare.k8s.io/grant"
GPU = "NVIDIA_VISIBLE_DEVICES=GPU-11111111-2222-3333-4444-555555555555"
NODES = [("/dev/nvidia0", 195, 0), ("/dev/nvidiactl", 195, 255), ("/dev/nvidia-uvm", 511, 0)]
HOST = NODES + [("/dev/nvidia1", 195, 1), ("/dev/nvidia-modeset", 195, 254),
                ("/dev/nvidia-uvm-tools", 511, 1)]
HOOK = {"path": fakenode.HOOK, "args": ["gpushare-hook", "--config", fakenode.CONFIG],
        "env": [], "timeout": 20}


def identity(container="dind", pod="devpod", ns="team-a", sandbox="sandbox-1", uid=UID):
    """containerd's annotations of a container."""
    return {"io.kubernetes.cri.container-name": container,
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.sandbox-id": sandbox, "io.kubernetes.cri.sandbox-name": pod,
            "io.kubernetes.cri.sandbox-namespace": ns, "io.kubernetes.cri.sandbox-uid": uid}


def device(path, major, minor):
    return {"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 438}


def rule(major, minor, access="rwm"):
    return {"allow": True, "type": "c", "major": major, "minor": minor, "access": access}


def spec(name, annotations, env=(), devices=None, rules=(), mounts=()):
    out = {"ociVersion": "1.0.2-dev",
           "process": {"args": ["sleep", "1000"], "env": ["PATH=/usr/bin:/bin", *env],
                       "cwd": "/",
                       "capabilities": {"bounding": ["CAP_CHOWN", "CAP_MKNOD"]}},
           "root": {"path": "rootfs"},
           "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, *mounts],
           "annotations": annotations,
           "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}, *rules]},
                     "cgroupsPath": "/kubepods/pod%s/%s" % (UID, name),
                     "namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "network")]}}
    if devices:
        out["linux"]["devices"] = devices
    return out


def target(value="_/_/main", key=FROM + ".dind", **more):
    """The spec of a container that asks for devices."""
    return spec("target", {**identity(), **({key: value} if key else {}), **more})


def source(name="main", container="main", who=None, env=(GPU,), nodes=NODES, **more):
    """The spec of a container that has an NVIDIA card."""
    return spec(name, {**(who or identity(container)), **more}, env,
                [device(*n) for n in nodes], [rule(major, minor) for _, major, minor in nodes])


def other_pod(container="holder"):
    return identity(container, "shadow", "team-b", "sandbox-9",
                    "99999999-0000-4000-8000-000000000009")


def dumps(tree):
    return json.dumps(tree, separators=(",", ":")).encode()


def cards(node):
    """The host's nodes."""
    for path, major, minor in HOST:
        node.device(path, "c", major, minor)


def got_card(old, new, nodes=NODES, env=(GPU,), hook=True):
    """Checks that new is old with a source's card and nothing else: elements that were there stand
    unchanged and in their order, what is new is what the source has and the target had not."""
    differs = jsontext.outside_differs(old, new)
    need(differs is None, differs)
    there = [json.loads(d)["path"] for d in jsontext.elements(old, "linux", "devices")]
    appended(old, new, ("linux", "devices"), [device(*n) for n in nodes if n[0] not in there])
    rules = [json.loads(r) for r in jsontext.elements(old, "linux", "resources", "devices")]
    appended(old, new, ("linux", "resources", "devices"),
             [rule(major, minor) for _, major, minor in nodes
              if fencing.access(rules, "c", major, minor) != set("rwm")])
    appended(old, new, ("mounts",), [])
    if hook:
        appended(old, new, ("hooks", "createRuntime"), [HOOK])
    for stage in ("prestart", "createContainer", "startContainer", "poststart", "poststop"):
        appended(old, new, ("hooks", stage), [])
    names = {e.split("=")[0] for e in env}

    def is_named(raw):
        return json.loads(raw).split("=")[0] in names
    before = jsontext.elements(old, "process", "env")
    after = jsontext.elements(new, "process", "env")
    # What the target names itself is joined: plain runc acts on none of it.
    own = [json.loads(e).partition("=") for e in before if is_named(e)]
    env = [e + "".join("," + v for n, _, v in own[-1:] if n == e.split("=")[0] and e != n + "=" + v
                       and v not in ("", "all", "void", "none")) for e in env]
    need([e for e in before if not is_named(e)] == [e for e in after if not is_named(e)],
         "other variables changed: %r became %r" % (before, after))
    need(sorted(json.loads(e) for e in after if is_named(e)) == sorted(env),
         "the variables are %r and not %r" % (after, env))


def spaces(text, path):
    """The white space in front of each element of an array."""
    value, out = jsontext.parse(text).get(*path), []
    at = value.start + 1
    for element in value.elements:
        out.append(text[at:element.start].rpartition(b",")[2])
        at = element.end
    return out


def appended(old, new, path, wanted):
    """Nothing at that array is other than wanted elements behind those that were there; these keep
    their bytes, and the white space in front of them too."""
    before, after = jsontext.elements(old, *path), jsontext.elements(new, *path)
    need(after[:len(before)] == before, ".".join(path), "was", before, "and is", after)
    if before:
        need(spaces(new, path)[:len(before)] == spaces(old, path), "white space in",
             ".".join(path), "was", spaces(old, path), "and is", spaces(new, path))
    added = [json.loads(e) for e in after[len(before):]]
    need(added == wanted, ".".join(path), "got", added, "and not", wanted)
