#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzzers of build/fuzz, two at a time, and shares the time between them.
#
#	run.sh SECONDS [TARGET...]	fuzz; a crash ends with status 1 and its input's path
#	run.sh --keep [TARGET...]	take what was found into tests/fuzz/corpus, minimised
#
# What is found stays in build/fuzz/corpus between runs; inputs that crash are in
# build/fuzz/crashes, logs in build/fuzz/logs.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/fuzz
# A seed is kept in git if it is no larger than this, and so many for each target.
max_seed_bytes=4096
max_seeds=150
# One input may take this long: patterns and nesting must not explode.
input_seconds=10
jobs=2

# A target that crashes leaves its folder there.
FUZZ_TMP=$(mktemp -d /dev/shm/gpushare-fuzz-XXXXXX)
export FUZZ_TMP
trap 'rm -rf "$FUZZ_TMP"' EXIT

targets=()
find_targets() { # all, or those that were named
	local program name
	if (($# == 0)); then
		for program in "$out"/fuzz_*; do
			if [[ -f $program && -x $program ]]; then
				targets+=("${program##*/fuzz_}")
			fi
		done
	fi
	for name; do
		if [[ ! -x $out/fuzz_$name ]]; then
			echo "no $out/fuzz_$name" >&2
			exit 2
		fi
		targets+=("$name")
	done
	if ((${#targets[@]} == 0)); then
		echo "no fuzzers in $out: make fuzz-runtime builds them" >&2
		exit 2
	fi
}

# Leaks are looked for at the end of each run of inputs, and undefined behaviour is an error.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

fuzz_one() { # target seconds
	local name=$1 seconds=$2 dict=tests/fuzz/dict/$1.dict args=()
	mkdir -p "$out/corpus/$name" "$out/crashes" "$out/logs" "tests/fuzz/corpus/$name"
	if [[ -e $dict ]]; then
		args+=("-dict=$dict")
	fi
	timeout $((seconds * 2 + 120)) "$out/fuzz_$name" "${args[@]}" -max_len=16384 \
		-timeout=$input_seconds -rss_limit_mb=1024 -max_total_time="$seconds" \
		-print_final_stats=1 -artifact_prefix="$out/crashes/$name-" \
		"$out/corpus/$name" "tests/fuzz/corpus/$name" >"$out/logs/$name" 2>&1
}

report() { # target status
	local name=$1 status=$2 log=$out/logs/$1 runs cover
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1 || true)
	if ((status == 0)); then
		printf '%-14s ok      %10s inputs, %s edges\n' "$name" "$runs" "${cover#cov: }"
		return 0
	fi
	printf '%-14s FAILED  (status %s, log %s)\n' "$name" "$status" "$log"
	{ grep -E 'not true:|ERROR: |runtime error:|SUMMARY: ' "$log" || tail -n 5 "$log"; } |
		head -n 8 | sed 's/^/    /'
	sed -n 's/.*Test unit written to /    input: /p' "$log"
	return 1
}

largest() { # folder number: the names of its largest files
	find "$1" -type f -printf '%s %f\n' | sort -k 1,1rn -k 2 |
		awk -v n="$2" 'NR <= n { print $2 }'
}

# libFuzzer's merge takes the small inputs first and with them many that one large input could stand
# for; so the large ones of what it took come first, and are filled up with what they leave out.
keep_one() { # target
	local name=$1 seeds=tests/fuzz/corpus/$1 merged kept file
	local merge=(-merge=1 -use_counters=0 "-max_len=$max_seed_bytes")
	merged=$(mktemp -d)
	kept=$(mktemp -d)
	{
		"$out/fuzz_$name" "${merge[@]}" "$merged" "$seeds" "$out/corpus/$name"
		for file in $(largest "$merged" $((max_seeds * 2 / 3))); do
			cp "$merged/$file" "$kept"
		done
		"$out/fuzz_$name" "${merge[@]}" "$kept" "$merged"
	} >"$out/logs/$name.merge" 2>&1
	rm -f "$seeds"/*
	for file in $(largest "$kept" $max_seeds); do
		cp "$kept/$file" "$seeds/$(sha256sum "$kept/$file" | cut -c 1-16)"
	done
	rm -rf "$merged" "$kept"
	printf '%-14s %s seeds\n' "$name" "$(find "$seeds" -type f | wc -l)"
}

case ${1:-} in
--keep)
	shift
	find_targets "$@"
	for name in "${targets[@]}"; do
		keep_one "$name"
	done
	;;
[0-9]*)
	total=$1
	shift
	find_targets "$@"
	share=$((total * jobs / ${#targets[@]}))
	((share > 0)) || share=1
	echo "${#targets[@]} fuzzers, $jobs at a time, $share s each"
	declare -A running=()
	failed=0
	wait_for_one() {
		local pid=0 status=0
		wait -n -p pid || status=$?
		report "${running[$pid]}" "$status" || failed=1
		unset "running[$pid]"
	}
	for name in "${targets[@]}"; do
		if ((${#running[@]} == jobs)); then
			wait_for_one
		fi
		fuzz_one "$name" "$share" &
		running[$!]=$name
	done
	while ((${#running[@]} > 0)); do
		wait_for_one
	done
	exit $failed
	;;
*)
	sed -n 's/^#	//p' "$0" >&2
	exit 2
	;;
esac
