#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what bench-runtime.sh measures on: bundles as containerd 1.6 writes them, and registries.

	makebench.py DIR PID REPOSITORY BUILD NEXT

PID is a process that lives while the benchmark runs: all containers of the registries are it.
"""
import json
import os
import sys

BOXES = "fcf3716e423554cfb730322365ae54b3dfbe764bbced708d99ac44c394f3c9ee"
POD_UID = "3c0ffee0-0000-4000-8000-000000000001"
CARD = "GPU-8c1e2a6e-0000-1111-2222-333344445555"
CAPS = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW",
        "CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE",
        "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"]


def devices():
    """A hundred nodes (type, major, minor, path) as a privileged container's spec lists them."""
    nodes = [("c", 1, minor, "/dev/" + name) for minor, name in
             ((3, "null"), (5, "zero"), (7, "full"), (8, "random"), (9, "urandom"), (11, "kmsg"))]
    nodes += [("c", 195, n, "/dev/nvidia%d" % n) for n in range(8)]
    nodes += [("c", 195, 255, "/dev/nvidiactl"), ("c", 195, 254, "/dev/nvidia-modeset"),
              ("c", 511, 0, "/dev/nvidia-uvm"), ("c", 511, 1, "/dev/nvidia-uvm-tools"),
              ("c", 5, 0, "/dev/tty"), ("c", 10, 229, "/dev/fuse")]
    nodes += [("b", 7, n, "/dev/loop%d" % n) for n in range(8)]
    nodes += [("c", 4, n, "/dev/tty%d" % n) for n in range(64)]
    nodes += [("c", 4, 64 + n, "/dev/ttyS%d" % n) for n in range(8)]
    assert len(nodes) == 100
    return nodes


def bind(to, name):
    return {"destination": to, "type": "bind", "options": ["rbind", "rprivate", "rw"],
            "source": "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/%s/%s"
                      % (BOXES, name)}


def mount(to, kind, *options):
    return {"destination": to, "type": kind, "source": kind,
            "options": ["nosuid", "noexec", *options]}


def spec(container, env=(), nodes=(), rules=(), annotations=None):
    return {
        "ociVersion": "1.0.2-dev",
        "process": {
            "user": {"uid": 0, "gid": 0, "additionalGids": [0]},
            "args": ["sh", "-c", "exec sleep 1000"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOSTNAME=devpod", "KUBERNETES_SERVICE_HOST=10.96.0.1", *env],
            "cwd": "/",
            "capabilities": {"bounding": CAPS, "effective": CAPS, "permitted": CAPS},
            "oomScoreAdj": 1000,
        },
        "root": {"path": "rootfs"},
        "mounts": [mount("/proc", "proc", "nodev"),
                   mount("/dev", "tmpfs", "strictatime", "mode=755", "size=65536k"),
                   mount("/dev/pts", "devpts", "newinstance", "ptmxmode=0666", "gid=5"),
                   mount("/dev/mqueue", "mqueue", "nodev"),
                   mount("/sys", "sysfs", "nodev", "ro"),
                   mount("/sys/fs/cgroup", "cgroup", "nodev", "relatime", "ro"),
                   bind("/etc/hostname", "hostname"), bind("/etc/hosts", "hosts"),
                   bind("/etc/resolv.conf", "resolv.conf"), bind("/dev/shm", "shm")],
        "annotations": {
            **(annotations or {}),
            "io.kubernetes.cri.container-name": container,
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.image-name": "localhost/busybox:test",
            "io.kubernetes.cri.sandbox-id": BOXES,
            "io.kubernetes.cri.sandbox-name": "devpod",
            "io.kubernetes.cri.sandbox-namespace": "team-a",
            "io.kubernetes.cri.sandbox-uid": POD_UID,
        },
        "linux": {
            "resources": {"devices": list(rules), "memory": {},
                          "cpu": {"shares": 2, "period": 100000}},
            "cgroupsPath": "/kubepods/besteffort/pod%s/%s" % (POD_UID, container),
            "namespaces": [{"type": "pid"}, {"type": "ipc", "path": "/proc/26427/ns/ipc"},
                           {"type": "uts", "path": "/proc/26427/ns/uts"}, {"type": "mount"},
                           {"type": "network", "path": "/proc/26427/ns/net"}],
            "devices": [{"path": path, "type": kind, "major": major, "minor": minor,
                         "fileMode": 438, "uid": 0, "gid": 0}
                        for kind, major, minor, path in nodes],
        },
    }


DENY = {"allow": False, "access": "rwm"}
ALL = {"allow": True, "access": "rwm"}
FROM = {"gpushare.k8s.io/container-devices-from.dind": "_/_/main"}
ONE = [node for node in devices() if node[3] in ("/dev/nvidia0", "/dev/nvidiactl",
                                                  "/dev/nvidia-uvm")]


def allow(nodes):
    return [DENY] + [{"allow": True, "type": kind, "major": major, "minor": minor, "access": "rw"}
                     for kind, major, minor, _ in nodes]


BUNDLES = {
    "plain": spec("app", rules=[DENY]),
    "holder": spec("main", ["NVIDIA_VISIBLE_DEVICES=" + CARD], ONE, allow(ONE)),
    "privileged": spec("app", nodes=devices(), rules=[ALL]),
    # an image that has the selector built in, as CUDA's have
    "copy": spec("dind", ["NVIDIA_VISIBLE_DEVICES=all"], rules=[DENY], annotations=FROM),
    "privileged_copy": spec("dind", ["NVIDIA_VISIBLE_DEVICES=all"], devices(), [ALL], FROM),
}


def fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return "%016x" % value


def write(path, data):
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(data if isinstance(data, str) else json.dumps(data, separators=(",", ":")))


def registry(run_dir, count, pid, next_runtime):
    """@count live containers, the first of them the source of the bundle "copy"."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    with open("/proc/%d/stat" % pid) as file:
        start_ticks = int(file.read().rpartition(")")[2].split()[19])
    holder = BUNDLES["holder"]
    slice_ = {"process": {"env": [holder["process"]["env"][-1]]},
              "linux": {"devices": holder["linux"]["devices"],
                        "resources": {"devices": holder["linux"]["resources"]["devices"][1:]}}}
    for i in range(count):
        pod = "devpod" if i == 0 else "pod-%d" % i
        ident = "%064x" % (i + 1)
        write("%s/containers/%s.json" % (run_dir, ident), {
            "v": 1, "id": ident, "bundle": "/run/containerd/k8s.io/" + ident,
            "identity": {"namespace": "team-a", "pod": pod, "container": "main"},
            "sandbox_id": BOXES if i == 0 else "box-%d" % i, "pod_uid": POD_UID,
            "role": "holder", "next": next_runtime, "boot_id": boot_id,
            "start_ticks": start_ticks, "spec": slice_})
        write("%s/containers/%s.hook.json" % (run_dir, ident), {
            "v": 1, "id": ident, "pid": pid, "start_ticks": start_ticks, "cgroup": "/k/" + ident})
        write("%s/by-name/%s/%s" % (run_dir, fnv1a("team-a/%s/main" % pod), ident), "")


def main():
    top, pid, repository, build, next_runtime = sys.argv[1:]
    for name, content in BUNDLES.items():
        write("%s/%s/config.json" % (top, name), content)
        write("%s/%s.json" % (top, name), content)
    for count in (0, 10, 10000):
        registry("%s/run-%d" % (top, count), count, int(pid), next_runtime)
        for kind, program in (("", next_runtime), ("-count", top + "/no-program")):
            write("%s/config-%d%s.json" % (top, count, kind), {
                "next": [program], "run_dir": "%s/run-%d" % (top, count), "lib_dir": top + "/lib",
                "hook": build + "/gpushare-hook", "vendor_dirs": [repository + "/vendors"],
                "state_dirs": []})
    # an exec of this fails, so that what counts instructions sees the program's end
    write(top + "/no-program", "no program\n")
    os.chmod(top + "/no-program", 0o755)
    with open(top + "/nodes", "w") as file:
        for kind, major, minor, path in devices():
            file.write("%s %s %d %d\n" % (path, kind, major, minor))


main()
