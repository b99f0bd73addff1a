// SPDX-License-Identifier: GPL-2.0-only
/* An event as a netlink message. */
#include "netlink.h"

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
		    nla_put_u8(skb, GS_A_STATE, notice->state) ||
		    (notice->state == GS_LENT && nla_put_u32(skb, GS_A_MAPPINGS, notice->mappings)))
			return -EMSGSIZE;
		break;
	case GS_EV_RELEASED:
		if (nla_put_u32(skb, GS_A_HELD, notice->held) ||
		    nla_put_u32(skb, GS_A_HELD_MS, notice->held_ms) ||
		    nla_put_u64_64bit(skb, GS_A_FAULTS, notice->faults, GS_A_PAD))
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
