// SPDX-License-Identifier: GPL-2.0-only
/* The netlink family: who may send what. */
#include <linux/capability.h>
#include <linux/nsproxy.h>
#include <net/sock.h>

#include "agent.h"
#include "netlink.h"

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
	[GS_A_REVOCABLE] = { .type = NLA_FLAG },
};

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
	[GS_CMD_HOOK_ADD] = BIT_OF(FD) | BIT_OF(DRIVER) | BIT_OF(PASSIVE) | BIT_OF(REVOCABLE),
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
	[GS_CMD_SAMPLE] = BIT_OF(NAME) | BIT_OF(SEQ),
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

/*
 * Which do not take gs_config: a user waits for the release, and whoever has the lock may wait for
 * ftrace, as long as the host's slowest task takes to get a processor (synchronize_rcu_tasks()).
 */
static const u64 quick = BIT_ULL(GS_CMD_STATUS) | BIT_ULL(GS_CMD_HEARTBEAT) |
			 BIT_ULL(GS_CMD_WITHDRAW) | BIT_ULL(GS_CMD_RELEASE);

/* Which change hooks, or ask ftrace. */
static const u64 hooking = BIT_ULL(GS_CMD_HOOK_ADD) | BIT_ULL(GS_CMD_HOOK_DEL) |
			   BIT_ULL(GS_CMD_LEND) | BIT_ULL(GS_CMD_SAMPLE);

/* How long LEND and SAMPLE wait for hooks to be left alone: somebody may have to be released. */
#define LEND_WAIT (HZ / 4)

static int lock_hooks(u8 cmd, struct netlink_ext_ack *extack)
{
	unsigned long until = jiffies + LEND_WAIT;

	if (cmd != GS_CMD_LEND && cmd != GS_CMD_SAMPLE)
		return mutex_lock_killable(&gs_hooks);
	while (!mutex_trylock(&gs_hooks)) {
		if (time_after(jiffies, until)) {
			gs_refuse(extack, "hooks are being changed: try again");
			return -EBUSY;
		}
		if (schedule_timeout_killable(1) && fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* Some commands take seconds; who waits behind one can be killed. */
static int do_slow_command(struct sk_buff *skb, struct genl_info *info)
{
	u8 cmd = info->genlhdr->cmd;
	int ret = 0;

	if (hooking & BIT_ULL(cmd))
		ret = lock_hooks(cmd, info->extack);
	if (ret)
		return ret;
	ret = mutex_lock_killable(&gs_config);
	if (ret)
		goto out;
	if (gs_going) {
		gs_refuse(info->extack, "the module is being unloaded");
		ret = -ESHUTDOWN;
	} else {
		ret = gs_commands[cmd](skb, info);
	}
	mutex_unlock(&gs_config);
out:
	if (hooking & BIT_ULL(cmd))
		mutex_unlock(&gs_hooks);
	return ret;
}

/* Every command comes through here. */
static int do_command(struct sk_buff *skb, struct genl_info *info)
{
	u8 cmd = info->genlhdr->cmd;
	int ret;

	ret = check_sender(skb, info->extack);
	ret = ret ?: check_attrs(cmd, info->nlhdr, info->extack);
	if (ret)
		return ret;
	if (quick & BIT_ULL(cmd)) {
		if (!READ_ONCE(gs_going))
			return gs_commands[cmd](skb, info);
		gs_refuse(info->extack, "the module is being unloaded");
		return -ESHUTDOWN;
	}
	gs_agent_busy(info->snd_portid, true);
	ret = do_slow_command(skb, info);
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
	COMMAND(GS_CMD_SAMPLE),
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

int gs_netlink_init(void)
{
	return genl_register_family(&gs_family);
}

void gs_netlink_exit(void)
{
	genl_unregister_family(&gs_family);
}
