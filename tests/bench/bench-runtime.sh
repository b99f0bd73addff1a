#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gpushare-runtime costs a create, as lines
#
#	METRIC <name> <value> <unit>	<target>: <met or missed>; <what it was compared with>
#
# and lines that begin with "skipped". Status 1: a target was missed.
#
#	ROUNDS	how often each command runs (400)
set -euo pipefail
cd "$(dirname "$0")/../.."
top=$PWD
rounds=${ROUNDS:-400}
interleave=$top/build/programs/interleave
missed=0

if ((EUID != 0)); then
	echo "skipped: needs root, to make device nodes in a mount namespace of its own"
	exit 0
fi
if [[ ${1:-} != --inside ]]; then
	exec unshare --mount --propagation private "$0" --inside
fi

dir=$(mktemp -d /tmp/gpushare-bench-XXXXXX)
sleep infinity &
container=$!
trap 'kill $container; rm -rf "$dir"' EXIT
# Copies: a build beside us must not change what is measured.
mkdir "$dir/bin"
cp build/gpushare-runtime build/gpushare-hook build/programs/{nothing,passon} "$dir/bin"
runtime=$dir/bin/gpushare-runtime
empty=$dir/bin/nothing
/usr/bin/python3 tests/bench/makebench.py "$dir" "$container" "$top" "$dir/bin" "$empty"

# A /dev with the nodes that the specs name, instead of this machine's.
mkdir "$dir/dev"
mount -t tmpfs -o mode=755 gpushare-bench "$dir/dev"
while read -r path type major minor; do
	mknod -m 666 "$dir$path" "$type" "$major" "$minor" 2>"$dir/mknod.err" || {
		echo "skipped: $(<"$dir/mknod.err")"
		exit 0
	}
done <"$dir/nodes"
mount --move "$dir/dev" /dev

metric() { # name value unit target words
	local name=$1 value=$2 unit=$3 target=$4 words=$5 verdict=
	if [[ -n $target ]]; then
		if awk "BEGIN { exit !($value $target) }"; then
			verdict="target $target $unit: met; "
		else
			verdict="target $target $unit: MISSED; "
			missed=$((missed + 1))
		fi
	fi
	printf 'METRIC %s %s %s\t%s%s\n' "$name" "$value" "$unit" "$verdict" "$words"
}

# The command line of containerd's shim for the bundle $1, in the array create.
create() {
	create=(--root /run/containerd/runc/k8s.io --log "$dir/log.json" --log-format json create
		--bundle "$dir/$1" --pid-file "$dir/$1/init.pid" "bench-$1")
}

# own BUNDLE REGISTRY [COMMAND...]: what interleave says of gpushare-runtime's create of the bundle
# beside the empty program's; and of COMMAND's, if one is given. Each starts with the bundle as it
# was and with no record of it.
own() {
	local bundle=$1 run=$dir/run-$2 more=()
	create "$bundle"
	if (($# > 2)); then
		more=(-- "${@:3}" "${create[@]}")
	fi
	"$interleave" "$rounds" -r "$dir/$bundle.json" "$dir/$bundle/config.json" \
		-x "$run/containers/bench-$bundle.json" -x "$run/containers/bench-$bundle.next" \
		-- "$empty" "${create[@]}" \
		-- "GPUSHARE_CONFIG=$dir/config-$2.json" "$runtime" "${create[@]}" "${more[@]}"
}

# Did it do what is measured? The last run's bundle tells.
expect_edited() { # bundle yes|no
	local edited=yes
	cmp -s "$dir/$1.json" "$dir/$1/config.json" && edited=no
	if [[ $edited != "$2" ]]; then
		echo "the bundle $1 was edited: $edited" >&2
		exit 1
	fi
}

own_ms() { # metric bundle registry target edited
	local said us min max total rss
	create "$2"
	said=$(own "$2" "$3")
	# With the order of commands turning, the last one may have been the empty program.
	cp "$dir/$2.json" "$dir/$2/config.json"
	GPUSHARE_CONFIG=$dir/config-$3.json "$runtime" "${create[@]}"
	expect_edited "$2" "$5"
	read -r _ us _ min _ max _ total _ rss <<<"$(grep '^own' <<<"$said")"
	metric "$1" "$(awk "BEGIN { printf \"%.3f\", $us / 1000 }")" ms "$4" "over the same create \
with an empty next runtime called directly ($(grep -oE '^base [0-9.]+' <<<"$said" |
		cut -d ' ' -f 2) of $total us), median of $rounds pairs, $min to $max us"
	((rss > peak)) && peak=$rss
	result=$us
}

# What no wrapper can go below: one more exec.
said=$("$interleave" "$rounds" -- "$empty" x -- "$dir/bin/passon" "$empty" x)
metric runtime_floor_ms "$(awk '/^own/ { printf "%.3f", $2 / 1000 }' <<<"$said")" ms "" \
	"own time of a static wrapper that does nothing but exec, for comparison"

peak=0 result=0
own_ms runtime_own_ms plain 0 "< 1" no
own_ms runtime_own_ms_holder holder 0 "< 1" no
own_ms runtime_own_ms_privileged privileged 0 "< 1" no
own_ms runtime_own_ms_privileged_copy privileged_copy 10 "< 2" yes
own_ms runtime_own_ms_copy_10 copy 10 "< 2" yes
few=$result
own_ms runtime_own_ms_copy_10000 copy 10000 "< 2" yes
metric runtime_copy_10000_over_10 "$(awk "BEGIN { printf \"%.2f\", $result / $few }")" ratio \
	"< 1.2" "own time with 10000 live containers in the registry over that with 10"
metric runtime_peak_kib "$peak" KiB "< 4096" "most resident memory of all those creates"

# Counts do not depend on the machine's pace. They end at the exec, which fails here: what is done
# after that is no part of a create.
count() { # metric bundle registry
	local n out=${CALLGRIND_OUT:-$dir/callgrind}.$1
	create "$2"
	cp "$dir/$2.json" "$dir/$2/config.json"
	rm -f "$dir/run-$3/containers/bench-$2".*
	if command -v valgrind >/dev/null; then
		GPUSHARE_CONFIG=$dir/config-$3-count.json valgrind --tool=callgrind \
			--dump-before=next_exec --callgrind-out-file="$out" \
			"$runtime" "${create[@]}" >/dev/null 2>"$dir/valgrind.log" || true
		n=$(sed -n 's/^totals: *//p' "$out.1")
		metric "runtime_instructions_$1" "${n:?callgrind said nothing}" instructions "" \
			"in user space, by callgrind"
	else
		echo "skipped: runtime_instructions_$1: no valgrind on this machine"
	fi
	cp "$dir/$2.json" "$dir/$2/config.json"
	rm -f "$dir/run-$3/containers/bench-$2".*
	if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
		GPUSHARE_CONFIG=$dir/config-$3-count.json strace -o "$dir/strace" \
			"$runtime" "${create[@]}" 2>/dev/null || true
		n=$(awk '/^execve/ && NR > 1 { exit } { n++ } END { print n }' "$dir/strace")
		metric "runtime_syscalls_$1" "$n" calls "" "by strace"
	else
		echo "skipped: runtime_syscalls_$1: no strace that works on this machine"
	fi
}

count plain plain 0
count holder holder 0
count privileged privileged 0
count privileged_copy privileged_copy 10
count copy_10 copy 10
count copy_10000 copy 10000

# shellcheck source=tests/lib/tools.sh
GS_TOP=$top source tests/lib/tools.sh
rc=0
nvidia=$(GS_TOP=$top tools_build nvidia) || rc=$?
if ((rc != 0)); then
	echo "skipped: runtime_ratio_nvidia: $nvidia"
	((rc == 77))
else
	mkdir -p "$dir/xdg/nvidia-container-runtime"
	cat >"$dir/xdg/nvidia-container-runtime/config.toml" <<-END
		[nvidia-container-runtime]
		mode = "legacy"
		runtimes = ["$empty"]
		debug = "/dev/null"
		[nvidia-container-runtime-hook]
		path = "$nvidia/nvidia-container-runtime-hook"
	END
	said=$(own copy 10 "XDG_CONFIG_HOME=$dir/xdg" "$nvidia/nvidia-container-runtime")
	read -r ours theirs <<<"$(awk '/^own/ { printf "%s ", $2 }' <<<"$said")"
	create copy
	cp "$dir/copy.json" "$dir/copy/config.json"
	XDG_CONFIG_HOME=$dir/xdg "$nvidia/nvidia-container-runtime" "${create[@]}"
	if ! grep -q nvidia-container-runtime-hook "$dir/copy/config.json"; then
		echo "nvidia-container-runtime did not edit the bundle" >&2
		exit 1
	fi
	metric runtime_ratio_nvidia "$(awk "BEGIN { printf \"%.1f\", $theirs / $ours }")" ratio \
		">= 30" "own time of nvidia-container-runtime in legacy mode ($theirs us) \
over ours ($ours us), a create of the bundle that asks for a copy, in one run"
fi

echo "$missed targets missed"
((missed == 0))
