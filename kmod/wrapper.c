// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a redirected call runs instead of the driver's function. It may wait there, and then it is
 * made anew (gate.c), or calls that function. This second entry is known to the callback by its
 * caller's address (see.c).
 */
#include <linux/mm.h>

#include "file.h"
#include "gate.h"
#include "hook.h"
#include "revoke.h"

/*
 * The original must not be a tail call: its caller would then be the kernel, and we would redirect
 * it for ever. What follows it sees to that.
 */
static noinline long redirected_ioctl(struct gs_fn *fn, struct file *file, unsigned int cmd,
				      unsigned long arg)
{
	long (*original)(struct file *, unsigned int, unsigned long) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = file_inode(file), .file = file };
	long ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_enter(&call);
	if (!ret)
		ret = original(file, cmd, arg);
	atomic_dec(&fn->inside);
	return ret;
}

static noinline int redirected_mmap(struct gs_fn *fn, struct file *file, struct vm_area_struct *vma)
{
	int (*original)(struct file *, struct vm_area_struct *) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = file_inode(file), .file = file };
	int ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_enter(&call);
	if (!ret) {
		ret = original(file, vma);
		if (!ret)
			gs_revoke_new(vma);
	}
	atomic_dec(&fn->inside);
	return ret;
}

static noinline int redirected_open(struct gs_fn *fn, struct inode *inode, struct file *file)
{
	int (*original)(struct inode *, struct file *) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = inode, .file = file };
	int ret;

	atomic_inc(&fn->inside);
	if (fn->kind == GS_RELEASE) {
		/* It runs in exiting tasks and in kernel threads: never held nor refused. */
		ret = original(inode, file);
		gs_file_closed(file);
	} else {
		ret = gs_gate_enter(&call);
		if (!ret) {
			ret = original(inode, file);
			gs_gate_leave(&call, ret != 0);
		}
	}
	atomic_dec(&fn->inside);
	return ret;
}

static noinline vm_fault_t redirected_fault(struct gs_fn *fn, struct vm_fault *vmf)
{
	vm_fault_t (*original)(struct vm_fault *) = (void *)fn->addr;
	vm_fault_t ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_fault(vmf);
	if (!ret)
		ret = original(vmf);
	atomic_dec(&fn->inside);
	return ret;
}

static noinline int redirected_access(struct gs_fn *fn, struct vm_area_struct *vma,
				      unsigned long addr, void *buf, int len, int write)
{
	int (*original)(struct vm_area_struct *, unsigned long, void *, int, int) =
		(void *)fn->addr;
	int ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_access(vma);
	if (!ret)
		ret = original(vma, addr, buf, len, write);
	atomic_dec(&fn->inside);
	return ret;
}

/*
 * A redirected call brings no more than its arguments, so each slot has wrappers of its own that
 * know which function it was. Slots are numbered in octal, for the preprocessor can't count.
 */
#define WRAPPERS(n)                                                                               \
	static long ioctl_##n(struct file *file, unsigned int cmd, unsigned long arg)             \
	{                                                                                         \
		return redirected_ioctl(&gs_fns[n], file, cmd, arg);                              \
	}                                                                                         \
	static int mmap_##n(struct file *file, struct vm_area_struct *vma)                        \
	{                                                                                         \
		return redirected_mmap(&gs_fns[n], file, vma);                                    \
	}                                                                                         \
	static int open_##n(struct inode *inode, struct file *file)                               \
	{                                                                                         \
		return redirected_open(&gs_fns[n], inode, file);                                  \
	}                                                                                         \
	static vm_fault_t fault_##n(struct vm_fault *vmf)                                         \
	{                                                                                         \
		return redirected_fault(&gs_fns[n], vmf);                                         \
	}                                                                                         \
	static int access_##n(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, \
			      int write)                                                          \
	{                                                                                         \
		return redirected_access(&gs_fns[n], vma, addr, buf, len, write);                 \
	}
#define ROW(n)                                                                        \
	{ (unsigned long)ioctl_##n, (unsigned long)mmap_##n, (unsigned long)open_##n, \
	  (unsigned long)fault_##n, (unsigned long)access_##n },
#define ROW_OF_8(x, n) \
	x(0##n##0) x(0##n##1) x(0##n##2) x(0##n##3) x(0##n##4) x(0##n##5) x(0##n##6) x(0##n##7)
#define ALL_64(x)      \
	ROW_OF_8(x, 0) \
	ROW_OF_8(x, 1) \
	ROW_OF_8(x, 2) ROW_OF_8(x, 3) ROW_OF_8(x, 4) ROW_OF_8(x, 5) ROW_OF_8(x, 6) ROW_OF_8(x, 7)

ALL_64(WRAPPERS)

static const struct {
	unsigned long ioctl;
	unsigned long mmap;
	unsigned long open;
	unsigned long fault;
	unsigned long access;
} wrappers[] = { ALL_64(ROW) };

static_assert(ARRAY_SIZE(wrappers) == GS_FNS);

unsigned long gs_wrapper(const struct gs_fn *fn)
{
	unsigned int i = fn - gs_fns;

	switch (fn->kind) {
	case GS_OPEN:
	case GS_RELEASE:
		return wrappers[i].open;
	case GS_MMAP:
		return wrappers[i].mmap;
	case GS_FAULT:
		return wrappers[i].fault;
	case GS_ACCESS:
		return wrappers[i].access;
	default:
		return wrappers[i].ioctl;
	}
}
