#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""refuse_unconfirmed: a container that names a card which the kubelet did not give to its pod is
refused when it is created, and nobody else is. Prints TAP; arguments choose tests by the beginning
of their names."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import hostile  # noqa: E402
import specs  # noqa: E402
import tap  # noqa: E402
from fakeagent import Agent  # noqa: E402
from hostile import refused, starts  # noqa: E402
from tap import need  # noqa: E402

NO = b'{"v":1,"ok":false,"error":"the kubelet did not give card nvidia-GPU-0 to its pod"}'
WHY = ("this container names a card that is not its own: "
       "the kubelet did not give card nvidia-GPU-0 to its pod")
NVIDIA = ["nvidia-container-runtime"]


def inventory():
    """Two cards with nodes of their own and one that they share."""
    cards = [{"name": "nvidia-GPU-%d" % n, "vendor": "nvidia", "id": "GPU-%d" % n,
              "select": ["GPU-%d" % n, str(n)],
              "nodes": [{"path": path, "type": "c", "major": major, "minor": minor, "own": own,
                         "hook": True, "revocable": False}
                        for path, major, minor, own in (("/dev/nvidia%d" % n, 195, n, True),
                                                        ("/dev/nvidiactl", 195, 255, False))],
              "settle_ms": 500} for n in range(2)]
    os.makedirs(fakenode.RUN, mode=0o700, exist_ok=True)
    os.chmod(fakenode.RUN, 0o700)
    fakenode.write(fakenode.RUN + "/cards.json", json.dumps({"v": 1, "cards": cards}), 0o600)


def configure(**keys):
    specs.cards(hostile.NODE)
    inventory()
    hostile.NODE.configure({"refuse_unconfirmed": True, **keys})


def naming(value, **more):
    """A container whose environment names cards."""
    return specs.source("target", env=("NVIDIA_VISIBLE_DEVICES=" + value,), nodes=(), **more)


def question(*cards):
    return {"v": 1, "op": "confirm", "container": "target", "to": "team-a/devpod/main",
            "cards": ["nvidia-GPU-%d" % n for n in cards]}


def by_its_nodes():
    configure()
    with Agent() as agent:
        starts(specs.source("target"))
        need(agent.asked == [question(0)], agent.asked)
    with Agent(NO):
        refused(specs.source("target"), WHY)


def by_its_environment():
    configure(next=NVIDIA)
    for value, cards in (("GPU-1", [1]), ("0", [0]), ("1,0", [0, 1]), ("all", [0, 1])):
        with Agent(NO) as agent:
            refused(naming(value), WHY)
            need(agent.asked == [question(*cards)], value, agent.asked)
        with Agent():
            starts(naming(value))
    with Agent(NO) as agent:
        for value in ("void", "none", "", "GPU-other"):
            starts(naming(value))
        need(agent.asked == [], agent.asked)


def before_the_neighbour_is_disturbed():
    """The card is lent: an impostor takes it back from nobody; its holder does."""
    configure()
    hostile.lend([], card="GPU-1")
    with Agent(NO) as agent:
        refused(specs.source("target"), WHY)
        need([a["op"] for a in agent.asked] == ["confirm"], agent.asked)
    with Agent() as agent:
        starts(specs.source("target"))
        need([a["op"] for a in agent.asked] == ["confirm", "reclaim"], agent.asked)


def nobody_else_is_asked_about():
    configure()
    plain = specs.spec("target", specs.identity("main"))
    word = naming("GPU-0")  # in plain runc it opens nothing
    shared = specs.source("target", env=(), nodes=[("/dev/nvidiactl", 195, 255)])
    other = specs.spec("target", {}, (), [specs.device(*specs.NODES[0])], [specs.rule(195, 0)])
    with Agent(NO) as agent:
        for spec in (plain, word, shared, other):
            starts(spec)
        need(agent.asked == [], agent.asked)
        hostile.NODE.configure({"refuse_unconfirmed": True, "cri": "none"})
        starts(specs.source("target"))
        hostile.NODE.configure({})
        starts(specs.source("target"))
        need(agent.asked == [], agent.asked)


def nobody_can_tell():
    """Who was given a card does not suffer from what ails the agent."""
    configure()
    starts(specs.source("target"))
    for answer in (b"", b"{", b'{"v":2,"ok":false,"error":"x"}'):
        with Agent(answer) as agent:
            starts(specs.source("target"))
            need(len(agent.asked) == 1, agent.asked)
    hostile.NODE.configure({"refuse_unconfirmed": True, "create_wait_ms": 1000})
    with Agent(None):
        begin = time.monotonic()
        starts(specs.source("target"))
        need(time.monotonic() - begin > 0.4, "it did not wait")
    fakenode.write(fakenode.RUN + "/cards.json", "{", 0o600)
    with Agent(NO):
        starts(specs.source("target"))
    os.unlink(fakenode.RUN + "/cards.json")
    with Agent(NO):
        starts(specs.source("target"))


def a_target_by_its_own_nodes_alone():
    configure()
    with Agent():
        hostile.NODE.container("main", specs.dumps(specs.source()))
    second = [specs.device("/dev/nvidia1", 195, 1)]
    spec = specs.spec("target", {**specs.identity(), specs.FROM + ".dind": "_/_/main"}, (), second,
                      [specs.rule(195, 1)])
    with Agent(NO) as agent:
        refused(spec, WHY)
        need(agent.asked == [{**question(1), "to": "team-a/devpod/dind"}], agent.asked)
    with Agent(NO) as agent:
        starts(specs.target())
        need(agent.asked == [], agent.asked)


TESTS = [by_its_nodes, by_its_environment, before_the_neighbour_is_disturbed,
         nobody_else_is_asked_about, nobody_can_tell, a_target_by_its_own_nodes_alone]


def main():
    hostile.NODE = fakenode.enter()
    tap.main([(t.__name__.replace("_", "-"), t) for t in TESTS], hostile.NODE.reset)


if __name__ == "__main__":
    main()
