# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# All that tests/fakegpu/README.md promises of the stand-in card.
# seconds: 600
# shellcheck disable=SC2086 # what stands in variables here has no blanks
. /vm/suite/lib.sh

debug=/sys/kernel/debug/fakegpu
class=/sys/class/fakegpu
parameters=/sys/module/fakegpu/parameters

# same GOT WANTED: compares two texts, and prints them if they differ.
same() {
	[ "$1" = "$2" ] || {
		echo "got '$1', wanted '$2'"
		return 1
	}
}

not() {
	! "$@"
}

# try NAME COMMAND...: a check that leaves nothing running when it fails.
try() {
	check "$@" || killall -q -9 fgpu
}

load() {
	insmod /vm/modules/fakegpu.ko "$@"
}

set_parameter() {
	echo "$2" >"$parameters/$1"
}

# stat DEVICE FIELD, card NUMBER FIELD: a number of the file stats.
stat() {
	sed -n "s/^dev=$1 .* $2=\([0-9]*\).*/\1/p" $debug/stats
}

card() {
	sed -n "s/^card=$1 .*\b$2=\([0-9]*\).*/\1/p" $debug/stats
}

# records PATTERN: how many lines of the log match.
records() {
	grep -c "$1" $debug/log
}

clear_log() {
	echo >$debug/clear
}

# number_of NODE FORMAT: of the node's device number (%t, %T: major, minor in hex).
number_of() {
	busybox stat -c "$2" "/dev/$1"
}

# background COMMAND...: sets pid; its output goes to /tmp/background.
background() {
	"$@" >/tmp/background 2>&1 &
	pid=$!
}

# stop [SIGNAL]: of what background started, which is gone then.
stop() {
	kill "-${1:-TERM}" $pid
	wait $pid 2>/dev/null
	return 0
}

# Milliseconds of some clock.
now() {
	sed 's/\.\([0-9]*\) .*/\10/' /proc/uptime
}

# in_state LETTER: is the process of background in it?
in_state() {
	same "$(sed -n 's/^State:	\(.\).*/\1/p' /proc/$pid/status)" "$1"
}

# ---- Nodes.
load misc=1 forwarder=1 mem_mb=64

check_nodes() {
	major=$(number_of fakegpu0 %t)
	same "$(number_of fakegpuctl %t:%T)" "$major:ff" &&
		same "$(number_of fakegpu1 %t:%T)" "$major:1" &&
		same "$(number_of fakegpu-misc %t)" a &&
		same "$(for node in uvm other fwd compat misc; do
			number_of fakegpu-$node %t
		done | sort -u | grep -vcx "$major")" 5 &&
		same "$(number_of fakegpu-uvm %a)$(number_of fakegpu-fwd %a)" 666600 &&
		grep -q "$(printf '%3d fakegpu$' 0x$major)" /proc/devices
}
try "ctl and cards share a major, the others have their own" check_nodes

# Those that a hook would be put on; each at an address of its own.
check_functions() {
	for part in open release ioctl mmap; do
		for kind in card uvm; do
			echo fg_${kind}_$part
		done
	done >/tmp/functions
	printf '%s\n' fg_card_poll fg_card_read fg_card_write fg_card_compat_ioctl \
		fg_uvm_compat_ioctl fg_compat_ioctl fg_card_fault fg_card_access >>/tmp/functions
	grep -c '\[fakegpu\]' /sys/kernel/tracing/available_filter_functions
	while read -r function; do
		grep -q "^$function \[fakegpu\]" \
			/sys/kernel/tracing/available_filter_functions || {
			echo "$function can't be traced"
			return 1
		}
	done </tmp/functions
	same "$(sed -n 's/ . / /; s/\t\[fakegpu\]//p' /proc/kallsyms |
		grep -wFf /tmp/functions | cut -d' ' -f1 | sort | uniq -d)" ""
}
try "every function can be traced and stands alone" check_functions

check_every_node() {
	clear_log
	for node in fakegpuctl fakegpu0 fakegpu1 fakegpu-uvm fakegpu-other fakegpu-misc \
		fakegpu-compat; do
		fgpu ping /dev/$node , version /dev/$node >/tmp/each || return 1
		serial=$(sed -n 's/^ping.*serial=\([0-9]*\).*/\1/p' /tmp/each)
		grep -q "^serial=$serial .*kind=ioctl name=PING dev=$node " $debug/log || return 1
		same "$(stat $node PING):$(stat $node VERSION):$(stat $node open_now)" 1:1:0 &&
			same "$(stat $node open):$(stat $node release)" 1:1 &&
			same "$(stat $node ioctl)" 2 || return 1
	done
	fgpu open /dev/fakegpu-fwd && same "$(stat fakegpu-fwd open)" 1
}
try "every node opens, answers and is recorded" check_every_node

check_passing() {
	clear_log
	fgpu poll /dev/fakegpu0 , read /dev/fakegpu0 , write /dev/fakegpu0 &&
		same "$(stat fakegpu0 poll)$(stat fakegpu0 read)$(stat fakegpu0 write)" 111 &&
		same "$(stat fakegpu0 ioctl)" 0
}
try "poll, read and write are recorded" check_passing

check_unknown() {
	clear_log
	fgpu ioctl /dev/fakegpu0 0x5401 | grep -q 'errno=ENOTTY' &&
		same "$(records 'name=unknown dev=fakegpu0 .*arg=0x5401 .*ret=-25$')" 1
}
try "an unknown command is recorded" check_unknown

check_compat() {
	clear_log
	fgpu compat /dev/fakegpu0 77 , compat /dev/fakegpu-uvm 78 , compat /dev/fakegpu-compat 79
	same "$(records 'compat-ioctl name=WORK_ECHO dev=fakegpu0 .*arg=0x4d ')" 1 &&
		same "$(records 'compat-ioctl name=WORK_ECHO dev=fakegpu-uvm .*arg=0x4e ')" 1 &&
		same "$(records ' kind=ioctl name=WORK_ECHO dev=fakegpu-compat .*arg=0x4f ')" 1
}
case $(uname -m) in
x86_64) try "32-bit calls come through compat_ioctl, or the kernel's forwarder" check_compat ;;
esac

# ---- The log.
check_once() {
	clear_log
	fgpu threads 50 echo /dev/fakegpu0 1 20 >/dev/null || return 1
	sed -n 's/^serial=\([0-9]*\) .*WORK_ECHO.* arg=\([^ ]*\).*/\1 \2/p' $debug/log >/tmp/once
	same "$(wc -l </tmp/once)" 1000 &&
		same "$(cut -d' ' -f1 /tmp/once | sort -u | wc -l)" 1000 &&
		same "$(cut -d' ' -f2 /tmp/once | sort -u | wc -l)" 1000
}
try "50 threads: each call once, each serial once" check_once

check_who() {
	clear_log
	fgpu ping /dev/fakegpuctl , wait 1 >/tmp/who &
	pid=$!
	wait $pid
	same "$(records "name=PING dev=fakegpuctl tgid=$pid tid=$pid comm=fgpu file=")" 1
}
try "who called" check_who

check_namespace() {
	clear_log
	unshare -p -f fgpu ping /dev/fakegpuctl || return 1
	not grep -q ' tgid=1 ' $debug/log
}
try "ids are those of the initial namespace" check_namespace

check_clear() {
	clear_log
	same "$(wc -l <$debug/log)" 0 && same "$(stat fakegpu0 WORK_ECHO)" 0
}
try "clear" check_clear

check_record_off() {
	clear_log
	set_parameter record 0
	fgpu ping /dev/fakegpu0
	set_parameter record 1
	same "$(wc -l <$debug/log)" 0
}
try "record=0" check_record_off

# ---- Memory.
mem_used() {
	cat $class/fakegpu$1/mem_used
}

check_memory() {
	clear_log
	same "$(cat $class/fakegpu0/mem_total)" 67108864 || return 1
	background fgpu alloc /dev/fakegpu0 16M , alloc /dev/fakegpu0 8M , \
		alloc /dev/fakegpuctl 1M 1 , free /dev/fakegpu0 1 , hold
	wait_for 5 grep -q hold /tmp/background
	same "$(mem_used 0):$(mem_used 1)" 8388608:1048576 &&
		grep -q "dev=fakegpu0 tgid=$pid bytes=8388608" $debug/files || return 1
	stop
	same "$(mem_used 0):$(mem_used 1)" 0:0 &&
		same "$(records 'kind=free .*dev=fakegpu0 .* arg=0x800000 mem=0 ')" 1 &&
		same "$(records 'kind=release .*dev=fakegpu0 .* arg=0x800000 mem=0 ')" 1
}
try "memory belongs to the file and goes with it" check_memory

check_full() {
	fgpu alloc /dev/fakegpu0 60M , try alloc /dev/fakegpu0 5M , alloc /dev/fakegpu0 4M , \
		try free /dev/fakegpu0 9 , try alloc /dev/fakegpuctl 1M 7 >/tmp/full || return 1
	cat /tmp/full
	same "$(sed -n 's/.* errno=\([A-Z]*\).*/\1/p' /tmp/full | tr '\n' ' ')" \
		"ENOMEM ENOENT ENODEV "
}
try "a card is full, a handle and a card unknown" check_full

# ns_of KIND: when card 0 had the last record of that kind.
ns_of() {
	sed -n "s/^serial=[0-9]* ns=\([0-9]*\) kind=$1 .*dev=fakegpu0 .*/\1/p" $debug/log |
		tail -n 1
}

no_memory() {
	same "$(mem_used 0)" 0
}

check_late() {
	set_parameter free_delay_ms 2000
	echo 0 >$class/fakegpu1/free_delay_ms
	clear_log
	fgpu alloc /dev/fakegpu0 2M , alloc /dev/fakegpu1 1M
	same "$(mem_used 0):$(mem_used 1):$(card 0 mem_late)" 2097152:0:2097152 &&
		same "$(records 'kind=release .*dev=fakegpu0 .*mem=2097152 ')" 1 &&
		wait_for 10 no_memory &&
		same "$(records 'kind=free .*dev=fakegpu0 .*mem=0 ')" 1 &&
		[ $((($(ns_of free) - $(ns_of release)) / 1000000)) -ge 1900 ]
}
try "memory comes back late, per card" check_late
set_parameter free_delay_ms 0
echo -1 >$class/fakegpu1/free_delay_ms

# ---- Work and load.
busy() {
	same "$(cat $class/fakegpu0/load)" "$1"
}

# Eight seconds: a machine may stand still for three.
check_load() {
	busy 0 || return 1
	background fgpu work /dev/fakegpuctl 8000 0 , hold
	wait_for 5 grep -q hold /tmp/background
	busy 100 && same "$(card 1 load)" 0 && wait_for 20 busy 0 || return 1
	stop
}
try "work keeps the card busy for its time" check_load

check_killed_work() {
	background fgpu work /dev/fakegpu0 60000 , hold
	wait_for 5 grep -q hold /tmp/background
	busy 100 || return 1
	stop KILL
	busy 0
}
try "work ends with its file" check_killed_work

check_latch() {
	echo 1 >$class/fakegpu0/load_latch
	fgpu work /dev/fakegpu0 60000
	busy 100 && echo 0 >$class/fakegpu0/load_latch && busy 0 || return 1
	echo 42 >$class/fakegpu0/load_force
	busy 42 || return 1
	echo -1 >$class/fakegpu0/load_force
	busy 0 && not sh -c "echo 101 >$class/fakegpu0/load_force"
}
try "load latched and forced" check_latch

check_load_delay() {
	echo 300 >$class/fakegpu0/load_delay_ms
	begin=$(now)
	busy 0
	took=$(($(now) - begin))
	echo 0 >$class/fakegpu0/load_delay_ms
	[ $took -ge 250 ]
}
try "a load file that takes its time" check_load_delay

# ---- Sleeping inside.
asleep() {
	same "$(stat fakegpuctl asleep_now)" "$1"
}

# sleeper KIND: sets pid.
sleeper() {
	background fgpu sleep /dev/fakegpuctl "$2" "$1"
	wait_for 5 asleep 1
}

check_interruptible() {
	sleeper interruptible 60000 && wait_for 2 in_state S || return 1
	stop
	asleep 0 && same "$(records 'kind=wake .*dev=fakegpuctl .*ret=-4$')" 1
}
clear_log
try "an interruptible sleep ends by a signal" check_interruptible

check_killable() {
	sleeper killable 60000 && wait_for 2 in_state D || return 1
	stop KILL
	asleep 0
}
try "a killable sleep is D, and ends by SIGKILL" check_killable

check_uninterruptible() {
	sleeper uninterruptible 60000 && wait_for 2 in_state D || return 1
	kill -9 $pid
	usleep 300000
	asleep 1 && in_state D || return 1
	echo >$debug/wake
	wait_for 10 asleep 0
}
try "an uninterruptible sleep ignores SIGKILL, wake ends it" check_uninterruptible

check_time() {
	fgpu sleep /dev/fakegpu0 300 uninterruptible | tee /tmp/time
	took=$(sed -n 's/.* us=//p' /tmp/time)
	[ "$took" -ge 250000 ] && [ "$took" -le 10000000 ]
}
try "a sleep takes its time" check_time

# ---- Mappings.
check_fault() {
	clear_log
	fgpu store /dev/fakegpu0 0 7 , store /dev/fakegpu0 5 9 , load /dev/fakegpu0 0 , \
		doorbell /dev/fakegpu0 0 , doorbell /dev/fakegpuctl 5 0 >/tmp/fault || return 1
	cat /tmp/fault
	grep -q '^load.*value=7' /tmp/fault &&
		grep -q '^doorbell /dev/fakegpuctl.*value=9' /tmp/fault &&
		same "$(stat fakegpu0 mmap):$(stat fakegpu0 fault)" 1:1 &&
		same "$(stat fakegpu0 mappings_now)" 0 &&
		same "$(records 'kind=fault name=write dev=fakegpu0 ')" 1 &&
		grep -q '^card=0 doorbell=0x7 ' $debug/doorbells &&
		grep -q '^card=0 word=5 value=0x9$' $debug/doorbells &&
		grep -q '^card=1 doorbell=0x0 ' $debug/doorbells
}
try "a mapping is filled by a fault, and keeps what is written" check_fault

check_history() {
	for value in 101 102 103; do
		fgpu store /dev/fakegpu1 0 $value >/dev/null
		cat $debug/doorbells >/dev/null
	done
	same "$(sed -n 's/^card=1 sample=.* value=//p' $debug/doorbells | tr '\n' ' ')" \
		"0x65 0x66 0x67 "
}
try "the doorbell's history" check_history

check_revoke() {
	clear_log
	fgpu store /dev/fakegpu0 0 0 , add /dev/fakegpu0 0 10 , revoke /dev/fakegpu0 , \
		load /dev/fakegpu0 , revoke /dev/fakegpuctl 0 , add /dev/fakegpu0 0 10 , \
		revoke /dev/fakegpuctl 1 , doorbell /dev/fakegpu0 0 >/tmp/revoke || return 1
	cat /tmp/revoke
	# An addition faults as a read where QEMU makes a load and a store of it.
	grep -q 'value=20 ' /tmp/revoke && same "$(stat fakegpu0 fault)" 3 &&
		grep -q 'kind=fault name=read dev=fakegpu0 ' $debug/log
}
try "a revoked mapping faults again, nothing is lost" check_revoke

check_populate() {
	clear_log
	set_parameter populate 1
	fgpu store /dev/fakegpu0 0 5 , wait 1 >/dev/null
	same "$(stat fakegpu0 fault)" 0 || return 1
	fgpu store /dev/fakegpu0 0 6 , revoke /dev/fakegpu0 , load /dev/fakegpu0 >/tmp/populate
	set_parameter populate 0
	grep -q 'value=6 ' /tmp/populate && same "$(stat fakegpu0 fault)" 1
}
try "populate=1" check_populate

check_adders() {
	clear_log
	background fgpu store /dev/fakegpu0 0 0 , threads 8 add /dev/fakegpu0 0 200000
	i=0
	while [ $i -lt 50 ]; do
		fgpu revoke /dev/fakegpu0 >/dev/null
		i=$((i + 1))
	done
	wait $pid || return 1
	fgpu doorbell /dev/fakegpu0 0 | grep -q 'value=1600000 ' || return 1
	background fgpu mmap /dev/fakegpu0 , hold
	wait_for 5 grep -q hold /tmp/background
	fgpu mmap /dev/fakegpu0 , revoke /dev/fakegpuctl 0 | grep 'files=2 ' || return 1
	stop
}
try "8 threads add while mappings are revoked: nothing is lost or doubled" check_adders

check_ptrace() {
	clear_log
	fgpu store /dev/fakegpu0 3 4276803 >/dev/null
	background fgpu mmap /dev/fakegpu0 , hold
	wait_for 5 grep -q hold /tmp/background
	at=$(sed -n 's/^mmap.* at=\([0-9]*\).*/\1/p' /tmp/background)
	text=$(dd if=/proc/$pid/mem bs=4 skip=$((at / 4 + 3)) count=1 2>/dev/null | tr -d '\0')
	printf 'XYZ' | dd of=/proc/$pid/mem bs=4 seek=$((at / 4 + 4)) conv=notrunc 2>/dev/null
	stop
	same "$text" CBA && same "$(records 'kind=access name=read dev=fakegpu0 .*arg=0xc ')" 1 &&
		same "$(records 'kind=access name=write dev=fakegpu0 .*arg=0x10 ')" 1 &&
		fgpu doorbell /dev/fakegpu0 4 | grep -q "value=$((0x5a5958)) "
}
try "/proc/PID/mem goes through access" check_ptrace

check_ctl_mapping() {
	clear_log
	fgpu store /dev/fakegpuctl 0 1 , load /dev/fakegpuctl 0 || return 1
	same "$(stat fakegpuctl fault)" 0 || return 1
	fgpu store /dev/fakegpuctl 0 1 , revoke /dev/fakegpuctl 0 , load /dev/fakegpuctl 0
}
try "ctl is mapped at once, and is no card's" check_ctl_mapping

check_sizes() {
	fgpu mmap /dev/fakegpu0 16 , mmap /dev/fakegpu-uvm 16 , mmap /dev/fakegpu-other 1 , \
		mmap /dev/fakegpu-misc 1 && fgpu try mmap /dev/fakegpu0 17 | grep -q ENXIO
}
try "a mapping has 16 pages at most" check_sizes

check_nofault() {
	set_parameter nofault 1
	clear_log
	fgpu store /dev/fakegpu0 0 3 , load /dev/fakegpu0 0 || return 1
	same "$(stat fakegpu0 mmap):$(stat fakegpu0 fault)" 1:0 || return 1
	fgpu store /dev/fakegpu0 0 3 , revoke /dev/fakegpu0 , load /dev/fakegpu0 0
	same $? 135
}
try "nofault=1: no fault function, SIGBUS after a revocation" check_nofault
set_parameter nofault 0

# Two cards, and card 0 revoked: has card 1's mapping to fault again?
faults_of_other_card() {
	clear_log
	fgpu open /dev/fakegpu0 , store /dev/fakegpu1 0 1 , revoke /dev/fakegpu0 , \
		store /dev/fakegpu1 0 2 || return 1
	stat fakegpu1 fault >/tmp/faults
}

check_shared() {
	faults_of_other_card && same "$(cat /tmp/faults)" 1 || return 1
	set_parameter shared_mapping 1
	faults_of_other_card && same "$(cat /tmp/faults)" 2
}
try "files have address spaces of their own, or with shared_mapping=1 one" check_shared
set_parameter shared_mapping 0

two_mappings() {
	same "$(stat fakegpu0 mappings_now)" 2
}

check_fork_map() {
	background fgpu store /dev/fakegpu0 0 1 , fork , wait 3000
	wait_for 5 grep -q 'fork ok' /tmp/background
	wait_for 10 two_mappings || return 1
	wait $pid
	same "$(stat fakegpu0 mappings_now):$(stat fakegpu0 open_now)" 0:0
}
try "mappings are counted through fork and exit" check_fork_map

# ---- Failing and slow on demand.
check_open_fail() {
	clear_log
	set_parameter open_fail 1
	fgpu open /dev/fakegpu0 >/tmp/open
	rc=$?
	set_parameter open_fail 0
	grep -q 'errno=EIO' /tmp/open && same $rc 1 &&
		same "$(records 'kind=open-fail .*dev=fakegpu0 .*ret=-5$')" 1 &&
		same "$(stat fakegpu0 open_now)" 0 && fgpu open /dev/fakegpu0
}
try "open_fail=1" check_open_fail

check_slow() {
	set_parameter open_ms 300
	set_parameter close_ms 300
	fgpu open /dev/fakegpu0 , close /dev/fakegpu0 >/tmp/slow
	set_parameter open_ms 0
	set_parameter close_ms 0
	cat /tmp/slow
	same "$(sed -n 's/.* us=//p' /tmp/slow | awk '$1 >= 250000' | wc -l)" 2
}
try "open_ms and close_ms" check_slow

check_slow_fault() {
	clear_log
	set_parameter fault_ms 300
	took=$(fgpu mmap /dev/fakegpu0 , store /dev/fakegpu0 3 1 | sed -n 's/^store.* us=//p')
	set_parameter fault_ms 0
	[ "$took" -ge 200000 ] && same "$(stat fakegpu0 fault)" 1
}
try "fault_ms" check_slow_fault

check_slow_open_killed() {
	set_parameter open_ms 60000
	background fgpu open /dev/fakegpu0
	usleep 300000
	stop KILL
	set_parameter open_ms 0
	same "$(stat fakegpu0 open_now)" 0
}
try "a slow open can be killed" check_slow_open_killed

check_hard_open() {
	set_parameter open_ms 60000
	set_parameter open_hard 1
	background fgpu open /dev/fakegpu0
	usleep 300000
	kill -9 $pid
	usleep 300000
	grep -q "State:.D" "/proc/$pid/status"
	rc=$?
	set_parameter open_ms 0
	set_parameter open_hard 0
	echo 1 >$debug/wake
	stop KILL
	return $rc
}
try "unless open_hard=1" check_hard_open

# ---- Load and unload.
check_busy() {
	background fgpu hold /dev/fakegpu0
	wait_for 5 grep -q hold /tmp/background
	not rmmod fakegpu && [ -e /dev/fakegpu0 ] || return 1
	stop
}
try "no unloading while a file is open" check_busy

# stress CARD: what one of many does.
stress() {
	j=0
	while [ $j -lt 15 ]; do
		fgpu alloc /dev/fakegpu$1 4K , threads 4 ping /dev/fakegpuctl 50 , \
			add /dev/fakegpu0 0 1 , revoke /dev/fakegpu$1 , fork , \
			echo /dev/fakegpu-uvm $j 10 , alloc /dev/fakegpuctl 8K 1 >/dev/null ||
			touch /tmp/stress-failed
		j=$((j + 1))
	done
}

check_stress() {
	clear_log
	set_parameter free_delay_ms 5
	for i in 0 1 0 1 0 1; do
		stress $i &
	done
	while [ -n "$(jobs)" ]; do
		cat $debug/log $debug/stats $debug/files $debug/doorbells >/dev/null
		usleep 20000
		jobs >/dev/null
	done
	set_parameter free_delay_ms 0
	usleep 100000
	cat $debug/stats
	[ ! -e /tmp/stress-failed ] && same "$(mem_used 0):$(mem_used 1)" 0:0 &&
		same "$(stat fakegpuctl PING):$(stat fakegpu-uvm WORK_ECHO)" 18000:1800 &&
		same "$(sed -n 's/^dev=[^ ]* [^ ]* \(open_now=[^ ]* asleep_now=[^ ]*\) .*/\1/p' \
			$debug/stats | sort -u)" "open_now=0 asleep_now=0" &&
		not grep -q 'mappings_now=[^0]' $debug/stats && same "$(wc -l <$debug/files)" 0
}
try "many at once leave nothing behind" check_stress

check_unload_late() {
	set_parameter free_delay_ms 600000
	fgpu alloc /dev/fakegpu0 1M
	begin=$(date +%s)
	rmmod fakegpu && [ $(($(date +%s) - begin)) -lt 5 ] &&
		same "$(ls -d /dev/fakegpu* $class $debug 2>/dev/null)" "" &&
		same "$(grep -c fakegpu /proc/devices)" 0
}
try "unloading does not wait for late memory, and leaves nothing" check_unload_late

check_ring() {
	load log_size=16 cards=1 || return 1
	fgpu ping /dev/fakegpu0 100
	same "$(wc -l <$debug/log)" 16 &&
		grep -q '^log first=87 next=103 ' $debug/stats &&
		same "$(sed -n 's/^serial=\([0-9]*\) .*/\1/p' $debug/log | tr '\n' ' ')" \
			"$(seq 87 102 | tr '\n' ' ')" && [ ! -e /dev/fakegpu1 ] &&
		[ ! -e /dev/fakegpu-misc ] && rmmod fakegpu
}
try "the log is a ring" check_ring

check_init_fail() {
	background load init_fail=1 init_fail_ms=2000
	wait_for 3 [ -c /dev/fakegpu0 ] || return 1
	fgpu ping /dev/fakegpu0
	not wait $pid && cat /tmp/background && grep -qi 'no such device' /tmp/background &&
		same "$(ls -d /dev/fakegpu* $class $debug 2>/dev/null)" "" &&
		not grep -q '^fakegpu ' /proc/modules
}
try "init_fail=1: the nodes are there for a moment" check_init_fail

check_init_fail_open() {
	background load init_fail=1 init_fail_ms=1500
	insmod_pid=$pid
	wait_for 3 [ -c /dev/fakegpu0 ] || return 1
	fgpu alloc /dev/fakegpu0 1M , mmap /dev/fakegpu0 , wait 3000 , ping /dev/fakegpu0 , \
		store /dev/fakegpu0 || return 1
	not wait $insmod_pid && load && rmmod fakegpu
}
try "init_fail=1 waits for files that were opened" check_init_fail_open

# Opens, allocates and writes, whether the driver is there or not.
open_always() {
	while [ ! -e /tmp/stop ]; do
		fgpu try ping /dev/fakegpu0 , try alloc /dev/fakegpuctl 1M , \
			try store /dev/fakegpu0 0 1 >/dev/null 2>&1
	done
}

rounds() {
	i=0
	while [ $i -lt 30 ]; do
		load free_delay_ms=$((i % 3 * 20)) misc=$((i % 2)) shared_mapping=$((i % 2)) ||
			return 1
		usleep 20000
		wait_for 10 rmmod fakegpu || return 1
		i=$((i + 1))
	done
}

check_rounds() {
	open_always &
	opener=$!
	rounds
	status=$?
	touch /tmp/stop
	wait $opener
	return $status
}
try "30 rounds of loading and unloading while somebody opens" check_rounds

plan
