def check(t):
    t.need("/dev/gcu0" not in t.devices(t.new_spec), t.devices(t.new_spec))
    t.fenced({195, 237, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, host=set())
