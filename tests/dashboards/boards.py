# SPDX-License-Identifier: Apache-2.0
"""The dashboards of packaging/grafana, and a real Prometheus with the sample day to ask."""

import contextlib
import json
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import day

TOP = pathlib.Path(__file__).resolve().parents[2]
# The sample day ends at midnight, a day that Prometheus keeps for the time of a test.
END = int(time.time()) // day.DAY * day.DAY
INSTANCE = "node-a"


def boards():
    """Name and content of each dashboard."""
    for path in sorted((TOP / "packaging/grafana").glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def expression(target):
    return target["expr"].replace("$instance", INSTANCE)


class Prometheus:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/"

    def ask(self, what, **query):
        url = f"{self.url}api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]["result"]

    def range(self, query, step):
        """Every series of the day: (labels, [(time, value)])."""
        found = self.ask("query_range", query=query, start=END - day.DAY, end=END, step=step)
        return [(one["metric"], [(t, float(v)) for t, v in one["values"]]) for one in found]

    def instant(self, query, when):
        return [(one["metric"], float(one["value"][1]))
                for one in self.ask("query", query=query, time=when)]


@contextlib.contextmanager
def prometheus(sample):
    """One that has the day of day.day(END); it ends with the block."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        with open(f"{folder}/day", "w", encoding="utf-8") as out:
            sample.write(out)
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q",
                        f"{folder}/day", f"{folder}/data"], check=True)
        pathlib.Path(folder, "none.yml").write_text("", encoding="utf-8")
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            server = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/none.yml",
                 f"--storage.tsdb.path={folder}/data", "--storage.tsdb.retention.time=10y",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            it = Prometheus(port)
            for _ in range(600):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(it.url + "-/ready", timeout=5).close()
                    break
                assert server.poll() is None, pathlib.Path(folder, "log").read_text()
                time.sleep(0.1)
            yield it
        finally:
            server.kill()
            server.wait()
