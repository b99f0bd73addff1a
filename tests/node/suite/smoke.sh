# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The node itself: systemd, cgroups, modules, and containers of every kind that use a card.
# runs: short
# seconds: 240
source /vm/suite/lib.sh
pod=team/dev

is "the kernel is the pinned one" "$(uname -r)" "$(</vm/release)"
is "systemd is up and no unit has failed" "$(systemctl is-system-running)" running
is "cgroups are version 2" "$(node_cgroups)" v2
for module in fakegpu gpushare; do
	check "$module is loaded" test -d /sys/module/$module
done
check "gpusharectl speaks to the module" gpusharectl kmod status

check "a pod starts" pod_run $pod --privileged \
	--annotation gpushare.k8s.io/container-devices-from.dind=_/_/main
check "its main container starts, with a card" container_run $pod main --device /dev/fakegpu0
check "... and uses it" container_exec $pod main fgpu ping /dev/fakegpu0
check "the container beside it starts, privileged" container_run $pod dind "${DIND_OPTIONS[@]}"
check "... and uses the card" container_exec $pod dind fgpu ping /dev/fakegpu0
check "... not the other one" refused container_exec $pod dind fgpu try open /dev/fakegpu1
check "systemd has a unit for each" \
	grep -q "/kubepods.slice/kubepods-besteffort.slice/.*/cri-containerd-.*\.scope$" \
	"/proc/$(container_pid $pod main)/cgroup"

check "a container inside it starts" dind_run container_exec $pod dind -- inner /dev/fakegpu0
check "... and uses the card" dind_exec container_exec $pod dind -- inner fgpu ping /dev/fakegpu0
inside=$(pgrep -f '^/bin/busybox sleep 1000000$')
is "... in a PID namespace of its own" \
	"$(readlink "/proc/$inside/ns/pid" "/proc/$(container_pid $pod dind)/ns/pid" | sort -u | wc -l)" 2

list=$(gpusharectl containers)
check "gpusharectl lists who has the card" grep -q "$pod/main" <<<"$list"
check "... and who got it" grep -q "$pod/dind" <<<"$list"
check "daemon-reload takes no card away" systemctl daemon-reload
for name in main dind; do
	check "... of $name" container_exec $pod $name fgpu ping /dev/fakegpu0
done
check "... of the one inside" dind_exec container_exec $pod dind -- inner fgpu ping /dev/fakegpu0
check "the container inside ends" dind_remove container_exec $pod dind -- inner
check "the pod ends" pod_remove $pod

check "ctr starts a container, with a card" ctr_run c1 --device /dev/fakegpu0
check "... which uses it" ctr_exec c1 fgpu ping /dev/fakegpu0
check "podman and crun start one, with a card" podman_run p1 --device /dev/fakegpu1
check "... which uses it" podman_exec p1 fgpu ping /dev/fakegpu1
check "... and not the other" refused podman_exec p1 fgpu try open /dev/fakegpu0

plan
