def check(t):
    env = t.new_spec["process"]["env"]
    t.need("NVIDIA_VISIBLE_DEVICES=void" in env and "NVIDIA_VISIBLE_DEVICES=all" not in env, env)
    mounts = [m["destination"] for m in t.new_spec["mounts"]]
    t.need("/var/run/nvidia-container-devices/GPU-neighbour" not in mounts, mounts)
    t.fenced({195, 237, 511}, {(237, 0): "rwm"}, host=set())
