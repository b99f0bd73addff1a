/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling the kernel module what to do (include/uapi/gpushare.h says what each command does and
 * when it is refused). A link is for one thread at a time; any number may be open.
 *
 * Every function gives 0 or -errno. The module's own refusals have the message "the module refused:
 * ..." with its words and its errno, and nothing was changed. Besides, of each of them:
 * -ENOENT: "kernel module gpushare is not loaded" (gs_klink_loaded() is false then). -EPERM: it is
 * loaded and this process may not speak to it: no CAP_NET_ADMIN, or not in the initial namespaces.
 * -EPROTONOSUPPORT: its ABI is not ours. -ETIMEDOUT, -EPROTO, -EMSGSIZE and errnos of the socket.
 *
 * When the module was unloaded and loaded again, the next call finds the new one, which knows
 * nothing of what the old one was told.
 */
#ifndef GPUSHARE_COMMON_KLINK_H
#define GPUSHARE_COMMON_KLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/kmsg.h"

struct gs_klink;

/* Opens a link and checks the module's ABI. The caller closes. */
int gs_klink_open(struct gs_klink **ret, struct gs_err *err);

/* Closes it; NULL is none. For the module, the agent is gone if it was this link's. */
void gs_klink_close(struct gs_klink *link);

static inline void gs_cleanup_klink(struct gs_klink **link)
{
	gs_klink_close(*link);
}
#define cleanup_klink __attribute__((cleanup(gs_cleanup_klink)))

/* Was the module there at the last call? */
bool gs_klink_loaded(const struct gs_klink *link);

/* The link's netlink port, as in gs_kstatus.agent_port; another one after an error of a dump. */
uint32_t gs_klink_port(const struct gs_klink *link);

/* Version, features, totals. */
int gs_klink_status(struct gs_klink *link, struct gs_kstatus *ret, struct gs_err *err);

/* The agent is alive; once a second. -EBUSY: another link is the agent. */
int gs_klink_heartbeat(struct gs_klink *link, struct gs_err *err);

/*
 * Hooks the driver of the device node that @fd is open on. @driver is the vendor's name for it (may
 * be NULL); @passive are @n ioctl numbers that are nobody's touch; with @revocable members'
 * mappings of the node are taken away while it is lent. A node that is hooked already gets the new
 * list and the new @revocable. @ret may be NULL.
 */
int gs_klink_hook_add(struct gs_klink *link, int fd, const char *driver, const uint32_t *passive,
		      size_t n, bool revocable, struct gs_knode *ret, struct gs_err *err);
int gs_klink_hook_del(struct gs_klink *link, uint32_t dev, struct gs_err *err);

/* A time that is not sent: the module's default, or what the holding has already. */
#define GS_KTIME_NONE (-1)

/* A holding to be made or changed. Times in milliseconds, or GS_KTIME_NONE. */
struct gs_kholding_set {
	const char *name;
	const uint32_t *devs;
	size_t n_devs;
	int64_t lend_after_ms, hold_max_ms, settle_ms;
};
int gs_klink_holding_set(struct gs_klink *link, const struct gs_kholding_set *set,
			 struct gs_err *err);
int gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err);

/* Whom a watch is about. */
struct gs_kwho {
	pid_t pid; /* in whose PID namespace; 0: by cgroup */
	uint64_t start_time; /* of that process, clock ticks */
	uint64_t cgroup_id;
	bool cgroup_v1; /* of the devices hierarchy */
};

/* The namespace of the process @pid of the initial namespace. -ESRCH: there is none. */
int gs_kwho_pid(pid_t pid, struct gs_kwho *ret, struct gs_err *err);

/*
 * The cgroup whose folder is @path. -EINVAL: that is no folder of a version 2 hierarchy or of
 * version 1's devices hierarchy; else what open(2) says.
 */
int gs_kwho_cgroup(const char *path, struct gs_kwho *ret, struct gs_err *err);

struct gs_kwatch_set {
	const char *name;
	unsigned int role; /* enum gs_role */
	struct gs_kwho who;
	const char *const *holdings; /* a member's; a borrower's lenders */
	size_t n_holdings;
	bool kill_on_return; /* a borrower's */
};
int gs_klink_watch_set(struct gs_klink *link, const struct gs_kwatch_set *set, struct gs_err *err);
int gs_klink_watch_del(struct gs_klink *link, const char *name, struct gs_err *err);

/* Lend the holding. @seq is its IDLE event's. -EAGAIN: a touch came between. */
int gs_klink_lend(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err);

/*
 * Let stores of its members be seen while the holding is idle. @seq is its IDLE event's. -EAGAIN: a
 * touch came between. -EOPNOTSUPP: its members' mappings can't be taken away.
 */
int gs_klink_sample(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err);

/* Take it back from its borrowers without a touch. */
int gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err);

/* Let the held callers go on. @seq is its RETURNING event's. */
int gs_klink_release(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err);

/*
 * Everything that the module keeps, in one piece: asked again where something changed meanwhile.
 * -EAGAIN: it changed each of several times. The caller frees @ret, which is written only on
 * success.
 */
int gs_klink_dump(struct gs_klink *link, struct gs_kstate *ret, struct gs_err *err);

#endif
