// SPDX-License-Identifier: GPL-2.0-only
/* 6.3: bc292ab00f6c ("mm: introduce vma->vm_flags wrapper functions"). */
#include <linux/mm.h>

void fg_probe(struct vm_area_struct *vma);

void fg_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
