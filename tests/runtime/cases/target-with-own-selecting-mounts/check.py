def check(t):
    env = t.new_spec["process"]["env"]
    t.need("NVIDIA_VISIBLE_DEVICES=GPU-1" in env, env)
    mounts = [m["destination"] for m in t.new_spec["mounts"]]
    t.need("/var/run/nvidia-container-devices/GPU-neighbour" not in mounts, mounts)
