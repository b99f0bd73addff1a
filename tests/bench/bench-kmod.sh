#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gpushare.ko costs a call of a driver, and a user who comes back, as lines
#
#	METRIC <name> <value> <unit>	<target>: <met or missed>; <what was compared>
#
# and lines that begin with "skipped". Status 1: a target was missed; the last line names it.
#
#	KERNEL	names from tests/vm/kernels, or all (6.1). Of a kernel other than 6.1 the names of
#		metrics end in its name.
#	PAIRS	how many returns are measured (100)
#
# QEMU's clock counts instructions here (boot.sh --icount): what the guest measures does not depend
# on how fast the machine is, nor on what else runs on it.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/vm/lib/common.sh
source tests/vm/lib/common.sh
# shellcheck source=tests/vm/lib/kernel.sh
source tests/vm/lib/kernel.sh

pairs=${PAIRS:-100}
read -ra kernels <<<"${KERNEL:-6.1}"
if [[ ${kernels[*]} == all ]]; then
	mapfile -t kernels < <(kernel_names full; kernel_names short)
fi
missed=()
roots=(gs_on_call gs_on_open gs_on_release)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# calc EXPRESSION [DECIMALS]: its value; names of what the guest measured are variables in it.
calc() {
	awk "BEGIN { $(awk '{ printf "%s = \"%s\" + 0; ", $1, $2 }' "$values") }
		function max(a, b) { return a > b ? a : b }
		function abs(a) { return a < 0 ? -a : a }
		BEGIN { printf \"%.${2:-1}f\", $1 }"
}

# metric NAME VALUE UNIT TARGET WORDS
metric() {
	local name=$1 value=$2 unit=$3 target=$4 words=$5 verdict=''
	[[ $kernel == 6.1 ]] || name+=_${kernel//[.-]/_}
	if [[ -n $target ]]; then
		if awk "BEGIN { exit !($value $target) }"; then
			verdict="target $target $unit: met; "
		else
			verdict="target $target $unit: MISSED; "
			missed+=("$name")
		fi
	fi
	printf 'METRIC %s %s %s\t%s%s\n' "$name" "$value" "$unit" "$verdict" "$words"
}

objdump_of() {
	case $K_ARCH in
	arm64) echo aarch64-linux-gnu-objdump ;;
	*) echo objdump ;;
	esac
}

# Locked instructions in what the callbacks may run. In a build with a planted one it must be found.
locked() {
	local said planted tool
	tool=$(objdump_of)
	said=$(OBJDUMP=$tool tests/bench/kmod/locked.py "$build/modules/gpushare.ko" "${roots[@]}")
	metric kmod_locked_per_call "${said%% *}" instructions "<= 0" \
		"$said: all that a call may come to"
	if [[ $K_TOOLCHAIN != host || $K_ARCH != amd64 ]]; then
		echo "skipped: a planted locked instruction, on $kernel: 6.1 tries that"
		return
	fi
	rm -rf "$work/planted"
	cp -a "$build/src" "$work/planted"
	sed -i 's/raw_cpu_inc(\(counts->[^)]*\))/atomic64_inc((void *)this_cpu_ptr(\&\1))/' \
		"$work/planted/kmod/see.c"
	make -s -C "$K_HEADERS" M="$work/planted/kmod" CC=gcc-12 CONFIG_DEBUG_INFO_BTF_MODULES= \
		see.o >"$work/make.log" 2>&1 || {
		cat "$work/make.log" >&2
		exit 1
	}
	planted=$(tests/bench/kmod/locked.py "$work/planted/kmod/see.o" "${roots[@]}" 2>/dev/null)
	if ((${planted%% *} == 0)); then
		die "$kernel: a locked instruction was planted in see.c and not found"
	fi
}

# What a call costs: differences of what the guest measured. The targets are those of x86; arm64's
# clock is too coarse to tell an instruction. Sets limit and third, empty where there is no target.
calls() {
	local words zero="<= 0" exact="<= 0.1"
	limit="<= 90" third="<= 0.333"
	words="in a container, one level deep, of an ACTIVE holding; the call without us"
	if [[ $K_ARCH == arm64 ]]; then
		limit='' third='' zero='' exact=''
	elif ! grep -q '^features .*hook-no-regs' "$values"; then
		limit="<= 160"
		words="ftrace saves all registers here; $words"
	fi
	metric kmod_insn_bare "$(calc bare_container)" instructions "" \
		"an ioctl of the stand-in card that does nothing, without the module"
	metric kmod_insn_per_call_watched "$(calc 'watched - bare_container')" instructions \
		"$limit" "$words"
	metric kmod_insn_per_call_watched_list "$(calc 'watched_list - bare_container')" \
		instructions "$limit" "the same, the node has a list of passive calls"
	metric kmod_insn_per_call_watched_lent "$(calc 'watched_lent - bare_container')" \
		instructions "$limit" \
		"the same, 33 other containers are watched, another holding is lent"
	metric kmod_insn_per_call_watched_many "$(calc 'watched_many - bare_container')" \
		instructions "" "32 other containers are watched"
	metric kmod_insn_per_call_watched_nested "$(calc 'watched_nested - bare_nested')" \
		instructions "" "a container inside the watched one"
	metric kmod_insn_per_call_watched_cgroup "$(calc 'watched_cgroup - bare_cgroup')" \
		instructions "" "watched by its cgroup, whose second level the caller is in"
	metric kmod_insn_per_call_passive "$(calc 'passive - bare_container')" instructions "" \
		"a passive call of the watched container"
	metric kmod_insn_per_call_hooked_unwatched \
		"$(calc 'max(unwatched_host - bare_host, unwatched_container - bare_container)')" \
		instructions "" "hooked, a container watched; the caller in another one \
($(calc 'unwatched_container - bare_container')), on the host \
($(calc 'unwatched_host - bare_host'); nobody watched: $(calc 'hooked_host - bare_host'); \
a cgroup watched: $(calc 'unwatched_cgroup - bare_host'))"
	metric kmod_insn_per_call_other_device \
		"$(calc 'unwatched_other_device - bare_container')" instructions "" \
		"another device that the hooked function serves too, from the watched container"
	metric kmod_other_ioctl_insn "$(calc 'max(abs(watched_null - bare_null),
		abs(watched_driver - bare_driver))')" instructions "$zero" \
		"ioctls of /dev/null and of another function of the driver, hooks there or not;\
 getpid: $(calc 'watched_getpid - bare_getpid')"
	metric kmod_insn_repeat "$(calc 'max(abs(watched - watched_again),
		max(abs(watched_many - watched_end), abs(bare_container - bare_end)))')" \
		instructions "$exact" "between measurements of the same in this run"
}

# The same count without a module.
bpf() {
	local theirs words target=''
	(($(calc bpf_jit 0) == 1)) || die "$kernel: BPF runs without its compiler"
	theirs=$(calc 'bpf_raw_call - bare_cgroup')
	words="by a BPF program on the raw tracepoint sys_enter that counts ioctls by cgroup in a"
	words+=" hash map, the cheapest way; with a per-CPU map"
	words+=" $(calc 'bpf_raw_percpu_call - bare_cgroup'), as a perf event"
	words+=" $(calc 'bpf_perf_call - bare_cgroup')"
	metric kmod_insn_bpf_call "$theirs" instructions "" "$words"
	words="what that costs every other system call of the host; as a perf event"
	words+=" $(calc 'bpf_perf_getpid - bare_getpid'), with us 0"
	metric kmod_insn_bpf_other_calls "$(calc 'bpf_raw_getpid - bare_getpid')" instructions "" \
		"$words"
	words="ours of the call of a watched container over theirs"
	if [[ $limit == "<= 160" ]]; then
		words="no target where ftrace saves all registers; $words"
	else
		target=$third
	fi
	metric kmod_ratio_bpf "$(calc "(watched - bare_container) / $theirs" 3)" ratio "$target" \
		"$words"
	metric kmod_ratio_bpf_event \
		"$(calc '(watched - bare_container) / (bpf_perf_call - bare_cgroup)' 3)" ratio \
		"$third" "the same over theirs as a perf event"
}

# A return, beside the bare end of the same borrower.
returns() {
	local kind ours bare words
	for kind in plain deaf told; do
		ours=$(calc "release_${kind}_return" 0)
		bare=$(calc "release_${kind}_bare" 0)
		words="medians of $pairs pairs in turns, $ours ns"
		words+=" ($(calc "release_${kind}_return_min" 0)"
		words+=" to $(calc "release_${kind}_return_max" 0)) and $bare ns"
		if [[ $kind == told ]]; then
			metric kmod_release_ratio_told "$(calc "$ours / $bare" 2)" ratio "" \
				"as kmod_release_ratio, and somebody listens to events; $words"
		elif [[ $kind == plain ]]; then
			words="return to call served, settle_ms 0, no agent, over\
 kill -9 to the last close of the same process; $words"
			metric kmod_release_ratio "$(calc "$ours / $bare" 2)" ratio "<= 3" "$words"
		else
			words="a borrower that ignores SIGTERM: a pod's grace of 30 s (computed,\
 not waited for), then the kill, over the return; $words"
			metric kmod_release_vs_grace "$(calc "(30e9 + $bare) / $ours" 0)" ratio \
				">= 100" "$words"
		fi
	done
}

# What it costs to look for stores while a card is idle.
samples() {
	metric doorbell_sample_insn "$(calc sample_1_sample 0)" instructions "" \
		"one look at an idle holding whose user has one mapping; sixteen: \
$(calc sample_16_sample 0)"
	metric doorbell_sampled_store_insn "$(calc sample_1_store 0)" instructions "" \
		"the user's next store, which is seen by that, with its fault; one that faults for \
the driver's own reasons: $(calc sample_1_bare 0)"
}

for kernel in "${kernels[@]}"; do
	build=$VM_TOP/build/vm/$kernel
	values=$work/values
	tests/vm/build.sh "$kernel" "$build"
	kernel_line "$kernel"
	kernel_get "$kernel"
	tests/vm/boot.sh "$kernel" --icount --build "$build" --extra tests/bench/kmod/guest.sh \
		--log "$build/console-bench.log" --timeout 600 \
		-- sh /vm/extra/guest.sh "$pairs" >"$work/said" || {
		cat "$work/said" >&2
		die "$kernel: the guest failed"
	}
	if grep '^wrong' "$work/said" >&2; then
		die "$kernel: something else was measured than what was meant"
	fi
	# As names of variables.
	awk 'NF == 2 { gsub(/-/, "_", $1) } NF == 2' "$work/said" >"$values"
	calls
	locked
	bpf
	returns
	samples
done
if ((${#missed[@]} > 0)); then
	echo "${#missed[@]} targets missed: ${missed[*]}"
	exit 1
fi
echo "0 targets missed"
