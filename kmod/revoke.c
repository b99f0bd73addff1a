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
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "event.h"
#include "gate.h"
#include "holding.h"
#include "node.h"
#include "revoke.h"
#include "watch.h"

#define MMS_MAX 4096
#define LOCK_WAIT (HZ / 4) /* for somebody's mmap lock */
#define LEARN_WAIT HZ

/* ---- The members' memory. */

/* The memory of a holding's members, with references. */
struct mms {
	struct mm_struct **mm;
	unsigned int n;
	unsigned int max;
};

struct belongs {
	const struct gs_holding *holding;
	unsigned int roles;
	bool member;
};

static void visit_belongs(struct gs_watch *watch, void *arg)
{
	struct belongs *belongs = arg;
	struct gs_link *link;

	belongs->roles |= 1u << watch->role;
	if (watch->role != GS_MEMBER)
		return;
	/* Links change under gs_config only. */
	list_for_each_entry(link, &watch->links, of_watch)
		if (link->holding == belongs->holding)
			belongs->member = true;
}

/* RCU, gs_config. As the callback sees it: in a borrower nobody is a member, exempt is exempt. */
static bool is_member(const struct gs_holding *holding, struct task_struct *task)
{
	struct belongs belongs = { .holding = holding };

	gs_walk_task(task, visit_belongs, &belongs);
	return belongs.member && !(belongs.roles & (1u << GS_BORROWER | 1u << GS_EXEMPT));
}

static bool has_mm(const struct mms *mms, const struct mm_struct *mm)
{
	unsigned int i;

	/* From the end: the threads of one process come one after the other. */
	for (i = mms->n; i; i--)
		if (mms->mm[i - 1] == mm)
			return true;
	return false;
}

static void put_mms(struct mms *mms)
{
	/* The last one to leave takes mappings apart and closes files: not in our context. */
	while (mms->n)
		mmput_async(mms->mm[--mms->n]);
	kvfree(mms->mm);
	mms->mm = NULL;
}

/* False: there is no place for all. */
static bool fill_mms(struct mms *mms, const struct gs_holding *holding)
{
	struct task_struct *process, *thread;
	struct mm_struct *mm;
	bool fits = true;

	rcu_read_lock();
	for_each_process_thread(process, thread) {
		mm = READ_ONCE(thread->mm);
		if (!mm || has_mm(mms, mm) || !is_member(holding, thread))
			continue;
		mm = get_task_mm(thread);
		if (!mm)
			continue;
		/* (An exec may have given it another.) */
		if (has_mm(mms, mm)) {
			mmput_async(mm);
			continue;
		}
		if (mms->n == mms->max) {
			mmput_async(mm);
			fits = false;
			goto out;
		}
		mms->mm[mms->n++] = mm;
	}
out:
	rcu_read_unlock();
	return fits;
}

static int get_mms(struct mms *mms, const struct gs_holding *holding,
		   struct netlink_ext_ack *extack)
{
	for (mms->max = 64; mms->max <= MMS_MAX; mms->max *= 8) {
		mms->n = 0;
		mms->mm = kvmalloc_array(mms->max, sizeof(*mms->mm), GFP_KERNEL);
		if (!mms->mm)
			return -ENOMEM;
		if (fill_mms(mms, holding))
			return 0;
		put_mms(mms);
	}
	gs_refuse(extack, "the members have too many processes");
	return -E2BIG;
}

/* ---- One mapping. */

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
	/* Copies of pages are the member's own memory, and would be lost. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE) {
		gs_refuse(extack, "a member has a private mapping of the card");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Is everybody who maps what this maps a member? The mmap lock of the one is held. */
static int check_others(const struct vm_area_struct *vma, const struct mms *mms,
			struct netlink_ext_ack *extack)
{
	struct address_space *mapping = vma->vm_file->f_mapping;
	const struct vm_area_struct *other;
	struct rb_node *at;
	int ret = 0;

	/* Who is in the tree can't leave it, nor can his memory go, while we look. */
	i_mmap_lock_read(mapping);
	for (at = rb_first_cached(&mapping->i_mmap); at; at = rb_next(at)) {
		other = rb_entry(at, struct vm_area_struct, shared.rb);
		if (has_mm(mms, other->vm_mm))
			continue;
		gs_refuse(extack, "a mapping of a member is also somebody's who is none");
		ret = -EBUSY;
		break;
	}
	i_mmap_unlock_read(mapping);
	return ret;
}

/* ---- All of them. */

struct missing {
	struct gs_node *node;
	unsigned long addr;
	enum gs_kind kind;
};

/* A walk over the members' mappings. */
struct round {
	struct gs_holding *holding;
	struct netlink_ext_ack *extack;
	struct mms mms;
	bool take; /* take them away; else only look */
	struct missing missing[GS_MAP_FNS]; /* functions that have to be hooked */
	unsigned int n_missing;
	u32 mappings; /* how many there are */
	const struct address_space *last; /* of the mapping before, in the same memory */
};

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
		ret = check_others(vma, &round->mms, round->extack);
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
static int lock_mm(struct mm_struct *mm, struct netlink_ext_ack *extack)
{
	unsigned long until = jiffies + LOCK_WAIT;

	while (!down_write_trylock(&mm->mmap_lock)) {
		if (time_after(jiffies, until)) {
			gs_refuse(extack, "a member's memory is busy: try again");
			return -EBUSY;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_uninterruptible(1);
	}
	return 0;
}

static int walk_mm(struct round *round, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	int ret;

	ret = lock_mm(mm, round->extack);
	if (ret)
		return ret;
	round->last = NULL;
	for (vma = find_vma(mm, 0); vma; vma = find_vma(mm, vma->vm_end)) {
		ret = visit_mapping(round, vma);
		if (ret)
			break;
	}
	up_write(&mm->mmap_lock);
	return ret;
}

static int walk_all(struct round *round)
{
	unsigned int i;
	int ret;

	ret = get_mms(&round->mms, round->holding, round->extack);
	if (ret)
		return ret;
	for (i = 0; i < round->mms.n && !ret; i++) {
		ret = walk_mm(round, round->mms.mm[i]);
		cond_resched();
	}
	put_mms(&round->mms);
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
	complete_all(&learn->done);
	fput(learn->file);
	kref_put(&learn->ref, learn_free);
}

/* Hooks them, if that can be done soon: the caller has his mmap lock. Once for a driver. */
static void learn_map(struct vm_area_struct *vma)
{
	struct learn *learn = kzalloc(sizeof(*learn), GFP_KERNEL);

	if (!learn)
		return;
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
