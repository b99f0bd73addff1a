# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The user-space side of the netlink family on a real kernel: gpusharectl kmod, lost events,
# reloads, and who is let in. (kt, the scripts' own client, is made of the same library.)
# seconds: 180
# shellcheck disable=SC2086,SC2154 # words without blanks; what containers.inc sets
. /vm/suite/lib.sh
. /vm/suite/containers.inc

# out COMMAND...: its output in $out, its status in $status.
out() {
	out=$("$@" 2>&1)
	status=$?
}

# has NAME TEXT PATTERN...: is each extended regular expression found in a line of the text?
has() {
	local name=$1 text=$2 pattern
	shift 2
	for pattern; do
		if ! echo "$text" | grep -qE -- "$pattern"; then
			not_ok "$name" "no line: $pattern" "$text"
			return 1
		fi
	done
	ok "$name"
}

# refuses NAME PATTERN COMMAND...: it fails with 1, and says that.
refuses() {
	local name=$1 pattern=$2
	shift 2
	out "$@"
	if [ $status = 1 ]; then
		has "$name" "$out" "$pattern"
	else
		not_ok "$name" "status $status" "$out"
	fi
}

# there FILE PATTERN: waits for a line.
there() {
	wait_for 20 grep -qE -- "$2" "$1" || not_ok "a line '$2' comes" "$(cat "$1")"
}

# ended PID [SIGNAL]: its status in $status. (A shell lets what it puts into the background ignore
# SIGINT.)
ended() {
	[ -z "${2:-}" ] || kill "-$2" "$1"
	wait "$1" 2>/dev/null
	status=$?
}

# listeners N: waits until so many more are in the module's group than at the beginning, when there
# may be some that another script has left. (Besides that they are in the controller's, number 16;
# the kernel shows the first 32.)
listeners() {
	wait_for 20 listening "$1" || not_ok "$1 listeners come" "$(cat /proc/net/netlink)"
}

all_listeners() {
	awk '$2 == 16 && $4 !~ /^0000[08]000$/' /proc/net/netlink | wc -l
}
others=$(all_listeners)
listening() {
	[ "$(all_listeners)" = $(($1 + others)) ]
}

# watching OPTIONS...: starts gpusharectl kmod watch, sets watch to its pid; it says things in
# /tmp/watch. Comes back when it is at work.
watching() {
	rm -f /tmp/watch
	gpusharectl kmod watch "$@" >/tmp/watch 2>&1 &
	watch=$!
	there /tmp/watch 'watching as '
}

everything() {
	kt dump | sed 's/ touches=.*//'
}

# ---- Without the module.
refuses "status says that the module is not loaded" "is not loaded \(modprobe gpushare\)$" \
	gpusharectl kmod status
refuses "so does kt" "^kt: ENOENT: kernel module gpushare is not loaded$" kt dump
kt events -b /tmp/early >/tmp/pid
insmod /vm/modules/gpushare.ko
there /tmp/early '^event=loaded$'
is "a listener that was there before hears of the module" "$(cat /tmp/early)" "event=loaded"
kill "$(cat /tmp/pid)"
out gpusharectl kmod status
has "status of an empty module" "$out" '^gpushare.ko [0-9.]+, ABI 1$' '^agent: none' \
	'^no device node is hooked$' '^there is no holding$' '^no container is watched$'
rmmod gpushare

# ---- What status shows.
cards
container holder
agent_up
kt holding h $nodes lend_after=300 hold_max=20000 settle=0
kt member m h pid="$holder"
inside "$holder" fgpu ping /dev/fakegpu0 7 >/dev/null
out gpusharectl kmod status
has "status has nodes, holdings and watches" "$out" '^agent: alive, netlink port [0-9]+' \
	'^/dev/fakegpu0 +[0-9]+:0 +fake +fakegpu +open,release,ioctl,compat-ioctl,mmap +8$' \
	'^h +(active|idle) .* 8 +300ms +20s +0 +0 +0 +/dev/fakegpuctl,/dev/fakegpu0,' \
	"^m +member +pid $holder +h +8 +0 +-$"
out gpusharectl kmod status -o json
has "and so has JSON" "$out" '"alive": true' '"lend_after_ms": 300' '"name": "h"' \
	"\"pid\": $holder" '":0": 8|[0-9]:0": 8'
is "kt agrees about the touches" "$(kt state h touches) $(kt watch m touches)" "8 8"

# ---- What lend, touch and release tell.
gpusharectl kmod events >/tmp/events &
events=$!
gpusharectl kmod events -o json -n 3 >/tmp/three &
three=$!
(umask 077 && mkdir -p /run/gpushare/containers)
for id in m b; do
	echo "{\"v\":1,\"id\":\"$id\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{},
		\"identity\":{\"namespace\":\"team\",\"pod\":\"pod-$id\",\"container\":\"main\"}}" \
		>/run/gpushare/containers/$id.json
done
gpusharectl events >/tmp/named &
named=$!
gpusharectl events -o json >/tmp/named-json &
named_json=$!
listeners 5 # with the agent
lent h
container borrower
kt borrower b h pid="$borrower" kill
inside "$borrower" fgpu hold /dev/fakegpu0 >/dev/null 2>&1 &
wait_for 20 sh -c '[ "$(kt state h files)" = 1 ]'
inside "$holder" fgpu ping /dev/fakegpu0 >/dev/null &
returner=$!
there /tmp/events 'last file of its borrowers'
kt release h auto
ended $returner
is "a held caller goes on" $status 0
there /tmp/events 'returning -> active'
has "events are told in sentences" "$(cat /tmp/events)" \
	'^[0-9:]{8} holding h: idle -> lending \(lend\)$' \
	'^[0-9:]{8} holding h: lending -> lent' \
	'^[0-9:]{8} holding h: lent -> returning \(touch: open of /dev/fakegpu0 by pid [0-9]+,' \
	'^[0-9:]{8} borrower b may touch nothing any more' \
	'^[0-9:]{8} holding h: returning -> active \(release\)$' \
	'^[0-9:]{8} holding h: 1 held call goes on, the longest after '
there /tmp/named 'returning -> active'
has "and with the names of containers" "$(cat /tmp/named)" \
	'holding h: lent -> returning \(touch: open of .* by pid [0-9]+ of team/pod-m/main\)$' \
	'^[0-9:]{8} borrower team/pod-b/main may touch nothing any more'
ended $named TERM
there /tmp/named-json '"from":"returning"'
ended $named_json TERM
has "also as JSON" "$(cat /tmp/named-json)" \
	'^\{"event":"state",.*"watch":"m","container":"team/pod-m/main","from":"lent",'
rm -r /run/gpushare
ended $three
is "events -n ends by itself" "$status $(wc -l </tmp/three)" "0 3"
has "as JSON, one a line" "$(cat /tmp/three)" \
	'^\{"event":"state","seq":[0-9]+,.*"holding":"h","from":"idle","state":"lending".*\}$'
ended $events TERM
kt watch-del b
end "$borrower"
refuses "a release that nobody waits for has words" '^kt: [A-Z]+: the module refused: .' \
	kt release h 1

# ---- Lost events: a buffer for a handful, and thousands of agents that come and go.
agent_down
kt events -b /tmp/lost buffer=4096 dump >/tmp/pid
there /tmp/lost '^watch name=m '
kill -STOP "$(cat /tmp/pid)"
# A hundred at a time, so that the module has places for their events.
kt events -b /tmp/all >/tmp/all.pid
agents() {
	local i=0
	while [ $i -lt 50 ]; do
		i=$((i + 1))
		kt beat 100 && wait_for 30 newest_is_in_all || return 1
	done
}
newest_is_in_all() {
	tail -n 1 /tmp/all | grep -q "seq=$(kt status event_seq) "
}
check "5,000 agents come and go" agents
kill "$(cat /tmp/all.pid)"
kill -CONT "$(cat /tmp/pid)"
there /tmp/lost '^event=lost$'
agent_up
there /tmp/lost '^event=agent .*alive=1'
# Until the newest event is there.
wait_for 30 sh -c 'grep -q "seq=$(kt status event_seq) " /tmp/lost'
check "the listener is told that events were lost" grep -qx event=lost /tmp/lost
check "far fewer than 10,000 arrived" [ "$(grep -c alive= /tmp/lost)" -lt 5000 ]
is "and the dump that follows is the module's state" \
	"$(sed -n '/^event=lost$/,$p' /tmp/lost | grep '^holding ' | tail -n 1 | cut -d' ' -f2,3)" \
	"$(kt dump | grep '^holding ' | cut -d' ' -f2,3)"
is "the module itself lost none for want of room" "$(kt status events_lost)" 0
kill "$(cat /tmp/pid)"

# ---- Unloaded and loaded under those who listen.
rm /tmp/events
gpusharectl kmod events >/tmp/events &
events=$!
kt events -b /tmp/late >/tmp/pid
listeners 3 # with the agent
agent_down
kt watch-del m
kt holding-del h
rmmod gpushare
there /tmp/events 'was unloaded$'
insmod /vm/modules/gpushare.ko
there /tmp/events 'was loaded$'
kt hook /dev/fakegpu0 >/dev/null
there /tmp/events '/dev/fakegpu0 is hooked$'
has "events goes on with the next module" "$(cat /tmp/events)" 'the module was unloaded$' \
	'the module was loaded$' '/dev/fakegpu0 is hooked$'
is "and so does a listener of the library" \
	"$(grep -E 'loaded|hooked' /tmp/late | cut -d' ' -f1 | uniq | paste -sd' ')" \
	"event=unhooked event=unloaded event=loaded event=hooked"
ended $events TERM
kill "$(cat /tmp/pid)"

# ---- gpusharectl kmod watch.
before=$(everything)
watching /dev/fakegpuctl /dev/fakegpu0 /dev/fakegpu0 /dev/fakegpu-uvm --pid "$holder" \
	--lend-after 700ms
inside "$holder" fgpu ping /dev/fakegpu0 3 , ping /dev/fakegpuctl 1 >/dev/null
there /tmp/watch 'active -> idle'
there /tmp/watch 'fakegpuctl .*(2)'
has "watch tells touches and states" "$(cat /tmp/watch)" \
	'touched: .*/dev/fakegpuctl \+[12] \(2\)' 'touched: .*/dev/fakegpu0 \+[1-4] \(4\)' \
	'holding ctl-[0-9]+: active -> idle \(silence\)$'
is "its nodes are hooked, each once" "$(kt dump | grep -c '^node ')" 3
ended $watch INT
is "^C ends it well" $status 0
is "what it made is gone, what was there before stays" "$(everything)" "$before"

watching /dev/fakegpu1 --pid "$holder" --name mine
refuses "a name that exists is not taken" 'there is a holding or a watch mine' \
	gpusharectl kmod watch /dev/fakegpu0 --pid "$holder" --name mine
check "nor taken away" kt state mine
kt holding other /dev/fakegpu1
ended $watch TERM
is "a hook that somebody else needs by now stays" "$(kt node /dev/fakegpu1 dev | wc -l)" 1
kt holding-del other
kt unhook /dev/fakegpu1
is "the rest is gone" "$(everything)" "$before"

container gone
watching /dev/fakegpu1 --pid "$gone"
end "$gone"
ended $watch
has "it ends with the process" "$(cat /tmp/watch)" "process $gone is gone$"
is "which is no failure" $status 0
is "and leaves nothing" "$(everything)" "$before"

refuses "a process of the host is refused, and nothing stays" \
	'watch the container: the module refused' \
	gpusharectl kmod watch /dev/fakegpu1 --pid $$
is "nothing at all" "$(everything)" "$before"
refuses "a file that is no device" '/etc/passwd is no character device' \
	gpusharectl kmod watch /dev/fakegpu1 /etc/passwd --pid "$holder"
refuses "a driver that can't be hooked" 'hook /dev/null: the module refused' \
	gpusharectl kmod watch /dev/fakegpu1 /dev/null --pid "$holder"
is "and what was hooked before that is not any more" "$(everything)" "$before"

mkdir /sys/fs/cgroup/box
watching /dev/fakegpu1 --cgroup /sys/fs/cgroup/box --name box
sh -c 'echo $$ >/sys/fs/cgroup/box/cgroup.procs; exec fgpu ping /dev/fakegpu1 5' >/dev/null
fgpu ping /dev/fakegpu1 9 >/dev/null
is "a cgroup's touches are counted, others are not" "$(kt watch box touches)" 6
rmmod gpushare
ended $watch
has "unloaded under it, it ends and says so" "$(cat /tmp/watch)" 'the module was unloaded$'
is "which is a failure" $status 1
rmdir /sys/fs/cgroup/box

# ---- Who is let in.
insmod /vm/modules/gpushare.ko
refuses "not from a container's PID namespace" 'refused: not from this PID namespace' \
	inside "$holder" gpusharectl kmod status
refuses "not from another network namespace" 'refused: not from this network namespace' \
	unshare -n gpusharectl kmod status
refuses "not from another user namespace" 'CAP_NET_ADMIN in the initial user namespace' \
	unshare -U -r gpusharectl kmod status
refuses "not without CAP_NET_ADMIN" 'CAP_NET_ADMIN in the initial user namespace' kt nocaps status
refuses "the events neither" 'CAP_NET_ADMIN in the initial user namespace' kt nocaps events
refuses "nor from another network namespace" 'not from this network namespace' \
	unshare -n kt events
is "and nothing of that changed anything" "$(everything)" ""

end "$holder"
no_cards
plan
