# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Files as Debian's packages bring them.

# debian_containerd: prints /etc/containerd/config.toml of Debian 12 and 13.
debian_containerd() {
	cat <<-'EOT'
		version = 2

		[plugins]
		  [plugins."io.containerd.grpc.v1.cri"]
		    [plugins."io.containerd.grpc.v1.cri".cni]
		      bin_dir = "/usr/lib/cni"
		      conf_dir = "/etc/cni/net.d"
		  [plugins."io.containerd.internal.v1.opt"]
		    path = "/var/lib/containerd/opt"
	EOT
}
