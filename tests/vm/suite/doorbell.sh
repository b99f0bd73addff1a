# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# A return that makes no system call: a member that only writes to a mapping of its card is seen
# and held, and nothing else is touched.
# runs: short
# seconds: 240
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/doorbell.inc

h_nodes="$nodes /dev/fakegpu1"
events=/tmp/doorbell.events

doors free_delay_ms=200 || exit 1
kt events -b $events >/dev/null
container m
kt holding h $h_nodes lend_after=1000000 hold_max=600000 settle=0
kt member m h pid=$m
agent_up

# late: a mapping that is made while it is lent, or while somebody is held.
late() {
	bell late $m open $card , ready /tmp/late.ready , until /tmp/late.go , mapopen , \
		ready /tmp/late.mapped , add 0 , mapopen , add 1
	up late
	here "lent without a mapping" away
	is "... there is none to take away" "$(h mappings)" 0
	go late
	check "mmap is not held" wait_for 20 test -e /tmp/late.mapped
	is "... but is a return" "$(h state)" returning
	held 1 "its first store is"
	here "it goes on" back
	here "... and ends well" ended late
	is "... both stores arrived once" "$(value 0)" $((before + 2))
	clean "nobody was on the card with the borrower"
}

# ---- A mapping of a driver that had none before, which has its pages at once.

echo 1 >/sys/module/fakegpu/parameters/populate
late
check "... the fault function is hooked from now on" \
	sh -c "kt dump | grep -q 'funcs=open,release,ioctl,compat-ioctl,mmap,fault,access'"

bell at_once $m map $card , add 0 , ready /tmp/at_once.ready , until /tmp/at_once.go , add 0
up at_once
here "lent again" away
is "... one mapping is taken away" "$(h mappings)" 1
go at_once
held 1 "a store is held"
here "it goes on" back
here "... and ends well" ended at_once
echo 0 >/sys/module/fakegpu/parameters/populate

# ---- A store, and nothing else; the file is closed.

bell one $m map $card , add 0 , ready /tmp/one.ready , until /tmp/one.go , add 0 , \
	add 0 1000 , ready /tmp/one.ready2 , until /tmp/one.go2 , load 0
up one
here "it is lent" away
touched=$(kt watch m touches)
is "... its member's one mapping is taken away" "$(h mappings)" 1
go one
held 1 "a store is held, the borrower is on the card"
is "... the event names a fault" \
	"$(sed -n 's/.*state=returning .*\(dev=[^ ]* kind=[a-z]*\) .*/\1/p' $events | tail -n 1)" \
	"dev=$(sed -n 's/ *\([0-9]*\) fakegpu$/\1/p' /proc/devices):0 kind=fault"
here "the borrower is gone, its memory is back" back
is "... before the store reached the card" "$after_memory" 0
wait_for 20 test -e /tmp/one.ready2
is "... which was neither lost nor doubled" "$(value 0)" $((before + 1001))
faults=$(grep -c kind=fault $log)
check "... and nothing faults any more (the page came back by $faults)" test "$faults" -le 2
is "... the holding is in use" "$(h state)" active
is "... the store counts once" "$(kt watch m touches)" $((touched + 1))
check "faults are counted: $(h faults)" test "$(h faults)" -ge 1
clean "nobody was on the card with the borrower"

# ---- A load; many threads; many mappings, files, cards.

here "lent again" away
go one2 2>/dev/null
: >/tmp/one.go2
held 1 "a load is held"
here "it goes on" back
here "... and its program ends well" ended one
check "... it read what was there" said one "load ok value=$before"

bell many $m map $card , add 0 , ready /tmp/many.ready , until /tmp/many.go , ring 0 48 20
bell files $m map $card , map $card 4 , map $card , map /dev/fakegpu1 , map /dev/fakegpu1 2 , \
	add - , ready /tmp/files.ready , until /tmp/files.go , add - 3
up many files
card1=$(value 1)
here "lent with six mappings" away
is "... all are taken away" "$(h mappings)" 6
go many
held 48 "48 threads are held at once"
go files
held 49 "... another process too"
here "all go on" back
here "... end well" ended many
here "... both" ended files
is "... and no store was lost or doubled" "$(value 0) $(value 1)" \
	"$((before + 48 * 20 + 9)) $((card1 + 6))"
clean "nobody was on the card with the borrower"

# ---- What may happen to mappings that were taken away, and is no touch.

bell move $m map $card , add 0 , ready /tmp/move.ready , until /tmp/move.go , move 0 , \
	protect 0 r , protect 0 w , ready /tmp/move.moved , until /tmp/move.go2 , add 0
bell unmap $m map $card , map $card , add - , ready /tmp/unmap.ready , until /tmp/unmap.go , \
	unmap 0 , ready /tmp/unmap.done , until /tmp/unmap.go2 , add 1
bell fork $m map $card , add 0 , ready /tmp/fork.ready , until /tmp/fork.go , fork , \
	ready /tmp/fork.forked , until /tmp/fork.go2 , add 0
bell exec $m map $card , add 0 , ready /tmp/exec.ready , until /tmp/exec.go , \
	exec anon , add 0 , load 0 , ready /tmp/exec.done
bell exit $m map $card , add 0 , ready /tmp/exit.ready , until /tmp/exit.go , end 3
up move unmap fork exec exit
here "lent with six mappings again" away
is "... all are taken away" "$(h mappings)" 6
go move unmap fork exec exit
check "mappings are moved, protected, unmapped" wait_for 20 test -e /tmp/move.moved -a \
	-e /tmp/unmap.done -a -e /tmp/fork.forked -a -e /tmp/exec.done
wait "$(cat /tmp/exit.job)"
is "... a program ends, another execs" "$? $(grep value= /tmp/exec.out)" "3 load ok value=1"
is "... and none of that is a return" "$(h state) $(h faults)" "lent 0"
: >/tmp/move.go2
held 1 "a store to the one that was moved is held"
: >/tmp/unmap.go2
: >/tmp/fork.go2
held 3 "... to the one beside the unmapped one, to a child's"
here "they go on" back
for name in move unmap fork exec; do
	here "... $name ends well" ended $name
done
is "... each store arrived once" "$(value 0)" $((before + 3))
clean "nobody was on the card with the borrower"

# ---- What may happen while one is held.

bell busy $m map $card , map $card , map $card , anon , add - , ready /tmp/busy.ready , \
	until /tmp/busy.go , peer 500 , peers , start 0 , wait 300 , move 1 , protect 1 r , \
	unmap 2 , add 3 , peer 2000 , peers , ready /tmp/busy.aside , join
bell killed $m map $card , add 0 , ready /tmp/killed.ready , until /tmp/killed.go , add 0
bell exits $m map $card , add 0 , ready /tmp/exits.ready , until /tmp/exits.go , start 0 , \
	wait 300 , end 4
bell execs $m map $card , add 0 , ready /tmp/execs.ready , until /tmp/execs.go , start 0 , \
	wait 300 , exec anon , ready /tmp/execs.done
bell sig $m map $card , signal , add 0 , ready /tmp/sig.ready , until /tmp/sig.go , add 0 , signals
up busy killed exits execs sig
here "lent again" away
go busy
held 1 "one is held"
check "... another thread of it goes on: maps, unmaps, moves, protects, faults" \
	wait_for 30 test -e /tmp/busy.aside
# shellcheck disable=SC2046 # six numbers
set -- $(sed -n '/^peers ok/s/[^0-9]\{1,\}/ /gp' /tmp/busy.out)
echo "# mmap, two faults, munmap: median $2 us, worst $3 us; beside a held one $5 us, $6 us"
check "... without waiting for it" test $4 -gt 5 -a "$6" -lt $((1000000 * slow))
go exits execs
wait "$(cat /tmp/exits.job)"
is "a program ends while it is held" $? 4
check "another is replaced" wait_for 20 test -e /tmp/execs.done
here "... and ends" ended execs
go killed
held 2 "one more is held"
kill -9 "$(bell_pid killed)"
wait "$(cat /tmp/killed.job)"
held 1 "SIGKILL ends it at once"
go sig
held 2 "one more"
pid=$(bell_pid sig)
for pause in 50000 50000 50000; do
	kill -USR1 $pid
	usleep $pause
done
kill -STOP $pid
held 1 "SIGSTOP stops one"
kill -CONT $pid
held 2 "SIGCONT: it is held again"
mkdir /sys/fs/cgroup/frozen
echo $pid >/sys/fs/cgroup/frozen/cgroup.procs
echo 1 >/sys/fs/cgroup/frozen/cgroup.freeze
check "the freezer freezes it" wait_for 20 grep -qx "frozen 1" /sys/fs/cgroup/frozen/cgroup.events
held 1 "... which is not held meanwhile"
echo 0 >/sys/fs/cgroup/frozen/cgroup.freeze
held 2 "thawed, it is held again"
here "they go on" back
here "... one ends well" ended busy
here "... the other too" ended sig
check "... whose handler ran while it was held" grep -Eq "^signals ok count=[1-9]" /tmp/sig.out
is "... and each store arrived once" "$(value 0)" $((before + 2))
clean "nobody was on the card with the borrower"
rmdir /sys/fs/cgroup/frozen

# ---- A system call of the kernel's that writes there. (That it has an end is doorbell-hostile's.)

echo 600000 >/sys/module/gpushare/parameters/kernel_hold_max_ms
for name in kern kernkill kernsig; do
	bell $name $m map $card , add 0 , ready /tmp/$name.ready , until /tmp/$name.go , \
		read 0 , add 0
done
up kern kernkill kernsig
here "lent again" away
go kern kernkill kernsig
held 3 "system calls that write there are held"
kill -9 "$(bell_pid kernkill)"
kill -USR1 "$(bell_pid kernsig)" # it has no handler: it dies
wait "$(cat /tmp/kernkill.job)"
wait "$(cat /tmp/kernsig.job)"
held 1 "signals that kill end them at once"
here "one goes on" back
here "... and succeeds" ended kern
is "... the program goes on" "$(value 0)" $((before + 1))
clean "nobody was on the card with the borrower"
echo 3000 >/sys/module/gpushare/parameters/kernel_hold_max_ms

# ---- A mapping that is made while it is lent, of a kind that is known by now.

late

# ---- A fault that sleeps in the driver since before it was idle: its page comes late.

bell slow $m map $card , ready /tmp/slow.ready , until /tmp/slow.go , add 0 , add 0 , \
	ready /tmp/slow.done , until /tmp/slow.go2 , add 0
up slow
echo 600000 >/sys/module/fakegpu/parameters/fault_ms
echo 1 >$debug/clear
go slow
check "a fault is in the driver" wait_for 20 grep -q 'kind=fault' $log
kt holding h $h_nodes lend_after=20
kt wait h idle 10000 >/dev/null
refusal=$(kt lend h auto 2>&1)
kt holding h $h_nodes lend_after=1000000
case $refusal in
*"memory is busy"*) ok "... it is not lent meanwhile" ;;
*) not_ok "... it is not lent meanwhile" "$refusal" "$(kt state h)" ;;
esac
echo 0 >/sys/module/fakegpu/parameters/fault_ms
echo 1 >$debug/wake
check "the fault is over" wait_for 20 test -e /tmp/slow.done
here "... it is lent now" away
is "... the late page is taken away" "$(h mappings)" 1
: >/tmp/slow.go2
held 1 "... a store is held"
here "it goes on" back
here "... and ends well" ended slow

# ---- Debuggers.

bell dbg $m map $card , add 0 , ready /tmp/dbg.ready , until /tmp/dbg.go , add 0
up dbg
pid=$(bell_pid dbg)
at=$(sed -n 's/^map ok at=//p' /tmp/dbg.out)
check "a debugger reads the card's memory" command bell peek $pid $at
here "lent again" away
check_fails "... but not while it is lent: /proc/PID/mem" command bell peek $pid $at
check_fails "... nor does it write" command bell poke $pid $at
check_fails "... nor ptrace" command bell trace $pid $at
is "... which is nobody's return, from outside" "$(h state)" lent
check_fails "one in the member's container can't either" \
	inside $m bell peek $pid $at
is "... and is back" "$(h state)" returning
go dbg
held 1 "a store is held"
here "it goes on" back
here "... and ends well" ended dbg
is "... it arrived once, the debugger's never" "$(value 0)" $((before + 1))
clean "no debugger was on the card with the borrower"

# ---- Nothing else is touched.

container o
bell other $o map $card , add 0 , ready /tmp/other.ready , until /tmp/other.go , add 0 10 , \
	ready /tmp/other.done , until /tmp/other.end
bell mine $m map /dev/fakegpuctl , map /dev/fakegpu-uvm , anon , map $card , add - , \
	ready /tmp/mine.ready , until /tmp/mine.go , add 0 , add 1 , add 2 , load 2 , \
	ready /tmp/mine.done , until /tmp/mine.end
up other mine
here "lent again" away
is "... one mapping is taken away" "$(h mappings)" 1
go other mine
check "others go on with theirs" wait_for 20 test -e /tmp/other.done
check "... members with those of other nodes, and with memory" wait_for 20 test -e /tmp/mine.done
is "... of which nothing was lost" "$(grep value= /tmp/mine.out)" "load ok value=2"
is "... without a fault, or a return" "$(grep -c kind=fault $log) $(h state)" "0 lent"
: >/tmp/other.end
: >/tmp/mine.end
kt withdraw h
here "taken back" back
here "... they end well" ended other
here "... both" ended mine

# ---- Refused, and nothing is changed by that.

refused() {
	local name=$1 want=$2 why
	kt holding h $h_nodes lend_after=20
	kt wait h idle 10000 >/dev/null
	kt holding h $h_nodes lend_after=1000000
	why=$(kt lend h auto 2>&1)
	case $why in
	*"$want"*) ok "$name" ;;
	*) not_ok "$name" "$why" "$(kt state h)" ;;
	esac
	is "... and it stays as it was" "$(h state)" idle
}

bell shared - map $card , add 0 , ready /tmp/shared.ready0 , enter $m , ready /tmp/shared.ready , \
	until /tmp/shared.go
up shared
refused "a mapping that is somebody else's too is refused" "also somebody's who is none"
go shared
here "... gone, it is none" ended shared

echo 1 >/sys/module/fakegpu/parameters/shared_mapping
bell space $m map $card , add 0 , ready /tmp/space.ready , until /tmp/space.go , add 0
up space
refused "files that share an address space are refused" "share one address space"
go space
here "... nothing was taken away" ended space
echo 0 >/sys/module/fakegpu/parameters/shared_mapping

echo 1 >/sys/module/fakegpu/parameters/nofault
bell nofault $m map $card , add 0 , ready /tmp/nofault.ready , until /tmp/nofault.go , add 0
up nofault
refused "mappings without a fault function are refused" "no fault function"
kt hook /dev/fakegpu0 /dev/fakegpu1 driver=fake >/dev/null
here "... without the flag it is lent" away
is "... nothing is taken away" "$(h mappings)" 0
before=$(value 0)
go nofault
here "... a store is not held" ended nofault
is "... and not seen" "$(value 0) $(h state)" "$((before + 1)) lent"
kt withdraw h
here "taken back" back
echo 0 >/sys/module/fakegpu/parameters/nofault
kt hook /dev/fakegpu0 /dev/fakegpu1 driver=fake revocable >/dev/null

# ---- An idle one is asked: its next store is a touch, though nothing is lent.

# fault_ends_idle: did that end an idle time?
fault_ends_idle() {
	grep 'from=idle' $events | grep -q 'state=active.* cause=touch.* kind=fault'
}

bell idle $m map $card , add 0 , ready /tmp/idle.ready , until /tmp/idle.go , add 0 1000 , \
	ready /tmp/idle.ready2 , until /tmp/idle.go2 , add 0
up idle
kt holding h $h_nodes lend_after=20
kt wait h idle 10000 >/dev/null
kt holding h $h_nodes lend_after=1000000
before=$(value 0)
check "an idle holding is sampled" kt sample h auto
is "... one mapping is taken away, and it stays idle" "$(h mappings) $(h state)" "1 idle"
check "... once more" kt sample h auto
check_fails "... not by another number" kt sample h 1
: >/tmp/idle.go
up_again() {
	wait_for 20 test -e /tmp/idle.ready2
}
check "a store is not held" up_again
is "... all have arrived" "$(value 0)" $((before + 1000))
is "... and is a touch" "$(h state)" active
check "... that ends the idle time" wait_for 10 fault_ends_idle
is "... nothing was held" "$(h held)" 0
check_fails "one in use is not sampled" kt sample h auto
kt holding h $h_nodes lend_after=20
kt wait h idle 10000 >/dev/null
check "sampled again" kt sample h auto
here "... and lent" away
: >/tmp/idle.go2
held 1 "a store is held"
here "it goes on" back
here "... and ends well" ended idle
is "... it arrived once" "$(value 0)" $((before + 1))

kt hook /dev/fakegpu0 /dev/fakegpu1 driver=fake >/dev/null
kt holding h $h_nodes lend_after=20
kt wait h idle 10000 >/dev/null
kt holding h $h_nodes lend_after=1000000
is "without the flag nothing is sampled" "$(kt sample h auto 2>&1 | grep -o 'no node .*')" \
	"no node of the holding is revocable"
kt hook /dev/fakegpu0 /dev/fakegpu1 driver=fake revocable >/dev/null

# ---- Unloading lets them go; so does hold_max.

bell max $m map $card , add 0 , ready /tmp/max.ready , until /tmp/max.go , add 0
up max
here "lent again" away
kt holding h $h_nodes hold_max=$((3000 * slow))
go max
held 1 "one is held"
here "... until hold_max" ended max
is "... the borrower is in quarantine" "$(h state)" quarantine
end $b
wait_for 20 h_is state active
kt watch-del b
kt holding h $h_nodes hold_max=600000

bell last $m map $card , add 0 , ready /tmp/last.ready , until /tmp/last.go , add 0
up last
here "lent for the last time" away
go last
held 1 "one is held"
agent_down
check "the module is unloaded" rmmod gpushare
here "... and it goes on" ended last
is "... its store arrived" "$(value 0)" $((before + 1))
end $m $o $b
check "the driver is unloaded" rmmod fakegpu
plan
