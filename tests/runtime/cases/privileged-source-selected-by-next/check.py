def check(t):
    t.need("/dev/nvidia0" not in t.devices(t.new_spec) and "/dev/nvidia1" not in
           t.devices(t.new_spec), t.devices(t.new_spec))
    t.need(t.may("c", 195, 1) == set(), "a card is open")
    t.need("NVIDIA_VISIBLE_DEVICES=GPU-11111111-2222-3333-4444-555555555555" in
           t.new_spec["process"]["env"], t.new_spec["process"]["env"])
