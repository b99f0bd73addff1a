# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# Whose touch is it? Members of holdings in every shape, containers that are exempt, and those that
# only look so.
# seconds: 180
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/callers.inc

card=/dev/fakegpu0
events=/tmp/members.events
cg=/sys/fs/cgroup
cards || exit 1
kt events -b $events >/dev/null

kt holding h $nodes lend_after=60000 hold_max=12000
container main
container dind
INSIDE=$dind container inner
INSIDE=$inner container deep
container outer
INSIDE=$outer container nested
container other
container b
mkdir -p $cg/m/sub $cg/n

# ---- Counting.

counts() {
	kt dump | sed -n 's/^watch name=\([^ ]*\) .* touches=\([0-9]*\) .*/\1=\2/p'
}

# adds NAME WATCH N COMMAND...: the command adds N touches to that watch, and none to any other.
# Several in a row: the next one begins where the last one ended.
adds() {
	local name=$1 watch=$2 n=$3 out
	shift 3
	[ -n "$before" ] || before=$(counts)
	out=$("$@" 2>&1) || {
		not_ok "$name" "failed: $*" "$out"
		return
	}
	want=$(echo "$before" |
		awk -F= -v w="$watch" -v n="$n" '{ print $1 "=" $2 + ($1 == w ? n : 0) }')
	before=$(counts)
	is "$name" "$before" "$want"
}

check "the main container is a member" kt member main h "pid=$main"
check "so is a dind container" kt member dind h "pid=$dind"
check "and one that is named by its cgroup" kt member group h "cgroup=$cg/m"
check "and one inside a container that is none" kt member nested h "pid=$nested"

before=
adds "a call by main is main's" main 4 inside "$main" fgpu ping $card 3
adds "a call by dind is dind's" dind 4 inside "$dind" fgpu ping $card 3
is "deep is two PID namespaces below dind" $(($(level_of "$deep") - $(level_of "$dind"))) 2
adds "a call by deep, two namespaces below dind, is dind's" dind 4 \
	inside "$deep" fgpu ping $card 3
is "a process of the cgroup is in the host's PID namespace" \
	"$(in_cgroup $cg/m readlink /proc/self/ns/pid)" "$(readlink /proc/1/ns/pid)"
adds "a call from the cgroup is its" group 4 in_cgroup $cg/m fgpu ping $card 3
adds "so is one from a cgroup below" group 4 in_cgroup $cg/m/sub fgpu ping $card 3
adds "a call from a member inside an unwatched container is the member's" nested 4 \
	inside "$nested" fgpu ping $card 3

adds "the host's calls are nobody's" - 0 fgpu ping $card 3
adds "nor are another container's" - 0 inside "$other" fgpu ping $card 3
adds "nor another cgroup's" - 0 in_cgroup $cg/n fgpu ping $card 3
adds "nor those of the container around a member" - 0 inside "$outer" fgpu ping $card 3
adds "nor those of the cgroup around a member's" - 0 in_cgroup $cg fgpu ping $card 3

adds "open, ioctl and mmap are touches" main 3 inside "$main" fgpu ping $card , mmap $card
adds "on each node" main 6 inside "$main" \
	fgpu ping $card , ping /dev/fakegpuctl , ping /dev/fakegpu-uvm
adds "poll, read, write and close are none" main 1 inside "$main" \
	fgpu open $card , poll $card , read $card , write $card , close $card
is "the holding has the touches of all" "$(kt state h touches)" \
	"$(counts | awk -F= '{ n += $2 } END { print n }')"

# in_use: h is ACTIVE and stays so. resting: it gets idle soon.
in_use() {
	before=
	kt holding h $nodes lend_after=60000
	inside "$dind" fgpu ping $card >/dev/null
	wait_for 20 state_is h active
}

resting() {
	kt holding h $nodes lend_after=50
}

# ---- Each of them is held, others pass.

agent_up
resting

# begins HOLDING COUNT COMMAND...: a caller in the background; waits until so many are held. Its
# pid is $caller, what it says in $said.
said=/tmp/members.out
begins() {
	local holding=$1 count=$2
	shift 2
	clear_log
	"$@" >$said 2>&1 &
	caller=$!
	wait_for 10 held_is "$holding" "$count" && [ "$(grep -c . $log)" = 0 ]
}

# goes_on: it ends well, and the card saw it.
goes_on() {
	wait "$caller" && grep -q 'name=PING .*ret=0' $log
}

# is_held NAME WATCH COMMAND...: the caller is held from its touch to the release; the return is
# that watch's doing.
is_held() {
	local name=$1 watch=$2
	shift 2
	lend_out h
	no_events
	here "$name is held" begins h 1 "$@"
	is "... the return is its doing" \
		"$(event event=state name=h state=returning | value watch)" "$watch"
	check "... it goes on after the release" taken_back h && here "... and is served" goes_on
}

is_held "main" main inside "$main" fgpu ping $card
is_held "deep, two namespaces below dind," dind inside "$deep" fgpu ping $card
is_held "a process of the cgroup" group in_cgroup $cg/m fgpu ping $card
is_held "one of a cgroup below" group in_cgroup $cg/m/sub fgpu ping $card

# passes NAME COMMAND...: it goes through while h is lent, which h stays.
passes() {
	local name=$1
	shift
	check "$name" "$@" && is "... and h stays lent" "$(kt state h state)" lent
}

callers others "$main" calls=others threads=4
ready others
lend_out h
passes "the host passes" fgpu ping $card
passes "another container passes" inside "$other" fgpu ping $card
passes "another cgroup passes" in_cgroup $cg/n fgpu ping $card
passes "the container around a member passes" inside "$outer" fgpu ping $card
go others
here "a member's poll, read, write and close pass" ended others &&
	is "... and h stays lent" "$(kt state h state)" lent

# ---- Events say who it was. This caller is number 1 in a namespace that is two below dind's.

no_events
here "deeper still, a process that is number 1 is held" begins h 1 \
	nsenter -t "$inner" -p unshare -p -f fgpu ping $card
e=$(event event=state name=h state=returning)
pid=$(echo "$e" | value pid)
is "the event has the host's pid" "$(cat "/proc/$pid/comm" 2>&1)" fgpu
is "... of one that is number 1 in its namespace" \
	"$(sed -n 's/^NSpid:.*\t//p' "/proc/$pid/status")" 1
is "... two below dind's" $(($(level_of "$pid") - $(level_of "$dind"))) 2
is "... its start time" "$(echo "$e" | value start)" "$(start_of "$pid")"
is "... its PID namespace" "$(echo "$e" | value pidns)" "$(pidns_of "$pid")"
is "... the watch, the node and the kind" \
	"$(echo "$e" | value watch) $(echo "$e" | value dev) $(echo "$e" | value kind)" \
	"dind $(kt node $card dev) open"
check "it goes on after the release" taken_back h && here "... and is served" goes_on

# ---- Two holdings of one member.

card1=/dev/fakegpu1
container two
check "a second holding" kt holding g /dev/fakegpuctl $card1 lend_after=50 hold_max=12000
check "a member of two holdings" kt member two h,g "pid=$two"
kt wait h idle 10000 >/dev/null
kt wait g idle 10000 >/dev/null
no_events
inside "$two" fgpu ping $card >/dev/null
is "its touch is h's" "$(event event=state name=h from=idle | value watch)" two
is "... and g's" "$(event event=state name=g from=idle | value watch)" two
lend_out g h
here "its call is held by both" begins h 1 inside "$two" fgpu ping $card
is "... which both return" "$(kt state g state) $(kt state h state)" "returning returning"
kt release h auto
check "released by one, it is held by the other" wait_for 10 held_is g 1
is "... and has not reached the card" "$(grep -c . $log)" 0
check "released by both, it goes on" taken_back g && here "... and is served" goes_on
kt wait h idle 10000 >/dev/null
kt wait g idle 10000 >/dev/null
no_events
inside "$main" fgpu ping $card >/dev/null
is "the touch of another member of h is h's" \
	"$(event event=state name=h from=idle | value watch)" main
is "... and not g's" "$(grep -c "name=g from=idle" $events)" 0
kt watch-del two

# ---- A late member, in every state.

# joins NAME: `late` becomes a member of h.
joins() {
	check "a member joins while h is $(kt state h state)" kt member late h "pid=$late"
}

container late
in_use
joins
before=
adds "... its calls count" late 4 inside "$late" fgpu ping $card 3
kt watch-del late

resting
kt wait h idle 10000 >/dev/null
joins
no_events
inside "$late" fgpu ping $card >/dev/null
is "... its touch ends the idleness" "$(event event=state name=h from=idle | value watch)" late
kt watch-del late
kt wait h idle 10000 >/dev/null
seq=$(kt state h seq)
joins
check "... joining is no touch: h is lent by the same number" kt lend h "$seq"
kt watch-del late
is "... nor is leaving" "$(kt state h state)" lent

joins
kt borrower b h "pid=$b"
no_events
here "... its call is held" begins h 1 inside "$late" fgpu ping $card
is "... the return is its doing" "$(event event=state name=h state=returning | value watch)" late
check "... it goes on after the release" taken_back h && here "... and is served" goes_on
kt watch-del late

lend_out h
kt withdraw h
round=$(kt state h seq)
joins
here "... its call is held too" begins h 1 inside "$late" fgpu ping $card
is "... by the same return" "$(kt state h seq)" "$round"
check "... it goes on after the release" taken_back h && here "... and is served" goes_on
kt watch-del late

check "a node loses its hooks" kt unhook /dev/fakegpu-uvm
joins
before=
adds "... its calls pass and count" late 4 inside "$late" fgpu ping $card 3
no_events
kt hook /dev/fakegpu-uvm >/dev/null
is "... and h is watched again" "$(event event=state name=h from=unknown | value state)" active
kt watch-del late

kt holding h $nodes hold_max=100
lend_out h
inside "$b" fgpu hold $card >/tmp/hold.out &
wait_for 20 grep -q ok /tmp/hold.out
kt withdraw h
kt wait h quarantine 10000 >/dev/null
joins
no_events
check "... its calls pass" inside "$late" fgpu ping $card
end "$b"
is "... until the borrower is gone" \
	"$(event event=state from=quarantine | value state)" active
kt watch-del late b
container b
kt holding h $nodes hold_max=12000

kt wait g idle 10000 >/dev/null
seq=$(kt state g seq)
check "a member with touches joins a second holding that is idle" kt member nested h,g "pid=$nested"
check "... they are not its: it is lent by the same number" kt lend g "$seq"
kt borrower b g "pid=$b"
check "a member joins a second holding that is lent" kt member main h,g "pid=$main"
here "... where its call is held" begins g 1 inside "$main" fgpu ping $card
check "... it goes on after the release" taken_back g && here "... and is served" goes_on

# ---- A restart replaces a member.

# restarts: main gets a new container.
restarts() {
	end "$main"
	container main
	check_fails "while h is $(kt state h state) main restarts: one watch is not two" \
		kt member main h "pid=$main"
	kt watch-del main
	check "... it is replaced" kt member main h "pid=$main"
}

in_use
restarts
before=
adds "... the new one counts" main 4 inside "$main" fgpu ping $card 3
resting
kt wait h idle 10000 >/dev/null
seq=$(kt state h seq)
restarts
check "... which is no touch: h is lent by the same number" kt lend h "$seq"
kt borrower b h "pid=$b"
restarts
here "... the new one is held" begins h 1 inside "$main" fgpu ping $card
old=$caller
restarts
check "... the old one's call ended with it" wait_for 10 held_is h 0
here "... the new one is held too" begins h 1 inside "$main" fgpu ping $card
check "... it goes on after the release" taken_back h && here "... and is served" goes_on
is "... alone" "$(grep -c PING $log)" 1
wait "$old"

# ---- Refused, and nothing changed.

# refused NAME WORDS COMMAND...: an error with these words; the dump is the same after it.
refused() {
	local name=$1 words=$2 before out
	shift 2
	before=$(kt dump | sed 's/ last_touch=[0-9]*//')
	out=$("$@" 2>&1)
	if [ $? = 1 ] && echo "$out" | grep -q "$words" &&
		[ "$(kt dump | sed 's/ last_touch=[0-9]*//')" = "$before" ]; then
		ok "$name"
	else
		not_ok "$name" "$out" "before:" "$before" "after:" "$(kt dump)"
	fi
}

lend_out h
refused "a member is no borrower at the same time" "covers that container" \
	kt borrower x h "pid=$main"
refused "... nor under its own name" "another role" kt borrower main h "pid=$main"
refused "... nor by the cgroup that made it a member" "covers that container" \
	kt borrower x h "cgroup=$cg/m"
refused "a borrower is no member at the same time" "covers that container" \
	kt member x h "pid=$b"
refused "... nor under its own name" "another role" kt member b h "pid=$b"
refused "... nor exempt" "covers that container" kt exempt x "pid=$b"
kt watch-del b
kt withdraw h
kt release h auto
in_use

refused "the host's PID namespace is nobody's container" "host's PID namespace" \
	kt member x h pid=$$
refused "nor is the root cgroup" "root cgroup" kt member x h "cgroup=$cg"
kt watch-del main
refused "a process with another start time is another process" "start time" \
	kt member main h "pid=$main" "start=$(($(start_of "$main") - 1))"
container gone
was=$(start_of "$gone")
end "$gone"
refused "a process that is gone" "no such process" kt member x h "pid=$gone" "start=$was"
echo $((gone - 1)) >/proc/sys/kernel/ns_last_pid
sleep 1000 &
is "its number is used again" $! "$gone"
refused "... by another process, which is not the one meant" "start time" \
	kt member x h "pid=$gone" "start=$was"
kill $!
check "the right start time is accepted" kt member main h "pid=$main" "start=$(start_of "$main")"

# ---- Exempt.

INSIDE=$main container monitor
check "a monitor inside a member is exempt" kt exempt monitor "pid=$monitor"
mkdir $cg/m/monitor
check "... so is one in a cgroup below a member's" kt exempt monitor2 "cgroup=$cg/m/monitor"
before=
adds "its calls are nobody's" - 0 inside "$monitor" fgpu ping $card 3
adds "... nor the other's" - 0 in_cgroup $cg/m/monitor fgpu ping $card 3
adds "the member's own still count" main 4 inside "$main" fgpu ping $card 3
# Programs of the same name are not exempt.
cp "$(command -v fgpu)" /tmp/monitor
adds "a member's program is no monitor by its name" main 4 \
	inside "$main" /tmp/monitor ping $card 3
resting

lend_out h
passes "a monitor passes while the card is lent" inside "$monitor" fgpu ping $card
passes "... so does the other" in_cgroup $cg/m/monitor fgpu ping $card
INSIDE=$b container spy
check "a container inside the borrower is called exempt" kt exempt spy "pid=$spy"
inside "$b" /tmp/monitor hold $card >/tmp/hold.out &
inside "$spy" /tmp/monitor hold $card >/tmp/spy.out &
wait_for 20 grep -q ok /tmp/hold.out
wait_for 20 grep -q ok /tmp/spy.out
is "the borrower's files are counted, those of the monitors' look-alikes too" \
	"$(kt state h files) $(kt watch b files)" "2 2"
here "main is back and held" begins h 1 inside "$main" fgpu ping $card
check "... while the monitor passes" inside "$monitor" fgpu ping $card
eio="failed errno=EIO"
for who in "$b" "$spy"; do
	is "a borrower with the monitor's name is refused" \
		"$(inside "$who" /tmp/monitor ping $card 2>&1 | grep -o "$eio")" "$eio"
done
end "$b"
wait_for 20 test "$(kt state h files)" = 0
check "main goes on after the release" taken_back h && here "... and is served" goes_on
kt watch-del spy
end "$spy"
container b

# ---- A PID namespace that two containers share: by cgroup only.

mkdir $cg/s1 $cg/s2
container shared
check "one of two containers that share a PID namespace" kt member s1 h "cgroup=$cg/s1"
in_use
adds "its calls are its own" s1 4 in_cgroup $cg/s1 nsenter -t "$shared" -p fgpu ping $card 3
adds "those of the other are nobody's" - 0 \
	in_cgroup $cg/s2 nsenter -t "$shared" -p fgpu ping $card 3
resting
lend_out h
passes "the other passes while the card is lent" \
	in_cgroup $cg/s2 nsenter -t "$shared" -p fgpu ping $card
here "its own call is held" begins h 1 \
	in_cgroup $cg/s1 nsenter -t "$shared" -p fgpu ping $card
check "it goes on after the release" taken_back h && here "... and is served" goes_on

# ---- One container by its namespace and by its cgroup: nobody is a member and a borrower.

mkdir $cg/both
container both
echo "$both" >$cg/both/cgroup.procs
check "a container is a member by its namespace" kt member both h "pid=$both"
resting
lent h
check_fails "... it is no borrower by its cgroup" kt borrower x h "cgroup=$cg/both"
check_fails "... nor by the one around that" kt borrower x h "cgroup=$cg"
check "... while another cgroup is one" kt borrower x h "cgroup=$cg/s2"
kt watch-del x both
check "a container is a borrower by its cgroup" kt borrower both h "cgroup=$cg/both"
check_fails "... it is no member by its namespace" kt member x h "pid=$both"
check "... but may be called exempt by it" kt exempt x "pid=$both"
kt watch-del x both
is "... and h stays lent" "$(kt state h state)" lent
check "a cgroup that is not there (yet) is a member" kt member x h id=999999999
check "... and a borrower, killed in vain" kt borrower y h id=999999998 kill
check "... the return goes on" kt withdraw h
check "... without it" kt release h auto
is "... nobody's calls are its" "$(kt watch x touches) $(kt watch y revoked)" "0 1"
kt watch-del x y

agent_down
end "$both" "$main" "$dind" "$inner" "$deep" "$outer" "$nested" "$other" "$two" "$late" "$monitor" \
	"$shared" "$b"
check "all is taken away" no_cards
plan
