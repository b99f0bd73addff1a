#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a pod's author may try against gpushare-runtime and gpushare-hook, what a borrower may not
be, and an agent that answers, refuses, hangs or is a fraud. Prints TAP; arguments choose tests by
the beginning of their names."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import jsontext  # noqa: E402
import refusal  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from fakeagent import Agent  # noqa: E402
from refusal import State  # noqa: E402
from specs import GRANT, dumps  # noqa: E402
from tap import need  # noqa: E402

NODE = None
NAME = "0123456789abcdef0123456789abcdef"
SPOT = {"kind": "spot", "resource": "gpushare/spot-gpu", "lease": "live"}
HOLDER = "team-b/shadow/holder"
NO_AGENT = "no agent at /run/gpushare/agent.sock: @ANY@"


def run(spec, name="target", **more):
    text = spec if isinstance(spec, bytes) else dumps(spec)
    fakenode.forget(NODE.make_bundle(name, text) + "/log.json")
    before = State(NODE, name)
    return before, NODE.run(NODE.create_args(name), cwd=NODE.bundle(name), **more)


def refused(spec, message, **more):
    before, result = run(spec, **more)
    return refusal.check(NODE, result, message, before, NODE.bundle("target") + "/log.json")


def starts(spec, name="target", **more):
    """The container starts; gives its config.json before and after."""
    before, result = run(spec, name, **more)
    need(result.status == fakenode.STARTED, "status", result.status, result.err)
    return before.text, fakenode.read(NODE.bundle(name) + "/config.json")


def with_holder():
    """A card held by another pod."""
    specs.cards(NODE)
    NODE.container("holder", dumps(specs.source("holder", who=specs.other_pod())))


def asking(**more):
    return specs.target(key=None, **{GRANT: NAME}, **more)


# Grants that nobody gave.
def forged_grant_files():
    """The folder and the files in it are root's alone, or there is no grant."""
    with_holder()
    folder, path = fakenode.LIB + "/grants", "%s/grants/%s.json" % (fakenode.LIB, NAME)
    key = "annotation %s: " % GRANT

    def with_file(change, message):
        NODE.grant(NAME, resource="gpushare/share-gpu")
        change()
        said = refused(asking(), key + message)
        need(NAME not in said, "the whole name is in the message")
        fakenode.forget(path)

    def replace_by(make):
        fakenode.write(fakenode.HOME + "/tmp/forged.json", fakenode.read(path), 0o600)
        fakenode.forget(path)
        make()
    short = "grant 012345..."
    with_file(lambda: os.chmod(path, 0o620), short + ": others than root may change its file")
    with_file(lambda: os.chmod(path, 0o602), short + ": others than root may change its file")
    with_file(lambda: os.chown(path, 1000, 0), short + ": others than root may change its file")
    with_file(lambda: replace_by(lambda: os.symlink(fakenode.HOME + "/tmp/forged.json", path)),
              short + ": its file is a symbolic link")
    for make in (os.mkdir, os.mkfifo):
        with_file(lambda m=make: replace_by(lambda: m(path)),
                  short + ": its file is not a regular one")
    for mode, message in ((0o755, "@ANY@grants must be root's with mode 0700"),
                          (0o750, "@ANY@grants must be root's with mode 0700"),
                          (0o701, "@ANY@grants must be root's with mode 0700"),
                          (0o777, "@ANY@grants may be written by others than root@ANY@")):
        with_file(lambda m=mode: os.chmod(folder, m), message)
        os.chmod(folder, 0o700)
    with_file(lambda: os.chown(folder, 1000, 0), "@ANY@grants belongs to user 1000, not to root")
    os.chown(folder, 0, 0)
    NODE.grant(NAME, resource="gpushare/share-gpu")
    os.rename(folder, fakenode.LIB + "/moved")
    os.symlink("moved", folder)
    refused(asking(), key + "@ANY@grants is not a directory (links are not followed)")


def grant_of_another_pod():
    """A grant that was used is worth nothing to anybody else, and nobody is told whose it is."""
    with_holder()
    NODE.grant(NAME, resource="gpushare/share-gpu")
    starts(specs.spec("first", {**specs.identity("c", "first", "team-c", "sandbox-5", "uid-5"),
                                GRANT: NAME}), "first")
    said = refused(asking(), "grant 012345... is bound to another container")
    need("first" not in said and "team-c" not in said, "the message tells whose it is:", said)
    # another container of that very pod is another container
    second = specs.spec("second", {**specs.identity("d", "first", "team-c", "sandbox-5", "uid-5"),
                                   GRANT: NAME})
    _, result = run(second, "second")
    need(result.status == 1 and b"is bound to another" in result.err, result.status, result.err)
    # the pod comes back under its name: the kubelet's replay is for the old instance
    third = specs.spec("third", {**specs.identity("c", "first", "team-c", "sandbox-6", "uid-6"),
                                 GRANT: NAME})
    _, result = run(third, "third")
    need(result.status == 1 and b"is bound to another" in result.err, result.status, result.err)
    # the same container, restarted, goes on
    starts(specs.spec("fourth", {**specs.identity("c", "first", "team-c", "sandbox-5", "uid-5"),
                                 GRANT: NAME}), "fourth")


def grant_bound_before_the_cards_are_there():
    """A refused create binds nothing: the grant still serves whom it was made for."""
    with_holder()
    NODE.grant(NAME, resource="gpushare/share-gpu", sources=["team-b/shadow/absent"])
    refused(asking(), "source team-b/shadow/absent is not running")
    need(not os.path.exists("%s/grants/%s.bound" % (fakenode.LIB, NAME)), "it is bound")


def grants_are_secrets():
    """No message and no log of ours has a whole name."""
    with_holder()
    log = fakenode.HOME + "/tmp/own.log"
    NODE.configure({"log": {"level": "debug", "file": log}})
    refused(asking(), "@ANY@no such grant 012345...")
    NODE.grant(NAME, state="revoked")
    refused(asking(), "@ANY@was revoked")
    NODE.grant(NAME, resource="gpushare/share-gpu")
    starts(asking())
    text = fakenode.read(log).decode()
    need(text and NAME not in text, "our own log has", text)


def grant_that_holds_a_nul():
    """What is malformed may still be nearly a secret: no part of it is told."""
    specs.cards(NODE)
    name = "0123456789abcdef0123456789abcdef"
    text = dumps(specs.target(**{"gpushare.k8s.io/grant": name + "\0"}))
    refused(text, "annotation gpushare.k8s.io/grant: the value holds a NUL character")


# Cards that are another's.
def anothers_card_in_the_environment():
    """A name in the environment is a word: it opens nothing that the container was not given."""
    specs.cards(NODE)
    word = ["NVIDIA_VISIBLE_DEVICES=GPU-of-somebody"]
    NODE.container("main", dumps(specs.source(env=word, nodes=[])))
    refused(specs.target(), "source team-a/devpod/main has no devices to share")
    NODE.container("own", dumps(specs.source("own", "own", env=word)))
    specs.got_card(*starts(specs.target("_/_/own")), env=word)


def devices_of_no_vendor():
    """Nodes that no catalogue entry names stay with the source, whatever they are called."""
    specs.cards(NODE)
    nodes = [("/dev/sda", 8, 0), ("/dev/mem", 1, 1), ("/dev/nvidia", 195, 3), ("/dev/kvm", 10, 232),
             ("/dev/nvidia0/../sda", 8, 0), ("/dev//nvidia0", 195, 0), ("/dev/nvidiaX", 195, 4),
             ("dev/nvidia0", 195, 0), ("/dev/nvidia0/", 195, 0), ("/etc/nvidia0", 195, 0)]
    NODE.container("main", dumps(specs.source(nodes=nodes + specs.NODES)))
    specs.got_card(*starts(specs.target()))


def vendor_path_with_a_foreign_number():
    """A node at a vendor's path with the number of a disk: the host's own node says otherwise."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source(nodes=[("/dev/nvidia0", 8, 0)])))
    refused(specs.target(), "stale source team-a/devpod/main: it has /dev/nvidia0 as c 8:0, "
            "the host as c 195:0")


def volumes_at_vendor_paths():
    """An author's own volumes, mounted in the source where the driver's files would be."""
    specs.cards(NODE)
    kubelet = "/var/lib/kubelet/pods/%s/" % specs.UID
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    sources = [kubelet + "volumes/kubernetes.io~empty-dir/x/libcuda.so.1",
               kubelet + "volumes/kubernetes.io~host-path/x" + library,
               kubelet + "volume-subpaths/x/main/0", "/home/author/libcuda.so.1",
               "/mnt/kubelet/pods/x/volumes/kubernetes.io~csi/y/mount" + library,
               "/run/nvidia/driver/../../../home/author" + library, "/", library + "/..",
               "/usr/lib/x86_64-linux-gnu/../../../home/author/libcuda.so.1", ""]
    for at, where in enumerate(sources):
        spec = specs.source("main%d" % at)
        for to in (library, "/usr/bin/nvidia-smi", "/var/run/nvidia-container-devices/GPU-x",
                   "/etc/ld.so.preload", "/tmp/nvidia-mps"):
            spec["mounts"].append({"destination": to, "type": "bind", "source": where,
                                   "options": ["rbind"]})
        NODE.container("main%d" % at, dumps(spec))
        specs.got_card(*starts(specs.target()))
        NODE.stop("main%d" % at)


def volumes_that_a_pattern_would_take():
    """However wide a catalogue's patterns are, a pod's volume is the author's and no driver's."""
    specs.cards(NODE)
    fakenode.write(fakenode.VENDORS + "/wide.json", json.dumps({
        "name": "wide", "title": "Wide", "nodes": [{"glob": "/dev/wide*", "kind": "card"}],
        "mounts": [{"to": "/opt/wide", "from": ["/{*,*/*,*/*/*}" + "{,/*}" * 7]}]}))
    NODE.device("/dev/wide0", "c", 240, 0)
    kubelet = "/var/lib/kubelet/pods/%s/" % specs.UID
    nodes = [("/dev/wide0", 240, 0)]
    for at, (where, taken) in enumerate([("/opt/wide", True), ("/srv/a/b/c/wide", True),
                                         (kubelet + "volumes/kubernetes.io~empty-dir/x", False),
                                         (kubelet + "volumes/kubernetes.io~csi/y/mount", False),
                                         (kubelet + "volume-subpaths/x/main/0", False),
                                         ("/k/pods/x/volumes/kubernetes.io~nfs/y", False),
                                         ("/opt/../srv/wide", False), ("/opt//wide", False),
                                         ("/opt/./wide", False), ("/opt/wide/", False)]):
        name = "main%d" % at
        mount = {"destination": "/opt/wide", "type": "bind", "source": where, "options": ["bind"]}
        spec = specs.source(name, env=[], nodes=nodes)
        spec["mounts"].append(mount)
        NODE.container(name, dumps(spec))
        _, new = starts(specs.target())
        got = [json.loads(m) for m in jsontext.elements(new, "mounts")][1:]
        need(got == ([mount] if taken else []), where, "gives", got)
        NODE.stop(name)


def secrets_of_the_source():
    specs.cards(NODE)
    env = [specs.GPU, "LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil", "AWS_SECRET_ACCESS_KEY=x",
           "nvidia_visible_devices=all", "NVIDIA_VISIBLE_DEVICES_X=all",
           "XNVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES", "=NVIDIA_VISIBLE_DEVICES"]
    NODE.container("main", dumps(specs.source(env=[env[-1], *env[1:-1], env[0]])))
    specs.got_card(*starts(specs.target()))
    record = json.dumps(NODE.record("main"))
    need("evil" not in record and "AWS" not in record, "the registry has", record)


def hooks_of_the_source():
    """Hook programs of nobody's driver."""
    specs.cards(NODE)
    spec = specs.source()
    spec["hooks"] = {"prestart": [{"path": p} for p in (
        "/opt/evil", "/tmp/nvidia-cdi-hook-2", "nvidia-cdi-hook", "/x/../nvidia-cdi-hook",
        "/opt/nvidia-cdi-hook/sh")]}
    NODE.container("main", dumps(spec))
    specs.got_card(*starts(specs.target()))


# Names and links.
def other_vocabularies():
    """Every key that an author can write, in the hope that somebody believes it."""
    with_holder()
    forged = {"io.kubernetes.container.name": "holder", "io.kubernetes.pod.name": "shadow",
              "io.kubernetes.pod.namespace": "team-b", "io.kubernetes.pod.uid": "uid",
              "io.kubernetes.cri-o.SandboxID": "sandbox-9",
              "io.kubernetes.cri-o.ContainerType": "container",
              "io.kubernetes.cri-o.KubeName": "shadow", "io.kubernetes.cri-o.Namespace": "team-b",
              "gpushare.k8s.io/identity": HOLDER, "gpushare.k8s.io/role": "holder",
              "gpushare.k8s.io/sandbox-id": "sandbox-9", "gpushare.k8s.io/partition": "gold",
              "io.kubernetes.cri.sandbox-id ": "sandbox-9",
              "IO.KUBERNETES.CRI.sandbox-id": "sandbox-9"}
    for value in (HOLDER, "team-b/shadow/holder,team-b/shadow/holder"):
        refused(specs.target(value, **forged), "source %s is in another pod: that needs a grant "
                "(annotation %s)" % (HOLDER, GRANT))


def same_name_is_not_same_pod():
    """A pod with the holder's namespace and name, made after it was deleted: another instance."""
    with_holder()
    who = specs.identity("dind", "shadow", "team-b", "sandbox-10", "uid-10")
    thief = specs.spec("target", {**who, specs.FROM + ".dind": "_/_/holder"})
    refused(thief, "source %s is not running" % HOLDER)


def links_in_the_rootfs():
    """The image's own links: nothing below the bundle's rootfs is looked at, let alone changed."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    root = NODE.make_bundle("target", b"{}") + "/rootfs"
    os.makedirs(root + "/usr")
    for link, to in (("dev", "/etc"), ("usr/bin", "/root"), ("etc", "../../.."),
                     ("proc", "/proc/1/root"), ("config.json", "/etc/passwd")):
        os.symlink(to, os.path.join(root, link))
    before = sorted((p, os.lstat(os.path.join(root, p)).st_ino) for p in os.listdir(root))
    specs.got_card(*starts(specs.target()))
    need(before == sorted((p, os.lstat(os.path.join(root, p)).st_ino) for p in os.listdir(root)),
         "the rootfs changed")


def config_json_in_a_folder_of_others():
    """A bundle that others may write to: the temporary file is never one that was there."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    folder = NODE.make_bundle("target", b"{}")
    os.chmod(folder, 0o777)
    for at in range(64):
        os.symlink("/run/golden/victim-%d" % at, "%s/config.json.gpushare-%016x" % (folder, at))
    specs.got_card(*starts(specs.target()))
    need(not [f for f in os.listdir(fakenode.HOME) if f.startswith("victim")],
         "a link was followed")


def environment_of_the_hook():
    """The hook takes nothing from its environment."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    starts(specs.target())
    pid = NODE.start("target")
    state = json.dumps({"id": "target", "pid": pid}).encode()
    result = NODE.run(["--config", fakenode.CONFIG], program=fakenode.HOOK, stdin=state,
                      env={"GPUSHARE_CONFIG": "/nonexistent", "LD_PRELOAD": "/evil.so",
                           "LD_LIBRARY_PATH": "/evil", "PATH": "/evil", "TZ": "/etc/passwd",
                           "LOCPATH": "/evil"})
    need(result.status == 0, result.err)
    need(result.out == b"" and b"evil.so" not in result.err.replace(
        b"ERROR: ld.so: object '/evil.so' from LD_PRELOAD", b""), result.err)


# Borrowers.
def borrower(**change):
    """A spot pod's container that may borrow."""
    spec = asking()
    spec["linux"]["namespaces"] = [{"type": t} for t in ("pid", "mount", "ipc", "network", "uts")]
    for key, value in change.items():
        spec["linux" if key in spec["linux"] or key == "devices" else "process"][key] = value
    return spec


def borrower_starts_with_an_agent():
    with_holder()
    NODE.grant(NAME, **SPOT)
    with Agent() as agent:
        old, new = starts(borrower())
    specs.got_card(old, new)
    need(agent.asked == [{"v": 1, "op": "borrow", "container": "target", "grant": NAME,
                          "sources": ["holder"]}], "the agent was asked", agent.asked)
    need(NODE.record("target")["role"] == "borrower", NODE.record("target"))


def borrower_without_privileges():
    """Each thing that lets a process out of its container, by the name that it has in the spec."""
    with_holder()
    NODE.grant(NAME, **SPOT)
    all_rules = {"devices": [{"allow": True, "access": "rwm"}]}
    with Agent() as agent:
        refused(borrower(resources=all_rules), "a spot container may not be privileged")
        for kind in ("pid", "network", "ipc"):
            message = "a spot container may not use the host's %s namespace" % kind
            kept = [n for n in borrower()["linux"]["namespaces"] if n["type"] != kind]
            refused(borrower(namespaces=kept), message)
            short = "net" if kind == "network" else kind
            for path in ("/proc/1/ns/" + short, "/proc/self/ns/" + short, "/nonexistent"):
                refused(borrower(namespaces=kept + [{"type": kind, "path": path}]), message)
        refused(borrower(namespaces=None), "a spot container may not use the host's @ANY@")
        for cap in ("SYS_ADMIN", "SYS_MODULE", "NET_ADMIN", "SYS_RAWIO", "SYS_PTRACE"):
            for kind in ("bounding", "effective", "permitted", "inheritable", "ambient"):
                for name in ("CAP_" + cap, cap, ("cap_" + cap).lower()):
                    refused(borrower(capabilities={"bounding": ["CAP_CHOWN"], kind: [name]}),
                            "a spot container may not have CAP_" + cap)
        card = specs.device("/dev/nvidia1", 195, 1)
        refused(borrower(devices=[card]),
                "a spot container may not hold a card of its own (/dev/nvidia1)")
        need(agent.asked == [], "the agent was asked before the spec was checked:", agent.asked)
        need(not os.path.exists("%s/grants/%s.bound" % (fakenode.LIB, NAME)), "the grant is bound")
        starts(borrower(capabilities={"bounding": ["CAP_CHOWN", "CAP_MKNOD", "CAP_SYS_CHROOT"]}))


def borrower_and_member_at_once():
    with_holder()
    NODE.container("main", dumps(specs.source()))
    NODE.grant(NAME, **SPOT)
    spec = asking(**{specs.FROM + ".dind": "_/_/main"})
    with Agent():
        refused(spec, "a spot container may not also receive from team-a/devpod/main of its own "
                "pod: member and borrower at once")


def borrower_of_a_borrower():
    """A target whose source is a borrower is a borrower too."""
    with_holder()
    NODE.grant(NAME, **SPOT)
    first = specs.spec("first", {**specs.identity("first"), GRANT: NAME})
    with Agent():
        NODE.container("first", dumps(first))
        need(NODE.record("first")["role"] == "borrower", NODE.record("first"))
        privileged = specs.target("_/_/first")
        privileged["linux"]["resources"]["devices"] = [{"allow": True, "access": "rwm"}]
        refused(privileged, "a spot container may not be privileged")
        starts(specs.target("_/_/first"))
        need(NODE.record("target")["role"] == "borrower", NODE.record("target"))
    refused(specs.spec("target", {**specs.identity("later"), specs.FROM + ".later": "_/_/first"}),
            "a spot container can't start: " + NO_AGENT)


def borrower_without_an_agent():
    with_holder()
    NODE.grant(NAME, **SPOT)
    refused(borrower(), "a spot container can't start: " + NO_AGENT)
    fakenode.write(fakenode.RUN + "/agent.sock", "no socket")
    refused(borrower(), "a spot container can't start: " + NO_AGENT + "that is no socket")
    fakenode.forget(fakenode.RUN + "/agent.sock")
    with Agent():
        os.rename(fakenode.RUN + "/agent.sock", fakenode.RUN + "/kept")
    os.rename(fakenode.RUN + "/kept", fakenode.RUN + "/agent.sock")
    refused(borrower(), "a spot container can't start: " + NO_AGENT + "Connection refused")


def frauds_are_no_agent():
    """A socket that is not root's own, or that others may write to."""
    with_holder()
    NODE.grant(NAME, **SPOT)
    for options, why in (({"mode": 0o666}, "others than root may write to the socket"),
                         ({"mode": 0o620}, "others than root may write to the socket"),
                         ({"owner": 1000}, "the socket is not root's")):
        with Agent(**options) as agent:
            refused(borrower(), "a spot container can't start: " + NO_AGENT + why)
            need(agent.asked == [], "the fraud was told", agent.asked)


def agent_refuses():
    with_holder()
    NODE.grant(NAME, **SPOT)
    with Agent(b'{"v":1,"ok":false,"error":"the card is not lent"}'):
        refused(borrower(), "a spot container can't start: the card is not lent")
    answers = [b"{", b"[]", b"null", b'{"v":1}', b'{"ok":true}', b'{"v":2,"ok":true}',
               b'{"v":1,"ok":"true"}', b'{"v":1,"ok":1}', b'{"v":1,"ok":false}', b"\xff\xfe",
               b"x" * 70000, b'{"v":1,"ok":true}{"v":1,"ok":true}',
               b'{"v":1,"ok":false,"error":"a\\nb\\u001b[31m"}',
               b'{"v":1,"ok":false,"error":5}', b""]
    for answer in answers:
        with Agent(answer):
            refused(borrower(), "a spot container can't start: @ANY@")


def agent_hangs():
    """Creation is delayed no longer than the configuration says."""
    with_holder()
    NODE.grant(NAME, **SPOT)
    NODE.configure({"create_wait_ms": 300})
    with Agent(None):
        begin = time.monotonic()
        refused(borrower(), "a spot container can't start: the agent did not answer in time")
        took = time.monotonic() - begin
    need(0.25 < took < 10, "it took", took, "s")


def ordinary_targets_need_no_agent():
    """Anything else goes on, whatever the agent does."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    for answer in (None, b"{", b'{"v":1,"ok":false,"error":"no"}'):
        with Agent(answer) as agent:
            specs.got_card(*starts(specs.target()))
            need(agent.asked == [], "asked", agent.asked)


# The hook.
def hook_run(state, check=None):
    result = NODE.run(["--config", fakenode.CONFIG], program=fakenode.HOOK, argv0="gpushare-hook",
                      stdin=state if isinstance(state, bytes) else json.dumps(state).encode(),
                      env={})
    if check is not None:
        need(result.status == 1, "status", result.status, result.err)
        text = result.err.decode()
        need(text.startswith("gpushare-hook: ") and text.count("\n") == 1, text)
        need(refusal.fits(check, text[15:-1]), "the message is", text, "and not", check)
    return result


def hook_bad_input():
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    starts(specs.target())
    pid = NODE.start("target")
    for state, message in ((b"", "the container's state: @ANY@"),
                           (b"{", "the container's state: @ANY@"),
                           (b"[]", "the container's state has no pid"),
                           ({"id": "target"}, "the container's state has no pid"),
                           ({"id": "target", "pid": 0}, "the container's state has no pid"),
                           ({"id": "target", "pid": -1}, "the container's state has no pid"),
                           ({"id": "target", "pid": "1"}, "the container's state has no pid"),
                           ({"id": "target", "pid": 1 << 40}, "the container's state has no pid"),
                           ({"pid": pid}, "the container's state has no usable id"),
                           ({"id": "../x", "pid": pid}, "the container's state has no usable id"),
                           ({"id": "unknown", "pid": pid}, "no record of container unknown"),
                           ({"id": "target", "pid": 1 << 30}, "process %d is gone" % (1 << 30)),
                           (b" " * (17 << 20), "the container's state: @ANY@16777216@ANY@")):
        hook_run(state, message)
    need(hook_run({"id": "target", "pid": pid}).status == 0, "the good one fails")
    for args in ([], ["--config"], ["x"], ["--config", fakenode.CONFIG, "x"], ["--x"]):
        result = NODE.run(args, program=fakenode.HOOK, argv0="gpushare-hook", env={})
        need(result.status == 2 and b"usage: " in result.err, args, result.status, result.err)
    result = NODE.run(["--help"], program=fakenode.HOOK, argv0="gpushare-hook", env={})
    need(result.status == 0 and b"usage: " in result.out, result.status, result.out)
    NODE.configure({}, "{")
    hook_run({"id": "target", "pid": pid}, fakenode.CONFIG + ": line 1, column 2: @ANY@")


def hook_completes_the_record():
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    starts(specs.target())
    pid = NODE.start("target")
    need(hook_run({"id": "target", "pid": pid}).status == 0, "it fails")
    record = json.loads(fakenode.read(fakenode.RUN + "/containers/target.hook.json"))
    stat = fakenode.read("/proc/%d/stat" % pid).decode()
    need(record == {"v": 1, "id": "target", "pid": pid,
                    "start_ticks": int(stat.rpartition(")")[2].split()[19]),
                    "pid_ns": os.stat("/proc/%d/ns/pid" % pid).st_ino,
                    "cgroup": record["cgroup"]}, record)
    need(record["cgroup"].endswith("/kubepods/pod%s/target" % specs.UID), record)
    mode = os.stat(fakenode.RUN + "/containers/target.hook.json").st_mode & 0o777
    need(mode == 0o600, oct(mode))


def hook_checks_the_grant_again():
    """A grant that went away between create and start."""
    with_holder()
    changes = [(lambda: NODE.grant(NAME, state="revoked", resource="gpushare/share-gpu"),
                "grant 012345... was revoked"),
               (lambda: os.unlink("%s/grants/%s.json" % (fakenode.LIB, NAME)),
                "no such grant 012345..."),
               (lambda: os.unlink("%s/grants/%s.bound" % (fakenode.LIB, NAME)),
                "grant 012345...@ANY@")]
    for change, message in changes:
        NODE.grant(NAME, resource="gpushare/share-gpu")
        starts(asking())
        pid = NODE.start("target")
        need(hook_run({"id": "target", "pid": pid}).status == 0, "the good one fails")
        change()
        hook_run({"id": "target", "pid": pid}, message)
        NODE.stop("target")


def hook_waits_for_the_watch():
    with_holder()
    NODE.grant(NAME, **SPOT)
    NODE.configure({"create_wait_ms": 500})
    with Agent():
        starts(borrower())
    pid = NODE.start("target")
    hook_run({"id": "target", "pid": pid}, NO_AGENT)
    with Agent() as agent:
        need(hook_run({"id": "target", "pid": pid}).status == 0, "the agent's ok is not enough")
        need(agent.asked == [{"v": 1, "op": "watched", "container": "target"}], agent.asked)
    with Agent(b'{"v":1,"ok":false,"error":"no watch: its holder is back"}'):
        hook_run({"id": "target", "pid": pid}, "no watch: its holder is back")
    with Agent(None):
        begin = time.monotonic()
        hook_run({"id": "target", "pid": pid}, "the agent did not answer in time")
        need(time.monotonic() - begin < 10, "it waited too long")
    NODE.grant(NAME, **dict(SPOT, lease="over"))
    with Agent() as agent:
        hook_run({"id": "target", "pid": pid}, "the GPU was reclaimed by its holder")
        need(agent.asked == [], "asked", agent.asked)


def hook_of_an_ordinary_target():
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    starts(specs.target())
    pid = NODE.start("target")
    need(hook_run({"id": "target", "pid": pid}).status == 0, "no agent stops it")
    with Agent(b'{"v":1,"ok":false,"error":"this card can not be watched"}'):
        hook_run({"id": "target", "pid": pid}, "this card can not be watched")


# Cards that are lent.
def lend(cgroups, **change):
    lent = {"v": 1, "card": "GPU-1", "vendor": "nvidia",
            "nodes": [{"type": "c", "major": 195, "minor": 0}],
            "select": [specs.GPU.split("=")[1]], "cgroups": cgroups}
    lent.update(change)
    os.makedirs(fakenode.RUN + "/lent", mode=0o700, exist_ok=True)
    os.chmod(fakenode.RUN, 0o700)
    fakenode.write(fakenode.RUN + "/lent/GPU-1", json.dumps(lent), 0o600)


def lent_card_comes_back_by_the_agent():
    specs.cards(NODE)
    lend([])
    with Agent() as agent:
        starts(specs.source("target"))
        need(agent.asked == [{"v": 1, "op": "reclaim", "container": "target",
                              "to": "team-a/devpod/main", "cards": ["GPU-1"]}],
             "asked", agent.asked)
    with Agent(b'{"v":1,"ok":false,"error":"the borrower does not die"}'):
        refused(specs.source("target"), "a card of this container is lent and not back yet: "
                "the borrower does not die")
    NODE.configure({"create_wait_ms": 300})
    with Agent(None):
        refused(specs.source("target"), "a card of this container is lent and not back yet: "
                "the agent did not answer in time")


def lent_card_is_another():
    """Other cards' lending is none of this container's business."""
    specs.cards(NODE)
    lend([], nodes=[{"type": "c", "major": 195, "minor": 1}], select=["GPU-2"])
    with Agent(b'{"v":1,"ok":false,"error":"no"}') as agent:
        starts(specs.source("target"))
        starts(specs.spec("target", specs.identity("cpu-only")))
        need(agent.asked == [], "asked", agent.asked)


def lent_card_without_an_agent():
    """The runtime itself kills the borrowers, and only them."""
    specs.cards(NODE)
    pid = NODE.start("borrower", "/kubepods/podX/borrower")
    stranger = NODE.start("stranger", "/kubepods/podX/other")
    base = NODE.cgroup_base + "/kubepods/podX/"
    lend([base + "borrower"])
    starts(specs.source("target"))
    need(NODE.sleeps["borrower"].wait(timeout=5) == -9, "the borrower", pid, "lives")
    need(NODE.sleeps["stranger"].poll() is None, "the stranger", stranger, "was killed")


def shared_card_is_asked_for():
    """The agent is asked whether others have to go first; without one the container starts."""
    specs.cards(NODE)
    lend([])
    os.rename(fakenode.RUN + "/lent", fakenode.RUN + "/shared")
    shared = json.loads(fakenode.read(fakenode.RUN + "/shared/GPU-1"))
    del shared["cgroups"]
    fakenode.write(fakenode.RUN + "/shared/GPU-1", json.dumps(shared), 0o600)
    with Agent() as agent:
        starts(specs.source("target"))
        need([(a["op"], a["cards"]) for a in agent.asked] == [("reclaim", ["GPU-1"])], agent.asked)
        starts(specs.spec("target", specs.identity("cpu-only")))
        need(len(agent.asked) == 1, agent.asked)
    with Agent(b'{"v":1,"ok":false,"error":"they do not die"}'):
        refused(specs.source("target"), "a card of this container is lent and not back yet: "
                "they do not die")
    starts(specs.source("target"))


def lent_card_names_no_cgroup_to_kill():
    """A mistake in that file must not kill a node."""
    specs.cards(NODE)
    stranger = NODE.start("stranger", "/kubepods/podX/other")
    root = "/sys/fs/cgroup"
    bad = [root, root + "/", root + "/devices", root + "/kubepods", root + "/x/kubepods.slice", "/",
           "", "relative", root + "/a/../..", root + "/a/..", root + "/../../tmp/x", root + "//a",
           "/tmp/a/b", root + "/a/./b", root + "/system.slice", NODE.cgroup_base + "/kubepods"]
    for path in bad:
        lend([path])
        refused(specs.source("target"), "a card of this container is lent and not back yet: "
                "cgroup %s is not one that may be killed" % path)
        need(NODE.sleeps["stranger"].poll() is None, path, "killed", stranger)
    lend([NODE.cgroup_base + "/kubepods/podX/gone"])
    starts(specs.source("target"))


def lent_card_file_is_damaged():
    """No reason to stop a holder."""
    specs.cards(NODE)
    for content in ("", "{", "[]", '{"v":1}', '{"nodes":5,"select":7,"cgroups":"x"}', "x" * 70000):
        lend([])
        fakenode.write(fakenode.RUN + "/lent/GPU-1", content)
        starts(specs.source("target"))


# Who may call.
UNSHARE = ["/usr/bin/unshare", "--user", "--map-root-user"]


def rootless_callers():
    """A runtime in a user namespace of its own, or not run by root, gives no devices."""
    specs.cards(NODE)
    NODE.container("main", dumps(specs.source()))
    why = ("devices can't be shared by a rootless runtime: "
           "it runs in a user namespace or not as root")
    before, result = run(specs.target(), before=UNSHARE)
    if b"unshare" in result.err:
        need(False, "unshare --user does not work here:", result.err)
    need(result.status == 1 and why.encode() in result.err, result.status, result.err)
    need(State(NODE).text == before.text, "config.json changed")
    plain = specs.target(key=None)
    need(run(plain, before=UNSHARE)[1].status == fakenode.STARTED,
         "an ordinary rootless container is stopped")


TESTS = [forged_grant_files, grant_of_another_pod, grant_bound_before_the_cards_are_there,
         grants_are_secrets, grant_that_holds_a_nul, anothers_card_in_the_environment,
         devices_of_no_vendor,
         vendor_path_with_a_foreign_number, volumes_at_vendor_paths,
         volumes_that_a_pattern_would_take, secrets_of_the_source,
         hooks_of_the_source, other_vocabularies, same_name_is_not_same_pod, links_in_the_rootfs,
         config_json_in_a_folder_of_others, environment_of_the_hook, borrower_starts_with_an_agent,
         borrower_without_privileges, borrower_and_member_at_once, borrower_of_a_borrower,
         borrower_without_an_agent, frauds_are_no_agent, agent_refuses, agent_hangs,
         ordinary_targets_need_no_agent, hook_bad_input, hook_completes_the_record,
         hook_checks_the_grant_again, hook_waits_for_the_watch, hook_of_an_ordinary_target,
         lent_card_comes_back_by_the_agent, lent_card_is_another, lent_card_without_an_agent,
         shared_card_is_asked_for,
         lent_card_names_no_cgroup_to_kill, lent_card_file_is_damaged, rootless_callers]


def main():
    global NODE
    NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], NODE.reset)


if __name__ == "__main__":
    main()
