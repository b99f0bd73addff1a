#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds for one kernel, boots it, runs suite scripts inside, prints one TAP stream.
#
#	run.sh KERNEL [SCRIPT...]	SCRIPT: a name from tests/vm/suite, without .sh
#
# Without names: those of the level VM_LEVEL (short, full, deep; default: what tests/vm/kernels says
# of the kernel). A script's head may have
#
#	# runs: LEVEL       the first level at which it runs (default: full)
#	# kernels: NAME...  the only ones that it runs on (default: all)
#	# boot: OPTIONS     of boot.sh; scripts with the same options share one boot
#	# seconds: N        how long it may take (default: 120)
#
# A kernel's level `build` means: no boot, only one test, that all builds.
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/kernel.sh"

if (($# == 0)) || [[ $1 == -* ]]; then
	sed -n '/^#\t/,/^# A kernel/s/^#//p' "$0" >&2
	exit 2
fi
kernel=${1##*/} # or a file of choose.sh
shift
kernel_line "$kernel"
level=${VM_LEVEL:-${K_CI/never/full}}
# How much longer everything takes than on a distribution's kernel.
slow=1
[[ $K_TOOLCHAIN != source ]] || slow=5
out=$VM_TOP/build/vm/$kernel

# head_of SCRIPT WORD: prints what its head says of WORD.
head_of() {
	sed -n "/^[^#]/q; s/^# $2: //p" "$VM_DIR/suite/$1.sh"
}

rank() {
	case $1 in
	build) echo 0 ;;
	short) echo 1 ;;
	full) echo 2 ;;
	deep) echo 3 ;;
	*) die "no level '$1'" ;;
	esac
}

# Results of this script's own, beside those from the guest.
count=0 bad=0
result() { # ok|"not ok" NAME
	count=$((count + 1))
	[[ $1 == ok ]] || bad=$((bad + 1))
	printf '%s %d - %s: %s\n' "$1" "$count" "$kernel" "$2"
}

finish() {
	echo "1..$count"
	((bad == 0))
	exit
}

if ! "$VM_DIR/build.sh" "$kernel" "$out"; then
	result "not ok" "builds"
	finish
fi
result ok "builds without a warning"
if (($# == 0)); then
	max=$(rank "$level")
	for file in "$VM_DIR"/suite/*.sh; do
		name=$(basename "$file" .sh)
		[[ $name != lib ]] || continue
		only=$(head_of "$name" kernels)
		[[ " ${only:-$kernel} " == *" $kernel "* ]] || continue
		need=$(head_of "$name" runs)
		(($(rank "${need:-full}") > max)) || set -- "$@" "$name"
	done
fi

# Groups of scripts that share a boot, each as SCRIPT:SECONDS.
declare -A group=() seconds=()
order=()
for name; do
	[[ -e $VM_DIR/suite/$name.sh ]] || die "no suite script $name"
	options=$(head_of "$name" boot)
	[[ -n ${group["x$options"]:-} ]] || order+=("$options")
	limit=$(head_of "$name" seconds)
	limit=$((${limit:-120} * slow))
	group["x$options"]+=" $name:$limit"
	seconds["x$options"]=$((${seconds["x$options"]:-60} + limit))
done

# Makes the guest's stream a part of ours: numbers go on, names get the script's in front, a script
# that died or whose plan is wrong is a failure. The last line is "COUNT BAD" for us.
merge() {
	awk -v kernel="$kernel" -v count="$count" -v bad="$bad" '
	function result(word, name) {
		count++
		if (word != "ok")
			bad++
		print word " " count " - " kernel ": " name
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
		printf "# %s: %s: %d tests in %.1f s\n", kernel, script, seen, $5 - $4
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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for options in "${order[@]}"; do
	read -ra names <<<"${group["x$options"]}"
	read -ra words <<<"$options"
	log=$out/console${options:+-${options//[^a-z0-9]/}}.log
	rc=0
	"$VM_DIR/boot.sh" "$kernel" "${words[@]}" --log "$log" \
		--timeout "${seconds["x$options"]}" \
		-- sh /vm/suite/runner "${names[@]}" | merge 3>"$work/sums" || rc=$?
	read -r count bad <"$work/sums"
	if ((rc == 99)); then
		result "not ok" "the kernel's messages in $log are clean"
	elif ((rc != 0)); then
		result "not ok" "boot.sh: exit status $rc"
	else
		result ok "the kernel's messages are clean${options:+ ($options)}"
	fi
done
finish
