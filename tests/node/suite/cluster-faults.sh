# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# What is gone for a while, at each step of a lend: the kubelet, the agent, containerd, the plugin's
# socket; and the whole node. The card comes back all the same, nobody but the spot pod is hurt, and
# whoever was away finds his way in again.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 6000
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/cluster.inc

# gone WHAT, and there_again WHAT.
gone() {
	case $1 in
	kubelet | containerd) systemctl stop $1 ;;
	agent) systemctl kill --signal=KILL gpushared && systemctl stop gpushared ;;
	socket) rm /var/lib/kubelet/device-plugins/gpushare-spot.sock ;;
	esac
}

there_again() {
	case $1 in
	kubelet | containerd) systemctl start $1 ;;
	agent) systemctl start gpushared ;;
	esac
}

# unharmed NAME CONTAINER: the pod still has that container, and it runs.
unharmed() {
	[[ $(pod_container "$1") == "$2" ]] && container_is_up "$1"
}

# lend_round WHAT TOKEN
lend_round() {
	local what=$1 container user
	say="$what gone while lent"
	kubectl scale deployment job --replicas=0 >/dev/null
	check "$say: the user is away" away
	user=$(pod_container dev)
	gone $what
	sleep 2
	there_again $what
	kubectl scale deployment job --replicas=1 >/dev/null
	check "$say: a spot pod has the card after it" wait_for 240 spot_runs
	spot=$(spot_pod)
	container=$(pod_container "$spot")

	say="$what gone while borrowed"
	gone $what
	sleep 4
	there_again $what
	sleep 4
	check "$say: the spot pod goes on" wait_for $long unharmed "$spot" "$container"
	check "$say: ... with the card" spot_runs
	check "$say: which is lent" away

	say="$what gone at the return"
	gone $what
	returns "$2"
	there_again $what
	check "$say: the spot pod is deleted" wait_for 180 pod_gone "$spot"
	check "$say: the next one waits" wait_for 180 spot_waits
	check "$say: the user's pod was not touched" wait_for $long unharmed dev "$user"
	check "$say: the user goes away" goes_away
}

# shellcheck disable=SC2154 # of the runner
if ((boot == 0)); then
	reserved_pods
	check "a spot Deployment is made" spot_deployment
	token=4000
	for what in kubelet agent socket containerd; do
		lend_round $what $token
		token=$((token + 1))
	done
	check "a spot pod has the card, and the node reboots" wait_for 240 spot_runs
	node_reboot
fi

say="after the reboot"
check "$say: the node is in the cluster again" cluster_join
# Their cards are free, and a spot pod may have one by now: it leaves it.
kubectl delete pod dev busy --force --grace-period=0 >/dev/null 2>&1
reserve
check "$say: he is away, and a spot pod has his card" wait_for 300 spot_runs
spot=$(spot_pod)
returns 5000
check "$say: the spot pod is deleted" wait_for 180 pod_gone "$spot"
check "$say: the next one waits" wait_for 180 spot_waits
kubectl delete deployment job --now >/dev/null
kubectl delete pods --all --force --grace-period=0 >/dev/null 2>&1
plan
