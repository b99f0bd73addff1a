// SPDX-License-Identifier: GPL-2.0-only
/* The commands of the netlink family: reading a request, and doing what it asks for. */
#include <linux/file.h>

#include "agent.h"
#include "holding.h"
#include "hook.h"
#include "netlink.h"
#include "node.h"
#include "watch.h"

/* ---- Reading a request. */

/* The attribute, or NULL with a message that names it. */
#define need(info, attr)                                                       \
	({                                                                     \
		struct nlattr *__a = (info)->attrs[attr];                      \
		if (!__a)                                                      \
			gs_refuse((info)->extack, "missing attribute " #attr); \
		__a;                                                           \
	})

/* A name: not empty, no control character (it is printed in logs), one end and that at its end. */
static const char *get_name(struct nlattr *attr, struct netlink_ext_ack *extack)
{
	const char *name;
	int i, len;

	if (!attr)
		return NULL;
	name = nla_data(attr);
	len = nla_len(attr) - 1;
	for (i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			break;
	if (len <= 0 || len > GS_NAME_MAX || i < len || name[len]) {
		gs_refuse_attr(extack, attr,
			       "a name is empty, too long, or holds a control character");
		return NULL;
	}
	return name;
}

static struct gs_holding *get_holding(struct genl_info *info)
{
	const char *name = get_name(need(info, GS_A_NAME), info->extack);
	struct gs_holding *holding;

	if (!name)
		return ERR_PTR(-EINVAL);
	holding = gs_holding_find(name);
	if (!holding) {
		gs_refuse(info->extack, "no holding of that name");
		return ERR_PTR(-ENOENT);
	}
	return holding;
}

/* u32s out of a binary attribute, or none. */
static int get_u32s(struct nlattr *attr, const u32 **ret, unsigned int *ret_n,
		    struct netlink_ext_ack *extack)
{
	*ret = NULL;
	*ret_n = 0;
	if (!attr)
		return 0;
	if (nla_len(attr) % sizeof(u32)) {
		gs_refuse_attr(extack, attr, "not a list of 32-bit numbers");
		return -EINVAL;
	}
	*ret = nla_data(attr);
	*ret_n = nla_len(attr) / sizeof(u32);
	return 0;
}

/* ---- Commands. gs_config is held, but for the quick ones (netlink.c). */

static int do_heartbeat(struct sk_buff *skb, struct genl_info *info)
{
	int ret = gs_agent_beat(info->snd_portid, info->extack);

	/*
	 * A good moment to look whether silence still means something. It takes ftrace's lock,
	 * which anybody's tracer may keep for seconds: the agent does not wait for that.
	 */
	if (!ret)
		gs_nodes_check_soon();
	return ret;
}

static int do_hook_add(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *fd = need(info, GS_A_FD);
	const char *driver = "";
	struct gs_node *node;
	unsigned int n_passive;
	struct sk_buff *reply;
	const u32 *passive;
	struct file *file;
	int ret;

	if (!fd)
		return -EINVAL;
	if (info->attrs[GS_A_DRIVER]) {
		driver = get_name(info->attrs[GS_A_DRIVER], info->extack);
		if (!driver)
			return -EINVAL;
	}
	ret = get_u32s(info->attrs[GS_A_PASSIVE], &passive, &n_passive, info->extack);
	if (ret)
		return ret;
	reply = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	/* We are in the sender's context. The driver can't be unloaded while we hold this. */
	file = fget(nla_get_s32(fd));
	if (!file) {
		gs_refuse_attr(info->extack, fd, "not an open file");
		nlmsg_free(reply);
		return -EBADF;
	}
	ret = gs_node_add(file, driver, passive, n_passive,
			  nla_get_flag(info->attrs[GS_A_REVOCABLE]), &node, info->extack);
	fput(file);
	if (!ret)
		ret = gs_put_node(reply, node, info->snd_portid, info->snd_seq, 0, NULL);
	if (ret) {
		nlmsg_free(reply);
		return ret;
	}
	/* The node is hooked, whether the sender has room for the answer or not. */
	(void)genlmsg_reply(reply, info);
	return 0;
}

static int do_hook_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *dev = need(info, GS_A_DEV);
	struct gs_node *node;

	if (!dev)
		return -EINVAL;
	node = gs_node_find(new_decode_dev(nla_get_u32(dev)));
	if (!node) {
		gs_refuse_attr(info->extack, dev, "that node is not hooked");
		return -ENOENT;
	}
	if (gs_holding_needs(node->dev)) {
		gs_refuse(info->extack,
			  "a holding that needs the node is lent or returning: withdraw it first");
		return -EBUSY;
	}
	gs_node_del(node, GS_BY_NONE);
	return 0;
}

/* (A policy's range is of 16 bits on older kernels.) U32_MAX: not given. */
static int get_ms(struct genl_info *info, enum gs_attr id, u32 least, u32 most, u32 *ret)
{
	struct nlattr *attr = info->attrs[id];

	*ret = attr ? nla_get_u32(attr) : U32_MAX;
	if (attr && (*ret < least || *ret > most)) {
		gs_refuse_attr(info->extack, attr, "a time is out of range");
		return -ERANGE;
	}
	return 0;
}

static int do_holding_set(struct sk_buff *skb, struct genl_info *info)
{
	struct gs_holding_spec spec = {};
	unsigned int i, j;
	int ret;

	spec.name = get_name(need(info, GS_A_NAME), info->extack);
	if (!spec.name)
		return -EINVAL;
	ret = get_u32s(info->attrs[GS_A_DEVS], &spec.devs, &spec.n_devs, info->extack);
	if (ret)
		return ret;
	for (i = 0; i < spec.n_devs; i++) {
		for (j = 0; j < i; j++) {
			if (spec.devs[i] != spec.devs[j])
				continue;
			gs_refuse_attr(info->extack, info->attrs[GS_A_DEVS],
				       "a device stands twice");
			return -EINVAL;
		}
	}
	ret = get_ms(info, GS_A_LEND_AFTER_MS, 1, GS_LEND_AFTER_MAX_MS, &spec.lend_after_ms);
	ret = ret ?: get_ms(info, GS_A_HOLD_MAX_MS, 1, GS_HOLD_MAX_MAX_MS, &spec.hold_max_ms);
	ret = ret ?: get_ms(info, GS_A_SETTLE_MS, 0, GS_SETTLE_MAX_MS, &spec.settle_ms);
	return ret ?: gs_holding_set(&spec, info->extack);
}

static int do_holding_del(struct sk_buff *skb, struct genl_info *info)
{
	struct gs_holding *holding = get_holding(info);

	return IS_ERR(holding) ? PTR_ERR(holding) : gs_holding_del(holding, info->extack);
}

/* The holdings that a watch names. */
static int get_holdings(struct gs_watch_spec *spec, struct genl_info *info)
{
	struct nlattr *list = info->attrs[GS_A_HOLDINGS], *attr;
	struct gs_holding *holding;
	const char *name;
	int rest;

	if (!list)
		return 0;
	nla_for_each_nested(attr, list, rest) {
		if (nla_type(attr) != GS_A_NAME) {
			gs_refuse_attr(info->extack, attr, "not a list of names");
			return -EINVAL;
		}
		name = get_name(attr, info->extack);
		if (!name)
			return -EINVAL;
		holding = gs_holding_find(name);
		if (!holding) {
			gs_refuse_attr(info->extack, attr, "no holding of that name");
			return -ENOENT;
		}
		if (spec->n_holdings == GS_LINKS_MAX) {
			gs_refuse_attr(info->extack, attr, "too many holdings for one watch");
			return -E2BIG;
		}
		spec->holdings[spec->n_holdings++] = holding;
	}
	if (rest) {
		gs_refuse_attr(info->extack, list, "not a list of names");
		return -EINVAL;
	}
	return 0;
}

/* Which container a watch is about. */
static int get_container(struct gs_watch_spec *spec, struct genl_info *info)
{
	struct nlattr *pid = info->attrs[GS_A_PID], *cgroup = info->attrs[GS_A_CGROUP_ID];

	if (!pid == !cgroup) {
		gs_refuse(info->extack, "a watch is by GS_A_PID or by GS_A_CGROUP_ID");
		return -EINVAL;
	}
	if (pid ? !!info->attrs[GS_A_CGROUP_V1] : !!info->attrs[GS_A_START_TIME]) {
		gs_refuse(info->extack, "GS_A_START_TIME goes with GS_A_PID, GS_A_CGROUP_V1 with "
					"GS_A_CGROUP_ID");
		return -EINVAL;
	}
	if (pid) {
		spec->by = GS_KEY_PIDNS;
		spec->pid = nla_get_u32(pid);
		if (!need(info, GS_A_START_TIME))
			return -EINVAL;
		spec->start_time = nla_get_u64(info->attrs[GS_A_START_TIME]);
		return 0;
	}
	spec->by = GS_KEY_CGROUP;
	spec->key = nla_get_u64(cgroup);
	if (nla_get_flag(info->attrs[GS_A_CGROUP_V1])) {
		spec->by = GS_KEY_CGROUP_V1;
		if (!GS_CGROUP_V1) {
			gs_refuse(info->extack, "this kernel has no devices hierarchy");
			return -EOPNOTSUPP;
		}
	}
	/* The root of every hierarchy has number 1: that would be the whole host. */
	if (spec->key <= 1) {
		gs_refuse_attr(info->extack, cgroup, "the root cgroup is not a container");
		return -EINVAL;
	}
	return 0;
}

static int do_watch_set(struct sk_buff *skb, struct genl_info *info)
{
	struct gs_watch_spec spec = {};
	int ret;

	spec.name = get_name(need(info, GS_A_NAME), info->extack);
	if (!spec.name || !need(info, GS_A_ROLE))
		return -EINVAL;
	spec.role = nla_get_u8(info->attrs[GS_A_ROLE]);
	spec.kill_on_return = nla_get_flag(info->attrs[GS_A_KILL_ON_RETURN]);
	ret = get_container(&spec, info);
	if (!ret)
		ret = get_holdings(&spec, info);
	if (ret)
		return ret;
	if (spec.kill_on_return && spec.role != GS_BORROWER) {
		gs_refuse_attr(info->extack, info->attrs[GS_A_KILL_ON_RETURN],
			       "only a borrower can be killed on return");
		return -EINVAL;
	}
	if (spec.role == GS_EXEMPT && spec.n_holdings) {
		gs_refuse(info->extack, "an exempt container has no holdings");
		return -EINVAL;
	}
	if (spec.role != GS_EXEMPT && !spec.n_holdings) {
		gs_refuse(info->extack, "GS_A_HOLDINGS names no holding");
		return -EINVAL;
	}
	return gs_watch_set(&spec, info->extack);
}

static int do_watch_del(struct sk_buff *skb, struct genl_info *info)
{
	const char *name = get_name(need(info, GS_A_NAME), info->extack);
	struct gs_watch *watch;

	if (!name)
		return -EINVAL;
	watch = gs_watch_find(name);
	if (!watch) {
		gs_refuse(info->extack, "no watch of that name");
		return -ENOENT;
	}
	return gs_watch_del(watch, info->extack);
}

/* LEND and SAMPLE: what is done to a holding that is idle since the event of that number. */
static int do_idle(struct genl_info *info,
		   int (*act)(struct gs_holding *, u64, struct netlink_ext_ack *))
{
	struct nlattr *seq = need(info, GS_A_SEQ);
	struct gs_holding *holding;

	if (!seq)
		return -EINVAL;
	holding = get_holding(info);
	if (IS_ERR(holding))
		return PTR_ERR(holding);
	return act(holding, nla_get_u64(seq), info->extack);
}

static int do_lend(struct sk_buff *skb, struct genl_info *info)
{
	return do_idle(info, gs_holding_lend);
}

static int do_sample(struct sk_buff *skb, struct genl_info *info)
{
	return do_idle(info, gs_holding_sample);
}

/* For a command that does not wait for gs_config. Returns a reference. */
static struct gs_holding *get_holding_now(struct genl_info *info)
{
	struct gs_holding *holding;

	spin_lock(&gs_lock);
	holding = get_holding(info);
	if (!IS_ERR(holding))
		kref_get(&holding->ref);
	spin_unlock(&gs_lock);
	return holding;
}

static int do_withdraw(struct sk_buff *skb, struct genl_info *info)
{
	struct gs_holding *holding = get_holding_now(info);

	if (IS_ERR(holding))
		return PTR_ERR(holding);
	spin_lock(&gs_lock);
	if (!gs_going)
		gs_holding_on(holding, GS_ON_WITHDRAW, NULL, NULL);
	spin_unlock(&gs_lock);
	gs_holding_put(holding);
	return 0;
}

static int do_release(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *seq = need(info, GS_A_SEQ);
	struct gs_holding *holding;
	int ret;

	if (!seq)
		return -EINVAL;
	holding = get_holding_now(info);
	if (IS_ERR(holding))
		return PTR_ERR(holding);
	ret = gs_holding_release(holding, nla_get_u64(seq), info->extack);
	gs_holding_put(holding);
	return ret;
}

static int put_status(struct sk_buff *reply)
{
	struct gs_totals t;
	u32 port = gs_agent_port();
	u64 seq;

	spin_lock(&gs_lock);
	t = gs_totals;
	seq = gs_event_seq;
	spin_unlock(&gs_lock);
	if (nla_put_u32(reply, GS_A_ABI, GS_ABI_VERSION) ||
	    nla_put_string(reply, GS_A_MODVERSION, GPUSHARE_VERSION) ||
	    nla_put_u32(reply, GS_A_FEATURES, gs_features()) ||
	    nla_put_u8(reply, GS_A_AGENT_ALIVE, gs_agent_alive()) ||
	    nla_put_u64_64bit(reply, GS_A_EVENT_SEQ, seq, GS_A_PAD) ||
	    nla_put_u32(reply, GS_A_LEND_AFTER_MS, gs_default_lend_after()) ||
	    nla_put_u32(reply, GS_A_HOLD_MAX_MS, gs_default_hold_max()) ||
	    nla_put_u32(reply, GS_A_SETTLE_MS, gs_default_settle()) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_HELD, t.held, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_RETURNS, t.returns, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_SETTLED, t.settled, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_HOLD_MAX, t.hold_max, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_QUARANTINE, t.quarantine, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_KILLS, t.kills, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_REFUSED, t.refused, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_EVENTS_LOST, t.events_lost, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_MAPPINGS, t.mappings, GS_A_PAD) ||
	    nla_put_u64_64bit(reply, GS_A_TOTAL_FAULTS, t.faults, GS_A_PAD))
		return -EMSGSIZE;
	if (port && (nla_put_u32(reply, GS_A_AGENT_PORT, port) ||
		     nla_put_u32(reply, GS_A_AGENT_AGE_MS, gs_agent_age_ms())))
		return -EMSGSIZE;
	return 0;
}

static int do_status(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	void *header;
	int ret;

	reply = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &gs_family, 0, GS_CMD_STATUS);
	ret = header ? put_status(reply) : -EMSGSIZE;
	if (ret) {
		nlmsg_free(reply);
		return ret;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

int (*const gs_commands[GS_CMD_MAX + 1])(struct sk_buff *skb, struct genl_info *info) = {
	[GS_CMD_STATUS] = do_status,
	[GS_CMD_HEARTBEAT] = do_heartbeat,
	[GS_CMD_HOOK_ADD] = do_hook_add,
	[GS_CMD_HOOK_DEL] = do_hook_del,
	[GS_CMD_HOLDING_SET] = do_holding_set,
	[GS_CMD_HOLDING_DEL] = do_holding_del,
	[GS_CMD_WATCH_SET] = do_watch_set,
	[GS_CMD_WATCH_DEL] = do_watch_del,
	[GS_CMD_LEND] = do_lend,
	[GS_CMD_WITHDRAW] = do_withdraw,
	[GS_CMD_RELEASE] = do_release,
	[GS_CMD_SAMPLE] = do_sample,
};
