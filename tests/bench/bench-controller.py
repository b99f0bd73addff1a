#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What gpushare-controller costs in a large cluster: 50,000 pods, as 5,000 nodes have, of which a
tenth share cards. A program plays the API server (tests/k8s/apiserver.py). As lines

    METRIC <name> <value> <unit>\t<target>: <met or missed>; <what was measured>

Status 1: a target was missed. PODS (50000), EVENTS (5000), IDLE (60) seconds.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../k8s"))
from world import World, pod, ready, until  # noqa: E402

PODS, EVENTS, IDLE = (int(os.environ.get(k, v)) for k, v in (
    ("PODS", 50000), ("EVENTS", 5000), ("IDLE", 60)))
LIST_KIB = 200 * 1024
# With managedFields and the volume of a service account a pod is about so long.
POD_BYTES = 2800
missed = []


def metric(name, value, unit, target, words):
    verdict = ""
    if target is not None:
        verdict = "target <= %s %s: %s; " % (target, unit, "met" if value <= target else "MISSED")
        if value > target:
            missed.append(name)
    print("METRIC %s %s %s\t%s%s" % (name, round(value, 3), unit, verdict, words), flush=True)


def example(name, resource):
    """The %d of the API server's "fill" is the pod's number."""
    p = pod(name + "%d", resource, namespace="fill", nodeName="n%d")
    p["metadata"].update(uid=name + "-%d", creationTimestamp="2026-01-01T00:00:00Z",
                         resourceVersion="%d", managedFields=[{"manager": ""}])
    p["status"] = {"phase": "Running"}
    p["metadata"]["managedFields"][0]["manager"] = "x" * (POD_BYTES - len(str(p)))
    return p


def kib(c, what):
    with open("/proc/%d/status" % c.process.pid) as f:
        return int(next(line for line in f if line.startswith(what)).split()[1])


def cpu_s(c):
    with open("/proc/%d/schedstat" % c.process.pid) as f:
        return int(f.read().split()[0]) / 1e9


def quiet(c):
    """It has done what there was to do."""
    before = -1
    while cpu_s(c) - before > 0.002:
        before = cpu_s(c)
        time.sleep(1)


def main():
    world = World()
    try:
        share = PODS // 10
        world.admin(op="fill", n=PODS - share, name="plain", object=example("plain", None))
        world.admin(op="fill", n=share, name="share",
                    object=example("share", "gpushare/share-gpu"))
        c = world.start(shadow={"quiet": "1h"})
        ready(c)
        until("it leads", lambda: c.metric("gpushare_controller_leader") == 1)
        quiet(c)
        pages = sum(r["what"].startswith("GET /api/v1/pods?") for r in world.log())
        metric("controller_list_peak_kib", kib(c, "VmHWM"), "KiB", LIST_KIB,
               "the most that it had in memory while it read a list of %d pods in %d requests"
               % (PODS, pages))
        metric("controller_list_s", cpu_s(c), "s", None, "of a processor, from its start on")

        begin = cpu_s(c)
        for i in range(EVENTS):
            p = example("plain", None)
            name = "plain%d" % i
            p["metadata"].update(name=name, uid="plain-%d" % i)
            p["status"]["message"] = "changed"
            world.admin(op="put", pod=p)
        quiet(c)
        metric("controller_event_us", (cpu_s(c) - begin) / EVENTS * 1e6, "us", None,
               "of a processor for each of %d changes of pods that are none of its own" % EVENTS)

        begin, asked, start = cpu_s(c), len(world.log()), time.monotonic()
        time.sleep(IDLE)
        took = time.monotonic() - start
        metric("controller_idle_requests", (len(world.log()) - asked) / took, "1/s", None,
               "to the API server while nothing happens, in %d s" % took)
        metric("controller_idle_permille", (cpu_s(c) - begin) / took * 1000, "permille", None,
               "of a processor meanwhile")
        metric("controller_rss_kib", kib(c, "VmRSS"), "KiB", None, "in memory then")
        c.stop()
    finally:
        world.close()
    if missed:
        print("missed: " + " ".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
