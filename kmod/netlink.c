// SPDX-License-Identifier: GPL-2.0-only
/* The netlink family: commands. */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/nsproxy.h>
#include <net/sock.h>

#include "agent.h"
#include "holding.h"
#include "hook.h"
#include "netlink.h"
#include "node.h"
#include "watch.h"

static const struct nla_policy policy[GS_A_MAX + 1] = {
	[GS_A_NAME] = { .type = NLA_NUL_STRING, .len = GS_NAME_MAX },
	[GS_A_DRIVER] = { .type = NLA_NUL_STRING, .len = GS_NAME_MAX },
	[GS_A_FD] = { .type = NLA_S32 },
	[GS_A_DEV] = { .type = NLA_U32 },
	[GS_A_DEVS] = { .type = NLA_BINARY, .len = GS_NODES_MAX * sizeof(u32) },
	[GS_A_PASSIVE] = { .type = NLA_BINARY, .len = GS_PASSIVE_MAX * sizeof(u32) },
	[GS_A_LEND_AFTER_MS] = { .type = NLA_U32 },
	[GS_A_HOLD_MAX_MS] = { .type = NLA_U32 },
	[GS_A_SETTLE_MS] = { .type = NLA_U32 },
	[GS_A_SEQ] = { .type = NLA_U64 },
	[GS_A_ROLE] = NLA_POLICY_MAX(NLA_U8, __GS_ROLE_MAX - 1),
	[GS_A_PID] = { .type = NLA_U32 },
	[GS_A_START_TIME] = { .type = NLA_U64 },
	[GS_A_CGROUP_ID] = { .type = NLA_U64 },
	[GS_A_CGROUP_V1] = { .type = NLA_FLAG },
	[GS_A_HOLDINGS] = { .type = NLA_NESTED },
	[GS_A_KILL_ON_RETURN] = { .type = NLA_FLAG },
};

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

/* ---- Commands. gs_config is held; what changes objects counts the generation up. */

static int do_heartbeat(struct sk_buff *skb, struct genl_info *info)
{
	int ret = gs_agent_beat(info->snd_portid, info->extack);

	/* A good moment to look whether silence still means something. */
	if (!ret)
		gs_nodes_check();
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
	ret = gs_node_add(file, driver, passive, n_passive, &node, info->extack);
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

static int do_lend(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *seq = need(info, GS_A_SEQ);
	struct gs_holding *holding;

	if (!seq)
		return -EINVAL;
	holding = get_holding(info);
	if (IS_ERR(holding))
		return PTR_ERR(holding);
	return gs_holding_lend(holding, nla_get_u64(seq), info->extack);
}

static int do_withdraw(struct sk_buff *skb, struct genl_info *info)
{
	struct gs_holding *holding = get_holding(info);

	if (IS_ERR(holding))
		return PTR_ERR(holding);
	spin_lock(&gs_lock);
	gs_holding_on(holding, GS_ON_WITHDRAW, NULL, NULL);
	spin_unlock(&gs_lock);
	return 0;
}

static int do_release(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *seq = need(info, GS_A_SEQ);
	struct gs_holding *holding;

	if (!seq)
		return -EINVAL;
	holding = get_holding(info);
	if (IS_ERR(holding))
		return PTR_ERR(holding);
	return gs_holding_release(holding, nla_get_u64(seq), info->extack);
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
	    nla_put_u64_64bit(reply, GS_A_TOTAL_EVENTS_LOST, t.events_lost, GS_A_PAD))
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

/* ---- The family. */

/*
 * As GENL_ADMIN_PERM would: CAP_NET_ADMIN in the initial user namespace, of the sender and of
 * whoever opened the socket; but with a message. A privileged container has that too, so namespaces
 * are looked at as well, the socket's and the sender's.
 */
static int check_sender(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	if (!netlink_capable(skb, CAP_NET_ADMIN)) {
		gs_refuse(extack, "needs CAP_NET_ADMIN in the initial user namespace");
		return -EPERM;
	}
	if (sock_net(skb->sk) != &init_net || current->nsproxy->net_ns != &init_net) {
		gs_refuse(extack, "not from this network namespace");
		return -EPERM;
	}
	if (task_active_pid_ns(current) != &init_pid_ns) {
		gs_refuse(extack, "not from this PID namespace");
		return -EPERM;
	}
	return 0;
}

#define BIT_OF(attr) BIT_ULL(GS_A_##attr)

/* Which attributes a command takes. */
static const u64 takes[] = {
	[GS_CMD_HOOK_ADD] = BIT_OF(FD) | BIT_OF(DRIVER) | BIT_OF(PASSIVE),
	[GS_CMD_HOOK_DEL] = BIT_OF(DEV),
	[GS_CMD_HOLDING_SET] = BIT_OF(NAME) | BIT_OF(DEVS) | BIT_OF(LEND_AFTER_MS) |
			       BIT_OF(HOLD_MAX_MS) | BIT_OF(SETTLE_MS),
	[GS_CMD_HOLDING_DEL] = BIT_OF(NAME),
	[GS_CMD_WATCH_SET] = BIT_OF(NAME) | BIT_OF(ROLE) | BIT_OF(PID) | BIT_OF(START_TIME) |
			     BIT_OF(CGROUP_ID) | BIT_OF(CGROUP_V1) | BIT_OF(HOLDINGS) |
			     BIT_OF(KILL_ON_RETURN),
	[GS_CMD_WATCH_DEL] = BIT_OF(NAME),
	[GS_CMD_LEND] = BIT_OF(NAME) | BIT_OF(SEQ),
	[GS_CMD_WITHDRAW] = BIT_OF(NAME),
	[GS_CMD_RELEASE] = BIT_OF(NAME) | BIT_OF(SEQ),
	[GS_CMD_DUMP] = 0,
};

/*
 * Each attribute once, and none that the command would not look at: netlink itself takes the last
 * of two, and all that the family knows. (What it does not know it has refused.)
 */
static int check_attrs(u8 cmd, const struct nlmsghdr *nlh, struct netlink_ext_ack *extack)
{
	const struct genlmsghdr *header = nlmsg_data(nlh);
	const struct nlattr *attr;
	u64 seen = 0, bit;
	int rest;

	BUILD_BUG_ON(GS_A_MAX > 63);
	/* As the kernel itself does from 6.1 on. */
	if (header->reserved ||
	    (nlh->nlmsg_flags & ~(NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO | NLM_F_DUMP))) {
		gs_refuse(extack, "reserved bits are set");
		return -EINVAL;
	}
	nla_for_each_attr(attr, (const struct nlattr *)((const char *)header + GENL_HDRLEN),
			  nlmsg_len(nlh) - GENL_HDRLEN, rest) {
		bit = BIT_ULL(nla_type(attr) & 63);
		if (!(takes[cmd] & bit)) {
			gs_refuse_attr(extack, attr, "not an attribute of this command");
			return -EINVAL;
		}
		if (seen & bit) {
			gs_refuse_attr(extack, attr, "an attribute stands twice");
			return -EINVAL;
		}
		seen |= bit;
	}
	return 0;
}

static int (*const commands[])(struct sk_buff *skb, struct genl_info *info) = {
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
};

/* Every command comes through here. */
static int do_command(struct sk_buff *skb, struct genl_info *info)
{
	u8 cmd = info->genlhdr->cmd;
	int ret;

	ret = check_sender(skb, info->extack);
	ret = ret ?: check_attrs(cmd, info->nlhdr, info->extack);
	if (ret)
		return ret;
	gs_agent_busy(info->snd_portid, true);
	/* Some commands take seconds; who waits behind one can be killed. */
	if (mutex_lock_killable(&gs_config)) {
		gs_agent_busy(info->snd_portid, false);
		return -EINTR;
	}
	if (gs_going) {
		gs_refuse(info->extack, "the module is being unloaded");
		ret = -ESHUTDOWN;
	} else {
		ret = commands[cmd](skb, info);
	}
	mutex_unlock(&gs_config);
	gs_agent_busy(info->snd_portid, false);
	return ret;
}

int gs_netlink_check_dump(struct netlink_callback *cb)
{
	return check_sender(cb->skb, cb->extack) ?: check_attrs(GS_CMD_DUMP, cb->nlh, cb->extack);
}

/*
 * Asked before netlink takes a reference of the module for the dump, which a reader who does not
 * read could keep for ever. Up to 6.1 there is no place for words here; gs_dump() asks again, for
 * what a privileged container passes.
 */
static int start_dump(struct netlink_callback *cb)
{
	if (!netlink_capable(cb->skb, CAP_NET_ADMIN))
		return -EPERM;
	/* A watch with all its holdings must fit, however small the reader's buffer. */
	cb->min_dump_alloc = 16384;
	return 0;
}

#define COMMAND(c)                             \
	{                                      \
		.cmd = (c), .doit = do_command \
	}

static const struct genl_ops ops[] = {
	COMMAND(GS_CMD_STATUS),
	COMMAND(GS_CMD_HEARTBEAT),
	COMMAND(GS_CMD_HOOK_ADD),
	COMMAND(GS_CMD_HOOK_DEL),
	COMMAND(GS_CMD_HOLDING_SET),
	COMMAND(GS_CMD_HOLDING_DEL),
	COMMAND(GS_CMD_WATCH_SET),
	COMMAND(GS_CMD_WATCH_DEL),
	COMMAND(GS_CMD_LEND),
	COMMAND(GS_CMD_WITHDRAW),
	COMMAND(GS_CMD_RELEASE),
	{
		.cmd = GS_CMD_DUMP,
		.start = start_dump,
		.dumpit = gs_dump,
	},
};

static const struct genl_multicast_group groups[] = {
	{
		.name = GS_MCGRP_EVENTS,
#ifdef GS_HAVE_MCAST_FLAGS
		.flags = GENL_MCAST_CAP_NET_ADMIN,
#endif
	},
};

/*
 * Seen from every network namespace, so that a sender in another one hears why it is refused.
 * Events go to the initial one alone.
 */
struct genl_family gs_family = {
	.name = GS_GENL_NAME,
	.version = GS_GENL_VERSION,
	.maxattr = GS_A_MAX,
	.policy = policy,
	.netnsok = true,
	/* Some commands wait for grace periods: others' families must not wait for us. */
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

static int put_caller(struct sk_buff *skb, const struct gs_notice *notice)
{
	if (!notice->by_call)
		return 0;
	if (nla_put_u32(skb, GS_A_PID, notice->pid) ||
	    nla_put_u64_64bit(skb, GS_A_START_TIME, notice->start_time, GS_A_PAD) ||
	    nla_put_u32(skb, GS_A_PIDNS, notice->pidns) || nla_put_u8(skb, GS_A_KIND, notice->kind))
		return -EMSGSIZE;
	return 0;
}

static int put_notice(struct sk_buff *skb, const struct gs_notice *notice)
{
	if (nla_put_u8(skb, GS_A_EVENT, notice->event) ||
	    nla_put_u64_64bit(skb, GS_A_EVENT_SEQ, notice->seq, GS_A_PAD) ||
	    nla_put_u64_64bit(skb, GS_A_TIME, notice->time, GS_A_PAD) ||
	    nla_put_u8(skb, GS_A_CAUSE, notice->cause))
		return -EMSGSIZE;
	if (notice->name[0] && nla_put_string(skb, GS_A_NAME, notice->name))
		return -EMSGSIZE;
	if (notice->watch[0] && nla_put_string(skb, GS_A_WATCH, notice->watch))
		return -EMSGSIZE;
	if (notice->dev && nla_put_u32(skb, GS_A_DEV, gs_dev_encode(notice->dev)))
		return -EMSGSIZE;
	switch (notice->event) {
	case GS_EV_STATE:
		if (nla_put_u8(skb, GS_A_FROM, notice->from) ||
		    nla_put_u8(skb, GS_A_STATE, notice->state))
			return -EMSGSIZE;
		break;
	case GS_EV_RELEASED:
		if (nla_put_u32(skb, GS_A_HELD, notice->held) ||
		    nla_put_u32(skb, GS_A_HELD_MS, notice->held_ms))
			return -EMSGSIZE;
		break;
	case GS_EV_REVOKED:
		if (notice->killed && nla_put_flag(skb, GS_A_KILLED))
			return -EMSGSIZE;
		break;
	case GS_EV_AGENT:
		if (nla_put_u8(skb, GS_A_AGENT_ALIVE, notice->alive))
			return -EMSGSIZE;
		break;
	default:
		break;
	}
	return put_caller(skb, notice);
}

int gs_netlink_send(const struct gs_notice *notice)
{
	struct sk_buff *skb;
	void *header;
	int ret;

	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	header = genlmsg_put(skb, 0, 0, &gs_family, 0, GS_CMD_EVENT);
	ret = header ? put_notice(skb, notice) : -EMSGSIZE;
	if (ret) {
		nlmsg_free(skb);
		return ret;
	}
	genlmsg_end(skb, header);
	/* -ESRCH: nobody listens. -ENOBUFS is the listener's, who is told by its socket. */
	ret = genlmsg_multicast(&gs_family, skb, 0, 0, GFP_KERNEL);
	return ret == -ENOMEM ? ret : 0;
}

int gs_netlink_init(void)
{
	return genl_register_family(&gs_family);
}

void gs_netlink_exit(void)
{
	genl_unregister_family(&gs_family);
}
