/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* What a program says to the stand-in card: ioctl numbers and their arguments. */
#ifndef FAKEGPU_H
#define FAKEGPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FAKEGPU_API_VERSION 1

/* Where a call on fakegpuctl or fakegpu-uvm names the card; elsewhere the node itself does. */

/* The number that the log gave this call. */
struct fakegpu_ping {
	__u64 serial; /* out */
};

struct fakegpu_version {
	__u32 version; /* out: FAKEGPU_API_VERSION */
	__u32 cards; /* out */
};

/* Memory of the card, owned by the open file and freed with it. ENOMEM: the card is full. */
struct fakegpu_alloc {
	__u64 bytes;
	__u32 card;
	__u32 handle; /* out */
};

/* At once. ENOENT: this file has no such memory. */
struct fakegpu_free {
	__u32 handle;
	__u32 pad;
};

/* What ends a sleep inside the driver before its time: EINTR then. */
#define FAKEGPU_SLEEP_INTERRUPTIBLE 0 /* any signal */
#define FAKEGPU_SLEEP_KILLABLE 1 /* a deadly one */
#define FAKEGPU_SLEEP_UNINTERRUPTIBLE 2 /* none; D state */

struct fakegpu_sleep {
	__u32 ms;
	__u32 kind; /* FAKEGPU_SLEEP_* */
};

/* Work that keeps the card busy for so long, or until the file is released; 0 ends it. */
struct fakegpu_submit {
	__u32 ms;
	__u32 card;
};

/* Does nothing but put the token into the log. */
struct fakegpu_echo {
	__u64 token;
	__u64 serial; /* out: the number that the log gave this call */
};

/* The driver takes every mapping of the card away; the next touch of one faults. */
struct fakegpu_revoke {
	__u32 card;
	__u32 files; /* out: the open files whose mappings were taken away */
};

/* A word of the first page that mmap of the card gives. */
struct fakegpu_doorbell {
	__u32 card;
	__u32 word; /* 0 to 1023 */
	__u32 value; /* out */
	__u32 pad;
};

#define FAKEGPU_MAGIC 'F'
#define FAKEGPU_PING _IOR(FAKEGPU_MAGIC, 0, struct fakegpu_ping)
#define FAKEGPU_VERSION _IOR(FAKEGPU_MAGIC, 1, struct fakegpu_version)
#define FAKEGPU_ALLOC _IOWR(FAKEGPU_MAGIC, 2, struct fakegpu_alloc)
#define FAKEGPU_FREE _IOW(FAKEGPU_MAGIC, 3, struct fakegpu_free)
#define FAKEGPU_SLEEP _IOW(FAKEGPU_MAGIC, 4, struct fakegpu_sleep)
#define FAKEGPU_SUBMIT _IOW(FAKEGPU_MAGIC, 5, struct fakegpu_submit)
#define FAKEGPU_WORK_ECHO _IOWR(FAKEGPU_MAGIC, 6, struct fakegpu_echo)
#define FAKEGPU_REVOKE _IOWR(FAKEGPU_MAGIC, 7, struct fakegpu_revoke)
#define FAKEGPU_DOORBELL _IOWR(FAKEGPU_MAGIC, 8, struct fakegpu_doorbell)

#endif
