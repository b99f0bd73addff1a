# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What outlives a reboot and what does not, after a clean one and after one as if the power failed.
# seconds: 600
source /vm/suite/lib.sh
pod=team/dev
id=/proc/sys/kernel/random/boot_id

# A script's own files and the node's disk stay, processes and /run don't.
# shellcheck disable=SC2154 # of the runner
if ((boot > 0)); then
	is "boot $boot: it is another boot" "$(cmp -s $id /var/tmp/boot_id || echo another)" another
	is "boot $boot: the disk is that of before" "$(cat /var/tmp/stays)" "$((boot - 1))"
	is "boot $boot: no container runs" "$(cri ps -q)" ""
	check "boot $boot: gpusharectl knows of none" \
		grep -q "no container of this node" <<<"$(gpusharectl containers 2>&1)"
	# What the kubelet would take away before it makes the pod anew.
	node_clean
fi
is "boot $boot: no unit has failed" "$(systemctl is-system-running)" running
check "boot $boot: a pod starts" pod_run $pod
check "boot $boot: ... and its container, with a card" \
	container_run $pod main --device /dev/fakegpu0
check "boot $boot: ... which uses it" container_exec $pod main fgpu ping /dev/fakegpu0

cat $id >/var/tmp/boot_id
echo "$boot" >/var/tmp/stays
case $boot in
0) node_reboot ;;
1) node_reboot hard ;;
esac
rm /var/tmp/boot_id /var/tmp/stays
plan
