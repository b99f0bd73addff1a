#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the agent and the card say of a return, in milliseconds from the touch.

timeline.py SINCE LOG: what is older than SINCE, in seconds of the wall clock, is left out; LOG is
fakegpu's. Exit status 1 if the held call was served before the borrower's memory was free, or not
exactly once.

The agent acts first and writes when it has time, on a busy node a tenth of a second later. So the
touch is found by what the module measured, and not by the times of those lines.
"""
import datetime
import json
import subprocess
import sys
import time

since = float(sys.argv[1])
# The driver's clock is CLOCK_BOOTTIME, the agent's lines have the wall clock.
offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def agent():
    """(time of the line, entry) of each."""
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
        if at >= since:
            yield at, entry


def card():
    """(time, record) of each call that reached the driver."""
    with open(sys.argv[2], encoding="ascii") as log:
        for line in log:
            fields = dict(f.split("=", 1) for f in line.split() if "=" in f)
            yield int(fields["ns"]) / 1e9 + offset, fields


def name(record):
    return record["name"] if record["kind"] == "ioctl" else record["kind"]


said, calls = list(agent()), list(card())
heard = next((at for at, e in said if e.get("to") == "returning"), since)
after = next((int(e["after_ms"]) / 1000 for _, e in said if e["msg"] == "released"), 0)
# The borrower only leaves: the first who comes in is the user, whose call was let go just before.
served, user = next(((at, r["tgid"]) for at, r in calls if r["kind"] in ("open", "ioctl")),
                    (since, None))
# It was no later than the first end of the borrower's, which it brought about.
touch = min([heard, served - after] + [at for at, _ in calls])

events = [(touch, "kernel", "the touch is held")]
for at, e in said:
    if e["msg"] == "released":
        events.append((touch + after, "kernel", "the touch goes on"))
    elif e["msg"] == "a borrower is ended":
        events.append((at, "agent", f"{e['container']} was killed"))
    elif e["msg"] == "a borrower is gone":
        events.append((at, "agent", f"{e['container']} is gone"))
for at, r in calls:
    who = "the user" if r["tgid"] == user else "the borrower"
    events.append((at, "card", f"{name(r)} by {who} ({r['comm']}, pid {r['tgid']}), "
                               f"{int(r['mem']) >> 20} MiB in use"))
for at, who, text in sorted(events, key=lambda event: round(event[0], 6)):
    if touch <= at < served + 1:
        print(f"   {(at - touch) * 1000:8.1f} ms  {who:6} {text}")
echoes = [r for _, r in calls if name(r) == "WORK_ECHO"]
sys.exit(0 if len(echoes) == 1 and int(echoes[0]["mem"]) >> 20 == 0 else 1)
