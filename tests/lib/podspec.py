#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON in which crictl and cri.py take a pod or a container, as the kubelet would ask.

podspec.py pod NAMESPACE/NAME [options]
podspec.py container NAME [options] [-- COMMAND...]
"""
import argparse
import json
import sys
import uuid

# The interface's NamespaceMode.
MODES = {"pod": 0, "container": 1, "node": 2}


def pair(text):
    key, _, value = text.partition("=")
    return key, value


def modes(args, **defaults):
    asked = dict(defaults, **dict(args.namespace or []))
    return {f"{kind}": MODES[mode] for kind, mode in asked.items()}


def cgroup_parent(base, uid):
    """As the kubelet names it for the one cgroup driver and for the other."""
    if base.endswith(".slice"):
        return f"{base.removesuffix('.slice')}-pod{uid.replace('-', '_')}.slice"
    return f"{base}/pod{uid}"


def pod(args):
    namespace, name = args.name.split("/")
    uid = args.uid or str(uuid.uuid5(uuid.NAMESPACE_URL, args.name))
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "attempt": 0},
        # With the node's network a pod shares the node's host name.
        "hostname": "",
        "log_directory": args.log_dir,
        "labels": {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                   "io.kubernetes.pod.uid": uid},
        "annotations": dict(args.annotation or []),
        "linux": {
            "cgroup_parent": cgroup_parent(args.cgroup_parent, uid),
            "security_context": {
                "namespace_options": modes(args, network="node", pid="container", ipc="pod"),
                "privileged": args.privileged,
            },
        },
    }


def device(text):
    """HOST[:CONTAINER[:PERMISSIONS]], as podman and docker take it."""
    host, container, permissions = (text.split(":") + ["", ""])[:3]
    return {"host_path": host, "container_path": container or host,
            "permissions": permissions or "rwm"}


def mount(text):
    """HOST:CONTAINER[:ro]"""
    host, container, mode = (text.split(":") + [""])[:3]
    return {"host_path": host, "container_path": container, "readonly": mode == "ro"}


def container(args):
    context = {
        "privileged": args.privileged,
        "namespace_options": modes(args, network="node", pid="container", ipc="pod"),
    }
    if args.cap_add:
        context["capabilities"] = {"add_capabilities": args.cap_add}
    return {
        "metadata": {"name": args.name, "attempt": args.attempt},
        "image": {"image": args.image},
        "command": args.cmd,
        "envs": [{"key": key, "value": value} for key, value in args.env or []],
        "mounts": [mount(text) for text in args.mount or []],
        "devices": [device(text) for text in args.device or []],
        "CDI_devices": [{"name": name} for name in args.cdi or []],
        "annotations": dict(args.annotation or []),
        "log_path": f"{args.name}.{args.attempt}.log",
        "linux": {
            # What the kubelet asks for a best-effort container.
            "resources": {"cpu_period": 100000, "cpu_shares": 2, "oom_score_adj": 1000},
            "security_context": context,
        },
    }


def main():
    argv, command = sys.argv[1:], []
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("pod", "container"):
        sub = kinds.add_parser(kind)
        sub.add_argument("name")
        sub.add_argument("--annotation", type=pair, action="append", metavar="KEY=VALUE")
        sub.add_argument("--privileged", action="store_true")
        sub.add_argument("--namespace", type=pair, action="append",
                         metavar="network|pid|ipc=pod|container|node")
        if kind == "pod":
            sub.add_argument("--uid")
            sub.add_argument("--cgroup-parent", required=True)
            sub.add_argument("--log-dir", required=True)
        else:
            sub.add_argument("--image", required=True)
            sub.add_argument("--attempt", type=int, default=0)
            sub.add_argument("--env", type=pair, action="append", metavar="KEY=VALUE")
            sub.add_argument("--device", action="append", metavar="HOST[:CONTAINER[:rwm]]")
            sub.add_argument("--mount", action="append", metavar="HOST:CONTAINER[:ro]")
            sub.add_argument("--cdi", action="append", metavar="VENDOR/CLASS=NAME")
            sub.add_argument("--cap-add", action="append")
    args = parser.parse_args(argv)
    args.cmd = command
    json.dump(pod(args) if args.kind == "pod" else container(args), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
