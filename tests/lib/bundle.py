#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a config.json as containerd's CRI plugin would, for runtimes that are called directly.

bundle.py ROOTFS CGROUP [options] [-- COMMAND...]
"""
import argparse
import json
import os
import stat
import sys

CAPS = ["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
        "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"]


def pair(text):
    key, _, value = text.partition("=")
    return key, value


def device(text):
    """HOST[:PERMISSIONS] -> an entry of linux.devices and its rule, from the node itself."""
    path, _, permissions = text.partition(":")
    st = os.stat(path)
    number = {"type": "c" if stat.S_ISCHR(st.st_mode) else "b",
              "major": os.major(st.st_rdev), "minor": os.minor(st.st_rdev)}
    entry = {"path": path, **number, "fileMode": stat.S_IMODE(st.st_mode),
             "uid": st.st_uid, "gid": st.st_gid}
    return entry, {"allow": True, **number, "access": permissions or "rwm"}


def host_devices():
    """Every node of the machine, as a privileged container gets them."""
    for top, dirs, files in os.walk("/dev"):
        dirs[:] = [d for d in dirs if d not in ("pts", "shm", "mqueue", "fd")]
        for name in sorted(files):
            path = os.path.join(top, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                yield device(path)[0]


def mount(text):
    """HOST:CONTAINER -> a read-only bind mount."""
    source, destination = text.split(":")
    return {"destination": destination, "type": "bind", "source": source,
            "options": ["rbind", "rprivate", "ro"]}


def mounts():
    def one(kind, source, destination, *options):
        return {"destination": destination, "type": kind, "source": source,
                "options": list(options)}
    return [
        one("proc", "proc", "/proc", "nosuid", "noexec", "nodev"),
        one("tmpfs", "tmpfs", "/dev", "nosuid", "strictatime", "mode=755", "size=65536k"),
        one("devpts", "devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666",
            "mode=0620", "gid=5"),
        one("tmpfs", "shm", "/dev/shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
        one("mqueue", "mqueue", "/dev/mqueue", "nosuid", "noexec", "nodev"),
        one("tmpfs", "tmpfs", "/tmp", "mode=1777"),
        one("sysfs", "sysfs", "/sys", "nosuid", "noexec", "nodev", "ro"),
    ]


def has_cpu_controller():
    """cgroup2 has none of the controllers that version 1 has on the same machine."""
    try:
        with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as f:
            return "cpu" in f.read().split()
    except FileNotFoundError:
        return True


def spec(args):
    caps = ["CAP_" + name for name in CAPS + (args.cap_add or [])]
    devices, rules = [], [{"allow": False, "access": "rwm"}]
    if args.privileged:
        devices, rules = list(host_devices()), [{"allow": True, "access": "rwm"}]
    for text in args.device or []:
        entry, rule = device(text)
        devices.append(entry)
        rules.append(rule)
    if args.rules:
        rules = json.loads(args.rules)
    resources = {"devices": rules, "memory": {}}
    if has_cpu_controller():
        resources["cpu"] = {"shares": 2, "period": 100000}
    linux = {
        "resources": resources,
        "cgroupsPath": args.cgroup,
        "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
    }
    if devices:
        linux["devices"] = devices
    return {
        "ociVersion": "1.0.2-dev",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": args.cmd or ["/bin/sleep", "1000000"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
                   + (args.env or []),
            "cwd": "/",
            "capabilities": {kind: caps for kind in ("bounding", "effective", "permitted")},
        },
        "root": {"path": args.rootfs},
        "hostname": "test",
        "mounts": mounts() + [mount(text) for text in args.mount or []],
        "annotations": dict(args.annotation or []),
        "linux": linux,
    }


def main():
    argv, command = sys.argv[1:], []
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rootfs")
    parser.add_argument("cgroup")
    parser.add_argument("--annotation", type=pair, action="append", metavar="KEY=VALUE")
    parser.add_argument("--env", action="append", metavar="KEY=VALUE")
    parser.add_argument("--device", action="append", metavar="PATH[:rwm]")
    parser.add_argument("--mount", action="append", metavar="HOST:CONTAINER")
    parser.add_argument("--cap-add", action="append")
    parser.add_argument("--privileged", action="store_true")
    parser.add_argument("--rules", metavar="JSON", help="linux.resources.devices, as it is")
    args = parser.parse_args(argv)
    args.cmd = command
    json.dump(spec(args), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
