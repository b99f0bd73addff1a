// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a holding's members. */
#include <linux/audit.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "memory.h"
#include "watch.h"

/* i386's numbers, and arm's, which are the same. */
#define COMPAT_FORK 2
#define COMPAT_CLONE 120
#define COMPAT_CLONE3 435
#define X32_BIT 0x40000000

struct gs_memory *gs_memory_new(void)
{
	return kvzalloc(sizeof(struct gs_memory), GFP_KERNEL);
}

void gs_memory_free(struct gs_memory *memory)
{
	/* The last one to leave takes mappings apart and closes files: not in our context. */
	while (memory->n)
		mmput_async(memory->mm[--memory->n]);
	kvfree(memory);
}

/* Where it stands in the index, or would. */
static unsigned int slot_of(const struct gs_memory *memory, const struct mm_struct *mm)
{
	unsigned int slot = hash_ptr(mm, GS_MEMORY_BITS);

	while (memory->index[slot] && memory->mm[memory->index[slot] - 1] != mm)
		slot = (slot + 1) % ARRAY_SIZE(memory->index);
	return slot;
}

bool gs_memory_has(const struct gs_memory *memory, const struct mm_struct *mm)
{
	return memory->index[slot_of(memory, mm)];
}

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

/* The system call that a thread is in, or was in last. */
static bool is_fork(struct task_struct *task)
{
	struct pt_regs *regs = task_pt_regs(task);
	unsigned long args[6];
	int nr = syscall_get_nr(task, regs);
	bool clone;

	if (!(syscall_get_arch(task) & __AUDIT_ARCH_64BIT)) {
		if (nr == COMPAT_FORK || nr == COMPAT_CLONE3)
			return true;
		clone = nr == COMPAT_CLONE;
	} else {
#ifdef CONFIG_X86_64
		nr &= ~X32_BIT;
#endif
#ifdef __NR_fork
		if (nr == __NR_fork)
			return true;
#endif
		/* Its flags are in the caller's memory. */
		if (nr == __NR_clone3)
			return true;
		clone = nr == __NR_clone;
	}
	if (!clone)
		return false;
	syscall_get_arguments(task, regs, args);
	return !(args[0] & CLONE_VM);
}

/*
 * May the thread be in a fork? Then there is a copy of its memory that no task has yet, and the
 * forker may make that last: it waits for memory, for locks, for a reader of its userfaultfd. (One
 * that was in a fork, has not been interrupted since, and is in user mode, looks the same; so does
 * a child that has not run yet. Both pass.)
 */
static bool may_fork(struct task_struct *task)
{
	bool ret;

	/* The kernel's own, which never fork, keep what their maker was in. */
	if (task->flags & PF_IO_WORKER)
		return false;
	/* Who has memory has a stack, and both are kept until the lock is given up. */
	task_lock(task);
	ret = task->mm && is_fork(task);
	task_unlock(task);
	return ret;
}

/* RCU. */
static int add_task(struct gs_memory *memory, struct task_struct *task)
{
	struct mm_struct *mm = get_task_mm(task);
	unsigned int slot;

	/* (An exec may have given it another one meanwhile, or an exit none.) */
	if (!mm)
		return 0;
	slot = slot_of(memory, mm);
	if (memory->index[slot] || memory->n == GS_MEMORY_MAX) {
		mmput_async(mm);
		return memory->index[slot] ? 0 : -E2BIG;
	}
	memory->mm[memory->n++] = mm;
	memory->index[slot] = memory->n;
	return 0;
}

int gs_memory_add(struct gs_memory *memory, const struct gs_holding *holding)
{
	struct task_struct *process, *thread;
	struct mm_struct *mm;
	int ret = 0;

	rcu_read_lock();
	for_each_process_thread(process, thread) {
		mm = READ_ONCE(thread->mm);
		if (!mm || !is_member(holding, thread))
			continue;
		ret = may_fork(thread) ? -EAGAIN : 0;
		if (!ret && !gs_memory_has(memory, mm))
			ret = add_task(memory, thread);
		if (ret)
			goto out;
	}
out:
	rcu_read_unlock();
	return ret;
}
