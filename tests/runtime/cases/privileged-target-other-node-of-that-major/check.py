def check(t):
    t.need("/dev/mixed" in t.devices(t.new_spec), t.devices(t.new_spec))
    t.fenced({195, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, host={(195, 77)})
    t.need(t.may("c", 195, 77) == set("rwm"), "195:77 is closed")
