# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# A machine with cgroup v1: members and monitors by the devices hierarchy, and its freezer.
# boot: --cgroup v1
# seconds: 120
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/callers.inc

card=/dev/fakegpu0
cg=/sys/fs/cgroup
dev=$cg/devices
freezer=$cg/freezer
cards || exit 1
kt holding h $nodes lend_after=60000 hold_max=30000
mkdir -p $dev/m/a $dev/m/b $dev/m/monitor $dev/n $freezer/f $freezer/f2

# ---- Whose touch is it?

check "a cgroup of the devices hierarchy is a member" kt member m h "cgroup=$dev/m"
check_fails "one of another hierarchy can't be" kt member x h "cgroup=$freezer/f"
check_fails "nor can the root" kt member x h "cgroup=$dev"
check "a cgroup below it is exempt" kt exempt monitor "cgroup=$dev/m/monitor"

# touches: of the member, when the command is over.
touches() {
	"$@" >/dev/null && kt watch m touches
}

is "its calls count" "$(touches in_cgroup $dev/m fgpu ping $card 3)" 4
is "so do those of a cgroup below" "$(touches in_cgroup $dev/m/a fgpu ping $card 3)" 8
is "the host's do not" "$(touches fgpu ping $card)" 8
is "nor another cgroup's" "$(touches in_cgroup $dev/n fgpu ping $card)" 8
is "nor the monitor's" "$(touches in_cgroup $dev/m/monitor fgpu ping $card)" 8
# Each hierarchy has numbers of its own: two cgroups with the same one. One without controllers has
# other files than one of devices, so that among enough of them two meet.
twin=$cg/twin
mkdir $twin
check "there is a hierarchy without controllers" mount -t cgroup -o none,name=twin twin $twin
i=0
while [ $i -lt 40 ]; do
	i=$((i + 1))
	mkdir $dev/n/$i $twin/$i
done
twins=$(stat -c "%i %n" $dev/n/[0-9]* $twin/[0-9]* | sort -n |
	awk '$1 == number && ($2 ~ /devices/) != (path ~ /devices/) { print path, $2; exit }
		{ number = $1; path = $2 }')
[ "${twins#"$dev"}" != "$twins" ] || twins="${twins#* } ${twins% *}"
check "a cgroup with the number of another hierarchy's is a member ($twins)" \
	kt member twin h "cgroup=${twins%% *}"
in_cgroup "${twins#* }" fgpu ping $card >/dev/null
is "... the other's calls are not its" "$(kt watch twin touches)" 0
in_cgroup "${twins%% *}" fgpu ping $card >/dev/null
is "... its own are" "$(kt watch twin touches)" 2
kt watch-del twin

# ---- Held, and frozen.

container b
agent_up
callers frozen $dev/m token=0 threads=8 calls=ioctl,open,creat,nonblock
callers frozen2 $dev/m/a token=100 threads=8 calls=ioctl,open,creat,nonblock
callers threads $dev/m token=200 threads=4 calls=ioctl,open,open,ioctl cgroups=$dev/m/a,$dev/m/b
callers mixed - token=300 threads=4 calls=ioctl,open,open,ioctl cgroups=$dev/m,$dev/n
callers signals $dev/m/b token=400 threads=8 calls=ioctl,open signals=20 sa=none
ready frozen frozen2 threads mixed signals
pid_of frozen >$freezer/f/cgroup.procs
pid_of frozen2 >$freezer/f2/cgroup.procs
kt holding h $nodes lend_after=50
lend_out h
check "the host passes while it is lent" fgpu ping $card
check "so does the monitor" in_cgroup $dev/m/monitor fgpu ping $card
is "... and it stays lent" "$(kt state h state)" lent
clear_log
go frozen frozen2 threads mixed
check "all callers of the cgroup are held, those in two cgroups below it too" \
	wait_for 30 held_is h 22
check "of a process with threads outside of it, those are served" served 301 1
check "... both" served 303 1
check "... and the others are not" served 300 1 0
is "the card has seen only them" "$(grep -c WORK_ECHO $log)" 2

# freezer_is FOLDER STATE
freezer_is() {
	[ "$(cat "$1/freezer.state")" = "$2" ]
}

echo FROZEN >$freezer/f/freezer.state
check "the freezer of cgroup v1 freezes callers who are held" \
	wait_for 20 freezer_is $freezer/f FROZEN
echo THAWED >$freezer/f/freezer.state
check "thawed, they are held again" wait_for 30 held_is h 22
echo FROZEN >$freezer/f2/freezer.state
check "others stay frozen" wait_for 20 freezer_is $freezer/f2 FROZEN
go signals
sleep 1
is "nobody has reached the card" "$(grep -c WORK_ECHO $log)" 2
check "the return is released" taken_back h
here "those who were frozen go on" ended frozen && check "... and were served once" served 0 8
check "those who still are have not been served" served 100 8 0
echo THAWED >$freezer/f2/freezer.state
here "thawed, they go on" ended frozen2 && check "... and were served once" served 100 8
here "threads in different cgroups go on" ended threads &&
	check "... and were served once" served 200 4
here "so do those of whom one half was held" ended mixed &&
	check "... and were served once" served 300 4
here "so do those with signals" ended signals && check "... and were served once" served 400 8
check "whose handlers ran while they were held ($(said signals least) times at least)" \
	test "$(said signals least)" -ge 3

agent_down
end "$b"
check "all is taken away" no_cards
plan
