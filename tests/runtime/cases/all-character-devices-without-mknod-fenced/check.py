def check(t):
    t.fenced({195, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, host=set())
