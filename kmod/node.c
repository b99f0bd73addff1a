// SPDX-License-Identifier: GPL-2.0-only
/* Device nodes whose driver's functions are hooked. */
#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "event.h"
#include "file.h"
#include "holding.h"
#include "hook.h"
#include "kill.h"
#include "node.h"

struct hlist_head gs_node_hash[1 << GS_NODE_BITS];
LIST_HEAD(gs_nodes);

static u32 last_id;
static dev_t index_dev[GS_NODES_MAX]; /* 0: not used yet */
static unsigned int n_indices;

struct gs_node *gs_node_find(dev_t dev)
{
	struct gs_node *node;

	list_for_each_entry(node, &gs_nodes, link)
		if (node->dev == dev)
			return node;
	return NULL;
}

unsigned int gs_node_indices(void)
{
	return READ_ONCE(n_indices);
}

dev_t gs_node_index_dev(unsigned int index)
{
	return READ_ONCE(index_dev[index]);
}

/*
 * An index stays with its device number, so that counts outlive a reload of the driver. One of a
 * node that is gone is taken over only when there is no other.
 */
static int take_index(dev_t dev)
{
	unsigned int i;

	for (i = 0; i < n_indices; i++)
		if (index_dev[i] == dev)
			return i;
	if (n_indices < GS_NODES_MAX) {
		WRITE_ONCE(index_dev[n_indices], dev);
		WRITE_ONCE(n_indices, n_indices + 1);
		return n_indices - 1;
	}
	for (i = 0; i < n_indices; i++) {
		if (gs_node_find(index_dev[i]))
			continue;
		WRITE_ONCE(index_dev[i], dev);
		return i;
	}
	return -ENOSPC;
}

/*
 * The kernel's own function where the driver is a module: one of the generic helpers that many
 * drivers use. Hooking it would touch all of them. kallsyms names the module of a function. DRM may
 * be built in, but its functions serve cards alone.
 */
static bool is_generic(bool modular, unsigned long addr)
{
	char name[KSYM_SYMBOL_LEN];

	if (addr == (unsigned long)compat_ptr_ioctl || addr == (unsigned long)nonseekable_open ||
	    addr == (unsigned long)stream_open || addr == (unsigned long)simple_open)
		return true;
	if (!modular)
		return false;
	sprint_symbol(name, addr);
	return !strchr(name, '[') && strncmp(name, "drm_", 4) != 0;
}

/* Is one of the functions a module's? A driver need not say so by fops->owner. */
static bool is_modular(const struct module *owner, const unsigned long addrs[__GS_KIND_MAX])
{
	char name[KSYM_SYMBOL_LEN];
	unsigned int kind;

	if (owner)
		return true;
	for (kind = 0; kind < __GS_KIND_MAX; kind++) {
		sprint_symbol(name, addrs[kind]);
		if (addrs[kind] && strchr(name, '['))
			return true;
	}
	return false;
}

/*
 * Which functions are to be hooked. Generic ones keep no state of the driver's, so that a generic
 * open, release or mmap counts as none; a generic compat_ioctl forwards to unlocked_ioctl, which is
 * hooked itself. A generic unlocked_ioctl is nothing that can be watched.
 */
static int pick_functions(const struct file *file, unsigned long addrs[__GS_KIND_MAX],
			  bool *ret_modular, struct netlink_ext_ack *extack)
{
	const struct file_operations *fops = file->f_op;
	unsigned int kind;
	bool modular;

	addrs[GS_OPEN] = (unsigned long)fops->open;
	addrs[GS_RELEASE] = (unsigned long)fops->release;
	addrs[GS_IOCTL] = (unsigned long)fops->unlocked_ioctl;
	addrs[GS_COMPAT_IOCTL] = (unsigned long)fops->compat_ioctl;
	addrs[GS_MMAP] = (unsigned long)fops->mmap;
	if (!addrs[GS_IOCTL]) {
		gs_refuse(extack, "the driver of that node has no ioctl function");
		return -ENOTTY;
	}
	modular = is_modular(fops->owner, addrs);
	if (is_generic(modular, addrs[GS_IOCTL])) {
		gs_refuse(
			extack,
			"the node's ioctl function is a generic one, which other drivers use too");
		return -EOPNOTSUPP;
	}
#ifdef GS_HAVE_URING_CMD
	if (fops->uring_cmd) {
		gs_refuse(extack, "the driver takes commands by io_uring, which can't be seen");
		return -EOPNOTSUPP;
	}
#endif
#ifdef GS_HAVE_MMAP_PREPARE
	if (fops->mmap_prepare) {
		gs_refuse(extack, "the driver maps by mmap_prepare, which can't be seen");
		return -EOPNOTSUPP;
	}
#endif
	for (kind = 0; kind < __GS_KIND_MAX; kind++)
		if (addrs[kind] && is_generic(modular, addrs[kind]))
			addrs[kind] = 0;
	if (addrs[GS_COMPAT_IOCTL] == addrs[GS_IOCTL])
		addrs[GS_COMPAT_IOCTL] = 0;
	*ret_modular = modular;
	return 0;
}

static void put_functions(struct gs_node *node)
{
	int kind, i;

	for (i = GS_MAP_FNS - 1; i >= 0; i--) {
		if (node->map_fns[i])
			gs_hook_put(node->map_fns[i]);
		node->map_fns[i] = NULL;
	}
	for (kind = __GS_KIND_MAX - 1; kind >= 0; kind--) {
		if (node->fns[kind])
			gs_hook_put(node->fns[kind]);
		node->fns[kind] = NULL;
	}
}

static int get_functions(struct gs_node *node, const unsigned long addrs[__GS_KIND_MAX],
			 struct netlink_ext_ack *extack)
{
	int kind, ret;

	for (kind = 0; kind < __GS_KIND_MAX; kind++) {
		if (!addrs[kind])
			continue;
		ret = gs_hook_get(addrs[kind], kind, &node->fns[kind], extack);
		if (ret) {
			put_functions(node);
			return ret;
		}
	}
	return 0;
}

bool gs_node_has_map(const struct gs_node *node, unsigned long addr, enum gs_kind kind)
{
	unsigned int i;

	for (i = 0; i < GS_MAP_FNS && node->map_fns[i]; i++)
		if (node->map_fns[i]->addr == addr && node->map_fns[i]->kind == kind)
			return true;
	return false;
}

bool gs_node_needs_map(const struct gs_node *node, unsigned long addr, enum gs_kind kind)
{
	if (!addr)
		return false;
#ifdef CONFIG_HAVE_IOREMAP_PROT
	/* What looks for a page that is mapped finds none that was taken away. */
	if (addr == (unsigned long)generic_access_phys)
		return false;
#endif
	return !gs_node_has_map(node, addr, kind);
}

int gs_node_hook_map(struct gs_node *node, unsigned long addr, enum gs_kind kind,
		     struct netlink_ext_ack *extack)
{
	struct gs_fn *fn;
	unsigned int i;
	int ret;

	if (!gs_node_needs_map(node, addr, kind))
		return 0;
	if (is_generic(node->modular, addr)) {
		gs_refuse(extack, "the mappings' functions are generic ones, which other drivers "
				  "use too");
		return -EOPNOTSUPP;
	}
	for (i = 0; i < GS_MAP_FNS; i++)
		if (!node->map_fns[i])
			break;
	if (i == GS_MAP_FNS) {
		gs_refuse(extack, "the driver has too many kinds of mappings");
		return -EOPNOTSUPP;
	}
	ret = gs_hook_get(addr, kind, &fn, extack);
	if (!ret)
		WRITE_ONCE(node->map_fns[i], fn);
	return ret;
}

static bool same_functions(const struct gs_node *node, const unsigned long addrs[__GS_KIND_MAX])
{
	int kind;

	for (kind = 0; kind < __GS_KIND_MAX; kind++)
		if ((node->fns[kind] ? node->fns[kind]->addr : 0) != addrs[kind] ||
		    (node->fns[kind] && !gs_hook_alive(node->fns[kind])))
			return false;
	return true;
}

/* A node can't change under the callback: it is replaced by a new one. */
static void publish(struct gs_node *node, struct gs_node *old)
{
	spin_lock(&gs_lock);
	if (old) {
		hlist_replace_rcu(&old->hash, &node->hash);
		list_replace(&old->link, &node->link);
	} else {
		hlist_add_head_rcu(&node->hash, &gs_node_hash[hash_32(node->dev, GS_NODE_BITS)]);
		list_add_tail(&node->link, &gs_nodes);
		gs_config_generation++;
	}
	spin_unlock(&gs_lock);
}

int gs_node_add(struct file *file, const char *driver, const u32 *passive, unsigned int n_passive,
		bool revocable, struct gs_node **ret_node, struct netlink_ext_ack *extack)
{
	unsigned long addrs[__GS_KIND_MAX] = {};
	struct gs_node *node, *old;
	struct gs_notice *notice;
	bool modular = false;
	unsigned int i;
	int ret;

	if (!S_ISCHR(file_inode(file)->i_mode)) {
		gs_refuse(extack, "not a character device");
		return -ENOTTY;
	}
	ret = pick_functions(file, addrs, &modular, extack);
	if (ret)
		return ret;
	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return -ENOMEM;
	node->dev = file_inode(file)->i_rdev;
	node->modular = modular;
	node->revocable = revocable;
	node->n_passive = n_passive;
	memcpy(node->passive, passive, n_passive * sizeof(*passive));
	for (i = 0; i < n_passive; i++)
		node->passive_bits |= BIT_ULL(passive[i] & 63);
	strscpy(node->driver, driver, sizeof(node->driver));
	if (file->f_op->owner)
		strscpy(node->module, module_name(file->f_op->owner), sizeof(node->module));

	(void)gs_nodes_check();
	old = gs_node_find(node->dev);
	if (old && same_functions(old, addrs)) {
		node->id = old->id;
		node->index = old->index;
		memcpy(node->fns, old->fns, sizeof(node->fns));
		memcpy(node->map_fns, old->map_fns, sizeof(node->map_fns));
		publish(node, old);
		synchronize_rcu();
		kfree(old);
		*ret_node = node;
		return 0;
	}
	if (old && gs_holding_needs(node->dev)) {
		gs_refuse(extack,
			  "the node's functions have changed, and a holding that needs it is lent");
		ret = -EBUSY;
		goto err_free;
	}
	ret = take_index(node->dev);
	if (ret < 0) {
		gs_refuse(extack, "too many nodes");
		goto err_free;
	}
	node->index = ret;
	mutex_unlock(&gs_config);
	ret = get_functions(node, addrs, extack);
	mutex_lock(&gs_config);
	if (!ret && old && gs_holding_needs(node->dev)) {
		gs_refuse(extack, "a holding that needs the node was lent meanwhile");
		put_functions(node);
		ret = -EBUSY;
	}
	if (ret)
		goto err_free;
	/* Nothing can fail from here on: a refusal changes nothing. */
	if (old)
		gs_node_del(old, GS_BY_LOST);
	node->id = ++last_id;
	publish(node, NULL);

	spin_lock(&gs_lock);
	notice = gs_event_new(GS_EV_HOOKED);
	notice->dev = node->dev;
	spin_unlock(&gs_lock);
	gs_holding_hooks_changed();
	gs_act();
	*ret_node = node;
	return 0;

err_free:
	kfree(node);
	return ret;
}

void gs_node_del(struct gs_node *node, enum gs_cause cause)
{
	struct gs_notice *notice;

	/*
	 * First it is no evidence any more, then the hooks go: a holding is never silent only
	 * because nobody listens.
	 */
	spin_lock(&gs_lock);
	hlist_del_rcu(&node->hash);
	list_del(&node->link);
	gs_config_generation++;
	notice = gs_event_new(GS_EV_UNHOOKED);
	notice->dev = node->dev;
	notice->cause = cause;
	spin_unlock(&gs_lock);
	gs_holding_hooks_changed();
	mutex_unlock(&gs_config);
	put_functions(node);
	mutex_lock(&gs_config);
	/* Their closes are not seen from here on. */
	if (!gs_hooks_stuck())
		gs_file_forget(NULL, node->dev);
	synchronize_rcu();
	kfree(node);
	gs_act();
}

static bool is_of(const struct gs_node *node, const struct module *mod)
{
	int kind, i;

	for (kind = 0; kind < __GS_KIND_MAX; kind++)
		if (node->fns[kind] && within_module(node->fns[kind]->addr, mod))
			return true;
	for (i = 0; i < GS_MAP_FNS && node->map_fns[i]; i++)
		if (within_module(node->map_fns[i]->addr, mod))
			return true;
	return false;
}

void gs_node_module_going(const struct module *mod)
{
	struct gs_node *node, *next;

	list_for_each_entry_safe(node, next, &gs_nodes, link)
		if (is_of(node, mod))
			gs_node_del(node, GS_BY_LOST);
}

bool gs_nodes_check(void)
{
	struct gs_node *node, *next;

	if (list_empty(&gs_nodes) || gs_hooks_work())
		return true;
	list_for_each_entry_safe(node, next, &gs_nodes, link)
		gs_node_del(node, GS_BY_LOST);
	return false;
}

static void check(struct work_struct *work)
{
	gs_hooks_lock();
	mutex_lock(&gs_config);
	if (!gs_going)
		gs_nodes_check();
	mutex_unlock(&gs_config);
	mutex_unlock(&gs_hooks);
}

static DECLARE_WORK(check_work, check);

void gs_nodes_check_soon(void)
{
	queue_work(gs_clock_wq, &check_work);
}

void gs_nodes_check_end(void)
{
	cancel_work_sync(&check_work);
}

void gs_node_exit(void)
{
	struct gs_node *node, *next;

	list_for_each_entry_safe(node, next, &gs_nodes, link)
		gs_node_del(node, GS_BY_UNLOAD);
}
