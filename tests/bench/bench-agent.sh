#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the agent costs: a user who comes back, and a node on which nothing happens. As lines
#
#	METRIC <name> <value> <unit>	<target>: <met or missed>; <what was compared>
#
# Status 1: a target was missed; the last line names it.
#
#	PARTS		which of these (return idle plugins kubelet)
#	PAIRS		how many returns are measured (10)
#	CONTAINERS	on the node where nothing happens (200), with eight cards
#	IDLE		seconds for which that is looked at (60)
#	DELETES		how many returns and deletions under a kubelet (3)
#
# QEMU's clock counts instructions here (boot.sh --icount), so that results do not depend on the
# machine: a nanosecond is an instruction, of which a real processor does a few in that time. Under
# a kubelet it is the time of this machine that is measured, as both parts of that ratio wait.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/vm/lib/common.sh
source tests/vm/lib/common.sh
# shellcheck source=tests/vm/lib/kernel.sh
source tests/vm/lib/kernel.sh

parts=${PARTS:-return idle plugins kubelet} pairs=${PAIRS:-10} deletes=${DELETES:-3}
containers=${CONTAINERS:-200} idle=${IDLE:-60}
kernel=6.1
build=$VM_TOP/build/vm/$kernel
missed=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value NAME: the median of what the guest printed under that name.
value() {
	awk -v name="$1" '$1 == name { print $2 }' "$work/values" | sort -n |
		awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else exit 1 }'
}

# metric NAME VALUE UNIT TARGET WORDS
metric() {
	local verdict=''
	if [[ -n $4 ]]; then
		if awk "BEGIN { exit !($2 $4) }"; then
			verdict="target $4 $3: met; "
		else
			verdict="target $4 $3: MISSED; "
			missed+=("$1")
		fi
	fi
	printf 'METRIC %s %s %s\t%s%s\n' "$1" "$2" "$3" "$verdict" "$5"
}

ratio() { # A B [DIGITS]
	awk "BEGIN { printf \"%.${3:-2}f\", $1 / $2 }"
}

# guest SCRIPT SECONDS NAME=VALUE...: what it prints is there for value then.
guest() {
	local script=$1 limit=$2
	shift 2
	tests/vm/boot.sh "$kernel" --icount --agent --mem 1024 \
		--extra "tests/bench/agent/$script" --extra tests/bench/agent/sleeper \
		--timeout "$limit" --log "$work/console" -- env "$@" sh "/vm/extra/$script" \
		>"$work/values" || {
		cat "$work/values" >&2
		exit 1
	}
}

part_return() {
	local bare back
	guest guest.sh 3000 PAIRS="$pairs"
	bare=$(value bare) back=$(value return_ns)
	metric agent_release_ratio "$(ratio "$back" "$bare")" ratio "<= 3" \
		"a user's call that is held until it is served, over kill -9 to the last close of \
the same container of runc without us; medians of $pairs, $back and $bare ns"
	metric agent_own_us "$(value own_us)" us "" \
		"from the kernel's event to the write that kills, without what that takes; median"
}

part_idle() {
	local ns
	guest idle.sh 1200 CONTAINERS="$containers" IDLE="$idle"
	metric agent_rss_kib "$(value rss_kib)" KiB "<= 16384" \
		"$containers containers, 8 cards, nothing happens; its probe has \
$(value probe_rss_kib)"
	ns="($(value idle_s) * 1e6)"
	metric agent_cpu_permille "$(ratio "$(value idle_ns)" "$ns")" permille "<= 1" \
		"of a processor that does an instruction a nanosecond, for $(value idle_s) s; with \
its probes $(ratio "$(value idle_ns_all)" "$ns")"
}

# The same with device plugins at a kubelet, for which gRPC's library has threads and memory.
part_plugins() {
	local ns
	guest idle.sh 1200 CONTAINERS="$containers" IDLE="$idle" PLUGINS=1
	metric agent_plugins_rss_kib "$(value rss_kib)" KiB "<= 28672" \
		"as agent_rss_kib, with device plugins at a kubelet"
	ns="($(value idle_s) * 1e6)"
	metric agent_plugins_cpu_permille "$(ratio "$(value idle_ns)" "$ns")" permille "" \
		"as agent_cpu_permille, with them, and with a kubelet that has to be told of them \
every ten seconds"
}

part_kubelet() {
	local back deleted
	CLUSTER_PAIRS=$deletes tests/k8s/vm.sh "$kernel" bench-kubelet >"$work/tap" || {
		cat "$work/tap" >&2
		exit 1
	}
	if grep -q '^1..0 # SKIP' "$work/tap"; then
		echo "agent_release_ratio_kubelet: not measured: $(sed 's/.*# SKIP//' "$work/tap")"
		return
	fi
	sed -n 's/^# //p' "$work/tap" >"$work/values"
	back=$(value return_us) deleted=$(value delete_us)
	metric agent_release_ratio_kubelet "$(ratio "$deleted" "$back" 0)" ratio ">= 100" \
		"from deleting a spot pod that ignores SIGTERM through the API, with the default \
grace, until its memory is free, over a user's call that is held until it is served; medians of \
$deletes, $deleted and $back us"
}

tests/vm/build.sh "$kernel" "$build"
for part in $parts; do
	"part_$part"
done
if ((${#missed[@]} > 0)); then
	echo "missed: ${missed[*]}"
	exit 1
fi
