#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small Kubernetes API server for tests: it keeps any kind of object; list, watch, change.

    apiserver.py DIR [--tls]

Serves on a free port of 127.0.0.1 and writes its number to DIR/port once it does. With --tls it
makes an authority of its own (DIR/ca.crt) and, for comparison, a foreign one (DIR/other.crt).

Tests steer it through the socket DIR/admin.sock: one JSON object a connection, answered by one.
  {"op": "reset"}                       as after the start; every watch ends
  {"op": "token", "token": T}           only this bearer token is accepted ("": any)
  {"op": "put", "pod": POD}             makes or changes a pod
  {"op": "remove", "pod": "ns/name"}    takes it away
  {"op": "set", "path": P, "object": O} makes or changes any object; P is its path in the API;
      "untold": true                    no watch hears of it
  {"op": "unset", "path": P}            takes it away
  {"op": "fill", "n": N, "object": O, "name": P}
                                        makes N pods fill/P0, ...; %d in O is the number
  {"op": "get", "path": P}              shows it
  {"op": "bookmark"}                    sends one to every watch
  {"op": "expire"}                      resourceVersions up to now are too old to watch from
  {"op": "drop", "how": HOW}            ends every watch: clean, middle (of a line), reset
  {"op": "outage", "on": true}          resets every connection that asks for something
  {"op": "rule", "match": RE, ...}      answers requests "METHOD /path?query" that match:
      "times": N (1), "status": S, "headers": {}, "body": TEXT     with this; or
      "hang": true                      not at all; or
      "stream": [TEXT...], "how": HOW   200 with these pieces, then the end (clean, reset, hang)
      "store": true                     after having done what was asked
      "late": true                      as ever, but the answer comes once the rules are forgotten
      "holds": RE                       only those whose body matches that, too
  {"op": "forget"}                      no rules any more
  {"op": "log"}                         the requests so far, and what they held
  {"op": "events"}                      the Events
  {"op": "account", "token": T, "user": U, "reads": [PATH...]}   whose that token is (a UserInfo),
                                        and what paths that one may get; reviews tell
"""
import base64
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class State:
    def __init__(self):
        self.change = threading.Condition()
        self.epoch = 0
        self.begin()

    def begin(self):
        self.version = 1000
        self.oldest = 0
        self.objects = {}  # (collection, namespace, name): object
        self.history = []  # (version, type, key or None, object)
        self.rules = []
        self.log = []
        self.token = ""
        self.drops = []
        self.outage = False
        self.accounts = {}  # by token
        self.epoch += 1


state = State()


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason, "message": message}


def record(kind, key, obj, untold=False):
    """Stores @obj, or takes it away, and tells the watches. Under state.change."""
    state.version += 1
    obj = json.loads(json.dumps(obj))
    obj["metadata"]["resourceVersion"] = str(state.version)
    if kind == "DELETED":
        del state.objects[key]
    else:
        state.objects[key] = obj
    if not untold:
        state.history.append((state.version, kind, key, obj))
    state.change.notify_all()
    return obj


def put(key, obj, untold=False):
    return record("MODIFIED" if key in state.objects else "ADDED", key, obj, untold)


def pod_key(pod):
    return ("/api/v1/pods",) + tuple(pod.split("/"))


def path_key(path):
    """(collection, namespace, name, subresource) of a path; None: it is none."""
    m = re.fullmatch("(/api/v1|/apis/[^/]+/[^/]+)/(?:namespaces/([^/]+)/)?([a-z]+)"
                     "(?:/([^/]+)(?:/([a-z]+))?)?", path)
    if not m:
        return None
    prefix, namespace, plural, name, sub = m.groups()
    return prefix + "/" + plural, namespace or "", name or "", sub or ""


def admin(ask):
    op = ask["op"]
    if op == "reset":
        state.begin()
    elif op == "token":
        state.token = ask["token"]
    elif op == "put":
        meta = ask["pod"]["metadata"]
        put(("/api/v1/pods", meta["namespace"], meta["name"]), ask["pod"])
    elif op == "remove":
        key = pod_key(ask["pod"])
        record("DELETED", key, state.objects[key])
    elif op == "set":
        put(path_key(ask["path"])[:3], ask["object"], ask.get("untold", False))
    elif op == "fill":
        for i in range(ask["n"]):
            key = "/api/v1/pods", "fill", ask.get("name", "p") + str(i)
            state.objects[key] = json.loads(json.dumps(ask["object"]).replace("%d", str(i)))
    elif op == "unset":
        key = path_key(ask["path"])[:3]
        record("DELETED", key, state.objects[key])
    elif op == "get":
        return {"object": state.objects.get(path_key(ask["path"])[:3])}
    elif op == "bookmark":
        state.version += 1
        state.history.append((state.version, "BOOKMARK", None, {
            "kind": "Pod", "metadata": {"resourceVersion": str(state.version)}}))
    elif op == "expire":
        state.version += 1
        state.oldest = state.version
    elif op == "drop":
        state.drops.append(ask["how"])
    elif op == "outage":
        state.outage = ask["on"]
        if state.outage:
            state.drops.append("reset")
    elif op == "rule":
        state.rules.append(dict({"times": 1}, **ask))
    elif op == "account":
        state.accounts[ask["token"]] = ask
    elif op == "forget":
        state.rules = []
    elif op == "log":
        return {"log": state.log}
    elif op == "events":
        return {"events": [v for k, v in state.objects.items() if k[0] == "/api/v1/events"]}
    else:
        raise ValueError(op)
    state.change.notify_all()
    return {}


def reviewed(spec):
    """The status of a TokenReview or SubjectAccessReview."""
    if "token" in spec:
        account = state.accounts.get(spec["token"])
        return {"authenticated": True, "user": account["user"]} if account else {
            "error": "invalid bearer token"}
    what = spec["nonResourceAttributes"]
    who = {"username": spec["user"], **{k: spec[k] for k in ("uid", "groups", "extra")
                                        if k in spec}}
    return {"allowed": any(a["user"] == who and what["verb"] == "get" and
                           what["path"] in a["reads"] for a in state.accounts.values())}


def serve_admin(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(8)
    while True:
        conn, _ = server.accept()
        with conn, conn.makefile("rwb") as f:
            with state.change:
                answer = admin(json.loads(f.readline()))
            f.write(json.dumps(answer).encode() + b"\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.epoch = state.epoch

    def do(self):
        url = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        what = "%s %s" % (self.command, self.path)
        with state.change:
            # The last words of a client from before: they use up no rule of those who came since.
            if self.epoch != state.epoch:
                self.close_connection = True
                return
            state.log.append({
                "what": what, "body": body, "time": time.monotonic(),
                "port": self.client_address[1], "type": self.headers.get("Content-Type", ""),
                "authorization": self.headers.get("Authorization", "")})
            rule = next((r for r in state.rules if r["times"] > 0 and
                         re.search(r["match"], what) and
                         re.search(r.get("holds", ""), body)), None) if not state.outage else None
            if rule:
                rule["times"] -= 1
            if rule and rule.get("store"):
                self.respond(url.path, query, body)
            outage = state.outage
            allowed = state.token in ("", self.headers.get("Authorization", "")[7:])
        if outage:
            self.end_stream("reset")
        elif rule and rule.get("late"):
            self.late(rule, url.path, query, body)
        elif rule:
            self.scripted(rule)
        elif not allowed:
            self.answer(401, status(401, "Unauthorized", "Unauthorized"))
        elif query.get("watch"):
            self.watch(url.path, query)
        else:
            with state.change:
                code, answer = self.respond(url.path, query, body)
            self.answer(code, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

    def answer(self, code, body, headers=()):
        if not isinstance(body, str):
            body = json.dumps(body)
        body = body.encode("utf-8", "surrogateescape")
        self.send_response(code)
        for key, value in dict(headers).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def late(self, rule, path, query, body):
        epoch = state.epoch
        with state.change:
            code, answer = self.respond(path, query, body)
            state.change.wait_for(lambda: rule not in state.rules or state.epoch != epoch, 60)
        self.answer(code, answer)

    def scripted(self, rule):
        if rule.get("hang"):
            self.hang()
        elif "stream" in rule:
            self.begin_stream()
            for piece in rule["stream"]:
                self.chunk(piece)
            self.end_stream(rule.get("how", "clean"))
        else:
            default = status(rule["status"], "Scripted", "scripted answer")
            self.answer(rule["status"], rule.get("body", default), rule.get("headers", {}))

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def hang(self):
        epoch = state.epoch
        with state.change:
            state.change.wait_for(lambda: state.epoch != epoch, 60)
        self.close_connection = True

    def end_stream(self, how):
        if how == "hang":
            self.hang()
        elif how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            self.close_connection = True
        elif how == "middle":
            self.wfile.write(b"400\r\n" + b'{"type":"MODIFIED","object":{"metadata":{"na')
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def watch(self, path, query):
        epoch, n_drops = state.epoch, len(state.drops)
        version = int(query["resourceVersion"])
        key = path_key(path)
        self.begin_stream()
        end = time.monotonic() + float(query["timeoutSeconds"])
        with state.change:
            while True:
                if version < state.oldest:
                    self.chunk(json.dumps({"type": "ERROR", "object": status(
                        410, "Expired", "too old resource version")}) + "\n")
                    break
                for v, kind, at, obj in state.history:
                    if v > version:
                        version = v
                        if kind == "BOOKMARK" or selected(key, query, at, obj):
                            self.chunk(json.dumps({"type": kind, "object": obj}) + "\n")
                if len(state.drops) > n_drops or time.monotonic() >= end:
                    break
                if state.epoch != epoch:
                    self.close_connection = True
                    return
                state.change.wait(min(1, max(0, end - time.monotonic())))
        self.end_stream(state.drops[-1] if len(state.drops) > n_drops else "clean")

    def respond(self, path, query, body):
        """Under state.change; gives code and object."""
        key = path_key(path)
        if self.command == "POST" and re.search("/(tokenreviews|subjectaccessreviews)$", path):
            review = json.loads(body)
            return 201, dict(review, status=reviewed(review["spec"]))
        if not key:
            return 404, status(404, "NotFound", "the server could not find the resource")
        key, sub = key[:3], key[3]
        if self.command == "POST":
            return self.create(key, json.loads(body))
        if not key[2]:
            return self.list(key, query)
        if key not in state.objects:
            return 404, status(404, "NotFound", '%s "%s" not found'
                               % (key[0].split("/")[-1], key[2]))
        if self.command == "GET":
            return 200, state.objects[key]
        if self.command == "PUT":
            return self.replace(key, json.loads(body))
        if self.command == "DELETE":
            return self.delete(key, json.loads(body))
        return 200, put(key, patched(state.objects[key], json.loads(body),
                                     self.headers["Content-Type"]))

    def list(self, key, query):
        items = [o for k, o in sorted(state.objects.items()) if selected(key, query, k, o)]
        meta = {"resourceVersion": str(state.version)}
        begin, limit = 0, int(query.get("limit", 0))
        if "continue" in query:
            version, begin = json.loads(base64.b64decode(query["continue"]))
            meta["resourceVersion"] = version
            if int(version) < state.oldest:
                return 410, status(410, "Expired", "the continue token is too old")
        if limit and begin + limit < len(items):
            meta["continue"] = base64.b64encode(json.dumps(
                [meta["resourceVersion"], begin + limit]).encode()).decode()
            items = items[begin:begin + limit]
        else:
            items = items[begin:]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items}

    def create(self, key, obj):
        meta = obj["metadata"]
        if key[1]:
            meta["namespace"] = key[1]
        key = (key[0], key[1], meta["name"])
        if key in state.objects:
            return 409, status(409, "AlreadyExists", '%s "%s" already exists'
                               % (key[0].split("/")[-1], key[2]))
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        return 201, put(key, obj)

    def replace(self, key, obj):
        asked, version = (o["metadata"].get("resourceVersion")
                          for o in (obj, state.objects[key]))
        if asked and asked != version:
            return 409, status(409, "Conflict", 'Operation cannot be fulfilled on "%s": the object '
                               "has been modified; please apply your changes to the latest "
                               "version and try again" % key[2])
        return 200, put(key, obj)

    def delete(self, key, options):
        uid, version = (state.objects[key]["metadata"][k] for k in ("uid", "resourceVersion"))
        asked = options.get("preconditions", {}).get("uid")
        seen = options.get("preconditions", {}).get("resourceVersion", version)
        if asked and asked != uid or not asked and key[0] == "/api/v1/pods":
            return 409, status(409, "Conflict", 'Operation cannot be fulfilled on pods "%s": the '
                               "UID in the precondition (%s) does not match the UID in record "
                               "(%s). The object might have been deleted and then recreated"
                               % (key[2], asked, uid))
        if seen != version:
            return 409, status(409, "Conflict", 'Operation cannot be fulfilled on pods "%s": the '
                               "ResourceVersion in the precondition (%s) does not match the "
                               "ResourceVersion in record (%s). The object might have been modified"
                               % (key[2], seen, version))
        return 200, record("DELETED", key, state.objects[key])


def field(obj, path):
    for part in path.split("."):
        obj = obj.get(part, {})
    return obj or ""


def selected(key, query, at, obj):
    """Is the object @obj at the key @at in the collection @key, as the query wants it?"""
    if at[0] != key[0] or key[1] and at[1] != key[1]:
        return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        path, value = part.split("=")
        if field(obj, path) != value:
            return False
    for part in filter(None, query.get("labelSelector", "").split(",")):
        name, value = part.split("=")
        if obj["metadata"].get("labels", {}).get(name) != value:
            return False
    return True


def patched(obj, patch, kind):
    """A merge patch; of a strategic one what is asked for here: lists of things with names."""
    if not isinstance(patch, dict):
        return patch
    result = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif kind.startswith("application/strategic") and key == "webhooks":
            names = {v["name"]: v for v in value}
            known = [v["name"] for v in old]
            result[key] = [patched(v, names.get(v["name"], {}), kind) for v in old] + [
                v for v in value if v["name"] not in known]
        else:
            result[key] = patched(old, value, kind)
    return result


def openssl(*args):
    subprocess.run(["openssl"] + list(args), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def make_tls(folder):
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name in ("ca", "other"):
        openssl(*new, "-x509", "-days", "2", "-subj", "/CN=" + name,
                "-keyout", "%s/%s.key" % (folder, name), "-out", "%s/%s.crt" % (folder, name))
    openssl(*new, "-subj", "/CN=apiserver", "-keyout", folder + "/server.key",
            "-out", folder + "/server.csr")
    with open(folder + "/server.ext", "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-days", "2", "-in", folder + "/server.csr",
            "-CA", folder + "/ca.crt", "-CAkey", folder + "/ca.key", "-CAcreateserial",
            "-extfile", folder + "/server.ext", "-out", folder + "/server.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/server.crt", folder + "/server.key")
    return context


class Server(ThreadingHTTPServer):
    daemon_threads = True
    context = None

    def handle_error(self, request, client_address):
        pass  # clients that go away are what is tested

    def finish_request(self, request, client_address):
        # in the connection's own thread: a client that waits holds up nobody else
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)


def main():
    folder = sys.argv[1]
    server = Server(("127.0.0.1", 0), Handler)
    if "--tls" in sys.argv:
        server.context = make_tls(folder)
    threading.Thread(target=serve_admin, args=(folder + "/admin.sock",), daemon=True).start()
    while not os.path.exists(folder + "/admin.sock"):
        time.sleep(0.01)
    with open(folder + "/port.new", "w") as f:
        f.write(str(server.server_address[1]))
    os.rename(folder + "/port.new", folder + "/port")
    server.serve_forever()


if __name__ == "__main__":
    main()
