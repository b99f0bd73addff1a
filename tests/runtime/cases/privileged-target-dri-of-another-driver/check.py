def check(t):
    t.need("/dev/dri/card0" in t.devices(t.new_spec), "the display is gone")
    t.need("/dev/dri/card1" not in t.devices(t.new_spec), "the neighbour's card is there")
    t.fenced({195, 226, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"},
             host={(226, 0)})
    t.need(t.may("c", 226, 0) == set("rwm"), "the display is closed")
