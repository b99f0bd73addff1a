# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests of gpushare-controller: tests/k8s/apiserver.py, and the program itself as
often as a test wants, each over real TLS."""
import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "runtime"))
from tap import Failed, need  # noqa: E402,F401

PROGRAM = os.path.join(ROOT, os.environ.get("B", "build"), "gpushare-controller")
SYSTEM = "gpushare-system"
SECRET = "/api/v1/namespaces/%s/secrets/gpushare-controller-tls" % SYSTEM
LEASE = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/gpushare-controller" % SYSTEM
WEBHOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gpushare"
READER = "prometheus"  # the token of one who may read metrics
NAME = "gpushare-controller.%s.svc" % SYSTEM


def until(what, function, seconds=20):
    """Gives the first true value of @function."""
    end = time.monotonic() + seconds
    while True:
        value = function()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed("not within %d s: %s" % (seconds, what))
        time.sleep(0.05)


class Controller:
    """One replica."""

    def __init__(self, world, config):
        self.world = world
        self.log = []
        self.path = os.path.join(world.dir, "config-%d.json" % len(world.controllers))
        with open(self.path, "w") as f:
            json.dump(config, f)
        self.err = open(self.path + ".log", "w+")
        env = dict(os.environ, POD_NAME="controller-%d" % len(world.controllers),
                   ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="print_stacktrace=1")
        self.process = subprocess.Popen([PROGRAM, "--config", self.path], stderr=self.err,
                                        env=env, cwd=world.dir)
        self.port = int(until("it starts", self.started)["port"])

    def messages(self):
        with open(self.path + ".log") as f:
            return [json.loads(line) for line in f if line.startswith("{")]

    def said(self, message):
        return [m for m in self.messages() if m["msg"] == message]

    def started(self):
        if self.process.poll() is not None:
            with open(self.path + ".log") as f:
                raise Failed("it ended: " + f.read())
        return next(iter(self.said("started")), None)

    def stop(self):
        """Gives what it left on stderr that is no log line."""
        self.process.terminate()
        code = self.process.wait(10)
        self.err.close()
        with open(self.path + ".log") as f:
            text = "".join(line for line in f if not line.startswith("{"))
        need(code == 0 and not text, "it ended with %d: %s" % (code, text[:3000]))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.err.close()

    def connect(self, authorities=None, timeout=10):
        """A TLS connection; @authorities: PEM, else anybody is believed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if authorities:
            context.load_verify_locations(cadata=authorities)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.port), timeout)
        return context.wrap_socket(plain, server_hostname=NAME)

    def ask(self, method, path, body=b"", authorities=None, headers="", timeout=10):
        """(status, body) of one request."""
        with self.connect(authorities, timeout) as s:
            s.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n"
                       "%s\r\n" % (method, path, len(body), headers)).encode() + body)
            return read_answer(s)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def metrics(self, token=READER):
        """(status, text) for who has that token; None: none."""
        headers = "Authorization: Bearer %s\r\n" % token if token is not None else ""
        status, text = self.ask("GET", "/metrics", headers=headers)
        return status, text.decode()

    def metric(self, name):
        for line in self.metrics()[1].splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return None


def read_answer(s):
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except (ConnectionResetError, ssl.SSLError):
            piece = b""
        if not piece:
            break
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="gpushare-k8s-")
        self.controllers = []
        with open(self.dir + "/token", "w") as f:
            f.write("token\n")
        self.server = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "apiserver.py"), self.dir, "--tls"])
        until("the API server starts", lambda: os.path.exists(self.dir + "/port"))
        with open(self.dir + "/port") as f:
            self.port = int(f.read())
        self.reset()

    def reset(self):
        for c in self.controllers:
            if c.process.poll() is None:
                c.kill()
        self.controllers = []
        self.admin(op="reset")
        for name in ("default", SYSTEM):
            self.namespace(name)
        self.account(READER, "system:serviceaccount:monitoring:prometheus", "/metrics")
        self.set(WEBHOOK, {"metadata": {"name": "gpushare"}, "webhooks": [
            {"name": "pods.gpushare.k8s.io", "clientConfig": {"service": {"name": "x"}}},
            {"name": "inherit.gpushare.k8s.io", "clientConfig": {"caBundle": "b2xk"}}]})

    def close(self):
        self.reset()
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.dir)

    def config(self, **controller):
        section = {"address": "127.0.0.1", "port": 0, "namespace": SYSTEM,
                   "platform_users": ["system:serviceaccount:gpushare-system:portal"],
                   "kubernetes": {"server": "https://127.0.0.1:%d" % self.port,
                                  "ca_file": self.dir + "/ca.crt",
                                  "token_file": self.dir + "/token"}}
        section.update(controller)
        return {"vendor_dirs": [os.path.join(ROOT, "vendors")], "controller": section}

    def start(self, **controller):
        c = Controller(self, self.config(**controller))
        self.controllers.append(c)
        return c

    def admin(self, **ask):
        with socket.socket(socket.AF_UNIX) as s, s.makefile("rwb") as f:
            s.connect(self.dir + "/admin.sock")
            f.write(json.dumps(ask).encode() + b"\n")
            f.flush()
            return json.loads(f.readline())

    def set(self, path, obj, untold=False):
        self.admin(op="set", path=path, object=obj, untold=untold)

    def get(self, path):
        return self.admin(op="get", path=path)["object"]

    def account(self, token, name, *reads):
        self.admin(op="account", token=token, reads=reads, user={
            "username": name, "uid": "uid of " + name, "groups": ["system:serviceaccounts"],
            "extra": {"authentication.kubernetes.io/pod-name": ["p"]}})

    def log(self):
        return self.admin(op="log")["log"]

    def events(self):
        return self.admin(op="events")["events"]

    def namespace(self, name, **annotations):
        self.set("/api/v1/namespaces/" + name, {"metadata": {
            "name": name,
            "annotations": {"gpushare.k8s.io/" + k: v for k, v in annotations.items()}}})

    def authorities(self):
        """What the API server would trust, once the controller wrote it; None: not yet."""
        bundles = {w["clientConfig"].get("caBundle") for w in self.get(WEBHOOK)["webhooks"]}
        if len(bundles) != 1 or bundles <= {None, "b2xk"}:
            return None
        return base64.b64decode(bundles.pop()).decode()


def review(pod, namespace="default", user="alice", uid="u-1", **more):
    """An AdmissionReview about @pod, as bytes."""
    request = {"uid": uid, "kind": {"group": "", "version": "v1", "kind": "Pod"},
               "resource": {"group": "", "version": "v1", "resource": "pods"},
               "operation": "CREATE", "namespace": namespace, "userInfo": {"username": user},
               "object": pod}
    request.update(more)
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                       "request": request}).encode()


def pod(name, resource=None, n=1, namespace="default", annotations=None, **spec):
    resources = {"limits": {resource: str(n)}, "requests": {resource: str(n)}} if resource else {}
    spec.setdefault("containers", [{"name": "main", "image": "x", "resources": resources}])
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": name, "namespace": namespace,
        "annotations": {"gpushare.k8s.io/" + k: v for k, v in (annotations or {}).items()}}}


def answer(c, body, **more):
    status, text = c.ask("POST", "/admit", body, **more)
    need(status == 200, "HTTP %d: %s" % (status, text))
    response = json.loads(text)["response"]
    if "patch" in response:
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
    return response


def ready(c):
    until("it is ready", lambda: c.get("/readyz")[0] == 200)
    return until("its authorities are written", c.world.authorities)
