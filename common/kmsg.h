/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel module says, taken apart (include/uapi/gpushare.h describes the messages). All
 * lengths and types are checked. Attributes that are not known, a newer module's, are passed over;
 * so are numbers of states, causes and the like without a name here.
 */
#ifndef GPUSHARE_COMMON_KMSG_H
#define GPUSHARE_COMMON_KMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/netlink.h>

#include "common/buf.h"
#include "common/err.h"
#include "uapi/gpushare.h"

/* Device numbers as the module writes them: new_encode_dev() of the kernel. */
static inline uint32_t gs_kdev(unsigned int major, unsigned int minor)
{
	return (minor & 0xff) | major << 8 | (minor & ~0xffU) << 12;
}

static inline unsigned int gs_kdev_major(uint32_t dev)
{
	return dev >> 8 & 0xfff;
}

static inline unsigned int gs_kdev_minor(uint32_t dev)
{
	return (dev & 0xff) | (dev >> 12 & 0xfff00);
}

/* The number of the device that stat(2) calls @rdev. */
uint32_t gs_kdev_of(dev_t rdev);

/* A list of device numbers that it owns. Starts as {0}. */
struct gs_kdevs {
	uint32_t *v;
	size_t n;
};

/* A name, "" where the message has none. */
typedef char gs_kname[GS_NAME_MAX + 1];

/* One hooked device node. */
struct gs_knode {
	uint32_t dev;
	gs_kname driver;
	gs_kname module; /* "": built into the kernel */
	uint32_t funcs; /* 1 << enum gs_kind */
	bool revocable; /* members' mappings of it are taken away while it is lent */
	uint64_t touches;
};

struct gs_kholding {
	gs_kname name;
	unsigned int state; /* enum gs_state */
	uint64_t since_ns, last_touch_ns; /* CLOCK_BOOTTIME; 0: never */
	uint64_t seq; /* that LEND or RELEASE asks for now */
	struct gs_kdevs devs;
	uint32_t lend_after_ms, hold_max_ms, settle_ms;
	uint32_t files; /* borrowers' open files */
	uint32_t held; /* callers held now */
	uint32_t mappings; /* of its members, that the last LEND took away */
	uint64_t faults; /* touches of those since then */
};

struct gs_kcount {
	uint32_t dev;
	uint64_t touches;
};

struct gs_kwatch {
	gs_kname name;
	unsigned int role; /* enum gs_role */
	uint32_t pid; /* whose namespace it is; 0: by cgroup */
	uint32_t pidns; /* inode number of that namespace */
	uint64_t cgroup_id;
	bool cgroup_v1, kill_on_return, revoked, killed;
	struct gs_strv holdings;
	uint32_t files;
	struct gs_kcount *counts; /* devices with touches */
	size_t n_counts;
};

struct gs_kstatus {
	uint32_t abi;
	gs_kname version;
	uint32_t features; /* GS_F_* */
	bool agent_alive;
	bool has_agent; /* the two below are there */
	uint32_t agent_port, agent_age_ms;
	uint64_t held, returns, settled, hold_max, quarantine, kills, refused, events_lost;
	uint64_t mappings, faults;
	uint64_t event_seq; /* of the last event */
	uint32_t lend_after_ms, hold_max_ms, settle_ms; /* what a holding gets that names none */
};

/* An event. What it does not tell is 0 or "". */
struct gs_kevent {
	unsigned int event; /* enum gs_event */
	uint64_t event_seq; /* what LEND and RELEASE ask for, if it tells of IDLE or RETURNING */
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	gs_kname name; /* holding */
	gs_kname watch;
	unsigned int state, from; /* enum gs_state */
	unsigned int cause; /* enum gs_cause */
	bool has_dev; /* @dev is there */
	uint32_t dev;
	bool has_kind; /* @kind is there */
	unsigned int kind; /* enum gs_kind */
	uint32_t pid, pidns;
	uint64_t start_time;
	uint32_t files, held, held_ms, mappings;
	uint64_t faults;
	bool killed, agent_alive;
};

/* Free what the structure holds; it is {0} then. */
void gs_kholding_free(struct gs_kholding *holding);
void gs_kwatch_free(struct gs_kwatch *watch);

/* Everything that the module keeps. */
struct gs_kstate {
	struct gs_kstatus status; /* asked for before the rest: no event up to event_seq is newer */
	struct gs_knode *nodes;
	struct gs_kholding *holdings;
	struct gs_kwatch *watches;
	size_t n_nodes, n_holdings, n_watches;
};

/* Frees what it holds; it is {0} then. */
void gs_kstate_free(struct gs_kstate *state);
#define cleanup_kstate __attribute__((cleanup(gs_kstate_free)))

/* The holding, the watch, the node of that name or number; NULL where there is none. */
const struct gs_kholding *gs_kstate_holding(const struct gs_kstate *state, const char *name);
const struct gs_kwatch *gs_kstate_watch(const struct gs_kstate *state, const char *name);
const struct gs_knode *gs_kstate_node(const struct gs_kstate *state, uint32_t dev);

/* How often the holding's members touched its nodes. */
uint64_t gs_kstate_touches(const struct gs_kstate *state, const struct gs_kholding *holding);

/*
 * Take a message of the family apart into @ret, which the caller frees where there is a function
 * for it, and which is as it was after an error. -EPROTO, naming the attribute: it is cut short, an
 * attribute has another type than the contract says, or one that it must have is missing.
 */
int gs_kmsg_status(const struct nlmsghdr *nlh, struct gs_kstatus *ret, struct gs_err *err);
int gs_kmsg_node(const struct nlmsghdr *nlh, struct gs_knode *ret, struct gs_err *err);
int gs_kmsg_holding(const struct nlmsghdr *nlh, struct gs_kholding *ret, struct gs_err *err);
int gs_kmsg_watch(const struct nlmsghdr *nlh, struct gs_kwatch *ret, struct gs_err *err);
int gs_kmsg_event(const struct nlmsghdr *nlh, struct gs_kevent *ret, struct gs_err *err);

/* Adds a GS_CMD_NODE, _HOLDING or _WATCH to the state; any other command is passed over. */
int gs_kmsg_add(const struct nlmsghdr *nlh, struct gs_kstate *state, struct gs_err *err);

/* The command of a message of the family; -1 where it is too short to have one. */
int gs_kmsg_cmd(const struct nlmsghdr *nlh);

#endif
