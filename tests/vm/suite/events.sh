# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Listeners: what they hear, what they miss, how they catch up, and that nobody waits for them.
# seconds: 180
# shellcheck disable=SC2086,SC2154 # nodes is a list; container sets variables
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc

: "${EVENTS:=10000}"

# ---- A module that goes and comes.

insmod /vm/modules/fakegpu.ko
insmod /vm/modules/gpushare.ko
evcheck reload >/tmp/reload 2>&1 &
reload=$!
wait_for 10 grep -q ready /tmp/reload
rmmod gpushare
sleep 0.3
insmod /vm/modules/gpushare.ko
wait $reload
results cat /tmp/reload

# ---- Many events.

kt hook $nodes >/dev/null
results evcheck flood /dev/fakegpu0 "$EVENTS"
results evcheck overflow /dev/fakegpu0 300

# ---- A listener that does not read holds nobody up: not a touch, not a release, not a close.

kt events -b buffer=1 >/tmp/deaf
deaf=$(cat /tmp/deaf)
kill -STOP "$deaf"
story "the whole story with a listener that does not read"
container user
kt holding h $nodes lend_after=50 hold_max=60000
kt member m h pid=$user
check "thousands of touches" inside $user fgpu ping /dev/fakegpu0 3000
is "all of them counted" "$(kt watch m touches)" 3001
# Each round of this is two events or more, and its buffer has room for a few.
rounds() {
	local i=0
	agent_up
	while [ $i -lt 20 ]; do
		lent h && inside $user fgpu ping /dev/fakegpu0 || return 1
		i=$((i + 1))
	done
	agent_down
}
check "idle, lent and back, 20 times" rounds
kill -CONT "$deaf"
kill -9 "$deaf"

# ---- In order, with what each event must have.

agent_up
kt events -b /tmp/events >/tmp/pid
inside $user fgpu ping /dev/fakegpu0
lent h
container other
kt borrower b h pid=$other kill
inside $other fgpu hold /dev/fakegpu0 &
wait_for 10 sh -c '[ "$(kt state h files)" = 1 ]'
inside $user fgpu ping /dev/fakegpu0 &
ping=$!
kt wait h returning 10000 >/dev/null
wait_for 10 kt release h auto
wait $ping
wait_for 10 grep -q 'event=released' /tmp/events
kill -9 "$(cat /tmp/pid)"

# Numbers that grow by one.
in_order() {
	sed -n 's/^event=[a-z]* seq=\([0-9]*\) .*/\1/p' /tmp/events | awk '
		NR > 1 && $1 != last + 1 { print last " then " $1; bad = 1 }
		{ last = $1 }
		END { exit bad || NR < 6 }'
}
check "numbers grow by one" in_order

# follows REGEX...: each in a line below the one before.
follows() {
	local line=0 next
	for regex; do
		next=$(sed -n "$((line + 1)),\$p" /tmp/events | grep -nE "$regex" | head -n 1)
		if [ -z "$next" ]; then
			echo "no '$regex' below line $line:"
			cat /tmp/events
			return 1
		fi
		line=$((line + ${next%%:*}))
	done
}
check "idle, lent, touched, revoked, drained, released" follows \
	'name=h .*state=idle cause=silence' \
	'name=h .*state=lent cause=lend' \
	"name=h .*from=lent state=returning cause=touch.* watch=m .*pid=[0-9]+ start=[0-9]+" \
	'event=revoked .*name=h .*watch=b .*killed=1' \
	'event=drained .*name=h' \
	'name=h .*from=returning state=active cause=release' \
	'event=released .*name=h .*held=1 '
is "the caller's PID namespace is the container's" \
	"$(sed -n 's/.*state=returning.* pidns=\([0-9]*\).*/\1/p' /tmp/events)" \
	"$(readlink /proc/$user/ns/pid_for_children | tr -dc 0-9)"

agent_down
end $user
kt watch-del m b && kt holding-del h
check "the module unloads" rmmod gpushare
rmmod fakegpu

plan
