// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking members' mappings of revocable nodes away (design: "a return that makes no system call").
 *
 * A member may start work on a card by a store to a mapping of it, which nobody sees. So LEND takes
 * those mappings' pages away, as the driver itself does for power management; the next touch of one
 * faults, and the driver's fault function, which would bring the page back, is hooked (fault.c).
 * Nothing has to be put back ever: the driver does.
 *
 * Mappings are found through the members' memory, so that a file that was closed after mmap is
 * found too, and each is taken away by itself, under its memory's lock: never anybody else's. Who
 * else maps the same file is only looked at: by such a mapping the card could be used unseen.
 */
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "event.h"
#include "gate.h"
#include "holding.h"
#include "memory.h"
#include "node.h"
#include "revoke.h"
#include "watch.h"

/*
 * How long one look at all of the members' memory may last, with what is waited for. The agent
 * waits for it, and others' commands do: a member who maps the card ten thousand times, or who is
 * never at rest, is not lent.
 */
#define LOOK_MAX (HZ / 4)
#define LEARN_WAIT HZ
#define LEARN_MAX 4 /* at once: they wait for gs_hooks, in the queue of the holdings' clocks */

/* ---- One mapping. */

struct missing {
	struct gs_node *node;
	unsigned long addr;
	enum gs_kind kind;
};

/* A walk over the members' mappings. */
struct round {
	struct gs_holding *holding;
	struct netlink_ext_ack *extack;
	struct gs_memory *memory;
	unsigned long until; /* jiffies */
	bool take; /* take them away; else only look */
	struct missing missing[GS_MAP_FNS]; /* functions that have to be hooked */
	unsigned int n_missing;
	u32 mappings; /* how many there are */
	const struct address_space *last; /* of the mapping before, in the same memory */
};

/* To be asked again and again. */
static int go_on(struct round *round)
{
	cond_resched();
	if (fatal_signal_pending(current))
		return -EINTR;
	if (time_before_eq(jiffies, round->until))
		return 0;
	gs_refuse(round->extack, "a member's memory is busy: try again");
	return -EBUSY;
}

/* The holding's revocable node that it is a mapping of, or NULL. gs_config, mmap lock held. */
static struct gs_node *node_of(const struct gs_holding *holding, const struct vm_area_struct *vma)
{
	const struct inode *inode;
	struct gs_node *node;
	unsigned int i;

	if (!vma->vm_file)
		return NULL;
	inode = file_inode(vma->vm_file);
	if (!S_ISCHR(inode->i_mode))
		return NULL;
	for (i = 0; i < holding->n_devs; i++)
		if (holding->devs[i] == inode->i_rdev)
			break;
	if (i == holding->n_devs)
		return NULL;
	node = gs_node_find(inode->i_rdev);
	return node && node->revocable ? node : NULL;
}

/* What is taken away must come back, by a function that is hooked, and be nobody else's. */
static int check_mapping(const struct vm_area_struct *vma, struct netlink_ext_ack *extack)
{
	const struct address_space *mapping = vma->vm_file->f_mapping;
	const struct vm_operations_struct *ops = vma->vm_ops;

	if (mapping == file_inode(vma->vm_file)->i_mapping ||
	    (mapping->host && mapping == mapping->host->i_mapping)) {
		gs_refuse(extack, "the driver's files share one address space: whose its mappings "
				  "are can't be told");
		return -EOPNOTSUPP;
	}
	if (!ops || !ops->fault) {
		gs_refuse(extack, "the driver's mappings have no fault function: what is taken "
				  "away would not come back");
		return -EOPNOTSUPP;
	}
	/* Else the kernel may have its pages in use, for input and output, and needs no fault. */
	if (!(vma->vm_flags & VM_PFNMAP)) {
		gs_refuse(extack,
			  "the driver's mappings are of pages that can be used without them");
		return -EOPNOTSUPP;
	}
	if (ops->map_pages || ops->huge_fault) {
		gs_refuse(extack, "the driver's mappings come back by more than a fault function");
		return -EOPNOTSUPP;
	}
	/*
	 * Copies of pages are the member's own memory, and would be lost. It is his doing, and no
	 * word about the driver: what can't be taken away from anybody is said by EOPNOTSUPP.
	 */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE) {
		gs_refuse(extack, "a member has a private mapping of the card");
		return -EBUSY;
	}
	return 0;
}

/* Is everybody who maps what this maps a member? The mmap lock of the one is held. */
static int check_others(struct round *round, const struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;
	const struct vm_area_struct *other;
	struct rb_node *at;
	int ret = 0;

	/* Who is in the tree can't leave it, nor can his memory go, while we look. */
	i_mmap_lock_read(mapping);
	for (at = rb_first_cached(&mapping->i_mmap); at && !ret; at = rb_next(at)) {
		other = rb_entry(at, struct vm_area_struct, shared.rb);
		ret = go_on(round);
		if (ret || gs_memory_has(round->memory, other->vm_mm))
			continue;
		gs_refuse(round->extack, "a mapping of a member is also somebody's who is none");
		ret = -EBUSY;
	}
	i_mmap_unlock_read(mapping);
	return ret;
}

/* ---- All of them. */

static int note_missing(struct round *round, struct gs_node *node, unsigned long addr,
			enum gs_kind kind)
{
	unsigned int i;

	if (!gs_node_needs_map(node, addr, kind))
		return 0;
	for (i = 0; i < round->n_missing; i++)
		if (round->missing[i].node == node && round->missing[i].addr == addr)
			return 0;
	/* A mapping that was made since we prepared: its mmap was a touch. */
	if (round->take || i == GS_MAP_FNS) {
		gs_refuse(round->extack, "a mapping of another kind has just been made");
		return -EAGAIN;
	}
	round->missing[round->n_missing++] =
		(struct missing){ .node = node, .addr = addr, .kind = kind };
	return 0;
}

static int visit_mapping(struct round *round, struct vm_area_struct *vma)
{
	struct gs_node *node = node_of(round->holding, vma);
	const struct address_space *mapping;
	bool same;
	int ret;

	if (!node)
		return 0;
	/* Who maps the same as the one before has been asked. */
	mapping = vma->vm_file->f_mapping;
	same = mapping == round->last;
	round->last = mapping;
	ret = check_mapping(vma, round->extack);
	if (!ret && !same)
		ret = check_others(round, vma);
	ret = ret ?: note_missing(round, node, (unsigned long)vma->vm_ops->fault, GS_FAULT);
	ret = ret ?: note_missing(round, node, (unsigned long)vma->vm_ops->access, GS_ACCESS);
	if (ret)
		return ret;
	round->mappings++;
	if (round->take)
		gs_zap_vma(vma);
	return 0;
}

/*
 * For writing: who has it for reading may be in the driver's fault function. (Under the lock of one
 * mapping alone, from 6.4 on, the kernel calls none that has no map_pages.) Somebody may sleep
 * there for long: the agent has more to do. Nothing of the memory is changed, so
 * mmap_write_lock()'s sequence count may stay as it is; no trylock has it on every kernel.
 */
static int lock_mm(struct round *round, struct mm_struct *mm)
{
	int ret;

	while (!down_write_trylock(&mm->mmap_lock)) {
		ret = go_on(round);
		if (ret)
			return ret;
		schedule_timeout_uninterruptible(1);
	}
	return 0;
}

static int walk_mm(struct round *round, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	int ret;

	ret = lock_mm(round, mm);
	if (ret)
		return ret;
	round->last = NULL;
	for (vma = find_vma(mm, 0); vma && !ret; vma = find_vma(mm, vma->vm_end))
		ret = visit_mapping(round, vma) ?: go_on(round);
	up_write(&mm->mmap_lock);
	return ret;
}

/* All members there are now, when nobody of them forks. */
static int find_members(struct round *round)
{
	int ret;

	for (;;) {
		ret = gs_memory_add(round->memory, round->holding);
		if (ret != -EAGAIN)
			break;
		ret = go_on(round);
		if (ret)
			return ret;
		schedule_timeout_uninterruptible(1);
	}
	if (ret == -E2BIG)
		gs_refuse(round->extack, "the members have too many processes");
	return ret;
}

/*
 * Members fork while we walk. What is copied from memory that was walked has nothing of the card.
 * But a member may have a mapping copied, and then unmap his own before we come to him: so it ends
 * when all that there is has been walked, and nobody was in a fork after that.
 */
static int walk_all(struct round *round)
{
	unsigned int i = 0;
	int ret;

	round->until = jiffies + LOOK_MAX;
	round->memory = gs_memory_new();
	if (!round->memory)
		return -ENOMEM;
	ret = find_members(round);
	while (!ret && i < round->memory->n) {
		for (; !ret && i < round->memory->n; i++)
			ret = walk_mm(round, round->memory->mm[i]);
		if (!ret)
			ret = find_members(round);
	}
	gs_memory_free(round->memory);
	return ret;
}

bool gs_revoke_wanted(const struct gs_holding *holding)
{
	struct gs_node *node;
	unsigned int i;

	for (i = 0; i < holding->n_devs; i++) {
		node = gs_node_find(holding->devs[i]);
		if (node && node->revocable)
			return true;
	}
	return false;
}

int gs_revoke_prepare(struct gs_holding *holding, struct netlink_ext_ack *extack)
{
	struct round round = { .holding = holding, .extack = extack };
	unsigned int i;
	int ret;

	ret = walk_all(&round);
	if (ret || !round.n_missing)
		return ret;
	/*
	 * Those mappings may be gone by now, but not the driver: whoever unloads it waits for
	 * gs_hooks. Others need not wait for ftrace.
	 */
	kref_get(&holding->ref);
	mutex_unlock(&gs_config);
	for (i = 0; i < round.n_missing && !ret; i++)
		ret = gs_node_hook_map(round.missing[i].node, round.missing[i].addr,
				       round.missing[i].kind, extack);
	mutex_lock(&gs_config);
	if (!ret && holding->dead) {
		gs_refuse(extack, "the holding was deleted meanwhile");
		ret = -ENOENT;
	}
	gs_holding_put(holding);
	return ret;
}

int gs_revoke(struct gs_holding *holding, u32 *ret_mappings, struct netlink_ext_ack *extack)
{
	struct round round = { .holding = holding, .extack = extack, .take = true };
	int ret;

	ret = walk_all(&round);
	if (!ret)
		*ret_mappings = round.mappings;
	return ret;
}

/* ---- A mapping that is made while they are away. */

/*
 * Its functions may be unknown, where no member had a mapping when it was lent. Hooking needs
 * gs_hooks, and whoever has that may wait for somebody's mmap lock, though not for long.
 */
struct learn {
	struct work_struct work;
	struct kref ref;
	struct completion done;
	struct file *file; /* keeps the driver from being unloaded */
	unsigned long fault;
	unsigned long access;
};

static atomic_t learning = ATOMIC_INIT(0);

static void learn_free(struct kref *ref)
{
	kfree(container_of(ref, struct learn, ref));
}

static void learn_work(struct work_struct *work)
{
	struct learn *learn = container_of(work, struct learn, work);
	struct gs_node *node;

	gs_hooks_lock();
	node = gs_going ? NULL : gs_node_find(file_inode(learn->file)->i_rdev);
	/* Nodes come and go with gs_hooks held. */
	if (node && !gs_node_hook_map(node, learn->fault, GS_FAULT, NULL))
		(void)gs_node_hook_map(node, learn->access, GS_ACCESS, NULL);
	mutex_unlock(&gs_hooks);
	atomic_dec(&learning);
	complete_all(&learn->done);
	fput(learn->file);
	kref_put(&learn->ref, learn_free);
}

/* Is what it faults by hooked? -ENOENT: it is no mapping of a revocable node. */
static int is_hooked(const struct vm_area_struct *vma)
{
	struct gs_node *node;
	int ret = -ENOENT;

	rcu_read_lock();
	node = gs_node_lookup(file_inode(vma->vm_file)->i_rdev);
	if (node && node->revocable)
		ret = gs_node_has_map(node, (unsigned long)vma->vm_ops->fault, GS_FAULT);
	rcu_read_unlock();
	return ret;
}

/* Hooks them, if that can be done soon: the caller has his mmap lock. Once for a driver. */
static void learn_map(struct vm_area_struct *vma)
{
	unsigned long until = jiffies + LEARN_WAIT;
	struct learn *learn;

	/* Others are at it, for the same function as a rule. */
	while (atomic_inc_return(&learning) > LEARN_MAX) {
		atomic_dec(&learning);
		schedule_timeout_killable(1);
		if (is_hooked(vma) || time_after(jiffies, until) || fatal_signal_pending(current))
			return;
	}
	learn = kzalloc(sizeof(*learn), GFP_KERNEL);
	if (!learn) {
		atomic_dec(&learning);
		return;
	}
	kref_init(&learn->ref);
	init_completion(&learn->done);
	INIT_WORK(&learn->work, learn_work);
	learn->file = get_file(vma->vm_file);
	learn->fault = (unsigned long)vma->vm_ops->fault;
	learn->access = (unsigned long)vma->vm_ops->access;
	kref_get(&learn->ref);
	queue_work(gs_clock_wq, &learn->work);
	(void)wait_for_completion_killable_timeout(&learn->done, LEARN_WAIT);
	kref_put(&learn->ref, learn_free);
}

void gs_revoke_new(struct vm_area_struct *vma)
{
	int hooked;

	if (!vma->vm_file || !vma->vm_ops || !vma->vm_ops->fault || !(vma->vm_flags & VM_PFNMAP) ||
	    !gs_gate_away())
		return;
	hooked = is_hooked(vma);
	if (!hooked) {
		learn_map(vma);
		hooked = is_hooked(vma);
	}
	/* The mapping is not in the file's address space yet: nobody else can have a part of it. */
	if (hooked > 0)
		gs_zap_vma(vma);
}
