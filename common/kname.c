// SPDX-License-Identifier: Apache-2.0
/* Tables of the names. A number that the header gains without a name here stops the build. */
#include <stddef.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/kname.h"
#include "uapi/gpushare.h"

#define COMPLETE(table, n) _Static_assert(GS_ARRAY_SIZE(table) == (n), "a name is missing")

static const char *const states[] = {
	[GS_UNKNOWN] = "unknown",	[GS_ACTIVE] = "active", [GS_IDLE] = "idle",
	[GS_LENDING] = "lending",	[GS_LENT] = "lent",	[GS_RETURNING] = "returning",
	[GS_QUARANTINE] = "quarantine",
};
COMPLETE(states, __GS_STATE_MAX);

static const char *const causes[] = {
	[GS_BY_NONE] = "none",	       [GS_BY_HOOKED] = "hooked",   [GS_BY_SILENCE] = "silence",
	[GS_BY_TOUCH] = "touch",       [GS_BY_LEND] = "lend",	    [GS_BY_WITHDRAW] = "withdraw",
	[GS_BY_RELEASE] = "release",   [GS_BY_DRAINED] = "drained", [GS_BY_SETTLED] = "settled",
	[GS_BY_HOLD_MAX] = "hold-max", [GS_BY_LOST] = "lost",	    [GS_BY_UNLOAD] = "unload",
};
COMPLETE(causes, __GS_CAUSE_MAX);

static const char *const roles[] = {
	[GS_MEMBER] = "member",
	[GS_BORROWER] = "borrower",
	[GS_EXEMPT] = "exempt",
};
COMPLETE(roles, __GS_ROLE_MAX);

static const char *const kinds[] = {
	[GS_OPEN] = "open",	[GS_RELEASE] = "release",
	[GS_IOCTL] = "ioctl",	[GS_COMPAT_IOCTL] = "compat-ioctl",
	[GS_MMAP] = "mmap",	[GS_FAULT] = "fault",
	[GS_ACCESS] = "access",
};
COMPLETE(kinds, __GS_KIND_MAX);

static const char *const events[] = {
	[GS_EV_NONE] = "none",	       [GS_EV_STATE] = "state",	      [GS_EV_DRAINED] = "drained",
	[GS_EV_REVOKED] = "revoked",   [GS_EV_RELEASED] = "released", [GS_EV_HOOKED] = "hooked",
	[GS_EV_UNHOOKED] = "unhooked", [GS_EV_AGENT] = "agent",	      [GS_EV_STOLEN] = "stolen",
	[GS_EV_LOST] = "lost",
};
COMPLETE(events, __GS_EV_MAX);

static const char *const attrs[] = {
	[GS_A_UNSPEC] = "none",
	[GS_A_PAD] = "pad",
	[GS_A_NAME] = "name",
	[GS_A_DRIVER] = "driver",
	[GS_A_FD] = "fd",
	[GS_A_DEV] = "dev",
	[GS_A_DEVS] = "devs",
	[GS_A_PASSIVE] = "passive",
	[GS_A_FUNCS] = "funcs",
	[GS_A_MODULE] = "module",
	[GS_A_TOUCHES] = "touches",
	[GS_A_LEND_AFTER_MS] = "lend-after-ms",
	[GS_A_HOLD_MAX_MS] = "hold-max-ms",
	[GS_A_SETTLE_MS] = "settle-ms",
	[GS_A_STATE] = "state",
	[GS_A_FROM] = "from",
	[GS_A_CAUSE] = "cause",
	[GS_A_SINCE] = "since",
	[GS_A_LAST_TOUCH] = "last-touch",
	[GS_A_SEQ] = "seq",
	[GS_A_FILES] = "files",
	[GS_A_HELD] = "held",
	[GS_A_HELD_MS] = "held-ms",
	[GS_A_ROLE] = "role",
	[GS_A_PID] = "pid",
	[GS_A_START_TIME] = "start-time",
	[GS_A_PIDNS] = "pidns",
	[GS_A_CGROUP_ID] = "cgroup-id",
	[GS_A_CGROUP_V1] = "cgroup-v1",
	[GS_A_HOLDINGS] = "holdings",
	[GS_A_KILL_ON_RETURN] = "kill-on-return",
	[GS_A_REVOKED] = "revoked",
	[GS_A_KILLED] = "killed",
	[GS_A_WATCH] = "watch",
	[GS_A_KIND] = "kind",
	[GS_A_COUNTS] = "counts",
	[GS_A_COUNT] = "count",
	[GS_A_EVENT] = "event",
	[GS_A_EVENT_SEQ] = "event-seq",
	[GS_A_TIME] = "time",
	[GS_A_ABI] = "abi",
	[GS_A_MODVERSION] = "modversion",
	[GS_A_FEATURES] = "features",
	[GS_A_AGENT_ALIVE] = "agent-alive",
	[GS_A_AGENT_PORT] = "agent-port",
	[GS_A_AGENT_AGE_MS] = "agent-age-ms",
	[GS_A_TOTAL_HELD] = "total-held",
	[GS_A_TOTAL_RETURNS] = "total-returns",
	[GS_A_TOTAL_SETTLED] = "total-settled",
	[GS_A_TOTAL_HOLD_MAX] = "total-hold-max",
	[GS_A_TOTAL_QUARANTINE] = "total-quarantine",
	[GS_A_TOTAL_KILLS] = "total-kills",
	[GS_A_TOTAL_REFUSED] = "total-refused",
	[GS_A_TOTAL_EVENTS_LOST] = "total-events-lost",
	[GS_A_REVOCABLE] = "revocable",
	[GS_A_MAPPINGS] = "mappings",
	[GS_A_FAULTS] = "faults",
	[GS_A_TOTAL_MAPPINGS] = "total-mappings",
	[GS_A_TOTAL_FAULTS] = "total-faults",
};
COMPLETE(attrs, __GS_A_MAX);

/* Bit by bit of GS_F_*. */
static const struct {
	const char *name, *lack;
} features[] = {
	{ "hook-by-address",
	  "functions are hooked by name, so a static one of a common name is not" },
	{ "hook-no-regs", "a call of a watched holding costs more" },
	{ "hook-permanent", "writing 0 to kernel.ftrace_enabled takes the hooks away" },
	{ "io-worker-ns", "what io_uring's workers do counts for nobody" },
	{ "mcast-cap", "the module itself keeps others from the events" },
	{ "cgroup-v1", "no watch by a cgroup of version 1" },
	{ "freezable", "held callers of io_uring keep the machine from suspending" },
	{ "ioctl-compat", "there are no 32-bit callers" },
	{ "revoke", "a return by a store to a mapping is not held" },
	{ "sample", "stores to a mapping are looked for only when a card is lent" },
};

#define NAME_OF(table, value) ((value) < GS_ARRAY_SIZE(table) ? (table)[value] : "?")

const char *gs_kname_state(unsigned int state)
{
	return NAME_OF(states, state);
}

const char *gs_kname_cause(unsigned int cause)
{
	return NAME_OF(causes, cause);
}

const char *gs_kname_role(unsigned int role)
{
	return NAME_OF(roles, role);
}

const char *gs_kname_kind(unsigned int kind)
{
	return NAME_OF(kinds, kind);
}

const char *gs_kname_event(unsigned int event)
{
	return NAME_OF(events, event);
}

const char *gs_kname_attr(unsigned int attr)
{
	return NAME_OF(attrs, attr);
}

const char *gs_kname_feature(unsigned int bit)
{
	return bit < GS_ARRAY_SIZE(features) ? features[bit].name : "?";
}

const char *gs_kname_feature_lack(unsigned int bit)
{
	return bit < GS_ARRAY_SIZE(features) ? features[bit].lack : NULL;
}

unsigned int gs_kname_features(void)
{
	return GS_ARRAY_SIZE(features);
}

int gs_kname_find_state(const char *name)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(states); i++)
		if (strcmp(states[i], name) == 0)
			return (int)i;
	return -1;
}
