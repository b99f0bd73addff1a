#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the agent and the card say of a return, in milliseconds from the touch.

timeline.py SINCE LOG: what is older than SINCE, in seconds of the wall clock, is left out; LOG is
fakegpu's. Exit status 1 if the held call was served before the borrower's memory was free, or not
exactly once.
"""
import datetime
import json
import subprocess
import sys
import time

since = float(sys.argv[1])
# The driver's clock is CLOCK_MONOTONIC, the agent's lines have the wall clock.
offset = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
# When the returns began that the agent tells the end of.
released = {}


def agent():
    text = subprocess.run(
        ["journalctl", "-u", "gpushared", "-o", "cat", "--no-pager"],
        stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        whole, _, fraction = entry["time"].rstrip("Z").partition(".")
        at = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(
            tzinfo=datetime.timezone.utc).timestamp() + float("0." + (fraction or "0"))
        if at < since:
            continue
        skip = ("time", "level", "program", "pid", "msg")
        rest = " ".join(f"{k}={v}" for k, v in entry.items() if k not in skip)
        if entry["msg"] == "released":
            released[at - int(entry["after_ms"]) / 1000] = True
        yield at, "agent", f"{entry['msg']} {rest}"


def card():
    with open(sys.argv[2], encoding="ascii") as log:
        for line in log:
            fields = dict(f.split("=", 1) for f in line.split() if "=" in f)
            at = int(fields["ns"]) / 1e9 + offset
            what = fields["name"] if fields["kind"] == "ioctl" else fields["kind"]
            yield at, "card", (f"{what} by {fields['comm']}, {int(fields['mem']) >> 20} MiB in use"
                               if "mem" in fields else what)


events = sorted(list(agent()) + list(card()))
touch = min(released, default=since)
print(f"   {0:8.1f} ms  kernel the touch is held")
for at, who, text in events:
    if touch <= at < touch + 1:
        print(f"   {(at - touch) * 1000:8.1f} ms  {who:6} {text}")
served = [text for _, who, text in events if who == "card" and text.startswith("WORK_ECHO")]
sys.exit(0 if len(served) == 1 and ", 0 MiB" in served[0] else 1)
