# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The agent as a unit: what it may, that it comes back, and that its folder outlives it.
# runs: short
# seconds: 240
source /vm/suite/lib.sh

main_pid() {
	systemctl show -p MainPID --value gpushared
}

# another PID: systemd has started another one, and it has said that it is up.
another() {
	[[ $(main_pid) != "$1" ]] && systemctl --quiet is-active gpushared
}

# status FIELD: of the agent's /proc/PID/status.
status() {
	awk -v field="$1:" '$1 == field { print $2 }' "/proc/$(main_pid)/status"
}

# mounted FOLDER: ro or rw, as the agent sees it.
mounted() {
	awk -v folder="$1" '$5 == folder { print substr($6, 1, 2) }' \
		"/proc/$(main_pid)/mountinfo" | tail -n 1
}

check "the unit is up" wait_for 60 systemctl --quiet is-active gpushared
# kill, net_admin, sys_ptrace
for set in CapPrm CapEff CapBnd; do
	is "it has three capabilities ($set)" "$(status $set)" 0000000000081020
done
is "... and gets no others" "$(status NoNewPrivs)" 1
is "its system calls are filtered" "$(status Seccomp)" 2
is "its children are started by another process" "$(pgrep -cx gpushare-spawn)" 1
is "the system is not writable to it" "$(mounted /)" ro
is "... nor /sys" "$(mounted /sys)" ro
is "its own folder is" "$(mounted /run/gpushare)" rw
is "... and for root alone" "$(stat -c %a /run/gpushare)" 700

mkdir /sys/fs/cgroup/victim
victim=$(sleep 1000000 >/dev/null & echo $!)
echo "$victim" >/sys/fs/cgroup/victim/cgroup.procs
check "it can kill a cgroup" \
	nsenter -m -t "$(main_pid)" sh -c 'echo 1 >/sys/fs/cgroup/victim/cgroup.kill'
check "... and its processes are gone" wait_for 10 eval '! kill -0 "$victim"'
rmdir /sys/fs/cgroup/victim

check "it is well" agent_get /healthz
metrics=$(agent_get /metrics)
check "it has metrics" grep -q '^gpushare_' <<<"$metrics"
is "no call of it was refused" "$(grep '^gpushare_syscalls_denied_total' <<<"$metrics")" ""
check "its log is JSON" "$GS_PYTHON" -c 'import json, subprocess, sys
log = subprocess.run(["journalctl", "-o", "cat", "_PID=" + sys.argv[1]], stdout=subprocess.PIPE)
lines = [json.loads(line)["msg"] for line in log.stdout.decode().splitlines()]
assert lines.count("started") == 1, lines' "$(main_pid)"

touch /run/gpushare/kept
pid=$(main_pid)
kill -KILL "$pid"
check "killed, it comes back" wait_for 30 another "$pid"
check "... and finds its folder as it was" test -e /run/gpushare/kept
check "what started its children has gone with it" wait_for 10 \
	eval '[[ $(pgrep -cx gpushare-spawn) = 1 ]]'
pid=$(main_pid)
kill -STOP "$pid"
check "hung, it is killed, and comes back" wait_for 90 another "$pid"
check "it can be stopped" systemctl stop gpushared
is "... with all that it started" "$(pgrep -l '^gpushare[d-]')" ""
check "... and leaves its folder" test -e /run/gpushare/kept
check "it can be started" systemctl start gpushared
rm /run/gpushare/kept

plan
