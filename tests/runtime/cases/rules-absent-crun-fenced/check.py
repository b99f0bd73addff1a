def check(t):
    rules = [r for r in t.new_spec["linux"]["resources"]["devices"] if r["allow"]]
    numbers = {(r.get("major"), r.get("minor")) for r in rules if r.get("type") == "c"}
    t.need({n for n in numbers if n[0] in (195, 511)} == {(195, 0), (195, 255), (511, 0)}, numbers)
    t.need(len(numbers) == 512 - 2 + 3, "every other major stays open: %d" % len(numbers))
