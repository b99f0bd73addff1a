# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Borrowers that are cgroups of version 1's devices hierarchy, and its freezer, which SIGKILL does
# not reach.
# boot: --cgroup v1
. /vm/suite/lib.sh
. /vm/suite/play.inc

stage || exit 1
if ! kt status features | grep -q cgroup-v1; then
	skip "borrowers on cgroup v1" "this kernel has no devices hierarchy"
	strike
	plan
fi

scenes <<'END'
test a cgroup's files are counted, refused after the revocation, and its processes killed
holding h 0
member m h
m open f 0
lent h
borrower b h cgroup kill
spawn b.w
b open f 0
b.w open f 0
files h 2
opened b 2
b deaf
b.w deaf
kill b.w STOP
heard
& m ping f
gone b
gone b.w
saw h returning/touch revoked:b! drained
total kills 1

test a cgroup is refused, where nobody kills it
holding h 0
member m h
m open f 0
lent h
borrower b h cgroup
outsider o host
b open f 0
heard
& m ping f
m held
!EIO b ping f
!EIO b open g 0
o open f 0
o ping f
b close f
saw h returning/touch revoked:b drained
release h
m done

test a cgroup that forks without end is killed
holding h 0
member m h
m open f 0
lent h
borrower b h cgroup kill
spawn b.w
b.w open f 0
b.w deaf
b.w bomb
wait 50
& m ping f
gone b.w
files h 0

test a frozen borrower outlives its SIGKILL: quarantine, until it is thawed
holding h 0 hold_max=400
member m h
m open f 0
lent h
borrower b h kill
b open f 0
freeze b
heard
& m ping f
m held
m done
saw h returning/touch revoked:b! quarantine/hold-max released:1
!EAGAIN lend h
thaw b
gone b
saw h drained active/drained
total quarantine 1
END
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
