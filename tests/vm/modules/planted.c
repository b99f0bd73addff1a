// SPDX-License-Identifier: GPL-2.0-only
/*
 * One bug of a kind, to see that a kernel with detectors reports it. Harmless on one without. Any
 * report of KASAN or lockdep switches lockdep off: deadlock and rcu need a fresh machine each.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *bug = "";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "uaf, deadlock, atomic, leak or rcu");

/* KASAN: reads what was freed. */
static noinline void planted_uaf(void)
{
	u32 *freed = kzalloc(64, GFP_KERNEL);
	u32 *again = freed;

	if (!freed)
		return;
	/* The compiler would see it too. */
	OPTIMIZER_HIDE_VAR(again);
	kfree(freed);
	pr_info("planted: read %u after kfree\n", READ_ONCE(*again));
}

/* lockdep: two locks in one order and in the other. */
static DEFINE_SPINLOCK(planted_first);
static DEFINE_SPINLOCK(planted_second);

static noinline void planted_deadlock(void)
{
	spin_lock(&planted_first);
	spin_lock(&planted_second);
	spin_unlock(&planted_second);
	spin_unlock(&planted_first);

	spin_lock(&planted_second);
	spin_lock(&planted_first);
	spin_unlock(&planted_first);
	spin_unlock(&planted_second);
}

/* DEBUG_ATOMIC_SLEEP: would sleep while it holds a spinlock. */
static noinline void planted_atomic(void)
{
	spin_lock(&planted_first);
	might_sleep();
	spin_unlock(&planted_first);
}

/* kmemleak: several, since one pointer may stay somewhere on a stack. */
static noinline void planted_leak(void)
{
	void *lost;
	int i;

	for (i = 0; i < 16; i++) {
		lost = kmalloc(512, GFP_KERNEL);
		if (lost)
			memset(lost, 0x5a, 512);
		lost = NULL;
	}
}

/* PROVE_RCU: looks at a protected pointer outside a read section. */
static int __rcu *planted_pointer;

static noinline void planted_rcu(void)
{
	pr_info("planted: %sNULL outside a read section\n",
		rcu_dereference(planted_pointer) ? "not " : "");
}

static const struct {
	const char *name;
	void (*plant)(void);
} planted_bugs[] = {
	{ "uaf", planted_uaf },	  { "deadlock", planted_deadlock }, { "atomic", planted_atomic },
	{ "leak", planted_leak }, { "rcu", planted_rcu },
};

static int __init planted_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(planted_bugs); i++) {
		if (strcmp(bug, planted_bugs[i].name) == 0) {
			planted_bugs[i].plant();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Plants a bug, for tests of the detectors");
MODULE_LICENSE("GPL");
