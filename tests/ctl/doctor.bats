#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl doctor: a good node, in a folder, has no fault; each fault that is planted in it is
# found, and nothing else; and what doctor says mends it, where that can be tried here.
# shellcheck disable=SC2154 # what setup.bash sets

load setup

teardown() {
	if [[ -s $dir/agent.pid ]]; then
		kill "$(<"$dir/agent.pid")" || true
	fi
}

# card NAME MAJOR MINOR: a device node with its link.
card() {
	mknod -m 0666 "$root/dev/$1" c "$2" "$3"
	ln -s "../$1" "$root/dev/char/$2:$3"
}

socket_at() {
	/usr/bin/python3 -c '
import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$root$1"
}

# agent MEMBERS: the node's agent, which says that of the node.
agent() {
	mkdir -p "$dir/answers"
	printf '{"v":1,"ok":true,%s}' "$1" >"$dir/answers/status"
	[[ ! -e $dir/agent.pid ]] || return 0
	/usr/bin/python3 tests/lib/fakeagent.py "$root/run/gpushare/agent.sock" "$dir/answers" \
		>"$dir/agent.log" 2>&1 3>&- &
	echo $! >"$dir/agent.pid"
	for _ in {1..100}; do
		[[ ! -S $root/run/gpushare/agent.sock ]] || return 0
		sleep 0.1
	done
	cat "$dir/agent.log"
	return 1
}

# A node on which nothing is wrong: one of containerd 1.x, with an NVIDIA card that is shared.
good_node() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent, or make device nodes"
	mknod "$dir/try" c 195 0 2>/dev/null || skip "device nodes can't be made here"
	mkdir -p "$root"/{dev/char,proc,sys/module/gpushare,sys/fs/cgroup/system.slice} \
		"$root"/usr/{sbin,libexec/gpushare,share/gpushare/vendors.d} \
		"$root"/var/lib/kubelet/{pod-resources,device-plugins}
	mkdir -p "$root/run/gpushare" "$root/var/lib/gpushare/grants"
	chmod 0700 "$root/run/gpushare" "$root/var/lib/gpushare"{,/grants}
	cp vendors/*.json "$root/usr/share/gpushare/vendors.d"
	program containerd 'containerd x 1.7.24 y'
	program runc 'runc version 1.1.5'
	cp "$root/usr/bin/runc" "$root/usr/libexec/gpushare/gpushare-hook"
	echo '6.1.0-99-amd64' | node_file /proc/sys/kernel/osrelease
	echo 1 | node_file /proc/sys/kernel/ftrace_enabled
	printf '%s\n' 'Character devices:' '  1 mem' '195 nvidia' '195 nvidiactl' '511 nvidia-uvm' \
		'' 'Block devices:' '  8 sd' | node_file /proc/devices
	: | node_file /sys/kernel/tracing/enabled_functions
	echo '[none] integrity confidentiality' | node_file /sys/kernel/security/lockdown
	cat VERSION >"$root/sys/module/gpushare/version"
	: >"$root/sys/fs/cgroup/cgroup.controllers"
	: >"$root/sys/fs/cgroup/system.slice/cgroup.kill"
	card nvidia0 195 0
	card nvidiactl 195 255
	card nvidia-uvm 511 0
	socket_at /var/lib/kubelet/pod-resources/kubelet.sock
	socket_at /var/lib/kubelet/device-plugins/kubelet.sock
	echo 'cgroupDriver: systemd' | node_file /var/lib/kubelet/config.yaml
	printf '%s\n' 'version = 2' '[plugins."io.containerd.grpc.v1.cri"]' |
		node_file /etc/containerd/config.toml
	node_setup --cgroup-driver systemd
	[ "$status" -eq 0 ]
	node_file /etc/gpushare/config.json <<-END
		{"agent": {"kubernetes":
		{"server": "https://a:1", "node": "n", "token_file": "/t"}}}
	END
	agent '"kernel": {"loaded": true, "version": "1"}, "holdings": [], "borrowers": [],
		"cards": [{"card": "nvidia-G0", "vendor": "nvidia", "id": "G0", "busy": 0}]'
}

doctor() {
	ctl doctor --root "$root" "$@"
}

# finds CHECK TEXT MEND: exactly one fault, of that check, with that text and that way to mend it
# (regular expressions).
finds() {
	local wrong
	doctor -o json
	[ "$status" -eq 1 ]
	wrong=$(json '"\n".join(f["check"] + ": " + f["text"] + " => " + (f["mend"] or "")
		for f in d["findings"] if f["state"] == "wrong")')
	[ "$(json 'd["ok"]')" = False ]
	[[ $wrong =~ ^"$1: ".*$2.*" => ".*$3 && $wrong != *$'\n'* ]] || {
		printf 'not just "%s", "%s", "%s":\n%s\n' "$1" "$2" "$3" "$wrong"
		return 1
	}
}

healthy() {
	doctor
	got 0 'nothing is wrong$' ''
	[[ $output != *WRONG* && $output != *note* ]]
}

@test "a wrong call is 2 and says where help is" {
	local call
	for call in 'doctor x' 'doctor -x' 'doctor -o yaml' 'doctor --root' 'doctor --root etc'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 2 '' '^gpusharectl: [^:]'
		[[ $said == *"Try 'gpusharectl doctor --help'"* ]]
	done
}

@test "a good node has no fault" {
	good_node
	healthy
	doctor -o json
	[ "$(json "d['ok'], len(set(f['check'] for f in d['findings']))")" = '(True, 17)' ]
}

@test "this machine, whatever it lacks, is examined to the end" {
	ctl doctor
	[[ $status == [01] ]]
	[[ $output == *' agent '* && $output =~ (nothing\ is\ wrong|things?\ (is|are)\ wrong)$ ]]
}

@test "an empty root: much is wrong, and all of it is told" {
	rm -rf "$root"
	mkdir "$root"
	doctor
	got 1 'WRONG  catalogue.*WRONG  module.*WRONG  handler.*things are wrong$' ''
}

@test "fault: configuration" {
	good_node
	echo '{"nxet": []}' | node_file /etc/gpushare/config.json
	finds config 'config.json:1:.*nxet' 'gpusharectl config check'
}

@test "fault: a vendor's file" {
	good_node
	echo '{"name": 1}' | node_file /etc/gpushare/vendors.d/mine.json
	doctor
	got 1 'WRONG  catalogue .*mine.json:1:.*refused' ''
}

@test "faults: permissions of our folders and files" {
	good_node
	chmod 0755 "$root/run/gpushare"
	finds permissions 'run/gpushare is open to others \(mode 0755\)' 'chmod 0700 .*run/gpushare'
	bash -c "$(json "[f['mend'] for f in d['findings'] if f['state'] == 'wrong'][0]")"
	healthy
	chmod 0770 "$root/var/lib/gpushare/grants"
	finds permissions 'grants is open to others' 'chmod 0700'
	chmod 0700 "$root/var/lib/gpushare/grants"
	chown 65534 "$root/var/lib/gpushare/grants"
	finds permissions "grants is not root's" 'chown root:'
	chown 0 "$root/var/lib/gpushare/grants"
	echo '{}' | node_file /etc/gpushare/config.json
	chmod 0666 "$root/etc/gpushare/config.json"
	finds permissions 'others may write to .*config.json' 'chmod go-w'
	chmod 0644 "$root/etc/gpushare/config.json"
	chmod 0777 "$root/usr/bin/gpushare-runtime"
	finds permissions 'others may write to .*gpushare-runtime' 'chmod go-w'
}

@test "fault: an old kernel" {
	good_node
	echo 4.19.0-27-amd64 >"$root/proc/sys/kernel/osrelease"
	finds kernel '4.19.0-27-amd64 is older than 5.10' 'boot a kernel'
}

@test "faults: ftrace is off, or not in the kernel" {
	good_node
	echo 0 >"$root/proc/sys/kernel/ftrace_enabled"
	finds tracing 'ftrace is switched off' 'sysctl -w kernel.ftrace_enabled=1'
	rm "$root/proc/sys/kernel/ftrace_enabled"
	finds tracing 'no ftrace' 'CONFIG_DYNAMIC_FTRACE'
}

@test "faults: the module is not loaded, or not built for this kernel" {
	good_node
	rm -r "$root/sys/module/gpushare"
	finds module 'there is none for this kernel' 'or: make install-dkms; then: dkms install'
	mkdir -p "$root/usr/src/gpushare-$(cat VERSION)"
	finds module 'there is none for this kernel' 'dkms install gpushare/.* -k 6.1.0-99-amd64'
	[[ $(json '[f["mend"] for f in d["findings"] if f["check"] == "module"][0]') == dkms* ]]
	: | node_file /lib/modules/6.1.0-99-amd64/updates/dkms/gpushare.ko
	finds module 'is not loaded: nothing' 'modprobe gpushare$'
}

@test "fault: Secure Boot, and a module without a signature" {
	local efi=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	local ko=/lib/modules/6.1.0-99-amd64/updates/dkms/gpushare.ko
	good_node
	printf '\6\0\0\0\1' | node_file $efi
	healthy
	rm -r "$root/sys/module/gpushare"
	printf 'ELF, and so on, for a while' | node_file $ko
	doctor
	got 1 'WRONG  secure-boot .*no signature.*dkms build --force.*mokutil --import' ''
	printf '~Module signature appended~\n' >>"$root$ko"
	finds module 'is not loaded' 'modprobe'
	# DKMS signed it, with a key that nobody enrolled
	doctor
	got 1 'note   secure-boot .*Key was rejected by service.*mokutil --import /var/lib/dkms' ''
	printf '\6\0\0\0\0' >"$root$efi"
	printf 'ELF, and so on, for a while' >"$root$ko"
	finds module 'is not loaded' 'modprobe'
	echo 'none [integrity] confidentiality' >"$root/sys/kernel/security/lockdown"
	doctor
	got 1 'WRONG  secure-boot' ''
}

@test "fault: no cgroups" {
	good_node
	rm -r "$root/sys/fs/cgroup"
	finds cgroup 'neither a version 2 hierarchy' 'mount -t cgroup2'
	: | node_file /sys/fs/cgroup/devices/cgroup.procs
	healthy
}

@test "faults: a driver without a card, a card without a driver" {
	good_node
	rm "$root/dev/nvidia0"
	finds cards "nvidia's driver is loaded, but no card" 'nvidia-modprobe -c 0'
	card cambricon_dev0 240 0
	doctor
	got 1 'cambricon_dev0 is there, but no driver has its number 240' ''
	rm "$root/dev/cambricon_dev0"
	mknod "$root/dev/nvidia0" c 195 0
	healthy
	sed -i '/nvidia-uvm/d' "$root/proc/devices"
	finds cards '/dev/nvidia-uvm is there, but no driver' 'dmesg'
}

@test "faults: a link in /dev/char is missing, or leads elsewhere" {
	good_node
	rm "$root/dev/char/195:0"
	finds dev-char '/dev/nvidia0 has no link /dev/char/195:0' 'create-dev-char-symlinks'
	ln -s ../nvidiactl "$root/dev/char/195:0"
	finds dev-char '/dev/char/195:0 leads to another device than /dev/nvidia0' 'nvidia-ctk'
}

@test "faults: gpushare-runtime or its hook is missing" {
	good_node
	chmod -x "$root/usr/libexec/gpushare/gpushare-hook"
	finds hook 'gpushare-hook.*not executable' 'install gpushare again'
	chmod +x "$root/usr/libexec/gpushare/gpushare-hook"
	rm "$root/usr/bin/gpushare-runtime"
	finds program 'gpushare-runtime: not there' 'make install'
}

@test "faults: no next runtime, or one that is ourselves" {
	good_node
	rm "$root/usr/bin/runc"
	finds next 'none of nvidia-container-runtime,runc,crun is installed' 'apt install runc'
	cp "$root/usr/bin/gpushare-runtime" "$root/usr/sbin/runc"
	program crun 'crun 1.8'
	finds next '/usr/sbin/runc is gpushare-runtime itself' 'Which runtime'
	ln -sf /usr/bin/gpushare-runtime "$root/usr/sbin/runc"
	finds next '/usr/sbin/runc is gpushare-runtime itself' 'Which runtime'
	program runc 'runc version 1.1.5'
	mv "$root/usr/bin/runc" "$root/usr/sbin/runc"
	healthy
}

@test "fault: containerd has no handler" {
	good_node
	node_setup --undo
	finds handler 'containerd has no handler' 'gpusharectl setup containerd'
	node_setup --cgroup-driver systemd containerd
	healthy
}

@test "faults: annotations that don't get through, another program, another cgroup driver" {
	local main=$etc/containerd/config.toml
	good_node
	cp "$main" "$dir/good"
	sed -i '/pod_annotations/d' "$main"
	finds handler 'pod_annotations lacks .* annotations never reach' 'take the handler out of'
	cp "$dir/good" "$main"
	sed -i 's/container_annotations = .*/container_annotations = ["*"]/' "$main"
	finds handler 'container_annotations lacks .* grants never reach' 'take the handler out of'
	cp "$dir/good" "$main"
	sed -i 's#BinaryName = .*#BinaryName = "/opt/none"#' "$main"
	finds handler 'its BinaryName is /opt/none' 'take the handler out of'
	cp "$dir/good" "$main"
	echo 'cgroupDriver: cgroupfs' >"$root/var/lib/kubelet/config.yaml"
	finds handler 'another cgroup driver than the kubelet' '--cgroup-driver cgroupfs'
	node_setup --cgroup-driver cgroupfs containerd
	healthy
}

@test "faults: containerd's file is broken, of version 1, without the CRI plugin, or replaced" {
	local main=$etc/containerd/config.toml
	good_node
	cp "$main" "$dir/good"
	echo 'a = [' >>"$main"
	finds handler 'config.toml: line [0-9]+.*no end' 'edit /etc/containerd/config.toml'
	sed '/^version/d' "$dir/good" >"$main"
	finds handler 'is of version 1' 'containerd config default'
	sed '1a disabled_plugins = ["cri"]' "$dir/good" >"$main"
	finds handler 'the CRI plugin is switched off' 'take it out of disabled_plugins'
	sed '1a imports = ["/etc/containerd/more.toml"]' "$dir/good" >"$main"
	printf '%s\n' 'version = 2' '[plugins."io.containerd.grpc.v1.cri"]' 'sandbox_image = "x"' |
		node_file /etc/containerd/more.toml
	finds handler 'imported /etc/containerd/more.toml replaces' 'move what is in'
}

@test "a drop-in of version 3 is seen, and one that is gone is missed" {
	good_node
	node_setup --undo
	printf 'version = 3\n' >"$etc/containerd/config.toml"
	node_setup --cgroup-driver systemd containerd
	healthy
	sed -i '/^imports/d' "$etc/containerd/config.toml"
	finds handler 'containerd has no handler' 'gpusharectl setup containerd'
}

@test "k3s: set up, restarted or not" {
	local k3s=$root/var/lib/rancher/k3s/agent/etc/containerd
	good_node
	printf '%s\n' 'version = 2' |
		node_file /var/lib/rancher/k3s/agent/etc/containerd/config.toml
	finds handler 'containerd has no handler' 'gpusharectl setup k3s'
	node_setup --cgroup-driver systemd k3s
	finds handler 'has not been restarted since' 'systemctl restart k3s'
	sed '/^{{/d' "$k3s/config.toml.tmpl" >>"$k3s/config.toml"
	healthy
}

@test "CRI-O: no handler, and a configuration with containerd's words" {
	good_node
	program crio ''
	doctor
	got 1 'WRONG  handler .*CRI-O has no handler.*WRONG  cri ' ''
	node_setup crio
	healthy
	rm "$etc/gpushare/config.json"
	finds cri 'but this node has CRI-O' 'gpusharectl setup crio'
	echo '{"cri": "none"}' | node_file /etc/gpushare/config.json
	finds cri 'any pod may say who it is' 'take "cri" out of'
}

@test "podman or docker alone, without a kubelet" {
	good_node
	node_setup --undo
	rm -r "$root/var/lib/kubelet" "$root/usr/bin/containerd" "$etc/containerd"
	finds handler 'neither docker nor podman has the runtime' 'gpusharectl setup podman'
	node_setup podman
	healthy
	program containerd 'containerd x 1.7.24 y'
	node_setup docker
	healthy
	[[ $output == *'docker: in '*'podman: in '* ]]
}

@test "fault: the kubelet's sockets" {
	good_node
	rm "$root/var/lib/kubelet/pod-resources/kubelet.sock"
	finds kubelet 'no socket .*pod-resources' 'systemctl restart kubelet'
	socket_at /var/lib/kubelet/pod-resources/kubelet.sock
	rm "$root/var/lib/kubelet/device-plugins/kubelet.sock"
	: >"$root/var/lib/kubelet/device-plugins/kubelet.sock"
	finds kubelet 'no socket .*device-plugins' 'systemctl restart kubelet'
}

@test "a note: a kubelet, and no API server for the agent" {
	good_node
	healthy
	echo '{"agent": {"lend": true}}' | node_file /etc/gpushare/config.json
	doctor
	got 0 'note   kubelet .*names no API server.*agent.kubernetes' ''
	rm "$root/etc/gpushare/config.json"
	doctor
	got 0 'note   kubelet .*names no API server' ''
	rm -r "$root/var/lib/kubelet"
	healthy
}

@test "faults: no agent, or one that knows of a fault" {
	good_node
	agent '"kernel": {"loaded": true}, "holdings": [], "borrowers": [], "cards": []'
	finds agent 'knows no card of this node' 'gpusharectl status'
	kill "$(<"$dir/agent.pid")"
	rm "$dir/agent.pid" "$root/run/gpushare/agent.sock"
	finds agent 'no agent at .*agent.sock' 'systemctl enable --now gpushared'
}

@test "notes: another version, no tracefs, no cgroup.kill: told, and no fault" {
	good_node
	echo 0.0.1 >"$root/sys/module/gpushare/version"
	rm -r "$root/sys/kernel/tracing" "$root/sys/fs/cgroup/system.slice"
	doctor
	got 0 'note   tracing .*note   module .*0\.0\.1.*note   cgroup .*nothing is wrong$' ''
}
