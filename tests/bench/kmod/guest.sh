# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Measures inside the guest: prints "NAME VALUE" lines for tests/bench/bench-kmod.sh, which makes
# differences and ratios of them. A line "wrong ..." says that something was measured that was not
# meant: it makes the whole run fail.
#
#	guest.sh PAIRS
#
# shellcheck disable=SC2154 # variables that container sets
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
pairs=$1
cgroups=/sys/fs/cgroup
card=/dev/fakegpu0
passive=0x80084601 # FAKEGPU_VERSION

wrong() {
	echo "wrong $*"
}

# take NAME COMMAND...: runs kcount, prints what it says as the value of NAME. Most batches must
# agree (others have a tick of the clock in them). How many calls it made is in $calls.
take() {
	local name=$1 said insn same of counted
	shift
	said=$("$@") || wrong "$name: no count"
	insn=0 same=0 of=1 calls=0 counted=''
	# shellcheck disable=SC2046 # words
	eval $(echo "$said" | tr ' ' ';' | tr -cd 'a-z0-9=.;')
	[ $((same * 2)) -gt "$of" ] || wrong "$name: only $same of $of batches agree"
	echo "$name $insn"
	taken=$counted
}

# The same inside a cgroup.
in_cgroup() {
	local group=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$group" "$@"
}

# What does not depend on who makes the call, or should not; $1 in front of the names.
others() {
	take "$1null" kcount ioctl /dev/null
	take "$1driver" kcount ioctl /dev/fakegpu-uvm
	take "$1getpid" kcount getpid
}

# counted WATCH: its touches so far.
counted() {
	kt watch "$1" touches
}

# watched NAME WATCH COMMAND...: as take, and the module must have counted each call.
watched() {
	local name=$1 watch=$2 before after
	shift 2
	before=$(counted "$watch")
	take "$name" "$@"
	after=$(counted "$watch")
	# One more for opening the node.
	[ $((after - before)) = $((calls + 1)) ] ||
		wrong "$name: $calls calls and an open, the module counted $((after - before))"
}

insmod /vm/modules/fakegpu.ko record=0
mkdir $cgroups/pod $cgroups/pod/container
container one
INSIDE=$one container two
container unwatched

# ---- Without the module.
others bare_
take bare_host kcount ioctl $card
take bare_container inside "$one" kcount ioctl $card
take bare_nested inside "$two" kcount ioctl $card
take bare_cgroup in_cgroup $cgroups/pod/container kcount ioctl $card

# ---- The same count by BPF.
echo "bpf_jit $(cat /proc/sys/net/core/bpf_jit_enable)"
for kind in raw raw-percpu perf; do
	take "bpf_${kind}_call" in_cgroup $cgroups/pod/container \
		kcount bpf $kind $cgroups/pod/container ioctl $card
	[ "$taken" = "$calls" ] || wrong "bpf $kind: $calls calls, $taken counted"
	take "bpf_${kind}_others_call" kcount bpf $kind $cgroups/pod/container ioctl $card
	take "bpf_${kind}_getpid" kcount bpf $kind $cgroups/pod/container getpid
done

# ---- Hooks, and nobody watched.
insmod /vm/modules/gpushare.ko
kt hook /dev/fakegpuctl /dev/fakegpu0 /dev/fakegpu1 driver=fake >/dev/null ||
	wrong "the nodes are not hooked"
echo "features $(kt status features)"
take hooked_host kcount ioctl $card
take hooked_container inside "$one" kcount ioctl $card

# ---- A container is watched, its holding is ACTIVE.
kt holding h /dev/fakegpuctl /dev/fakegpu0 lend_after=100000000
kt member one h pid="$one"
others watched_
take unwatched_host kcount ioctl $card
take unwatched_container inside "$unwatched" kcount ioctl $card
take unwatched_other_device inside "$one" kcount ioctl /dev/fakegpu-other
watched watched one inside "$one" kcount ioctl $card
watched watched_nested one inside "$two" kcount ioctl $card
watched watched_again one inside "$one" kcount ioctl $card
[ "$(kt state h state)" = active ] || wrong "the holding is not active"

# ---- What a busy host has besides: a list of passive calls, other containers, a borrower.
kt hook $card driver=fake passive=$passive >/dev/null
watched watched_list one inside "$one" kcount ioctl $card
take passive inside "$one" kcount ioctl $card $passive
kt hook $card driver=fake >/dev/null
for i in $(seq 32); do
	container other
	kt member "other$i" h pid="$other"
done
watched watched_many one inside "$one" kcount ioctl $card
agent_up
kt holding lender /dev/fakegpu1 lend_after=10
kt member lender lender pid="$unwatched"
lent lender || wrong "nothing is lent"
container borrower
kt borrower borrower lender pid="$borrower" kill
inside "$borrower" fgpu hold /dev/fakegpu1 >/dev/null &
wait_for 5 sh -c '[ "$(kt watch borrower files)" = 1 ]' || wrong "the borrower has no file open"
watched watched_lent one inside "$one" kcount ioctl $card
[ "$(kt state lender state)" = lent ] || wrong "the other holding is not lent any more"
kt withdraw lender
kt wait lender active 10000 >/dev/null || kt release lender auto
agent_down
kt watch-del borrower lender
kt holding-del lender

# ---- A container that is watched by its cgroup.
kt member cgroup h cgroup=$cgroups/pod
watched watched_cgroup cgroup in_cgroup $cgroups/pod/container kcount ioctl $card
take unwatched_cgroup kcount ioctl $card
kt watch-del cgroup
watched watched_end one inside "$one" kcount ioctl $card
rmmod gpushare
take bare_end inside "$one" kcount ioctl $card

# ---- A return.
echo 1 >/sys/module/fakegpu/parameters/record
insmod /vm/modules/gpushare.ko
kt hook $card driver=fake >/dev/null
for kind in plain deaf told; do
	[ $kind != told ] || kt events -b >/dev/null
	said=$(krelease $card "$pairs" $kind) || wrong "release_$kind: no result"
	echo "$said" | tr ' ' '\n' | sed "s/^/release_${kind}_/; s/=/ /"
done

# ---- Looking for stores of an idle holding's user: of one mapping, and of sixteen.
rmmod gpushare
insmod /vm/modules/gpushare.ko
kt hook $card driver=fake revocable >/dev/null
for n in 1 16; do
	said=$(ksample $card $n 101) || wrong "sample_$n: no result"
	echo "$said" | tr ' ' '\n' | sed "s/^/sample_${n}_/; s/=/ /"
done
