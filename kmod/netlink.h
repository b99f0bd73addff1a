/* SPDX-License-Identifier: GPL-2.0-only */
/* The netlink family: commands in, events out. include/uapi/gpushare.h is the contract. */
#ifndef GS_KMOD_NETLINK_H
#define GS_KMOD_NETLINK_H

#include <net/genetlink.h>

#include "event.h"

extern struct genl_family gs_family;

/** gs_netlink_init() - Return: 0 or an error. Context: process. */
int gs_netlink_init(void);

/** gs_netlink_exit() - waits for commands that run. Context: process. */
void gs_netlink_exit(void);

/*
 * gs_commands - what each command does (command.c). Context: process, gs_config held; the sender
 * and the request's attributes are checked.
 */
extern int (*const gs_commands[GS_CMD_MAX + 1])(struct sk_buff *skb, struct genl_info *info);

/**
 * gs_netlink_send() - multicast an event (notice.c)
 *
 * Context: process. Return: 0, also without a listener; -ENOMEM.
 */
int gs_netlink_send(const struct gs_notice *notice);

/**
 * gs_put_node() - one GS_CMD_NODE message (dump.c)
 *
 * Context: gs_config held. Return: 0 or -EMSGSIZE, and then nothing was added.
 */
struct gs_node;
int gs_put_node(struct sk_buff *skb, const struct gs_node *node, u32 port, u32 seq, int flags,
		struct netlink_callback *cb);

/**
 * gs_netlink_check_dump() - may the sender of a dump request have it?
 *
 * Context: the sender's own, that is in the first call of a dump. (Up to 6.1 a refusal in start()
 * has no place for a message.)
 * Return: 0, -EPERM or -EINVAL.
 */
int gs_netlink_check_dump(struct netlink_callback *cb);

/** gs_dump() - GS_CMD_DUMP (dump.c). Context: process. Return: bytes, or an error. */
int gs_dump(struct sk_buff *skb, struct netlink_callback *cb);

/** gs_dev_encode() - a device number as user space is told it. */
static inline u32 gs_dev_encode(dev_t dev)
{
	return new_encode_dev(dev);
}

#endif
