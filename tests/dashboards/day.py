# SPDX-License-Identifier: Apache-2.0
"""A sample day of two nodes with stand-in cards, as a Prometheus would have scraped it.

What it shows is made up: eight cards' users, who work, pause and go home, and jobs that borrow
what they leave. How the numbers are called, and what their labels are, is the agent's and the
controller's (docs/metrics.md, which check.py compares). Always the same for the same end.
"""

import random

STEP = 60  # seconds from scrape to scrape
DAY = 86400
GIB = 1 << 30
MEMORY = 80 * GIB
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# By who uses a card: its load, from the least on, and its memory.
LOADS = {"developer": (0.3, 0.1), "service": (0.47, 0.16), "training": (0.9, 0.09),
         "borrower": (0.8, 0.19)}
USES = {"developer": 14 * GIB, "service": 22 * GIB, "training": 61 * GIB, "borrower": 31 * GIB}
STATES = ("unknown", "active", "idle", "lending", "lent", "returning", "quarantine", "free")


class Series:
    """All samples of the day, family by family, as create-blocks-from openmetrics reads them."""

    def __init__(self):
        self.types = {}
        self.lines = {}

    def add(self, kind, name, when, value, suffix="", **labels):
        assert self.types.setdefault(name, kind) == kind
        text = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
        self.lines.setdefault(name, []).append(f"{name}{suffix}{{{text}}} {value:g} {when}\n")

    def write(self, out):
        for name, kind in self.types.items():
            # OpenMetrics names a counter's family without its ending.
            family = name[: -len("_total")] if kind == "counter" else name
            out.write(f"# TYPE {family} {kind}\n")
            out.writelines(self.lines[name])
        out.write("# EOF\n")


class Histogram:
    def __init__(self):
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def observe(self, value):
        self.counts[sum(value > bound for bound in BOUNDS)] += 1
        self.sum += value

    def add(self, series, name, when, **labels):
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self.counts):
            total += count
            series.add("histogram", name, when, total, "_bucket", le=bound, **labels)
        series.add("histogram", name, when, self.sum, "_sum", **labels)
        series.add("histogram", name, when, total, "_count", **labels)


def works(kind, hour, rng):
    """Whether a user of that kind touches the card in this minute."""
    if kind == "developer":  # by day, with meetings and a lunch
        return 8.5 < hour < 18.5 and not 12 < hour < 13 and rng.random() > 0.03
    if kind == "service":  # requests come and go with the day
        return rng.random() < 0.04 + 0.5 * max(0, 1 - abs(hour - 14) / 8)
    return True  # a training run does not stop


class Card:
    """One card, its user, and who borrows it."""

    def __init__(self, node, number, kind, rng):
        self.uuid = f"GPU-{node}{number}"
        self.kind, self.rng = kind, rng
        self.user = f"team-{'ab'[number % 2]}/{kind}-{number}/main"
        self.state, self.quiet, self.pause, self.booting = "active", 0, 0, 0

    def step(self, node, hour):
        rng = self.rng
        if self.kind is None:
            self.state = "free"
            return
        if self.pause:
            self.pause -= 1
        elif self.kind == "developer" and rng.random() < 0.012:
            self.pause = rng.randrange(5, 45)
        busy = works(self.kind, hour, rng) and not self.pause
        if busy:
            if self.state == "lent":
                node.back(rng)
            self.state, self.quiet = "active", 0
            return
        self.quiet += 1
        if self.quiet == 1:
            self.state = "idle"
        elif self.quiet >= 2 and self.state == "idle":
            self.state, self.booting = "lent", 1
            node.lends += 1
            node.mappings += rng.randrange(4, 9)
            node.faults += rng.randrange(1, 4)
        elif self.state == "lent" and self.booting:
            self.booting -= 1

    def borrowed(self):
        return self.state == "lent" and not self.booting

    def load(self):
        if self.state != "active" and not self.borrowed():
            return 0.0
        least, span = LOADS[self.kind if self.state == "active" else "borrower"]
        return least + span * self.rng.random()

    def memory(self):
        """By role: bytes of this card."""
        used = {}
        if self.kind:
            used["source"] = USES[self.kind]
        if self.borrowed():
            used["borrower"] = USES["borrower"]
        return used


class Node:
    def __init__(self, name, kinds, rng):
        self.name, self.rng = name, rng
        self.cards = [Card(name[-1], i, kind, rng) for i, kind in enumerate(kinds)]
        self.lends = self.returns = self.evictions = 0
        self.mappings = self.faults = self.samples = self.unheld = 0
        self.views = self.updates = self.granted = self.evicted = 0
        self.hold, self.end, self.reaction = Histogram(), Histogram(), Histogram()

    def back(self, rng):
        """A user comes back to a lent card."""
        end = rng.lognormvariate(-1.5, 0.45)
        self.returns += 1
        self.evictions += 1
        self.granted += 1
        self.end.observe(end)
        self.hold.observe(end + rng.uniform(0.02, 0.09))
        self.reaction.observe(rng.lognormvariate(-6.4, 0.4))

    def step(self, series, when, second):
        hour = second / 3600
        for card in self.cards:
            card.step(self, hour)
        states = [card.state for card in self.cards]
        self.samples += states.count("idle")
        self.views += 1
        self.updates += second % 120 == 0

        def add(kind, name, value, **labels):
            series.add(kind, "gpushare_" + name, when, value, instance=self.name,
                       job="gpushare", **labels)

        series.add("gauge", "up", when, 1, instance=self.name, job="gpushare")
        for name in ("kernel_module_loaded", "kubelet_up", "kubernetes_api_up"):
            add("gauge", name, 1)
        for state in STATES:
            add("gauge", "cards", states.count(state), state=state)
        for card in self.cards:
            which = {"card": card.uuid, "vendor": "fakegpu"}
            add("gauge", "card_busy_ratio", card.load(), **which)
            add("gauge", "card_memory_bytes", MEMORY, **which)
            used = card.memory()
            add("gauge", "card_memory_used_bytes", sum(used.values()), **which)
            add("gauge", "card_strangers", 0, card=card.uuid)
            for role, value in used.items():
                who = card.user if role == "source" else f"spot/job-{card.uuid[-1]}/job"
                add("gauge", "pod_card_memory_bytes", value, container=who, card=card.uuid,
                    role=role)
            if card.kind:
                add("gauge", "holding_held_callers", 0, holding=card.user)
        lent = sum(card.borrowed() for card in self.cards)
        add("gauge", "borrowers", lent)
        spots = states.count("lent") + states.count("free")
        for resource, good, bad in (("spot-gpu", spots, len(states) - spots), ("share-gpu", 4, 0)):
            add("gauge", "device_plugin_devices", good, resource="gpushare/" + resource,
                health="healthy")
            add("gauge", "device_plugin_devices", bad, resource="gpushare/" + resource,
                health="unhealthy")
            add("counter", "device_plugin_registrations_total", 1,
                resource="gpushare/" + resource, outcome="ok")
        add("counter", "device_plugin_allocations_total", self.granted + 2,
            resource="gpushare/spot-gpu", outcome="granted")
        add("counter", "lends_total", self.lends)
        add("counter", "returns_total", self.returns, cause="touch")
        add("counter", "evictions_total", self.evictions, outcome="gone")
        add("counter", "mappings_total", self.mappings)
        add("counter", "faults_total", self.faults)
        add("counter", "samples_total", self.samples)
        add("counter", "sampled_touches_total", self.samples // 300)
        for name in ("quarantines", "unknowns", "stolen_files", "metrics_dropped"):
            add("counter", name + "_total", 0)
        add("counter", "view_updates_total", self.views, outcome="ok")
        add("counter", "oversale_updates_total", self.updates, outcome="ok")
        others = 9 + 22 * max(0, 1 - abs(hour - 14) / 7) + self.rng.random()
        sale = max(0, 56 - 1.2 * others)
        sold = 20 + lent * 6
        jobs = min(sale, sold * 0.8)
        # Memory that others want back: the cheapest job goes.
        self.evicted += sold > sale and second % 3600 == 0
        add("counter", "oversale_evictions_total", self.evicted, resource="memory")
        for what, value in (("sale", sale), ("sold", sold), ("jobs", jobs), ("others", others)):
            add("gauge", "oversale_cpu_cores", value, what=what)
            add("gauge", "oversale_memory_bytes", value * 5 * GIB, what=what)
        for name, what in (("hold_seconds", self.hold), ("eviction_seconds", self.end),
                           ("reaction_seconds", self.reaction)):
            what.add(series, "gpushare_" + name, when, instance=self.name, job="gpushare")


class Controller:
    """Two replicas, of which one leads."""

    def __init__(self, rng):
        self.rng = rng
        self.allowed = self.changed = self.refused = self.made = self.deleted = 0
        self.shadows = 2

    def step(self, series, when, second):
        rng, hour = self.rng, second / 3600
        self.allowed += rng.random() < 0.3
        self.changed += rng.random() < 0.05
        self.refused += rng.random() < 0.002
        want = 2 + int(2.9 * max(0, 1 - abs(hour - 14) / 7))
        if second % 600 == 0 and want != self.shadows:
            self.made += max(0, want - self.shadows)
            self.deleted += max(0, self.shadows - want)
            self.shadows = want
        for name, leads in (("controller-0", 1), ("controller-1", 0)):
            def add(kind, metric, value, **labels):
                series.add(kind, "gpushare_controller_" + metric, when, value, instance=name,
                           job="gpushare-controller", **labels)

            series.add("gauge", "up", when, 1, instance=name, job="gpushare-controller")
            add("gauge", "leader", leads)
            add("gauge", "certificate_end_seconds", when + 90 * DAY - second)
            add("counter", "events_dropped_total", 0)
            for answer in ("allowed", "changed", "refused"):
                add("counter", "reviews_total", getattr(self, answer) // 2, answer=answer)
            if leads:
                pending = second % 600 < 60 and self.shadows < want
                add("gauge", "shadow_pods", self.shadows, state="placed")
                add("gauge", "shadow_pods", pending, state="pending")
                add("gauge", "share_pods_waiting", pending)
                for what in ("made", "deleted"):
                    add("counter", "shadows_total", getattr(self, what), what=what)


def day(end):
    """The samples of the day that ends at END, in Unix time."""
    rng = random.Random(1)
    parts = [
        Node("node-a", ("developer", "developer", "service", "training"), rng),
        Node("node-b", ("service", "service", "developer", None), rng),
        Controller(rng),
    ]
    series = Series()
    for second in range(0, DAY + 1, STEP):
        for part in parts:
            part.step(series, end - DAY + second, second)
    return series
