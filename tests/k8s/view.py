#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The node's picture in the cluster: the real gpushared at the API server that Python plays, with
the kubelet of plugins.py. Prints TAP; arguments choose tests by the beginning of their names."""
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../runtime")]
import fakenode  # noqa: E402
import plugins  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
import world  # noqa: E402
from plugins import SHARE, wait_for  # noqa: E402
from tap import need  # noqa: E402

API = None
MAPS = "/api/v1/namespaces/%s/configmaps" % world.SYSTEM
MAP = MAPS + "/gpushare-node-node-1"
# The agent looks 3 s after its start.
LOOKED = 6


def reset():
    plugins.reset()
    API.admin(op="forget")
    API.admin(op="outage", on=False)
    API.reset()
    configure()


def configure(**view):
    plugins.AGENT.configure()
    config = json.loads(fakenode.read(fakenode.CONFIG))
    config["agent"]["kubernetes"] = {
        "server": "https://127.0.0.1:%d" % API.port, "ca_file": API.dir + "/ca.crt",
        "token_file": API.dir + "/token", "node": "node-1"}
    config["agent"]["cluster_view"] = view
    fakenode.write(fakenode.CONFIG, json.dumps(config))


def writes():
    return [r["what"] for r in API.log() if "/configmaps" in r["what"]]


def shown():
    """The picture that is published; None: none is."""
    config_map = API.get(MAP)
    return config_map and json.loads(config_map["data"]["status.json"])


def updates(outcome):
    return plugins.AGENT.metrics().get('gpushare_view_updates_total{outcome="%s"}' % outcome)


def a_node_is_shown():
    plugins.KUBELET.start()
    plugins.AGENT.start()
    wait_for("the picture", shown)
    need(writes() == ["PUT " + MAP, "POST " + MAPS], writes())
    meta = API.get(MAP)["metadata"]
    need(meta["labels"] == {"gpushare.k8s.io/view": "node",
                            "app.kubernetes.io/managed-by": "gpushared"}, meta)
    picture = shown()
    need(picture["v"] == 1 and re.fullmatch(r"20..-..-..T..:..:..Z", picture["time"]), picture)
    need([c["card"] for c in picture["cards"]] == ["fakegpu-GPU-0", "fakegpu-GPU-1"], picture)
    need(picture["kernel"]["loaded"] is False, picture)
    # Somebody holds a card, and another pod shares it by a grant.
    plugins.shadow(0)
    plugins.KUBELET.lists_it(SHARE, {k: v for k, v in plugins.ALL.items() if "GPU-0" in k})
    annotations = plugins.KUBELET.allocate(SHARE, "fakegpu-GPU-0::0")
    grant = annotations["gpushare.k8s.io/grant"]
    plugins.is_written(annotations)
    owner = {"gpushare.k8s.io/user_id": "u-7", "gpushare.k8s.io/partition": "gold"}
    spec = plugins.share_pod("share", {**annotations, **owner})
    plugins.KUBELET.uses["team-a", "share", "train"] = {SHARE: ["fakegpu-GPU-0::0"]}
    fakenode.write("%s/fakegpu0/load" % plugins.CLASS, "40\n")
    plugins.NODE.container("share", specs.dumps(spec), ("hooked",))
    member = wait_for("the sharer", lambda: next((
        m for h in shown()["holdings"] for m in h["members"] if m["role"] == "target"), None))
    need((member["name"], member["user_id"], member["partition"]) ==
         ("team-a/share/train", "u-7", "gold"), member)
    text = API.get(MAP)["data"]["status.json"]
    need(grant not in text and grant[:8] not in text, "a grant's name is shown")
    times = [r["time"] for r in API.log() if "/configmaps" in r["what"]][1:]
    need(all(b - a > 9 for a, b in zip(times, times[1:])), "too often:", times)
    need(updates("ok") == str(len(times)), updates("ok"), times)
    # It is what the node itself tells.
    told = plugins.NODE.run(["inspect", "-o", "json"], argv0="gpusharectl",
                            program=fakenode.BUILD + "/gpusharectl")
    need([m["name"] for m in json.loads(told.out)[0]["sharers"]] == ["team-a/share/train"],
         told.out)


def a_change_is_told_soon():
    plugins.AGENT.start()
    wait_for("the picture", shown)
    # After ten seconds it finds nothing new; by itself it looks again a minute later.
    time.sleep(16)
    begin = time.monotonic()
    plugins.shadow(0)
    wait_for("the holder", lambda: any(h["members"] for h in shown()["holdings"]))
    took = time.monotonic() - begin
    need(took < 35, took, "seconds")


def who_restarts_writes_nothing():
    plugins.AGENT.start()
    wait_for("the picture", shown)
    before = writes()
    for number in (9, 15):
        plugins.AGENT.end(number)
        plugins.AGENT.start()
        time.sleep(LOOKED)
        need(writes() == before, writes())
    # But what came meanwhile.
    plugins.AGENT.end()
    plugins.NODE.device("/dev/fakegpu2", "c", 240, 2)
    for name, text in (("uuid", "GPU-2"), ("index", "2"), ("load", "0"), ("mem_used", "0"),
                       ("mem_total", "1000")):
        fakenode.write("%s/fakegpu2/%s" % (plugins.CLASS, name), text + "\n")
    plugins.AGENT.start()
    wait_for("the third card", lambda: len(shown()["cards"]) == 3)


def the_server_is_away_at_first():
    API.admin(op="outage", on=True)
    plugins.AGENT.start()
    time.sleep(LOOKED)
    need(updates("ok") is None and updates("failed") is None, "an outage is no failure")
    API.admin(op="outage", on=False)
    wait_for("the picture", shown)


def it_is_forbidden():
    API.admin(op="rule", match="/configmaps", status=403, times=1000)
    plugins.AGENT.start()
    wait_for("the failure", lambda: updates("failed") == "1")
    time.sleep(LOOKED)
    need(writes() == ["PUT " + MAP], writes())
    log = fakenode.read(fakenode.HOME + "/agent.log").decode()
    need(log.count("the cluster's view is not told of this node") == 1, log[-2000:])
    need("the API server answers 403" in log, log[-2000:])


def nobody_wants_it():
    configure(enabled=False)
    plugins.AGENT.start()
    time.sleep(LOOKED)
    need(not writes(), writes())


def another_namespace():
    configure(namespace="elsewhere")
    plugins.AGENT.start()
    wait_for("the picture", lambda: API.get(MAP.replace(world.SYSTEM, "elsewhere")))


def a_grant_of_an_init_container():
    """Of what it has the kubelet tells nothing; the grant is its pod's until that is over."""
    def put(phase):
        asks = {"limits": {SHARE: "1"}, "requests": {SHARE: "1"}}
        API.set("/api/v1/namespaces/team-a/pods/share", {
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "share", "namespace": "team-a", "uid": "uid-share"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "main"}],
                     "initContainers": [{"name": "load", "resources": asks}]},
            "status": {"phase": phase}})

    put("Pending")
    plugins.KUBELET.start()
    plugins.AGENT.start()
    plugins.shadow(0)
    plugins.KUBELET.lists_it(SHARE, {k: v for k, v in plugins.ALL.items() if "GPU-0" in k})
    annotations = plugins.KUBELET.allocate(SHARE, "fakegpu-GPU-0::0")
    plugins.is_written(annotations)
    time.sleep(55)  # its image is large
    need(plugins.is_written(annotations)["state"] == "active", "it was revoked")
    put("Succeeded")
    wait_for("the end of the grant",
             lambda: plugins.is_written(annotations)["state"] == "revoked")


TESTS = [a_node_is_shown, a_change_is_told_soon, who_restarts_writes_nothing,
         the_server_is_away_at_first, it_is_forbidden, nobody_wants_it, another_namespace,
         a_grant_of_an_init_container]


def main():
    global API
    plugins.NODE = fakenode.enter()
    API = world.World()
    try:
        tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], reset)
    finally:
        API.close()


if __name__ == "__main__":
    main()
