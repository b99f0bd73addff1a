// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooking a driver's functions by ftrace, which calls us at the entry of each of them (see.c):
 * there we look up whose call it is and count it, and mostly that is all, the function goes on by
 * itself. Only a call that is to be held or refused, and a borrower's open and release, are
 * redirected to a wrapper (wrapper.c).
 */
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/rcupdate.h>

#include "hook.h"

struct gs_fn gs_fns[GS_FNS];
unsigned long gs_own_start;
unsigned long gs_own_size;
static bool stuck; /* a hook could not be taken away */

static const unsigned long ops_flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT |
				       GS_OPS_REGS | GS_OPS_RECURSION;

/* ---- The canary: a function of our own, to see whether ftrace calls. */

static struct ftrace_ops canary_ops;
static bool canary_armed;
static bool by_address = true; /* until ftrace says otherwise */
static bool canary_sang;

static noinline __noclone int canary(int x)
{
	barrier();
	return x + 1;
}

static void notrace on_canary(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			      gs_regs *regs)
{
	WRITE_ONCE(canary_sang, true);
}

/*
 * Empties the filter of @ops, for which ftrace makes an empty one first: without memory for that it
 * is tried again, as what stays in the filter is lost with @ops. (ftrace_free_filter() needs none,
 * but is not exported everywhere.)
 */
static void reset(struct ftrace_ops *ops)
{
	int tries = 10;

	while (ftrace_set_filter(ops, NULL, 0, 1) == -ENOMEM && tries--)
		schedule_timeout_uninterruptible(1);
}

/*
 * Two questions: does a registered hook fire, and does ftrace still take orders? After
 * ftrace_kill() trampolines that stand may go on working, and can't be taken away any more.
 */
bool gs_hooks_work(void)
{
	static struct ftrace_ops question = { .func = on_canary };

	if (!canary_armed)
		return false;
	/* Without memory it can't say: the next heartbeat asks again. */
	if (ftrace_set_filter_ip(&question, (unsigned long)canary, 0, 1) == -ENODEV)
		return false;
	reset(&question);
	WRITE_ONCE(canary_sang, false);
	(void)canary(0);
	return READ_ONCE(canary_sang);
}

/* ---- Hooking. */

/* Registers @ops for one function. On failure nothing of it stays. */
static int hook(struct ftrace_ops *ops, unsigned long addr)
{
	int ret;

	ret = ftrace_set_filter_ip(ops, addr, 0, 1);
	if (!ret)
		ret = register_ftrace_function(ops);
	if (ret)
		reset(ops);
	return ret;
}

/*
 * Returns when no caller is on the way from ftrace to a wrapper any more: unregistering ops that
 * belong to a module waits for that, by synchronize_rcu_tasks().
 *
 * Where ftrace is dead nothing can be taken away: the driver's code goes on calling us, so this
 * module must stay. Callers pass, as no node is known any more.
 */
static void unhook(struct ftrace_ops *ops)
{
	int ret = unregister_ftrace_function(ops);

	if (ret && !stuck) {
		pr_err("ftrace does not give up a hook (%d): this module can't be unloaded\n", ret);
		stuck = true;
		if (!gs_going)
			__module_get(THIS_MODULE);
	}
	if (!ret)
		reset(ops);
}

static bool any_hook(void)
{
	unsigned int i;

	for (i = 0; i < GS_FNS; i++)
		if (gs_fns[i].users)
			return true;
	return false;
}

static int arm_canary(struct netlink_ext_ack *extack)
{
	int ret;

	if (canary_armed)
		return 0;
	canary_ops.func = on_canary;
	canary_ops.flags = ops_flags;
	ret = hook(&canary_ops, (unsigned long)canary);
	switch (ret) {
	case 0:
		break;
	case -EBUSY:
	case -ENODEV:
		gs_refuse(extack, "ftrace is switched off (sysctl kernel.ftrace_enabled)");
		return -ENODEV;
	case -EINVAL:
		gs_refuse(extack, "this kernel's ftrace can't hook a function by its address");
		return -EOPNOTSUPP;
	default:
		gs_refuse(extack, "ftrace refused a function of our own");
		return ret;
	}
	canary_armed = true;
	if (!gs_hooks_work()) {
		unhook(&canary_ops);
		canary_armed = false;
		gs_refuse(extack, "ftrace does not call us");
		return -ENODEV;
	}
	return 0;
}

static void disarm_canary(void)
{
	if (!canary_armed || stuck || any_hook())
		return;
	unhook(&canary_ops);
	canary_armed = false;
}

static struct gs_fn *find_fn(unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < GS_FNS; i++)
		if (gs_fns[i].users && gs_fns[i].addr == addr)
			return &gs_fns[i];
	return NULL;
}

static struct gs_fn *free_slot(void)
{
	unsigned int i;

	for (i = 0; i < GS_FNS; i++)
		if (!gs_fns[i].users && !atomic_read(&gs_fns[i].inside))
			return &gs_fns[i];
	return NULL;
}

static void fill_slot(struct gs_fn *fn, unsigned long addr, enum gs_kind kind)
{
	memset(&fn->ops, 0, sizeof(fn->ops));
	fn->addr = addr;
	fn->kind = kind;
	fn->bit = GS_KIND_BIT(kind);
	fn->wrapper = gs_wrapper(fn);
	fn->ops.flags = ops_flags;
	fn->ops.func = kind == GS_OPEN	  ? gs_on_open :
		       kind == GS_RELEASE ? gs_on_release :
		       kind == GS_FAULT	  ? gs_on_fault :
		       kind == GS_ACCESS  ? gs_on_access :
					    gs_on_call;
}

/* Both kinds are called alike and treated alike. */
static bool is_ioctl(enum gs_kind kind)
{
	return kind == GS_IOCTL || kind == GS_COMPAT_IOCTL;
}

int gs_hook_get(unsigned long addr, enum gs_kind kind, struct gs_fn **ret_fn,
		struct netlink_ext_ack *extack)
{
	struct gs_fn *fn = find_fn(addr);
	int ret;

	if (stuck) {
		gs_refuse(extack, "ftrace is dead (see the kernel log): only a reboot mends that");
		return -ENODEV;
	}
	if (fn && fn->kind != kind && !(is_ioctl(fn->kind) && is_ioctl(kind))) {
		gs_refuse(extack, "one function of the driver stands for two different ones");
		return -EOPNOTSUPP;
	}
	if (fn) {
		fn->users++;
		*ret_fn = fn;
		return 0;
	}
	ret = arm_canary(extack);
	if (ret)
		return ret;
	fn = free_slot();
	if (!fn) {
		gs_refuse(extack, "too many functions are hooked");
		return -ENOSPC;
	}
	fill_slot(fn, addr, kind);
	ret = hook(&fn->ops, addr);
	if (ret) {
		if (ret == -EBUSY) {
			gs_refuse(extack,
				  "a live patch, or BPF, redirects the driver's function already");
		} else if (ret == -EINVAL) {
			gs_refuse(extack, "ftrace knows no entry of the driver's function");
			ret = -EOPNOTSUPP;
		} else {
			gs_refuse(extack, "ftrace refused the driver's function");
		}
		disarm_canary();
		return ret;
	}
	fn->users = 1;
	*ret_fn = fn;
	return 0;
}

void gs_hook_put(struct gs_fn *fn)
{
	if (--fn->users)
		return;
	unhook(&fn->ops);
	/* A slot whose hook stands stays taken. */
	if (stuck)
		fn->users = 1;
	disarm_canary();
}

bool gs_hooks_in(const struct module *mod)
{
	unsigned int i;

	/* A slot keeps its address when it is given up: in doubt there is one. */
	for (i = 0; i < GS_FNS; i++)
		if (within_module(READ_ONCE(gs_fns[i].addr), mod))
			return true;
	return false;
}

bool gs_hooks_stuck(void)
{
	return stuck;
}

bool gs_hook_alive(const struct gs_fn *fn)
{
	return fn->users && (fn->ops.flags & FTRACE_OPS_FL_ENABLED);
}

u32 gs_hook_features(void)
{
	u32 features = GS_F_HOOK_PERMANENT;

	if (by_address)
		features |= GS_F_HOOK_BY_ADDRESS;

	if (GS_NO_REGS)
		features |= GS_F_HOOK_NO_REGS;
	return features;
}

void gs_hook_init(void)
{
	gs_own_text(&gs_own_start, &gs_own_size);
	/* Ask once, to be able to say. (ftrace may be switched off: then nobody knows yet.) */
	by_address = arm_canary(NULL) != -EOPNOTSUPP;
	disarm_canary();
}

void gs_hook_exit(void)
{
	unsigned int i;

	/* Going on would free code that is called. */
	while (stuck)
		schedule_timeout_uninterruptible(HZ);
	for (i = 0; i < GS_FNS; i++)
		while (atomic_read(&gs_fns[i].inside))
			schedule_timeout_uninterruptible(1);
	/* Past the counter a caller has a few instructions of ours to go. */
	synchronize_rcu_tasks();
	synchronize_rcu();
}
