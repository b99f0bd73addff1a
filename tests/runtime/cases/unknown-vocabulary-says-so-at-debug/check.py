def check(t):
    t.need(t.new == t.old, "config.json changed")
    with open("/run/golden/tmp/log", encoding="utf-8") as f:
        log = f.read()
    t.need("no identity in the vocabulary" in log, "the log says", log)
    t.need(t.node.record("target") is None, "the registry has a record")
