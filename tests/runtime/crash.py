#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpushare-runtime on full and read-only disks, killed at every system call, and called by several
at once: config.json is the old one or the new one, never half, and the next try succeeds. Prints
TAP; arguments choose tests by the beginning of their names."""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import refusal  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from refusal import State  # noqa: E402
from specs import GRANT, dumps  # noqa: E402
from tap import need  # noqa: E402

NODE = None
NAME = "0123456789abcdef0123456789abcdef"
# What a kill between making a file and renaming it leaves until the next boot; nobody reads it.
TEMPORARY = re.compile(r"-[0-9a-f]{16}$")
DELETE = ["--root", "/run/containerd/runc/k8s.io", "delete", "target"]


def with_source():
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))


def create(name="target"):
    return NODE.run(NODE.create_args(name), cwd=NODE.bundle(name))


def config(name="target"):
    return fakenode.read(NODE.bundle(name) + "/config.json")


def new_text(spec):
    """What a create makes of the spec, and what an undisturbed node looks like afterwards."""
    NODE.make_bundle("target", dumps(spec))
    need(create().status == fakenode.STARTED, "the undisturbed create fails")
    return config()


# Disks.
def small_disk(path, pages):
    """A file system of that many pages at a folder, filled up until nothing more fits."""
    os.makedirs(path, exist_ok=True)
    fakenode.mount("tmpfs", "tmpfs", path, "-o", "mode=0700,size=%d" % (pages * 4096))


def fill(path):
    with open(path + "/fill", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 512)
        except OSError:
            pass


def full_disk_under_the_bundle():
    with_source()
    folder, log = NODE.bundle("target"), fakenode.HOME + "/tmp/log.json"
    args = ["--log", log, "--log-format", "json", "create", "--bundle", folder, "target"]
    for room in (0, 1):  # no room at all; room for one page, and two are needed
        small_disk(folder, 4)
        spec = specs.target()
        spec["x-large"] = "x" * 5000
        NODE.make_bundle("target", dumps(spec))
        fill(folder)
        if room:
            os.truncate(folder + "/fill", max(0, os.stat(folder + "/fill").st_size - 4096))
        before = State(NODE)
        fakenode.forget(log)
        refusal.check(NODE, NODE.run(args), "bundle %s: write %s/config.json: No space left on "
                      "device" % (folder, folder), before, log)
        need(NODE.record("target") is None, "a record is left")
        os.unlink(folder + "/fill")
        need(create().status == fakenode.STARTED, "with room again it fails")
        subprocess.run(["umount", folder], check=True, timeout=30)


def full_disk_no_inode_left():
    with_source()
    folder = NODE.bundle("target")
    os.makedirs(folder)
    fakenode.mount("tmpfs", "tmpfs", folder, "-o", "nr_inodes=2")
    NODE.make_bundle("target", dumps(specs.target()))
    before = State(NODE)
    refusal.check(NODE, create(), "bundle %s: create a temporary file for %s/config.json: "
                  "No space left on device" % (folder, folder), before)


def read_only_bundle():
    with_source()
    folder = NODE.make_bundle("target", dumps(specs.target()))
    subprocess.run(["mount", "--bind", folder, folder], check=True, timeout=30)
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True, timeout=30)
    before = State(NODE)
    refusal.check(NODE, create(), "bundle %s: create a temporary file for %s/config.json: "
                  "Read-only file system" % (folder, folder), before)
    need(NODE.record("target") is None, "a record is left")
    subprocess.run(["umount", folder], check=True, timeout=30)
    # A container that needs no change needs no place to write either.
    folder = NODE.make_bundle("plain", dumps(specs.spec("plain", specs.identity("plain"))))
    subprocess.run(["mount", "--bind", folder, folder], check=True, timeout=30)
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True, timeout=30)
    need(create("plain").status == fakenode.STARTED, "an ordinary container is stopped")


def full_disk_under_the_registry():
    """A target is refused, a holder goes on."""
    small_disk(fakenode.RUN, 8)
    with_source()
    spec = specs.target()
    spec["annotations"]["gpushare.k8s.io/x-large"] = "x" * 6000
    NODE.make_bundle("target", dumps(spec))
    fill(fakenode.RUN)
    before = State(NODE)
    refusal.check(NODE, create(), "@ANY@%s/containers/target.json: No space left on device"
                  % fakenode.RUN, before)
    NODE.make_bundle("target", dumps(specs.source("target", **{"gpushare.k8s.io/x": "x" * 6000})))
    before = State(NODE)
    need(create().status == fakenode.STARTED, "a holder is stopped")
    need(State(NODE).text == before.text and not State(NODE).temporary, "something is left")
    os.unlink(fakenode.RUN + "/fill")
    NODE.make_bundle("target", dumps(spec))
    need(create().status == fakenode.STARTED, "with room again it fails")


def full_disk_under_the_grants():
    """A grant that can't be bound is not used."""
    small_disk(fakenode.LIB, 6)
    specs.cards(NODE)
    NODE.container("holder", dumps(specs.source("holder", who=specs.other_pod())))
    NODE.grant(NAME, resource="gpushare/share-gpu")
    NODE.make_bundle("target", dumps(specs.target(key=None, **{GRANT: NAME})))
    fill(fakenode.LIB)
    before = State(NODE)
    refusal.check(NODE, create(), "@ANY@grant 012345...@ANY@No space left on device", before)
    need(not os.path.exists("%s/grants/%s.bound" % (fakenode.LIB, NAME)), "it is bound")
    os.unlink(fakenode.LIB + "/fill")
    need(create().status == fakenode.STARTED, "with room again it fails")


def full_disk_under_our_log():
    """Our own log is no reason to fail."""
    small_disk(fakenode.HOME + "/tmp/log", 1)
    fill(fakenode.HOME + "/tmp/log")
    with_source()
    NODE.configure({"log": {"level": "debug", "file": fakenode.HOME + "/tmp/log/own.log"}})
    NODE.make_bundle("target", dumps(specs.target()))
    need(create().status == fakenode.STARTED, "a full disk under the log stops it")


# SIGKILL at every system call.
LIBC = ctypes.CDLL(None, use_errno=True)
TRACEME, CONT, SYSCALL, SETOPTIONS = 0, 7, 24, 0x4200
O_TRACESYSGOOD, O_TRACEEXEC, O_EXITKILL = 1, 16, 0x100000
# Every second stop is behind a system call, and nothing happens between it and the next call.
# Sanitizers add hundreds of calls of their own and make each run ten times as long: under them one
# stop of nine has to do.
FIRST, STRIDE = 1, 9 if os.environ.get("B", "").endswith("san") else 2


def ptrace(request, pid, data=0):
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    LIBC.ptrace.restype = ctypes.c_long
    if LIBC.ptrace(request, pid, None, ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def kill_at(stop, args, program=fakenode.RUNTIME, argv0="gpushare-runtime", stdin=None):
    """Runs the program and kills it at that stop, of which each system call has two: before it does
    anything and after. Gives whether it came so far before it ended or became another program."""
    env = {"PATH": fakenode.BIN, "GPUSHARE_CONFIG": fakenode.CONFIG,
           "ASAN_OPTIONS": "detect_leaks=0"}  # LeakSanitizer traces by itself
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(stdin if stdin is not None else null, 0)
            os.dup2(null, 1)
            os.dup2(null, 2)
            ptrace(TRACEME, 0)
            os.execve(program, [argv0, *args], env)
        finally:
            os._exit(127)
    os.waitpid(pid, 0)  # it stopped at its exec
    ptrace(SETOPTIONS, pid, O_TRACESYSGOOD | O_TRACEEXEC | O_EXITKILL)
    seen = 0
    while True:
        if seen == stop:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return True
        ptrace(SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return False
        if status >> 8 == signal.SIGTRAP | 4 << 8:  # it became the next runtime
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        seen += 1


def whole_files(*folders):
    """Every file of the registry and every grant is whole."""
    for folder in folders:
        for top, _, files in os.walk(folder):
            for file in files:
                path = os.path.join(top, file)
                if os.path.islink(path) or "by-name" in top or "deleted" in top:
                    continue
                if re.search(r"\.(json|bound)$", file):
                    json.loads(fakenode.read(path))


def put(name, text):
    """The bundle as the engine makes it, without what an earlier try has left there."""
    fakenode.forget(NODE.bundle(name))
    NODE.make_bundle(name, text)


def killed_create(spec, check):
    """Kills a create at every stop; check() comes after the retry."""
    NODE.snapshot()
    new = new_text(spec)
    old, stop = dumps(spec), FIRST
    half_way = set()
    while True:
        NODE.restore()
        put("target", old)
        if not kill_at(stop, NODE.create_args("target")):
            break
        text = config()
        need(text in (old, new), "killed at stop %d, config.json is half:" % stop, text)
        half_way.add(text == new)
        whole_files(fakenode.RUN, fakenode.LIB)
        result = create()
        need(result.status == fakenode.STARTED, "killed at stop %d, the retry fails:" % stop,
             result.err)
        need(config() == new, "killed at stop %d, the retry makes another config.json" % stop)
        whole_files(fakenode.RUN, fakenode.LIB)
        check()
        stop += STRIDE
    need(stop > 50 and (half_way == {True, False} or STRIDE > 2),
         "only %d stops, %r" % (stop, half_way))


def killed_target():
    def check():
        record = NODE.record("target")
        need(record and record["role"] == "target", "no record after the retry")
    with_source()
    killed_create(specs.target(), check)


def killed_create_then_deleted():
    """Where nobody tries again, the engine deletes what a create that was killed has left, and the
    next create of anybody sweeps: nothing of it stays in the registry."""
    with_source()
    plain = dumps(specs.spec("plain", specs.identity("plain")))
    NODE.snapshot()
    for spec in (specs.target(), specs.source("target")):
        text, stop = dumps(spec), FIRST
        while True:
            NODE.restore()
            put("target", text)
            put("plain", plain)
            if not kill_at(stop, NODE.create_args("target")):
                break
            need(NODE.run(DELETE).status == fakenode.STARTED, "the delete fails")
            need(create("plain").status == fakenode.STARTED, "the next create fails")
            left = [os.path.join(top, f) for top, _, files in os.walk(fakenode.RUN) for f in files
                    if "target" in f and not TEMPORARY.search(f)]
            need(left == [], "killed at stop %d, these stay: %r" % (stop, left))
            need(NODE.record("main"), "the living one's record is gone")
            stop += STRIDE
        need(stop > 50, "only %d stops" % stop)


def killed_target_with_a_grant():
    specs.cards(NODE)
    NODE.container("holder", dumps(specs.source("holder", who=specs.other_pod())))
    NODE.grant(NAME, resource="gpushare/share-gpu")

    def check():
        bound = json.loads(fakenode.read("%s/grants/%s.bound" % (fakenode.LIB, NAME)))
        need(bound == {"v": 1, "pod_uid": specs.UID, "container": "dind"}, bound)
    killed_create(specs.target(key=None, **{GRANT: NAME}), check)


def killed_holder():
    """A holder's config.json is never touched; its record is whole or not there."""
    specs.cards(NODE)
    text, stop = dumps(specs.source("target")), FIRST
    while True:
        NODE.restore()
        put("target", text)
        before = State(NODE)
        if not kill_at(stop, NODE.create_args("target")):
            break
        need(State(NODE).place == before.place, "killed at stop %d, config.json changed" % stop)
        whole_files(fakenode.RUN)
        need(create().status == fakenode.STARTED and NODE.record("target"), "the retry fails")
        stop += STRIDE
    need(stop > 50, "only %d stops" % stop)


def killed_delete_and_sweep():
    """delete, and the create that sweeps, killed anywhere: what is left goes with the next."""
    with_source()
    NODE.make_bundle("target", dumps(specs.target()))
    create()
    NODE.snapshot()
    stop = FIRST
    while True:
        NODE.restore()
        if not kill_at(stop, DELETE):
            break
        need(NODE.run(DELETE).status == fakenode.STARTED, "the retry fails")
        need(os.path.exists(fakenode.RUN + "/deleted/target"), "killed at stop %d: no mark" % stop)
        stop += STRIDE
    sweeps = FIRST
    plain = dumps(specs.spec("plain", specs.identity("plain")))
    NODE.run(DELETE)
    NODE.snapshot()
    while True:
        NODE.restore()
        put("plain", plain)
        if not kill_at(sweeps, NODE.create_args("plain")):
            break
        need(create("plain").status == fakenode.STARTED, "the retry fails")
        left = [f for _, _, files in os.walk(fakenode.RUN) for f in files if "target" in f]
        need(left == [], "killed at stop %d, these stay: %r" % (sweeps, left))
        need(NODE.record("main"), "the living one's record is gone")
        sweeps += STRIDE
    need(stop > 20 and sweeps > 50, "only %d and %d stops" % (stop, sweeps))


def killed_hook():
    """The hook's record is whole or not there, and the runtime's is not touched."""
    with_source()
    NODE.make_bundle("target", dumps(specs.target()))
    create()
    pid = NODE.start("target")
    record = fakenode.read(fakenode.RUN + "/containers/target.json")
    stop = FIRST
    while True:
        fakenode.forget(fakenode.RUN + "/containers/target.hook.json")
        out, into = os.pipe()
        os.write(into, json.dumps({"id": "target", "pid": pid}).encode())
        os.close(into)
        came = kill_at(stop, ["--config", fakenode.CONFIG], fakenode.HOOK, "gpushare-hook", out)
        os.close(out)
        if not came:
            break
        whole_files(fakenode.RUN)
        need(fakenode.read(fakenode.RUN + "/containers/target.json") == record,
             "the record changed")
        stop += STRIDE
    need(stop > 30, "only %d stops" % stop)
    need(NODE.run_hook("target", pid).status == 0, "afterwards it fails")


# Several at once.
def at_once(calls):
    """Runs all of them at the same time: pairs of arguments and folder; gives their statuses."""
    env = {"PATH": fakenode.BIN, "GPUSHARE_CONFIG": fakenode.CONFIG}
    running = [subprocess.Popen([fakenode.RUNTIME, *args], env=env, cwd=folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for args, folder in calls]
    return [(p.communicate(timeout=60)[1], p.returncode) for p in running]


def two_creates_of_one_id():
    """One bundle, created by two at the same time: no half file, nothing added twice."""
    with_source()
    new = new_text(specs.target())
    for _ in range(60):
        NODE.make_bundle("target", dumps(specs.target()))
        done = at_once([(NODE.create_args("target"), NODE.bundle("target"))] * 3)
        need(all(status == fakenode.STARTED for _, status in done), done)
        need(config() == new, "config.json is neither old nor new:", config())
        whole_files(fakenode.RUN)
        need(not State(NODE).temporary, State(NODE).temporary)


def two_containers_of_one_name():
    """Two containers of one name made at the same time: both recorded, and then told as two."""
    for _ in range(20):
        NODE.reset()
        specs.cards(NODE)
        for name in ("one", "two"):
            NODE.make_bundle(name, dumps(specs.source(name)))
        done = at_once([(NODE.create_args(n), NODE.bundle(n)) for n in ("one", "two")])
        need(all(status == fakenode.STARTED for _, status in done), done)
        need(NODE.record("one") and NODE.record("two"), "a record is missing")
        NODE.make_bundle("target", dumps(specs.target()))
        NODE.start("one")
        need(create().status == fakenode.STARTED, "the only live one is not found")
        need(NODE.record("target")["sources"] == ["one"], NODE.record("target"))
        NODE.start("two")
        result = create()
        need(result.status == 1 and b"is ambiguous" in result.err, result.status, result.err)


def two_pods_with_one_grant():
    """Of two pods that use one grant at the same time, exactly one gets it."""
    specs.cards(NODE)
    NODE.container("holder", dumps(specs.source("holder", who=specs.other_pod())))
    for at in range(40):
        name = "%032x" % at
        NODE.grant(name, resource="gpushare/share-gpu")
        calls = []
        for pod in ("p", "q", "r"):
            who = specs.identity("c", pod, "team-c", "sandbox-" + pod, "uid-" + pod)
            NODE.make_bundle(pod, dumps(specs.spec(pod, {**who, GRANT: name})))
            calls.append((NODE.create_args(pod), NODE.bundle(pod)))
        done = at_once(calls)
        statuses = sorted(status for _, status in done)
        need(statuses == [1, 1, fakenode.STARTED], done)
        need(all(b"is bound to another container" in err for err, status in done if status == 1),
             done)


def a_reader_beside():
    """Somebody who reads config.json all the time sees the old one or the new one."""
    with_source()
    old, new = dumps(specs.target()), new_text(specs.target())
    path, stop, seen = NODE.bundle("target") + "/config.json", threading.Event(), set()

    def read():
        while not stop.is_set():
            try:
                seen.add(fakenode.read(path))
            except FileNotFoundError:
                seen.add(b"missing")
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(100):
            fakenode.write(path + ".old", old)
            os.rename(path + ".old", path)
            need(create().status == fakenode.STARTED, "it fails")
    finally:
        stop.set()
        reader.join()
    need(seen <= {old, new}, "seen:", seen - {old, new})


def deletes_and_creates_at_once():
    """Marks, sweeps and creates of the same ids at the same time lose nobody who lives."""
    with_source()
    names = ["c%d" % i for i in range(6)]
    for name in names:
        NODE.make_bundle(name, dumps(specs.source(name, "x-" + name)))
    for _ in range(15):
        calls = []
        for name in names:
            calls.append((NODE.create_args(name), NODE.bundle(name)))
            calls.append(([*DELETE[:-1], "--force", name], "/"))
        done = at_once(calls)
        need(all(status == fakenode.STARTED for _, status in done), done)
        whole_files(fakenode.RUN)
        need(NODE.record("main"), "the living one's record is gone")
    for name in names:
        need(create(name).status == fakenode.STARTED and NODE.record(name), name)


TESTS = [full_disk_under_the_bundle, full_disk_no_inode_left, read_only_bundle,
         full_disk_under_the_registry, full_disk_under_the_grants, full_disk_under_our_log,
         killed_target, killed_create_then_deleted, killed_target_with_a_grant, killed_holder,
         killed_delete_and_sweep, killed_hook, two_creates_of_one_id, two_containers_of_one_name,
         two_pods_with_one_grant, a_reader_beside, deletes_and_creates_at_once]


def main():
    global NODE
    NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], NODE.reset)


if __name__ == "__main__":
    main()
