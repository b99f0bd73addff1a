# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# What outlives a reboot and what does not, after a clean one and after one as if the power failed:
# each comes while a spot container has a card. Its grant stays, and lets it start again as soon as
# the card is lent again; the lease, and all that was lent, is of the boot before.
# seconds: 900
source /vm/suite/lib.sh
source /vm/suite/agent.inc
pod=team/dev
id=/proc/sys/kernel/random/boot_id
kept=/var/tmp/gpushare-test

spot_run() { # GRANT
	cri_spot "$1" /bin/fgpu alloc /dev/fakegpu0 512M , hold /dev/fakegpu0
}

# granted STATE BOUND: is the grant in that state?
granted() {
	gpusharectl grant --list | grep -E "^${grant:0:6}[^ ]* +spot +$1 +$2 "
}

# A script's own files and the node's disk stay, processes and /run don't.
# shellcheck disable=SC2154 # of the runner
if ((boot > 0)); then
	is "boot $boot: it is another boot" "$(cmp -s $id $kept/boot_id || echo another)" another
	is "boot $boot: the disk is that of before" "$(cat $kept/stays)" "$((boot - 1))"
	is "boot $boot: no container runs" "$(cri ps -q)" ""
	check "boot $boot: gpusharectl knows of none" \
		grep -q "no container of this node" <<<"$(gpusharectl containers 2>&1)"
	check "boot $boot: the agent is up" wait_for $long gpusharectl status
	is "boot $boot: nothing is lent" "$(ls /run/gpushare/lent 2>/dev/null)" ""
	check "boot $boot: ... nor borrowed" grep -q "nobody borrows" <<<"$(gpusharectl status)"
	# What the kubelet would take away before it makes the pod anew.
	node_clean
	grant=$(cat $kept/grant)
	check "boot $boot: the grant is there, and its lease is not" granted expired yes
else
	mkdir -p $kept
	check "the agent is up, and looks often" agent_config
fi
is "boot $boot: no unit has failed" "$(systemctl is-system-running)" running
# Lent only when we say so.
check "boot $boot: a pod starts" pod_run $pod --annotation gpushare.k8s.io/lend-after=2s
check "boot $boot: ... and its container, with a card" \
	container_run $pod main --device /dev/fakegpu0
check "boot $boot: ... which uses it" container_exec $pod main fgpu ping /dev/fakegpu0
if ((boot > 0)); then
	check "boot $boot: the spot container does not start: the card is not lent" \
		refused_spot "$grant"
	pod_remove spot/job
fi

check "boot $boot: the card is lent" wait_for $long gpusharectl lend "$(card 0)"
if ((boot > 0)); then
	check "boot $boot: ... and the grant's lease renewed" wait_for 30 granted active yes
else
	grant=$(gpusharectl grant --spot --card "$(card 0)")
	check "there is a grant" granted active no
fi
check "boot $boot: the spot container starts, by the grant" spot_run "$grant"
check "boot $boot: ... and has 512 MiB of the card's memory" wait_for $long uses 0 $mib512
check "boot $boot: it is in force" granted active yes

cat $id >$kept/boot_id
echo "$boot" >$kept/stays
echo "$grant" >$kept/grant
case $boot in
0) node_reboot ;;
1) node_reboot hard ;;
esac

spot=$(container_pid spot/job job)
echo 1 >/sys/kernel/debug/fakegpu/clear
check "the user is back, and his call is served" \
	container_exec $pod main fgpu echo /dev/fakegpu0 4000
check "... when the spot container's memory was free" served_clean 0 4000
check "the spot container is gone" wait_for $long eval "! kill -0 ${spot:-1}"
check "the grant is revoked, for ever" wait_for $long granted revoked yes
rm -r $kept /etc/gpushare
plan
