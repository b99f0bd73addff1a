# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Suite scripts, chosen by their heads, run in as few boots as possible, as one TAP stream. For
# those who run them: tests/vm/run.sh and tests/node/run.sh. A script's head may have
#
#	# runs: LEVEL       the first level at which it runs (default: full); `cluster`: only where
#	                    it is named, by tests/k8s/vm.sh
#	# kernels: NAME...  the only ones that it runs on
#	# boot: OPTIONS     of boot.sh; scripts with the same options share one boot
#	# seconds: N        how long it may take (default: 120)

# suite_begin LABEL FOLDER KERNEL: whose tests these are, where the scripts lie, what they run on.
suite_begin() {
	suite_label=$1 suite_dir=$2 suite_kernel=$3
	# Results of the caller's own, beside those from the guest.
	suite_count=0 suite_bad=0
}

# suite_head SCRIPT WORD: prints what its head says of WORD.
suite_head() {
	sed -n "/^[^#]/q; s/^# $2: //p" "$suite_dir/$1.sh"
}

suite_rank() {
	case $1 in
	build) echo 0 ;;
	short) echo 1 ;;
	full) echo 2 ;;
	deep) echo 3 ;;
	cluster) echo 4 ;;
	*) die "no level '$1'" ;;
	esac
}

# suite_result ok|"not ok" NAME
suite_result() {
	suite_count=$((suite_count + 1))
	[[ $1 == ok ]] || suite_bad=$((suite_bad + 1))
	printf '%s %d - %s: %s\n' "$1" "$suite_count" "$suite_label" "$2"
}

# suite_finish: prints the plan and ends the script.
suite_finish() {
	echo "1..$suite_count"
	((suite_bad == 0))
	exit
}

# suite_choose LEVEL [KERNELS]: prints the scripts of that level for the kernel, one a line. KERNELS
# is what a script without such a line in its head runs on (default: all).
suite_choose() {
	local max file name only need
	max=$(suite_rank "$1")
	for file in "$suite_dir"/*.sh; do
		name=$(basename "$file" .sh)
		[[ $name != lib ]] || continue
		only=$(suite_head "$name" kernels)
		only=${only:-${2:-$suite_kernel}}
		[[ " $only " == *" $suite_kernel "* ]] || continue
		need=$(suite_head "$name" runs)
		(($(suite_rank "${need:-full}") > max)) || echo "$name"
	done
}

# suite_part agent|module|'': of the names on stdin those that need the agent, those that do not, or
# all.
suite_part() {
	local name options
	while read -r name; do
		options=$(suite_head "$name" boot)
		case $1/$options in
		/* | agent/*--agent*) echo "$name" ;;
		agent/* | module/*--agent*) ;;
		*) echo "$name" ;;
		esac
	done
}

# Makes the guest's stream a part of ours: numbers go on, names get the script's in front, a script
# that died or whose plan is wrong is a failure. The last line is "COUNT BAD" for us.
suite_merge() {
	awk -v label="$suite_label" -v count="$suite_count" -v bad="$suite_bad" '
	function result(word, name) {
		count++
		if (word != "ok")
			bad++
		print word " " count " - " label ": " name
		fflush()
	}
	/^## begin / { script = $3; planned = -1; seen = failed = 0; open = 1; next }
	/^## left / { result("not ok", last ": left " $3 " loaded"); next }
	/^## end / {
		if (planned != seen)
			result("not ok", script ": " \
				(planned < 0 ? "no plan" : "planned " planned) ", saw " seen \
				" tests; exit status " $3)
		else if ($3 != 0 && !failed)
			result("not ok", script ": exit status " $3)
		printf "# %s: %s: %d tests in %.1f s\n", label, script, seen, $5 - $4
		last = script
		open = 0
		next
	}
	/^## done/ { done = 1; next }
	/^1\.\.[0-9]+$/ { planned = substr($0, 4); next }
	/^(not )?ok / {
		seen++
		word = $1 == "ok" ? "ok" : "not ok"
		failed += word != "ok"
		sub(/^(not )?ok [0-9]* *(- )?/, "")
		result(word, script ": " $0)
		next
	}
	{ print /^#/ ? $0 : "# " $0; fflush() }
	END {
		if (!done)
			result("not ok", open ? script ": the machine stopped in it" : "no end")
		print count, bad >"/dev/fd/3"
	}'
}

# suite_run OUTDIR SLOW START RUNNER SCRIPT...: boots by the function suite_boot, which the caller
# has defined and which takes options of boot.sh, and runs the scripts in there with the command
# RUNNER, which gets them as SCRIPT:SECONDS. SLOW is how much longer they may take than their heads
# say, START how many seconds the boot may. Consoles' logs go to OUTDIR. Of our environment they get
# ROUNDS, how often those do what they do that have a number of rounds, and the runner AGENT_CALLS,
# with which it counts the agent's system calls (programs/agentcalls.c).
suite_run() {
	local out=$1 slow=$2 start=$3 name options limit log rc sums
	local -A group=() seconds=()
	local order=() names words runner
	read -ra runner <<<"$4"
	[[ -z ${AGENT_CALLS:-} ]] || runner=(env AGENT_CALLS=1 "${runner[@]}")
	[[ -z ${ROUNDS:-} ]] || runner=(env ROUNDS="$ROUNDS" "${runner[@]}")
	shift 4
	for name; do
		[[ -e $suite_dir/$name.sh ]] || die "no suite script $name"
		options=$(suite_head "$name" boot)
		[[ -n ${group["x$options"]:-} ]] || order+=("$options")
		limit=$(suite_head "$name" seconds)
		limit=$((${limit:-120} * slow))
		group["x$options"]+=" $name:$limit"
		seconds["x$options"]=$((${seconds["x$options"]:-$start} + limit))
	done
	sums=$(mktemp)
	for options in "${order[@]}"; do
		read -ra names <<<"${group["x$options"]}"
		read -ra words <<<"$options"
		log=$out/console${options:+-${options//[^a-z0-9]/}}.log
		rc=0
		suite_boot "${words[@]}" --log "$log" --timeout "${seconds["x$options"]}" \
			-- "${runner[@]}" "${names[@]}" | suite_merge 3>"$sums" || rc=$?
		read -r suite_count suite_bad <"$sums"
		if ((rc == 99)); then
			suite_result "not ok" "the kernel's messages in $log are clean"
		elif ((rc != 0)); then
			suite_result "not ok" "boot.sh: exit status $rc"
		else
			suite_result ok "the kernel's messages are clean${options:+ ($options)}"
		fi
	done
	rm -f "$sums"
}
