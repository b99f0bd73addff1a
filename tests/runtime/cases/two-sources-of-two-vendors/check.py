def check(t):
    t.need(t.devices(t.new_spec) == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm",
                                     "/dev/kfd", "/dev/dri/renderD128"], t.devices(t.new_spec))
    t.need(sorted(t.new_spec["process"]["env"][-2:]) == ["AMD_VISIBLE_DEVICES=0",
           "NVIDIA_VISIBLE_DEVICES=GPU-11111111-2222-3333-4444-555555555555"],
           t.new_spec["process"]["env"])
    t.need(t.may("c", 226, 128) == set("rwm") == t.may("c", 195, 0), "a card is closed")
