#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may read the metrics of gpushare-controller: with what token, and what happens where the API
server does not say. Prints TAP; arguments choose tests by their names."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from world import READER, World, answer, need, pod, ready, review, until  # noqa: E402
import tap  # noqa: E402

world = World()


def reviews(kind="tokenreviews"):
    return [r for r in world.log() if r["what"].endswith("/" + kind)]


def asked_about(token):
    """Reviews of tokens that begin so."""
    return [r for r in reviews() if json.loads(r["body"])["spec"]["token"].startswith(token)]


def test_not_for_anybody():
    """Who reads them has a token, and the right to; health and questions need none."""
    c = world.start()
    authorities = ready(c)
    world.account("tenant", "system:serviceaccount:team:default")
    world.account("elsewhere", "system:serviceaccount:other:default", "/healthz")
    world.account("", "nobody", "/metrics")
    need(c.get("/healthz")[0] == 200 and c.get("/readyz")[0] == 200)
    need(answer(c, review(pod("a")), authorities=authorities)["allowed"])
    for token in (None, "", "x y", "x\x01", "\xff"):
        status, text = c.metrics(token)
        need(status == 401 and "gpushare_" not in text, token, status, text)
    need(c.ask("GET", "/metrics", headers="Authorization: Basic cHJvbWV0aGV1cw==\r\n")[0] == 401)
    need(not reviews(), reviews())  # nobody is asked about what is no token
    for token, wanted in (("nobody's", 401), ("tenant", 403), ("elsewhere", 403)):
        status, text = c.metrics(token)
        need(status == wanted and "gpushare_" not in text, token, status, text)
    status, text = c.metrics()
    need(status == 200 and "gpushare_controller_leader" in text, status, text)
    need(c.ask("HEAD", "/metrics", headers="authorization: bearer prometheus\r\n")[0] == 200)
    # whose the token is, and all that its account's rights may hang on, is told
    asked = json.loads(reviews("subjectaccessreviews")[-1]["body"])
    need(asked == {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "system:serviceaccount:monitoring:prometheus",
        "uid": "uid of system:serviceaccount:monitoring:prometheus",
        "groups": ["system:serviceaccounts"],
        "extra": {"authentication.kubernetes.io/pod-name": ["p"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}, asked)
    asked = json.loads(reviews()[-1]["body"])
    need(asked == {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                   "spec": {"token": "prometheus"}}, asked)
    # each was asked about once, and then remembered
    for token in ("nobody's", "tenant", "prometheus") * 3:
        c.metrics(token)
    need(len(reviews()) == 4, reviews())
    need("prometheus" not in open(c.path + ".log").read(), "a token in the log")
    with c.connect() as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        need(b"\r\nWWW-Authenticate: Bearer\r\n" in s.recv(4096))
    c.stop()


def test_rights_come_and_go():
    c = world.start()
    world.account("tenant", "system:serviceaccount:team:default")
    need(c.metrics("tenant")[0] == 403)
    world.account("tenant", "system:serviceaccount:team:default", "/metrics")
    until("the right that was given is there", lambda: c.metrics("tenant")[0] == 200)
    world.account("tenant", "system:serviceaccount:team:default")
    until("the right that was taken is not", lambda: c.metrics("tenant")[0] == 403)
    c.stop()


def test_fail_closed():
    """Where it can't be told in time, nobody reads them; it is told once, and soon well again."""
    said = "who may read the metrics can't be asked"
    c = world.start()
    ready(c)
    for rule in ({"status": 403}, {"status": 201, "body": "{}"}, {"status": 201, "body": "["},
                 {"status": 201, "body": '{"status":{"authenticated":"true"}}'},
                 {"status": 201, "body": '{"status":{"authenticated":true}}'},
                 {"status": 201,
                  "body": '{"status":{"authenticated":true,"user":{"username":""}}}'}):
        world.admin(op="rule", match="tokenreviews", **rule)
        status, text = c.metrics("x" + json.dumps(rule).replace(" ", ""))
        need(status in (401, 503) and "gpushare_" not in text, rule, status)
    for rule in ({"status": 403}, {"status": 201, "body": "{}"},
                 {"status": 201, "body": '{"status":{"allowed":true,"denied":true}}'},
                 {"status": 201, "body": '{"status":{"allowed":"yes"}}'}):
        world.account("y" + json.dumps(rule).replace(" ", ""), "y", "/metrics")
        world.admin(op="rule", match="subjectaccessreviews", **rule)
        status, text = c.metrics("y" + json.dumps(rule).replace(" ", ""))
        need(status in (403, 503) and "gpushare_" not in text, rule, status)
    before = len(c.said(said))
    world.admin(op="rule", match="reviews", hang=True, times=1000)
    need(c.metrics()[0] == 503 and c.metrics()[0] == 503)
    need(len(c.said(said)) - before <= 1, "it says it again and again")
    # questions are answered meanwhile; so many wait for the API server, and no more
    waiting = [c.connect() for _ in range(20)]
    for i, s in enumerate(waiting):
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t%d\r\n\r\n" % i)
    need(answer(c, review(pod("a")))["allowed"])
    need(c.metrics("late")[0] == 503)
    need(not asked_about("late"))
    for s in waiting:
        need(b" 503 " in s.recv(4096))
        s.close()
    need(len(asked_about("t")) <= 8, len(asked_about("t")))
    world.admin(op="forget")
    until("it is well again", lambda: c.metrics()[0] == 200)
    # ending while somebody waits
    world.admin(op="rule", match="reviews", hang=True, times=1000)
    with c.connect() as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer last\r\n\r\n")
        time.sleep(0.2)
        c.stop()


def test_crowd():
    """Strangers with a token each put nobody out who is known."""
    c = world.start()
    ready(c)
    begin = time.monotonic()
    need(c.metrics()[0] == 200)
    for i in range(70):
        need(c.metrics("stranger-%d" % i)[0] == 401)
    need(c.metrics()[0] == 200)
    need(len(asked_about(READER)) == 1 or time.monotonic() > begin + 9, "it is asked about again")
    c.metrics("stranger-0")
    need(len(reviews()) >= 72, "all of them are kept")
    # nor do they when what is known of that one is too old
    time.sleep(10.5)
    world.admin(op="rule", match="tokenreviews", holds='"t[0-9]', hang=True, times=1000)
    waiting = [c.connect() for _ in range(8)]
    for i, s in enumerate(waiting):
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t%d\r\n\r\n" % i)
    need(c.metrics()[0] == 200)
    for s in waiting:
        s.close()
    c.stop()


def test_switched_off():
    c = world.start(metrics_auth=False)
    status, text = c.metrics(None)
    need(status == 200 and "gpushare_controller_leader" in text and not reviews(), status, text)
    c.stop()


if __name__ == "__main__":
    try:
        tap.main(tap.named(globals()), world.reset)
    finally:
        world.close()
