# SPDX-License-Identifier: Apache-2.0
"""Checks of device rules: what a cgroup makes of them, number by number."""

# CHRDEV_MAJOR_MAX of the kernel: no character device has a larger one.
MAJORS = 512


def access(rules, kind, major, minor):
    """The letters that a list of linux.resources.devices leaves allowed for one device."""
    have = set()
    for rule in rules:
        a_type = rule.get("type") or "a"
        if a_type != "a":
            if a_type != kind:
                continue
            if rule.get("major", -1) not in (-1, major) or rule.get("minor", -1) not in (-1, minor):
                continue
        letters = set(rule.get("access") or "rwm")
        have = have | letters if rule.get("allow") else have - letters
    return have


class Checks:
    """Mixed into golden.Check."""

    def rules(self, spec):
        return ((spec["linux"].get("resources") or {}).get("devices")) or []

    def devices(self, spec):
        return [d["path"] for d in spec["linux"].get("devices") or []]

    def may(self, kind, major, minor):
        return access(self.rules(self.new_spec), kind, major, minor)

    def fenced(self, fenced_majors, granted, host):
        """Every number of the majors named is closed, but for those granted and those of the host's
        nodes in `host`; every other character and block device is open as before."""
        old, new = self.rules(self.old_spec), self.rules(self.new_spec)
        minors = sorted({0, 1, 2, 3, 127, 254, 255, 256, 1048575}
                        | {m for _, m in granted} | {m for _, m in host})
        for major in range(MAJORS):
            for minor in minors:
                got = access(new, "c", major, minor)
                want = access(old, "c", major, minor)
                if major in fenced_majors and (major, minor) not in host:
                    want = set(granted.get((major, minor), ""))
                self.need(got == want, "c %d:%d is open for" % (major, minor), sorted(got),
                          "and not for", sorted(want))
                self.need(access(new, "b", major, minor) == access(old, "b", major, minor),
                          "b %d:%d changed" % (major, minor))
        for rule in new:
            # runc 1.1 refuses rules that leave something out
            self.need(rule.get("access"), "a rule without access:", rule)
