# SPDX-License-Identifier: Apache-2.0
"""A node to test gpushare-runtime on: folders and device nodes of its own, a next runtime that runs
nothing, and containers that are one `sleep` each.

enter() puts the whole test program into mount and PID namespaces of its own, where /run, /dev and
/sys/dev/char are empty file systems in memory. So every path in a test is a plain one, the device
nodes are those that a test asks for, and nothing is left behind, whatever kills the test.
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
ENTERED = "GPUSHARE_TEST_NODE"
CGROUP_PREFIX = "gpushare-test-"

HOME = "/run/golden"
BIN = HOME + "/bin"
RUNTIME = BIN + "/gpushare-runtime"
HOOK = HOME + "/libexec/gpushare-hook"
SPEC = HOME + "/libexec/gpushare-spec"
VENDORS = HOME + "/vendors.d"
KEPT = HOME + "/kept"  # what reset() takes its copies from
CONFIG = HOME + "/config.json"
LIB = HOME + "/lib"
RUN = "/run/gpushare"
CONTAINERD = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
CRIO = "/run/containers/storage/overlay-containers"
# What the next runtime ends with, and nothing of ours.
STARTED = 42
# Long enough for a slow machine under sanitizers, short enough to show what hangs.
PATIENCE = 60

# What every Linux container host has; all else comes from the test.
PLAIN_NODES = [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9),
               ("tty", 5, 0), ("console", 5, 1), ("ptmx", 5, 2), ("fuse", 10, 229),
               ("net/tun", 10, 200), ("kmsg", 1, 11)]


def enter():
    """Runs this program anew in namespaces of its own; goes on in there."""
    if os.environ.get(ENTERED) and os.getpid() == 1:
        return Node()
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root: device nodes, mount namespaces, cgroups")
        sys.exit(0)
    os.environ[ENTERED] = str(os.getpid())
    remove_old_cgroups()
    unshare = shutil.which("unshare") or "/usr/bin/unshare"
    child = subprocess.Popen([unshare, "--mount", "--pid", "--fork", "--kill-child",
                              "--mount-proc", "--propagation", "private",
                              sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    status = child.wait()
    remove_old_cgroups(os.getpid())
    sys.exit(status)


def remove_old_cgroups(*gone):
    """Empty cgroups of test programs that are no more."""
    base = os.path.dirname(find_cgroup()[1])
    for entry in os.scandir(base):
        number = entry.name.rpartition("-")[2]
        if not entry.name.startswith(CGROUP_PREFIX) or not number.isdigit():
            continue
        if os.path.exists("/proc/" + number) and int(number) not in gone:
            continue
        for folder, _, _ in os.walk(entry.path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass


def mount(kind, source, target, *options):
    subprocess.run(["mount", "-t", kind, *options, source, target], check=True, timeout=PATIENCE)


def write(path, data, mode=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    if mode is not None:
        os.chmod(path, mode)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def empty(folder):
    """Removes what is in a folder, but not the folder."""
    for entry in os.scandir(folder) if os.path.isdir(folder) else []:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


class Call:
    """What the next runtime was called with."""

    def __init__(self, lines):
        self.args, self.env, self.fds, self.exe = [], [], {}, None
        for line in lines:
            what, *rest = line.split(" ")
            value = bytes.fromhex(rest[-1]).decode("utf-8", "surrogateescape") if rest else ""
            if what == "arg":
                self.args.append(value)
            elif what == "env":
                self.env.append(value)
            elif what == "fd":
                self.fds[int(rest[0])] = value
            elif what == "exe":
                self.exe = value


class Result:
    """One run of a program: status (negative: the signal), out and err, and the calls of the next
    runtime."""

    def __init__(self, status, out, err, calls):
        self.status, self.out, self.err, self.calls = status, out, err, calls


class Node:
    def __init__(self):
        for folder in ("/run", "/dev", "/sys/dev/char"):
            mount("tmpfs", "tmpfs", folder, "-o", "mode=0755")
        self.mounts = mount_points()
        self.sleeps, self.cgroups = {}, []
        self.cgroup_root, self.cgroup_base = find_cgroup()
        self.layout = "containerd"
        for name in ("gpushare-runtime", "gpushare-hook", "gpushare-spec"):
            to = {"gpushare-runtime": RUNTIME, "gpushare-hook": HOOK, "gpushare-spec": SPEC}[name]
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(BUILD, name), to)
        os.makedirs(KEPT)
        shutil.copy(os.path.join(TOP, "build/programs/fakenext"), KEPT)
        shutil.copytree(os.path.join(TOP, "vendors"), KEPT + "/vendors.d")
        self.reset()

    def reset(self):
        """As on a node where nothing has run yet."""
        for process in self.sleeps.values():
            process.kill()
            process.wait()
        self.sleeps.clear()
        for path in reversed(self.cgroups):
            try:
                os.rmdir(path)
            except OSError:
                pass
        self.cgroups.clear()
        for path in reversed(mount_points()[len(self.mounts):]):
            subprocess.run(["umount", path], check=True, timeout=PATIENCE)
        forget(CONFIG)
        for entry in os.scandir("/run"):
            if entry.path != HOME:
                shutil.rmtree(entry.path)
        self.forget_snapshot()
        for folder in (LIB, HOME + "/as", HOME + "/tmp", VENDORS, "/dev", "/sys/dev/char"):
            empty(folder)
        for entry in os.scandir(BIN):
            if entry.path != RUNTIME:
                os.unlink(entry.path)
        for entry in os.scandir(HOME):
            if entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
        for folder in (VENDORS, HOME + "/tmp", HOME + "/as", LIB):
            os.makedirs(folder, exist_ok=True)
        for entry in os.scandir(KEPT + "/vendors.d"):
            os.link(entry.path, os.path.join(VENDORS, entry.name))
        for name in ("runc", "crun", "nvidia-container-runtime"):
            os.link(KEPT + "/fakenext", os.path.join(BIN, name))
        for name, major, minor in PLAIN_NODES:
            self.device("/dev/" + name, "c", major, minor)
        for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"),
                             ("stderr", "fd/2")):
            os.symlink("/proc/self/" + target, "/dev/" + name)
        self.layout = "containerd"
        self.configure({})

    def snapshot(self):
        """What the registry and the grants are now, for restore()."""
        self.forget_snapshot()
        for at, folder in enumerate((RUN, LIB)):
            if os.path.isdir(folder):
                shutil.copytree(folder, "%s/snapshot-%d" % (HOME, at), symlinks=True)

    def restore(self):
        """Registry and grants as they were at snapshot(); containers and all else stay."""
        for at, folder in enumerate((RUN, LIB)):
            forget(folder)
            if os.path.isdir("%s/snapshot-%d" % (HOME, at)):
                shutil.copytree("%s/snapshot-%d" % (HOME, at), folder, symlinks=True)

    def forget_snapshot(self):
        for at in range(2):
            forget("%s/snapshot-%d" % (HOME, at))

    def configure(self, keys, text=None):
        """The configuration: what tests need, with keys on top; or a text as it is."""
        config = {"next": ["runc"], "run_dir": RUN, "lib_dir": LIB, "hook": HOOK,
                  "vendor_dirs": [VENDORS]}
        config.update(keys)
        write(CONFIG, text if text is not None else json.dumps(config))

    def device(self, path, kind, major, minor, driver=None):
        """A device node, and in sysfs the driver behind it where one is named."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mknod(path, {"c": stat.S_IFCHR, "b": stat.S_IFBLK, "p": stat.S_IFIFO}[kind] | 0o666,
                 os.makedev(major, minor))
        if driver:
            folder = "/sys/dev/char/%d:%d/device" % (major, minor)
            os.makedirs(folder, exist_ok=True)
            os.symlink("../../../../bus/pci/drivers/" + driver, folder + "/driver")

    def bind(self, text, path):
        """A file over another one, /proc/devices for example, until the next reset."""
        source = HOME + "/bound-" + os.path.basename(path)
        write(source, text)
        subprocess.run(["mount", "--bind", source, path], check=True, timeout=PATIENCE)

    # Containers.
    def bundle(self, name):
        if self.layout == "cri-o":
            return "%s/%s/userdata" % (CRIO, name)
        return "%s/%s" % (CONTAINERD, name)

    def pid_file(self, name):
        return self.bundle(name) + ("/pidfile" if self.layout == "cri-o" else "/init.pid")

    def make_bundle(self, name, text):
        write(self.bundle(name) + "/config.json", text, 0o644)
        return self.bundle(name)

    def create_args(self, name):
        """The command line of containerd's shim."""
        bundle = self.bundle(name)
        return ["--root", "/run/containerd/runc/k8s.io", "--log", bundle + "/log.json",
                "--log-format", "json", "create", "--bundle", bundle, "--pid-file",
                self.pid_file(name), name]

    def run(self, args, argv0=RUNTIME, env=None, cwd="/", program=RUNTIME, stdin=b"", keep=(),
            before=()):
        """Runs the runtime (or another program); env None: an ordinary environment. `before` is
        put in front of the program, strace for example."""
        if env is None:
            env = {"PATH": BIN, "LANG": "C", "GPUSHARE_CONFIG": CONFIG}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                env.setdefault(name, os.environ[name])
        forget(BIN + "/calls")
        command = [*before, program, *args] if before else [argv0, *args]
        try:
            done = subprocess.run(command, executable=None if before else program, env=env, cwd=cwd,
                                  input=stdin, capture_output=True, pass_fds=keep,
                                  timeout=PATIENCE)
        except subprocess.TimeoutExpired as slow:
            return Result(None, slow.stdout or b"", (slow.stderr or b"") + b"(still running)",
                          self.calls())
        return Result(done.returncode, done.stdout, done.stderr, self.calls())

    def calls(self):
        if not os.path.exists(BIN + "/calls"):
            return []
        parts = read(BIN + "/calls").decode().split("end\n")
        return [Call(part.splitlines()) for part in parts if part]

    def start(self, name, cgroups_path=None):
        """What the next runtime would do: a process in the spec's cgroup, and the pid file."""
        process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL,
                                   env={"PATH": "/bin"})
        self.sleeps[name] = process
        if cgroups_path is None:
            cgroups_path = cgroups_path_of(read(self.bundle(name) + "/config.json"))
        if cgroups_path:
            self.join_cgroup(process.pid, cgroups_path)
        write(self.pid_file(name), "%d" % process.pid)
        return process.pid

    def stop(self, name):
        process = self.sleeps.pop(name)
        process.kill()
        process.wait()

    def join_cgroup(self, pid, path):
        """Puts a process into a cgroup of that path, below one of ours; gives the whole path."""
        parts = path.strip("/").split("/")
        if ":" in path:  # systemd's form: slice:prefix:name
            parent, prefix, unit = path.split(":")
            parts = [parent, "%s-%s.scope" % (prefix, unit)]
        at = self.cgroup_base
        for part in [""] + parts:
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.cgroups.append(at.rstrip("/"))
        write(at + "/cgroup.procs", str(pid))
        return at

    def container(self, name, text, state=()):
        """A container made through gpushare-runtime, in one of these states: dead (it has a record
        and no process), unrecorded (it is older than gpushare), hooked (gpushare-hook ran)."""
        self.make_bundle(name, text)
        if "unrecorded" not in state:
            result = self.run(self.create_args(name), cwd=self.bundle(name))
            if result.status != STARTED:
                raise AssertionError("container %s was not made: %s" % (name, result.err.decode()))
        if "dead" not in state:
            pid = self.start(name)
            if "hooked" in state:
                self.run_hook(name, pid)
        elif "nopid" not in state:
            process = subprocess.Popen(["/bin/true"], env={})
            process.wait()
            write(self.pid_file(name), "%d" % process.pid)

    def run_hook(self, name, pid, check=True):
        state = {"ociVersion": "1.0.2", "id": name, "status": "creating", "pid": pid,
                 "bundle": self.bundle(name)}
        result = self.run(["--config", CONFIG], program=HOOK, argv0="gpushare-hook",
                          stdin=json.dumps(state).encode(), env={})
        if check and result.status != 0:
            raise AssertionError("the hook of %s failed: %s" % (name, result.err.decode()))
        return result

    def record(self, name):
        """The container's record in the registry, or None."""
        path = "%s/containers/%s.json" % (RUN, name)
        return json.loads(read(path)) if os.path.exists(path) else None

    def grant(self, name, **keys):
        """A grant file; keys replace or, with None, remove what a share grant has. lease: "live",
        "over" and "other boot" stand for whole leases."""
        grant = {"v": 1, "kind": "share", "state": "active", "resource": None,
                 "sources": ["team-b/shadow/holder"]}
        grant.update(keys)
        boot = read("/proc/sys/kernel/random/boot_id").decode().strip()
        now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
        lease = {"live": (boot, now + 60000), "over": (boot, max(now - 1, 0)),
                 "other boot": ("00000000-0000-4000-8000-000000000000", now + 60000)}
        if isinstance(grant.get("lease"), str):
            grant["lease"] = dict(zip(("boot_id", "deadline_ms"), lease[grant["lease"]]))
        os.makedirs(LIB + "/grants", mode=0o700, exist_ok=True)
        os.chmod(LIB + "/grants", 0o700)
        write("%s/grants/%s.json" % (LIB, name),
              json.dumps({k: v for k, v in grant.items() if v is not None}), 0o600)


def forget(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def mount_points():
    """Where something is mounted, in the order of mounting."""
    return [line.split()[4] for line in read("/proc/self/mountinfo").decode().splitlines()]


def cgroups_path_of(text):
    """linux.cgroupsPath of a config.json, also of one that is no strict JSON."""
    found = re.search(rb'"cgroupsPath"\s*:\s*"([^"]*)"', text)
    return found.group(1).decode() if found else ""


def find_cgroup():
    """The mount point of the hierarchy that container runtimes set device rules in (version 1) or
    of version 2, and in it the folder for our cgroups."""
    mine, v2 = None, None
    for line in read("/proc/self/cgroup").decode().splitlines():
        _, controllers, path = line.split(":", 2)
        if "devices" in controllers.split(","):
            mine = ("cgroup", path)
        elif line.startswith("0::"):
            v2 = ("cgroup2", path)
    kind, path = mine or v2
    for line in read("/proc/self/mountinfo").decode().splitlines():
        fields, extra = line.split(" - ")
        root, point = fields.split()[3:5]
        if extra.split()[0] != kind:
            continue
        if kind == "cgroup" and "devices" not in extra.split()[-1].split(","):
            continue
        inside = os.path.relpath(path, root) if path.startswith(root) else "."
        folder = os.path.normpath(os.path.join(point, inside))
        return point, os.path.join(folder, CGROUP_PREFIX + os.environ[ENTERED])
    raise AssertionError("no cgroup file system of type %s" % kind)
