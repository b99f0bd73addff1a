/* SPDX-License-Identifier: GPL-2.0-only */
/* Hooking a driver's functions by ftrace. */
#ifndef GS_KMOD_HOOK_H
#define GS_KMOD_HOOK_H

#include "gs.h"

struct netlink_ext_ack;

/**
 * struct gs_fn - a function of a driver that is hooked, or has been
 * @addr: its entry; 0 for a free slot
 * @wrapper: what a redirected call runs instead
 * @users: nodes that it serves
 * @bit: GS_KIND_BIT(kind)
 * @inside: callers in @wrapper; the slot is not used again before they are gone
 */
struct gs_fn {
	struct ftrace_ops ops;
	unsigned long addr;
	unsigned long wrapper;
	enum gs_kind kind;
	unsigned int bit;
	unsigned int users;
	atomic_t inside;
};

#define GS_FNS 64
extern struct gs_fn gs_fns[GS_FNS]; /* the slots */

/* Where this module's code lies: a call from there is a wrapper's. */
extern unsigned long gs_own_start;
extern unsigned long gs_own_size;

/** gs_wrapper() - the wrapper of a slot for its kind of function (wrapper.c). Context: any. */
unsigned long gs_wrapper(const struct gs_fn *fn);

/*
 * ftrace's callbacks (see.c): for open, for release, for what gets a file first, and for mappings'
 * fault and access. Called at the entry of a hooked function.
 */
void gs_on_open(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, gs_regs *regs);
void gs_on_release(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		   gs_regs *regs);
void gs_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, gs_regs *regs);
void gs_on_fault(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, gs_regs *regs);
void gs_on_access(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, gs_regs *regs);

/**
 * gs_hook_get() - hook a function, or count one more user of it
 * @addr: its entry, out of a file_operations or a vm_operations_struct
 * @kind: which of them
 * @ret_fn: gets the hook
 *
 * Context: process, gs_config held.
 * Return: 0; -EBUSY another tracer redirects it; -EOPNOTSUPP ftrace knows no function there;
 * -ENODEV ftrace is switched off; -ENOSPC.
 */
int gs_hook_get(unsigned long addr, enum gs_kind kind, struct gs_fn **ret_fn,
		struct netlink_ext_ack *extack);

/**
 * gs_hook_put() - one user less; the last one takes the hook away
 *
 * Context: process, gs_config held; waits for a grace period.
 */
void gs_hook_put(struct gs_fn *fn);

/** gs_hook_alive() - does ftrace still know the hook? Context: gs_config held. */
bool gs_hook_alive(const struct gs_fn *fn);

/**
 * gs_hooks_work() - does ftrace still call us?
 *
 * It stops for good, without telling, when it finds code that it does not expect. So a function of
 * our own is hooked in the same way, and is called here.
 * Context: process, gs_config held.
 */
bool gs_hooks_work(void);

/** gs_hooks_stuck() - is there a hook that ftrace does not give up? Context: gs_config held. */
bool gs_hooks_stuck(void);

struct module;

/** gs_hooks_in() - may one of the hooked functions be that module's? Context: any. */
bool gs_hooks_in(const struct module *mod);

/** gs_hook_features() - GS_F_* bits that hooking has here. */
u32 gs_hook_features(void);

/** gs_hook_init() - finds out what ftrace can do here. Context: process. */
void gs_hook_init(void);

/**
 * gs_hook_exit() - waits until nobody is in a wrapper
 *
 * All hooks are gone already. Context: process.
 */
void gs_hook_exit(void);

#endif
