# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Every row of the table of states with its event, and every pair of neighbouring events both ways.
# (What becomes of LENDING by a touch is lendrace's: it takes two processors at one moment.)
# seconds: 600
. /vm/suite/lib.sh
. /vm/suite/play.inc

stage || exit 1
second_driver && insmod /tmp/fakegpv.ko || exit 1

# ---- The rows of the table.
scenes <<'END'
test ACTIVE becomes IDLE after lend_after without a touch, and any touch ends that
holding h 0 ctl uvm
member m h
saw h active/hooked
m open f 0
idle h
saw h idle/silence
numbered h
m ping f
saw h active/touch
toucher h m 0 ioctl
idle h
m open c ctl
saw h idle/silence active/touch
toucher h m ctl open
idle h
m mmap f
saw h idle/silence active/touch
toucher h m 0 mmap
idle h
m open u uvm
saw h idle/silence active/touch
toucher h m uvm open
!EAGAIN lend h

test silence is counted from the last touch, for as long as lend_after says
holding h 0 lend_after=1000
member m h
m open f 0
wait 200
m ping f
wait 200
m ping f
state h active
state h idle
saw h active/hooked idle/silence
gap h active/hooked idle/silence 1350

test LEND makes an IDLE one LENDING and LENT
holding h 0 ctl uvm
member m h
lent h
saw h active/hooked idle/silence lending/lend lent/lend

test LENT becomes ACTIVE by a touch while there is no borrower
holding h 0 ctl uvm
member m h
lent h
heard
m open f 0
saw h active/touch
toucher h m 0 open
total held 0
total returns 0
log 1 kind=open

test LENT becomes RETURNING by a touch, which is held; RELEASE makes it ACTIVE
holding h 0 ctl uvm
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
& m echo f 0x77
m held
held h 1
saw h returning/touch revoked:b
numbered h
toucher h m 0 ioctl
b close g
saw h drained
m held
log 0 arg=0x77
release h
m done
saw h active/release released:1
log 1 arg=0x77
before kind=release arg=0x77
total held 1
total returns 1
total settled 0

test LENT becomes RETURNING by WITHDRAW, with and without a borrower
holding h 0
member m h
lent h
heard
withdraw h
saw h returning/withdraw drained
numbered h
release h
saw h active/release
lent h
borrower b h
b open g 0
heard
withdraw h
saw h returning/withdraw revoked:b
!EBUSY release h
b close g
release h
saw h drained active/release

test RETURNING becomes ACTIVE settle_ms after the last close, without the agent
holding h 0 settle=300
member m h
m open f 0
lent h
borrower b h
b open g 0
agent down
heard
& m ping f
gone b
m done
saw h returning/touch revoked:b! drained active/settled released:1
gap h drained active/settled 280
total settled 1
total kills 1

test RETURNING becomes QUARANTINE after hold_max, and that ACTIVE by the last close
holding h 0 hold_max=500
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
& m ping f
m held
m done
saw h returning/touch revoked:b quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 480 3500
m ping f
b close g
saw h drained active/drained
total hold_max 1
total quarantine 1

test RETURNING becomes ACTIVE after hold_max where the agent forgets to release
holding h 0 hold_max=500
member m h
m open f 0
lent h
borrower b h
heard
& m ping f
m held
m done
saw h returning/touch revoked:b drained active/hold-max released:1
total hold_max 1
total quarantine 0

# ---- Pairs, in IDLE.
test IDLE: a touch and LEND
holding h 0
member m h
m open f 0
idle h
keep h
m ping f
!EAGAIN lend h kept
state h active
idle h
!EAGAIN lend h kept
state h idle
lend h
heard
m ping f
saw h active/touch

test IDLE: WITHDRAW and LEND
holding h 0
member m h
idle h
keep h
heard
withdraw h
saw h active/withdraw
!EAGAIN lend h kept
idle h
lend h
heard
withdraw h
saw h returning/withdraw drained

test IDLE: LEND and LEND
holding h 0
member m h
idle h
keep h
lend h
!EAGAIN lend h
!EAGAIN lend h kept
state h lent

test IDLE: the agent is lost, and LEND
holding h 0
member m h
m open f 0
idle h
keep h
agent down
!ENOTCONN lend h
state h idle
agent up
lend h
borrower b h
heard
agent down
state h lent
revoked b 0
& m ping f
gone b
m done
saw h returning/touch revoked:b! drained active/settled released:1

test IDLE: the last member leaves, and LEND
holding h 0
member m h
m open f 0
idle h
unwatch m
lend h
m ping f
state h lent
member m h
heard
m ping f
saw h active/touch
lent h
unwatch m
m ping f
state h lent

test IDLE: a member of another holding joins, and LEND
holding h 0
holding k 0
member m h
member n k
n open f 0
n ping f
idle h
member n k,h
lend h
borrower b h
heard
& n ping f
n held
saw h returning/touch revoked:b drained
toucher h n 0 ioctl
release h
n done

test IDLE: the holding is deleted, and LEND
holding h 0
member m h
idle h
lend h
!EBUSY drop h
withdraw h
!EBUSY drop h
release h
idle h
drop h
!ENOENT lend h
m open f 0

test a card that nobody holds is lent, and a member that starts then gets it back
holding h 0
lent h
saw h active/hooked idle/silence lending/lend lent/lend
borrower b h
b open g 0
member m h
& m open f 0
m held
saw h returning/touch revoked:b
toucher h m 0 open
b close g
release h
m done
saw h drained active/release released:1

# ---- Pairs, in LENT.
test LENT: a touch and WITHDRAW
holding h 0
member m h
m open f 0
lent h
heard
m ping f
withdraw h
saw h active/touch
lent h
heard
withdraw h
& m ping f
m held
saw h returning/withdraw drained
release h
m done
saw h active/release released:1

test LENT: a touch and the first borrower
holding h 0
member m h
m open f 0
lent h
m ping f
!EBUSY borrower b h
lent h
borrower b h
heard
& m ping f
m held
!EBUSY borrower c h
saw h returning/touch revoked:b drained

test LENT: WITHDRAW and the first borrower
holding h 0
member m h
lent h
withdraw h
!EBUSY borrower b h
release h
lent h
borrower b h
heard
withdraw h
saw h returning/withdraw revoked:b drained

test LENT: the agent is lost, and a touch
holding h 0 settle=50
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
& m ping f
m held
saw h returning/touch revoked:b
agent down
gone b
m done
saw h drained active/settled released:1
agent up
lent h
borrower c h
c open g 0
heard
agent down
c ping g
& m ping f
gone c
m done
saw h returning/touch revoked:c! drained active/settled released:1

test LENT: the last close and a touch
holding h 0
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
b close g
state h lent
& m ping f
m held
saw h returning/touch revoked:b drained
release h
m done
saw h active/release released:1

test LENT: the borrower's watch goes, and a touch
holding h 0
member m h
m open f 0
lent h
borrower b h
b open g 0
!EBUSY unwatch b
b close g
unwatch b
heard
m ping f
saw h active/touch
lent h
borrower c h
heard
& m ping f
m held
unwatch c
m held
saw h returning/touch revoked:c drained
release h
m done

test LENT: a node is hooked again, and a touch
holding h 0
member m h
m open f 0
lent h
borrower b h
heard
hook 0
!EBUSY unhook 0
state h lent
& m ping f
m held
hook 0
!EBUSY unhook 0
m held
saw h returning/touch revoked:b drained
release h
m done

# ---- Pairs, in RETURNING.
test RETURNING: RELEASE and the last close
holding h 0
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
& m ping f
m held
!EBUSY release h
m held
b close g
m held
release h
m done
saw h returning/touch revoked:b drained active/release released:1

test RETURNING: RELEASE and RELEASE, and that of an older return
holding h 0
member m h
m open f 0
lent h
keep h
!ESTALE release h kept
withdraw h
keep h
release h
release h kept
lent h
release h kept
state h lent
borrower b h
& m ping f
m held
!ESTALE release h kept
m held
heard
release h
m done
saw h active/release released:1
!ESTALE release h kept

test RETURNING: more touches, by more members, and WITHDRAW
holding h 0
member m h
member n h
m open f 0
spawn n.a
spawn n.b
lent h
borrower b h
heard
& m ping f
held h 1
& n.a open u uvm
& n.b open c ctl
held h 3
withdraw h
saw h returning/touch revoked:b drained
release h
m done
n.a done
n.b done
saw h active/release released:3
total held 3
total returns 1

test RETURNING: RELEASE, and the waiters leave
holding h 0
member m h
m open f 0
spawn m.w
lent h
borrower b h
heard
& m ping f
& m.w ping f
held h 2
kill m.w
held h 1
kill m
held h 0
saw h returning/touch revoked:b drained
release h
saw h active/release released:0
log 0 name=PING

test RETURNING: a member joins, and one leaves
holding h 0
member m h
outsider n
m open f 0
n open f 0
lent h
borrower b h
withdraw h
n ping f
member n h
& n ping f
n held
& m ping f
held h 2
unwatch m
m held
n held
release h
m done
n done

test RETURNING: hold_max and RELEASE
holding h 0 hold_max=700
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
& m ping f
held h 1
keep h
m done
saw h returning/touch revoked:b quarantine/hold-max released:1
release h kept
state h quarantine
b close g
saw h drained active/drained
lent h
borrower c h
heard
& m ping f
m held
release h
m done
wait 900
saw h returning/touch revoked:c drained active/release released:1

test RETURNING: hold_max and a touch
holding h 0 hold_max=900
member m h
m open f 0
spawn m.w
lent h
borrower b h
b open g 0
heard
& m ping f
held h 1
wait 300
& m.w ping f
m.w done
m done
saw h returning/touch revoked:b quarantine/hold-max released:2
gap h returning/touch released:2 880 4000
m ping f

test RETURNING: the agent is lost, and the last close
holding h 0 settle=100
member m h
m open f 0
lent h
borrower b h
b open g 0
heard
withdraw h
agent down
gone b
saw h returning/withdraw revoked:b drained active/settled
total kills 1
agent up
lent h
borrower c h
c open g 0
heard
withdraw h
c close g
wait 200
saw h returning/withdraw revoked:c drained
agent down
saw h active/settled
total settled 2

test RETURNING: the agent is lost, and RELEASE
holding h 0 settle=5000
member m h
m open f 0
lent h
borrower b h
heard
& m ping f
m held
agent down
m held
release h
m done
saw h returning/touch revoked:b drained active/release released:1
agent up
lent h
withdraw h
release h
heard
agent down
m ping f
saw h
total settled 0

test RETURNING: the agent is lost and comes back before settle_ms is over
holding h 0 settle=1500
member m h
m open f 0
lent h
borrower b h
heard
& m ping f
m held
agent down
agent up
wait 1700
m held
saw h returning/touch revoked:b drained
release h
m done
saw h active/release released:1
total settled 0

# ---- Pairs, in QUARANTINE.
test QUARANTINE: touches, LEND, WITHDRAW, RELEASE, a borrower, a deletion change nothing
holding h 0 hold_max=100
member m h
m open f 0
lent h
borrower b h
b open g 0
withdraw h
keep h
state h quarantine
heard
m ping f
!EIO b ping g
!EIO b open k 0
!EAGAIN lend h
!EAGAIN lend h kept
!EBUSY borrower c h
withdraw h
release h kept
!EBUSY drop h
!EBUSY unhook 0
!EBUSY unwatch b
saw h
m ping f
b close g
saw h drained active/drained
total quarantine 1

test QUARANTINE: the last close and a touch
holding h 0 hold_max=100
member m h
m open f 0
lent h
borrower b h
b open g 0
withdraw h
state h quarantine
heard
b close g
m ping f
saw h drained active/drained
lent h
borrower c h
END

# ---- Any state, and a hook is lost: a second driver goes, for the first one has open files.
scenes <<'END'
test UNKNOWN becomes ACTIVE when every node is hooked, and never IDLE before
holding h 0 v0 lend_after=400
member m h
m open f 0
wait 600
state h unknown
saw h
!EAGAIN lend h
m ping f
withdraw h
state h unknown
hook v0
state h idle
saw h active/hooked idle/silence
gap h active/hooked idle/silence 390
m open g v0
times h lend_after=1
state h idle
heard
times h lend_after=60000
m ping g
saw h active/touch
toucher h m v0 ioctl
m close g
times h lend_after=1
state h idle
keep h
heard
unhook v0
saw h unknown/lost
!EAGAIN lend h kept
m ping f
saw h

test a hook is lost in every state
hook v0
holding active 0 v0
holding idle 0 v0
holding lent 0 v0
holding nofiles 0 v0
holding closes 0 v0
holding stuck 0 v0 hold_max=1500
holding drained 0 v0
holding quarantine 0 v0 hold_max=50
member m1 active
member m2 idle
member m3 lent
member m4 nofiles
member m5 closes
member m6 stuck
member m7 drained
member m8 quarantine
m5 open f 0
m6 open f 0
m7 open f 0
idle idle
lent lent
lent nofiles
lent closes
lent stuck
lent drained
lent quarantine
borrower b4 nofiles
borrower b5 closes
borrower b6 stuck
borrower b7 drained
borrower b8 quarantine
b5 open g 0
b6 open g 0
b6 deaf
b8 open g 0
outsider o
give b6 g o g
withdraw quarantine
state quarantine quarantine
& m5 ping f
& m6 ping f
& m7 ping f
held closes 1
held stuck 1
held drained 1
heard
rmmod fakegpv
saw active unknown/lost
saw idle unknown/lost
saw lent unknown/lost
saw nofiles returning/lost revoked:b4! drained unknown/drained
gone b4
saw drained unknown/lost released:1
m7 done
gone b5
saw closes drained unknown/drained released:1
m5 done
m6 held
gone b6
m6 done
saw stuck unknown/hold-max released:1
gone b8
saw quarantine unknown/lost
!EAGAIN lend stuck
!EBUSY borrower c stuck
m6 ping f
insmod /tmp/fakegpv.ko
hook v0
saw active active/hooked
saw nofiles active/hooked
saw stuck quarantine/hooked
o close g
saw stuck drained active/drained

test UNKNOWN with open files of borrowers: not deleted, and not lent over them
hook v0
holding h 0 v0
member m h
lent h
borrower b h
outsider o
b open f 0
give b f o f
heard
rmmod fakegpv
gone b
saw h returning/lost revoked:b! unknown/hold-max
files h 1
!EBUSY drop h
!EAGAIN lend h
!EBUSY unwatch b
insmod /tmp/fakegpv.ko
hook v0
saw h quarantine/hooked
!EBUSY drop h
!EAGAIN lend h
o close f
saw h drained active/drained
unwatch b
lent h
withdraw h
release h
drop h
END
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
