# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The modules that other tests load: somebody else's hook, the end of ftrace, planted bugs.
# boot: --append gpushare.test=ftrace-ends-here
. /vm/suite/lib.sh

not() {
	! "$@"
}

load() {
	insmod "/vm/modules/$1.ko" "$2"
}

enabled=/sys/kernel/tracing/enabled_functions
load fakegpu cards=2

check_ipmod() {
	not load ipmod symbol=no_such_function && load ipmod symbol=fg_card_ioctl || return 1
	cat $enabled
	grep -q '^fg_card_ioctl .*I' $enabled && fgpu ping /dev/fakegpu0 && rmmod ipmod &&
		not grep -q fg_card_ioctl $enabled
}
check "ipmod takes the place of the one user that may redirect a function" check_ipmod

check_planted() {
	for bug in uaf deadlock atomic leak rcu; do
		load planted bug=$bug && rmmod planted || return 1
	done
	not load planted bug=none
}
if grep -qE ' (kasan_report|print_deadlock_bug)$' /proc/kallsyms; then
	skip "planted bugs do nothing where nobody looks" "this kernel looks"
else
	check "planted bugs do nothing where nobody looks" check_planted
fi

check "ftkill finds the function" load ftkill go=0
rmmod ftkill
check "and leaves it alone" load ipmod symbol=fg_card_ioctl
rmmod ipmod
check "ftkill calls it" load ftkill go=1
rmmod ftkill
check_fails "and nothing can be hooked any more" insmod /vm/modules/ipmod.ko symbol=fg_card_ioctl
check "the driver works on" fgpu ping /dev/fakegpu0
rmmod fakegpu

plan
