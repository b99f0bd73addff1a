/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The differences between kernels, in one place. GS_HAVE_* come from the probes in configure/,
 * which compile a few lines against the kernel that the module is built for.
 */
#ifndef GS_KMOD_COMPAT_H
#define GS_KMOD_COMPAT_H

#include <linux/cgroup.h>
#include <linux/freezer.h>
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <net/genetlink.h>

#include "gs_probes.h"

#if !IS_ENABLED(CONFIG_64BIT)
#error "gpushare: 64-bit kernels only"
#endif
#if !IS_ENABLED(CONFIG_DYNAMIC_FTRACE)
#error "gpushare: the kernel is built without CONFIG_DYNAMIC_FTRACE"
#endif
#if !IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_REGS) && !IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_ARGS)
#error "gpushare: the kernel's ftrace can't redirect (neither WITH_REGS nor WITH_ARGS)"
#endif

/* ---- ftrace: what a callback gets, and how it redirects. */

#ifdef GS_HAVE_FTRACE_REGS
typedef struct ftrace_regs gs_regs;
#else
typedef struct pt_regs gs_regs;
#endif

/*
 * Where ftrace keeps the arguments for every callback, redirecting needs no full register set, and
 * arm64 has none to give. Elsewhere SAVE_REGS must be asked for.
 */
#if defined(GS_HAVE_FTRACE_REGS) && IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_ARGS) && \
	(defined(GS_HAVE_FTRACE_REGS_SET_IP) || defined(GS_HAVE_FTRACE_IP_SET))
#define GS_NO_REGS 1
#define GS_OPS_REGS 0
#else
#define GS_NO_REGS 0
#define GS_OPS_REGS FTRACE_OPS_FL_SAVE_REGS
#endif

/* The callback can't recurse: it is asked for drivers' functions alone, and calls none. */
#ifdef GS_HAVE_RECURSION_SAFE
#define GS_OPS_RECURSION FTRACE_OPS_FL_RECURSION_SAFE
#else
#define GS_OPS_RECURSION 0
#endif

static __always_inline unsigned long gs_regs_arg(gs_regs *regs, unsigned int n)
{
#ifdef GS_HAVE_FTRACE_REGS_ARG
	return ftrace_regs_get_argument(regs, n);
#else
#ifdef GS_HAVE_FTRACE_REGS
	struct pt_regs *pt = &regs->regs;
#else
	struct pt_regs *pt = regs;
#endif
#ifdef CONFIG_X86_64
	return n == 0 ? pt->di : n == 1 ? pt->si : pt->dx;
#else
	return pt->regs[n];
#endif
#endif
}

static __always_inline void gs_regs_redirect(gs_regs *regs, unsigned long to)
{
#if defined(GS_HAVE_FTRACE_REGS_SET_IP)
	ftrace_regs_set_instruction_pointer(regs, to);
#elif GS_NO_REGS
	ftrace_instruction_pointer_set(regs, to);
#elif defined(GS_HAVE_FTRACE_REGS)
	instruction_pointer_set(ftrace_get_regs(regs), to);
#else
	instruction_pointer_set(regs, to);
#endif
}

/* Where this module's own code lies. */
static inline void gs_own_text(unsigned long *start, unsigned long *size)
{
#ifdef GS_HAVE_MODULE_MEM
	*start = (unsigned long)THIS_MODULE->mem[MOD_TEXT].base;
	*size = THIS_MODULE->mem[MOD_TEXT].size;
#else
	*start = (unsigned long)THIS_MODULE->core_layout.base;
	*size = THIS_MODULE->core_layout.text_size;
#endif
}

/*
 * ---- Killable sleeps that the suspend freezer accepts. Before TASK_FREEZABLE (6.1) it was told
 * not to count the sleeper.
 */
#ifdef TASK_FREEZABLE
#define GS_FREEZABLE 1
/* UNSAFE: an io_uring of the caller may be locked meanwhile. It is the caller's alone. */
#define GS_TASK_KILLABLE (TASK_KILLABLE | TASK_FREEZABLE_UNSAFE)
#else
#define GS_FREEZABLE 0
#define GS_TASK_KILLABLE TASK_KILLABLE
#endif

static inline void gs_freezer_ignore(bool ignore)
{
#ifndef TASK_FREEZABLE
	if (ignore)
		freezer_do_not_count();
	else
		freezer_count();
#endif
}

/* ---- Memory. */

/* A fault may be under the lock of one mapping only (6.4). */
static inline void gs_release_fault_lock(struct vm_fault *vmf)
{
#ifdef GS_HAVE_FAULT_LOCK
	release_fault_lock(vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

/* Takes the pages of a VM_PFNMAP mapping away. Its mmap lock is held. */
static inline void gs_zap_vma(struct vm_area_struct *vma)
{
#ifdef GS_HAVE_ZAP_SPECIAL
	zap_special_vma_range(vma, vma->vm_start, vma->vm_end - vma->vm_start);
#else
	zap_vma_ptes(vma, vma->vm_start, vma->vm_end - vma->vm_start);
#endif
}

/* ---- Small things. */

/* The reason of a refusal, for the sender of a command; and which attribute it is about. */
#define gs_refuse(extack, msg) NL_SET_ERR_MSG_MOD(extack, msg)
#define gs_refuse_attr(extack, attr, msg) NL_SET_ERR_MSG_ATTR(extack, attr, KBUILD_MODNAME ": " msg)

/* Before io_uring's workers were threads of their process they were kernel threads. */
#ifdef GS_HAVE_IO_THREAD
#define GS_IO_WORKER_NS 1
#else
#define GS_IO_WORKER_NS 0
#endif

#if IS_ENABLED(CONFIG_CGROUP_DEVICE)
#define GS_CGROUP_V1 1
#else
#define GS_CGROUP_V1 0
#endif

#endif
