// SPDX-License-Identifier: GPL-2.0-only
/* Compiles with every kernel: if not, the answers of the other probes mean nothing. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>

int fg_probe(struct vm_area_struct *vma);

int fg_probe(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_WRITE ? 1 : 0;
}
