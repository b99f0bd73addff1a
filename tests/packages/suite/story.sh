# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# A bare node gets the packages, shares a card, lends it, is upgraded while it is lent, and is bare
# again; containers that were there before, and those that came meanwhile, run through all of it.
# seconds: 3000
source /vm/suite/lib.sh
source /vm/suite/agent.inc
long=180
pod=team/dev
# Without the driver nothing can be lent; all else is the same.
driver=$(test -d /sys/module/fakegpu && echo 1)
old=before/web

# What is on the node, without what changes by itself; dpkg's own lists are looked at below.
list_files() {
	find / -xdev \( -path /vm -o -path /tmp -o -path /root -o -path /var/log \
		-o -path /var/cache -o -path /var/lib/containerd -o -path /var/lib/cni \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd/timers \
		-o -path /var/tmp -o -path /var/lib/man-db -o -path /var/lib/private \) \
		-prune -o -printf '%p %y %m %u %l\n' | LC_ALL=C sort
	find /etc -type f -exec md5sum {} + | LC_ALL=C sort
	find /run -maxdepth 1 -name '*gpushare*' ! -name gpushare-test
}

installed() { # VERSION
	local out
	out=$(dpkg-query -W -f '${Status} ${Version}\n' gpushare-runtime gpushare-agent gpusharectl)
	echo "$out"
	[[ $(sort -u <<<"$out") == "install ok installed $1" ]]
}

# is_alive PID...: each the same process as when it was noted.
declare -A born
note_birth() { # PID...
	local pid
	for pid; do
		born[$pid]=$(cut -d' ' -f22 "/proc/$pid/stat")
	done
}
alive() {
	local pid
	(($# > 0)) || return 1 # it never was
	for pid; do
		[[ $(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null) == "${born[$pid]}" ]] || {
			echo "process $pid is gone"
			return 1
		}
	done
}

# apt VERB PACKAGE...: from files, for there is no network here.
apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@" </dev/null 2>&1
}

# not_removed PACKAGE TEXT: removing it is refused, with these words, and it works on.
not_removed() {
	local out
	out=$(apt remove "$1") && return 1
	echo "$out"
	grep -qF -- "$2" <<<"$out" && [[ $(dpkg-query -W -f '${Status}' "$1") == *" ok installed" ]]
}

agent_is_up() {
	wait_for $long gpusharectl status && systemctl is-enabled gpushared && return
	journalctl -q --no-pager -n 20 -u gpushared
	return 1
}

agent_pid() {
	systemctl show -P MainPID gpushared
}

# For people to read: from the old agent's end to the new one's word that it is ready.
tell_gap() {
	local from to
	from=$(systemctl show -P ActiveExitTimestampMonotonic gpushared)
	to=$(systemctl show -P ActiveEnterTimestampMonotonic gpushared)
	echo "# without an agent for $(((to - from) / 1000)) ms"
}

# Its filter was made with the libraries of one Debian, and has to do for those of others.
none_refused() {
	local told
	exec {http}<>/dev/tcp/127.0.0.1/9479
	printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$http"
	told=$(cat <&"$http")
	exec {http}>&-
	grep "^gpushare_syscalls_denied_total" <<<"$told" && return 1
	grep -q "^gpushare_kernel_module_loaded " <<<"$told"
}

another_agent() { # PID
	[[ $(agent_pid) != "$1" ]] && gpusharectl status
}

mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial /var/log/apt
# can_use CONTAINER: of the pod with the card. Where it has no driver, that shows in the error.
can_use() {
	if [[ $driver ]]; then
		container_exec $pod "$1" fgpu ping /dev/fakegpu0
	else
		container_probe $pod "$1" /dev/fakegpu0 | tee /dev/stderr | grep -q ENXIO
	fi
}

check "containerd takes the image in" ctr -n k8s.io images import /vm/extra/images.tar
check "a pod of runc's runs" eval 'HANDLER=runc pod_run $old && container_run $old web'
web=$(container_pid $old web)
note_birth $web
is "there is nothing of ours" "$(dpkg -l 'gpushare*' 2>/dev/null | grep -c '^ii')" 0
list_files >/vm/before

# ---- From bare to sharing.
check "apt installs the packages" apt install /vm/extra/v1/*.deb
check "... all of them" installed "$(</vm/extra/v1/version)"
check "the agent is up, and enabled" agent_is_up
[[ -z $driver ]] || check "it has the module loaded" test -d /sys/module/gpushare
mkdir -p /etc/gpushare/vendors.d
cp /vm/extra/fakegpu.json /etc/gpushare/vendors.d
agent_config
check "nothing of containerd's was changed" cmp /etc/containerd/config.toml /vm/extra/config.toml
check "setup" gpusharectl setup containerd
check "... after which containerd is restarted" systemctl restart containerd
check "containerd is back" wait_for $long cri pods -q
check "the old pod runs on" alive $web
check "a pod with a card" pod_run $pod \
	--annotation gpushare.k8s.io/container-devices-from.side=_/_/main \
	--annotation gpushare.k8s.io/lend=true --annotation gpushare.k8s.io/lend-after=2s
check "... its main container" container_run $pod main --device /dev/fakegpu0
check "... and one beside it, which was given none" container_run $pod side
main=$(container_pid $pod main) side=$(container_pid $pod side)
note_birth $main $side
check "that one can use the card" can_use side

# ---- Lent, and upgraded meanwhile.
lend_it() {
	check "its user is away, and the card is lent" wait_for $long state_is 0 lent
	grant=$(gpusharectl grant --spot --card "$(card 0)")
	check "a spot container borrows it" cri_spot "$grant" \
		/bin/fgpu alloc /dev/fakegpu0 512M , hold /dev/fakegpu0
	spot=$(container_pid spot/job job)
	check "... and has its memory" wait_for $long uses 0 $mib512
	note_birth $spot
	held=$(held)
	check "an agent from whom a card is borrowed is not removed" \
		not_removed gpushare-agent "gpusharectl reclaim $(card 0)"
	check "nor the runtime, on which it depends" \
		not_removed gpushare-runtime "cards are borrowed"
	is "... and the agent is the same" "$(agent_pid)" "$agent"
}

return_it() {
	check "the card is lent still" wait_for $long state_is 0 lent
	check "every container runs on" alive $web $main $side $spot
	check "... the borrower with its memory" uses 0 $mib512
	is "nobody was held" $(($(held) - held)) 0
	check "a user is back, and is served" container_exec $pod main fgpu echo /dev/fakegpu0 2
	is "... after he was held" $(($(held) - held)) 1
	check "the borrower is gone" wait_for $long eval '! kill -0 $spot'
	check "all others run on" alive $web $main $side
	check "the spot pod is removed" pod_remove spot/job
}

agent=$(agent_pid)
[[ -z $driver ]] || lend_it
check "apt upgrades the packages" apt install /vm/extra/v2/*.deb
check "... all of them" installed "$(</vm/extra/v2/version)"
check "it is another agent" wait_for $long another_agent "$agent"
tell_gap
check "the containers run on" alive $web $main $side
[[ -z $driver ]] || return_it
check "no system call of the agent's was refused" none_refused
check "they have the card, though systemd was told to reload" can_use side

# ---- And bare again.
check "a runtime that containerd is set up for stays" \
	not_removed gpushare-runtime "gpusharectl setup --undo"
is "... but the agent, which depends on it, went first" \
	"$(dpkg-query -W -f '${Status}' gpushare-agent)" "deinstall ok config-files"
check "setup is undone" gpusharectl setup --undo
check "byte for byte" cmp /etc/containerd/config.toml /vm/extra/config.toml
check "while containers need it the runtime stays" \
	not_removed gpushare-runtime "need it until they are deleted"
check "containerd is restarted" systemctl restart containerd
check "containerd is back" wait_for $long cri pods -q
check "all run on" alive $web $main $side
check "... and can be worked in" can_use side
check "the pod ends as it should" pod_remove $pod
check "apt purges the packages" apt purge gpushare-runtime gpushare-agent gpusharectl
is "dpkg knows nothing of them" "$(dpkg -l 'gpushare*' 2>/dev/null | grep -E '^[ir][a-zA-Z]')" ""
is "... nor has anything of theirs" "$(find /var/lib/dpkg -name 'gpushare*')" ""
# A worker of the kernel's may still be called by what the module had it do last.
check "no process of ours is left" eval '! readlink /proc/[0-9]*/exe | grep gpushare'
check "the module is unloaded" eval \
	'! test -d /sys/module/gpushare || { modinfo -n gpushare && rmmod gpushare; }'
check "every file is as it was" eval 'list_files | diff /vm/before -'
check "the old pod runs on" alive $web
check "... and ends as it should" pod_remove $old

plan
