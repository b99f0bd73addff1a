// SPDX-License-Identifier: GPL-2.0-only
/* The netlink family: telling the whole state. */
#include "agent.h"
#include "holding.h"
#include "hook.h"
#include "netlink.h"
#include "node.h"
#include "watch.h"

/* All watches' touches on a node. */
static u64 node_touches(const struct gs_node *node)
{
	struct gs_watch *watch;
	u64 sum = 0;

	list_for_each_entry(watch, &gs_watches, link)
		sum += gs_watch_node_sum(watch, node->index);
	return sum;
}

static void *begin(struct sk_buff *skb, u32 port, u32 seq, int flags, u8 cmd,
		   struct netlink_callback *cb)
{
	void *header = genlmsg_put(skb, port, seq, &gs_family, flags, cmd);

	if (header && cb)
		genl_dump_check_consistent(cb, header);
	return header;
}

int gs_put_node(struct sk_buff *skb, const struct gs_node *node, u32 port, u32 seq, int flags,
		struct netlink_callback *cb)
{
	void *header = begin(skb, port, seq, flags, GS_CMD_NODE, cb);
	unsigned int i;
	u32 funcs = 0;
	int kind;

	if (!header)
		return -EMSGSIZE;
	for (kind = 0; kind < __GS_KIND_MAX; kind++)
		if (node->fns[kind])
			funcs |= GS_KIND_BIT(kind);
	for (i = 0; i < GS_MAP_FNS && node->map_fns[i]; i++)
		funcs |= node->map_fns[i]->bit;
	if (nla_put_u32(skb, GS_A_DEV, gs_dev_encode(node->dev)) ||
	    nla_put_string(skb, GS_A_DRIVER, node->driver) || nla_put_u32(skb, GS_A_FUNCS, funcs) ||
	    (node->module[0] && nla_put_string(skb, GS_A_MODULE, node->module)) ||
	    nla_put_u64_64bit(skb, GS_A_TOUCHES, node_touches(node), GS_A_PAD) ||
	    (node->revocable && nla_put_flag(skb, GS_A_REVOCABLE)))
		goto cancel;
	if (node->n_passive &&
	    nla_put(skb, GS_A_PASSIVE, node->n_passive * sizeof(u32), node->passive))
		goto cancel;
	genlmsg_end(skb, header);
	return 0;
cancel:
	genlmsg_cancel(skb, header);
	return -EMSGSIZE;
}

/* jiffies as an instant of CLOCK_BOOTTIME, as far as a tick can tell. */
static u64 instant(unsigned long at)
{
	return gs_clock() - jiffies_to_nsecs(jiffies - at);
}

static int put_holding(struct sk_buff *skb, struct gs_holding *holding, struct netlink_callback *cb)
{
	void *header = begin(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, NLM_F_MULTI,
			     GS_CMD_HOLDING, cb);
	struct nlattr *devs;
	unsigned long last;
	unsigned int i;
	u64 touched;
	int failed;

	if (!header)
		return -EMSGSIZE;
	devs = nla_reserve(skb, GS_A_DEVS, holding->n_devs * sizeof(u32));
	if (!devs)
		goto cancel;
	for (i = 0; i < holding->n_devs; i++)
		((u32 *)nla_data(devs))[i] = gs_dev_encode(holding->devs[i]);

	spin_lock(&gs_lock);
	touched = gs_holding_last(holding, &last) ? instant(last) : 0;
	failed = nla_put_string(skb, GS_A_NAME, holding->name) ||
		 nla_put_u8(skb, GS_A_STATE, holding->state) ||
		 nla_put_u64_64bit(skb, GS_A_SINCE, holding->since, GS_A_PAD) ||
		 nla_put_u64_64bit(skb, GS_A_LAST_TOUCH, touched, GS_A_PAD) ||
		 nla_put_u64_64bit(skb, GS_A_SEQ, holding->seq, GS_A_PAD) ||
		 nla_put_u32(skb, GS_A_FILES, holding->files) ||
		 nla_put_u32(skb, GS_A_HELD, holding->held) ||
		 nla_put_u32(skb, GS_A_LEND_AFTER_MS, holding->lend_after_ms) ||
		 nla_put_u32(skb, GS_A_HOLD_MAX_MS, holding->hold_max_ms) ||
		 nla_put_u32(skb, GS_A_SETTLE_MS, holding->settle_ms) ||
		 nla_put_u32(skb, GS_A_MAPPINGS, holding->mappings) ||
		 nla_put_u64_64bit(skb, GS_A_FAULTS, holding->faults, GS_A_PAD);
	spin_unlock(&gs_lock);
	if (failed)
		goto cancel;
	genlmsg_end(skb, header);
	return 0;
cancel:
	genlmsg_cancel(skb, header);
	return -EMSGSIZE;
}

static int put_counts(struct sk_buff *skb, const struct gs_watch *watch)
{
	struct nlattr *list, *item;
	unsigned int i;
	u64 touches;

	list = nla_nest_start(skb, GS_A_COUNTS);
	if (!list)
		return -EMSGSIZE;
	for (i = 0; i < gs_node_indices(); i++) {
		touches = gs_watch_node_sum(watch, i);
		if (!touches)
			continue;
		item = nla_nest_start(skb, GS_A_COUNT);
		if (!item || nla_put_u32(skb, GS_A_DEV, gs_dev_encode(gs_node_index_dev(i))) ||
		    nla_put_u64_64bit(skb, GS_A_TOUCHES, touches, GS_A_PAD))
			return -EMSGSIZE;
		nla_nest_end(skb, item);
	}
	nla_nest_end(skb, list);
	return 0;
}

static int put_links(struct sk_buff *skb, const struct gs_watch *watch)
{
	struct gs_link *link;
	struct nlattr *list;

	list = nla_nest_start(skb, GS_A_HOLDINGS);
	if (!list)
		return -EMSGSIZE;
	list_for_each_entry(link, &watch->links, of_watch)
		if (nla_put_string(skb, GS_A_NAME, link->holding->name))
			return -EMSGSIZE;
	nla_nest_end(skb, list);
	return 0;
}

static int put_container(struct sk_buff *skb, const struct gs_watch *watch)
{
	if (watch->by == GS_KEY_PIDNS)
		return nla_put_u32(skb, GS_A_PID, watch->pid) ||
		       nla_put_u32(skb, GS_A_PIDNS, watch->ns->ns.inum);
	return nla_put_u64_64bit(skb, GS_A_CGROUP_ID, watch->key, GS_A_PAD) ||
	       (watch->by == GS_KEY_CGROUP_V1 && nla_put_flag(skb, GS_A_CGROUP_V1));
}

static int put_watch(struct sk_buff *skb, const struct gs_watch *watch, struct netlink_callback *cb)
{
	void *header = begin(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, NLM_F_MULTI,
			     GS_CMD_WATCH, cb);
	int failed;

	if (!header)
		return -EMSGSIZE;
	failed = nla_put_string(skb, GS_A_NAME, watch->name) ||
		 nla_put_u8(skb, GS_A_ROLE, watch->role) || put_container(skb, watch) ||
		 put_counts(skb, watch);
	spin_lock(&gs_lock);
	failed = failed || put_links(skb, watch) ||
		 (watch->role == GS_BORROWER && nla_put_u32(skb, GS_A_FILES, watch->files)) ||
		 (watch->kill_on_return && nla_put_flag(skb, GS_A_KILL_ON_RETURN)) ||
		 (watch->revoked && nla_put_flag(skb, GS_A_REVOKED)) ||
		 (watch->killed && nla_put_flag(skb, GS_A_KILLED));
	spin_unlock(&gs_lock);
	if (failed) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/*
 * Goes on behind the object with the number in args[1] of the kind in args[0]: numbers only grow.
 * What comes or goes meanwhile marks the dump as interrupted, and the reader asks again.
 */
int gs_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct gs_holding *holding;
	struct gs_watch *watch;
	struct gs_node *node;
	int ret = 0;

	if (!cb->args[2]) {
		ret = gs_netlink_check_dump(cb);
		if (ret)
			return ret;
		cb->args[2] = 1;
	}

#define EACH(kind, object, list, put)                       \
	do {                                                \
		if (ret || cb->args[0] != (kind))           \
			break;                              \
		list_for_each_entry(object, list, link) {   \
			if (object->id <= (u32)cb->args[1]) \
				continue;                   \
			ret = put;                          \
			if (ret)                            \
				break;                      \
			cb->args[1] = object->id;           \
		}                                           \
		if (!ret) {                                 \
			cb->args[0]++;                      \
			cb->args[1] = 0;                    \
		}                                           \
	} while (0)

	gs_agent_busy(NETLINK_CB(cb->skb).portid, true);
	ret = mutex_lock_killable(&gs_config);
	gs_agent_busy(NETLINK_CB(cb->skb).portid, false);
	if (ret)
		return -EINTR;
	cb->seq = gs_config_generation;
	EACH(0, node, &gs_nodes,
	     gs_put_node(skb, node, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, NLM_F_MULTI,
			 cb));
	EACH(1, holding, &gs_holdings, put_holding(skb, holding, cb));
	EACH(2, watch, &gs_watches, put_watch(skb, watch, cb));
	mutex_unlock(&gs_config);
#undef EACH

	return skb->len ? skb->len : ret;
}
