// SPDX-License-Identifier: Apache-2.0
/* Taking the kernel module's messages apart. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "common/kmsg.h"
#include "common/kname.h"
#include "common/xalloc.h"

/* What stands in each attribute, the same in every message. */
static const enum mnl_attr_data_type types[__GS_A_MAX] = {
	[GS_A_NAME] = MNL_TYPE_NUL_STRING,
	[GS_A_DRIVER] = MNL_TYPE_NUL_STRING,
	[GS_A_DEV] = MNL_TYPE_U32,
	[GS_A_DEVS] = MNL_TYPE_BINARY,
	[GS_A_FUNCS] = MNL_TYPE_U32,
	[GS_A_MODULE] = MNL_TYPE_NUL_STRING,
	[GS_A_TOUCHES] = MNL_TYPE_U64,
	[GS_A_LEND_AFTER_MS] = MNL_TYPE_U32,
	[GS_A_HOLD_MAX_MS] = MNL_TYPE_U32,
	[GS_A_SETTLE_MS] = MNL_TYPE_U32,
	[GS_A_STATE] = MNL_TYPE_U8,
	[GS_A_FROM] = MNL_TYPE_U8,
	[GS_A_CAUSE] = MNL_TYPE_U8,
	[GS_A_SINCE] = MNL_TYPE_U64,
	[GS_A_LAST_TOUCH] = MNL_TYPE_U64,
	[GS_A_SEQ] = MNL_TYPE_U64,
	[GS_A_FILES] = MNL_TYPE_U32,
	[GS_A_HELD] = MNL_TYPE_U32,
	[GS_A_HELD_MS] = MNL_TYPE_U32,
	[GS_A_ROLE] = MNL_TYPE_U8,
	[GS_A_PID] = MNL_TYPE_U32,
	[GS_A_START_TIME] = MNL_TYPE_U64,
	[GS_A_PIDNS] = MNL_TYPE_U32,
	[GS_A_CGROUP_ID] = MNL_TYPE_U64,
	[GS_A_CGROUP_V1] = MNL_TYPE_FLAG,
	[GS_A_HOLDINGS] = MNL_TYPE_NESTED,
	[GS_A_KILL_ON_RETURN] = MNL_TYPE_FLAG,
	[GS_A_REVOKED] = MNL_TYPE_FLAG,
	[GS_A_KILLED] = MNL_TYPE_FLAG,
	[GS_A_WATCH] = MNL_TYPE_NUL_STRING,
	[GS_A_KIND] = MNL_TYPE_U8,
	[GS_A_COUNTS] = MNL_TYPE_NESTED,
	[GS_A_COUNT] = MNL_TYPE_NESTED,
	[GS_A_EVENT] = MNL_TYPE_U8,
	[GS_A_EVENT_SEQ] = MNL_TYPE_U64,
	[GS_A_TIME] = MNL_TYPE_U64,
	[GS_A_ABI] = MNL_TYPE_U32,
	[GS_A_MODVERSION] = MNL_TYPE_NUL_STRING,
	[GS_A_FEATURES] = MNL_TYPE_U32,
	[GS_A_AGENT_ALIVE] = MNL_TYPE_U8,
	[GS_A_AGENT_PORT] = MNL_TYPE_U32,
	[GS_A_AGENT_AGE_MS] = MNL_TYPE_U32,
	[GS_A_TOTAL_HELD] = MNL_TYPE_U64,
	[GS_A_TOTAL_RETURNS] = MNL_TYPE_U64,
	[GS_A_TOTAL_SETTLED] = MNL_TYPE_U64,
	[GS_A_TOTAL_HOLD_MAX] = MNL_TYPE_U64,
	[GS_A_TOTAL_QUARANTINE] = MNL_TYPE_U64,
	[GS_A_TOTAL_KILLS] = MNL_TYPE_U64,
	[GS_A_TOTAL_REFUSED] = MNL_TYPE_U64,
	[GS_A_TOTAL_EVENTS_LOST] = MNL_TYPE_U64,
	[GS_A_REVOCABLE] = MNL_TYPE_FLAG,
	[GS_A_MAPPINGS] = MNL_TYPE_U32,
	[GS_A_FAULTS] = MNL_TYPE_U64,
	[GS_A_TOTAL_MAPPINGS] = MNL_TYPE_U64,
	[GS_A_TOTAL_FAULTS] = MNL_TYPE_U64,
};

/* The attributes of one message or nest by number, NULL where it has none. */
struct attrs {
	const struct nlattr *v[__GS_A_MAX];
};

static int bad(struct gs_err *err, unsigned int type)
{
	return gs_err_set(err, EPROTO, "the module's %s is not of its type", gs_kname_attr(type));
}

static int check(const struct nlattr *attr, unsigned int type, struct gs_err *err)
{
	size_t len = mnl_attr_get_payload_len(attr);

	if (mnl_attr_validate(attr, types[type]) < 0 ||
	    (types[type] == MNL_TYPE_NUL_STRING && len > GS_NAME_MAX + 1))
		return bad(err, type);
	return 0;
}

/*
 * Files the attributes in @len bytes at @p. Of one that stands twice the last counts, as in the
 * kernel.
 */
static int take_apart(const void *p, size_t len, struct attrs *ret, struct gs_err *err)
{
	const char *end = (const char *)p + len;
	const struct nlattr *attr = p;

	memset(ret, 0, sizeof(*ret));
	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr)) {
		unsigned int type = mnl_attr_get_type(attr);

		if (type > GS_A_MAX || types[type] == MNL_TYPE_UNSPEC)
			continue;
		if (check(attr, type, err) < 0)
			return -EPROTO;
		ret->v[type] = attr;
	}
	/* The last one's padding may be missing, nothing else. */
	if ((const char *)attr < end)
		return gs_err_set(err, EPROTO, "the module's message is cut short");
	return 0;
}

static int read_message(const struct nlmsghdr *nlh, struct attrs *ret, struct gs_err *err)
{
	size_t len = mnl_nlmsg_get_payload_len(nlh);

	if (gs_kmsg_cmd(nlh) < 0)
		return gs_err_set(err, EPROTO, "the module's message is cut short");
	return take_apart(mnl_nlmsg_get_payload_offset(nlh, GENL_HDRLEN), len - GENL_HDRLEN, ret,
			  err);
}

int gs_kmsg_cmd(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);

	return nlh->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN ? -1 : genl->cmd;
}

static int need(const struct attrs *attrs, unsigned int type, struct gs_err *err)
{
	if (attrs->v[type])
		return 0;
	return gs_err_set(err, EPROTO, "the module's message has no %s", gs_kname_attr(type));
}

static unsigned int get_u8(const struct attrs *attrs, unsigned int type)
{
	return attrs->v[type] ? mnl_attr_get_u8(attrs->v[type]) : 0;
}

static uint32_t get_u32(const struct attrs *attrs, unsigned int type)
{
	return attrs->v[type] ? mnl_attr_get_u32(attrs->v[type]) : 0;
}

static uint64_t get_u64(const struct attrs *attrs, unsigned int type)
{
	return attrs->v[type] ? mnl_attr_get_u64(attrs->v[type]) : 0;
}

/* check() has seen to the length and to the NUL at the end. */
static void get_name(const struct attrs *attrs, unsigned int type, gs_kname ret)
{
	size_t len = attrs->v[type] ? mnl_attr_get_payload_len(attrs->v[type]) : 0;

	memset(ret, 0, sizeof(gs_kname));
	if (len)
		memcpy(ret, mnl_attr_get_str(attrs->v[type]), len);
}

static int get_devs(const struct attrs *attrs, struct gs_kdevs *ret, struct gs_err *err)
{
	const struct nlattr *attr = attrs->v[GS_A_DEVS];
	size_t len = attr ? mnl_attr_get_payload_len(attr) : 0;

	if (len % sizeof(*ret->v))
		return bad(err, GS_A_DEVS);
	ret->n = len / sizeof(*ret->v);
	ret->v = ret->n ? gs_calloc(ret->n, sizeof(*ret->v)) : NULL;
	if (ret->n)
		memcpy(ret->v, mnl_attr_get_payload(attr), len);
	return 0;
}

/* Calls @one for each attribute @type in the nest @outer, which may be missing. */
static int walk(const struct attrs *attrs, unsigned int outer, unsigned int type,
		int (*one)(const struct nlattr *attr, struct gs_kwatch *watch, struct gs_err *err),
		struct gs_kwatch *watch, struct gs_err *err)
{
	const struct nlattr *nest = attrs->v[outer], *attr;
	struct attrs inner;

	if (!nest)
		return 0;
	/* Checks them all. */
	if (take_apart(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), &inner, err) < 0)
		return -EPROTO;
	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == type && one(attr, watch, err) < 0)
			return -EPROTO;
	}
	return 0;
}

static int add_holding_name(const struct nlattr *attr, struct gs_kwatch *watch, struct gs_err *err)
{
	(void)err;
	gs_strv_add(&watch->holdings, mnl_attr_get_str(attr));
	return 0;
}

static int add_count(const struct nlattr *attr, struct gs_kwatch *watch, struct gs_err *err)
{
	struct attrs attrs;

	if (take_apart(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr), &attrs, err) <
		    0 ||
	    need(&attrs, GS_A_DEV, err) < 0 || need(&attrs, GS_A_TOUCHES, err) < 0)
		return -EPROTO;
	watch->counts = gs_grow(watch->counts, watch->n_counts, sizeof(*watch->counts));
	watch->counts[watch->n_counts++] = (struct gs_kcount){
		.dev = get_u32(&attrs, GS_A_DEV),
		.touches = get_u64(&attrs, GS_A_TOUCHES),
	};
	return 0;
}

int gs_kmsg_status(const struct nlmsghdr *nlh, struct gs_kstatus *ret, struct gs_err *err)
{
	struct attrs attrs;

	if (read_message(nlh, &attrs, err) < 0 || need(&attrs, GS_A_ABI, err) < 0)
		return -EPROTO;
	*ret = (struct gs_kstatus){
		.abi = get_u32(&attrs, GS_A_ABI),
		.features = get_u32(&attrs, GS_A_FEATURES),
		.agent_alive = get_u8(&attrs, GS_A_AGENT_ALIVE) != 0,
		.has_agent = attrs.v[GS_A_AGENT_PORT] != NULL,
		.agent_port = get_u32(&attrs, GS_A_AGENT_PORT),
		.agent_age_ms = get_u32(&attrs, GS_A_AGENT_AGE_MS),
		.held = get_u64(&attrs, GS_A_TOTAL_HELD),
		.returns = get_u64(&attrs, GS_A_TOTAL_RETURNS),
		.settled = get_u64(&attrs, GS_A_TOTAL_SETTLED),
		.hold_max = get_u64(&attrs, GS_A_TOTAL_HOLD_MAX),
		.quarantine = get_u64(&attrs, GS_A_TOTAL_QUARANTINE),
		.kills = get_u64(&attrs, GS_A_TOTAL_KILLS),
		.refused = get_u64(&attrs, GS_A_TOTAL_REFUSED),
		.events_lost = get_u64(&attrs, GS_A_TOTAL_EVENTS_LOST),
		.mappings = get_u64(&attrs, GS_A_TOTAL_MAPPINGS),
		.faults = get_u64(&attrs, GS_A_TOTAL_FAULTS),
		.event_seq = get_u64(&attrs, GS_A_EVENT_SEQ),
		.lend_after_ms = get_u32(&attrs, GS_A_LEND_AFTER_MS),
		.hold_max_ms = get_u32(&attrs, GS_A_HOLD_MAX_MS),
		.settle_ms = get_u32(&attrs, GS_A_SETTLE_MS),
	};
	get_name(&attrs, GS_A_MODVERSION, ret->version);
	return 0;
}

int gs_kmsg_node(const struct nlmsghdr *nlh, struct gs_knode *ret, struct gs_err *err)
{
	struct attrs attrs;

	if (read_message(nlh, &attrs, err) < 0 || need(&attrs, GS_A_DEV, err) < 0)
		return -EPROTO;
	*ret = (struct gs_knode){
		.dev = get_u32(&attrs, GS_A_DEV),
		.funcs = get_u32(&attrs, GS_A_FUNCS),
		.revocable = attrs.v[GS_A_REVOCABLE] != NULL,
		.touches = get_u64(&attrs, GS_A_TOUCHES),
	};
	get_name(&attrs, GS_A_DRIVER, ret->driver);
	get_name(&attrs, GS_A_MODULE, ret->module);
	return 0;
}

int gs_kmsg_holding(const struct nlmsghdr *nlh, struct gs_kholding *ret, struct gs_err *err)
{
	struct gs_kdevs devs;
	struct attrs attrs;

	if (read_message(nlh, &attrs, err) < 0 || need(&attrs, GS_A_NAME, err) < 0 ||
	    need(&attrs, GS_A_STATE, err) < 0 || get_devs(&attrs, &devs, err) < 0)
		return -EPROTO;
	*ret = (struct gs_kholding){
		.state = get_u8(&attrs, GS_A_STATE),
		.since_ns = get_u64(&attrs, GS_A_SINCE),
		.last_touch_ns = get_u64(&attrs, GS_A_LAST_TOUCH),
		.seq = get_u64(&attrs, GS_A_SEQ),
		.devs = devs,
		.lend_after_ms = get_u32(&attrs, GS_A_LEND_AFTER_MS),
		.hold_max_ms = get_u32(&attrs, GS_A_HOLD_MAX_MS),
		.settle_ms = get_u32(&attrs, GS_A_SETTLE_MS),
		.files = get_u32(&attrs, GS_A_FILES),
		.held = get_u32(&attrs, GS_A_HELD),
		.mappings = get_u32(&attrs, GS_A_MAPPINGS),
		.faults = get_u64(&attrs, GS_A_FAULTS),
	};
	get_name(&attrs, GS_A_NAME, ret->name);
	return 0;
}

int gs_kmsg_watch(const struct nlmsghdr *nlh, struct gs_kwatch *ret, struct gs_err *err)
{
	struct gs_kwatch watch = { 0 };
	struct attrs attrs;

	if (read_message(nlh, &attrs, err) < 0 || need(&attrs, GS_A_NAME, err) < 0 ||
	    need(&attrs, GS_A_ROLE, err) < 0)
		return -EPROTO;
	if (walk(&attrs, GS_A_HOLDINGS, GS_A_NAME, add_holding_name, &watch, err) < 0 ||
	    walk(&attrs, GS_A_COUNTS, GS_A_COUNT, add_count, &watch, err) < 0) {
		gs_kwatch_free(&watch);
		return -EPROTO;
	}
	watch.role = get_u8(&attrs, GS_A_ROLE);
	watch.pid = get_u32(&attrs, GS_A_PID);
	watch.pidns = get_u32(&attrs, GS_A_PIDNS);
	watch.cgroup_id = get_u64(&attrs, GS_A_CGROUP_ID);
	watch.cgroup_v1 = attrs.v[GS_A_CGROUP_V1] != NULL;
	watch.kill_on_return = attrs.v[GS_A_KILL_ON_RETURN] != NULL;
	watch.revoked = attrs.v[GS_A_REVOKED] != NULL;
	watch.killed = attrs.v[GS_A_KILLED] != NULL;
	watch.files = get_u32(&attrs, GS_A_FILES);
	get_name(&attrs, GS_A_NAME, watch.name);
	*ret = watch;
	return 0;
}

int gs_kmsg_event(const struct nlmsghdr *nlh, struct gs_kevent *ret, struct gs_err *err)
{
	struct attrs attrs;

	if (read_message(nlh, &attrs, err) < 0 || need(&attrs, GS_A_EVENT, err) < 0 ||
	    need(&attrs, GS_A_EVENT_SEQ, err) < 0)
		return -EPROTO;
	*ret = (struct gs_kevent){
		.event = get_u8(&attrs, GS_A_EVENT),
		.event_seq = get_u64(&attrs, GS_A_EVENT_SEQ),
		.time_ns = get_u64(&attrs, GS_A_TIME),
		.state = get_u8(&attrs, GS_A_STATE),
		.from = get_u8(&attrs, GS_A_FROM),
		.cause = get_u8(&attrs, GS_A_CAUSE),
		.has_dev = attrs.v[GS_A_DEV] != NULL,
		.dev = get_u32(&attrs, GS_A_DEV),
		.has_kind = attrs.v[GS_A_KIND] != NULL,
		.kind = get_u8(&attrs, GS_A_KIND),
		.pid = get_u32(&attrs, GS_A_PID),
		.pidns = get_u32(&attrs, GS_A_PIDNS),
		.start_time = get_u64(&attrs, GS_A_START_TIME),
		.files = get_u32(&attrs, GS_A_FILES),
		.held = get_u32(&attrs, GS_A_HELD),
		.held_ms = get_u32(&attrs, GS_A_HELD_MS),
		.mappings = get_u32(&attrs, GS_A_MAPPINGS),
		.faults = get_u64(&attrs, GS_A_FAULTS),
		.killed = attrs.v[GS_A_KILLED] != NULL,
		.agent_alive = get_u8(&attrs, GS_A_AGENT_ALIVE) != 0,
	};
	get_name(&attrs, GS_A_NAME, ret->name);
	get_name(&attrs, GS_A_WATCH, ret->watch);
	return 0;
}
