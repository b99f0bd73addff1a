#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cards that nobody holds, for spot containers: out of the inventory, without a source. And grants
that were promised and are claimed. Prints TAP; arguments choose tests by the beginning of their
names."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import hostile  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from fakeagent import Agent  # noqa: E402
from hostile import NAME, SPOT, borrower, refused, starts  # noqa: E402
from tap import need  # noqa: E402

CARD = "nvidia-GPU-free"
FREE = {**SPOT, "sources": [], "cards": [CARD], "free": [CARD]}
NODES = [("/dev/nvidia1", 195, 1), ("/dev/nvidiactl", 195, 255), ("/dev/nvidia-uvm", 511, 0)]
TOOLS = ("/dev/nvidia-uvm-tools", 511, 1)


def inventory(**change):
    """What the agent writes to cards.json."""
    card = {"name": CARD, "vendor": "nvidia", "id": "GPU-free", "select": ["GPU-free", "1"],
            "nodes": [{"path": path, "type": "c", "major": major, "minor": minor,
                       "own": path == "/dev/nvidia1", "hook": True, "revocable": False}
                      for path, major, minor in NODES], "settle_ms": 500, **change}
    os.makedirs(fakenode.RUN, mode=0o700, exist_ok=True)
    fakenode.write(fakenode.RUN + "/cards.json", json.dumps({"v": 1, "cards": [card]}), 0o600)


def nodes_of_the_inventory():
    """With a next runtime that injects nothing: the card's nodes, and what its vendor's share."""
    specs.cards(hostile.NODE)
    inventory()
    hostile.NODE.grant(NAME, **FREE)
    with Agent() as agent:
        old, new = starts(borrower())
    specs.got_card(old, new, NODES + [TOOLS], env=())
    need(agent.asked == [{"v": 1, "op": "borrow", "container": "target", "grant": NAME,
                          "sources": []}], "the agent was asked", agent.asked)
    record = hostile.NODE.record("target")
    need(record["role"] == "borrower" and not record.get("sources"), record)
    paths = [d["path"] for d in record["spec"]["linux"]["devices"]]
    need(sorted(paths) == sorted(n[0] for n in NODES + [TOOLS]), paths)


def selector_of_the_inventory():
    """With one that does: the card's name in its variable, instead of the image's "all"."""
    specs.cards(hostile.NODE)
    inventory()
    hostile.NODE.grant(NAME, **FREE)
    hostile.NODE.configure({"next": ["nvidia-container-runtime"]})
    spec = borrower()
    spec["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=all")
    with Agent():
        _, new = starts(spec)
    tree = json.loads(new)
    need(tree["process"]["env"][-1] == "NVIDIA_VISIBLE_DEVICES=GPU-free", tree["process"]["env"])
    need(not tree["linux"].get("devices"), tree["linux"])


def one_free_and_one_of_a_holder():
    hostile.with_holder()
    inventory()
    hostile.NODE.grant(NAME, **{**FREE, "sources": [hostile.HOLDER],
                                "cards": [CARD, "nvidia-GPU-lent"]})
    with Agent() as agent:
        _, new = starts(borrower())
    paths = {d["path"] for d in json.loads(new)["linux"]["devices"]}
    need(paths == {n[0] for n in specs.NODES + NODES + [TOOLS]}, paths)
    need(agent.asked[0]["sources"] == ["holder"], agent.asked)
    need(hostile.NODE.record("target")["sources"] == ["holder"], hostile.NODE.record("target"))


def what_is_wrong_with_the_inventory():
    specs.cards(hostile.NODE)
    hostile.NODE.grant(NAME, **FREE)
    with Agent() as agent:
        refused(borrower(), "@ANY@/cards.json: @ANY@No such file or directory")
        for change, why in (({"name": "nvidia-other"}, "card %s is not on this node" % CARD),
                            ({"vendor": "nobody"}, "card %s is not on this node" % CARD),
                            ({"vendor": None}, "card %s is not on this node" % CARD),
                            ({"nodes": []}, "card %s: it has no device node" % CARD),
                            ({"nodes": [{"path": "/dev/nvidia1", "major": -1, "minor": 0}]},
                             "card %s: a node is none" % CARD),
                            ({"nodes": [{"path": "/dev/nvidia1", "type": "c", "major": 195,
                                         "minor": 7}]}, "stale source card %s: @ANY@" % CARD)):
            inventory(**change)
            refused(borrower(), why)
        fakenode.write(fakenode.RUN + "/cards.json", "{", 0o600)
        refused(borrower(), "@ANY@/cards.json: @ANY@")
        need(agent.asked == [], "the agent was asked", agent.asked)
    hostile.NODE.grant(NAME, **{**FREE, "kind": "share", "lease": None})
    refused(borrower(), "@ANY@only a spot grant has free cards")


def a_promised_grant_is_claimed():
    """The grant comes into being when the agent is asked for it."""
    specs.cards(hostile.NODE)
    inventory()

    asked = []

    def answer(request):
        asked.append(request)
        if request["op"] == "claim":
            hostile.NODE.grant(NAME, **FREE)
        return b'{"v":1,"ok":true}'
    with Agent(answer):
        _, new = starts(borrower())
    need([r["op"] for r in asked] == ["claim", "borrow"], asked)
    need(asked[0] == {"v": 1, "op": "claim", "grant": NAME, "to": "team-a/devpod/dind",
                      "pod_uid": specs.UID}, asked)
    need("/dev/nvidia1" in new.decode(), new)


def nobody_promised_it():
    specs.cards(hostile.NODE)
    key = "annotation gpushare.k8s.io/grant: "
    refused(borrower(), key + "no such grant 012345...")
    with Agent(b'{"v":1,"ok":false,"error":"the kubelet gave it no device of gpushare"}'):
        refused(borrower(), key + "the kubelet gave it no device of gpushare")
    with Agent():
        refused(borrower(), key + "no such grant 012345...")
    hostile.NODE.configure({"create_wait_ms": 300})
    with Agent(None):
        refused(borrower(), key + "no such grant 012345...")


TESTS = [nodes_of_the_inventory, selector_of_the_inventory, one_free_and_one_of_a_holder,
         what_is_wrong_with_the_inventory, a_promised_grant_is_claimed, nobody_promised_it]


def main():
    hostile.NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], hostile.NODE.reset)


if __name__ == "__main__":
    main()
