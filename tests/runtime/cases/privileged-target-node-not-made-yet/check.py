def check(t):
    t.fenced({195, 234, 237, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, set())
