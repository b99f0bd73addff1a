# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the agent at the end of its socket: says what a test wants it to say."""
import json
import os
import socket
import threading

import fakenode

SOCKET = fakenode.RUN + "/agent.sock"
OK = b'{"v":1,"ok":true}'


class Agent:
    """with Agent(answer) as agent: answers every request with these bytes (None: never, "": hangs
    up; a function: what it makes of the request), and keeps what it was asked in agent.asked."""

    def __init__(self, answer=OK, mode=0o600, owner=0):
        self.answer, self.mode, self.owner, self.asked = answer, mode, owner, []

    def __enter__(self):
        os.makedirs(fakenode.RUN, mode=0o700, exist_ok=True)
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fakenode.forget(SOCKET)
        self.server.bind(SOCKET)
        os.chmod(SOCKET, self.mode)
        os.chown(SOCKET, self.owner, self.owner)
        self.server.listen(8)
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            self.open.append(peer)
            text = peer.recv(1 << 20)
            if not text:
                continue
            self.asked.append(json.loads(text))
            answer = self.answer(self.asked[-1]) if callable(self.answer) else self.answer
            if answer == b"":
                peer.close()
            elif answer is not None:
                peer.send(answer)

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for peer in self.open:
            peer.close()
        fakenode.forget(SOCKET)
