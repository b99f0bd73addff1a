# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Borrowers: their open files are counted whatever becomes of them; once revoked they may nothing,
# nor may anybody else with a file of theirs; and they can't stop their own end.
# seconds: 600
. /vm/suite/lib.sh
. /vm/suite/play.inc

stage || exit 1
second_driver && insmod /tmp/fakegpv.ko || exit 1
# VERSION is a passive call of card 0.
check "a passive call is named" kt hook /dev/fakegpu0 driver=fake passive=0x80084601

# ---- Counting.
scenes <<'END'
test a file counts once through dup, fork and close; a second open of it counts
holding h 0
member m h
lent h
borrower b h
b open f 0
files h 1
opened b 1
b dup f g
files h 1
b close f
files h 1
spawn b.w
b close g
files h 1
b.w ping g
b.w close g
files h 0
b open f 0
b reopen f g
files h 2
b open p 0 path
files h 2
b close f
b close g
files h 0
opened b 0

test a file stays open through exec, but for one that closes then
holding h 0
member m h
lent h
borrower b h
b open f 0 cloexec
b open g 0
files h 2
b exec
files h 1
!EBADF b ping f
b ping g
b close g
files h 0

test the end of a process closes what it had, but for what others have too
holding h 0
member m h
lent h
borrower b h
b open f 0
spawn b.a
spawn b.b
b.a open x 0
b.b open y 0
files h 3
kill b.a
files h 2
& b.b exit
files h 1
b close f
files h 0

test the end of a container closes all
holding h 0 ctl uvm
member m h
lent h
borrower b h
spawn b.a
spawn b.b
b open f 0
b.a open c ctl
b.b open u uvm
files h 3
opened b 3
heard
withdraw h
saw h returning/withdraw revoked:b
kill b
gone b
files h 0
saw h drained

test a file stays open in a mapping
holding h 0
member m h
lent h
borrower b h
b open f 0
b mmap f
b close f
files h 1
withdraw h
!EBUSY release h
b munmap
files h 0
release h

test a file stays open in a socket that nobody reads
holding h 0
member m h
lent h
borrower b h
spawn b.w
b.w open f 0
b.w queue f
files h 1
heard
withdraw h
saw h returning/withdraw revoked:b
kill b.w
saw h drained

test a file stays open in a ring, and is closed by a kernel thread
holding h 0
member m h
lent h
borrower b h
spawn b.w
b.w open f 0
b.w ring f
files h 1
heard
withdraw h
saw h returning/withdraw revoked:b
kill b.w
saw h drained

test failed opens do not count, and a refused one is no open
holding h 0
member m h
lent h
borrower b h
param open_fail 1
!EIO b open f 0
files h 0
param open_fail 0
b open f 0
param open_fail 1
!EIO b open g 0
!EIO b many g 0 20
files h 1
withdraw h
param open_fail 0
!EIO b open g 0
files h 1
log 22 kind=open-fail
log 1 "kind=open "
b close f
files h 0

test many opens at once
holding h 0
member m h
lent h
borrower b h
param open_ms 200
b many f 0 100
files h 100
opened b 100
heard
withdraw h
param open_ms 0
saw h returning/withdraw revoked:b
kill b
gone b
saw h drained
log 100 "kind=open "
log 100 kind=release

test an open on its way when the borrower is revoked
holding h 0
member m h
lent h
borrower b h
param open_ms 300
& b open f 0
files h 1
heard
withdraw h
!EBUSY release h
b done
saw h returning/withdraw revoked:b
!EIO b ping f
b close f
saw h drained
release h

test opens on their way fail, or are killed, when the borrower is revoked
holding h 0
member m h
lent h
borrower b h kill
spawn b.a
spawn b.b
param open_fail 1
param open_ms 300
& b.a open f 0
files h 1
heard
param open_fail 0
param open_ms 5000
& b.b open f 0
files h 2
withdraw h
gone b
saw h returning/withdraw revoked:b! drained
log 2 kind=open-fail
log 0 "kind=open "

test DRAINED comes with the last close of the last of several borrowers
holding h 0
member m h
lent h
borrower b h
borrower c h
b open f 0
b open g uvm
c open f 0
files h 3
heard
withdraw h
b close f
c close f
!EBUSY release h
saw h returning/withdraw revoked:b revoked:c
b close g
saw h drained
release h

test a borrower has 16384 files at most, and their end is no slower for that
holding h 0
member m h
m open f 0
lent h
borrower b h kill
b open f 0
b fill 0 16383
opened b 16384
files h 16384
!EMFILE b open g 0
!EMFILE b open g uvm
opened b 16384
b close f
b open g uvm
!EMFILE b open f 0
files h 16384
heard
& m ping f
gone b
m held
saw h returning/touch revoked:b! drained
gap h returning/touch drained 0 9000
release h
m done

# ---- Nodes that lose their hooks meanwhile.
test a node that no lender needs is unhooked under a borrower's file: it counts no more
holding h 0
member m h
lent h
borrower b h
b open f 0
b open u uvm
b open g 1
files h 3
heard
!EBUSY unhook 0
unhook uvm
files h 2
unhook 1
files h 1
opened b 1
b ping u
b ping g
b close u
b close g
files h 1
b open u uvm
b open g 1
files h 1
hook uvm 1
b close u
b close g
b open g 1
files h 2
b close g
withdraw h
!EBUSY release h
b close f
saw h returning/withdraw revoked:b drained
release h

test the last file of a return is on a node that is unhooked: DRAINED comes with that
holding h 0
member m h
m open f 0
lent h
borrower b h
b open f 0
b open u uvm
heard
& m ping f
m held
b close f
files h 1
saw h returning/touch revoked:b
unhook uvm
saw h drained
m held
release h
m done
saw h active/release released:1
hook uvm
lent h
b close u
saw h idle/silence lending/lend lent/lend
files h 0

test the last file of a QUARANTINE is on a node that is unhooked: it ends with that
holding h 0 hold_max=100
member m h
lent h
borrower b h
b open u uvm
b open g 0
withdraw h
state h quarantine
heard
!EBUSY unhook 0
b close g
files h 1
unhook uvm
saw h drained active/drained
hook uvm
unwatch b
lent h

test a slow close on its way when its node is unhooked
holding h 0
member m h
lent h
borrower b h
b open u uvm
b open f 0
withdraw h
heard
param close_ms 400
& b close u
wait 50
unhook uvm
files h 1
param close_ms 0
b done
b close f
saw h drained
hook uvm
release h
unwatch b

test a slow open on its way when its node is unhooked
holding h 0
member m h
lent h
borrower b h
param open_ms 400
& b open u uvm
files h 1
unhook uvm
param open_ms 0
b done
files h 0
hook uvm
b close u
b open u uvm
files h 1
b close u
files h 0

# ---- Files that were given away.
test a file of one borrower in another's hands is the first one's
holding h 0
holding k 1
member m h
member n k
lent h
lent k
borrower b h
borrower c k
b open f 0
give b f c f
b close f
opened b 1
opened c 0
files h 1
files k 0
c ping f
c open g 1
withdraw h
!EIO c ping f
saw - stolen:b
c ping g
revoked c 0
state k lent
c close f
files h 0

test a file in the hands of somebody who is not watched is refused too
holding h 0
member m h
outsider o
lent h
borrower b h
b open f 0
give b f o f
o ping f
spawn o.w
withdraw h
heard
!EIO o ping f
!EIO o version f
!EIO o mmap f
!EIO o.w ping f
saw - stolen:b
total refused 4
heard
kill b
gone b
!EIO o.w ping f
saw h
files h 1
o close f
o.w close f
saw h drained

test a file in the hands of the member that returns is refused, and is no touch
holding h 0
member m h
lent h
borrower b h
b open f 0
give b f m f
withdraw h
heard
!EIO m ping f
!EIO m version f
saw - stolen:b
m close f
b close f
saw h drained
release h

# ---- Revoked: what it may still do.
test a borrower's calls are refused while a lender returns, and until it is removed
holding h 0 uvm
member m h
m open f 0
lent h
borrower b h
b open f 0
b open u uvm
b ping f
b version f
spawn b.w
& m ping f
m held
!EIO b ping f
!EIO b version f
!EIO b mmap f
!EIO b open g 0
!EIO b open c ctl
!EIO b ping u
!EIO b.w echo f 0x99
!EIO b reopen f g
total refused 8
log 0 arg=0x99
b close f
b close u
b.w close f
b.w close u
release h
m done
state h active
!EIO b open g 0
lent h
!EIO b open g 0
!EBUSY borrower b h
unwatch b
borrower b h
b open g 0
b ping g
END

# ---- Two lenders.
scenes <<'END'
test a borrower of two lenders is taken only while both are LENT
holding h 0
holding k 1
member m h
member n k
!EBUSY borrower b h,k
lent h
!EBUSY borrower b h,k
lent k
borrower b h,k
b open f 0
files h 1
files k 1
opened b 1
b open g 1
files h 2
files k 2
b close f
b close g
files h 0
files k 0
unwatch b
withdraw h
!EBUSY borrower b h,k
!EBUSY borrower b k,h
borrower b k
!EEXIST borrower b h,k

test the first RETURN of any lender revokes its borrower for good
holding h 0
holding k 1
member m h
member n k
m open f 0
n open f 1
lent h
lent k
borrower b h,k
b open f 0
b open g 1
heard
& m ping f
m held
saw h returning/touch revoked:b
saw k
state k lent
!EIO b ping f
!EIO b ping g
borrower c k
c open g 1
files k 3
files h 2
b close f
!EBUSY release h
b close g
saw h drained
release h
m done
saw k
c ping g
heard
& n ping f
n held
saw k returning/touch revoked:c
c close g
saw k drained
release k
n done
lent h
lent k
!EIO b open f 0
!EBUSY borrower b h,k
unwatch b
borrower b h,k
b open f 0

test the second lender is touched after the borrower was revoked, and again waits for its end
holding h 0
holding k 1
member m h
member n k
n open f 1
lent h
lent k
borrower b h,k
b open g 1
withdraw h
heard
& n ping f
n held
saw k returning/touch
b close g
saw h drained
saw k drained
release h
n held
release k
n done
saw k active/release released:1

test the second lender is touched after the borrower's last close, and memory is not back
holding h 0 settle=0
holding k 1 settle=600
member m h
member n k
n open f 1
lent h
lent k
borrower b h,k kill
b open g 1
b alloc g 0x100000
param free_delay_ms 400
heard
withdraw h
gone b
saw h returning/withdraw revoked:b! drained
state k lent
& n echo f 0x51
n held
agent down
n done
saw k returning/touch drained active/settled released:1
before "kind=free .* mem=0 " arg=0x51

test the first WITHDRAW of any lender revokes its borrower
holding h 0
holding k 1
member m h
member n k
lent h
lent k
borrower b h,k
b open f 0
heard
withdraw k
saw k returning/withdraw revoked:b
saw h
!EIO b ping f
!EIO b open g 1

test a lender that becomes UNKNOWN revokes and kills its borrower
hook v0
holding h 0
holding k 1 v0
member m h
member n k
lent h
lent k
borrower b h,k
borrower c h
b open f 0
c open f 0
heard
rmmod fakegpv
gone b
saw k returning/lost revoked:b! drained unknown/drained
saw h
state h lent
files h 1
c ping f
END

# ---- What can't stop its own end.
scenes <<'END'
test WATCH_SET of a borrower again changes KILL_ON_RETURN
holding h 0
member m h
lent h
borrower b h
borrower c h kill
b open f 0
c open f 0
borrower b h kill
borrower c h
files h 2
heard
withdraw h
gone b
saw h returning/withdraw revoked:b! revoked:c
total kills 1
!EIO c ping f
c close f
saw h drained

test kill_on_return: a borrower that ignores every signal
holding h 0
member m h
m open f 0
lent h
borrower b h kill
spawn b.w
b open f 0
b.w open f 0
b deaf
b.w deaf
kill b TERM
heard
& m ping f
gone b
saw h returning/touch revoked:b! drained
total kills 1
release h
m done

test kill_on_return: a borrower that is stopped
holding h 0
member m h
m open f 0
lent h
borrower b h kill
spawn b.w
b open f 0
b.w open f 0
kill b.w STOP
kill b STOP
& m ping f
gone b
gone b.w
files h 0

test kill_on_return: a borrower that is frozen
holding h 0
member m h
m open f 0
lent h
borrower b h kill
spawn b.w
b open f 0
b.w open f 0
freeze b
& m ping f
gone b
gone b.w
files h 0

test kill_on_return: a borrower with containers below it
holding h 0
member m h
m open f 0
lent h
borrower b h kill
spawn b.w
b.w container
b.w open f 0
kill b STOP
& m ping f
gone b.w
files h 0

test kill_on_return: a borrower that holds 64 files
holding h 0
member m h
m open f 0
lent h
borrower b h kill
b many f 0 64
spawn b.w
files h 64
heard
& m ping f
gone b
saw h returning/touch revoked:b! drained
log 64 kind=release

test kill_on_return: a cgroup whose processes ignore every signal, are stopped and frozen
holding h 0
member m h
m open f 0
lent h
borrower b h cgroup kill
spawn b.a
spawn b.b
b open f 0
b.a open f 0
b.b open f 0
b deaf
b.a deaf
kill b.b STOP
freeze b
heard
& m ping f
gone b
gone b.a
gone b.b
saw h returning/touch revoked:b! drained
total kills 1

test kill_on_return: a cgroup that forks without end
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
heard
& m ping f
gone b.w
saw h returning/touch revoked:b! drained
total kills 1

test kill_on_return: a process whose first thread has ended
holding h 0
member m h
m open f 0
lent h
borrower b h kill
borrower c h cgroup kill
spawn b.w
spawn c.w
b.w open f 0
c.w open f 0
b.w leave
c.w leave
b.w ping f
c.w ping f
heard
& m ping f
gone c.w
gone b.w
files h 0

test kill_on_return: a container whose first process is traced by its own child
holding h 0
member m h
m open f 0
lent h
borrower b h kill
b traceable
spawn b.w
b.w open f 0
b open f 0
trace b.w b
& m ping f
gone b
gone b.w
files h 0

test kill_on_return: a cgroup where one process traces the other
holding h 0
member m h
m open f 0
lent h
borrower b h cgroup kill
spawn b.a
spawn b.b
b.a open f 0
b.b open f 0
trace b.a b.b
& m ping f
gone b.a
gone b.b
files h 0
END
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
