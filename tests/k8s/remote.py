#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl for a node that is a slow machine: it runs here.

    remote.py ADDRESS PORT KUBECTL...

Takes one call a connection: the number of arguments, the arguments, what kubectl reads, each of
them with a NUL behind it. Answers "STATUS LENGTH", a newline, LENGTH bytes of its stdout, and its
stderr. Whoever can connect is an administrator: for the network of a test alone.
"""
import socketserver
import subprocess
import sys

KUBECTL = sys.argv[3:]


class Call(socketserver.StreamRequestHandler):
    def word(self):
        word = bytearray()
        while not word.endswith(b"\0"):
            byte = self.rfile.read(1)
            if not byte:
                raise EOFError
            word += byte
        return bytes(word[:-1])

    def handle(self):
        try:
            arguments = [self.word() for _ in range(int(self.word()))]
            done = subprocess.run(KUBECTL + arguments, input=self.word(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except EOFError:
            return
        self.wfile.write(b"%d %d\n" % (done.returncode, len(done.stdout)))
        self.wfile.write(done.stdout + done.stderr)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server((sys.argv[1], int(sys.argv[2])), Call) as server:
    server.serve_forever()
