#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent's socket whose answers stand in files, for tests of those who ask.

usage: fakeagent.py SOCKET FOLDER

Answers the op X with the bytes of FOLDER/X, not at all where FOLDER/X.hang exists, and with a
refusal where there is no such file. Each request is appended to FOLDER/requests, one a line.
"""

import json
import os
import socket
import sys

PACKET_MAX = 65536


def answer(folder, op):
    """The bytes to send; None: none."""
    if os.path.exists(os.path.join(folder, op + ".hang")):
        return None
    try:
        with open(os.path.join(folder, op), "rb") as file:
            return file.read().strip()
    except FileNotFoundError:
        return json.dumps({"v": 1, "ok": False, "error": f"unknown op {op}"}).encode()


def main():
    path, folder = sys.argv[1:]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    waiting = []  # connections without an answer stay open
    # Under its name only when it answers: the test waits for that.
    server.bind(path + ".new")
    os.chmod(path + ".new", 0o600)
    server.listen()
    os.rename(path + ".new", path)
    while True:
        connection, _ = server.accept()
        packet = connection.recv(PACKET_MAX)
        if not packet:
            connection.close()
            continue
        with open(os.path.join(folder, "requests"), "ab") as log:
            log.write(packet + b"\n")
        # Names of ops are words: no path is made of anything else.
        op = json.loads(packet)["op"]
        reply = answer(folder, op) if op.isalpha() else b"{}"
        if reply is None:
            waiting.append(connection)
            continue
        connection.send(reply)
        connection.close()


if __name__ == "__main__":
    main()
