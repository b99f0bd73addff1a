#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpushare-controller itself: its certificate, its webhook over real TLS, its Lease, against an API
server that goes away, refuses and forgets. Prints TAP; arguments choose tests by their names."""
import base64
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from world import (LEASE, PROGRAM, SECRET, WEBHOOK, World, answer, need, pod, ready,  # noqa: E402
                   review, until)
import tap  # noqa: E402

PAGE = os.path.dirname(os.path.abspath(__file__)) + "/../../docs/metrics.md"
world = World()


def metrics_as_documented(c):
    """Rules and dashboards are made from the page: names that nobody serves find nothing."""
    with open(PAGE) as f:
        rows = re.findall(r"^\| `(gpushare_controller_\w+)` \| (\w+) \|", f.read(), re.M)
    text = c.metrics()[1]
    served = re.findall(r"^# TYPE (gpushare_controller_\w+) (\w+)$", text, re.M)
    need(served and sorted(served) == sorted(rows), [served, rows])


def test_story():
    c = world.start()
    authorities = ready(c)
    # as the API server asks: the certificate is trusted, and has the service's name
    response = answer(c, review(pod("a", "nvidia.com/gpu", annotations={"share": "true"})),
                      authorities=authorities)
    need(response["uid"] == "u-1" and response["allowed"], response)
    need(response["patch"] == [{"op": "add", "path": "/spec/containers/0/resources", "value": {
        "limits": {"gpushare/share-gpu": "1"}, "requests": {"gpushare/share-gpu": "1"}}}], response)
    response = answer(c, review(pod("a", annotations={"partition": "gold"})),
                      authorities=authorities)
    need(not response["allowed"] and response["status"]["code"] == 403, response)
    response = answer(c, review(pod("a", annotations={"partition": "gold"}),
                                user="system:serviceaccount:gpushare-system:portal"))
    need(response["allowed"], response)
    need(answer(c, review(pod("plain")))["allowed"])
    need(c.metric('gpushare_controller_reviews_total{answer="refused"}') == 1)
    need(c.metric('gpushare_controller_reviews_total{answer="changed"}') == 2)
    need(c.metric('gpushare_controller_reviews_total{answer="allowed"}') == 1)
    need(c.metric("gpushare_controller_leader") == 1)
    metrics_as_documented(c)
    need(c.metric("gpushare_controller_certificate_end_seconds") > time.time() + 80 * 86400)
    secret = world.get(SECRET)
    need(secret["type"] == "kubernetes.io/tls" and
         set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}, secret)
    need("PRIVATE KEY" not in open(c.path + ".log").read(), "a key in the log")
    c.stop()


def test_foreign_authority():
    c = world.start()
    ready(c)
    with open(world.dir + "/other.crt") as f:
        other = f.read()
    try:
        c.get("/healthz", authorities=other)
    except ssl.SSLCertVerificationError:
        return
    need(False, "a stranger's authority was enough")


def test_pages():
    c = world.start()
    ready(c)
    need(c.get("/healthz")[0] == 200)
    need(c.get("/nothing")[0] == 404)
    need(c.get("/admit")[0] == 405)
    need(c.ask("POST", "/metrics", b"x")[0] == 405)
    need(c.ask("POST", "/admit", b"x")[0] == 400)
    need(c.ask("POST", "/admit", b"")[0] == 400)
    need(c.ask("POST", "/admit", b'{"request":{"namespace":"default"}}')[0] == 400)
    need(c.ask("POST", "/admit", b"[" * 300000)[0] == 400)
    need(c.ask("POST", "/admit", b"{" + b'"a":[],' * 300000 + b'"b":1}')[0] == 400)
    c.stop()


def test_bodies_make_room():
    """Who sends long ones fills no room that short ones need."""
    c = world.start()
    authorities = ready(c)
    hogs = [c.connect() for _ in range(4)]

    def send(s):
        s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (8 << 20) +
                  b"x" * ((8 << 20) - 1))

    threads = [threading.Thread(target=send, args=(s,)) for s in hogs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    time.sleep(5)  # until it has taken the last of it
    body = review(pod("a", annotations={"x": "y" * 200000}))
    for _ in range(3):
        need(answer(c, body, authorities=authorities)["allowed"])
    c.stop()


def test_waiting_is_for_short_ones():
    """A long one is told to come again, as API servers do then."""
    c = world.start()
    ready(c)
    body = review(pod("a", annotations={"x": "y" * 200000}), namespace="never")
    begin = time.monotonic()
    with c.connect() as s:
        s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) +
                  body)
        said = s.recv(4096)
    need(b" 503 " in said and b"\r\nRetry-After: 1\r\n" in said, said)
    need(time.monotonic() - begin < 2, "it waits")
    c.stop()


def test_proven_ones_make_room():
    """Who asks something good has no place for ever: no address has all places."""
    c = world.start()
    authorities = ready(c)
    held = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    body = review(pod("a"))
    for i in range(280):
        plain = socket.create_connection(("127.0.0.1", c.port), 5, ("127.0.2.%d" % (i % 8), 0))
        try:
            s = context.wrap_socket(plain)
            s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                      + body)
            need(b" 200 " in s.recv(4096))
            held.append(s)
        except OSError:
            if i > 255:
                break
    for _ in range(5):
        need(answer(c, review(pod("a")), authorities=authorities)["allowed"])
    c.stop()


def test_before_namespaces():
    """Until namespaces are known nothing is allowed: a pod might miss its partition."""
    world.admin(op="rule", match="/api/v1/namespaces\\?", status=503, times=3)
    c = world.start()
    until("the API server is asked", lambda: any("namespaces?" in r["what"] for r in world.log()))
    until("it is ready in the end", lambda: c.get("/readyz")[0] == 200)
    need(answer(c, review(pod("a")))["allowed"])


def test_namespace_says():
    world.namespace("team", partition="gold")
    c = world.start()
    ready(c)
    response = answer(c, review(pod("a", "nvidia.com/gpu"), namespace="team"))
    need({"op": "add", "path": "/metadata/annotations/gpushare.k8s.io~1partition",
          "value": "gold"} in response["patch"], response)
    # changed, and gone
    world.namespace("team", partition="silver")
    until("it hears of it", lambda: "silver" in str(
        answer(c, review(pod("a", "nvidia.com/gpu"), namespace="team"))))
    # one that it has not heard of: the question waits, and is answered with what that one says
    begin = time.monotonic()
    with c.connect() as s:
        body = review(pod("a", "nvidia.com/gpu"), namespace="new")
        s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n"
                  b"\r\n" % len(body) + body)
        time.sleep(0.3)
        world.namespace("new", partition="iron")
        data = b""
        while piece := s.recv(65536):
            data += piece
    need(b" 200 " in data, data)
    patch = base64.b64decode(json.loads(data.partition(b"\r\n\r\n")[2])["response"]["patch"])
    need(b"iron" in patch and time.monotonic() - begin < 2, patch)
    # one that never comes
    begin = time.monotonic()
    status, _ = c.ask("POST", "/admit", review(pod("a"), namespace="never"))
    need(status == 503 and 2 < time.monotonic() - begin < 9, status)
    # ending while somebody waits
    with c.connect() as s:
        body = review(pod("a"), namespace="never")
        s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) +
                  body)
        time.sleep(0.2)
        c.stop()


def test_hostile():
    """Whatever strangers do, the API server's questions are answered."""
    c = world.start()
    authorities = ready(c)
    open_ones = []
    for i in range(300):
        s = socket.create_connection(("127.0.0.1", c.port), 5, ("127.0.1.%d" % (i % 6), 0))
        s.setblocking(False)
        open_ones.append(s)
        if i % 3 == 0:
            try:
                s.send(os.urandom(200))
            except OSError:
                pass
    for _ in range(3):
        try:
            with c.connect(timeout=5) as s:
                s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
                for _ in range(40):
                    s.sendall(b"x" * 1000000)
        except OSError:
            pass
    with c.connect() as s:
        s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        # half a question, and nothing more
        need(answer(c, review(pod("a")), authorities=authorities, timeout=30)["allowed"])
    for _ in range(20):
        need(answer(c, review(pod("a")), authorities=authorities, timeout=30)["allowed"])
    with open("/proc/%d/status" % c.process.pid) as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    if "san" not in PROGRAM:
        need(rss < 128 * 1024, "%d KiB" % rss)
    for s in open_ones:
        s.close()
    c.stop()


def client_hello(random, session, key):
    """A record with a TLS 1.3 ClientHello that has one group, and a share of it or none (RFC 8446,
    4.1.2)."""
    def vector(size, data):
        return len(data).to_bytes(size, "big") + data

    def extension(number, data):
        return number.to_bytes(2, "big") + vector(2, data)

    shares = b"\x00\x1d" + vector(2, key) if key else b""
    extensions = (extension(10, vector(2, b"\x00\x1d")) +  # X25519
                  extension(13, vector(2, b"\x04\x03")) +  # ECDSA on P-256
                  extension(43, vector(1, b"\x03\x04")) + extension(51, vector(2, shares)))
    hello = (b"\x03\x03" + random + vector(1, session) + vector(2, b"\x13\x01\x13\x02\x13\x03") +
             vector(1, b"\0") + vector(2, extensions))
    return b"\x16\x03\x01" + vector(2, b"\x01" + vector(3, hello))


def records(s, last):
    """The types of TLS records up to the first that is @last; [] where the other side hangs up."""
    types = []
    with s.makefile("rb", buffering=0) as f:
        while not types or types[-1] != last:
            head = f.read(5)
            if len(head) < 5:
                return []
            types.append(head[0])
            length = int.from_bytes(head[3:], "big")
            while length > 0:
                piece = f.read(length)
                if not piece:
                    return []
                length -= len(piece)
    return types


def half_a_handshake(c):
    """A connection, and what its ClientHello began with: the server asks for another one."""
    s = socket.create_connection(("127.0.0.1", c.port), 10)
    begin = os.urandom(32), os.urandom(32)
    s.sendall(client_hello(*begin, b""))
    need(records(s, 22) == [22], "no HelloRetryRequest")
    return s, begin


def test_half_handshakes():
    """Who begins to speak and falls silent keeps the controller from nothing."""
    c = world.start()
    ready(c)
    waiting = [half_a_handshake(c) for _ in range(3)]
    begin = time.monotonic()
    with open("/proc/%d/stat" % c.process.pid) as f:
        used = sum(map(int, f.read().split()[13:15]))
    time.sleep(6)
    renewals = [r for r in world.log() if r["what"].startswith("PUT") and "leases" in r["what"] and
                r["time"] > begin]
    need(len(renewals) >= 2, "the Lease is not renewed")
    with open("/proc/%d/stat" % c.process.pid) as f:
        used = sum(map(int, f.read().split()[13:15])) - used
    need(used < 100, "it used %d ticks of processor time" % used)
    for s, _ in waiting:
        s.close()
    c.stop()


def test_renewal_amid_handshakes():
    """A certificate is replaced while half a handshake has chosen it."""
    # while the webhook's configuration can't be written, the Secret is looked at every two seconds
    world.admin(op="rule", match="PATCH .*webhook", status=422, times=1000)
    c = world.start()
    until("it is ready", lambda: c.get("/readyz")[0] == 200)
    waiting = [half_a_handshake(c) for _ in range(20)]
    world.admin(op="unset", path=SECRET)
    until("it shows a new one", lambda: len(c.said("showing the Secret's certificate")) == 2, 8)
    for s, begin in waiting:
        s.sendall(client_hello(*begin, os.urandom(32)))
        need(22 in records(s, 23), "the handshake does not go on")
        s.close()
    need(c.get("/healthz")[0] == 200)
    c.stop()


def test_keep_alive():
    c = world.start()
    ready(c)
    with c.connect() as s:
        for i in range(50):
            body = review(pod("a"), uid="u%d" % i)
            s.sendall(b"POST /admit HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                      + body)
            data = b""
            while b'"u%d"' % i not in data:
                piece = s.recv(65536)
                need(piece, "it hung up", i)
                data += piece
    c.stop()


def test_two_replicas():
    a, b = world.start(), world.start()
    authorities = ready(a)
    until("b is ready", lambda: b.get("/readyz")[0] == 200)
    # both show the same, and one leads
    need(answer(a, review(pod("x")), authorities=authorities)["allowed"])
    need(answer(b, review(pod("x")), authorities=authorities)["allowed"])
    leaders = [c for c in (a, b) if c.metric("gpushare_controller_leader")]
    need(len(leaders) == 1, len(leaders))
    leader, other = leaders[0], b if leaders[0] is a else a
    until("the Lease has its holder", lambda: world.get(LEASE))
    holder = world.get(LEASE)["spec"]["holderIdentity"]
    need(holder.startswith("controller-%d_" % (0 if leader is a else 1)), holder)
    before = len(world.log())
    time.sleep(3)
    writes = [r["what"] for r in world.log()[before:]
              if not r["what"].startswith("GET") and "leases" not in r["what"]]
    need(not writes, writes)
    leader.kill()
    # not before its time is over
    time.sleep(8)
    need(other.metric("gpushare_controller_leader") == 0, "it took over too soon")
    until("the other one leads", lambda: other.metric("gpushare_controller_leader") == 1, 25)
    need(world.get(LEASE)["spec"]["leaseTransitions"] == 1, world.get(LEASE))
    need(answer(other, review(pod("x")), authorities=authorities)["allowed"])


def test_lease_is_given_back():
    """Whoever ends in peace lets the other one lead at once, and acts no more."""
    a = world.start()
    ready(a)
    b = world.start()
    until("b is ready", lambda: b.get("/readyz")[0] == 200)
    a.stop()
    until("the other one leads", lambda: b.metric("gpushare_controller_leader") == 1, 6)
    need(world.get(LEASE)["spec"]["holderIdentity"].startswith("controller-1_"), world.get(LEASE))
    # not what is another's, and not for ever where nobody answers
    c = world.start()
    until("c is ready", lambda: c.get("/readyz")[0] == 200)
    before = world.get(LEASE)["spec"]["holderIdentity"]
    c.stop()
    need(world.get(LEASE)["spec"]["holderIdentity"] == before, "it took another's Lease")
    world.admin(op="rule", match="/leases", hang=True, times=100)
    begin = time.monotonic()
    b.stop()
    need(time.monotonic() - begin < 5, "it waits for an API server that does not answer")


def test_secret_is_taken():
    """The Secret of an earlier run is used; a broken one is mended."""
    c = world.start()
    authorities = ready(c)
    secret = world.get(SECRET)
    c.stop()
    world.admin(op="unset", path=LEASE)
    c = world.start()
    until("it shows the Secret's", lambda: c.get("/readyz")[0] == 200)
    need(c.get("/healthz", authorities=authorities)[0] == 200)
    need(world.get(SECRET)["data"] == secret["data"], "it was written again")
    c.stop()
    world.admin(op="unset", path=LEASE)
    secret["data"]["tls.key"] = "bm9uZQ=="
    world.set(SECRET, secret)
    c = world.start()
    until("it mends it", lambda: world.get(SECRET)["data"]["tls.key"] != "bm9uZQ==")
    until("it shows the Secret's", lambda: c.get("/readyz")[0] == 200)
    need(c.get("/healthz", authorities=authorities)[0] == 200)


def test_secret_race():
    """Another replica was faster: its Secret counts."""
    c = world.start()
    ready(c)
    first = world.get(SECRET)
    c.stop()
    world.admin(op="unset", path=LEASE)
    world.admin(op="unset", path=SECRET)
    world.admin(op="rule", match="GET /api/v1/namespaces/[^/]*/secrets", status=404)
    world.admin(op="rule", match="POST /api/v1/namespaces/[^/]*/secrets", status=409)
    world.set(SECRET, first)
    d = world.start()
    until("it is ready", lambda: d.get("/readyz")[0] == 200)
    need(world.get(SECRET)["data"] == first["data"], "the Secret was written")


def test_secret_race_without_end():
    """An API server that never takes the Secret is not asked without end."""
    world.admin(op="rule", match="POST /api/v1/namespaces/[^/]*/secrets", status=409, times=100000)
    c = world.start()
    until("it tries", lambda: any("/secrets" in r["what"] and r["what"].startswith("POST")
                                  for r in world.log()))
    time.sleep(5)
    tries = [r for r in world.log() if r["what"].startswith("POST") and "/secrets" in r["what"]]
    need(1 < len(tries) < 10, len(tries))
    world.admin(op="forget")
    until("it is ready", lambda: c.get("/readyz")[0] == 200)


def test_authorities_are_mended():
    c = world.start()
    authorities = ready(c)
    config = world.get(WEBHOOK)
    config["webhooks"][1]["clientConfig"]["caBundle"] = "b2xk"
    world.set(WEBHOOK, config)
    c.stop()
    world.admin(op="unset", path=LEASE)
    c = world.start()
    need(ready(c) == authorities)
    # what else is in it stays
    need(world.get(WEBHOOK)["webhooks"][0]["clientConfig"]["service"] == {"name": "x"})


def test_outage():
    # who may read metrics can't be asked then
    c = world.start(metrics_auth=False)
    authorities = ready(c)
    world.admin(op="outage", on=True)
    until("it ceases to lead", lambda: c.metric("gpushare_controller_leader") == 0, 25)
    # questions are answered all the same
    need(answer(c, review(pod("a")), authorities=authorities)["allowed"])
    need(c.metric("gpushare_controller_kubernetes_api_up") == 0)
    world.admin(op="outage", on=False)
    until("it leads again", lambda: c.metric("gpushare_controller_leader") == 1, 45)
    until("all is well", lambda: c.metric("gpushare_controller_kubernetes_api_up") == 1, 40)
    c.stop()


PODS = "/api/v1/namespaces/%s/pods"
NO_ROOM = ("0/3 nodes are available: 1 Insufficient gpushare/share-gpu, 2 node(s) didn't match "
           "Pod's node affinity/selector.")


def share(name, uid, n=1, node=None, why=NO_ROOM, namespace="default", made=0, untold=False,
          **spec):
    """A share pod, as the scheduler leaves it; @untold: no watch hears of it."""
    p = pod(name, "gpushare/share-gpu", n, namespace=namespace,
            annotations=spec.pop("annotations", None), **spec)
    p["metadata"].update(uid=uid, creationTimestamp="2026-11-30T10:00:%02dZ" % made)
    if node:
        p["spec"]["nodeName"] = node
    elif why:
        p["status"] = {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
             "message": why}]}
    world.set(PODS % namespace + "/" + name, p, untold)


def shadow(uid):
    return world.get(PODS % "gpushare-system" + "/shadow-" + uid)


def place(uid, node, untold=False):
    p = shadow(uid)
    p["spec"]["nodeName"] = node
    world.set(PODS % "gpushare-system" + "/shadow-" + uid, p, untold)


def made():
    return [r for r in world.log() if r["what"].startswith("POST") and "/pods" in r["what"]]


def lead(**section):
    c = world.start(**section)
    ready(c)
    return c


def test_shadow_story():
    c = lead(shadow={"quiet": "2s", "image": "example/pause:1"})
    share("s1", "u1", nodeSelector={"pool": "a"}, priorityClassName="high",
          runtimeClassName="gpushare", tolerations=[{"key": "k", "operator": "Exists"}],
          annotations={"partition": "gold", "user_id": "alice"},
          affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
              "nodeSelectorTerms": [{"matchExpressions": [
                  {"key": "gpushare.k8s.io/partition", "operator": "In", "values": ["gold"]}]}]}},
              "podAffinity": {"x": 1}})
    p = until("a shadow pod is made", lambda: shadow("u1"))
    spec, meta = p["spec"], p["metadata"]
    one = {"cpu": "50m", "memory": "16Mi", "nvidia.com/gpu": "1"}
    need(spec["containers"][0]["resources"] == {"limits": one, "requests": one}, spec)
    need(spec["nodeSelector"] == {"pool": "a"} and spec["priorityClassName"] == "high" and
         spec["tolerations"] == [{"key": "k", "operator": "Exists"}] and
         spec["runtimeClassName"] == "gpushare" and
         list(spec["affinity"]) == ["nodeAffinity"] and
         spec["containers"][0]["image"] == "example/pause:1", spec)
    keys = meta["annotations"]
    need(keys["gpushare.k8s.io/shadow"] == "true" and
         keys["gpushare.k8s.io/partition"] == "gold" and
         keys["gpushare.k8s.io/user_id"] == "alice" and
         keys["gpushare.k8s.io/shadow-for"] == "u1" and "ownerReferences" not in meta and
         meta["labels"] == {"app.kubernetes.io/managed-by": "gpushare-controller"}, meta)
    until("the user is told", lambda: any(
        e["reason"] == "WaitsForCard" and e["involvedObject"]["uid"] == "u1" and
        "looked for" in e["message"] for e in world.events()))
    # a second one of the same kind shares its card, a third one does not
    share("s2", "u2", made=1, nodeSelector={"pool": "a"}, priorityClassName="high",
          runtimeClassName="gpushare", tolerations=[{"key": "k", "operator": "Exists"}],
          annotations={"partition": "gold", "user_id": "alice"},
          affinity=world.get(PODS % "default" + "/s1")["spec"]["affinity"])
    time.sleep(1)
    need(len(made()) == 1 and not shadow("u2"), "two for one need")
    place("u1", "n1")
    share("s1", "u1", node="n1")
    share("s2", "u2", node="n1")
    share("s3", "u3")
    until("a second shadow pod", lambda: shadow("u3"))
    until("it counts", lambda: c.metric('gpushare_controller_shadow_pods{state="placed"}') == 1)
    # who goes away needs none: at once where it holds no card, else after a quiet time
    world.admin(op="remove", pod="default/s3")
    until("the pending one goes", lambda: not shadow("u3"))
    world.admin(op="remove", pod="default/s1")
    # also by one that shuts down
    p = world.get(PODS % "default" + "/s2")
    p["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.set(PODS % "default" + "/s2", p)
    time.sleep(3)
    need(shadow("u1"), "its card was in use")
    world.admin(op="remove", pod="default/s2")
    begin = time.monotonic()
    until("the placed one goes", lambda: not shadow("u1"))
    need(time.monotonic() - begin > 1.5, "too soon")
    need(c.metric('gpushare_controller_shadows_total{what="deleted"}') == 2)
    c.stop()


def looks():
    return [r for r in world.log() if "fieldSelector=spec.nodeName%3Dn1&" in r["what"]]


def deletes():
    return [r for r in world.log() if r["what"].startswith("DELETE")]


def test_shadow_used_unseen():
    """Nobody's card is taken away because a watch is behind."""
    c = lead(shadow={"quiet": "1s"})
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    place("u1", "n1")
    share("s1", "u1", node="n1")
    share("s2", "u2", node="n1", untold=True)
    world.admin(op="remove", pod="default/s1")
    until("its node is looked at", lambda: len(looks()) > 1)
    need(shadow("u1") and not deletes(), deletes())
    need("resourceVersion" not in looks()[0]["what"], "by a cache that may be behind as well")
    # one that is over uses nothing
    p = world.get(PODS % "default" + "/s2")
    p["status"] = {"phase": "Succeeded"}
    world.set(PODS % "default" + "/s2", p, untold=True)
    until("it goes", lambda: not shadow("u1"))
    need(c.metric('gpushare_controller_shadows_total{what="deleted"}') == 1)
    c.stop()


def test_shadow_answer_is_late():
    """What a watch has told since is newer than the answer to who made a shadow pod."""
    c = lead(shadow={"quiet": "1s"})
    pending = 'gpushare_controller_shadow_pods{state="pending"}'
    placed = 'gpushare_controller_shadow_pods{state="placed"}'
    world.admin(op="rule", match="^POST .*/pods", late=True)
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    place("u1", "n1")
    share("s1", "u1", node="n1")
    until("it is known", lambda: c.metric(placed) == 1)
    world.admin(op="forget")
    until("the answer", lambda: c.metric('gpushare_controller_shadows_total{what="made"}') == 1)
    world.admin(op="remove", pod="default/s1")
    until("it goes", lambda: not shadow("u1"))
    # one that is gone by then
    world.admin(op="rule", match="^POST .*/pods", late=True)
    share("s2", "u2")
    until("another one is made", lambda: shadow("u2"))
    until("it is known", lambda: c.metric(pending) == 1)
    world.admin(op="remove", pod="gpushare-system/shadow-u2")
    until("its end is known", lambda: c.metric(pending) == 0)
    world.admin(op="forget")
    until("it is made anew", lambda: shadow("u2"))
    c.stop()


def test_shadow_of_strange_text():
    """What else a share pod's author writes hides neither the pod nor its end."""
    c = lead(shadow={"quiet": "1s"})
    share("s1", "u1", annotations={"user_id": "alice"})
    until("a shadow pod is made", lambda: shadow("u1"))
    place("u1", "n1")
    for name in ("s1", "s2"):
        p = pod(name, "gpushare/share-gpu", annotations={"user_id": "alice"}, nodeName="n1")
        p["metadata"]["uid"] = "u" + name[1]
        p["metadata"]["annotations"]["example.com/a"] = "\0"
        world.set(PODS % "default" + "/" + name, p)
    until("it counts", lambda: c.metric('gpushare_controller_shadow_pods{state="placed"}') == 1)
    world.admin(op="remove", pod="default/s1")
    time.sleep(3)
    need(shadow("u1") and not deletes(), "its card was in use")
    world.admin(op="remove", pod="default/s2")
    until("it goes", lambda: not shadow("u1"))
    c.stop()


def test_shadow_placed_unseen():
    """One without a node goes only if it still has none."""
    lead(shadow={"quiet": "1s"})
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    place("u1", "n1", untold=True)
    share("s2", "u2", node="n1", untold=True)
    world.admin(op="remove", pod="default/s1")
    until("it was tried", deletes)
    time.sleep(1)
    need(shadow("u1"), "a card that is used")
    need(json.loads(deletes()[0]["body"])["preconditions"]["uid"] ==
         shadow("u1")["metadata"]["uid"], deletes())
    # the watch is there again
    place("u1", "n1")
    until("its node is looked at", looks)
    time.sleep(1)
    need(shadow("u1") and len(deletes()) == 1, "it was tried again")
    world.admin(op="remove", pod="default/s2")
    until("it goes", lambda: not shadow("u1"))


def test_shadow_removal_given_up():
    """Who ceases to lead removes nothing any more, however long a request waits."""
    c = lead(shadow={"quiet": "1s"})
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    world.admin(op="rule", match="^DELETE", status=429, headers={"Retry-After": "14"})
    world.admin(op="rule", match="/leases", status=403, times=1000)
    world.admin(op="remove", pod="default/s1")
    until("it is asked to be deleted", deletes)
    until("it ceases to lead", lambda: c.metric("gpushare_controller_leader") == 0, 25)
    time.sleep(8)
    need(shadow("u1") and len(deletes()) == 1, "it went on")
    c.stop()


def test_shadow_of_two_cards():
    """A container for each: the agent offers no card of a container that has several."""
    lead()
    share("s1", "u1", n=2)
    p = until("a shadow pod is made", lambda: shadow("u1"))
    containers = p["spec"]["containers"]
    need([c["resources"]["limits"]["nvidia.com/gpu"] for c in containers] == ["1", "1"], containers)
    need(len({c["name"] for c in containers}) == 2, containers)
    share("s2", "u2", n=2)
    time.sleep(1)
    need(len(made()) == 1, "two for one need")  # it has two cards, with a share left of each


def test_shadow_crowd():
    """A Deployment with thousands of pods: a few requests at a time, and questions answered."""
    c = lead(shadow={"account_cards": 0, "share": 1})
    world.admin(op="rule", match="POST .*gpushare-system/pods", hang=True, times=10000)
    for i in range(100):
        share("s%d" % i, "u%d" % i)
    until("some are asked for", made)
    time.sleep(2)
    need(len(made()) == 16, len(made()))
    world.admin(op="forget")
    c.stop()


def test_shadow_fat():
    """Somebody whose pods have a megabyte of selectors each."""
    c = lead()
    values = ["v%060d" % i for i in range(10000)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "k", "operator": "NotIn", "values": values}]}]}}}
    for i in range(100):
        share("s%d" % i, "u%d" % i, affinity=affinity)
    share("thin", "thin")
    until("others get theirs", lambda: shadow("thin"))
    until("the user is told", lambda: any("are too large" in e["message"]
                                          for e in world.events()))
    need(len(made()) == 1, made())
    with open("/proc/%d/status" % c.process.pid) as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    if "san" not in PROGRAM:
        need(rss < 64 * 1024, "%d KiB" % rss)
    c.stop()


def test_shadow_not_for_others():
    """Who waits for something else, or lives on a node, gets none."""
    lead()
    share("cpu", "u1", why="0/3 nodes are available: 3 Insufficient cpu.")
    share("new", "u2", why=None)
    share("runs", "u3", node="n1")
    world.set(PODS % "default" + "/plain", dict(pod("plain", "nvidia.com/gpu"), status={
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                        "message": NO_ROOM}]}))
    # what only looks like a shadow pod is left alone
    forged = pod("forged", annotations={"shadow": "true", "shadow-for": "u9"})
    forged["metadata"]["uid"] = "uf"
    world.set(PODS % "default" + "/forged", forged)
    time.sleep(2)
    need(not made(), made())
    need(world.get(PODS % "default" + "/forged"), "somebody's pod was deleted")


def test_shadow_cap():
    lead(shadow={"account_cards": 2})
    for i in range(4):
        share("s%d" % i, "u%d" % i, n=1, namespace="default", made=i,
              nodeSelector={"n": str(i)}, annotations={"user_id": "alice"})
    share("other", "u9", annotations={"user_id": "bob"}, nodeSelector={"n": "9"})
    until("two for alice, one for bob", lambda: shadow("u0") and shadow("u1") and shadow("u9"))
    until("the others are told", lambda: sum(
        "account alice holds 2 cards to be shared, and may hold 2" in e["message"]
        for e in world.events()) == 2)
    need(len(made()) == 3, made())


def test_shadow_crowd_is_told():
    """Each of many that wait is told why, though an API server takes few Events at a time."""
    lead(shadow={"account_cards": 1, "share": 1})
    for i in range(150):
        share("s%d" % i, "u%d" % i)
    until("all are told", lambda: len({e["involvedObject"]["uid"] for e in world.events()
                                       if e["reason"] == "WaitsForCard"}) == 150, 90)


def test_shadow_refused():
    """A quota: the user hears of it, and the API server is not asked without end."""
    c = lead()
    world.admin(op="rule", match="POST .*/pods", status=403, times=100)
    share("s1", "u1")
    until("the user is told", lambda: any("scripted answer" in e["message"]
                                          for e in world.events()))
    time.sleep(3)
    need(len(made()) == 1, len(made()))
    need(c.metric('gpushare_controller_shadows_total{what="refused"}') == 1)


def test_shadow_no_card():
    lead()
    share("s1", "u1")
    p = until("a shadow pod is made", lambda: shadow("u1"))
    p["status"] = {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}
    world.set(PODS % "gpushare-system" + "/shadow-u1", p)
    until("the user is told", lambda: any(
        "no card is free to be shared: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu" in
        e["message"] for e in world.events()))


def test_shadow_restart():
    """Killed at any moment, nothing is made twice and nothing is forgotten."""
    c = lead()
    # its answer is lost: the request did what it was to do
    world.admin(op="rule", match="POST .*/pods", status=503, store=True)
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    time.sleep(1)
    uid = shadow("u1")["metadata"]["uid"]
    c.kill()
    world.admin(op="unset", path=LEASE)
    lead()
    time.sleep(2)
    need(shadow("u1")["metadata"]["uid"] == uid, "it was made anew")
    world.admin(op="remove", pod="default/s1")
    until("it goes", lambda: not shadow("u1"))


def test_shadow_gone_meanwhile():
    """Who goes while the watch is too old is seen to be gone in the new list."""
    lead()
    share("s1", "u1")
    until("a shadow pod is made", lambda: shadow("u1"))
    world.admin(op="outage", on=True)
    world.admin(op="remove", pod="default/s1")
    world.admin(op="expire")
    world.admin(op="outage", on=False)
    until("it goes", lambda: not shadow("u1"), 60)


def test_shadow_two_replicas():
    a, b = world.start(), world.start()
    ready(a)
    for i in range(10):
        share("s%d" % i, "u%d" % i, nodeSelector={"n": str(i)},
              annotations={"user_id": "user-%d" % i})
    until("all are made", lambda: all(shadow("u%d" % i) for i in range(10)))
    time.sleep(1)
    need(len(made()) == 10, len(made()))
    need({a.metric("gpushare_controller_leader"), b.metric("gpushare_controller_leader")} ==
         {0, 1}, "not one leader")


def test_command_line():
    def run(*args, **env):
        p = subprocess.run([PROGRAM] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=dict(os.environ, **env), timeout=20)
        return p.returncode, p.stdout.decode(), p.stderr.decode()

    code, out, err = run("--help")
    need(code == 0 and out.startswith("usage: gpushare-controller") and not err)
    need(run("--nothing")[0] == 2 and run("word")[0] == 2)
    path = world.dir + "/bad.json"
    for section, says in (('{"port": 70000}', "port"), ('{"sahdow": {}}', "sahdow"),
                          ('{"secret": "../x"}', "secret must be a DNS label"),
                          ('{"shadow": {"share": 0}}', "share must be at least 1"),
                          ('{"shadow": {"quiet": "5"}}', "quiet"),
                          ('{"namespace": "n"}', "no API server is set"),
                          ('{"address": "example", "namespace": "n", "kubernetes": {"server":'
                           '"https://127.0.0.1:1", "token_file": "/x"}}', "no IP address")):
        with open(path, "w") as f:
            f.write('{"vendor_dirs": ["%s"], "controller": %s}'
                    % (os.path.dirname(os.path.dirname(WORLD)) + "/vendors", section))
        code, out, err = run("--config", path)
        need(code == 1 and says in err and not out, section, code, err)


WORLD = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    try:
        tap.main(tap.named(globals()), world.reset)
    finally:
        world.close()
