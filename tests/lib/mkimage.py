#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the images that tests run, without a network: one root of busybox and probe, several tags.

mkimage.py BUSYBOX PROBE OUT.tar    a docker-archive, which ctr, podman and docker all load
mkimage.py --root DIR BUSYBOX PROBE the same root as a folder, for bundles
"""
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

# Tag: what its config says. cuda stands for an image that bakes NVIDIA's selector in.
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGES = {
    "localhost/gpushare/test:1": {"Env": [PATH], "Cmd": ["/bin/sleep", "1000000"]},
    "localhost/gpushare/pause:1": {"Env": [PATH], "Entrypoint": ["/bin/probe", "pause"]},
    "localhost/gpushare/cuda:1": {
        "Env": [PATH, "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        "Cmd": ["/bin/sleep", "1000000"],
    },
}
DIRS = ["bin", "dev", "etc", "proc", "root", "sbin", "sys", "tmp", "usr", "usr/bin", "usr/sbin",
        "var", "var/run"]
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnobody:x:65534:\n",
}


def applets(busybox):
    out = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout
    return [name for name in out.split() if name not in ("busybox", "probe")]


def layer(busybox, probe):
    """The root as a tar without times, so that the same inputs give the same image."""
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in DIRS:
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)
        for name, text in FILES.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
        for name, path in (("bin/busybox", busybox), ("bin/probe", probe)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = os.path.getsize(path), 0o755
            with open(path, "rb") as f:
                tar.addfile(info, f)
        for name in applets(busybox):
            info = tarfile.TarInfo("bin/" + name)
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, "busybox", 0o777
            tar.addfile(info)
    return buf.getvalue()


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))


def write_archive(out, root):
    digest = hashlib.sha256(root).hexdigest()
    manifest = []
    with tarfile.open(out + ".new", "w") as tar:
        add(tar, digest + "/layer.tar", root)
        for tag, config in IMAGES.items():
            text = json.dumps({
                "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine),
                "os": "linux",
                "created": "2020-01-01T00:00:00Z",
                "config": config,
                "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
                "history": [{"created": "2020-01-01T00:00:00Z", "created_by": "mkimage.py"}],
            }).encode()
            name = hashlib.sha256(text).hexdigest() + ".json"
            add(tar, name, text)
            manifest.append({"Config": name, "RepoTags": [tag], "Layers": [digest + "/layer.tar"]})
        add(tar, "manifest.json", json.dumps(manifest).encode())
    os.rename(out + ".new", out)


def main(args):
    if len(args) == 4 and args[0] == "--root":
        with tarfile.open(fileobj=io.BytesIO(layer(args[2], args[3]))) as tar:
            tar.extractall(args[1])
    elif len(args) == 3:
        write_archive(args[2], layer(args[0], args[1]))
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
