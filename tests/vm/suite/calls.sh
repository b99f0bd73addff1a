# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Which calls are touches, which are held, and how: passive ones, mmap, misc devices, 32-bit
# callers, O_NONBLOCK, io_uring.
# runs: short
# seconds: 240
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

version=0x80084601 # FAKEGPU_VERSION
kt events -b /tmp/events >/tmp/events.pid

# How often the driver served an open of that node.
opens() {
	sed -n "s/^dev=$1 .* open=\([0-9]*\) .*/\1/p" /sys/kernel/debug/fakegpu/stats
}

# printed TEXT: is it among what the member's program wrote?
printed() {
	grep -q -- "$1" /tmp/out
}

insmod /vm/modules/fakegpu.ko misc=1 forwarder=1
insmod /vm/modules/gpushare.ko
kt hook /dev/fakegpu0 /dev/fakegpuctl driver=fake passive=$version >/dev/null
kt hook /dev/fakegpu-misc /dev/fakegpu-compat driver=fake >/dev/null
watch_h /dev/fakegpu0 /dev/fakegpu-misc /dev/fakegpu-compat
agent_up

# ---- What is a touch.
counts "open is one" 1 fgpu open /dev/fakegpu0
counts "ioctl is one" 4 fgpu ping /dev/fakegpu0 3
counts "mmap is one" 2 fgpu mmap /dev/fakegpu0
counts "poll, read and write are none" 1 fgpu poll /dev/fakegpu0 , read /dev/fakegpu0 , \
	write /dev/fakegpu0
counts "nor is a passive ioctl" 1 fgpu version /dev/fakegpu0
counts "where it isn't passive, it is" 2 fgpu version /dev/fakegpu-misc
counts "close is none" 2 fgpu open /dev/fakegpu0 , close /dev/fakegpu0 , open /dev/fakegpu0
counts "an ioctl that the driver refuses is one" 2 fgpu open /dev/fakegpu0 , \
	try ioctl /dev/fakegpu0 12345
counts "a misc device counts" 3 fgpu ping /dev/fakegpu-misc , mmap /dev/fakegpu-misc

# ---- While it is lent, on a file that is open already.
inside "$member" fgpu open /dev/fakegpu0 , until /tmp/go1 , version /dev/fakegpu0 , \
	poll /dev/fakegpu0 , read /dev/fakegpu0 , write /dev/fakegpu0 , until /tmp/go2 , \
	mmap /dev/fakegpu0 , until /tmp/go3 , echo /dev/fakegpu0 0xe1 >/tmp/out 2>&1 &
call=$!
wait_for 5 printed "^open"
lend_h
before=$(touches)
touch /tmp/go1
check "what is no touch is not held" wait_for 10 printed "^write .*ok"
check "nor does it start the return" state_is lent
is "nor is it counted" "$(touches)" "$before"
touch /tmp/go2
check "mmap is not held" wait_for 10 printed "^mmap .*ok"
check "but starts the return" wait_for 5 state_is returning
check "as its event says" wait_for 5 grep -q "state=returning cause=touch .*kind=mmap" /tmp/events
is "it is counted once" "$(touches)" $((before + 1))
touch /tmp/go3
check "ioctl is held" wait_for 10 held_is 1
is "and has not reached the driver" "$(served 0xe1)" 0
release_h
check "until the release" sh -c "! grep -q failed /tmp/out"
wait $call
is "then it was served, once" "$? $(served 0xe1)" "0 1"
rm -f /tmp/go1 /tmp/go2 /tmp/go3

# ---- A borrower: all of its calls are refused after the revocation.
lend_h
inside "$borrower" fgpu version /dev/fakegpu0 , ping /dev/fakegpu0 , mmap /dev/fakegpu0 , \
	open /dev/fakegpu-misc , until /tmp/go1 , \
	try version /dev/fakegpu0 , try ping /dev/fakegpu0 , try munmap /dev/fakegpu0 , \
	try mmap /dev/fakegpu0 , try open /dev/fakegpuctl , try ping /dev/fakegpu-misc , \
	close /dev/fakegpu-misc , close /dev/fakegpu0 >/tmp/out 2>&1 &
call=$!
check "a borrower's calls pass" wait_for 10 printed "^open /dev/fakegpu-misc ok"
is "its open files are counted, a misc device's too" "$(kt watch b files)" 2
is "its calls are counted, but for the passive one" "$(kt watch b touches)" 4
kt withdraw h
touch /tmp/go1
wait $call
is "revoked, it closes all the same" "$?" 0
for what in "version /dev/fakegpu0" "ping /dev/fakegpu0" "mmap /dev/fakegpu0" \
	"open /dev/fakegpuctl" "ping /dev/fakegpu-misc"; do
	check "$what is refused" printed "^$what failed errno=EIO"
done
check "it has nothing open any more" wait_for 5 files_is 0
release_h
rm -f /tmp/go1

# ---- open in all its ways.
is_held "an open is held" fgpu open /dev/fakegpu0
for way in nonblock openat2; do
	counts "$way: counts" 1 openers $way /dev/fakegpu0
	before=$(opens fakegpu0)
	is_held "$way: is held, with signals all the while" openers $way /dev/fakegpu0 signals=10
	is "$way: and opens once" $(($(opens fakegpu0) - before)) 1
done

# killed WAY: SIGKILL ends it while it is held.
killed() {
	local pid
	lend_h
	inside "$member" openers "$1" /dev/fakegpu0 >/tmp/out 2>&1 &
	check "$1: an open is held" wait_for 10 held_is 1
	pid=$(pidof openers)
	kill -9 "$pid"
	check "$1: SIGKILL ends it, there and then" wait_for 10 sh -c "! [ -d /proc/$pid ]"
	check "$1: and the hold" wait_for 10 held_is 0
	check "$1: not the return" state_is returning
	release_h
}
killed nonblock

# ---- A misc device: opening one holds a lock of all of them.
inside "$member" fgpu until /tmp/go1 , open /dev/fakegpu-misc , until /tmp/go2 , \
	echo /dev/fakegpu-misc 0xe2 >/tmp/out 2>&1 &
call=$!
lend_h
before=$(touches)
touch /tmp/go1
check "misc: an open passes" wait_for 10 printed "^open .*ok"
check "misc: and starts the return" wait_for 5 state_is returning
check "misc: as its event says" \
	wait_for 5 grep -q "state=returning cause=touch .*kind=open" /tmp/events
is "misc: it is counted" "$(touches)" $((before + 1))
touch /tmp/go2
check "misc: an ioctl is held" wait_for 10 held_is 1
check "misc: meanwhile others are opened" sh -c ': </dev/cpu_dma_latency'
release_h
wait $call
is "misc: it was served, once" "$? $(served 0xe2)" "0 1"
rm -f /tmp/go1 /tmp/go2

# ---- A driver with the generic compat_ioctl.
counts "compat_ptr_ioctl: an open and an ioctl of 64 bits count" 2 fgpu ping /dev/fakegpu-compat
is_held "compat_ptr_ioctl: they are held" fgpu echo /dev/fakegpu-compat 0xe3
is "compat_ptr_ioctl: and served once" "$(served 0xe3)" 1

# ---- 32-bit callers: by the driver's own compat_ioctl, and by the generic one.
# The program is the code of an i386.
if [ "$(uname -m)" = x86_64 ]; then
	mkfifo /tmp/fifo
	for node in /dev/fakegpu0 /dev/fakegpu-compat; do
		token=$((token + 0x3201))
		counts "32 bits: $node: open and ioctl count" 2 touch32 $node 0x3200
		is_held "32 bits: $node: an open is held" touch32 $node 0x3200
		inside "$member" touch32 $node $token </tmp/fifo &
		call=$!
		exec 7>/tmp/fifo
		wait_for 5 sh -c '[ "$(pidof touch32)" ]'
		usleep 50000
		lend_h
		echo go >&7
		exec 7>&-
		check "32 bits: $node: an ioctl is held" wait_for 10 held_is 1
		is "32 bits: $node: it has not reached the driver" "$(served $token)" 0
		kill -STOP "$(pidof touch32)"
		check "32 bits: $node: stopped, it waits no more" wait_for 10 held_is 0
		kill -CONT "$(pidof touch32)"
		check "32 bits: $node: continued, it is held again" wait_for 10 held_is 1
		release_h
		wait $call
		is "32 bits: $node: it was served, once" "$? $(served $token)" "0 1"
	done
fi

# ---- mmap over what is there, from many threads at once, with signals.
inside "$member" mapfixed /dev/fakegpu0 8 60 go=/tmp/go1 signals=10 >/tmp/out 2>&1 &
call=$!
wait_for 5 printed ready
lend_h
before=$(touches)
touch /tmp/go1
check "MAP_FIXED: the threads go on in the return" wait_for 20 printed "^maps="
check "MAP_FIXED: which has begun" state_is returning
is "MAP_FIXED: nobody was held" "$(kt state h held)" 0
wait $call
is "MAP_FIXED: nothing failed, no hole, nothing lost" "$? $(tail -n 1 /tmp/out)" \
	"0 maps=480 failed=0 holes=0 lost=0 errno=0"
is "MAP_FIXED: each was counted" "$(touches)" $((before + 480))
rm /tmp/go1
release_h

inside "$member" mapfixed /dev/fakegpu0 8 150 go=/tmp/go1 signals=10 >/tmp/out 2>&1 &
call=$!
wait_for 5 printed ready
lend_h
touch /tmp/go1
wait_for 10 state_is returning
release_h
wait $call
is "MAP_FIXED: a release between them is no matter" "$? $(tail -n 1 /tmp/out)" \
	"0 maps=1200 failed=0 holes=0 lost=0 errno=0"
rm /tmp/go1

# ---- io_uring.

# Who opened node 0 last, by the driver's log: the process's own thread, or a worker of its?
opener() {
	grep "kind=open .*dev=fakegpu0 " "$log" | tail -n 1 |
		sed 's/.*tgid=\([0-9]*\) tid=\([0-9]*\) comm=\([a-z-]*[a-z]\).*/\1 \2 \3/' |
		awk '{ print $1 == $2 ? "itself" : $3 }'
}
touches_of_worker=1
has_feature io-worker-ns || touches_of_worker=0
inside "$member" openers inline /dev/null >/tmp/out
if [ $? = 77 ]; then
	skip "io_uring" "not in this kernel"
else
	for way in inline async sqpoll task; do
		if [ $touches_of_worker = 0 ]; then
			# All opens are done by workers, which are kernel threads of nobody's.
			counts "io_uring, $way: passes uncounted" 0 openers $way /dev/fakegpu0
			continue
		fi
		counts "io_uring, $way: counts" 1 openers $way /dev/fakegpu0
		case $way in
		async) who=iou-wrk ;;
		sqpoll) who=iou-sqp ;;
		*) who=itself ;;
		esac
		is "io_uring, $way: it was opened by the thread that was meant" "$(opener)" $who
		counts "io_uring, $way: many at once count" 5 openers $way /dev/fakegpu0 sqes=5
		before=$(opens fakegpu0)
		is_held "io_uring, $way: is held, with signals all the while" \
			openers $way /dev/fakegpu0 signals=10
		is "io_uring, $way: and opens once" $(($(opens fakegpu0) - before)) 1
		killed $way
	done
fi

unwatch_h
agent_down
kill "$(cat /tmp/events.pid)"
check "all is unloaded" no_cards
plan
