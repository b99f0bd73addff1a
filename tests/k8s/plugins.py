#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's device plugins at a kubelet that Python's gRPC plays: the real gpushared, its socket,
grants, and gpushare-runtime that starts containers by them. No kernel module is there, so no card
is ever lent here; tests/vm has that. Prints TAP; arguments choose tests by the beginning of their
names."""
import concurrent.futures
import json
import os
import queue
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../runtime")]
import fakenode  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from tap import need  # noqa: E402

NODE = None
KUBELET_DIR = fakenode.HOME + "/kubelet"
CLASS = fakenode.HOME + "/class"
SHARE, SPOT = "gpushare/share-gpu", "gpushare/spot-gpu"
SHADOW = "gpushare.k8s.io/shadow"
# Seconds that anything may take on a machine that is busy.
LONG = 60


def wait_for(what, condition):
    end = time.monotonic() + LONG
    while True:
        got = condition()
        if got or time.monotonic() > end:
            need(got, "in vain waited for:", what)
            return got
        time.sleep(0.05)


def shuffled(things):
    things = list(things)
    return random.sample(things, len(things))


class Kubelet:
    """A kubelet's device manager: one stream for each resource that registered."""

    def __init__(self):
        import grpc
        import protos
        self.grpc = grpc
        if "deviceplugin_pb2" not in sys.modules:
            protos.load(tempfile.mkdtemp(dir=fakenode.HOME))
        self.plugin_pb = sys.modules["deviceplugin_pb2"]
        self.pods_pb = sys.modules["podresources_pb2"]
        self.uses, self.servers = {}, []
        self.channels, self.lists, self.options = {}, {}, {}
        self.registered = queue.Queue()
        self.pods_wrong = None
        self.knows = True
        self.asked = queue.Queue()
        self.gate = None

    def start(self):
        """As a kubelet does: whatever socket there was is gone."""
        for folder in ("device-plugins", "pod-resources"):
            os.makedirs(KUBELET_DIR + "/" + folder, exist_ok=True)
            fakenode.empty(KUBELET_DIR + "/" + folder)
        self.serve("device-plugins", "v1beta1.Registration", {
            "Register": (self.register, self.plugin_pb.RegisterRequest)})
        self.serve("pod-resources", "v1.PodResourcesLister", {
            "List": (self.list, self.pods_pb.ListPodResourcesRequest),
            "GetAllocatableResources": (self.allocatable,
                                        self.pods_pb.AllocatableResourcesRequest)})
        return self

    def stop(self):
        for server in self.servers:
            server.stop(None).wait()
        for channel in self.channels.values():
            channel.close()
        self.servers, self.channels, self.lists = [], {}, {}

    def serve(self, folder, service, methods):
        handlers = {
            name: self.grpc.unary_unary_rpc_method_handler(
                function, request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString())
            for name, (function, request) in methods.items()}
        server = self.grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((
            self.grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port("unix:%s/%s/kubelet.sock" % (KUBELET_DIR, folder))
        server.start()
        self.servers.append(server)

    def register(self, request, context):
        self.registered.put(request.resource_name)
        self.options[request.resource_name] = request.options.get_preferred_allocation_available
        threading.Thread(target=self.watch, args=(request.resource_name, request.endpoint),
                         daemon=True).start()
        return self.plugin_pb.Empty()

    def watch(self, resource, endpoint):
        if resource in self.channels:
            self.channels[resource].close()
        channel = self.grpc.insecure_channel("unix:%s/device-plugins/%s" % (KUBELET_DIR, endpoint))
        self.channels[resource] = channel
        call = channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=self.plugin_pb.Empty.SerializeToString,
            response_deserializer=self.plugin_pb.ListAndWatchResponse.FromString)
        try:
            for answer in call(self.plugin_pb.Empty()):
                self.lists[resource] = {d.ID: d.health for d in answer.devices}
        except (self.grpc.RpcError, ValueError):
            pass
        if self.channels.get(resource) is channel:
            self.lists.pop(resource, None)

    def list(self, _, context):
        if self.pods_wrong:
            context.abort(self.grpc.StatusCode.UNAVAILABLE, self.pods_wrong)
        answer = self.pods_pb.ListPodResourcesResponse()
        # in another order each time, as with a real one
        uses = self.uses if self.knows else {}
        for (namespace, pod, container), resources in shuffled(uses.items()):
            one = answer.pod_resources.add(name=pod, namespace=namespace)
            holds = one.containers.add(name=container)
            for resource, ids in shuffled(resources.items()):
                holds.devices.add(resource_name=resource, device_ids=shuffled(ids))
        self.asked.put(True)
        gate = self.gate
        if gate:
            gate.wait(LONG)
        return answer

    def allocatable(self, _, context):
        answer = self.pods_pb.AllocatableResourcesResponse()
        devices = [("fakegpu.example/card", "GPU-0"), ("fakegpu.example/card", "GPU-1")]
        devices += [("example.com/other", str(k)) for k in range(16)]
        for resource, name in shuffled(devices):
            answer.devices.add(resource_name=resource, device_ids=[name])
        return answer

    def ask(self, resource, method, request, answer):
        call = self.channels[resource].unary_unary(
            "/v1beta1.DevicePlugin/" + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString)
        return call(request, timeout=LONG)

    def prefer(self, resource, available, size):
        request = self.plugin_pb.PreferredAllocationRequest()
        request.container_requests.add(available_deviceIDs=available, allocation_size=size)
        answer = self.ask(resource, "GetPreferredAllocation", request,
                          self.plugin_pb.PreferredAllocationResponse)
        return list(answer.container_responses[0].deviceIDs)

    def allocate(self, resource, *ids):
        """The container's annotations, or what is wrong."""
        request = self.plugin_pb.AllocateRequest()
        request.container_requests.add(devices_ids=ids)
        try:
            answer = self.ask(resource, "Allocate", request, self.plugin_pb.AllocateResponse)
        except self.grpc.RpcError as error:
            return error.details()
        return dict(answer.container_responses[0].annotations)

    def lists_it(self, resource, want):
        wait_for("%s lists %s, not %s" % (resource, want, self.lists.get(resource)),
                 lambda: self.lists.get(resource) == want)


class Agent:
    """gpushared, with a port for metrics."""

    def __init__(self):
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            self.port = any_port.getsockname()[1]
        self.process = None

    def configure(self, **keys):
        NODE.configure({"log": {"level": "debug", "file": fakenode.HOME + "/agent.log"}, "agent": {
            "probe": fakenode.BUILD + "/gpushare-probe", "load_period": "500ms",
            "http": {"port": self.port},
            "device_plugins": {"kubelet_dir": KUBELET_DIR, **keys}}})

    def start(self):
        with open(fakenode.HOME + "/agent.out", "ab") as out:
            self.process = subprocess.Popen(
                [fakenode.BUILD + "/gpushared", "--config", fakenode.CONFIG], stdout=out,
                stderr=out, stdin=subprocess.DEVNULL)
        wait_for("the agent", lambda: os.path.exists(fakenode.RUN + "/agent.sock") or
                 self.process.poll() is not None)
        need(self.process.poll() is None, "the agent ended:",
             fakenode.read(fakenode.HOME + "/agent.out"))
        return self

    def end(self, number=9):
        self.process.send_signal(number)
        status = self.process.wait(LONG)
        fakenode.forget(fakenode.RUN + "/agent.sock")
        self.process = None
        return status

    def metrics(self):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port, timeout=LONG) as got:
            text = got.read().decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")


KUBELET, AGENT = None, None


def reset():
    global KUBELET, AGENT
    if KUBELET:
        KUBELET.stop()
    if AGENT and AGENT.process:
        AGENT.end()
    if os.path.exists(fakenode.HOME + "/agent.log") and os.environ.get("SHOW"):
        print(fakenode.read(fakenode.HOME + "/agent.log").decode())
    fakenode.forget(KUBELET_DIR)
    fakenode.forget(CLASS)
    NODE.reset()
    for number in range(2):
        NODE.device("/dev/fakegpu%d" % number, "c", 240, number)
        for name, text in (("uuid", "GPU-%d" % number), ("index", str(number)), ("load", "0"),
                           ("mem_used", "0"), ("mem_total", "1000")):
            fakenode.write("%s/fakegpu%d/%s" % (CLASS, number, name), text + "\n")
    NODE.device("/dev/fakegpuctl", "c", 241, 0)
    NODE.device("/dev/fakegpu-uvm", "c", 241, 1)
    vendor = json.loads(fakenode.read(fakenode.TOP + "/tests/fakegpu/fakegpu.json"))
    vendor["inventory"]["cards"] = CLASS + "/fakegpu[0-9]*"
    fakenode.empty(fakenode.VENDORS)
    fakenode.write(fakenode.VENDORS + "/fakegpu.json", json.dumps(vendor))
    KUBELET, AGENT = Kubelet(), Agent()
    AGENT.configure()


def identity(pod, container, uid):
    return specs.identity(container, pod, "team-a", "sandbox-" + pod, uid)


def nodes(*numbers):
    return [("/dev/fakegpu%d" % n, 240, n) for n in numbers] + [
        ("/dev/fakegpuctl", 241, 0), ("/dev/fakegpu-uvm", 241, 1)]


def shadow(number, alive=True):
    """A shadow pod with that card, which the kubelet gave it."""
    name = "shadow-%d" % number
    spec = specs.spec(name, {**identity(name, "hold", "uid-" + name), SHADOW: "true"},
                      devices=[specs.device(*n) for n in nodes(number)],
                      rules=[specs.rule(major, minor) for _, major, minor in nodes(number)])
    KUBELET.uses["team-a", name, "hold"] = {"fakegpu.example/card": ["GPU-%d" % number]}
    NODE.container(name, specs.dumps(spec), () if alive else ("dead",))


def share_pod(name, annotations):
    """The spec of a container that was given a share."""
    return specs.spec(name, {**identity(name, "train", "uid-" + name), **annotations})


def starts(name, spec):
    """The runtime starts it; the devices that it has then, those of the dry run too."""
    NODE.make_bundle(name, specs.dumps(spec))
    told = NODE.run([NODE.bundle(name)], argv0="gpushare-spec", program=fakenode.SPEC)
    result = NODE.run(NODE.create_args(name), cwd=NODE.bundle(name))
    need(result.status == fakenode.STARTED, "status", result.status, result.err)
    spec = json.loads(fakenode.read(NODE.bundle(name) + "/config.json"))
    return sorted(d["path"] for d in spec["linux"]["devices"]), told


def refused(name, spec, why):
    NODE.make_bundle(name, specs.dumps(spec))
    result = NODE.run(NODE.create_args(name), cwd=NODE.bundle(name))
    need(result.status == 1 and why.encode() in result.err, result.status, result.err)


def is_written(annotations):
    name = annotations["gpushare.k8s.io/grant"]
    wait_for("the grant", lambda: os.path.exists("%s/grants/%s.json" % (fakenode.LIB, name)))
    return json.loads(fakenode.read("%s/grants/%s.json" % (fakenode.LIB, name)))


ALL = {"fakegpu-GPU-%d::%d" % (card, k): "Healthy" for card in range(2) for k in range(2)}
CARDS = {"fakegpu-GPU-0": "Unhealthy", "fakegpu-GPU-1": "Unhealthy"}


def both_are_registered():
    for _ in range(2):
        KUBELET.registered.get(timeout=LONG)


# What comes of a share.
def a_share_of_a_shadow_pods_card():
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    need(KUBELET.options == {SHARE: True, SPOT: True}, KUBELET.options)
    KUBELET.lists_it(SHARE, {})
    KUBELET.lists_it(SPOT, CARDS)
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    shadow(1)
    KUBELET.lists_it(SHARE, ALL)
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-1::0")
    need(list(annotations) == ["gpushare.k8s.io/grant"], annotations)
    grant = is_written(annotations)
    need(grant == {"v": 1, "kind": "share", "state": "active", "resource": SHARE,
                   "cards": ["fakegpu-GPU-1"], "sources": ["team-a/shadow-1/hold"],
                   "devices": ["fakegpu-GPU-1::0"]}, grant)
    paths, told = starts("share", share_pod("share", annotations))
    need(paths == sorted(n[0] for n in nodes(1)), paths)
    need(told.status == 0 and b"team-a/shadow-1/hold" in told.out, told.status, told.out, told.err)
    # The holder ends: nothing of its card is to be had.
    NODE.stop("shadow-1")
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    said = KUBELET.allocate(SHARE, "fakegpu-GPU-1::1")
    need("there is no device fakegpu-GPU-1::1" in said, said)


def two_shares_are_of_two_cards():
    KUBELET.start()
    AGENT.start()
    for number in range(2):
        shadow(number)
    KUBELET.lists_it(SHARE, ALL)
    got = KUBELET.prefer(SHARE, sorted(ALL), 2)
    need(len({d.split("::")[0] for d in got}) == 2, got)
    # What can't be is no error there: the kubelet would fail the pod without saying why.
    need(KUBELET.prefer(SHARE, ["fakegpu-GPU-0::0", "fakegpu-GPU-0::1"], 2) == [], "a choice")
    need(KUBELET.prefer(SHARE, ["none-such"], 1) == [], "a choice of what there is not")
    said = KUBELET.allocate(SHARE, "fakegpu-GPU-0::0", "fakegpu-GPU-0::1")
    need("are of the same card" in said, said)
    annotations = KUBELET.allocate(SHARE, *got)
    need(len(is_written(annotations)["sources"]) == 2, is_written(annotations))
    paths, _ = starts("share", share_pod("share", annotations))
    need(paths == sorted(n[0] for n in nodes(0, 1)), paths)
    wait_for("the count", lambda: AGENT.metrics().get(
        'gpushare_device_plugin_allocations_total{resource="%s",outcome="refused"}' % SHARE) == "1")
    metrics = AGENT.metrics()
    for name, value in (
            ('device_plugin_allocations_total{resource="%s",outcome="granted"}' % SHARE, "1"),
            ('device_plugin_devices{resource="%s",health="healthy"}' % SHARE, "4"),
            ('device_plugin_devices{resource="%s",health="unhealthy"}' % SPOT, "2"),
            ('device_plugin_registrations_total{resource="%s",outcome="ok"}' % SPOT, "1"),
            ("kubelet_up", "1")):
        need(metrics.get("gpushare_" + name) == value, name, metrics.get("gpushare_" + name))
    denied = [k for k in metrics if "syscalls_denied" in k]
    need(not denied, denied)


def a_grant_is_for_one_pod():
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::0")
    is_written(annotations)
    starts("share", share_pod("share", annotations))
    refused("thief", share_pod("thief", annotations), "is bound to another container")


def two_pods_that_ask_in_one_moment():
    """Whoever starts first: each has what it was told, for nothing is guessed from the order."""
    KUBELET.start()
    AGENT.start()
    for number in range(2):
        shadow(number)
    KUBELET.lists_it(SHARE, ALL)
    told = [KUBELET.allocate(SHARE, "fakegpu-GPU-%d::0" % number) for number in range(2)]
    for annotations in told:
        need("to" not in is_written(annotations), "it is somebody's already")
    for number in (1, 0):
        name = "share-%d" % number
        paths, _ = starts(name, share_pod(name, told[number]))
        need(paths == sorted(n[0] for n in nodes(number)), name, paths)


# What comes and goes.
def frame(kind, flags, stream, body):
    """One of HTTP/2. RFC 9113, 4.1."""
    return (len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body)


def bare_call(authority):
    """What GetDevicePluginOptions answers to one who calls us so; None: nothing, or an error."""
    headers = [(":method", "POST"), (":scheme", "http"),
               (":path", "/v1beta1.DevicePlugin/GetDevicePluginOptions"),
               (":authority", authority), ("content-type", "application/grpc"), ("te", "trailers")]
    block = b"".join(b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode()
                     for k, v in headers)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LONG)
        s.connect(KUBELET_DIR + "/device-plugins/gpushare-spot.sock")
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") +
                  frame(1, 4, 1, block) + frame(0, 1, 1, bytes(5)))
        answers = s.makefile("rb")
        while True:
            head = answers.read(9)
            body = answers.read(int.from_bytes(head[:3], "big"))
            # data; the end of all, of the stream, or by headers without data
            if len(head) < 9 or head[3] in (0, 3, 7) or (head[3] == 1 and head[4] & 1):
                return body if head[3:4] == b"\0" else None


def whatever_a_kubelet_calls_us():
    """Kubelets up to 1.25 name the socket's path, later ones localhost, others what they like."""
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    path = "/var/lib/kubelet/device-plugins/gpushare-spot.sock"
    for authority in ("localhost", path, path.replace("/", "%2F"), ""):
        got = bare_call(authority)
        need(got == b"\0\0\0\0\2\x10\1", authority, got)


def failed_registrations():
    return int(AGENT.metrics().get('gpushare_device_plugin_registrations_total{resource="%s",'
                                   'outcome="failed"}' % SPOT, "0"))


def forward(listener, path):
    """Whoever comes there talks with who is at that path."""
    def copy(a, b):
        try:
            while b.send(a.recv(65536)):
                pass
        except OSError:
            pass

    while True:
        try:
            ours, _ = listener.accept()
        except OSError:
            return
        theirs = socket.socket(socket.AF_UNIX)
        theirs.connect(path)
        for pair in ((ours, theirs), (theirs, ours)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def a_kubelet_that_does_not_listen_yet():
    """Its socket is there, and refuses; no new file tells of the moment in which it does not."""
    KUBELET.start()
    path, hidden = KUBELET_DIR + "/device-plugins/kubelet.sock", KUBELET_DIR + "/hidden.sock"
    os.rename(path, hidden)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        AGENT.start()
        wait_for("refusals", lambda: failed_registrations() >= 3)
        need(AGENT.process.poll() is None and KUBELET.registered.empty(), "the agent ended")
        s.listen()
        threading.Thread(target=forward, args=(s, hidden), daemon=True).start()
        both_are_registered()
        KUBELET.lists_it(SPOT, CARDS)
        s.shutdown(socket.SHUT_RDWR)


def the_kubelet_comes_late_and_anew():
    AGENT.start()
    shadow(0)
    time.sleep(1)
    need(AGENT.process.poll() is None, "the agent ended without a kubelet")
    healthy = {k: v for k, v in ALL.items() if "GPU-0" in k}
    for _ in range(3):
        KUBELET.start()
        both_are_registered()
        KUBELET.lists_it(SHARE, healthy)
        KUBELET.lists_it(SPOT, CARDS)
        need(KUBELET.registered.empty(), "it registered more than once")
        KUBELET.stop()


def sockets_are_deleted():
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    for name in ("gpushare-share.sock", "gpushare-spot.sock"):
        path = "%s/device-plugins/%s" % (KUBELET_DIR, name)
        os.unlink(path)
        again = KUBELET.registered.get(timeout=LONG)
        need(again == (SPOT if "spot" in name else SHARE), again)
        need(os.path.exists(path), "no socket")
    KUBELET.lists_it(SHARE, {})
    KUBELET.lists_it(SPOT, CARDS)


def a_kubelet_that_lets_go_is_asked_again():
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    KUBELET.lists_it(SPOT, CARDS)
    KUBELET.channels[SPOT].close()
    need(KUBELET.registered.get(timeout=LONG) == SPOT, "another registered")
    KUBELET.lists_it(SPOT, CARDS)


def no_plugins_are_wanted():
    AGENT.configure(enabled=False)
    KUBELET.start()
    AGENT.start()
    time.sleep(2)
    need(KUBELET.registered.empty(), "it registered")
    need(AGENT.end(15) == 0, "status")


def more_shares_than_two():
    AGENT.configure(share=3)
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {"fakegpu-GPU-0::%d" % k: "Healthy" for k in range(3)})


# The agent dies between its answer and the writing of the grant.
def a_grant_that_was_never_written():
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::1")
    is_written(annotations)
    AGENT.end()
    os.unlink("%s/grants/%s.json" % (fakenode.LIB, annotations["gpushare.k8s.io/grant"]))
    KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::1"]}
    refused("share", share_pod("share", annotations), "no such grant")
    AGENT.start()
    paths, _ = starts("share", share_pod("share", annotations))
    need(paths == sorted(n[0] for n in nodes(0)), paths)
    grant = is_written(annotations)
    need(grant["to"] == "team-a/share/train" and grant["cards"] == ["fakegpu-GPU-0"], grant)
    # By its name alone nobody is anybody.
    forged = {"gpushare.k8s.io/grant": "f" * 32}
    refused("other", share_pod("other", forged), "the kubelet gave this container no device")
    KUBELET.pods_wrong = "not today"
    refused("other", share_pod("other", forged), "the kubelet does not tell who holds what")


def a_share_that_there_is_no_more():
    """It was promised while a card had three, and its grant was never written."""
    AGENT.configure(share=3)
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {"fakegpu-GPU-0::%d" % k: "Healthy" for k in range(3)})
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::2")
    is_written(annotations)
    AGENT.end()
    os.unlink("%s/grants/%s.json" % (fakenode.LIB, annotations["gpushare.k8s.io/grant"]))
    KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::2"]}
    AGENT.configure(share=2)
    AGENT.start()
    refused("share", share_pod("share", annotations), "is shared by 2 pods now")


def the_agent_is_killed_after_the_grant():
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::1")
    is_written(annotations)
    AGENT.end()
    # A share needs no agent.
    paths, _ = starts("share", share_pod("share", annotations))
    need(paths == sorted(n[0] for n in nodes(0)), paths)
    AGENT.start()
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})


# Who holds what.
def who_holds_is_the_kubelets_word():
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    # The card of another: an impostor, though it calls itself a shadow pod.
    shadow(1)
    KUBELET.lists_it(SHARE, ALL)
    KUBELET.uses["team-a", "other", "main"] = KUBELET.uses.pop(("team-a", "shadow-1", "hold"))
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    KUBELET.uses["team-a", "shadow-1", "hold"] = KUBELET.uses.pop(("team-a", "other", "main"))
    KUBELET.lists_it(SHARE, ALL)


def impostor(number, name="impostor"):
    """The spec of a container with a card's nodes."""
    return specs.spec(name, identity(name, "main", "uid-" + name),
                      devices=[specs.device(*n) for n in nodes(number)],
                      rules=[specs.rule(major, minor) for _, major, minor in nodes(number)])


def counted(outcome):
    return AGENT.metrics().get('gpushare_unconfirmed_total{outcome="%s"}' % outcome)


# Who may not.
def an_impostor_is_refused():
    AGENT.configure()
    NODE.configure({**json.loads(fakenode.read(fakenode.CONFIG)), "refuse_unconfirmed": True})
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    wait_for("the list of cards", lambda: os.path.exists(fakenode.RUN + "/cards.json"))
    shadow(0)
    why = "the kubelet did not give card fakegpu-GPU-%d to its pod"
    refused("impostor", impostor(0), why % 0)
    # Nobody has that one, and so this pod has it neither.
    refused("impostor", impostor(1), why % 1)
    need(counted("refused") == "2", counted("refused"))
    need(NODE.record("impostor") is None, "there is a record of it")
    # The kubelet knows what it gave before it has a container created; of one that was asked
    # before, nothing is remembered. Another container of its pod is no stranger.
    KUBELET.uses["team-a", "impostor", "other"] = {"fakegpu.example/card": ["GPU-1"]}
    starts("impostor", impostor(1))
    # Where nobody tells, nobody is refused.
    KUBELET.pods_wrong = "not today"
    starts("other", impostor(0, "other"))
    need(counted("untold") == "1" and counted("refused") == "2", AGENT.metrics())
    KUBELET.pods_wrong = None
    refused("third", impostor(0, "third"), why % 0)
    AGENT.end()
    starts("third", impostor(0, "third"))


def an_impostor_that_the_operator_exempts():
    config = json.loads(fakenode.read(fakenode.CONFIG))
    config["agent"]["exempt"] = ["team-a/mon*/*"]
    NODE.configure({**config, "refuse_unconfirmed": True})
    KUBELET.start()
    AGENT.start()
    both_are_registered()
    wait_for("the list of cards", lambda: os.path.exists(fakenode.RUN + "/cards.json"))
    starts("monitor", impostor(0, "monitor"))
    refused("moniker", impostor(0, "the-moniker"), "the kubelet did not give card")


# What ends with its pod.
def a_grant_whose_pod_is_over():
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    names = [KUBELET.allocate(SHARE, "fakegpu-GPU-0::%d" % k) for k in range(2)]
    need(all(is_written(n)["state"] == "active" for n in names), "the grants")
    KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::1"]}
    wait_for("the end of the grant", lambda: is_written(names[0])["state"] == "revoked")
    need(is_written(names[1])["state"] == "active", "the other pod's was revoked, too")


def a_grant_that_is_younger_than_the_question():
    """The kubelet is slow to tell who has what, and meanwhile gives a device away."""
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    time.sleep(15)  # its word counts by now
    KUBELET.gate = threading.Event()
    while not KUBELET.asked.empty():
        KUBELET.asked.get()
    KUBELET.asked.get(timeout=LONG)
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::0")
    need(is_written(annotations)["state"] == "active", "the grant")
    KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::0"]}
    gate, KUBELET.gate = KUBELET.gate, None
    gate.set()
    KUBELET.asked.get(timeout=LONG)  # the next question: that answer has come
    time.sleep(1)
    need(is_written(annotations)["state"] == "active", "it was revoked by an older answer")


def a_share_pod_runs():
    """With a shadow pod's card; gives its annotations and its process."""
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::0")
    is_written(annotations)
    KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::0"]}
    NODE.container("share", specs.dumps(share_pod("share", annotations)), ("hooked",))
    return annotations, NODE.sleeps["share"]


def a_share_pod_without_its_shadow_pod():
    _, process = a_share_pod_runs()
    time.sleep(15)
    need(process.poll() is None, "it ended while its shadow pod was there")
    del KUBELET.uses["team-a", "shadow-0", "hold"]
    wait_for("its end", lambda: process.poll() == -9)
    need(NODE.sleeps["shadow-0"].poll() is None, "another container was ended")


def a_kubelet_that_does_not_know_its_pods_yet():
    """It was started anew, and hears of them from an API server that is away."""
    annotations, process = a_share_pod_runs()
    time.sleep(45)  # its word counts by now, and the grant is no new one
    KUBELET.knows = False
    time.sleep(30)
    need(process.poll() is None, "it ended")
    need(is_written(annotations)["state"] == "active", "its grant was revoked")
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    KUBELET.knows = True
    wait_for("its answers", lambda: AGENT.metrics()["gpushare_kubelet_up"] == "1")
    del KUBELET.uses["team-a", "shadow-0", "hold"]
    wait_for("its end", lambda: process.poll() == -9)


def shared_file(number):
    return os.path.exists("%s/shared/fakegpu-GPU-%d" % (fakenode.RUN, number))


def the_cards_next_holder_is_alone_on_it():
    """It starts after those are dead who had the card from the holder before it."""
    KUBELET.start()
    AGENT.start()
    shadow(0)
    KUBELET.lists_it(SHARE, {k: v for k, v in ALL.items() if "GPU-0" in k})
    for number in range(2):
        annotations = KUBELET.allocate(SHARE, "fakegpu-GPU-0::%d" % number)
        is_written(annotations)
        name = "share-%d" % number
        KUBELET.uses["team-a", name, "train"] = {SHARE: ["fakegpu-GPU-0::%d" % number]}
        NODE.container(name, specs.dumps(share_pod(name, annotations)), ("hooked",))
    wait_for("the card's file", lambda: shared_file(0))
    shares = [NODE.sleeps["share-%d" % n] for n in range(2)]
    for process in shares:  # as a shim does
        threading.Thread(target=process.wait, daemon=True).start()

    # Its holder's own container starts anew: nobody has to go.
    again = specs.spec("again", {**identity("shadow-0", "hold", "uid-shadow-0"), SHADOW: "true"},
                       devices=[specs.device(*n) for n in nodes(0)],
                       rules=[specs.rule(major, minor) for _, major, minor in nodes(0)])
    starts("again", again)
    # Nor for one of whom the kubelet does not say that he has the card, or has it alone.
    starts("impostor", impostor(0))
    KUBELET.uses["team-a", "impostor", "main"] = {"fakegpu.example/card": ["GPU-0::1"]}
    starts("impostor", impostor(0))
    KUBELET.pods_wrong = "not today"
    starts("impostor", impostor(0))
    need(all(p.poll() is None for p in shares), "a share pod was ended")

    KUBELET.pods_wrong = None
    del KUBELET.uses["team-a", "impostor", "main"], KUBELET.uses["team-a", "shadow-0", "hold"]
    KUBELET.uses["team-a", "next", "main"] = {"fakegpu.example/card": ["GPU-0"]}
    starts("next", impostor(0, "next"))
    need(all(p.poll() == -9 for p in shares), "the next holder started before", shares)
    wait_for("the end of the card's file", lambda: not shared_file(0))


TESTS = [a_share_of_a_shadow_pods_card, two_shares_are_of_two_cards, a_grant_is_for_one_pod,
         two_pods_that_ask_in_one_moment, whatever_a_kubelet_calls_us,
         a_kubelet_that_does_not_listen_yet, the_kubelet_comes_late_and_anew, sockets_are_deleted,
         a_kubelet_that_lets_go_is_asked_again, no_plugins_are_wanted, more_shares_than_two,
         a_grant_that_was_never_written, a_share_that_there_is_no_more,
         the_agent_is_killed_after_the_grant, who_holds_is_the_kubelets_word,
         an_impostor_is_refused, an_impostor_that_the_operator_exempts, a_grant_whose_pod_is_over,
         a_grant_that_is_younger_than_the_question, a_share_pod_without_its_shadow_pod,
         a_kubelet_that_does_not_know_its_pods_yet, the_cards_next_holder_is_alone_on_it]


def main():
    global NODE
    NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], reset)


if __name__ == "__main__":
    main()
