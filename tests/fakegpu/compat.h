/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels name differently. Kbuild compiles probe/NAME.c and sets FG_HAVE_NAME if it can. */
#ifndef FG_COMPAT_H
#define FG_COMPAT_H

#include <linux/mm.h>

#ifndef FG_HAVE_VM_FLAGS_SET
/* Since 6.3 the flags of a mapping are const and set by a function. */
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/* Since 6.2 a class sees its devices as const when it names their nodes. */
#ifdef FG_HAVE_DEVNODE_CONST
#define FG_DEVNODE_CONST const
#else
#define FG_DEVNODE_CONST
#endif

#endif
