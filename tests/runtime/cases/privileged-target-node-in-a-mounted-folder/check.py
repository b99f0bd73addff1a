def check(t):
    t.need(t.devices(t.new_spec) == ["/dev/null", "/dev/zero", "/dev/fuse", "/dev/nvidia0",
                                     "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/loop0"],
           t.devices(t.new_spec))
    t.fenced({195, 509, 511}, {(195, 0): "rwm", (195, 255): "rwm", (511, 0): "rwm"}, host=set())
    t.need(t.may("c", 195, 1) == set(), "the neighbour's card is open")
    t.need(t.new_spec["process"]["env"][-1].startswith("NVIDIA_VISIBLE_DEVICES=GPU-1"),
           t.new_spec["process"]["env"])
