def check(t):
    t.need(t.may("b", 7, 0) == set(), "b 7:0 was opened")
    t.need(t.may("c", 10, 200) == set(), "c 10:200 was opened")
    t.need(t.may("c", 10, 229) == set("rwm"), "c 10:229 was closed")
    t.need(t.may("b", 8, 0) == set("rwm"), "b 8:0 was closed")
