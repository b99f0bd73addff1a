# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Whatever fails, the user goes on: after settle_ms where there is no agent, after hold_max at the
# latest, and each time it is counted and told.
# seconds: 600
. /vm/suite/lib.sh
. /vm/suite/play.inc

stage || exit 1
is "no agent: the module says so" "$(kt status agent)" 0

# ---- No agent, a dead one, a silent one.
scenes <<'END'
test no agent: nothing is lent
holding h 0
member m h
m open f 0
heard
agent down
idle h
!ENOTCONN lend h
saw - agent:0
saw h idle/silence
m ping f
agent up
saw - agent:1
idle h
lend h

test the agent is killed while a card is lent: its borrower is killed by the next touch
holding h 0 settle=100
member m h
m open f 0
lent h
borrower b h
b open g 0
b deaf
agent down
heard
b ping g
revoked b 0
& m echo f 0x11
gone b
m done
saw h returning/touch revoked:b! drained active/settled released:1
before kind=release arg=0x11
log 1 arg=0x11
total kills 1
total settled 1
total hold_max 0

test the agent is killed while a card is lent to nobody: the next touch is not held
holding h 0
member m h
m open f 0
lent h
agent down
heard
m ping f
saw h active/touch
total held 0
total settled 0

test the agent is killed while a card returns: its borrower is killed then
holding h 0 settle=100
member m h
m open f 0
lent h
borrower b h
b open g 0
b deaf
heard
& m ping f
m held
b pid
saw h returning/touch revoked:b
agent down
gone b
m done
saw h drained active/settled released:1
total kills 1
total settled 1

test the agent is killed in QUARANTINE: the borrower is killed then
holding h 0 hold_max=100
member m h
lent h
borrower b h
b open g 0
withdraw h
state h quarantine
b pid
heard
agent down
gone b
saw h drained active/drained
total kills 1

test the agent's heart stops, its socket stays open: it is lost after 3 s
holding h 0 settle=100
holding k 1
member m h
member n k
m open f 0
lent h
idle k
borrower b h
b open g 0
agent down
agent up
heard
& m ping f
m held
agent stop
gone b
m done
saw h returning/touch revoked:b drained active/settled released:1
saw - agent:0
gap - agent:1 agent:0 2900
!ENOTCONN lend k
total kills 1
total settled 1
agent cont
saw - agent:1
lend k

test a second agent is refused, and takes over when the first one is dead
holding h 0 settle=5000
member m h
m open f 0
lent h
borrower b h
heard
!EBUSY beat
& m ping f
m held
agent down
m held
beat
saw - agent:0 agent:1
m held
release h
m done
saw h returning/touch revoked:b drained active/release released:1
lent h
state h lent
total settled 0

# ---- Borrowers that do not go.
test a borrower stuck in the driver: quarantine after hold_max, until its last close
holding h 0 hold_max=400
member m h
m open f 0
lent h
borrower b h kill
b open g 0
& b sleep g 3000
wait 50
heard
& m echo f 0x21
m held
m done
saw h returning/touch revoked:b! quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 380 3400
log 1 arg=0x21
log 0 kind=release
b held
files h 1
m ping f
m open f2 0
!EAGAIN lend h
!EBUSY borrower c h
saw h
gone b
state h active
saw h drained active/drained
lent h
total hold_max 1
total quarantine 1
total kills 1
total settled 0

test a borrower stuck in the driver, and no agent: quarantine after hold_max all the same
holding h 0 hold_max=400 settle=0
member m h
m open f 0
lent h
borrower b h
b open g 0
& b sleep g 2000
wait 50
agent down
heard
& m ping f
m held
m done
saw h returning/touch revoked:b! quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 380 3400
!ENOTCONN lend h
gone b
saw h drained active/drained
total hold_max 1
total quarantine 1
total settled 0

test a borrower stuck in its last close: DRAINED comes after the driver's release is over
holding h 0
member m h
m open f 0
lent h
borrower b h kill
b open g 0
param close_ms 500
heard
& m echo f 0x22
gone b
m held
files h 0
saw h returning/touch revoked:b! drained
gap h returning/touch drained 480
release h
m done
before kind=release arg=0x22

test an agent that never releases: the user goes on after hold_max
holding h 0 hold_max=400 settle=0
member m h
m open f 0
lent h
borrower b h kill
b open g 0
heard
& m ping f
m held
m done
saw h returning/touch revoked:b! drained active/hold-max released:1
gap h returning/touch active/hold-max 380 3400
total hold_max 1
total quarantine 0
total settled 0

# ---- Files of borrowers that others keep.
test a file parked in a stranger's socket: the user goes on two seconds after the borrower's end
holding h 0 settle=0 hold_max=60000
member m h
m open f 0
lent h
borrower b h kill
outsider o
o pair in out
give o out b out
b open f 0
b push out f
files h 1
heard
& m echo f 0x61
gone b
m held
m done
saw h returning/touch revoked:b! quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 1900 20000
log 1 arg=0x61
files h 1
!EAGAIN lend h
o close out
wait 50
state h quarantine
o close in
saw h drained active/drained
total hold_max 1
total quarantine 1
unwatch b
lent h

test a file parked so: or settle_ms after it, where that is longer
holding h 0 settle=3000 hold_max=60000
member m h
m open f 0
lent h
borrower b h kill
outsider o
o pair in out
give o out b out
b open f 0
b push out f
heard
& m ping f
gone b
m done
saw h returning/touch revoked:b! quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 2900 20000
o close in
o close out
saw h drained active/drained

test a file parked so, and the borrower is killed by somebody else
holding h 0 settle=0 hold_max=60000
member m h
m open f 0
lent h
borrower b h
outsider o
o pair in out
give o out b out
b open f 0
b push out f
heard
& m ping f
m held
wait 2500
m held
kill b
gone b
m done
saw h returning/touch revoked:b quarantine/hold-max released:1
gap h returning/touch quarantine/hold-max 4400 20000
total kills 0
o close in
o close out
saw h drained active/drained

# ---- Memory that comes back late.
test a file parked so: a second lender that comes back later waits no longer
agent up
holding h 0 hold_max=20000
holding k 1 hold_max=20000
member m h
member n k
n open g 1
outsider o
lent h
lent k
borrower b h,k kill
b open f 0
give b f o f
heard
withdraw h
gone b
state h quarantine
& n ping g
n held
wait 4500
n done
o close f

test a file parked so: another borrower that is killed later is waited for first
agent up
holding h 0 hold_max=20000
member m h
m open g 0
outsider o
lent h
borrower b h kill
borrower c h
b open f 0
c open f 0
give b f o f
heard
& m ping g
m held
gone b
wait 3500
m held
kill c
gone c
wait 4500
m done
o close f

test without the agent the user goes on settle_ms after the last close, when memory is back
holding h 0 settle=700
member m h
m open f 0
lent h
borrower b h
b open g 0
b alloc g 0x100000
param free_delay_ms 400
agent down
heard
& m echo f 0x31
gone b
m done
saw h returning/touch revoked:b! drained active/settled released:1
gap h drained active/settled 680
before kind=release kind=free
before "kind=free .* mem=0 " arg=0x31
total settled 1

test without settle_ms it goes on over the borrower's memory
holding h 1 settle=0
member m h
m open f 1
lent h
borrower b h
b open g 1
b alloc g 0x100000
param free_delay_ms 1500
agent down
& m echo f 0x32
gone b
m done
log 0 "kind=free "
log 1 "arg=0x32 mem=1048576 "
total settled 1
wait 1600
log 1 "kind=free "

test with the agent the user goes on when it says so, not after settle_ms
holding h 0 settle=50
member m h
m open f 0
lent h
borrower b h kill
b open g 0
b alloc g 0x100000
param free_delay_ms 400
heard
& m echo f 0x33
gone b
saw h returning/touch revoked:b! drained
wait 300
m held
wait 300
log 1 "kind=free .* mem=0 "
release h
m done
saw h active/release released:1
before "kind=free .* mem=0 " arg=0x33
total settled 0

test settle_ms never holds longer than hold_max
holding h 0 settle=20000 hold_max=400
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
saw h returning/touch revoked:b! drained active/hold-max released:1
gap h returning/touch active/hold-max 380 3400
total hold_max 1
total settled 0
total quarantine 0
END
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
