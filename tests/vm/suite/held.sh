# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# Callers who are held: whatever happens to them meanwhile, each call reaches the card once, after
# the borrower's memory is gone, and its program sees no error; or the call ends with its program.
# seconds: 240
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/callers.inc

card=/dev/fakegpu0
memory=/sys/class/fakegpu/fakegpu0/mem_used
events=/tmp/held.events
cg=/sys/fs/cgroup

cards free_delay_ms=200 || exit 1
kt events -b $events >/dev/null
kt holding h $nodes lend_after=50 hold_max=600000
container m
container b
kt member m h "pid=$m"
mkdir $cg/f $cg/f2 $cg/t $cg/t/a $cg/t/b
echo threaded >$cg/t/a/cgroup.type
echo threaded >$cg/t/b/cgroup.type
kt member t h "cgroup=$cg/t"
agent_up

# borrowed: h is lent, and the borrower in $b has a file and memory on the card.
borrowed() {
	lend_out h
	inside "$b" fgpu alloc $card 64M , hold >/tmp/b.out 2>&1 &
	wait_for 20 grep -q 'hold ok' /tmp/b.out
	clear_log
}

# evicted: what an agent does: kills the borrower, waits for the card's memory.
evicted() {
	end "$b"
	wait_for 20 grep -qx 0 $memory
}

# frozen FOLDER 0|1: is that what the cgroup says?
frozen() {
	grep -qx "frozen $2" "$1/cgroup.events"
}

# reached: how many calls the card has seen.
reached() {
	grep -Evc 'kind=(release|free)' $log
}

# now_held COUNT NAME: so many are held, and the card has seen nobody. If not, there is no use in
# going on.
now_held() {
	if wait_for 30 held_is h "$1"; then
		ok "$2"
	else
		not_ok "$2" "$(kt state h)" "$(kt dump | grep watch)" "$(tail -n 3 /tmp/*.out)" \
			"$(tail -n 20 $events)" "$(tail -n 20 $log)"
		plan
	fi
	is "... and nobody has reached the card" "$(reached)" 0
}

# The checker of tasks that hang will tell of this one, so it is awake. (Our own messages say not
# what it says, or they would be taken for it.)
dmesg -c >/dev/null
expect_kernel "task fgpu:.* blocked for more than"
hung_after=$(cat /proc/sys/kernel/hung_task_timeout_secs)
echo 3 >/proc/sys/kernel/hung_task_timeout_secs
fgpu sleep $card 100000 uninterruptible >/dev/null 2>&1 &
stuck=$!

# ---- Two hundred at once, and what can happen to them.

opens=open,openat2,creat
callers plain1 "$m" token=0 threads=40 calls=ioctl,$opens
callers plain2 "$m" token=100 threads=40 calls=ioctl,$opens
callers plain3 "$m" token=200 threads=40 calls=ioctl
callers plain4 "$m" token=300 threads=20 calls=nonblock
callers killed "$m" token=400 threads=10 calls=ioctl,$opens
callers killed2 "$m" token=500 threads=2 calls=nonblock
callers stopped "$m" token=600 threads=8 calls=ioctl,$opens
callers stopped2 "$m" token=700 threads=8 calls=ioctl,$opens
callers frozen "$m" token=800 threads=8 calls=ioctl,$opens
callers frozen2 "$m" token=900 threads=8 calls=ioctl,$opens
callers debug1 "$m" token=1000 threads=4 calls=ioctl,$opens
callers debug2 "$m" token=1100 threads=4 calls=ioctl,$opens
callers debug3 "$m" token=1200 threads=4 calls=ioctl,$opens
callers busy "$m" token=1300 threads=4 calls=ioctl,$opens leader=exit aside=/tmp/busy.aside
mkfifo /tmp/exec.now
callers exec "$m" token=1400 threads=4 calls=ioctl,$opens exec=/tmp/exec.now \
	"then" make=/tmp/exec.done
mkfifo /tmp/closed.now
callers closed "$m" token=2500 threads=2 close=/tmp/closed.now
callers vfork "$m" token=1500 threads=2 calls=vfork
callers filter "$m" token=1600 threads=4 calls=ioctl,open seccomp=1
callers threads $cg/t token=1700 threads=4 calls=ioctl,open,open,ioctl cgroups=$cg/t/a,$cg/t/b
all="plain1 plain2 plain3 plain4 killed killed2 stopped stopped2 frozen frozen2 debug1 debug2
	debug3 busy exec closed vfork filter threads"
n=216
if [ "$(uname -m)" = x86_64 ]; then
	callers old "$m" token=1800 threads=6 calls=ioctl32,open32,openat32
	all="$all old"
	n=$((n + 6))
fi
case $(kt status features) in
*io-worker-ns*)
	callers ring "$m" token=1900 threads=4 calls=uring,async
	all="$all ring"
	n=$((n + 4))
	;;
esac
# These will get a signal every 10 ms.
callers signals1 "$m" token=2000 threads=12 calls=ioctl,$opens signals=10 sa=restart
callers signals2 "$m" token=2100 threads=12 calls=ioctl,$opens signals=10 sa=none
callers signals3 "$m" token=2200 threads=4 calls=nonblock signals=10 sa=none
callers signals4 "$m" token=2300 threads=4 calls=ioctl,open signals=10 sa=none seccomp=1
signals="signals1 signals2 signals3 signals4"
if [ "$(uname -m)" = x86_64 ]; then
	callers signals5 "$m" token=2400 threads=3 calls=ioctl32,open32,openat32 signals=10 sa=none
	signals="$signals signals5"
fi
here "callers stand ready" ready $all $signals
pid_of frozen >$cg/f/cgroup.procs
pid_of frozen2 >$cg/f2/cgroup.procs
before=$(kt watch m touches)

# From here on the checker panics.
check "the kernel tells of a task that hangs" \
	wait_for 20 sh -c "dmesg | grep -q 'INFO: task fgpu:.* blocked for more than'"
echo 1 >/sys/kernel/debug/fakegpu/wake
wait $stuck
echo 1 >/proc/sys/kernel/hung_task_panic

borrowed
go $all
now_held $n "$n calls of $(echo $all | wc -w) processes are held at once"
is "... while the borrower's memory is on it" "$(cat $memory)" $((64 << 20))

for name in killed killed2; do
	kill -9 "$(pid_of $name)"
	wait "$(cat /tmp/$name.job)"
done
n=$((n - 12))
now_held $n "SIGKILL ends a held caller at once"

kill -STOP "$(pid_of stopped)"
now_held $((n - 8)) "SIGSTOP stops one"
kill -CONT "$(pid_of stopped)"
now_held $n "SIGCONT: it is held again"

echo 1 >$cg/f/cgroup.freeze
check "the freezer of cgroup v2 freezes one" wait_for 20 frozen $cg/f 1
now_held $((n - 8)) "... which is not held meanwhile"
echo 0 >$cg/f/cgroup.freeze
now_held $n "thawed, it is held again"
echo 1 >$cg/t/a/cgroup.freeze
check "two threads of a process are frozen" wait_for 20 frozen $cg/t/a 1
now_held $((n - 2)) "... the other two, in another cgroup, are held"
echo 0 >$cg/t/a/cgroup.freeze
now_held $n "thawed, all four are"

check "a debugger attaches, goes from call to call, detaches" dbg "$(pid_of debug1)"
now_held $n "... all are held"
check "another one seizes, and ends without a detach" dbg "$(pid_of debug2)" how=seize end=die
now_held $n "... all are held"
dbg "$(pid_of debug3)" how=seize end=stay >/tmp/dbg.out 2>&1 &
debugger=$!
check "a third one stays" wait_for 20 grep -q threads= /tmp/dbg.out
now_held $n "... all are held"

check "other threads fork, exec, come, go and map memory" wait_for 20 test -e /tmp/busy.aside
: >/tmp/exec.now
check "a program is replaced by another while its threads are held" \
	wait_for 20 test -e /tmp/exec.done
n=$((n - 4))
now_held $n "... and their calls end with it"

# What freezes for a suspend is thawed by this test right away: the agent is frozen too, and counts
# as lost after three seconds.
echo freezer >/sys/power/pm_test
echo 10000 >/sys/power/pm_freeze_timeout
echo 0 >/sys/module/suspend/parameters/pm_test_delay
for state in mem freeze; do
	grep -qw $state /sys/power/state || continue
	check "the machine is suspended ($state) with all of them held" \
		sh -c "echo $state >/sys/power/state"
	now_held $n "... and they still are"
done
echo none >/sys/power/pm_test

: >/tmp/closed.now
check "a file is closed while calls of it are held" wait_for 20 test -e /tmp/closed.now.done
now_held $n "... which they still are"

go $signals
sleep 1
is "signals every 10 ms: nobody reaches the card" "$(reached)" 0
is "it does not tell so of them" "$(dmesg | grep 'INFO: task' | grep -vc 'task fgpu:')" 0
kill -STOP "$(pid_of stopped2)"
echo 1 >$cg/f2/cgroup.freeze
wait_for 20 frozen $cg/f2 1

check "the borrower is evicted, its memory comes back" evicted
is "... and nobody has reached the card until then" \
	"$(reached)" 0
check "the return is released" taken_back h

# went_on NAME TEXT FIRST COUNT: its calls went well, and reached the card once.
went_on() {
	here "$2 go on" ended $1 && check "... and were served once" served $3 $4 &&
		is "... and opened once" "$(opens_of "$(said $1 pid)")" "$(said $1 opens)"
}

went_on plain1 "those who only waited" 0 40
went_on plain2 "others" 100 40
went_on plain3 "others with ioctl alone" 200 40
went_on plain4 "opens with O_NONBLOCK" 300 20
check "killed calls never reached the card" served 400 10 0
check "... neither did those with O_NONBLOCK" served 500 2 0
went_on stopped "those who were stopped" 600 8
check "those who still are have not" served 700 8 0
kill -CONT "$(pid_of stopped2)"
went_on stopped2 "continued, they" 700 8
went_on frozen "those who were frozen" 800 8
check "those who still are have not" served 900 8 0
echo 0 >$cg/f2/cgroup.freeze
went_on frozen2 "thawed, they" 900 8
went_on debug1 "those who were debugged" 1000 4
went_on debug2 "those whose debugger has ended" 1100 4
went_on debug3 "those who are debugged" 1200 4
here "... their debugger sees them end" wait $debugger
went_on busy "those beside busy threads, the first one gone," 1300 4
check "those whose program was replaced have not" served 1400 4 0
wait "$(cat /tmp/closed.job)"
is "those whose file was closed look for it anew" "$(grep -c errno=EBADF /tmp/closed.out)" 2
check "... and have not either" served 2500 2 0
went_on vfork "vfork's children" 1500 2
went_on filter "those under a seccomp filter" 1600 4
went_on threads "threads in different cgroups" 1700 4
case $all in
*old*) went_on old "calls of 32 bits" 1800 6 ;;
*) skip "calls of 32 bits" "no such program here" ;;
esac
case $all in
*ring*)
	here "opens by io_uring go on" ended ring && check "... and were served once" served 1900 4
	;;
*) skip "opens by io_uring" "this kernel's workers belong to no container" ;;
esac
went_on signals1 "those with signals, SA_RESTART" 2000 12
went_on signals2 "those with signals, without it" 2100 12
went_on signals3 "those with signals and O_NONBLOCK" 2200 4
went_on signals4 "those with signals and a seccomp filter" 2300 4
[ ! -e /tmp/signals5.job ] || went_on signals5 "those with signals and 32 bits" 2400 3
for name in $signals; do
	[ $name != signals3 ] || continue
	least=$(said $name least)
	check "every thread's handler ran while it was held ($name: $least times at least)" \
		test "$least" -ge 5
done

# Those with O_NONBLOCK that were killed count; the other killed and replaced ones, and those whose
# file was closed, had been told to start anew.
said=
for name in $all $signals; do
	case $name in
	killed* | exec | closed | threads) ;;
	*) said="$said /tmp/$name.out" ;;
	esac
done
want=$(cat $said | awk -v n=2 -F '[= ]' '/^pid=/ { n += $4 + $10 } END { print n }')
is "each call counts once, however often it was made anew" $(($(kt watch m touches) - before)) $want
e=$(event event=released)
check "the event says how many went on: $(echo "$e" | value held)" \
	test "$(echo "$e" | value held)" -ge 150

# ---- hold_max counts from the return, for a later caller too.

container b
kt holding h $nodes hold_max=4000
callers first "$m" token=3000
callers second "$m" token=3100
ready first second
borrowed
no_events
go first
now_held 1 "one is held"
sleep 2
go second
now_held 2 "another comes later"
here "the first goes on" ended first
here "so does the second" ended second

# time_of TOKEN: when the card served it, in milliseconds.
time_of() {
	sed -n "s/.* ns=\([0-9]*\)[0-9]\{6\} .* arg=$(printf '0x%x' $1) .*/\1/p" $log
}

apart=$(($(time_of 3100) - $(time_of 3000)))
check "both at the same time ($apart ms apart)" test ${apart#-} -lt 1000
e=$(event event=state state=quarantine)
is "hold_max was over" "$(echo "$e" | value cause)" hold-max
took=$((($(echo "$e" | value time) - $(event event=state state=returning | value time)) / 1000000))
check "... so long after the return ($took ms)" test $took -ge 3600 -a $took -lt 6000
end "$b"
kt watch-del b

echo 0 >/proc/sys/kernel/hung_task_panic
echo "$hung_after" >/proc/sys/kernel/hung_task_timeout_secs
agent_down
end "$m"
check "all is taken away" no_cards
plan
