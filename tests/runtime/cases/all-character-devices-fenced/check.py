def check(t):
    t.fenced({195, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, host=set())
    t.need(t.may("b", 8, 0) == set(), "the host's disks were opened")
