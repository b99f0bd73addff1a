def check(t):
    added = t.rules(t.new_spec)[len(t.rules(t.old_spec)):]
    t.need(len(added) == len(t.devices(t.new_spec)) == 3, added)
    for rule in added:
        t.need(sorted(rule) == ["access", "allow", "major", "minor", "type"], rule)
        t.need(rule["major"] >= 0 and rule["minor"] >= 0, rule)
