/* SPDX-License-Identifier: GPL-2.0-only */
/* Device nodes whose driver's functions are hooked. */
#ifndef GS_KMOD_NODE_H
#define GS_KMOD_NODE_H

#include <linux/hash.h>
#include <linux/rculist.h>

#include "gs.h"

#define GS_NODE_BITS 6

extern struct hlist_head gs_node_hash[1 << GS_NODE_BITS];
extern struct list_head gs_nodes; /* by id; under gs_config */

struct netlink_ext_ack;

/**
 * gs_node_add() - hook the functions of an open file of a device node
 * @file: borrowed; no reference is kept
 * @driver: the vendor's name for it, only shown
 * @passive: ioctl numbers that are no touch
 * @revocable: members' mappings of it may be taken away
 * @ret_node: gets the node, borrowed
 *
 * Context: process, gs_config held; waits for a grace period.
 * Return: 0; -ENOTTY no character device with an ioctl function; -EOPNOTSUPP a function can't be
 * hooked; -EBUSY another tracer redirects one, or the node's functions changed while it is lent;
 * -ENOSPC too many nodes or functions; -ENODEV ftrace is off.
 */
int gs_node_add(struct file *file, const char *driver, const u32 *passive, unsigned int n_passive,
		bool revocable, struct gs_node **ret_node, struct netlink_ext_ack *extack);

/**
 * gs_node_has_map() - is a function of the node's mappings hooked?
 * @addr: out of a vm_operations_struct
 * @kind: GS_FAULT or GS_ACCESS
 *
 * Context: any in which the node stays; gs_lock, or gs_config.
 */
bool gs_node_has_map(const struct gs_node *node, unsigned long addr, enum gs_kind kind);

/** gs_node_needs_map() - has it to be hooked, and is not? As above; @addr may be 0. */
bool gs_node_needs_map(const struct gs_node *node, unsigned long addr, enum gs_kind kind);

/**
 * gs_node_hook_map() - hook a function of the node's mappings
 *
 * It stays hooked as long as the node is.
 * Context: process, gs_hooks held, gs_config not.
 * Return: 0, also where it is hooked already; -EOPNOTSUPP it serves others too, or the driver has
 * too many; else as gs_hook_get().
 */
int gs_node_hook_map(struct gs_node *node, unsigned long addr, enum gs_kind kind,
		     struct netlink_ext_ack *extack);

/**
 * gs_node_del() - take the hooks of a node away
 * @cause: reported in the event
 *
 * Context: process, gs_config held; waits for a grace period.
 */
void gs_node_del(struct gs_node *node, enum gs_cause cause);

/** gs_node_find() - by device number. Context: gs_config held. Return: borrowed, or NULL. */
struct gs_node *gs_node_find(dev_t dev);

/** gs_node_module_going() - a module is unloaded, or its init failed. Context: gs_config held. */
void gs_node_module_going(const struct module *mod);

/** gs_node_indices() - how many indices of gs_counts.touches are in use. Context: any. */
unsigned int gs_node_indices(void);

/** gs_node_index_dev() - the device number that an index stands for. Context: any. */
dev_t gs_node_index_dev(unsigned int index);

/**
 * gs_nodes_check() - does ftrace still call us? If not, every node is lost
 *
 * Context: process, gs_config held. Return: whether it does.
 */
bool gs_nodes_check(void);

/** gs_nodes_check_soon() - the same, by the clocks' work queue. Context: any. */
void gs_nodes_check_soon(void);

/** gs_nodes_check_end() - waits for that. Context: process, gs_config not held; gs_going. */
void gs_nodes_check_end(void);

/** gs_node_exit() - all of them, at unload. Context: process. */
void gs_node_exit(void);

static __always_inline struct gs_node *gs_node_lookup(dev_t dev)
{
	struct gs_node *node;

	hlist_for_each_entry_rcu_notrace(node, &gs_node_hash[hash_32(dev, GS_NODE_BITS)], hash)
		if (node->dev == dev)
			return node;
	return NULL;
}

#endif
