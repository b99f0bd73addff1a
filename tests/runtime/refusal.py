# SPDX-License-Identifier: Apache-2.0
"""What must be true of every create that gpushare-runtime refuses."""
import json
import os
import re

import fakenode
from tap import need

RUNC_RECORD = re.compile(rb'\{"level":"error","msg":("(?:[^"\\]|\\.)*"),'
                         rb'"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"\}\n')
RUNC_TEXT = re.compile(rb'time="(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)" level=error '
                       rb'msg=("(?:[^"\\]|\\.)*")\n')


class State:
    """What is on the node's disk that a create of the container may touch."""

    def __init__(self, node, name="target"):
        bundle = node.bundle(name)
        path = bundle + "/config.json"
        self.text = self.place = self.mode = None
        if os.path.isfile(path):
            st = os.stat(path)
            self.text = fakenode.read(path)
            self.place = (st.st_ino, st.st_mtime_ns)
            self.mode = (st.st_mode, st.st_uid, st.st_gid)
        self.everything, self.temporary = set(), []
        for top in (bundle, fakenode.RUN, fakenode.LIB):
            for folder, _, files in os.walk(top):
                for file in files:
                    full = os.path.join(folder, file)
                    st = os.lstat(full)
                    self.everything.add((full, st.st_ino, st.st_mtime_ns, st.st_size))
                    if ".gpushare-" in file or file.startswith("."):
                        self.temporary.append(full)


def fits(pattern, text):
    """Is the text the pattern, in which @ANY@ stands for what differs from run to run?"""
    return re.fullmatch(".*".join(re.escape(p) for p in pattern.split("@ANY@")), text)


def check(node, result, message, before, log=None, text_format=False, name="target"):
    """The message (a pattern) is on one line of stderr and, if a log file is named, in it in runc's
    form; status 1; nothing changed, nothing started, nothing left behind. Gives the message."""
    after = State(node, name)
    need(result.status == 1, "status", result.status, "and not 1; stderr:", result.err)
    need(not result.calls, "the next runtime was started")
    need(result.out == b"", "something on stdout:", result.out)
    text = result.err.decode()
    said = re.fullmatch(r"gpushare-runtime: ([^\n]*)\n", text)
    need(said, "stderr is not one line:", text)
    said = said.group(1)
    need(fits(message, said), "the message is\n  %s\nand not\n  %s" % (said, message))
    need(not re.search(r"[\x00-\x1f\x7f]", said), "control characters in the message")
    need(after.text == before.text and after.place == before.place, "config.json changed")
    need(not after.temporary, "a temporary file is left:", after.temporary)
    if before.text is not None and node.record(name):
        need(name in [os.path.basename(p[0]).split(".")[0] for p in before.everything],
             "a record was left behind")
    if log:
        content = fakenode.read(log) if os.path.exists(log) else b"no file"
        record = (RUNC_TEXT if text_format else RUNC_RECORD).fullmatch(content)
        need(record, "runc's log file is not one error in runc's form:", content)
        logged = record.group(2 if text_format else 1)
        need(json.loads(logged) == "gpushare: " + said, "log file and stderr differ:", logged)
    return said
